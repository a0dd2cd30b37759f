/* attend.c: softmax(q k' / sqrt(d)) v in the three ways in which it is launched.
 *
 * eager: the score matrix exists. Operands that are transposed views are copied before a batched product can read
 * them, grouped keys and values are repeated to the number of query heads, and scale, mask, softmax and dropout are a
 * pass over the scores each. sdpa: what PyTorch's scaled_dot_product_attention picks; flash: FlashAttention. */
#include <math.h>

#include "graph/emit.h"
#include "model/parts.h"

/* Marks what was appended since `first` as the score matrix and what hangs on it. */
static void mark_core(ft_build *b, int32_t first)
{
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) b->g->nodes[i].core = true;
}

static ft_ref repeated(ft_build *b, ft_ref x, int64_t rows, int64_t cols)
{
    return ft__copy(b, "attn.repeat_kv", x, rows, cols);
}

/* Scores of a model with linear biases. */
static ft_ref biased(ft_maker *m, ft_ref scores, const ft_attention_shape *a)
{
    ft_build *b = &m->b;
    ft_ref slopes = ft__input(b, a->heads, a->kv_len, 4), hidden = ft__input(b, a->batch * a->q_len, a->kv_len, 1);
    if (slopes != FT_NONE) b->g->tensors[slopes].dtype = FT_FP32;
    scores = ft__add(b, "attn.alibi", scores, slopes); /* fp32 from here on */
    const ft_tensor *t = ft__tensor_of(b, scores);
    scores = ft__copy(b, "attn.mask", scores, t->rows, t->cols);
    return ft__pointwise_in_place(b, "attn.mask", "masked_fill", scores, hidden);
}

/* A learned score per head is appended, the row's maximum taken off, and the column dropped after the softmax. */
static ft_ref with_sinks(ft_maker *m, ft_ref scores, const ft_attention_shape *a)
{
    ft_build *b = &m->b;
    int64_t rows = a->batch * a->heads * a->q_len;
    ft_ref sink = ft__expand(b, ft__parameter(b, "attn.sinks", 1, a->heads), rows, 1), both[2] = {scores, sink};
    scores = ft__cat(b, "attn.sinks", 2, both, rows, a->kv_len + 1);
    bool training = b->training;
    b->training = false;
    ft_ref most = ft__reduce(b, "attn.sinks", "max", scores);
    b->training = training;
    scores = ft__pointwise2(b, "attn.sinks", "sub", scores, most);
    scores = ft__row(b, "attn.softmax", "softmax", scores);
    return ft__slice(b, scores, rows, a->kv_len);
}

static ft_ref probabilities(ft_maker *m, ft_ref scores, ft_dtype low, const ft_scores *s)
{
    ft_build *b = &m->b;
    if (m->fused) return ft__row(b, "attn.softmax", "softmax", scores); /* scale, mask and softmax in one kernel */
    if (s->scale && !s->baddbmm) scores = ft__pointwise(b, "attn.scale", "mulu", scores);
    if (s->softcap > 0) {
        scores = ft__pointwise(b, "attn.softcap", "divu", scores);
        scores = ft__pointwise(b, "attn.softcap", "tanh", scores);
        scores = ft__pointwise(b, "attn.softcap", "mulu", scores);
    }
    if (s->alibi && !s->baddbmm) {
        scores = ft__row(b, "attn.softmax", "softmax", biased(m, scores, &s->shape));
        return ft__cast(b, "attn.softmax", scores, low);
    }
    if (s->mask && m->mask != FT_NONE) scores = ft__add(b, "attn.mask", scores, m->mask);
    if (s->sinks) return with_sinks(m, scores, &s->shape);
    scores = ft__softmax(b, "attn.softmax", scores, s->softmax_fp32 && !s->scores_fp32);
    return s->scores_fp32 ? ft__cast(b, "attn.softmax", scores, low) : scores;
}

static ft_ref eager(ft_maker *m, const char *name, ft_ref q, ft_ref k, ft_ref v, const ft_scores *s)
{
    ft_build *b = &m->b;
    const ft_attention_shape *a = &s->shape;
    int64_t pairs = a->batch * a->heads, v_dim = a->v_dim ? a->v_dim : a->head_dim;
    q = ft__view(b, q, pairs * a->q_len, a->head_dim, !s->q_dense && a->q_len > 1);
    k = ft__view(b, k, a->batch * a->kv_heads * a->kv_len, a->head_dim, !s->k_dense);
    v = ft__view(b, v, a->batch * a->kv_heads * a->kv_len, v_dim, !s->v_dense);
    if (a->kv_heads < a->heads) {
        k = repeated(b, k, pairs * a->kv_len, a->head_dim);
        v = repeated(b, v, pairs * a->kv_len, v_dim);
    }
    if (s->scores_fp32) {
        q = ft__cast(b, name, q, FT_FP32);
        k = ft__cast(b, name, k, FT_FP32);
    }
    ft_dtype low = ft__tensor_of(b, v)->dtype;
    q = ft__contiguous(b, name, q);
    /* k' is a transposed view whatever k was: it is copied unless k was dense already in this order. */
    if (s->baddbmm)
        k = ft__contiguous(b, name, k);
    else if (ft__tensor_of(b, k)->strided)
        k = ft__transpose(b, name, k, pairs * a->head_dim, a->kv_len);
    v = ft__contiguous(b, name, v);
    int32_t first = b->g->node_count;
    if (s->baddbmm)
        ft__copy(b, "attn.alibi", ft__input(b, pairs, a->kv_len, ft_dtype_bytes(low)), pairs * a->q_len, a->kv_len);
    ft_ref scores = ft__matmul(b, "attn.scores", q, k, pairs, a->q_len, a->kv_len, a->head_dim, "nt");
    scores = probabilities(m, scores, low, s);
    scores = ft__dropout(b, "attn.dropout", scores, s->dropout);
    mark_core(b, first);
    ft_ref y = ft__matmul(b, "attn.values", scores, v, pairs, a->q_len, v_dim, a->kv_len, "nn");
    y = ft__view(b, y, a->batch * a->q_len, a->heads * v_dim, a->q_len > 1 && a->heads > 1);
    return ft__contiguous(b, "attn.merge", y);
}

