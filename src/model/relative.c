/* relative.c: the norm, the relative position biases and the attention of t5 (Raffel et al. 2020), as transformers
 * launches them.
 *
 * A bias whose last axis is not contiguous is refused by PyTorch's fused attention kernels, so that t5's self-attention
 * under sdpa runs scaled_dot_product_attention's fallback: everything in fp32 (before PyTorch 2.5 in its own format), a
 * guard against rows of minus infinity, and a dozen passes over the scores. Cross-attention, whose bias is zero and contiguous, is fused. */
#include "model/relative.h"

#include <string.h>

#include "graph/emit.h"
#include "model/latent.h"
#include "model/pytorch.h"

ft_ref ft__no_grad_kernels(ft_build *b, ft_at at, const char *op, ft_ref x, int64_t rows, int64_t cols, double bytes,
                           int count)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_FILL, at);
    ft__node_in(&n, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, b->stored, bytes);
    if (out == FT_NONE) return out;
    b->g->tensors[out].trained = false;
    n.op = ft__pointwise_kernel(b->g, op, n.in, n.in_count, &b->g->tensors[out]);
    n.count = (float)count;
    ft__emit(b, &n);
    return out;
}

void ft__answered(ft_build *b, ft_ref x)
{
    if (x != FT_NONE && !b->training) ft__view(b, x, ft__tensor_of(b, x)->rows, ft__tensor_of(b, x)->cols, false);
}

int64_t ft__encoder_tokens(const ft_maker *m) { return m->work->source > 0 ? m->work->source : m->work->seq; }

void ft__encoder_at_rest(ft_maker *m, ft_ref (*encode)(ft_maker *m), double shared)
{
    ft_build *b = &m->b;
    if (b->status != FT_OK) return;
    ft_workload once = *m->work; /* a sketch of it, of one token, for its parameters alone */
    once.task = FT_FORWARD_PASS;
    once.batch = once.seq = 1;
    once.source = 0;
    ft_maker sketch = *m;
    sketch.work = &once;
    sketch.batch = sketch.q_len = sketch.kv_len = 1;
    sketch.b.g = ft__graph_new(b->g->arena, b->g->dtype);
    if (!sketch.b.g) {
        ft__build_fail(b, FT_E_MEMORY, "out of memory");
        return;
    }
    encode(&sketch);
    b->status = sketch.b.status;
    double elements = sketch.b.g->parameters - shared;
    if (elements < 1) return;
    int64_t tensors = sketch.b.g->parameter_tensors, before = b->g->parameter_tensors;
    ft__parameter(b, "encoder", (int64_t)elements, 1);
    b->g->parameter_tensors = before + tensors;
    b->g->active_parameters -= sketch.b.g->parameters - sketch.b.g->active_parameters; /* experts passed by */
}

ft_ref ft__relative_norm(ft_maker *m, ft_at at, ft_ref x)
{
    ft_build *b = &m->b;
    if (m->stack->fused_norms || m->engine) return ft__rmsnorm_fused(b, at, x);
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    int64_t width = ft__tensor_of(b, x)->cols;
    ft_ref power = ft__pointwise(b, at, "powu", ft__cast(b, at, x, FT_FP32));
    ft_ref root = ft__pointwise(b, at, "addu", ft__reduce(b, at, "mean", power));
    root = ft__pointwise(b, at, "rsqrt", root);
    ft_ref h = ft__cast(b, at, ft__mul(b, at, x, root), low);
    ft__module(b, 1);
    return ft__mul(b, at, h, ft__parameter(b, "norm.weight", 1, width));
}

ft_ref ft__relative_bias(ft_maker *m, ft_at at, int64_t q_len, int64_t kv_len, bool both_ways)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref buckets = ft__no_grad_kernels(b, at, "copy", FT_NONE, q_len, kv_len, 8, both_ways ? 21 : 19),
           table = FT_NONE;
    ft_ref bias = ft__embedding(b, at, buckets, a->relative_buckets, a->heads, &table);
    return ft__view(b, bias, a->heads * q_len, kv_len, a->heads > 1);
}

