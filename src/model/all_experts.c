/* all_experts.c: llama4's mixture as plain transformers runs it: every token is repeated for every expert, weighed by
 * a score that is zero but for the experts it was routed to, and goes through two batched products; the results are
 * summed and added to the shared expert's. Megatron-Core and serving engines route (moe.c, moe_megatron.c). */
#include <math.h>

#include "graph/emit.h"
#include "model/moe.h"

/* Weights of all experts, of which a token needs `topk`. */
static ft_ref weights_of(ft_maker *m, int64_t in, int64_t out)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    double all = (double)a->experts * (double)in * (double)out * (double)b->repeat;
    b->g->active_parameters -= all * (1 - fmin(1, (double)a->topk / (double)a->experts));
    return ft__experts_weight(b, a->experts * in, out);
}

static ft_ref summed_over_experts(ft_build *b, ft_ref x, int64_t tokens)
{
    ft_node sum = ft__node_of(FT_DO_ROW, FT_AT(MOE_COMBINE));
    ft__node_in(&sum, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &sum, tokens, t.cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    sum.op = ft__pointwise_kernel(b->g, "sum", sum.in, 1, &b->g->tensors[out]);
    sum.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    ft__emit(b, &sum);
    return out;
}

ft_ref ft__all_experts(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const double most = 1e15; /* rows that 64 bits count, with their elements */
    int64_t tokens = ft__tensor_of(b, x)->rows, halves[2] = {a->moe_ffn, a->moe_ffn};
    if ((double)a->experts * (double)tokens > most) {
        ft__build_fail(b, FT_E_RANGE, "%lld tokens through each of %lld experts are too large for any machine",
                       (long long)tokens, (long long)a->experts);
        return FT_NONE;
    }
    int64_t all = a->experts * tokens;
    ft_ref part[2];
    ft_ref scores = ft__transpose(b, FT_AT(MOE_SCORES), ft__route_scores(m, x), a->experts, tokens);
    ft_ref h = ft__copy(b, FT_AT(MOE_REPEAT), x, all, a->hidden);
    h = ft__mul(b, FT_AT(MOE_WEIGH), h, ft__view(b, scores, all, 1, false));
    ft_ref both = ft__matmul(b, FT_AT(MOE_GATE_UP), h, weights_of(m, a->hidden, 2 * a->moe_ffn), a->experts, tokens,
                             2 * a->moe_ffn, a->hidden, "nn");
    ft__split(b, both, 2, halves, part);
    h = ft__mul(b, FT_AT(MOE_ACT), part[1], ft__part_activation(m, FT_AT(MOE_ACT), a->activation, part[0]));
    h = ft__matmul(b, FT_AT(MOE_DOWN), h, weights_of(m, a->moe_ffn, a->hidden), a->experts, tokens, a->hidden,
                   a->moe_ffn, "nn");
    ft_ref y = ft__part_mlp(m, x, a->shared_ffn, a->activation, true, false, FT_NO_BIAS);
    return ft__pointwise_in_place(b, FT_AT(MOE_ADD), "add", y, summed_over_experts(b, h, tokens));
}
