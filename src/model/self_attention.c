/* self_attention.c: attention of decoder-only models: projections, norms and positions of queries and keys, the
 * cache. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/packing.h"
#include "model/parts.h"
#include "model/relative.h"

/* Keys or values of all tokens so far. Plain transformers concatenates, which copies the past at every step; a static
 * cache takes the new rows in place; a paged one is written by a kernel of the engine. A layer with a window keeps no
 * more than that: the dynamic cache drops the oldest row by a slice, the static one rolls all of them. */
ft_ref ft__part_remember(ft_maker *m, ft_ref fresh, int64_t rows_per_token, int64_t dim)
{
    ft_build *b = &m->b;
    const ft_workload *w = m->work;
    if (w->task != FT_PREFILL && w->task != FT_DECODE) return fresh;
    double bytes = ft_dtype_bytes(w->kv_dtype);
    bool decode = w->task == FT_DECODE, full = decode && m->kv_len <= w->seq;
    int64_t past = decode && !full ? m->kv_len - m->q_len : m->kv_len;
    ft_ref cache = ft__cache(b, m->batch * past * rows_per_token, dim, bytes);
    int64_t rows = m->batch * m->kv_len * rows_per_token;
    if (w->cache == FT_CACHE_PAGED || (w->cache == FT_CACHE_STATIC && !full)) {
        ft__copy(b, FT_AT(ATTN_CACHE), fresh, m->batch * m->q_len * rows_per_token, dim);
        return decode ? ft__view(b, cache, rows, dim, false) : fresh;
    }
    if (w->cache == FT_CACHE_STATIC) {
        ft_ref rolled = ft__append(b, FT_AT(ATTN_CACHE), ft__slice(b, cache, rows, dim), fresh, rows, dim);
        ft__copy(b, FT_AT(ATTN_CACHE), rolled, rows, dim);
        return ft__view(b, cache, rows, dim, false);
    }
    /* One token's rows are contiguous whatever the order of axes, unless they are a slice of fused projections of
     * several sequences. */
    const ft_tensor *t = ft__tensor_of(b, fresh);
    if (m->q_len == 1 && (!t->gaps || m->batch == 1)) fresh = ft__view(b, fresh, m->batch * rows_per_token, dim, false);
    if (!decode) ft__part_first_fill(m);
    if (!decode)
        cache = ft__slice(b, fresh, 1, 1); /* nothing so far */
    else if (full)
        cache = ft__slice(b, cache, rows, dim);
    return ft__append(b, FT_AT(ATTN_CACHE), cache, fresh, rows, dim);
}

/* PyTorch gives every row a block, however narrow; Transformer Engine a warp, and several rows to a block (rmsnorm's
 * general kernels, from 128 columns on): as fast as one wide row. */
static void pack_rows(ft_build *b)
{
    const int64_t wide = 1024;
    if (b->status != FT_OK || b->g->node_count < 1) return;
    ft_op *op = &b->g->nodes[b->g->node_count - 1].op;
    if (op->kind != FT_OP_ROW || op->u.row.cols >= wide || op->u.row.rows < wide) return;
    int64_t rows = wide / op->u.row.cols;
    op->u.row.rows = (op->u.row.rows + rows - 1) / rows;
    op->u.row.cols *= rows;
}

static ft_ref qk_norm(ft_maker *m, ft_ref x, int64_t heads)
{
    const ft_arch *a = m->arch;
    if (a->qk_norm == FT_QK_NORM_BARE) {
        x = ft__part_norm_bare(m, FT_AT(ATTN_QK_NORM), x);
        if (m->stack->fused_norms) pack_rows(&m->b);
        return x;
    }
    if (a->qk_norm == FT_QK_NORM_OWN) {
        x = ft__view(&m->b, x, m->batch * m->q_len * heads, a->head_dim, false);
        return ft__part_norm_of_heads(m, FT_AT(ATTN_QK_NORM), x, heads);
    }
    if (a->qk_norm == FT_QK_NORM_HEAD) {
        x = ft__view(&m->b, x, m->batch * m->q_len * heads, a->head_dim, false);
        ft_ref y = ft__part_norm(m, FT_AT(ATTN_QK_NORM), x, a->norm, a->norm_bias);
        if (m->stack->fused_norms) pack_rows(&m->b);
        return y;
    }
    return a->qk_norm == FT_QK_NORM_FULL ? ft__part_norm(m, FT_AT(ATTN_QK_NORM), x, a->norm, a->norm_bias) : x;
}

