/* gated_streams.c: several residual streams whose norms are gated by channel (Qwen4-Exp): a product through a narrow
 * width says how much of every stream's channel a half of a layer reads, another how much of its result each stream
 * gets. */
#include "graph/emit.h"
#include "model/mixers.h"

/* Each stream over its own root mean square; one weight for all channels of all of them. */
ft_ref ft__streams_normed(ft_maker *m, ft_at at, ft_ref streams)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, wide = a->streams * a->hidden;
    ft_ref x = ft__part_norm_bare(m, at, ft__view(b, streams, tokens * a->streams, a->hidden, false));
    return ft__mul(b, at, ft__view(b, x, tokens, wide, false), ft__parameter(b, "hyper.norm", 1, wide));
}

ft_hyper ft__part_gated_collapse(ft_maker *m, ft_ref streams, bool injects)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(HYPER);
    int64_t tokens = m->batch * m->q_len, n = a->streams, rank = b->lora_rank;
    b->lora_rank = 0;
    ft_ref normed = ft__streams_normed(m, at, streams), post = FT_NONE;
    ft_ref gate = ft__linear(b, at, normed, a->streams_rank, FT_NO_BIAS, FT_WHOLE);
    gate = ft__pointwise(b, at, "silu", ft__pointwise(b, at, "divu", gate));
    gate = ft__pointwise(b, at, "sigmoid", ft__linear(b, at, gate, n * a->hidden, FT_NO_BIAS, FT_WHOLE));
    if (injects) {
        post = ft__linear(b, at, normed, n, FT_NO_BIAS, FT_WHOLE);
        post = ft__pointwise(b, at, "sigmoid", ft__pointwise(b, at, "divu", post));
        post = ft__pointwise(b, at, "mulu", post);
    }
    b->lora_rank = rank;
    ft__module(b, 4);
    ft_reduction over = {"mean", "sum_cols", tokens, a->hidden, n, tokens * a->hidden};
    ft_ref read = ft__reduce_over(b, at, ft__view(b, ft__mul(b, at, gate, normed), tokens * n, a->hidden, false),
                                  &over);
    return (ft_hyper){.collapsed = read, .post = post, .comb = FT_NONE};
}

ft_ref ft__part_gated_expand(ft_maker *m, ft_ref streams, ft_ref y, const ft_hyper *mix)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(HYPER);
    int64_t rows = m->batch * m->q_len * a->streams;
    ft_ref both[2] = {ft__view(b, mix->post, rows, 1, false), y};
    ft_ref spread = ft__pointwise_over(b, at, "mul", 2, both, rows, a->hidden);
    spread = ft__view(b, spread, m->batch * m->q_len, a->streams * a->hidden, false);
    return ft__add(b, at, streams, spread);
}
