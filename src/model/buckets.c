/* buckets.c: Reformer (Kitaev et al. 2020, arXiv 2001.04451). Attention goes over chunks of the sequence, each of which
 * sees itself and its neighbours: of tokens as they stand, or sorted by a hash of what is query and key at once, so
 * that those that look alike stand together. Layers have two streams and can be undone: attention reads the second and
 * adds to the first, the network the other way, and going back a layer's inputs are its results less what it added.
 *
 * All is written out as transformers does it. Its cache holds what enters attention, not keys and values: a step makes
 * those of the chunks that it looks at anew. */
#include "base/multiple.h"
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/relative.h"

/* Chunks that a query sees beside its own, with it. */
static int64_t width_of(const ft_chunking *c) { return 1 + c->before + c->after; }

static bool has(const ft_arch *a, ft_mixer mixer)
{
    bool any = a->kind_count < 1 && a->mixer == mixer;
    for (int32_t i = 0; i < a->kind_count; i++) any = any || a->kinds[i].mixer == mixer;
    return any;
}

int64_t ft__buckets_padding(const ft_maker *m)
{
    const ft_arch *a = m->arch;
    const bool near = has(a, FT_MIX_NEAR), alike = has(a, FT_MIX_HASHED);
    const int64_t one = a->buckets.near.length, two = a->buckets.alike.length;
    if (m->work->task == FT_DECODE || (!near && !alike)) return 0;
    const int64_t least = !alike || (near && one < two) ? one : two,
                  all = near && alike ? ft__common_multiple(one, two) : least;
    return m->q_len <= least || m->q_len % all == 0 ? 0 : all - m->q_len % all;
}

/* Buckets of a pass over so many tokens, by the library's rule where the config has none: twice as many as chunks, a
 * power of two, in two factors where they are many. Gives the columns of a round's random rotation: half of each. */
static int64_t rotation(const ft_arch *a, int64_t tokens)
{
    const int64_t chunk = a->buckets.alike.length, *said = a->buckets.count;
    if (said[0] > 0) return (said[0] + said[1]) / 2;
    int64_t power = 0, root = 1, of = a->max_position / chunk;
    while ((int64_t)1 << (power + 1) <= 2 * (tokens / chunk)) power++;
    while ((root + 1) * (root + 1) <= of) root++;
    if ((int64_t)1 << power <= 2 * (root > chunk ? root : chunk)) return ((int64_t)1 << power) / 2;
    return (((int64_t)1 << power / 2) + ((int64_t)1 << (power - power / 2))) / 2;
}

/* -- chunks ---------------------------------------------------------------------------------------- */

/* x of `rows` rows, chunk by chunk: each with its neighbours, which are brought beside it by turning all, then
 * joined. */
static ft_ref adjacent(ft_maker *m, ft_ref x, const ft_chunking *c, int64_t rows, int64_t cols)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_WINDOWS);
    const int64_t wide = width_of(c);
    enum { MOST = 8 };
    if (wide < 2) return x;
    ft_ref part[MOST] = {x};
    for (int64_t i = 1; i < wide && i < MOST; i++) part[i] = ft__copy(b, at, x, rows, cols);
    return ft__cat(b, at, wide < MOST ? (int)wide : MOST, part, rows * wide, cols);
}

/* Probabilities of scores [rows, keys]: the logarithm of their sum is taken off first. *sums: that logarithm. */
static ft_ref likelihoods(ft_maker *m, ft_ref scores, double dropout, ft_ref *sums)
{
    ft_build *b = &m->b;
    ft_tensor t = *ft__tensor_of(b, scores);
    ft_reduction along = {"logsumexp", "sum_rows", t.rows, 1, t.rows, t.cols};
    *sums = ft__reduce_over(b, FT_AT(ATTN_SOFTMAX), scores, &along);
    ft_ref p = ft__pointwise2(b, FT_AT(ATTN_SOFTMAX), "sub", scores, *sums);
    p = ft__pointwise(b, FT_AT(ATTN_SOFTMAX), "exp", p);
    return ft__dropout(b, FT_AT(ATTN_DROPOUT), p, dropout);
}

