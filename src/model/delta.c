/* delta.c: linear attention by the gated delta rule (Yang et al., arXiv 2412.06464): projections, short convolutions, a
 * state of key by value for each head that decays and is corrected, a gated norm, a product out. Qwen3-Next and Qwen
 * 3.5 decay a head at a time, Kimi Linear each channel.
 *
 * The recurrence in the two ways in which it is run: the kernels of flash-linear-attention, which engines have too, in
 * chunks of 64 tokens; and transformers' own, the same chunks written out in fp32 (torch_chunk_gated_delta_rule). */
#include "model/delta.h"
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"
#include "model/state_space.h"
#include "model/triangular_constants.h"

static ft_delta sizes(const ft_maker *m)
{
    const ft_arch *a = m->arch;
    ft_delta d = {.tokens = m->batch * m->q_len,
                  .batch = m->batch,
                  .length = m->q_len,
                  .heads = a->delta_value_heads,
                  .key_heads = a->delta_key_heads,
                  .key_dim = a->delta_key_dim,
                  .value_dim = a->delta_value_dim,
                  .chunks = (m->q_len + FT_DELTA_CHUNK - 1) / FT_DELTA_CHUNK};
    d.keys = d.key_heads * d.key_dim;
    d.values = d.heads * d.value_dim;
    d.whole = d.batch * d.chunks * FT_DELTA_CHUNK;
    return d;
}

/* -- kernels of flash-linear-attention -------------------------------------------------------------- */

static ft_ref chunked(ft_maker *m, const ft_delta *d, const ft_delta_given *g)
{
    ft_build *b = &m->b;
    int64_t n = d->batch * d->chunks, rows = d->tokens, side = FT_DELTA_CHUNK < d->length ? FT_DELTA_CHUNK : d->length,
            h = d->heads;
    ft_op sum = ft__bytes_kernel("chunk_cumsum", b->stored, 0, (double)rows * (double)h * 4);
    ft_op unit = ft__row_kernel("rmsnorm", FT_PASS_FWD, rows * d->key_heads, d->key_dim, b->stored);
    ft_op pairs = ft__gemm_kernel(b->math, n * h, side, side, d->key_dim, "nt", false);
    ft_op solve = ft__gemm_kernel(b->math, n * h, side, side, side, "nn", false);
    ft_op fresh = ft__gemm_kernel(b->math, n * h, side, d->key_dim + d->value_dim, side, "nn", false);
    /* Chunk after chunk: what the state predicts is taken off, the rest added to it. */
    ft_op walk = ft__gemm_kernel(b->math, n * h, side, 2 * d->value_dim, d->key_dim, "nn", false);
    ft_op seen = ft__gemm_kernel(b->math, n * h, side, d->value_dim, d->key_dim + side, "nn", false);
    ft_ref q = ft__scan_step(m, FT_AT(MIXER_DELTA_NORM), unit, rows, d->keys, b->stored, (ft_ref[]){g->q}, 1);
    ft_ref k = ft__scan_step(m, FT_AT(MIXER_DELTA_NORM), unit, rows, d->keys, b->stored, (ft_ref[]){g->k}, 1);
    ft_ref decay = ft__scan_step(m, FT_AT(MIXER_DELTA_DECAY), sum, rows, ft__tensor_of(b, g->decay)->cols, FT_FP32,
                                 (ft_ref[]){g->decay}, 1);
    ft_ref a = ft__scan_step(m, FT_AT(MIXER_DELTA_PAIRS), pairs, rows * h, side, FT_FP32, (ft_ref[]){k, g->rate, decay},
                             3);
    a = ft__scan_step(m, FT_AT(MIXER_DELTA_SOLVE), solve, rows * h, side, b->stored, (ft_ref[]){a}, 1);
    ft_ref wu = ft__scan_step(m, FT_AT(MIXER_DELTA_SOLVE), fresh, rows * h, d->key_dim + d->value_dim, b->stored,
                              (ft_ref[]){k, g->v, a, g->rate}, 4);
    ft_ref state = ft__scan_step(m, FT_AT(MIXER_DELTA_STATE), walk, n * h * d->key_dim, d->value_dim, b->stored,
                                 (ft_ref[]){wu, k, decay}, 3);
    if (m->work->task == FT_PREFILL) ft__cache(b, d->batch * h * d->key_dim, d->value_dim, 4);
    return ft__scan_step(m, FT_AT(MIXER_DELTA_OUTPUT), seen, rows, d->values, b->stored, (ft_ref[]){q, k, wu, state},
                         4);
}

