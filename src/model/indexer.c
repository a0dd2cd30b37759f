/* indexer.c: sparse attention's choice (DeepSeek-V3.2, GLM 5, MiniMax M3): small queries and keys of their own score
 * every token, the best few of each query are what attention then sees.
 *
 * Plain transformers writes scores of all heads out in fp32 and masks what was not chosen, so that attention computes
 * everything; engines score in one kernel over 8-bit keys and gather. No gradient passes. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

void ft__attend_topk(const ft_maker *m, ft_scores *s, int64_t keys)
{
    const bool all = keys >= m->kv_len;
    if (all && m->q_len == 1) return;
    if (m->engine || ft__flashes(m->work->attention)) {
        if (all) return;
        if (m->q_len == 1)
            s->shape.kv_len = keys;
        else
            s->shape.window = keys; /* each query sees so many, wherever they stand */
        return;
    }
    s->shape.masked = true; /* which plain transformers makes of what was picked, be it all that there is */
}

/* One kernel of products and their sum over heads, then the best by digits. */
static void score_fused(ft_maker *m, ft_ref query, ft_ref key, int64_t keys)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, half = m->q_len > 1 ? (keys + 1) / 2 : keys;
    ft_node n = ft__node_of(FT_DO_OTHER, FT_AT(ATTN_INDEX));
    ft__node_in(&n, query);
    ft__node_in(&n, key);
    ft_ref out = ft__node_out(b, &n, tokens, keys, FT_FP32, 4);
    n.op = ft__gemm_kernel(b->math, m->batch, m->q_len * a->index_heads, half, a->index_dim, "nt", false);
    ft__emit(b, &n);
    ft__topk(b, FT_AT(ATTN_INDEX), out, tokens, keys, a->index_topk < keys ? a->index_topk : keys, NULL);
}

/* Keys that are means of several tokens: scores of all heads are summed, and the best blocks' tokens are what is seen.
 * Plain transformers does it query by query in a loop of Python, of which one kernel stands for all. */
static void score_means(ft_maker *m, ft_ref scores, int64_t keys)
{
    enum { A_QUERY = 35 }; /* launches: what it sees, the keys' mean, norm and turn, its scores, the best of them */
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ATTN_INDEX);
    int64_t tokens = m->batch * m->q_len, best = a->index_topk / a->index_mean;
    ft_reduction heads = {"sum", "sum_cols", tokens, keys, a->index_heads, tokens * keys};
    scores = ft__reduce_over(b, at, ft__pointwise(b, at, "relu", scores), &heads);
    ft__topk(b, at, scores, tokens, keys, best < keys ? best : keys, NULL);
    ft__no_grad_kernels(b, at, "copy", FT_NONE, (keys + 1) / 2, a->index_dim, 4, A_QUERY);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].count *= (float)tokens;
    ft__no_grad_kernels(b, at, "fill", FT_NONE, tokens, m->kv_len, 1, 2);
    ft__no_grad_kernels(b, at, "where", FT_NONE, tokens, m->kv_len, ft_dtype_bytes(b->stored), 2);
}

void ft__part_index_scores(ft_maker *m, ft_ref query, ft_ref key, ft_ref weights, int64_t keys)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ATTN_INDEX);
    int64_t tokens = m->batch * m->q_len, dim = a->index_dim, heads = a->index_heads, rows = tokens * heads;
    int64_t best = a->index_topk;
    if (m->engine || m->stack->fused_projections) {
        score_fused(m, query, key, keys);
        return;
    }
    ft_ref q32 = ft__cast(b, at, ft__view(b, query, rows, dim, false), FT_FP32);
    ft_ref k32 = ft__cast(b, at, ft__view(b, key, m->batch * keys, dim, false), FT_FP32);
    /* The product broadcasts keys over queries: of one sequence that is a view, of several torch.matmul copies the keys
     * for every query and multiplies token by token. */
    bool copied = weights != FT_NONE && m->batch > 1 && m->q_len > 1;
    ft_ref spread = copied ? ft__copy(b, at, k32, tokens * dim, keys) : k32;
    if (copied && b->status == FT_OK) /* read along their other axis */
        b->g->nodes[b->g->node_count - 1].op = ft__row_kernel("transpose_copy", FT_PASS_FWD, tokens * dim, keys,
                                                              FT_FP32);
    ft_ref scores = copied ? ft__matmul(b, at, q32, spread, tokens, heads, keys, dim, "nn")
                           : ft__matmul(b, at, q32, k32, m->batch, m->q_len * heads, keys, dim, "nt");
    if (a->index_mean > 0) {
        score_means(m, scores, keys);
        return;
    }
    if (weights != FT_NONE) {
        scores = ft__pointwise(b, at, "relu", ft__pointwise(b, at, "mulu", scores));
        weights = ft__pointwise(b, at, "mulu", ft__cast(b, at, weights, FT_FP32));
        scores = ft__matmul(b, at, weights, scores, tokens, 1, keys, heads, "nn");
        scores = ft__pointwise(b, at, "masked_fill", scores);
        ft__topk(b, at, scores, tokens, keys, best < keys ? best : keys, NULL);
    } else { /* the largest score of each block of keys, for each group of heads by itself */
        int64_t parts = (keys + a->index_blocks - 1) / a->index_blocks;
        scores = ft__pointwise(b, at, "masked_fill", scores);
        ft_reduction most = {"amax", "argmax", rows, parts, rows * parts, keys / parts > 0 ? keys / parts : 1};
        scores = ft__reduce_over(b, at, scores, &most);
        ft__topk(b, at, scores, rows, parts, best < parts ? best : parts, NULL);
    }
    /* A mask of true, false where chosen, joined with the causal one. */
    int64_t masks = weights == FT_NONE ? tokens * a->heads : tokens;
    ft__no_grad_kernels(b, at, "fill", FT_NONE, masks, keys, 1, 2);
    ft__no_grad_kernels(b, at, "where", FT_NONE, masks, keys, ft_dtype_bytes(b->stored), 2);
}

