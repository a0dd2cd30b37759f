/* hyper.c: hyper-connections (arXiv 2409.19606, in DeepSeek-V4's form): several residual streams, of which each half of
 * a layer reads a weighted sum and into which it writes; the weights come of a small product over all streams, made
 * doubly stochastic by twenty rounds of division. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

enum { ROUNDS = 20 };

static bool one_kernel(const ft_maker *m) { return m->engine || m->stack->fused_norms; }

ft_hyper ft__part_hyper_collapse(ft_maker *m, ft_ref streams)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(HYPER);
    int64_t tokens = m->batch * m->q_len, n = a->streams, out = (2 + n) * n;
    ft_ref weight = ft__parameter(b, "hyper.fn", out, n * a->hidden);
    ft_ref base = ft__parameter(b, "hyper.base", 1, out), scale = ft__parameter(b, "hyper.scale", 1, 3), part[3];
    int64_t cols[3] = {n, n, n * n}, rank = b->lora_rank;
    b->lora_rank = 0;
    ft_ref flat = one_kernel(m) ? ft__cast(b, at, streams, FT_FP32)
                                : ft__part_norm_bare(m, at, ft__cast(b, at, streams, FT_FP32));
    weight = ft__cast(b, at, weight, FT_FP32);
    ft_ref w = ft__linear_with(b, at, flat, weight, out, FT_NONE, FT_WHOLE);
    b->lora_rank = rank;
    w = ft__add(b, at, ft__mul(b, at, w, ft__expand(b, scale, 1, out)), base);
    ft__split(b, w, 3, cols, part);
    ft_ref pre = ft__pointwise(b, at, "sigmoid", part[0]), post = ft__pointwise(b, at, "sigmoid", part[1]);
    ft_ref comb = ft__row(b, at, "softmax", ft__view(b, part[2], tokens * n, n, false));
    if (!one_kernel(m)) /* sums of rows and of columns in turn, and divisions by them */
        ft__aside(b, at, "div", comb, tokens * n, n, 4, 2 * (2 * ROUNDS - 1));
    ft__module(b, 2);
    ft_ref both[2] = {ft__view(b, streams, tokens * n, a->hidden, false), ft__view(b, pre, tokens * n, 1, false)};
    ft_ref weighed = ft__pointwise_over(b, at, "mul", 2, both, tokens * n, a->hidden);
    ft_reduction over = {"sum", "sum_cols", tokens, a->hidden, n, tokens * a->hidden};
    ft_ref sum = ft__cast(b, at, ft__reduce_over(b, at, weighed, &over), b->stored);
    return (ft_hyper){.collapsed = sum, .post = post, .comb = comb};
}

ft_ref ft__part_hyper_expand(ft_maker *m, ft_ref streams, ft_ref y, const ft_hyper *mix)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(HYPER);
    int64_t tokens = m->batch * m->q_len, n = a->streams, rows = tokens * n;
    ft_ref both[2] = {ft__view(b, mix->post, rows, 1, false), y};
    ft_ref spread = ft__pointwise_over(b, at, "mul", 2, both, rows, a->hidden);
    ft_ref comb = ft__cast(b, at, mix->comb, b->stored);
    ft_ref kept = ft__matmul(b, at, comb, ft__view(b, streams, rows, a->hidden, false), tokens, n, a->hidden, n, "tn");
    ft_ref out = ft__add(b, at, ft__cast(b, at, spread, b->stored), ft__view(b, kept, rows, a->hidden, false));
    return ft__view(b, out, tokens, n * a->hidden, false);
}

ft_ref ft__part_hyper_head(ft_maker *m, ft_ref streams)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(HYPER);
    int64_t tokens = m->batch * m->q_len, n = a->streams;
    ft_reduction over = {"sum", "sum_cols", tokens, a->hidden, n, tokens * a->hidden};
    if (a->streams_mean) return ft__reduce_over(b, at, ft__view(b, streams, tokens * n, a->hidden, false), &over);
    ft_ref weight = ft__cast(b, at, ft__parameter(b, "hyper.fn", n, n * a->hidden), FT_FP32);
    ft_ref flat = ft__part_norm_bare(m, at, ft__cast(b, at, streams, FT_FP32));
    ft_ref w = ft__linear_with(b, at, flat, weight, n, FT_NONE, FT_WHOLE);
    w = ft__mul(b, at, w, ft__parameter(b, "hyper.scale", 1, 1));
    w = ft__pointwise(b, at, "sigmoid", ft__add(b, at, w, ft__parameter(b, "hyper.base", 1, n)));
    ft_ref both[2] = {ft__view(b, streams, tokens * n, a->hidden, false), ft__view(b, w, tokens * n, 1, false)};
    ft_ref weighed = ft__pointwise_over(b, at, "mul", 2, both, tokens * n, a->hidden);
    return ft__cast(b, at, ft__reduce_over(b, at, weighed, &over), b->stored);
}