/* -- the ways to attend ------------------------------------------------------------------------ */

typedef struct sizes {
    int64_t batch, heads, pairs, q_len, kv_len, dim;
    double dropout;
} sizes;

static void mark_core(ft_build *b, int32_t first)
{
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) b->g->nodes[i].core = true;
}

/* Keys as [dim, kv_len]: a copy that transposes. */
static ft_ref turned(ft_build *b, ft_at at, ft_ref k, sizes s)
{
    k = ft__copy(b, at, k, s.pairs * s.dim, s.kv_len);
    if (b->status == FT_OK)
        b->g->nodes[b->g->node_count - 1].op = ft__row_kernel("transpose_copy", FT_PASS_FWD, s.pairs * s.dim, s.kv_len,
                                                              ft__tensor_of(b, k)->dtype);
    return k;
}

static ft_ref merged(ft_maker *m, ft_ref y, sizes s)
{
    ft_build *b = &m->b;
    y = ft__view(b, y, s.batch * s.q_len, s.heads * s.dim, s.q_len > 1);
    return ft__contiguous(b, FT_AT(ATTN_MERGE), y);
}

/* softmax that gives zeros where every key is hidden: three more passes, none of which has a gradient. */
static ft_ref safe_softmax(ft_build *b, ft_ref scores)
{
    ft_at at = FT_AT(ATTN_SOFTMAX);
    ft_ref p = ft__row(b, at, "softmax", scores);
    if (b->status != FT_OK) return FT_NONE;
    ft_tensor t = *ft__tensor_of(b, p);
    ft_ref hidden = ft__no_grad_kernels(b, at, "isneginf", scores, t.rows, t.cols, 1, 1);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].op.u.elementwise.pattern = FT_PATTERN_CONTIGUOUS;
    ft_node all = ft__node_of(FT_DO_FILL, at);
    ft__node_in(&all, hidden);
    ft_ref rows = ft__node_out(b, &all, t.rows, 1, t.dtype, 1);
    all.op = ft__row_kernel("sum_rows", FT_PASS_FWD, t.rows, t.cols, FT_BF16);
    ft__emit(b, &all);
    ft__no_grad_kernels(b, at, "fill", FT_NONE, 1, 1, 4, 1); /* the zero itself */
    ft_node where = ft__node_of(FT_DO_COPY, at);             /* to autograd, softmax and this are one */
    ft__node_in(&where, p);
    ft__node_in(&where, rows);
    ft_ref out = ft__node_out(b, &where, t.rows, t.cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    where.op = ft__pointwise_kernel(b->g, "where", where.in, where.in_count, &b->g->tensors[out]);
    where.op.u.elementwise.inputs = 2; /* zeros are read as well */
    where.op.u.elementwise.bytes += ft__tensor_bytes(&t);
    ft__node_in(&where, hidden); /* not read, but alive */
    ft__emit(b, &where);
    return out;
}