/* Keys of all tokens so far: a cache of its own, in 8 bits in engines. */
static ft_ref remembered(ft_maker *m, ft_ref key, int64_t dim, int64_t keys)
{
    ft_build *b = &m->b;
    if (m->work->task != FT_DECODE && m->work->task != FT_PREFILL) return key;
    ft_ref cache = ft__cache(b, m->batch * keys, dim, m->engine ? 1 : ft_dtype_bytes(b->stored));
    ft__copy(b, FT_AT(ATTN_INDEX), key, ft__tensor_of(b, key)->rows, dim);
    return m->work->task == FT_DECODE ? ft__view(b, cache, m->batch * keys, dim, false) : key;
}

/* Means of several tokens' keys, weighed by the softmax of gates of their own and of their places. */
static void pooled_keys(ft_maker *m, ft_ref x, int64_t dim)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_INDEX);
    ft_ref gate = ft__linear(b, at, x, dim, FT_NO_BIAS, FT_WHOLE);
    ft__parameter(b, "index.places", m->arch->index_pool, dim);
    ft_ref share = ft__row(b, at, "softmax", gate);
    ft__mul(b, at, gate, share);
}

int64_t ft__part_indexer(ft_maker *m, ft_ref x, ft_ref q)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ATTN_INDEX);
    int64_t tokens = m->batch * m->q_len, dim = a->index_dim, heads = a->index_heads, rows = tokens * heads;
    bool blocks = a->index_blocks > 0 || a->index_mean > 0, training = b->training;
    b->training = false;
    ft_ref query = ft__linear(b, at, q, heads * dim, FT_NO_BIAS, FT_WHOLE);
    ft_ref key = ft__linear(b, at, x, dim, FT_NO_BIAS, FT_WHOLE), weights = FT_NONE;
    if (a->index_mean > 0) {
        int64_t means = m->kv_len / a->index_mean > 0 ? m->kv_len / a->index_mean : 1;
        ft_reduction over = {"mean", "sum_cols", m->batch * means, dim, a->index_mean, m->batch * means * dim};
        if (m->q_len > 1) key = ft__reduce_over(b, at, key, &over);
    }
    if (blocks) {
        query = ft__part_norm(m, at, ft__view(b, query, rows, dim, false), a->norm, false);
        key = ft__part_norm(m, at, key, a->norm, false);
    } else {
        key = ft__layernorm(b, at, key, FT_BIAS);
        weights = ft__linear(b, at, x, heads, FT_NO_BIAS, FT_WHOLE);
    }
    int64_t turned = a->rope_dim > 0 ? a->rope_dim : a->rotary_dim, keys = m->kv_len;
    if (turned > dim) turned = dim;
    if (turned > 0) {
        query = ft__part_rotate(m, at, query, heads, dim, turned);
        key = ft__part_rotate(m, at, key, 1, dim, turned);
    }
    if (a->index_mean > 0) keys = keys / a->index_mean > 0 ? keys / a->index_mean : 1;
    if (a->index_pool > 1) {
        pooled_keys(m, x, dim);
        keys = (keys + a->index_pool - 1) / a->index_pool;
        key = ft__slice(b, key, m->batch * keys, dim);
    }
    ft__part_index_scores(m, query, remembered(m, key, dim, keys), weights, keys);
    b->training = training;
    return a->index_blocks > 0 ? a->index_topk * a->index_blocks : a->index_topk;
}
