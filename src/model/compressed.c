/* compressed.c: DeepSeek-V4's attention: queries through a low rank, one key that is the value too for all heads, seen
 * through a window; beyond it a summary of every `compress` tokens, of which an indexer picks the best where they are
 * many; sinks; the last product in groups through a low rank. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/relative.h"

/* Below this many tokens to a summary the summaries overlap, are twice as wide and are picked by an indexer. */
enum { COARSE = 64 };

/* A softmax over each window's gates weighs its projections: one row of `dim` for every `every` tokens. */
static ft_ref summaries(ft_maker *m, ft_ref x, int64_t every, int64_t dim)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ATTN_COMPRESS);
    int64_t series = every < COARSE ? 2 : 1, tokens = m->batch * m->q_len, wide = series * dim;
    int64_t made = tokens / every > 0 ? tokens / every : 1;
    ft_ref kv = ft__linear(b, at, x, wide, FT_NO_BIAS, FT_WHOLE),
           gate = ft__linear(b, at, x, wide, FT_NO_BIAS, FT_WHOLE);
    ft_ref bias = ft__parameter(b, "compress.position_bias", every, wide);
    if (m->q_len > 1 || m->engine) {
        gate = ft__add(b, at, gate, bias);
        if (!m->engine && series == 2) { /* the two series laid side by side: zeros, then four copies */
            ft__no_grad_kernels(b, at, "copy", FT_NONE, tokens, wide, ft_dtype_bytes(b->stored), 4);
        }
        gate = ft__row(b, at, "softmax", ft__view(b, gate, made * dim, every * series, true));
        ft_ref weighed = ft__mul(b, at, kv, ft__view(b, gate, tokens, wide, false));
        ft_reduction over = {"sum", "sum_cols", made, dim, every * series, made * dim};
        kv = ft__reduce_over(b, at, weighed, &over);
    } else {
        ft__no_grad_kernels(b, at, "copy", kv, m->batch, wide, ft_dtype_bytes(b->stored), 2);
        kv = ft__slice(b, kv, m->batch, dim);
    }
    return ft__part_norm(m, at, kv, a->norm, false);
}

/* Which summaries count: an indexer over summaries of its own. */
static void pick(ft_maker *m, ft_ref x, ft_ref low, int64_t every, int64_t made)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ATTN_INDEX);
    int64_t keys = made > 0 ? made : 1;
    bool training = b->training;
    b->training = false;
    ft_ref key = summaries(m, x, every, a->index_dim);
    if (m->work->task == FT_DECODE)
        key = ft__cache(b, m->batch * keys, a->index_dim, m->engine ? 1 : ft_dtype_bytes(b->stored));
    ft_ref query = ft__linear(b, at, low, a->index_heads * a->index_dim, FT_NO_BIAS, FT_WHOLE);
    query = ft__part_rotate(m, at, query, a->index_heads, a->index_dim, a->rotary_dim);
    ft_ref weights = ft__linear(b, at, x, a->index_heads, FT_NO_BIAS, FT_WHOLE);
    ft__part_index_scores(m, query, ft__view(b, key, m->batch * keys, a->index_dim, false), weights, keys);
    b->training = training;
}

static ft_ref out_product(ft_maker *m, ft_ref y)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, in = a->heads * a->head_dim / a->out_groups;
    ft_ref weight = ft__weight(b, "attn.o_a_proj", a->out_groups * a->out_lora, in);
    y = ft__view(b, y, tokens * a->out_groups, in, true);
    y = ft__matmul(b, FT_AT(ATTN_O_A_PROJ), y, weight, a->out_groups, tokens, a->out_lora, in, "nt");
    y = ft__view(b, y, tokens, a->out_groups * a->out_lora, false);
    return ft__linear(b, FT_AT(ATTN_O_PROJ), y, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}

/* Queries from a narrow vector of each token, which `low` is; they are normed and rotated head by head. */
static ft_ref queries(ft_maker *m, ft_ref x, ft_ref *low)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t tokens = m->batch * m->q_len, dim = a->head_dim;
    *low = ft__linear(b, FT_AT(ATTN_Q_A_PROJ), x, a->q_lora, FT_NO_BIAS, FT_WHOLE);
    *low = ft__part_norm(m, FT_AT(ATTN_Q_A_NORM), *low, a->norm, false);
    ft_ref q = ft__linear(b, FT_AT(ATTN_Q_B_PROJ), *low, a->heads * dim, FT_NO_BIAS, FT_CUT_COLUMNS);
    q = ft__part_norm_bare(m, FT_AT(ATTN_QK_NORM), ft__view(b, q, tokens * a->heads, dim, false));
    return ft__part_rotate(m, FT_AT(ATTN_ROTARY), q, a->heads, dim, a->rotary_dim);
}