/* One token: the state is read, decayed, corrected and written back by one kernel. */
static ft_ref updated(ft_maker *m, const ft_delta *d, const ft_delta_given *g)
{
    ft_build *b = &m->b;
    ft_ref state = ft__cache(b, d->batch * d->heads * d->key_dim, d->value_dim, 4);
    ft_node n = ft__node_of(FT_DO_SCAN, FT_AT(MIXER_DELTA_UPDATE));
    ft_ref in[] = {state, g->q, g->k, g->v, g->decay, g->rate};
    for (int i = 0; i < 6; i++) ft__node_in(&n, in[i]);
    ft_ref y = ft__node_out(b, &n, d->batch, d->values, b->stored, ft_dtype_bytes(b->stored));
    if (y == FT_NONE) return y;
    n.op = ft__pointwise_kernel(b->g, "state_update", n.in, 1, ft__tensor_of(b, state));
    n.op.u.elementwise.ops_per_element = 8;
    n.op.u.elementwise.bytes = 2 * 4 * (double)d->batch * (double)d->values * (double)d->key_dim;
    ft__emit(b, &n);
    return y;
}

/* -- written out ------------------------------------------------------------------------------------- */

/* x over the root of its squares' sum. */
ft_ref ft__delta_unit(ft_build *b, ft_ref x)
{
    ft_at at = FT_AT(MIXER_DELTA_NORM);
    ft_ref sum = ft__reduce(b, at, "sum", ft__mul(b, at, x, x));
    sum = ft__pointwise(b, at, "rsqrt", ft__pointwise(b, at, "addu", sum));
    return ft__mul(b, at, x, sum);
}

/* Raised to fp32 and stood head by head; padded to whole chunks, which copies either way. */
ft_ref ft__delta_raised(ft_build *b, ft_ref x, int64_t rows, int64_t cols)
{
    ft_at at = FT_AT(MIXER_DELTA_DECAY);
    x = ft__view(b, x, rows, cols, true);
    ft_dtype is = ft__tensor_of(b, x)->dtype;
    return is == FT_FP32 ? ft__contiguous(b, at, x) : ft__cast(b, at, x, FT_FP32);
}

/* The same of what a convolution left: first stood head by head in its own format, by a copy across the order of memory
 * where nothing brought it into another order since. */
static ft_ref stood(ft_build *b, ft_ref x, int64_t rows, int64_t cols, bool across)
{
    ft_at at = FT_AT(MIXER_DELTA_DECAY);
    x = ft__view(b, x, rows, cols, true);
    x = across ? ft__across(b, at, x) : ft__copy(b, at, x, rows, cols);
    return ft__cast(b, at, x, FT_FP32);
}

/* Which pairs of a chunk's tokens are hidden: a square of booleans, all that autograd keeps of filling them. */
ft_ref ft__delta_triangle(ft_build *b, int64_t cols)
{
    return ft__input(b, FT_DELTA_CHUNK * FT_DELTA_CHUNK / cols, cols, 1);
}

/* A node of the walk over the chunks; without gradients a step's result is gone when the next one's is made. */
ft_ref ft__delta_step(ft_build *b, ft_ref x, int64_t times)
{
    x = ft__looped(b, x, times);
    if (x != FT_NONE && b->status == FT_OK && !b->training) b->g->tensors[b->g->tensors[x].storage].turns = times;
    return x;
}

/* A triangular system takes longer than the product of its sizes: row after row. */
static ft_ref solved(ft_build *b, ft_ref x)
{
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].effort = (float)FT_K_TRIANGULAR_EFFORT;
    return x;
}

/* What the walk over the chunks reads: every chunk's part that no other chunk has a say in. */
typedef struct chunk_parts {
    ft_ref q, k, v;              /* padded; q and k of length one */
    ft_ref rate, v_rate, k_rate; /* learning rates, and what they make of values and keys */
    ft_ref sums, fade;           /* decay since the start of the chunk, and its exponential */
    ft_ref between, inside;      /* decay between two tokens of a chunk; what each takes of each */
    ft_ref fresh, reads;         /* solved for the values, and for what the state adds to them */
} chunk_parts;

