/* moe_megatron.c: a mixture of experts by Megatron-Core's kernels (core/transformer/moe, 2025), as NVIDIA's recipes
 * turn them on: moe_permute_fusion, moe_router_fusion, moe_grouped_gemm, bias_activation_fusion.
 *
 * One kernel copies every token to its experts' rows, one sums them back; a token's weight for an expert is multiplied
 * in by the activation's kernel, on the experts' narrow side, so that nothing is saved of what leaves them.
 *
 * Leaves out: the second sorting pass of the all-to-all dispatcher (sort_chunks_by_idxs; DeepEP and HybridEP, which
 * the recipes use, have none), and that those two send a token once to a rank that has several of its experts. */
#include "graph/emit.h"
#include "model/moe.h"
#include "model/relative.h"

/* Which row a token's copies go to: bits of [tokens, experts], their running sums, the map. */
static void map_rows(ft_maker *m, int64_t tokens)
{
    enum { LAUNCHES = 3 };
    ft__aside(&m->b, "moe.map", "copy", FT_NONE, tokens, m->arch->experts, 4, LAUNCHES);
}

ft_ref ft__megatron_experts(ft_maker *m, ft_ref x, ft_ref weights)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, routed = tokens * a->topk;
    map_rows(m, tokens);
    ft_ref h = ft__permute(b, "moe.dispatch", x, routed);
    ft_ref both = ft__grouped_product(m, "moe.gate_up", h, 2 * a->moe_ffn, a->expert_bias, FT_NONE);
    ft_ref each = ft__view(b, weights, routed, 1, false);
    h = ft__swiglu(b, "moe.act", both, each);
    ft_ref y = ft__grouped_product(m, "moe.down", h, a->hidden, a->expert_bias, FT_NONE);
    return ft__permute(b, "moe.combine", y, tokens);
}