/* scaled_dot_product_attention's fallback. The scale's root goes to q and k each. */
static ft_ref written_out(ft_maker *m, ft_ref q, ft_ref k, ft_ref v, ft_ref bias, bool by_place, sizes s)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_ATTEND);
    /* A compiler makes the bias of every pair of places again wherever it is added, logarithm, table and all. */
    const char *add = by_place && m->work->execution == FT_RUN_COMPILE ? "add_by_place" : "add";
    const ft_pytorch *version = ft__pytorch(m->work);
    ft_dtype low = ft__tensor_of(b, q)->dtype, wide = version && !version->sdpa_wide ? low : FT_FP32;
    bool autocast = b->autocast;
    b->autocast = false; /* it lowers what goes in and leaves the inside alone */
    bias = ft__cast(b, FT_AT(ATTN_BIAS), bias, low);
    q = ft__cast(b, at, q, wide);
    k = ft__cast(b, at, k, wide);
    v = ft__cast(b, at, v, wide);
    q = ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", q);
    k = ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", k);
    bool dense = !ft__tensor_of(b, k)->strided; /* as a cache leaves them */
    q = ft__contiguous(b, at, q);
    if (!dense) k = turned(b, at, k, s);
    int32_t first = b->g->node_count;
    ft_ref scores = ft__matmul(b, FT_AT(ATTN_SCORES), q, k, s.pairs, s.q_len, s.kv_len, s.dim, dense ? "nt" : "nn");
    scores = ft__pointwise_in_place(b, FT_AT(ATTN_BIAS), add, scores, bias);
    scores = safe_softmax(b, scores);
    scores = ft__dropout(b, FT_AT(ATTN_DROPOUT), scores, s.dropout);
    ft__cast(b, FT_AT(ATTN_SOFTMAX), scores, low); /* returned beside the result, read by nobody */
    mark_core(b, first);
    v = ft__contiguous(b, at, v);
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), scores, v, s.pairs, s.q_len, s.dim, s.kv_len, "nn");
    y = merged(m, ft__cast(b, at, y, low), s);
    b->autocast = autocast;
    return y;
}

ft_ref ft__attend_written_out(ft_maker *m, ft_ref q, ft_ref k, ft_ref v, ft_ref mask, const ft_scores *s)
{
    const ft_attention_shape *a = &s->shape;
    sizes all = {a->batch, a->heads, a->batch * a->heads, a->q_len, a->kv_len, a->head_dim, s->dropout};
    return written_out(m, q, k, v, mask, false, all);
}

static ft_ref eager(ft_maker *m, ft_ref q, ft_ref k, ft_ref v, ft_ref bias, ft_ref mask, sizes s)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_ATTEND);
    bool dense = !ft__tensor_of(b, k)->strided; /* as a cache leaves them */
    q = ft__contiguous(b, at, q);
    if (!dense) k = turned(b, at, k, s);
    v = ft__contiguous(b, at, v);
    int32_t first = b->g->node_count;
    ft_ref p = ft__matmul(b, FT_AT(ATTN_SCORES), q, k, s.pairs, s.q_len, s.kv_len, s.dim, dense ? "nt" : "nn");
    if (!m->stack->fused_softmax) {
        p = ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", p);
        if (bias != FT_NONE) p = ft__add(b, FT_AT(ATTN_BIAS), p, bias);
        if (mask != FT_NONE) p = ft__add(b, FT_AT(ATTN_MASK), p, mask);
    }
    p = ft__row(b, FT_AT(ATTN_SOFTMAX), "softmax", p);
    p = ft__dropout(b, FT_AT(ATTN_DROPOUT), p, s.dropout);
    mark_core(b, first);
    return merged(m, ft__matmul(b, FT_AT(ATTN_VALUES), p, v, s.pairs, s.q_len, s.dim, s.kv_len, "nn"), s);
}

/* Where a layer has a causal mask it is written into the bias, in every layer again. */
static ft_ref hidden_later(ft_maker *m, ft_ref bias, const ft_relative *r)
{
    ft_build *b = &m->b;
    if (!r->causal || r->q_len < 2 || bias == FT_NONE) return bias;
    ft_ref later = ft__no_grad_kernels(b, FT_AT(ATTN_MASK), "copy", FT_NONE, r->q_len, r->kv_len, 1, 4);
    return ft__pointwise2(b, FT_AT(ATTN_MASK), "where", bias, later);
}