/* Queries, keys and values head by head, in whole chunks. */
static void lay_chunks(ft_build *b, const ft_delta *d, const ft_delta_given *g, chunk_parts *c)
{
    const ft_at at = FT_AT(MIXER_DELTA_DECAY);
    const int64_t h = d->heads, rows = d->whole * h, lanes = d->batch * h * d->chunks;
    const bool alone = d->heads == d->key_heads; /* queries and keys are not repeated */
    c->q = stood(b, g->q, d->tokens * h, d->key_dim, alone);
    c->k = stood(b, g->k, d->tokens * h, d->key_dim, alone);
    c->v = stood(b, g->v, d->tokens * h, d->value_dim, true);
    c->rate = ft__delta_raised(b, g->rate, d->tokens * h, 1);
    ft_ref decay = ft__delta_raised(b, g->decay, d->tokens * h, 1);
    c->q = ft__pointwise(b, at, "mulu", ft__delta_unit(b, c->q));
    c->k = ft__delta_unit(b, c->k);
    c->q = ft__copy(b, at, c->q, rows, d->key_dim);
    c->k = ft__copy(b, at, c->k, rows, d->key_dim);
    c->v = ft__copy(b, at, c->v, rows, d->value_dim);
    c->rate = ft__copy(b, at, c->rate, rows, 1);
    c->v_rate = ft__mul(b, at, c->v, c->rate);
    c->k_rate = ft__mul(b, at, c->k, c->rate);
    c->sums = ft__row(b, at, "cumsum", ft__view(b, decay, lanes, FT_DELTA_CHUNK, false));
}

/* What tokens of one chunk do to each other: two products over all pairs, and two triangular systems. */
static void pair_tokens(ft_build *b, const ft_delta *d, chunk_parts *c)
{
    const ft_at decay_at = FT_AT(MIXER_DELTA_DECAY), pairs_at = FT_AT(MIXER_DELTA_PAIRS);
    const int64_t rows = d->whole * d->heads, lanes = d->batch * d->heads * d->chunks;
    const int64_t kd = d->key_dim, vd = d->value_dim;
    c->fade = ft__pointwise(b, decay_at, "exp", ft__view(b, c->sums, rows, 1, false));
    ft_ref both[2] = {ft__view(b, c->sums, rows, 1, false), ft__view(b, c->sums, lanes, FT_DELTA_CHUNK, false)};
    c->between = ft__pointwise_over(b, decay_at, "sub", 2, both, rows, FT_DELTA_CHUNK);
    c->between = ft__pointwise2(b, decay_at, "masked_fill", c->between, ft__delta_triangle(b, FT_DELTA_CHUNK));
    c->between = ft__pointwise(b, decay_at, "exp", c->between);
    ft_ref pairs = ft__matmul(b, pairs_at, c->k_rate, c->k, lanes, FT_DELTA_CHUNK, FT_DELTA_CHUNK, kd, "nt");
    pairs = ft__mul(b, pairs_at, pairs, c->between);
    c->inside = ft__matmul(b, pairs_at, c->q, c->k, lanes, FT_DELTA_CHUNK, FT_DELTA_CHUNK, kd, "nt");
    c->inside = ft__mul(b, pairs_at, c->inside, c->between);
    ft_ref faded = ft__mul(b, decay_at, c->k_rate, c->fade);
    /* A triangle for the values and one for the keys, each on a copy. */
    c->fresh = solved(
        b, ft__matmul(b, FT_AT(MIXER_DELTA_SOLVE), pairs, c->v_rate, lanes, FT_DELTA_CHUNK, vd, FT_DELTA_CHUNK, "nn"));
    c->reads = solved(
        b, ft__matmul(b, FT_AT(MIXER_DELTA_SOLVE), pairs, faded, lanes, FT_DELTA_CHUNK, kd, FT_DELTA_CHUNK, "nn"));
}

