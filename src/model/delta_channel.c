/* delta_channel.c: the gated delta rule with a decay for each channel (Kimi Linear, arXiv 2510.26692), as transformers
 * writes it out where flash-linear-attention's kernels are not there. */
#include "graph/emit.h"
#include "model/delta.h"
#include "model/relative.h"
#include "model/state_space.h"

/* A triangle inverted row after row in Python: each of a chunk's rows is made of the rows above it, which are copied,
 * multiplied and summed, a third of the square on the average. */
static ft_ref inverted(ft_build *b, ft_ref pairs, int64_t rows, int64_t lanes)
{
    enum { PART = 3, SMALL = 3 };
    ft_at at = FT_AT(MIXER_DELTA_SOLVE);
    ft_reduction over = {"sum", "sum_cols", lanes, FT_DELTA_CHUNK, FT_DELTA_CHUNK, lanes * FT_DELTA_CHUNK};
    for (int step = 0; step < PART; step++) {
        ft_ref part = step == 0   ? ft__copy(b, at, pairs, rows, FT_DELTA_CHUNK)
                      : step == 1 ? ft__mul(b, at, pairs, ft__view(b, pairs, rows, FT_DELTA_CHUNK, true))
                                  : ft__reduce_over(b, at, pairs, &over);
        if (b->status == FT_OK && part != FT_NONE) {
            ft_node *n = &b->g->nodes[b->g->node_count - 1];
            n->count = FT_DELTA_CHUNK - 1;
            ft__op_share(&n->op, PART);
        }
    }
    ft__no_grad_kernels(b, at, "copy", FT_NONE, lanes, FT_DELTA_CHUNK / 2, 4, SMALL * (FT_DELTA_CHUNK - 1));
    return ft__pointwise(b, at, "addu", pairs);
}

/* x of every token by y of every token of its chunk, by the decay between them, channel by channel, summed. */
static ft_ref by_pairs(ft_build *b, ft_ref x, ft_ref y, ft_ref between, int64_t rows, int64_t width, int64_t times)
{
    ft_at at = FT_AT(MIXER_DELTA_PAIRS);
    ft_ref both[2] = {x, y};
    ft_ref all = ft__delta_step(b, ft__pointwise_over(b, at, "mul", 2, both, rows * FT_DELTA_CHUNK, width), times);
    all = ft__delta_step(b, ft__mul(b, at, all, between), times);
    ft_ref sum = ft__delta_step(b, ft__reduce(b, at, "sum", all), times);
    sum = ft__view(b, sum, rows, FT_DELTA_CHUNK, false);
    return ft__delta_step(b, ft__pointwise2(b, at, "masked_fill", sum, ft__delta_triangle(b, FT_DELTA_CHUNK)), times);
}

/* transformers' chunk_kimi_delta_attention (5.17 to 5.22): the decay between two tokens of a chunk is a number for each
 * channel, so that nothing before the triangle is a product of matrices: tensors of chunk by chunk by channel. */
