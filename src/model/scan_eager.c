/* scan_eager.c: the chunked recurrence of Mamba-2 as transformers' torch_forward writes it out, kernel by kernel.
 *
 * Everything is fp32. Sums over products are broadcast products followed by sums: a chunk's C B' is a tensor of
 * [tokens, chunk, heads, state] elements that is written and read once. Names after the implementation's own. */
#include "graph/emit.h"
#include "model/state_space.h"

/* -- words ----------------------------------------------------------------------------------------- */

/* x and y, each repeated along axes it lacks, multiplied into [rows, cols]. */
static ft_ref broadcast(ft_build *b, ft_at at, ft_ref x, ft_ref y, int64_t rows, int64_t cols)
{
    const ft_ref in[2] = {x, y};
    return ft__pointwise_over(b, at, "mul", 2, in, rows, cols);
}

/* The same where a sum follows: a matrix product that is written out. */
static ft_ref terms(ft_build *b, ft_at at, ft_ref x, ft_ref y, int64_t rows, int64_t cols)
{
    ft_ref product = broadcast(b, at, x, y, rows, cols);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].contracts = true;
    return product;
}

/* Such terms where y still lies as the convolution wrote it, channel by channel: across the order of the result. */
static ft_ref across(ft_build *b, ft_at at, ft_ref x, ft_ref y, int64_t rows, int64_t cols)
{
    const ft_tensor *t = ft__tensor_of(b, y);
    y = ft__view_as(b, y, t->rows, t->cols, FT_PERMUTED);
    ft_ref product = terms(b, at, x, y, rows, cols);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].manner |= FT_MANNER_ACROSS;
    return product;
}

/* Sums `count` elements that lie apart into each of [rows, cols]. */
static ft_ref sum_over(ft_build *b, ft_at at, ft_ref x, int64_t count, int64_t rows, int64_t cols)
{
    ft_reduction how = {"sum", "sum_cols", rows, cols, count, rows * cols};
    return ft__reduce_over(b, at, x, &how);
}

/* Padding to whole chunks copies, even when nothing is missing. */
static ft_ref padded(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols)
{
    const ft_tensor *t = ft__tensor_of(b, x);
    return t->rows == rows && t->cols == cols ? ft__pointwise(b, at, "copy", x) : ft__copy(b, at, x, rows, cols);
}

/* A square of booleans: ones, their lower triangle, the opposite. */
static ft_ref triangle(ft_build *b, int64_t side)
{
    ft_ref x = ft__activation(b, side, side, b->stored);
    if (x != FT_NONE) b->g->tensors[x].element_bytes = 1;
    for (int i = 0; i < 3; i++) x = ft__pointwise_in_place(b, FT_AT(SCAN_MASK), "fill", x, FT_NONE);
    return x;
}

/* segment_sum: sums over every stretch of a row, minus infinity above the diagonal: [rows * side, side]. */
static ft_ref segment_sum(ft_build *b, ft_ref x, int64_t rows, int64_t side)
{
    ft_ref y = ft__copy(b, FT_AT(SCAN_SEGMENTS), x, rows * side, side);
    y = ft__pointwise_in_place(b, FT_AT(SCAN_SEGMENTS), "masked_fill", y, triangle(b, side));
    y = ft__row(b, FT_AT(SCAN_SEGMENTS), "cumsum", y);
    y = ft__copy(b, FT_AT(SCAN_SEGMENTS), y, rows * side, side);
    return ft__pointwise_in_place(b, FT_AT(SCAN_SEGMENTS), "masked_fill", y, triangle(b, side));
}

/* -A: the logarithm's parameter raised and exponentiated each time. */
static ft_ref decay_rate(ft_build *b, const ft_scan *s)
{
    ft_ref a = ft__cast(b, FT_AT(SCAN_A), ft__parameter(b, "A_log", 1, s->heads), FT_FP32);
    return ft__pointwise(b, FT_AT(SCAN_A), "neg", ft__pointwise(b, FT_AT(SCAN_A), "exp", a));
}

/* -- the algorithm ----------------------------------------------------------------------------------- */

/* B or C: raised to fp32 and repeated for every head of its group. */
static ft_ref per_head(ft_build *b, const ft_scan *s, ft_at at, ft_ref x)
{
    x = ft__cast(b, at, x, FT_FP32);
    return ft__copy(b, at, x, s->batch * s->length * s->heads, s->state);
}