/* Chunk after chunk: what the state says, what is new to it, and the state that is left. */
static ft_ref walk_chunks(ft_maker *m, const ft_delta *d, const chunk_parts *c)
{
    ft_build *b = &m->b;
    const ft_at decay_at = FT_AT(MIXER_DELTA_DECAY), at = FT_AT(MIXER_DELTA_STATE), out = FT_AT(MIXER_DELTA_OUTPUT);
    const int64_t rows = d->whole * d->heads, lanes = d->batch * d->heads * d->chunks, times = d->chunks;
    const int64_t kd = d->key_dim, vd = d->value_dim;
    ft_ref q = ft__mul(b, decay_at, c->q, c->fade);
    ft_ref since = ft__pointwise(b, decay_at, "exp",
                                 ft__pointwise2(b, decay_at, "sub", c->sums, ft__slice(b, c->sums, lanes, 1)));
    ft_ref k = ft__mul(b, decay_at, c->k, ft__view(b, since, rows, 1, false));
    ft_ref state = ft__activation(b, lanes * kd, vd, FT_FP32);
    ft_ref reads = ft__each_step(b, c->reads, times);
    ft_ref fresh = ft__each_step(b, c->fresh, times);
    q = ft__each_step(b, q, times);
    k = ft__each_step(b, k, times);
    ft_ref inside = ft__each_step(b, c->inside, times);
    ft_ref known = ft__delta_step(b, ft__matmul(b, at, reads, state, lanes, FT_DELTA_CHUNK, vd, kd, "nn"), times);
    ft_ref rest = ft__delta_step(b, ft__pointwise2(b, at, "sub", fresh, known), times);
    ft_ref kept = ft__delta_step(b, ft__pointwise(b, at, "mulu", state), times);
    ft_ref added = ft__delta_step(b, ft__matmul(b, at, k, rest, lanes, kd, vd, FT_DELTA_CHUNK, "tn"), times);
    kept = ft__delta_step(b, ft__add(b, at, kept, added), times);
    /* A chunk reads the state that the one before it kept. */
    ft_ref before = ft__delta_step(b, ft__matmul(b, out, q, kept, lanes, FT_DELTA_CHUNK, vd, kd, "nn"), times);
    ft_ref y = ft__delta_step(b, ft__matmul(b, out, inside, rest, lanes, FT_DELTA_CHUNK, vd, FT_DELTA_CHUNK, "nn"),
                              times);
    y = ft__delta_step(b, ft__add(b, out, before, y), times);
    y = ft__looped(b, ft__copy(b, out, y, rows, vd), times);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].assigns = true;
    if (m->work->task == FT_PREFILL) ft__scan_keep(b, d->batch * d->heads * kd, vd, FT_FP32, kept);
    return y;
}

static ft_ref written_out(ft_maker *m, const ft_delta *d, const ft_delta_given *g)
{
    ft_build *b = &m->b;
    chunk_parts c = {0};
    lay_chunks(b, d, g, &c);
    pair_tokens(b, d, &c);
    ft_ref y = walk_chunks(m, d, &c);
    ft__part_held(m, 7, (ft_ref[]){c.k_rate, c.v_rate, c.between, g->q, g->k, g->v, c.q});
    y = ft__slice(b, y, d->tokens * d->heads, d->value_dim);
    return ft__view(b, ft__cast(b, FT_AT(MIXER_DELTA_OUTPUT), y, b->stored), d->tokens, d->values, false);
}

/* One token, as transformers' torch_recurrent_gated_delta_rule writes it: products and sums over the state in fp32. */
static ft_ref once(ft_maker *m, const ft_delta *d, const ft_delta_given *g)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(MIXER_DELTA_UPDATE);
    int64_t h = d->heads, lanes = d->batch * h, cells = lanes * d->key_dim;
    ft_ref state = ft__cache(b, cells, d->value_dim, 4);
    if (state != FT_NONE) b->g->tensors[state].dtype = FT_FP32;
    ft_ref q = ft__delta_unit(b, ft__delta_raised(b, g->q, lanes, d->key_dim)),
           k = ft__delta_unit(b, ft__delta_raised(b, g->k, lanes, d->key_dim));
    ft_ref v = ft__delta_raised(b, g->v, lanes, d->value_dim), rate = ft__delta_raised(b, g->rate, lanes, 1);
    ft_ref fade = ft__pointwise(
        b, at, "exp", ft__delta_raised(b, g->decay, lanes, m->arch->delta == FT_DELTA_CHANNEL ? d->key_dim : 1));
    ft_ref now = ft__mul(b, at, state, ft__view(b, fade, lanes, 1, false));
    ft_ref column = ft__view(b, k, cells, 1, false);
    ft_reduction over = {"sum", "sum_cols", lanes, d->value_dim, d->key_dim, lanes * d->value_dim};
    ft_ref known = ft__reduce_over(b, at, ft__mul(b, at, now, column), &over);
    ft_ref rest = ft__mul(b, at, ft__pointwise2(b, at, "sub", v, known), rate);
    ft_ref both[2] = {column, ft__view(b, rest, lanes, d->value_dim, false)};
    now = ft__add(b, at, now, ft__pointwise_over(b, at, "mul", 2, both, cells, d->value_dim));
    ft_ref y = ft__reduce_over(b, at, ft__mul(b, at, now, ft__view(b, q, cells, 1, false)), &over);
    ft__copy(b, FT_AT(MIXER_CACHE), now, cells, d->value_dim);
    return ft__view(b, ft__cast(b, at, y, b->stored), d->batch, d->values, false);
}