/* Queries times 1 + s log(1 + floor(position / n)): a handful of kernels for the factors, and a product in fp32. */
static ft_ref tempered(ft_maker *m, ft_ref q)
{
    enum { LAUNCHES = 9 };
    ft_build *b = &m->b;
    ft_dtype low = ft__tensor_of(b, q)->dtype;
    ft_ref scales = ft__no_grad_kernels(b, FT_AT(ATTN_TEMPERATURE), "addu", FT_NONE, m->q_len, 1, 4, LAUNCHES);
    if (b->status == FT_OK) b->g->tensors[scales].dtype = FT_FP32;
    return ft__cast(b, FT_AT(ATTN_TEMPERATURE), ft__mul(b, FT_AT(ATTN_TEMPERATURE), q, scales), low);
}

/* Queries, keys and values within bounds, in place. */
static ft_ref clipped(ft_maker *m, ft_ref x)
{
    if (m->arch->clip_qkv <= 0) return x;
    if (m->arch->fused_qkv) return ft__pointwise(&m->b, FT_AT(ATTN_CLIP), "clamp", x); /* dbrx: of all three at once */
    return ft__pointwise_in_place(&m->b, FT_AT(ATTN_CLIP), "clamp", x, FT_NONE);
}

static ft_scores scores_of(const ft_maker *m, bool windowed)
{
    const ft_arch *a = m->arch;
    int64_t window = windowed ? a->window : 0;
    /* In chunks of w a query sees (w + 1) / 2 keys on the average, as through a window of that width. */
    if (window > 0 && a->chunked) window = m->kv_len > window ? (window + 1) / 2 : 0;
    return (ft_scores){.shape = {.packed = m->b.training ? ft__documents(m->work) : 0,
                                 .batch = m->batch,
                                 .heads = a->heads,
                                 .kv_heads = a->kv_heads,
                                 .q_len = m->q_len,
                                 .kv_len = m->kv_len,
                                 .head_dim = a->head_dim,
                                 .window = window,
                                 .causal = m->q_len > 1 && !a->bidirectional},
                       .dropout = a->attention_dropout,
                       .softcap = a->attention_softcap,
                       .scale = a->score_scale,
                       .mask = true,
                       .scores_fp32 = a->scores_fp32,
                       .softmax_fp32 = a->softmax_fp32,
                       .eager_only = a->no_sdpa || a->sinks,
                       .alibi = a->position == FT_ALIBI,
                       .baddbmm = a->baddbmm,
                       .hides = a->score_mask,
                       .floors = a->score_floor,
                       .sinks = a->sinks,
                       .sink_scales = a->sink_scales,
                       .broadcast = a->kv_heads == 1 && a->heads > 1 && a->key_broadcast};
}

/* A gate in the queries' product, which is twice as wide: the other half of each head's columns. */
static ft_ref without_gate(ft_maker *m, ft_ref q, ft_ref *gate)
{
    const ft_arch *a = m->arch;
    int64_t wide = a->heads * a->head_dim, halves[2] = {wide, wide};
    ft_ref part[2];
    if (a->attn_gate != FT_GATE_IN_QUERIES) return q;
    ft__split(&m->b, q, 2, halves, part);
    *gate = part[1];
    return part[0];
}

