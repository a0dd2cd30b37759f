/* ahead.c: ProphetNet's decoder, which predicts several tokens at once. Beside the words' own stream there is one for
 * every token ahead, as long as that: each looks at the words so far and at itself. Scores have biases by distance,
 * which every layer makes of its own input. All of it is written out. The library sends the words and the rest through
 * the last product by themselves; here it is one of all rows. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/relative.h"

/* x [batch * streams * q_len, width]: the words' rows, and those of all streams ahead. */
static void apart(ft_maker *m, ft_ref x, int64_t sequences, int64_t width, ft_ref part[2])
{
    ft_build *b = &m->b;
    int64_t one = m->q_len * width, cols[2] = {one, m->arch->ahead * one};
    ft__split(b, ft__view(b, x, sequences, cols[0] + cols[1], false), 2, cols, part);
    for (int i = 0; i < 2; i++) part[i] = ft__view(b, part[i], sequences * (cols[i] / width), width, true);
}

ft_ref ft__part_ahead_open(ft_maker *m, ft_ref words, ft_ref *positions)
{
    enum { BUCKETS = 30, HIDDEN = 8 }; /* small kernels for biases and masks, over the whole table of positions */
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(EMBED_POSITIONS);
    int64_t tokens = m->batch * m->q_len, reach = a->max_position;
    ft_ref next = ft__no_grad_kernels(b, at, "addu", FT_NONE, m->batch, m->q_len, 8, 1);
    ft_ref place = ft__embedding(b, at, next, reach, a->hidden, positions);
    ft_ref each[2] = {ft__parameter(b, "ngram_embeddings.weight", a->ahead, a->hidden), place};
    ft_ref rest = ft__pointwise_over(b, at, "add", 2, each, a->ahead * tokens, a->hidden);
    ft_ref all[2] = {words, rest};
    if (m->work->task == FT_TRAIN || m->work->task == FT_FORWARD_PASS) {
        ft__no_grad_kernels(b, FT_AT(ATTN_BIAS), "copy", FT_NONE, reach, 3 * reach, 8, BUCKETS);
        ft__no_grad_kernels(b, FT_AT(MASK), "copy", FT_NONE, a->ahead * reach, 2 * reach, ft_dtype_bytes(b->stored),
                            HIDDEN);
    }
    return ft__cat(b, at, 2, all, (1 + a->ahead) * tokens, a->hidden);
}

ft_ref ft__part_ahead_close(ft_maker *m, ft_ref x)
{
    ft_ref part[2];
    apart(m, x, m->batch, m->arch->hidden, part);
    return ft__contiguous(&m->b, FT_AT(HEAD), part[1]);
}

/* One stream of keys, or all that look ahead at theirs and the words'. */
typedef struct look {
    ft_ref q, k, v, bias; /* bias: a number for each query, head and bucket */
    int64_t pairs, keys;  /* sequences times heads; keys of each query */
} look;

static ft_ref seen(ft_maker *m, const look *l)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = l->pairs * m->q_len, dim = a->head_dim, first = b->g->node_count;
    ft_ref scores = ft__matmul(b, FT_AT(ATTN_SCORES), l->q, l->k, l->pairs, m->q_len, l->keys, dim, "nt");
    /* Buckets are repeated for every head, then raised to 64 bits. */
    ft__no_grad_kernels(b, FT_AT(ATTN_BIAS), "copy", FT_NONE, rows, l->keys, 8, 2);
    ft_ref table = ft__contiguous(b, FT_AT(ATTN_BIAS), ft__view(b, l->bias, rows, a->relative_buckets, true));
    scores = ft__add(b, FT_AT(ATTN_BIAS), scores, ft__take_along(b, FT_AT(ATTN_BIAS), table, rows, l->keys));
    if (m->q_len > 1)
        scores = ft__add(b, FT_AT(ATTN_MASK), scores,
                         ft__buffer(b, l->pairs / a->heads * m->q_len, l->keys, ft_dtype_bytes(b->stored)));
    scores = ft__softmax(b, FT_AT(ATTN_SOFTMAX), scores, true);
    scores = ft__dropout(b, FT_AT(ATTN_DROPOUT), scores, a->attention_dropout);
    for (int64_t i = first; i < b->g->node_count && b->status == FT_OK; i++) b->g->nodes[i].core = true;
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), scores, l->v, l->pairs, m->q_len, dim, l->keys, "nn");
    y = ft__view(b, y, rows / a->heads, a->heads * dim, m->q_len > 1);
    return ft__contiguous(b, FT_AT(ATTN_MERGE), y);
}

/* Keys or values of the words so far before each stream's own: joined stream by stream, then all of them. */
static ft_ref with_words(ft_maker *m, ft_ref words, ft_ref own, int64_t pairs)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t dim = a->head_dim, rows = pairs * (m->kv_len + m->q_len);
    ft_ref both[2] = {ft__expand(b, words, pairs * m->kv_len, dim), own};
    return ft__copy(b, FT_AT(ATTN_CACHE), ft__cat(b, FT_AT(ATTN_CACHE), 2, both, rows, dim), rows, dim);
}

ft_ref ft__part_ahead_attention(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_bias bias = a->qkv_bias ? FT_BIAS : FT_NO_BIAS;
    int64_t all = m->batch * m->q_len * (1 + a->ahead), pairs = m->batch * a->heads, dim = a->head_dim;
    const ft_at at[3] = {FT_AT(ATTN_Q_PROJ), FT_AT(ATTN_K_PROJ), FT_AT(ATTN_V_PROJ)};
    ft_ref part[3][2], by_distance[2];
    ft__module(b, 1);
    for (int i = 0; i < 3; i++) {
        ft_ref y = ft__linear(b, at[i], x, a->heads * dim, bias, FT_CUT_COLUMNS);
        if (i == 0) y = ft__pointwise(b, FT_AT(ATTN_SCALE), "divu", y);
        y = ft__contiguous(b, FT_AT(ATTN_ATTEND), ft__view(b, y, all * a->heads, dim, true));
        apart(m, y, pairs, dim, part[i]);
    }
    ft_ref distances = ft__linear(b, FT_AT(ATTN_BIAS), x, a->relative_buckets * a->heads, FT_BIAS, FT_CUT_COLUMNS);
    apart(m, distances, m->batch, a->relative_buckets * a->heads, by_distance);
    look words = {part[0][0],
                  ft__part_remember(m, part[1][0], a->heads, dim),
                  ft__part_remember(m, part[2][0], a->heads, dim),
                  by_distance[0],
                  pairs,
                  m->kv_len};
    ft_ref result[2] = {seen(m, &words), FT_NONE};
    look ahead = {ft__contiguous(b, FT_AT(ATTN_ATTEND), part[0][1]),
                  with_words(m, words.k, part[1][1], a->ahead * pairs),
                  with_words(m, words.v, part[2][1], a->ahead * pairs),
                  by_distance[1],
                  a->ahead * pairs,
                  m->kv_len + m->q_len};
    result[1] = seen(m, &ahead);
    ft_ref y = ft__cat(b, FT_AT(ATTN_MERGE), 2, result, all, a->heads * dim);
    return ft__linear(b, FT_AT(ATTN_O_PROJ), y, a->hidden, a->out_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
}