/* -- around the rule ----------------------------------------------------------------------------------- */

/* Each head's result over its root mean square, times the gate's activation. */
static ft_ref gated_norm(ft_maker *m, const ft_delta *d, ft_ref y, ft_ref gate)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(MIXER_NORM);
    int64_t rows = d->tokens * d->heads;
    y = ft__view(b, y, rows, d->value_dim, false);
    gate = ft__view(b, gate, rows, d->value_dim, false);
    ft_ref weight = ft__parameter(b, "norm.weight", 1, d->value_dim);
    if (ft__scan_has_kernels(m)) {
        ft_op one = ft__row_kernel("rmsnorm", FT_PASS_FWD, rows, d->value_dim, b->stored);
        y = ft__scan_step(m, at, one, rows, d->value_dim, b->stored, (ft_ref[]){y, gate, weight}, 3);
        if (b->status == FT_OK)
            b->g->nodes[b->g->node_count - 1].traffic = (float)3 / 2; /* three pass, not two: the gate */
        return ft__view(b, y, d->tokens, d->values, false);
    }
    ft_ref h = ft__cast(b, at, y, FT_FP32);
    ft_ref mean = ft__reduce(b, at, "mean", ft__pointwise(b, at, "powu", h));
    mean = ft__pointwise(b, at, "rsqrt", ft__pointwise(b, at, "addu", mean));
    h = ft__mul(b, at, weight, ft__cast(b, at, ft__mul(b, at, h, mean), b->stored));
    bool soft = m->arch->delta == FT_DELTA_CHANNEL;
    h = ft__mul(b, at, h, ft__pointwise(b, at, soft ? "sigmoid" : "silu", ft__cast(b, at, gate, FT_FP32)));
    ft__module(b, 1);
    return ft__view(b, ft__cast(b, at, h, b->stored), d->tokens, d->values, false);
}

static ft_ref convolved(ft_maker *m, const ft_delta *d, ft_ref x, int64_t width)
{
    ft_scan s = {.batch = d->batch, .length = d->length, .kernel = m->arch->conv_kernel, .conv_width = width};
    return ft__scan_conv(m, &s, x);
}

/* Keys and queries repeated for the heads of values that share them. */
static ft_ref repeated(ft_maker *m, const ft_delta *d, ft_ref x)
{
    ft_build *b = &m->b;
    if (d->heads == d->key_heads || ft__scan_has_kernels(m)) return x;
    x = ft__copy(b, FT_AT(MIXER_GATES), ft__view(b, x, d->tokens, d->keys, true), d->tokens, d->heads * d->key_dim);
    if (!ft__scan_has_kernels(m) && m->q_len > 1) /* of what the convolution left across */
        ft__walks_across(b, (double)d->tokens * (double)d->heads * (double)d->key_dim);
    return x;
}

/* -exp(A) softplus(a + dt), in fp32; and the sigmoid of the learning rate. */
static ft_ref decays(ft_maker *m, ft_ref x, int64_t heads, int64_t width)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(MIXER_GATES);
    ft_ref a_log = ft__parameter(b, "A_log", 1, heads), bias = ft__parameter(b, "dt_bias", 1, width);
    if (ft__scan_has_kernels(m)) return ft__pointwise2(b, at, "mul", ft__pointwise2(b, at, "add", x, bias), a_log);
    x = ft__add(b, at, ft__cast(b, at, x, FT_FP32), bias);
    a_log = ft__pointwise(b, at, "neg", ft__pointwise(b, at, "exp", ft__cast(b, at, a_log, FT_FP32)));
    return ft__mul(b, at, ft__pointwise(b, at, "softplus", x), a_log);
}

static ft_ref low_rank(ft_maker *m, ft_ref x, int64_t rank, int64_t out)
{
    ft_ref h = ft__linear(&m->b, FT_AT(MIXER_GATES), x, rank, FT_NO_BIAS, FT_WHOLE);
    return ft__linear(&m->b, FT_AT(MIXER_GATES), h, out, FT_NO_BIAS, FT_CUT_COLUMNS);
}