/* What attention gives times the sigmoid of a gate. */
static ft_ref gated(ft_maker *m, ft_ref y, ft_ref x, ft_ref gate, int64_t v_dim)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ATTN_GATE);
    if (a->attn_gate == FT_NO_ATTN_GATE) return y;
    if (a->attn_gate == FT_GATE_IN_QUERIES) gate = ft__contiguous(b, at, gate);
    if (a->attn_gate == FT_GATE_WIDE) gate = ft__linear(b, at, x, a->heads * v_dim, FT_NO_BIAS, FT_CUT_COLUMNS);
    if (a->attn_gate == FT_GATE_HEAD) gate = ft__linear(b, at, x, a->heads, FT_NO_BIAS, FT_CUT_COLUMNS);
    gate = ft__pointwise(b, at, "sigmoid", gate);
    if (a->attn_gate != FT_GATE_HEAD) return ft__mul(b, at, y, gate);
    int64_t tokens = m->batch * m->q_len;
    y = ft__mul(b, at, ft__view(b, y, tokens * a->heads, v_dim, false), ft__view(b, gate, tokens * a->heads, 1, false));
    return ft__view(b, y, tokens, a->heads * v_dim, false);
}

/* A bias of scores for each distance: a few columns of each head times a table, picked by distance for all pairs, zero
 * where it does not reach, and joined with the mask. Its gradient goes the same way back. */
static ft_ref by_distance(ft_maker *m, ft_ref x, int64_t extent)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ATTN_BIAS);
    int64_t rows = m->batch * m->q_len * a->heads, rank = a->relative_rank;
    ft_ref own = ft__linear(b, at, x, a->heads * rank, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref table = ft__parameter(b, "attn.distances", rank, extent);
    ft_ref near = ft__matmul(b, at, ft__view(b, own, rows, rank, false), table, 1, rows, extent, rank, "nn");
    ft_ref all = ft__pick(b, at, ft__view(b, near, rows, extent, true), rows, m->kv_len, false);
    all = ft__pointwise(b, at, "copy", all);
    all = ft__pointwise_in_place(b, at, "masked_fill", all, ft__input(b, m->q_len, m->kv_len, 1));
    return ft__pointwise2(b, at, "where", all, ft__input(b, m->batch * m->q_len, m->kv_len, 1));
}

typedef struct projected {
    ft_ref q, k, v, gate;
    ft_ref source_k, source_v; /* of what an encoder made, where attention reads both at once */
    bool own_keys;             /* otherwise they are an earlier layer's */
} projected;

/* Keys or values of x, and by the same weights those of what an encoder made: of an earlier step, where that is. */
static ft_ref of_both(ft_maker *m, ft_at at, ft_ref x, int64_t out, ft_bias bias, ft_ref *of_source)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->canvas > 0 && m->source_len > 0) /* the prompt's are there already */
        *of_source = ft__activation(b, m->batch * m->source_len * a->kv_heads, out / a->kv_heads, b->stored);
    if (!a->merged || m->source_len < 1) return ft__linear(b, at, x, out, bias, FT_CUT_COLUMNS);
    ft_ref weight = ft__weight(b, "weight", out, a->hidden), offset = FT_NONE;
    if (bias == FT_BIAS) offset = ft__parameter(b, "bias", 1, out);
    int64_t rows = m->batch * m->source_len * a->kv_heads, dim = out / a->kv_heads;
    bool steps = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    ft_ref cache = steps ? ft__cache(b, rows, dim, ft_dtype_bytes(m->work->kv_dtype)) : FT_NONE;
    if (m->work->task == FT_DECODE)
        *of_source = ft__view(b, cache, rows, dim, false);
    else
        *of_source = ft__view(b, ft__linear_with(b, at, m->source, weight, out, offset, FT_CUT_COLUMNS), rows, dim,
                              true);
    return ft__linear_with(b, at, x, weight, out, offset, FT_CUT_COLUMNS);
}