/* What is both key and value of the last tokens, of which the cache keeps `window`. */
static ft_ref recent(ft_maker *m, ft_ref x, int64_t window)
{
    const ft_arch *a = m->arch;
    const int64_t dim = a->head_dim, seen = m->kv_len;
    ft_ref kv = ft__linear(&m->b, FT_AT(ATTN_KV_A_PROJ), x, dim, FT_NO_BIAS, FT_WHOLE);
    kv = ft__part_norm(m, FT_AT(ATTN_KV_A_NORM), kv, a->norm, false);
    kv = ft__part_rotate(m, FT_AT(ATTN_ROTARY), kv, 1, dim, a->rotary_dim);
    if (m->work->task == FT_DECODE) m->kv_len = window;
    kv = ft__part_remember(m, kv, 1, dim);
    m->kv_len = seen;
    return kv;
}

/* Summaries of `compress` tokens each, from the cache where it has them; `count`: how many a query looks at. */
static ft_ref older(ft_maker *m, ft_ref x, ft_ref low, int64_t compress, bool sparse, int64_t *count)
{
    const ft_arch *a = m->arch;
    const ft_task task = m->work->task;
    ft_ref fresh = summaries(m, x, compress, a->head_dim);
    *count = m->kv_len / compress;
    if (task == FT_DECODE || task == FT_PREFILL) {
        int64_t rows = m->batch * (*count > 0 ? *count : 1);
        ft_ref kept = ft__cache(&m->b, rows, a->head_dim, ft_dtype_bytes(m->work->kv_dtype));
        if (task == FT_DECODE) fresh = kept;
    }
    if (compress < COARSE && a->index_topk > 0) {
        pick(m, x, low, compress, *count);
        if (sparse && *count > a->index_topk) *count = a->index_topk;
    }
    return fresh;
}

ft_ref ft__part_compressed_attention(ft_maker *m, ft_ref x, int64_t compress)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t tokens = m->batch * m->q_len, dim = a->head_dim, seen = m->kv_len;
    /* Engines and flash kernels walk over the window and the summaries that count; elsewhere the rest is masked. */
    const bool sparse = m->engine || ft__flashes(m->work->attention);
    const int64_t window = a->window > 0 && a->window < seen ? a->window : seen;
    ft__module(b, 2);
    ft_ref low;
    ft_ref q = queries(m, x, &low);
    int64_t extra = 0;
    ft_ref parts[2] = {recent(m, x, window), FT_NONE};
    if (compress > 0) parts[1] = older(m, x, low, compress, sparse, &extra);
    const int64_t keys = (m->work->task == FT_DECODE ? window : seen) + extra;
    ft_ref all = parts[0];
    if (parts[1] != FT_NONE && !m->engine) all = ft__cat(b, FT_AT(ATTN_COMPRESS), 2, parts, m->batch * keys, dim);
    if (ft__flashes(m->work->attention))
        ft__parameter(b, "attn.sinks", 1, a->heads); /* eager attention makes its own */
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = a->heads,
                             .kv_heads = 1,
                             .q_len = m->q_len,
                             .kv_len = keys,
                             .head_dim = dim,
                             .window = sparse && m->q_len > 1 ? window + extra / 2 : 0,
                             .masked = !sparse,
                             .causal = m->q_len > 1},
                   .scale = true,
                   .mask = m->q_len > 1,
                   .softmax_fp32 = true,
                   .eager_only = true,
                   .sinks = true,
                   .q_dense = true,
                   .k_dense = true,
                   .v_dense = true};
    ft_ref y = ft__part_attend(m, FT_AT(ATTN_ATTEND), q, all, all, &s);
    y = ft__part_rotate(m, FT_AT(ATTN_ROTARY), y, a->heads, dim, a->rotary_dim);
    return out_product(m, ft__view(b, y, tokens, a->heads * dim, false));
}