/* Kimi's: queries, keys and values by products and convolutions of their own; decays through a low rank. */
static ft_ref by_channel(ft_maker *m, const ft_delta *d, ft_ref x, ft_delta_given *g)
{
    ft_build *b = &m->b;
    g->q = convolved(m, d, ft__linear(b, FT_AT(MIXER_Q_PROJ), x, d->keys, FT_NO_BIAS, FT_CUT_COLUMNS), d->keys);
    g->k = convolved(m, d, ft__linear(b, FT_AT(MIXER_K_PROJ), x, d->keys, FT_NO_BIAS, FT_CUT_COLUMNS), d->keys);
    g->v = convolved(m, d, ft__linear(b, FT_AT(MIXER_V_PROJ), x, d->values, FT_NO_BIAS, FT_CUT_COLUMNS), d->values);
    ft_ref fade = m->arch->delta_decay_full ? ft__linear(b, FT_AT(MIXER_GATES), x, d->keys, FT_NO_BIAS, FT_CUT_COLUMNS)
                                            : low_rank(m, x, d->key_dim, d->keys);
    g->decay = decays(m, fade, d->heads, d->keys);
    ft_ref rate = ft__linear(b, FT_AT(MIXER_GATES), x, d->heads, FT_NO_BIAS, FT_CUT_COLUMNS);
    g->rate = ft__pointwise(b, FT_AT(MIXER_GATES), "sigmoid", rate);
    if (m->arch->delta_gate_full) return ft__linear(b, FT_AT(MIXER_GATES), x, d->values, FT_NO_BIAS, FT_CUT_COLUMNS);
    return low_rank(m, x, d->value_dim, d->values);
}

static ft_ref by_head(ft_maker *m, const ft_delta *d, ft_ref x, ft_delta_given *g)
{
    ft_build *b = &m->b;
    int64_t mixed = 2 * d->keys + d->values, parts[2] = {mixed, d->values}, scalars[2] = {d->heads, d->heads};
    ft_ref part[2], scalar[2], qkv[3];
    if (m->arch->delta == FT_DELTA_JOINT) {
        ft__split(b, ft__linear(b, FT_AT(MIXER_IN_PROJ), x, mixed + d->values, FT_NO_BIAS, FT_CUT_COLUMNS), 2, parts,
                  part);
        ft__split(b, ft__linear(b, FT_AT(MIXER_GATES), x, 2 * d->heads, FT_NO_BIAS, FT_CUT_COLUMNS), 2, scalars,
                  scalar);
        if (!ft__scan_has_kernels(m)) { /* q, k and v are taken out of each key head's share and joined again */
            int64_t inner[3] = {d->keys, d->keys, d->values};
            ft__split(b, part[0], 3, inner, qkv);
            part[0] = ft__cat(b, FT_AT(MIXER_GATES), 3, qkv, d->tokens, mixed);
        }
    } else {
        part[0] = ft__linear(b, FT_AT(MIXER_IN_PROJ), x, mixed, FT_NO_BIAS, FT_CUT_COLUMNS);
        part[1] = ft__linear(b, FT_AT(MIXER_GATES), x, d->values, FT_NO_BIAS, FT_CUT_COLUMNS);
        for (int i = 0; i < 2; i++)
            scalar[i] = ft__linear(b, FT_AT(MIXER_GATES), x, d->heads, FT_NO_BIAS, FT_CUT_COLUMNS);
    }
    int64_t inside[3] = {d->keys, d->keys, d->values};
    ft__split(b, convolved(m, d, part[0], mixed), 3, inside, qkv);
    g->rate = ft__pointwise(b, FT_AT(MIXER_GATES), "sigmoid", scalar[0]);
    g->decay = decays(m, scalar[1], d->heads, d->heads);
    g->q = repeated(m, d, qkv[0]);
    g->k = repeated(m, d, qkv[1]);
    g->v = qkv[2];
    return part[1];
}

ft_ref ft__part_delta(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    ft_delta d = sizes(m);
    ft_delta_given g;
    bool one = m->work->task == FT_DECODE, kernels = ft__scan_has_kernels(m);
    ft__module(b, 2);
    ft_ref gate = m->arch->delta == FT_DELTA_CHANNEL ? by_channel(m, &d, x, &g) : by_head(m, &d, x, &g);
    ft_ref y = kernels                              ? (one ? updated(m, &d, &g) : chunked(m, &d, &g))
               : one                                ? once(m, &d, &g)
               : m->arch->delta == FT_DELTA_CHANNEL ? ft__delta_by_channel(m, &d, &g)
                                                    : written_out(m, &d, &g);
    y = gated_norm(m, &d, y, gate);
    return ft__linear(b, FT_AT(MIXER_OUT_PROJ), y, m->arch->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}