/* Elements of a query's row: twice as many where its gate is beside it. */
static int64_t query_width(const ft_arch *a)
{
    return a->heads * a->head_dim * (a->attn_gate == FT_GATE_IN_QUERIES ? 2 : 1);
}

static int64_t value_dim(const ft_arch *a) { return a->v_dim > 0 ? a->v_dim : a->head_dim; }

/* Queries, keys and values by one product. */
static void project_together(ft_maker *m, ft_ref x, projected *p)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t part[3] = {query_width(a), a->kv_heads * a->head_dim, a->kv_heads * value_dim(a)};
    ft_ref out[3];
    ft_ref qkv = ft__linear(b, FT_AT(ATTN_QKV_PROJ), x, part[0] + part[1] + part[2], a->qkv_bias ? FT_BIAS : FT_NO_BIAS,
                            FT_CUT_COLUMNS);
    qkv = clipped(m, qkv);
    /* Slices, whose gradients are zeroed tensors with one part filled, or a split, whose gradients are joined. */
    if (a->qkv_slices && !m->stack->fused_projections && !m->engine)
        for (int i = 0; i < 3; i++) out[i] = ft__slice(b, qkv, m->batch * m->q_len, part[i]);
    else
        ft__split(b, qkv, 3, part, out);
    out[0] = without_gate(m, out[0], &p->gate);
    p->q = a->qk_norm_late ? out[0] : qk_norm(m, out[0], a->heads);
    p->k = a->qk_norm_late ? out[1] : qk_norm(m, out[1], a->kv_heads);
    p->v = out[2];
}

static void project_apart(ft_maker *m, ft_ref x, bool own_values, projected *p)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t dim = a->head_dim, v_dim = value_dim(a), tokens = m->batch * m->q_len;
    ft_bias bias = a->qkv_bias ? FT_BIAS : FT_NO_BIAS, key = a->qkv_bias && a->key_bias ? FT_BIAS : FT_NO_BIAS;
    p->q = without_gate(m, ft__linear(b, FT_AT(ATTN_Q_PROJ), x, query_width(a), bias, FT_CUT_COLUMNS), &p->gate);
    if (!a->qk_norm_late) p->q = qk_norm(m, p->q, a->heads);
    if (a->query_scale && !m->stack->fused_softmax) p->q = ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", p->q);
    if (p->own_keys) {
        ft_ref raw = of_both(m, FT_AT(ATTN_K_PROJ), x, a->kv_heads * dim, key, &p->source_k);
        if (a->stream_convs) raw = ft__part_stream_conv(m, raw, a->kv_heads * dim);
        p->k = a->qk_norm_late ? raw : qk_norm(m, raw, a->kv_heads);
        p->v = own_values ? of_both(m, FT_AT(ATTN_V_PROJ), x, a->kv_heads * v_dim, bias, &p->source_v) : raw;
        if (a->stream_convs) p->v = ft__part_stream_conv(m, p->v, a->kv_heads * v_dim);
    } else { /* those of an earlier layer, which are there already */
        p->k = ft__activation(b, tokens, a->kv_heads * dim, b->stored);
        p->v = ft__activation(b, tokens, a->kv_heads * v_dim, b->stored);
    }
    p->q = clipped(m, p->q);
    p->k = clipped(m, p->k);
    p->v = clipped(m, p->v);
}