typedef struct look {
    ft_ref q, k, v;
    int64_t groups, queries, keys; /* products of `queries` rows with `keys` */
    int masks;                     /* comparisons of places that hide scores */
} look;

static ft_ref seen(ft_maker *m, const look *l, double dropout, ft_ref *sums)
{
    ft_build *b = &m->b;
    const int64_t dim = m->arch->head_dim, rows = l->groups * l->queries;
    const int32_t first = b->g->node_count;
    ft_ref scores = ft__matmul(b, FT_AT(ATTN_SCORES), l->q, l->k, l->groups, l->queries, l->keys, dim, "nt");
    for (int i = 0; i < l->masks; i++) {
        ft_ref hidden = ft__no_grad_kernels(b, FT_AT(ATTN_MASK), "compare", FT_NONE, rows, l->keys, 1, 1);
        scores = ft__pointwise2(b, FT_AT(ATTN_MASK), "where", scores, hidden);
    }
    ft_ref p = likelihoods(m, scores, dropout, sums);
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) b->g->nodes[i].core = true;
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), p, l->v, l->groups, l->queries, dim, l->keys, "nn");
    return ft__view(b, y, rows, dim, false);
}

static ft_ref merged(ft_maker *m, ft_ref y)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    y = ft__contiguous(b, FT_AT(ATTN_MERGE), ft__view(b, y, m->batch * m->q_len, a->heads * a->head_dim, m->q_len > 1));
    return ft__linear(b, FT_AT(ATTN_O_PROJ), y, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}

/* Products that lie head by head in views are copied by the product that reads them. */
static ft_ref by_heads(ft_maker *m, ft_ref x, int64_t rows)
{
    ft_build *b = &m->b;
    return ft__contiguous(b, FT_AT(ATTN_ATTEND),
                          ft__view(b, x, rows * m->arch->heads, m->arch->head_dim, rows > m->batch));
}

/* What enters attention is kept: all of it is copied to put a token behind the others. */
static ft_ref remembered(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const int64_t rows = m->batch * m->kv_len, wide = m->arch->hidden;
    if (m->work->task != FT_PREFILL && m->work->task != FT_DECODE) return x;
    ft_ref all = ft__cache(b, rows, wide, ft_dtype_bytes(b->stored));
    return ft__copy(b, FT_AT(ATTN_CACHE), m->work->task == FT_DECODE ? all : x, rows, wide);
}

