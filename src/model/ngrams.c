/* ngrams.c: embeddings of n-grams (Qwen4-Exp's per-layer embedding): the last two, three, ... tokens are hashed into
 * tables of some tens of millions of rows, several hashes each; what they hold is gated by every residual stream,
 * passes a short convolution by channel and is added to the streams. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

/* Tokens of each shift, times odd numbers, joined bit by bit, and what is left of a division by each table's size. */
static void hashed(ft_maker *m, int64_t heads)
{
    enum { A_SHIFT = 12, A_GRAM = 5 };
    ft_build *b = &m->b;
    int shifts = (int)m->arch->ngram_size;
    ft__no_grad_kernels(b, FT_AT(PER_LAYER), "copy", FT_NONE, m->batch, m->q_len, 8, A_SHIFT * shifts);
    ft__no_grad_kernels(b, FT_AT(PER_LAYER), "copy", FT_NONE, m->batch * m->q_len, heads, 8, A_GRAM * shifts);
}

/* A filter over the last few n-grams, by channel. */
static ft_ref convolved(ft_maker *m, ft_ref x, int64_t wide)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t border = (a->ngram_kernel - 1) * a->ngram_size, rows = m->batch * wide;
    ft_ref line = ft__copy(b, FT_AT(PER_LAYER), ft__view(b, x, rows, m->q_len, true), rows, m->q_len + border);
    ft_conv_shape shape = {.n = m->batch,
                           .c = wide,
                           .h = 1,
                           .w = m->q_len + a->ngram_kernel - 1,
                           .k = wide,
                           .r = 1,
                           .s = a->ngram_kernel,
                           .stride = 1,
                           .groups = wide};
    ft_ref y = ft__slice(b, ft__conv(b, FT_AT(PER_LAYER), line, &shape, FT_NO_BIAS), rows, m->q_len);
    return ft__pointwise(b, FT_AT(PER_LAYER), "silu", ft__view(b, y, m->batch * m->q_len, wide, true));
}

ft_ref ft__part_ngrams(ft_maker *m, ft_ref streams)
{
    enum { ROOTS = 5 }; /* the gate's root with its sign, over one number for each stream */
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(PER_LAYER);
    int64_t tokens = m->batch * m->q_len, n = a->streams, wide = n * a->hidden;
    int64_t heads = (a->ngram_size - 1) * a->ngram_heads, width = a->ngram_width > 0 ? a->ngram_width : a->hidden;
    ft_ref table = FT_NONE;
    hashed(m, heads);
    ft_ref rows = ft__embedding(b, at, ft__input(b, tokens, heads, 8), heads * a->ngram_vocab, width / heads, &table);
    rows = ft__view(b, rows, tokens, width, false);
    ft_ref key = ft__streams_normed(m, at, ft__linear(b, at, rows, wide, FT_NO_BIAS, FT_WHOLE));
    ft_ref value = ft__linear(b, at, rows, a->hidden, FT_NO_BIAS, FT_WHOLE);
    ft_ref gate = ft__mul(b, at, key, ft__streams_normed(m, at, streams));
    gate = ft__reduce(b, at, "sum", ft__view(b, gate, tokens * n, a->hidden, false));
    for (int i = 0; i < ROOTS; i++) gate = ft__pointwise(b, at, "mulu", gate);
    ft_ref both[2] = {ft__pointwise(b, at, "sigmoid", gate), value};
    ft_ref gated = ft__view(b, ft__pointwise_over(b, at, "mul", 2, both, tokens * n, a->hidden), tokens, wide, false);
    ft__module(b, 3);
    return ft__add(b, at, gated, convolved(m, ft__streams_normed(m, at, gated), wide));
}