/* Rotated by their positions, or seen head by head; and norms that come after that. */
static void place(ft_maker *m, bool rotated, projected *p)
{
    const ft_arch *a = m->arch;
    int64_t dim = a->head_dim;
    ft__part_regroup(m, &p->q, &p->k, &p->v);
    if (rotated) {
        ft__part_rotary_rows(m);
        p->q = ft__part_rotate(m, FT_AT(ATTN_ROTARY), p->q, a->heads, dim, a->rotary_dim);
        if (p->own_keys) p->k = ft__part_rotate(m, FT_AT(ATTN_ROTARY), p->k, a->kv_heads, dim, a->rotary_dim);
    } else {
        p->q = ft__part_by_head(m, p->q, a->heads, dim);
        p->k = ft__part_by_head(m, p->k, a->kv_heads, dim);
    }
    if (a->temperature && !rotated) p->q = tempered(m, p->q);
    if (a->qk_norm_late && (rotated || a->qk_norm != FT_QK_NORM_BARE)) {
        p->q = qk_norm(m, p->q, a->heads);
        p->k = qk_norm(m, p->k, a->kv_heads);
    }
    p->v = ft__part_by_head(m, p->v, a->kv_heads, value_dim(a));
    if (a->value_norm && p->own_keys) p->v = ft__part_norm_bare(m, FT_AT(ATTN_QK_NORM), p->v);
}

/* A rotation that ends in a concatenation leaves its result dense, unless it is transposed only then. */
static void lay_out(const ft_maker *m, bool rotated, ft_scores *s)
{
    const ft_arch *a = m->arch;
    bool cached = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    bool partly = a->rotary_dim > 0 && a->rotary_dim < a->head_dim;
    bool joined = rotated && !(a->rotary_interleaved && a->scores_fp32) &&
                  ((a->sinks && !a->sink_scales) || a->rotary_joins || partly);
    s->q_dense = s->merge = joined;
    s->k_dense = cached || joined;
    s->v_dense = cached;
}

/* Masks that are made of the layer's own input. */
static void mask_by_input(ft_maker *m, ft_ref x, bool windowed, ft_scores *s)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->dynamic_mask) { /* doge: a number for each key and head, spread over all pairs, is the mask */
        ft__linear(b, FT_AT(ATTN_MASK), x, a->kv_heads, FT_NO_BIAS, FT_WHOLE);
        ft__parameter(b, "attn.A", 1, a->kv_heads);
        ft__no_grad_kernels(b, FT_AT(ATTN_MASK), "copy", FT_NONE, m->batch * a->heads * m->q_len, m->kv_len,
                            ft_dtype_bytes(b->stored), 2);
        s->broadcast = s->mask = true; /* in fp32, which no fused kernel takes beside bf16 */
    }
    if (a->relative_rank > 0) {
        s->learned_mask = by_distance(m, x, windowed ? a->window : a->relative_extent);
        s->shape.masked = s->float_mask = s->mask_learns = true;
    }
}

/* Keys and values are taken out by an index and copied for every head before anything else is done with them, queries
 * as well (falcon-40b): from here on there are as many of each. */
static void spread_keys(ft_maker *m, projected *p)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_REPEAT_KV);
    int64_t tokens = m->batch * m->q_len, wide = m->arch->heads * m->arch->head_dim;
    for (int i = 0; i < 2; i++)
        ft__no_grad_kernels(b, at, "copy", FT_NONE, tokens, m->arch->kv_heads * m->arch->head_dim, 2, 1);
    p->q = ft__copy(b, at, p->q, tokens, wide);
    p->k = ft__copy(b, at, p->k, tokens, wide);
    p->v = ft__copy(b, at, p->v, tokens, wide);
}

/* What an encoder made stands behind the sequence's own keys and values; a mask says what each query sees of both. */
static void join_source(ft_maker *m, projected *p, ft_scores *s)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = m->batch * (m->kv_len + m->source_len) * a->kv_heads;
    bool beside = m->beside_keys != FT_NONE; /* of another stack's layer */
    if ((!a->merged && a->canvas < 1 && !beside) || m->source_len < 1) return;
    if (p->source_v == FT_NONE) p->source_v = p->source_k; /* keys are values */
    if (a->merged && a->qk_norm != FT_NO_QK_NORM && m->work->task != FT_DECODE)
        p->source_k = ft__part_norm(m, FT_AT(ATTN_QK_NORM), p->source_k, a->norm, a->norm_bias);
    ft_ref keys[2] = {p->k, p->source_k}, values[2] = {p->v, p->source_v};
    p->k = ft__cat(b, FT_AT(CROSS_MERGE), 2, keys, rows, a->head_dim);
    p->v = ft__cat(b, FT_AT(CROSS_MERGE), 2, values, rows, value_dim(a));
    s->shape.kv_len = m->kv_len + m->source_len;
    s->shape.causal = false;
    s->shape.window = 0;
    s->shape.masked = m->q_len > 1 && (a->merged || beside);
    s->k_dense = s->v_dense = true;
}