ft_ref ft__delta_by_channel(ft_maker *m, const ft_delta *d, const ft_delta_given *g)
{
    ft_build *b = &m->b;
    ft_at decay_at = FT_AT(MIXER_DELTA_DECAY), at = FT_AT(MIXER_DELTA_STATE), out_at = FT_AT(MIXER_DELTA_OUTPUT);
    int64_t h = d->heads, rows = d->whole * h, lanes = d->batch * h * d->chunks, kd = d->key_dim, vd = d->value_dim;
    int64_t times = d->chunks;
    ft_ref q = ft__delta_raised(b, g->q, d->tokens * h, kd),
           k = ft__delta_unit(b, ft__delta_raised(b, g->k, d->tokens * h, kd));
    ft_ref v = ft__delta_raised(b, g->v, d->tokens * h, vd), rate = ft__delta_raised(b, g->rate, d->tokens * h, 1);
    ft_ref decay = ft__delta_raised(b, g->decay, d->tokens * h, kd);
    q = ft__pointwise(b, decay_at, "mulu", ft__copy(b, decay_at, ft__delta_unit(b, q), rows, kd));
    k = ft__copy(b, decay_at, k, rows, kd);
    v = ft__copy(b, decay_at, v, rows, vd);
    decay = ft__copy(b, decay_at, decay, rows, kd);
    ft_ref v_rate = ft__mul(b, decay_at, v, rate), k_rate = ft__mul(b, decay_at, k, rate);
    ft_ref sums = ft__view(b, ft__row(b, decay_at, "cumsum", ft__view(b, decay, lanes * kd, FT_DELTA_CHUNK, true)),
                           rows, kd, false);
    ft_ref both[2] = {sums, ft__view(b, sums, rows, kd, true)};
    ft_ref between = ft__pointwise_over(b, decay_at, "sub", 2, both, rows * FT_DELTA_CHUNK, kd);
    between = ft__pointwise2(b, decay_at, "masked_fill", between, ft__delta_triangle(b, 1));
    between = ft__pointwise(b, decay_at, "exp", between);
    ft_ref pairs = by_pairs(b, k_rate, k, between, rows, kd, 1);
    pairs = inverted(b, ft__pointwise(b, FT_AT(MIXER_DELTA_PAIRS), "neg", pairs), rows, lanes);
    ft_ref fade = ft__pointwise(b, decay_at, "exp", sums);
    ft_ref fresh = ft__matmul(b, FT_AT(MIXER_DELTA_SOLVE), pairs, v_rate, lanes, FT_DELTA_CHUNK, vd, FT_DELTA_CHUNK,
                              "nn");
    ft_ref reads = ft__matmul(b, FT_AT(MIXER_DELTA_SOLVE), pairs, ft__mul(b, decay_at, k_rate, fade), lanes,
                              FT_DELTA_CHUNK, kd, FT_DELTA_CHUNK, "nn");
    /* The walk over the chunks. */
    ft_ref state = ft__activation(b, lanes * kd, vd, FT_FP32);
    q = ft__each_step(b, q, times);
    k = ft__each_step(b, k, times);
    fresh = ft__each_step(b, fresh, times);
    sums = ft__each_step(b, sums, times);
    reads = ft__each_step(b, reads, times);
    between = ft__each_step(b, between, times);
    ft_ref seen = ft__delta_step(b, ft__mul(b, at, q, ft__delta_step(b, ft__pointwise(b, at, "exp", sums), times)),
                                 times);
    ft_ref before = ft__delta_step(b, ft__matmul(b, out_at, seen, state, lanes, FT_DELTA_CHUNK, vd, kd, "nn"), times);
    ft_ref inside = by_pairs(b, q, k, between, rows, kd, times);
    ft_ref known = ft__delta_step(b, ft__matmul(b, at, reads, state, lanes, FT_DELTA_CHUNK, vd, kd, "nn"), times);
    ft_ref rest = ft__delta_step(b, ft__pointwise2(b, at, "sub", fresh, known), times);
    ft_ref y = ft__delta_step(b, ft__matmul(b, out_at, inside, rest, lanes, FT_DELTA_CHUNK, vd, FT_DELTA_CHUNK, "nn"),
                              times);
    y = ft__delta_step(b, ft__add(b, out_at, before, y), times);
    y = ft__looped(b, ft__copy(b, out_at, y, rows, vd), times);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].assigns = true;
    ft_ref since = ft__delta_step(b, ft__pointwise2(b, at, "sub", ft__slice(b, sums, lanes, kd), sums), times);
    since = ft__delta_step(b, ft__pointwise(b, at, "exp", since), times);
    ft_ref left = ft__delta_step(b, ft__mul(b, at, k, since), times);
    ft_ref kept = ft__delta_step(b, ft__mul(b, at, state, ft__slice(b, sums, lanes, kd)), times);
    ft_ref added = ft__delta_step(b, ft__matmul(b, at, left, rest, lanes, kd, vd, FT_DELTA_CHUNK, "tn"), times);
    kept = ft__delta_step(b, ft__add(b, at, kept, added), times);
    if (m->work->task == FT_PREFILL) ft__scan_keep(b, d->batch * h * kd, vd, FT_FP32, kept);
    ft__part_held(m, 5, (ft_ref[]){k_rate, v_rate, g->q, g->k, g->v});
    y = ft__slice(b, y, d->tokens * h, vd);
    return ft__view(b, ft__cast(b, out_at, y, b->stored), d->tokens, d->values, false);
}
