/* moe_megatron.c: a mixture of experts by Megatron-Core's kernels (core/transformer/moe, 2025), as NVIDIA's recipes
 * turn them on: moe_permute_fusion, moe_router_fusion, moe_grouped_gemm, bias_activation_fusion.
 *
 * One kernel copies every token to its experts' rows, one sums them back; a token's weight for an expert is multiplied
 * in by the activation's kernel, on the experts' narrow side, so that nothing is saved of what leaves them.
 *
 * gpt-oss has what those kernels do not: gates and values are clamped before the activation, by three kernels of
 * PyTorch's (fused_bias_geglu.py, weighted_bias_quick_geglu_impl: clamp, clamp, cat), and the second product leaves its
 * bias to be weighed and added expert by expert (experts.py, TEGroupedMLP._apply_bias: t + b * p for every expert, then
 * cat). The first product adds its own.
 *
 * Experts without a gate (Nemotron 3's squared ReLU) have a kernel for activation and weight too
 * (fused_weighted_squared_relu.py; Megatron-Bridge's recipes turn it on, NeMo AutoModel compiles the same); other
 * activations are weighed by a kernel of their own.
 *
 * What an all-to-all's receiver has to sort is the layout's (layout/cut_rows.c). */
#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "model/moe.h"
#include "model/relative.h"

/* The host waits for what was launched last. */
static void wait_for_last(ft_build *b)
{
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].synced = true;
}

/* Which row a token's copies go to: bits of [tokens, experts], their running sums, the map, and what counts tokens for
 * the balance and for the exchange: as many small kernels as the stack has. The host asks how many there are of each
 * expert before it can launch products of that many rows (token_dispatcher.py's sync points, tokens_per_expert.tolist()
 * in experts.py). */
static void map_rows(ft_maker *m, int64_t tokens)
{
    enum { LEAST = 3 };
    const int launches = m->stack->routing_kernels > LEAST ? (int)m->stack->routing_kernels : LEAST;
    ft__no_grad_kernels(&m->b, FT_AT(MOE_MAP), "copy", FT_NONE, tokens, m->arch->experts, 4, launches);
    wait_for_last(&m->b);
}

static ft_ref clamped(ft_maker *m, ft_ref both)
{
    ft_build *b = &m->b;
    int64_t halves[2] = {m->arch->moe_ffn, m->arch->moe_ffn}, rows = ft__tensor_of(b, both)->rows;
    ft_ref part[2];
    ft__split(b, both, 2, halves, part);
    part[0] = ft__pointwise(b, FT_AT(MOE_CLAMP), "clamp_max", part[0]);
    part[1] = ft__pointwise(b, FT_AT(MOE_CLAMP), "clamp", part[1]);
    both = ft__cat(b, FT_AT(MOE_CLAMP), 2, part, rows, halves[0] + halves[1]);
    wait_for_last(b); /* while it copies the activation's offset, a number, to the GPU (torch.tensor) */
    return both;
}

/* What was appended since `first` is launched once per expert, with its share of the rows. */
static void by_expert(ft_maker *m, int32_t first)
{
    ft_build *b = &m->b;
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) {
        b->g->nodes[i].count *= (float)m->arch->experts;
        ft__op_share(&b->g->nodes[i].op, (double)m->arch->experts);
    }
}

/* y + bias * weight, the bias of each row's expert. */
static ft_ref weighed_bias(ft_maker *m, ft_ref y, ft_ref each)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = ft__tensor_of(b, y)->rows;
    ft_ref bias = ft__experts_bias(b, a->experts, a->hidden), both[2] = {each, bias};
    double share = fmin(1, (double)a->topk / (double)a->experts);
    b->g->active_parameters -= (double)a->experts * (double)a->hidden * (double)b->repeat * (1 - share);
    int32_t first = b->g->node_count;
    y = ft__add(b, FT_AT(MOE_BIAS), y, ft__pointwise_over(b, FT_AT(MOE_BIAS), "mul", 2, both, rows, a->hidden));
    by_expert(m, first);
    return ft__copy(b, FT_AT(MOE_BIAS), y, rows, a->hidden);
}

/* What experts make of their first product, times each row's weight. */
static ft_ref weighed_activation(ft_maker *m, ft_ref both, ft_ref each)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (!a->expert_plain) return ft__swiglu(b, FT_AT(MOE_ACT), a->expert_bias ? clamped(m, both) : both, each);
    if (!strcmp(a->activation, "relu2")) return ft__relu2_weighed(b, FT_AT(MOE_ACT), both, each);
    ft_ref y = ft__mul(b, FT_AT(MOE_WEIGH), ft__part_activation(m, FT_AT(MOE_ACT), a->activation, both), each);
    return ft__cast(b, FT_AT(MOE_WEIGH), y, ft__tensor_of(b, both)->dtype);
}

ft_ref ft__megatron_experts(ft_maker *m, ft_ref x, ft_ref weights)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, routed = tokens * a->topk;
    map_rows(m, tokens);
    ft_ref h = ft__permute(b, FT_AT(MOE_DISPATCH), x, routed);
    int64_t wide = (a->expert_plain ? 1 : 2) * a->moe_ffn;
    ft_ref both = ft__grouped_product(m, FT_AT(MOE_GATE_UP), h, wide, a->expert_bias, FT_NONE);
    ft_ref each = ft__view(b, weights, routed, 1, false);
    h = weighed_activation(m, both, each);
    ft_ref y = ft__grouped_product(m, FT_AT(MOE_DOWN), h, ft__tensor_of(b, x)->cols, false, FT_NONE);
    if (a->expert_bias) y = weighed_bias(m, y, each);
    return ft__permute(b, FT_AT(MOE_COMBINE), y, tokens);
}