static ft_ref attended(ft_maker *m, ft_ref x, projected p, bool windowed, bool rotated);

ft_ref ft__part_self_attention(ft_maker *m, ft_ref x, bool windowed, bool rotated, unsigned manner)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    projected p = {FT_NONE, FT_NONE, FT_NONE, FT_NONE, m->beside_keys, m->beside_values, !(manner & FT_SHARES_KEYS)};
    bool own_values = p.own_keys && !(manner & FT_KEYS_ARE_VALUES);
    bool fused = a->fused_qkv || m->stack->fused_projections || m->engine;
    ft__module(b, 1);
    if (a->qk_convs)
        ft__part_convolved(m, x, &p.q, &p.k, &p.v);
    else if (p.own_keys && own_values && !a->stream_convs && !a->merged && a->canvas < 1 && fused)
        project_together(m, x, &p);
    else
        project_apart(m, x, own_values, &p);
    if (!a->keys_spread || m->engine) return attended(m, x, p, windowed, rotated);
    spread_keys(m, &p);
    ft_arch alike = *a;
    alike.kv_heads = a->heads;
    m->arch = &alike;
    ft_ref y = attended(m, x, p, windowed, rotated);
    m->arch = a;
    return y;
}

static ft_ref attended(ft_maker *m, ft_ref x, projected p, bool windowed, bool rotated)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    rotated = rotated && a->position == FT_ROTARY;
    place(m, rotated, &p);
    int64_t sparse = a->index_topk > 0 ? ft__part_indexer(m, x, x) : 0;
    int64_t seen = m->kv_len; /* gpt_neo's local layers hide keys by a mask, but keep them all */
    bool outgrown = windowed && m->work->task == FT_DECODE && a->window < seen && !a->scores_fp32;
    if (outgrown) m->kv_len = a->window;
    ft_scores s = scores_of(m, windowed);
    s.shape.masked = outgrown || (m->work->task == FT_DECODE && m->work->cache == FT_CACHE_STATIC) ||
                     ((a->keys_spread || (a->picture_masked && m->work->images > 0)) && m->q_len > 1);
    if (a->v_dim > 0) s.shape.v_dim = a->v_dim;
    if (sparse > 0) ft__attend_topk(m, &s, sparse);
    if (p.own_keys) {
        p.k = ft__part_remember(m, p.k, a->kv_heads, a->head_dim);
        p.v = ft__part_remember(m, p.v, a->kv_heads, value_dim(a));
    }
    m->keys = p.k;
    m->values = p.v;
    lay_out(m, rotated, &s);
    join_source(m, &p, &s);
    if (a->sinks && ft__flashes(m->work->attention)) ft__parameter(b, "attn.sinks", 1, a->heads);
    mask_by_input(m, x, windowed, &s);
    ft_ref y = ft__part_attend(m, FT_AT(ATTN_ATTEND), p.q, p.k, p.v, &s);
    m->kv_len = seen;
    y = gated(m, y, x, p.gate, value_dim(a));
    if (a->sub_norms) y = ft__part_norm(m, FT_AT(ATTN_POST_NORM), y, a->norm, a->norm_bias);
    return ft__linear(b, FT_AT(ATTN_O_PROJ), y, a->hidden, a->out_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
}
