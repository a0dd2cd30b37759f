/* mlstm.c: xLSTM's matrix memory (arXiv 2405.04517): queries, keys and values of several heads, an input and a forget
 * gate for each, both exponential and kept in range by the largest so far; chunks that attend inside and pass a matrix
 * on. A norm of each head, a gate, a product out.
 *
 * Plain transformers writes it out in fp32: states chunk by chunk in a loop, all else over all chunks at once. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/state_space.h"

typedef struct sizes {
    int64_t lanes, all, side, chunks, keys, values, tokens;
} sizes;

/* Each chunk's state: gates of its tokens, keys by them, a product, and the sum with what was left of the last. */
static ft_ref states(ft_maker *m, ft_ref k, ft_ref v, ft_ref gate, sizes s)
{
    enum { GATES = 8 };
    ft_build *b = &m->b;
    ft_at at = FT_AT(MIXER_SCAN_STATE);
    for (int i = 0; i < GATES; i++) gate = ft__looped(b, ft__pointwise(b, at, "exp", gate), s.chunks);
    ft_ref faded = ft__looped(b, ft__mul(b, at, k, gate), s.chunks);
    ft_ref next = ft__looped(b, ft__matmul(b, at, faded, v, s.all, s.keys, s.values, s.side, "tn"), s.chunks);
    ft_ref kept = ft__looped(b, ft__pointwise(b, at, "mulu", next), s.chunks);
    return ft__looped(b, ft__add(b, at, kept, next), s.chunks);
}

/* Pairs inside chunks, weighed by the gates between them, and what the state says to each query. */
static ft_ref chunked(ft_maker *m, ft_ref q, ft_ref k, ft_ref v, ft_ref gate, sizes s)
{
    enum { WEIGHTS = 5 };
    ft_build *b = &m->b;
    ft_at at = FT_AT(MIXER_SCAN_PAIRS), out = FT_AT(MIXER_SCAN_OUTPUT);
    q = ft__cast(b, at, q, FT_FP32);
    k = ft__cast(b, at, k, FT_FP32);
    v = ft__cast(b, at, v, FT_FP32);
    ft_ref state = states(m, k, v, ft__cast(b, at, gate, FT_FP32), s);
    ft_ref weight = ft__activation(b, s.all * s.side, s.side, FT_FP32);
    for (int i = 0; i < WEIGHTS; i++) weight = ft__pointwise(b, at, "exp", weight);
    ft_ref pairs = ft__matmul(b, at, q, k, s.all, s.side, s.side, s.keys, "nt");
    pairs = ft__mul(b, at, ft__pointwise(b, at, "mulu", pairs), weight);
    ft_ref gated = ft__pointwise(b, out, "mulu", ft__pointwise(b, out, "mulu", q));
    ft_ref far = ft__matmul(b, out, gated, state, s.all, s.side, s.values, s.keys, "nn");
    ft_ref sum = ft__add(b, out, far, ft__matmul(b, out, pairs, v, s.all, s.side, s.values, s.side, "nn"));
    ft_ref below = ft__pointwise(b, out, "addu", ft__reduce(b, out, "sum", pairs));
    ft_ref y = ft__pointwise2(b, out, "div", sum, below);
    return ft__cast(b, out, y, b->stored);
}

ft_ref ft__part_mlstm(ft_maker *m, ft_ref x)
{
    enum { CAPPED = 3 }; /* tanh of a quotient, times the cap again */
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, wide = a->heads * a->v_dim, side = m->q_len < a->chunk ? m->q_len : a->chunk;
    int64_t chunks = (m->q_len + side - 1) / side, lanes = m->batch * a->heads;
    sizes s = {lanes, lanes * chunks, side, chunks, a->head_dim, a->v_dim, tokens};
    ft_ref part[3], gates[2], y;
    ft__module(b, 6);
    for (int i = 0; i < 3; i++) {
        int64_t dim = i < 2 ? a->head_dim : a->v_dim;
        part[i] = ft__linear(b, FT_AT(MIXER_IN_PROJ), x, a->heads * dim, FT_NO_BIAS, FT_CUT_COLUMNS);
        part[i] = ft__view(b, part[i], tokens * a->heads, dim, true);
    }
    ft_ref gate = ft__linear(b, FT_AT(MIXER_GATES), x, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    for (int i = 0; i < 2; i++) {
        gates[i] = ft__linear(b, FT_AT(MIXER_GATES), x, a->heads, FT_BIAS, FT_WHOLE);
        for (int j = 0; j < CAPPED; j++) gates[i] = ft__pointwise(b, FT_AT(MIXER_GATES), "mulu", gates[i]);
    }
    if (m->work->task == FT_DECODE || m->work->task == FT_PREFILL) ft__cache(b, lanes * a->head_dim, a->v_dim + 1, 4);
    if (m->work->task == FT_DECODE) {
        double state = (double)lanes * (double)a->head_dim * (double)a->v_dim;
        ft_op op = ft__bytes_kernel("state_update", b->stored, 8 * state, 0);
        y = ft__scan_step(m, FT_AT(MIXER_SCAN_UPDATE), op, tokens, wide, b->stored, part, 3);
    } else {
        ft_ref both = ft__add(b, FT_AT(MIXER_GATES), gates[0], gates[1]); /* of logarithms: a token's weight */
        y = chunked(m, part[0], part[1], part[2], ft__view(b, both, tokens * a->heads, 1, true), s);
        y = ft__contiguous(b, FT_AT(MIXER_SCAN_OUTPUT), ft__view(b, y, tokens, wide, true));
    }
    y = ft__row(b, FT_AT(MIXER_NORM), "layernorm", ft__view(b, y, tokens * a->heads, a->v_dim, false));
    y = ft__mul(b, FT_AT(MIXER_NORM), ft__view(b, y, tokens, wide, false), ft__parameter(b, "norm.weight", 1, wide));
    y = ft__mul(b, FT_AT(MIXER_GATES), y, ft__pointwise(b, FT_AT(MIXER_GATES), "sigmoid", gate));
    return ft__linear(b, FT_AT(MIXER_OUT_PROJ), y, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}