/* From each chunk to the next: the states of all chunks weighted by what is left of them. */
static ft_ref across_chunks(ft_build *b, const ft_scan *s, ft_ref states, ft_ref decay)
{
    int64_t ends = s->chunks + 1, cells = s->inner;
    ft_ref zero = ft__pointwise_in_place(b, FT_AT(SCAN_FIRST), "fill",
                                         ft__activation(b, s->batch * cells, s->state, FT_FP32), FT_NONE);
    ft_ref both[2] = {zero, states};
    states = ft__cat(b, FT_AT(SCAN_STATES), 2, both, s->batch * ends * cells, s->state);
    decay = padded(b, FT_AT(SCAN_ENDS), ft__slice(b, decay, s->batch * s->heads, s->chunks), s->batch * s->heads, ends);
    decay = ft__pointwise(b, FT_AT(SCAN_ENDS), "exp", segment_sum(b, decay, s->batch * s->heads, ends));
    decay = ft__view(b, decay, s->batch * s->heads * ends * ends, 1, true);
    ft_ref all = terms(b, FT_AT(SCAN_PASS), decay, states, s->batch * ends * ends * cells, s->state);
    all = sum_over(b, FT_AT(SCAN_PASS), all, ends, s->batch * ends * cells, s->state);
    return ft__slice(b, all, s->batch * s->chunks * cells, s->state);
}

ft_ref ft__scan_eager(ft_maker *m, const ft_scan *s, ft_ref x, ft_ref key, ft_ref query, ft_ref dt)
{
    ft_build *b = &m->b;
    int64_t tokens = s->batch * s->length, heads = s->heads, dim = s->head_dim, n = s->state, side = s->chunk;
    int64_t whole = s->batch * s->chunks * side; /* tokens with the padding */
    int64_t rows = whole * heads, pairs = whole * side * heads;
    int64_t lanes = s->batch * heads * s->chunks; /* rows of A: one per head and chunk */

    ft_ref a = decay_rate(b, s);
    dt = ft__add(b, FT_AT(SCAN_DT), dt, ft__parameter(b, "dt_bias", 1, heads));
    dt = ft__pointwise(b, FT_AT(SCAN_DT), "clamp", ft__pointwise(b, FT_AT(SCAN_DT), "softplus", dt));
    x = ft__cast(b, FT_AT(SCAN_X), x, FT_FP32);
    key = per_head(b, s, FT_AT(SCAN_B), key);
    query = per_head(b, s, FT_AT(SCAN_C), query);

    /* D x, x dt, A dt */
    ft_ref skip = padded(b, FT_AT(SCAN_PAD), x, whole, s->inner);
    skip = ft__mul(b, FT_AT(SCAN_D), ft__view(b, skip, rows, dim, false), ft__parameter(b, "D", heads, 1));
    x = ft__mul(b, FT_AT(SCAN_X_DT), ft__view(b, x, tokens * heads, dim, true),
                ft__view(b, ft__cast(b, FT_AT(SCAN_DT), dt, FT_FP32), tokens * heads, 1, false));
    a = ft__mul(b, FT_AT(SCAN_A_DT), ft__cast(b, FT_AT(SCAN_DT), dt, FT_FP32), a);
    x = padded(b, FT_AT(SCAN_PAD), x, rows, dim);
    a = padded(b, FT_AT(SCAN_PAD), a, whole, heads);
    key = padded(b, FT_AT(SCAN_PAD), key, rows, n);
    query = padded(b, FT_AT(SCAN_PAD), query, rows, n);
    a = ft__view(b, a, lanes, side, true);
    ft_ref sums = ft__row(b, FT_AT(SCAN_CUMSUM), "cumsum", ft__contiguous(b, FT_AT(SCAN_CUMSUM), a));

    /* inside a chunk: Y_diag = ((C B') * L) x */
    ft_ref left = ft__pointwise(b, FT_AT(SCAN_L), "exp", segment_sum(b, a, lanes, side));
    ft_ref g = terms(b, FT_AT(SCAN_CB), query, key, pairs, n);
    g = ft__reduce(b, FT_AT(SCAN_CB), "sum", g);
    g = ft__mul(b, FT_AT(SCAN_M), g, ft__view(b, left, pairs, 1, true));
    g = ft__view(b, ft__reduce(b, FT_AT(SCAN_M), "sum", g), pairs, 1, false);
    ft_ref y = across(b, FT_AT(SCAN_MX), g, x, pairs, dim);
    y = sum_over(b, FT_AT(SCAN_MX), y, side, rows, dim);

    /* each chunk's state, and the states before each chunk */
    ft_ref decay = ft__pointwise2(b, FT_AT(SCAN_DECAY), "sub", sums, ft__slice(b, sums, lanes, 1));
    decay = ft__view(b, ft__pointwise(b, FT_AT(SCAN_DECAY), "exp", decay), rows, 1, true);
    ft_ref faded = ft__mul(b, FT_AT(SCAN_B_DECAY), key, decay);
    ft_ref states = terms(b, FT_AT(SCAN_BX), faded, x, rows * dim, n);
    states = sum_over(b, FT_AT(SCAN_BX), states, side, s->batch * s->chunks * s->inner, n);
    states = across_chunks(b, s, states, sums);

    /* what the tokens see of them: Y_off = C state, decayed */
    ft_ref since = ft__view(b, ft__pointwise(b, FT_AT(SCAN_SINCE), "exp", sums), rows, 1, true);
    ft_ref seen = terms(b, FT_AT(SCAN_C_STATE), query, states, rows * dim, n);
    seen = ft__view(b, ft__reduce(b, FT_AT(SCAN_C_STATE), "sum", seen), rows, dim, false);
    seen = ft__mul(b, FT_AT(SCAN_SINCE), seen, since);
    y = ft__add(b, FT_AT(SCAN_Y), y, seen);
    y = ft__add(b, FT_AT(SCAN_Y), y, skip);
    if (m->work->task == FT_PREFILL) ft__scan_keep(b, s->batch * s->inner, n, FT_FP32, states);
    return ft__view(b, y, tokens, s->inner, false);
}