ft_ref ft__part_near(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const ft_chunking *c = &a->buckets.near;
    const int64_t wide = a->heads * a->head_dim, pairs = m->batch * a->heads;
    const bool one = m->work->task == FT_DECODE, whole = m->q_len <= c->length;
    ft_ref states = remembered(m, x), sums;
    int64_t keys = m->q_len;
    if (one) { /* the chunks before, and on average half of its own */
        keys = c->before * c->length + (c->length + 1) / 2;
        if (keys > m->kv_len) keys = m->kv_len;
        x = ft__contiguous(b, FT_AT(ATTN_CACHE), x);
    }
    ft_ref over = one ? ft__contiguous(b, FT_AT(ATTN_CACHE), ft__slice(b, states, m->batch * keys, a->hidden)) : x;
    ft__module(b, 2);
    ft_ref q = ft__linear(b, FT_AT(ATTN_Q_PROJ), x, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref k = ft__linear(b, FT_AT(ATTN_K_PROJ), over, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref v = ft__linear(b, FT_AT(ATTN_V_PROJ), over, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    k = ft__pointwise(b, FT_AT(ATTN_SCALE), "divu", k);
    ft__no_grad_kernels(b, FT_AT(ATTN_MASK), "copy", FT_NONE, pairs, m->q_len, 8, 2);
    look l = {.q = by_heads(m, q, m->batch * m->q_len), .groups = pairs, .queries = m->q_len, .keys = keys, .masks = 1};
    l.k = by_heads(m, k, m->batch * keys);
    l.v = by_heads(m, v, m->batch * keys);
    if (!one && !whole) {
        l.groups = pairs * (m->q_len / c->length);
        l.queries = c->length;
        l.keys = width_of(c) * c->length;
        l.k = adjacent(m, l.k, c, pairs * m->q_len, a->head_dim);
        l.v = adjacent(m, l.v, c, pairs * m->q_len, a->head_dim);
        ft__no_grad_kernels(b, FT_AT(ATTN_MASK), "copy", FT_NONE, pairs * m->q_len, width_of(c), 8, 2);
    }
    return merged(m, seen(m, &l, a->attention_dropout, &sums));
}

/* -- hashes ---------------------------------------------------------------------------------------- */

/* The bucket of every row in every round: the direction among random ones, and their opposites, that it is nearest to.
 * No gradient passes, and what comes of it is kept for the second run of the layer. */
static void hashed(ft_maker *m, ft_ref q, int64_t rows, int64_t length)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t rounds = a->buckets.rounds, half = rotation(a, length), all = rows * rounds;
    ft_at at = FT_AT(ATTN_HASH);
    const int32_t first = b->g->node_count;
    const bool training = b->training;
    const double element = ft_dtype_bytes(b->stored);
    b->training = false;
    ft_ref turns = ft__fill(b, at, a->heads * a->head_dim, rounds * half, b->stored, element);
    ft_ref turned = ft__matmul(b, at, ft__detach(b, q), turns, a->heads, rows / a->heads, rounds * half, a->head_dim,
                               "nn");
    ft_ref both[2] = {ft__view(b, turned, all, half, true), ft__pointwise(b, at, "neg", turned)};
    ft_ref near = ft__cat(b, at, 2, both, all, 2 * half);
    near = ft__reduce(b, at, "argmax", near);
    ft__no_grad_kernels(b, at, "addu", near, all, 1, 8, 1);
    b->training = training;
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) b->g->nodes[i].spared = true;
}

/* Sorted by bucket, and by place within it; where each was, and the way back. */
static void sorted(ft_maker *m, int64_t rows, int64_t cols)
{
    enum { PLACES = 4, BACK = 2 }; /* kernels that make one number of a bucket and a place; that write the way back */
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_HASH);
    ft_ref buckets = ft__no_grad_kernels(b, at, "addu", FT_NONE, rows, cols, 8, PLACES);
    ft__topk(b, at, buckets, rows, cols, cols, NULL);
    ft__no_grad_kernels(b, at, "copy", FT_NONE, rows, cols, 8, BACK);
}

/* Of length one, and a root of the head's width shorter still: queries stay as they are. */
static ft_ref keys_of(ft_maker *m, ft_ref q)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_QK_NORM);
    ft_ref mean = ft__reduce(b, at, "mean", ft__pointwise(b, at, "powu", q));
    mean = ft__pointwise(b, at, "rsqrt", ft__pointwise(b, at, "addu", mean));
    return ft__pointwise(b, at, "divu", ft__mul(b, at, q, mean));
}

/* Rounds are weighed by how much of the scores each saw. */
static ft_ref over_rounds(ft_maker *m, ft_ref y, ft_ref sums)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_VALUES);
    const int64_t rounds = m->arch->buckets.rounds, dim = m->arch->head_dim, rows = ft__tensor_of(b, y)->rows / rounds;
    if (rounds < 2) return y;
    ft_reduction along = {"logsumexp", "sum_cols", rows, 1, rounds, rows},
                 add = {"sum", "sum_cols", rows, dim, rounds, rows * dim};
    ft_ref all = ft__reduce_over(b, at, sums, &along);
    ft_ref share = ft__pointwise(b, at, "exp", ft__pointwise2(b, at, "sub", sums, all));
    return ft__reduce_over(b, at, ft__mul(b, at, y, share), &add);
}

/* One token: its bucket is sorted in among the others', and the states of the chunks around it become keys and values,
 * each head its own. */
