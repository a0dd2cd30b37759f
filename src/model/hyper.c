/* hyper.c: hyper-connections (arXiv 2409.19606, in DeepSeek-V4's form): several residual streams, of which each half of
 * a layer reads a weighted sum and into which it writes; the weights come of a small product over all streams, made
 * doubly stochastic by twenty rounds of division. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

enum { ROUNDS = 20 };

/* Rows and columns in turn over their sums, by which the matrices become doubly stochastic: each a sum, an addition of
 * what keeps it from zero and a division, for each token by itself. One of each kind stands for all rounds. */
static ft_ref stochastic(ft_build *b, ft_ref comb, int64_t tokens, int64_t n)
{
    ft_at at = FT_AT(HYPER);
    ft_reduction down = {"sum", "sum_cols", tokens, n, n, tokens * n};
    comb = ft__pointwise(b, at, "addu", comb);
    for (int side = 0; side < 2; side++) {
        int32_t first = b->status == FT_OK ? b->g->node_count : 0;
        ft_ref sum = side ? ft__reduce_over(b, at, comb, &down) : ft__reduce(b, at, "sum", comb);
        comb = ft__pointwise2(b, at, "div", comb, ft__pointwise(b, at, "addu", sum));
        for (int32_t i = first; b->status == FT_OK && i < b->g->node_count; i++)
            b->g->nodes[i].count = (float)(side ? ROUNDS : ROUNDS - 1);
    }
    return comb;
}

static bool one_kernel(const ft_maker *m) { return m->engine || m->stack->fused_norms; }

/* What the streams' weights are made of: a product over all of them, which are normed before it, or by whose scale it
 * is multiplied behind it. */
static ft_ref weights_of(ft_maker *m, ft_ref streams, int64_t out)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(HYPER);
    int64_t rank = b->lora_rank;
    bool apart = m->arch->streams_apart && !one_kernel(m);
    ft_ref weight = ft__parameter(b, "hyper.fn", out, m->arch->streams * m->arch->hidden);
    ft_ref flat = ft__cast(b, at, streams, FT_FP32);
    if (!apart && !one_kernel(m)) flat = ft__part_norm_bare(m, at, flat);
    b->lora_rank = 0;
    ft_ref w = ft__linear_with(b, at, flat, ft__cast(b, at, weight, FT_FP32), out, FT_NONE, FT_WHOLE);
    b->lora_rank = rank;
    if (!apart) return w;
    ft_ref mean = ft__reduce(b, at, "mean", ft__pointwise(b, at, "square", flat));
    return ft__mul(b, at, w, ft__pointwise(b, at, "rsqrt", ft__pointwise(b, at, "addu", mean)));
}

ft_hyper ft__part_hyper_collapse(ft_maker *m, ft_ref streams)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(HYPER);
    if (a->streams_rank > 0) return ft__part_gated_collapse(m, streams, true);
    int parts = a->streams_apart ? 2 : 3;
    int64_t tokens = m->batch * m->q_len, n = a->streams, out = parts == 2 ? 2 * n : (2 + n) * n,
            cols[3] = {n, n, n * n};
    ft_ref base = ft__parameter(b, "hyper.base", 1, out), scale = ft__parameter(b, "hyper.scale", 1, parts), part[3];
    ft__split(b, weights_of(m, streams, out), parts, cols, part);
    for (int i = 0; i < parts; i++)
        part[i] = ft__add(b, at, ft__mul(b, at, part[i], ft__slice(b, scale, 1, 1)), ft__slice(b, base, 1, cols[i]));
    ft_ref pre = ft__pointwise(b, at, "addu", ft__pointwise(b, at, "sigmoid", part[0])),
           post = ft__pointwise(b, at, "mulu", ft__pointwise(b, at, "sigmoid", part[1]));
    ft_ref comb = FT_NONE;
    if (!a->streams_apart) comb = ft__row(b, at, "softmax", ft__view(b, part[2], tokens * n, n, false));
    if (!a->streams_apart && !one_kernel(m)) comb = stochastic(b, comb, tokens, n);
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
    bool apart = a->streams_apart;
    if (a->streams_rank > 0) return ft__part_gated_expand(m, streams, y, mix);
    ft_ref both[2] = {ft__view(b, mix->post, rows, 1, false), apart ? ft__cast(b, at, y, FT_FP32) : y};
    ft_ref spread = ft__pointwise_over(b, at, "mul", 2, both, rows, a->hidden);
    if (apart) { /* added to the streams as they are, in fp32 */
        ft_ref sum = ft__add(b, at, spread, ft__cast(b, at, ft__view(b, streams, rows, a->hidden, false), FT_FP32));
        return ft__view(b, ft__cast(b, at, sum, b->stored), tokens, n * a->hidden, false);
    }
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
    if (a->streams_rank > 0) return ft__part_gated_collapse(m, streams, false).collapsed;
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