void ft__scan_keep(ft_build *b, int64_t rows, int64_t cols, ft_dtype dtype, ft_ref from)
{
    ft_ref cache = ft__cache(b, rows, cols, ft_dtype_bytes(dtype));
    ft__pointwise_in_place(b, FT_AT(MIXER_CACHE), "fill", cache, FT_NONE);
    ft__copy(b, FT_AT(MIXER_CACHE), ft__slice(b, from, rows, cols), rows, cols);
}

/* -- one token ----------------------------------------------------------------------------------------- */

ft_ref ft__scan_once(ft_maker *m, const ft_scan *s, ft_ref x, ft_ref key, ft_ref query, ft_ref dt)
{
    ft_build *b = &m->b;
    int64_t lanes = s->batch * s->heads, rows = s->batch * s->inner, n = s->state;
    ft_ref state = ft__cache(b, rows, n, 4), a = decay_rate(b, s);
    if (state != FT_NONE) b->g->tensors[state].dtype = FT_FP32;
    dt = ft__add(b, FT_AT(SCAN_DT), ft__expand(b, dt, lanes, s->head_dim),
                 ft__expand(b, ft__parameter(b, "dt_bias", 1, s->heads), lanes, s->head_dim));
    dt = ft__pointwise(b, FT_AT(SCAN_DT), "softplus", dt);
    ft_ref column = ft__view(b, dt, rows, 1, false);
    ft_ref fade = broadcast(b, FT_AT(SCAN_DA), ft__cast(b, FT_AT(SCAN_DT), column, FT_FP32), a, rows, n);
    fade = ft__pointwise(b, FT_AT(SCAN_DA), "exp", fade);
    key = ft__copy(b, FT_AT(SCAN_B), key, lanes, n);
    ft_ref fresh = broadcast(b, FT_AT(SCAN_DB), column, key, rows, n);
    fresh = ft__mul(b, FT_AT(SCAN_DBX), fresh, ft__view(b, x, rows, 1, true));
    ft_ref next = ft__add(b, FT_AT(SCAN_STATE), ft__mul(b, FT_AT(SCAN_STATE), state, fade), fresh);
    ft__copy(b, FT_AT(MIXER_CACHE), next, rows, n);
    query = ft__copy(b, FT_AT(SCAN_C), query, lanes, n);
    ft_ref y = ft__matmul(b, FT_AT(SCAN_Y), ft__cast(b, FT_AT(SCAN_Y), next, b->stored), query, lanes, s->head_dim, 1,
                          n, "nn");
    ft_ref skip = ft__mul(b, FT_AT(SCAN_D), ft__view(b, x, lanes, s->head_dim, true),
                          ft__parameter(b, "D", s->heads, 1));
    y = ft__add(b, FT_AT(SCAN_Y), ft__view(b, y, lanes, s->head_dim, false), skip);
    return ft__view(b, y, s->batch, s->inner, false);
}