static ft_ref hashed_once(ft_maker *m, ft_ref x, ft_ref states)
{
    enum { FINDING = 12 }; /* small kernels that find the chunk, turn it into indices and move those by batch */
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const ft_chunking *c = &a->buckets.alike;
    const int64_t wide = a->heads * a->head_dim, rounds = a->buckets.rounds, pairs = m->batch * a->heads;
    const bool whole = m->kv_len <= c->length;
    const int64_t keys = whole ? m->kv_len : width_of(c) * c->length, groups = whole ? pairs : pairs * rounds;
    ft_ref own[2], part[2], sums;
    for (int i = 0; i < 2; i++) own[i] = ft__weight(b, "weight", wide, a->hidden);
    ft_ref q = ft__linear_with(b, FT_AT(ATTN_Q_PROJ), x, own[0], wide, FT_NONE, FT_CUT_COLUMNS);
    q = ft__view(b, q, pairs, a->head_dim, false);
    const ft_at at[2] = {FT_AT(ATTN_K_PROJ), FT_AT(ATTN_V_PROJ)};
    if (!whole) {
        ft__cache(b, pairs * rounds, m->kv_len, 8); /* buckets of all tokens */
        hashed(m, q, pairs, m->kv_len);
        sorted(m, pairs * rounds, m->kv_len);
        ft__no_grad_kernels(b, FT_AT(ATTN_HASH), "copy", FT_NONE, groups, keys, 8, FINDING);
        ft__sync(b, FT_AT(ATTN_HASH));
        states = ft__pick(b, FT_AT(ATTN_CACHE), states, groups * keys, a->hidden, true);
    }
    for (int i = 0; i < 2; i++) {
        part[i] = whole ? ft__linear_with(b, at[i], states, own[i], wide, FT_NONE, FT_CUT_COLUMNS)
                        : ft__matmul(b, at[i], states, own[i], a->heads, groups / a->heads * keys, a->head_dim,
                                     a->hidden, "nt");
        part[i] = ft__view(b, part[i], groups * keys, a->head_dim, false);
    }
    look l = {.q = whole ? q : ft__copy(b, FT_AT(ATTN_HASH), q, groups, a->head_dim),
              .k = keys_of(m, part[0]),
              .v = part[1],
              .groups = groups,
              .queries = 1,
              .keys = keys,
              .masks = 1};
    ft_ref y = seen(m, &l, 0, &sums);
    return merged(m, whole ? y : over_rounds(m, y, sums));
}

ft_ref ft__part_hashed(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const ft_chunking *c = &a->buckets.alike;
    const int64_t wide = a->heads * a->head_dim, pairs = m->batch * a->heads, rows = pairs * m->q_len,
                  dim = a->head_dim;
    const int64_t rounds = a->buckets.rounds;
    const bool whole = m->q_len <= c->length;
    ft_ref states = remembered(m, x), sums;
    ft__module(b, 2);
    if (m->work->task == FT_DECODE) return hashed_once(m, x, states);
    ft_ref q = by_heads(m, ft__linear(b, FT_AT(ATTN_Q_PROJ), x, wide, FT_NO_BIAS, FT_CUT_COLUMNS), m->batch * m->q_len);
    ft_ref v = by_heads(m, ft__linear(b, FT_AT(ATTN_V_PROJ), x, wide, FT_NO_BIAS, FT_CUT_COLUMNS), m->batch * m->q_len);
    look l = {.groups = pairs, .queries = m->q_len, .keys = m->q_len, .masks = 2}; /* what is later, and itself */
    if (!whole) {
        if (m->work->task == FT_PREFILL) ft__cache(b, pairs * rounds, m->q_len, 8);
        hashed(m, q, rows, m->q_len);
        sorted(m, pairs, rounds * m->q_len);
        q = ft__pick(b, FT_AT(ATTN_HASH), q, rows * rounds, dim, false);
        v = ft__pick(b, FT_AT(ATTN_HASH), v, rows * rounds, dim, false);
        l.groups = pairs * rounds * (m->q_len / c->length);
        l.queries = c->length;
        l.keys = width_of(c) * c->length;
    }
    l.q = q;
    l.k = keys_of(m, q);
    l.v = v;
    if (!whole) {
        l.k = adjacent(m, l.k, c, rows * rounds, dim);
        l.v = adjacent(m, l.v, c, rows * rounds, dim);
        ft__no_grad_kernels(b, FT_AT(ATTN_MASK), "copy", FT_NONE, rows * rounds, width_of(c), 8, 2);
    }
    ft_ref y = seen(m, &l, a->buckets.alike_dropout, &sums);
    if (whole) return merged(m, y);
    y = ft__gather(b, FT_AT(ATTN_MERGE), y, rows * rounds); /* back in order; going back it is picked the other way */
    sums = rounds > 1 ? ft__gather(b, FT_AT(ATTN_MERGE), sums, rows * rounds) : sums;
    return merged(m, over_rounds(m, y, sums));
}