/* sdpa's plain implementation: everything in fp32, both operands scaled, and a check for rows that are masked out
 * altogether. It is what remains when no fused kernel takes the operands. */
static ft_ref plain(ft_maker *m, const char *name, ft_ref q, ft_ref k, ft_ref v, const ft_scores *s)
{
    ft_build *b = &m->b;
    const ft_attention_shape *a = &s->shape;
    int64_t pairs = a->batch * a->heads, rows = pairs * a->q_len, kv_rows = a->batch * a->kv_heads * a->kv_len;
    ft_dtype low = ft__tensor_of(b, q)->dtype;
    q = ft__cast(b, name, ft__view(b, q, rows, a->head_dim, true), FT_FP32);
    k = ft__cast(b, name, ft__view(b, k, kv_rows, a->head_dim, true), FT_FP32);
    v = ft__cast(b, name, ft__view(b, v, kv_rows, a->head_dim, true), FT_FP32);
    q = ft__contiguous(b, name, ft__pointwise(b, name, "mulu", q));
    k = ft__transpose(b, name, ft__pointwise(b, name, "mulu", k), pairs * a->head_dim, a->kv_len);
    v = ft__copy(b, name, v, pairs * a->kv_len, a->head_dim);
    int32_t first = b->g->node_count;
    ft_ref scores = ft__matmul(b, "attn.scores", q, k, pairs, a->q_len, a->kv_len, a->head_dim, "nt");
    if (s->mask && a->q_len > 1) {
        ft_ref mask = ft__input(b, a->batch * a->q_len, a->kv_len, ft_dtype_bytes(low));
        scores = ft__pointwise_in_place(b, "attn.mask", "add", scores, mask);
    }
    ft_ref odds = ft__row(b, "attn.softmax", "softmax", scores);
    bool training = b->training;
    b->training = false;
    ft_ref lost = ft__pointwise(b, "attn.softmax", "isneginf", scores);
    if (lost != FT_NONE) b->g->tensors[lost].element_bytes = 1;
    ft_ref all = ft__reduce(b, "attn.softmax", "all", lost);
    b->training = training;
    odds = ft__pointwise2(b, "attn.softmax", "where", odds, all);
    mark_core(b, first);
    ft_ref y = ft__matmul(b, "attn.values", odds, v, pairs, a->q_len, a->head_dim, a->kv_len, "nn");
    y = ft__cast(b, name, y, low);
    y = ft__view(b, y, a->batch * a->q_len, a->heads * a->head_dim, a->q_len > 1);
    return ft__contiguous(b, "attn.merge", y);
}

ft_ref ft__part_attend(ft_maker *m, const char *name, ft_ref q, ft_ref k, ft_ref v, const ft_scores *s)
{
    ft_build *b = &m->b;
    const ft_attention_shape *a = &s->shape;
    if (m->work->attention == FT_EAGER || (s->eager_only && m->work->attention == FT_SDPA))
        return eager(m, name, q, k, v, s);
    if (s->broadcast && m->work->attention == FT_SDPA) return plain(m, name, q, k, v, s);
    ft_attention_shape shape = *a;
    /* sdpa has no window: beyond it a mask says which keys count, and all of them are computed. */
    if (shape.window > 0 && (m->work->attention == FT_SDPA || shape.window >= shape.kv_len)) {
        shape.masked = shape.window < shape.kv_len;
        shape.window = 0;
    }
    int64_t v_dim = a->v_dim ? a->v_dim : a->head_dim;
    q = ft__view(b, q, a->batch * a->heads * a->q_len, a->head_dim, !s->q_dense);
    k = ft__view(b, k, a->batch * a->kv_heads * a->kv_len, a->head_dim, !s->k_dense);
    v = ft__view(b, v, a->batch * a->kv_heads * a->kv_len, v_dim, !s->v_dense);
    return ft__attention(b, name, q, k, v, &shape, s->dropout);
}