static ft_ref attend(ft_maker *m, ft_ref q, ft_ref k, ft_ref v, const ft_relative *r)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    sizes s = {m->batch, a->heads, m->batch * a->heads, r->q_len, r->kv_len, a->head_dim, a->attention_dropout};
    bool loops = a->experts > 0; /* switch_transformers knows eager attention alone */
    if (m->work->attention == FT_EAGER || (loops && m->work->attention == FT_SDPA))
        return eager(m, q, k, v, r->bias, r->mask, s);
    if (m->work->attention == FT_SDPA && !r->cross && !m->stack->fused_softmax)
        return written_out(m, q, k, v, hidden_later(m, r->bias, r), true, s);
    ft_attention_shape shape = {.batch = m->batch,
                                .heads = a->heads,
                                .kv_heads = a->heads,
                                .q_len = r->q_len,
                                .kv_len = r->kv_len,
                                .head_dim = a->head_dim,
                                .causal = r->causal && r->q_len > 1,
                                .masked = true};
    return ft__attention(b, r->attend, q, k, v, &shape, a->attention_dropout);
}

/* -- a layer's attention ----------------------------------------------------------------------- */

/* [batch * len, heads * dim] as [batch, heads, len, dim]. */
static ft_ref by_heads(ft_maker *m, ft_ref x, int64_t len)
{
    const ft_arch *a = m->arch;
    x = ft__view(&m->b, x, m->batch * len * a->heads, a->head_dim, false);
    return ft__view(&m->b, x, m->batch * len * a->heads, a->head_dim, true);
}

/* Appended to an empty cache: a copy that makes it contiguous, launched as a concatenation. Autograd keeps it too. */
static ft_ref first_kept(ft_build *b, ft_ref x)
{
    ft_tensor t = *ft__tensor_of(b, x);
    if (!b->training) ft__cache(b, t.rows, t.cols, t.element_bytes);
    ft_ref out = ft__copy(b, FT_AT(ATTN_CACHE), x, t.rows, t.cols);
    if (b->status == FT_OK)
        b->g->nodes[b->g->node_count - 1].op = ft__row_kernel("cat_halves", FT_PASS_FWD, t.rows, t.cols, t.dtype);
    return out;
}

static ft_ref kept(ft_maker *m, ft_ref x, const ft_relative *r)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool generates = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    if (generates && r->cross) {
        ft__cache(b, m->batch * r->kv_len * a->heads, a->head_dim, ft_dtype_bytes(m->work->kv_dtype));
        return ft__copy(b, FT_AT(ATTN_CACHE), x, m->batch * r->kv_len * a->heads, a->head_dim);
    }
    if (generates) return r->causal ? ft__part_remember(m, x, a->heads, a->head_dim) : x;
    return r->cached ? first_kept(b, x) : x;
}

ft_ref ft__relative_attention(ft_maker *m, ft_ref x, ft_ref over, const ft_relative *r)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t width = a->heads * a->head_dim, fresh = r->cross ? r->kv_len : r->q_len;
    ft__module(b, 1);
    ft_ref q = by_heads(m, ft__linear(b, r->q, x, width, FT_NO_BIAS, FT_CUT_COLUMNS), r->q_len), k, v;
    if (r->cross && m->work->task == FT_DECODE) { /* projected when the encoder had run */
        double bytes = ft_dtype_bytes(m->work->kv_dtype);
        ft__parameter(b, "weight", width, a->hidden);
        ft__parameter(b, "weight", width, a->hidden);
        k = ft__view(b, ft__cache(b, m->batch * r->kv_len * a->heads, a->head_dim, bytes),
                     m->batch * r->kv_len * a->heads, a->head_dim, false);
        v = ft__view(b, ft__cache(b, m->batch * r->kv_len * a->heads, a->head_dim, bytes),
                     m->batch * r->kv_len * a->heads, a->head_dim, false);
    } else {
        k = by_heads(m, ft__linear(b, r->k, over, width, FT_NO_BIAS, FT_CUT_COLUMNS), fresh);
        v = by_heads(m, ft__linear(b, r->v, over, width, FT_NO_BIAS, FT_CUT_COLUMNS), fresh);
        k = kept(m, k, r);
        v = kept(m, v, r);
    }
    ft_ref y = attend(m, q, k, v, r);
    return ft__linear(b, r->o, y, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}