/* -- the model around it ----------------------------------------------------------------------------- */

ft_ref ft__part_axial(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t *shape = a->buckets.axial_shape, *wide = a->buckets.axial_width, rows = m->batch * m->q_len;
    const int64_t places = shape[0] * shape[1];
    ft_at at = FT_AT(EMBED_POSITIONS);
    const bool train = m->work->task == FT_TRAIN;
    if (shape[0] < 1) return x;
    if ((train && m->q_len != places) || m->q_len > places || m->kv_len > places) {
        ft__build_fail(
            b, FT_E_RANGE,
            "%s has positions of %lld x %lld (axial_pos_shape): sequences of %s%lld tokens, padding counted, "
            "are expected, not of %lld",
            a->model_type, (long long)shape[0], (long long)shape[1], train ? "" : "at most ", (long long)places,
            (long long)(train ? m->q_len : m->kv_len));
        return x;
    }
    ft_ref part[2];
    for (int i = 0; i < 2; i++)
        part[i] = ft__expand(b, ft__parameter(b, "position_embeddings", shape[i], wide[i]), rows, wide[i]);
    ft_ref p = ft__cat(b, at, 2, part, rows, a->hidden);
    p = train ? ft__dropout(b, at, p, a->embed_dropout) : ft__pick(b, at, p, rows, a->hidden, true);
    return ft__add(b, at, x, p);
}

/* The network by so many tokens at once, then joined: in training it is taken as one piece. */
static ft_ref fed(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t chunk = a->buckets.feed_chunk, times = chunk > 0 && m->q_len % chunk == 0 ? m->q_len / chunk : 1;
    const bool parts = times > 1 && !b->training;
    const int64_t rows = m->batch * m->q_len;
    const int32_t first = b->g->node_count;
    ft_ref h = parts ? ft__slice(b, x, rows / times, a->hidden) : x;
    h = ft__part_norm(m, FT_AT(MLP_NORM), h, a->norm, a->norm_bias);
    h = ft__part_mlp(m, h, a->ffn, a->activation, false, false, FT_BIAS);
    h = ft__dropout(b, FT_AT(MLP_DROPOUT), h, a->mlp_dropout);
    if (!parts) return h;
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) b->g->nodes[i].count = (float)times;
    return ft__copy(b, FT_AT(MLP_RESIDUAL), h, rows, a->hidden);
}

ft_ref ft__part_reversible(ft_maker *m, ft_ref both, ft_ref (*mix)(ft_maker *, ft_ref))
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t rows[2] = {m->batch * m->q_len, m->batch * m->q_len}, cols[2] = {a->hidden, a->hidden};
    ft_ref x[2];
    ft__module(b, 4);
    if (b->training && b->status == FT_OK) b->g->blocks[b->block].reversible = true;
    ft__apart(b, both, rows, cols, x);
    ft_ref y = mix(m, ft__part_norm(m, FT_AT(ATTN_NORM), x[1], a->norm, a->norm_bias));
    x[0] = ft__add(b, FT_AT(ATTN_RESIDUAL), x[0], ft__dropout(b, FT_AT(ATTN_DROPOUT), y, a->residual_dropout));
    x[1] = ft__add(b, FT_AT(MLP_RESIDUAL), x[1], fed(m, x[0]));
    return ft__both(b, x[0], x[1]);
}
