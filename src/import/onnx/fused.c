/* fused.c: attention, rotary embeddings and fused activations: the standard's own operators (opset 23) and those
 * that ONNX Runtime's exporters write (com.microsoft). */
#include <string.h>

#include "import/onnx/run.h"

/* -- attention ------------------------------------------------------------------------------------- */

typedef struct heads {
    ft_attention_shape shape;
    bool merged; /* the result is [batch, length, heads * dim], not [batch, heads, length, dim] */
    bool mask;
} heads;

static void attend(ft_onnx_run *r, ft_onnx_item *q, ft_onnx_item *k, ft_onnx_item *v, const heads *h, ft_onnx_item *y)
{
    ft_scores s = {.shape = h->shape, .scale = true, .mask = h->mask};
    ft_ref from = ft__onnx_ref(r, q), keys = ft__onnx_ref(r, k), values = ft__onnx_ref(r, v);
    if (ft__onnx_failed(r) || ft__onnx_count(y) < 1) return;
    s.shape.masked = h->mask && !(h->shape.causal && ft__flashes(r->m->work->attention));
    s.q_dense = !h->merged && ft__onnx_plain(q);
    s.k_dense = !h->merged && ft__onnx_plain(k);
    s.v_dense = !h->merged && ft__onnx_plain(v);
    ft_ref out = ft__part_attend(r->m, r->label, from, keys, values, &s);
    if (!h->merged && y->dims == 4) { /* it lies as [batch, length, heads, dim] */
        y->order[1] = 2;
        y->order[2] = 1;
    }
    ft__onnx_set(r, y, out);
}

static bool sound(ft_onnx_run *r, const ft_attention_shape *s)
{
    bool good = s->batch > 0 && s->heads > 0 && s->kv_heads > 0 && s->heads % s->kv_heads == 0 && s->q_len > 0 &&
                s->kv_len > 0 && s->head_dim > 0 && s->v_dim > 0;
    if (!good && r)
        ft__onnx_fail(r, FT_E_RANGE,
                      "%lld heads over %lld of keys, %lld wide: queries, keys and values do not go together",
                      (long long)s->heads, (long long)s->kv_heads, (long long)s->head_dim);
    return good;
}

/* Written out in the file, recognised by patterns.c. False where shapes are not those of attention. */
bool ft__onnx_attend(ft_onnx_run *r, const ft_onnx_core *core)
{
    ft_onnx_item *q = &r->items[core->q], *k = &r->items[core->k], *v = &r->items[core->v];
    ft_onnx_item *mask = core->mask >= 0 ? &r->items[core->mask] : NULL;
    if (q->dims < 3 || q->dims > 4 || k->dims != q->dims || v->dims != q->dims || q->dim[0] != k->dim[0] ||
        k->dim[0] != v->dim[0] || q->kind != FT_ONNX_MADE || k->kind != FT_ONNX_MADE || v->kind != FT_ONNX_MADE)
        return false;
    int n = q->dims;
    heads h = {.mask = mask != NULL};
    h.shape = (ft_attention_shape){.batch = q->dim[0],
                                   .heads = n == 4 ? q->dim[1] : 1,
                                   .kv_heads = n == 4 ? k->dim[1] : 1,
                                   .q_len = q->dim[n - 2],
                                   .kv_len = k->dim[core->k_across ? n - 1 : n - 2],
                                   .head_dim = q->dim[n - 1],
                                   .v_dim = v->dim[n - 1]};
    const ft_attention_shape *s = &h.shape;
    if (!sound(NULL, s) || k->dim[core->k_across ? n - 2 : n - 1] != s->head_dim || v->dim[n - 2] != s->kv_len ||
        (n == 4 && v->dim[1] != s->kv_heads) || s->head_dim > 512 || (!core->grouped && s->heads != s->kv_heads))
        return false;
    h.shape.causal = core->causal && mask && mask->dims >= 2 && mask->dim[mask->dims - 2] == s->q_len && s->q_len > 1;
    int64_t dim[4] = {q->dim[0], n == 4 ? q->dim[1] : s->q_len, n == 4 ? s->q_len : s->v_dim, s->v_dim};
    ft_onnx_item *y = ft__onnx_result(r, 0, q->type, n, dim);
    if (y) attend(r, q, k, v, &h, y);
    return true;
}

/* What an operator keeps of keys or values for the next token. */
static void keep(ft_onnx_run *r, int k, int type, int64_t batch, int64_t kv_heads, int64_t length, int64_t wide)
{
    int64_t dim[4] = {batch, kv_heads, length, wide};
    if (!ft__onnx_has(r, k)) return;
    ft__onnx_filled(r, "copy", ft__onnx_result(r, k, type, 4, dim));
}

/* Sizes of q, k or v: [batch, heads, length, dim], or [batch, length, heads * dim] with so many heads. */
static bool read_heads(ft_onnx_run *r, const ft_onnx_item *x, int64_t count, int64_t *batch, int64_t *many,
                       int64_t *length, int64_t *wide)
{
    bool flat = x->dims == 3;
    if ((x->dims != 4 && !flat) || (flat && (count < 1 || x->dim[2] % count))) {
        ft__onnx_fail(r, FT_E_RANGE,
                      "operands are [batch, heads, length, dim], or [batch, length, width] and the heads");
        return false;
    }
    *batch = x->dim[0];
    *many = flat ? count : x->dim[1];
    *length = x->dim[flat ? 1 : 2];
    *wide = flat ? x->dim[2] / count : x->dim[3];
    return true;
}

/* Attention of opset 23. */
static void build_attention(ft_onnx_run *r)
{
    ft_onnx_item *q = ft__onnx_operand(r, 0), *k = ft__onnx_operand(r, 1), *v = ft__onnx_operand(r, 2);
    ft_onnx_item *past = ft__onnx_optional(r, 4);
    int64_t q_heads = ft__onnx_int(r->at, "q_num_heads", 0), kv = ft__onnx_int(r->at, "kv_num_heads", 0), batch, length;
    heads h = {.mask = ft__onnx_optional(r, 3) != NULL};
    ft_attention_shape *s = &h.shape;
    if (!q || !k || !v || !read_heads(r, q, q_heads, &s->batch, &s->heads, &s->q_len, &s->head_dim) ||
        !read_heads(r, k, kv, &batch, &s->kv_heads, &s->kv_len, &s->v_dim) ||
        !read_heads(r, v, kv, &batch, &s->kv_heads, &length, &s->v_dim))
        return;
    if (past && past->dims == 4) s->kv_len += past->dim[2];
    s->causal = ft__onnx_int(r->at, "is_causal", 0) != 0;
    h.merged = q->dims == 3;
    int64_t flat[3] = {s->batch, s->q_len, s->heads * s->v_dim}, deep[4] = {s->batch, s->heads, s->q_len, s->v_dim};
    keep(r, 1, k->type, s->batch, s->kv_heads, s->kv_len, s->head_dim);
    keep(r, 2, v->type, s->batch, s->kv_heads, s->kv_len, s->v_dim);
    if (ft__onnx_has(r, 3)) {
        int64_t scores[4] = {s->batch, s->heads, s->q_len, s->kv_len};
        ft__onnx_filled(r, "copy", ft__onnx_result(r, 3, q->type, 4, scores));
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, q->type, h.merged ? 3 : 4, h.merged ? flat : deep);
    if (y && ft__onnx_count(y) > 0 && sound(r, s)) attend(r, q, k, v, &h, y);
}

/* -- com.microsoft --------------------------------------------------------------------------------- */

/* Attention over queries, keys and values that stand side by side in one tensor. `dim`: of the result. */
static void attend_packed(ft_onnx_run *r, ft_ref packed, const int64_t dim[3], const int64_t cols[3], const heads *h,
                          ft_onnx_item *y)
{
    ft_ref parts[3];
    ft_onnx_item part[3];
    ft__split(r->b, packed, 3, cols, parts);
    for (int i = 0; i < 3; i++) {
        part[i] = (ft_onnx_item){.kind = FT_ONNX_MADE, .type = y->type, .dims = 3, .ref = parts[i], .gaps = true};
        part[i].dim[0] = dim[0];
        part[i].dim[1] = dim[1];
        part[i].dim[2] = cols[i];
        for (int axis = 0; axis < 3; axis++) part[i].order[axis] = (uint8_t)axis;
    }
    attend(r, &part[0], &part[1], &part[2], h, y);
}

/* Attention: x, one weight for queries, keys and values, their biases. */
static void build_packed_attention(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *weight = ft__onnx_operand(r, 1), *bias = ft__onnx_optional(r, 2);
    int64_t count = ft__onnx_int(r->at, "num_heads", 0), sizes[3] = {0};
    if (!x || !weight) return;
    int given = ft__onnx_ints(r->at, "qkv_hidden_sizes", 3, sizes);
    if (x->dims != 3 || weight->dims != 2 || weight->dim[0] != x->dim[2] || count < 1) {
        ft__onnx_fail(r, FT_E_RANGE, "[batch, length, width], weights of that width and \"num_heads\" are expected");
        return;
    }
    int64_t all = weight->dim[1], wide = given == 3 ? sizes[0] : all / 3, v_wide = given == 3 ? sizes[2] : all / 3;
    heads h = {.merged = true, .mask = ft__onnx_optional(r, 3) != NULL};
    h.shape = (ft_attention_shape){.batch = x->dim[0],
                                   .heads = count,
                                   .kv_heads = count,
                                   .q_len = x->dim[1],
                                   .kv_len = x->dim[1],
                                   .head_dim = wide / count,
                                   .v_dim = v_wide / count,
                                   .causal = ft__onnx_int(r->at, "unidirectional", 0) != 0};
    if (wide < 1 || v_wide < 1 || 2 * wide + v_wide != all || wide % count || v_wide % count || !sound(r, &h.shape)) {
        ft__onnx_fail(r, FT_E_RANGE, "%lld columns do not give queries, keys and values of %lld heads", (long long)all,
                      (long long)count);
        return;
    }
    int64_t dim[3] = {x->dim[0], x->dim[1], v_wide}, cols[3] = {wide, wide, v_wide}, rows = x->dim[0] * x->dim[1];
    keep(r, 1, x->type, 2 * x->dim[0], count, x->dim[1], wide / count);
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, 3, dim);
    if (!y || ft__onnx_count(x) < 1) return;
    ft__onnx_dense(r, x);
    ft_ref from = ft__onnx_ref_as(r, x, rows, x->dim[2]), offset = FT_NONE;
    ft_ref w = weight->kind == FT_ONNX_WEIGHT ? ft__onnx_product_weight(r, weight, all, weight->dim[0])
                                              : ft__onnx_ref(r, weight);
    if (bias && bias->kind == FT_ONNX_WEIGHT && ft__onnx_count(bias) == (double)all)
        offset = ft__onnx_ref_as(r, bias, 1, all);
    if (ft__onnx_failed(r)) return;
    ft_ref qkv = ft__linear_with(r->b, r->label, from, w, all, offset, FT_WHOLE);
    attend_packed(r, qkv, dim, cols, &h, y);
}

/* [batch, length, heads, 3, dim], or queries, keys and values side by side. False after an error. */
static bool packed_shape(ft_onnx_run *r, const ft_onnx_item *q, int64_t count, int64_t kv, ft_attention_shape *s)
{
    double wide = ft__onnx_count(q) / ((double)q->dim[0] * (double)q->dim[1]);
    double each = wide / (double)(count + 2 * kv);
    *s = (ft_attention_shape){.batch = q->dim[0],
                              .heads = count,
                              .kv_heads = kv,
                              .q_len = q->dim[1],
                              .kv_len = q->dim[1],
                              .head_dim = (int64_t)each,
                              .v_dim = (int64_t)each};
    if (each >= 1 && (double)s->head_dim >= each && (double)s->head_dim <= each) return true;
    ft__onnx_fail(r, FT_E_RANGE, "%.0f columns do not give queries, keys and values of %lld heads", wide,
                  (long long)count);
    return false;
}

/* MultiHeadAttention and GroupQueryAttention: queries, keys and values that others have made; or all in one. */
static void build_heads_attention(ft_onnx_run *r)
{
    ft_onnx_item *q = ft__onnx_operand(r, 0), *k = ft__onnx_optional(r, 1), *v = ft__onnx_optional(r, 2);
    bool grouped = !strcmp(r->at->op, "GroupQueryAttention");
    ft_onnx_item *past = ft__onnx_optional(r, grouped ? 3 : 6);
    int64_t count = ft__onnx_int(r->at, "num_heads", 0), kv = ft__onnx_int(r->at, "kv_num_heads", count), batch, length;
    heads h = {.merged = true, .mask = !grouped && ft__onnx_optional(r, 5) != NULL};
    ft_attention_shape *s = &h.shape;
    if (!q) return;
    if (q->dims < 3 || count < 1 || kv < 1) {
        ft__onnx_fail(r, FT_E_RANGE, "[batch, length, width] and \"num_heads\" are expected");
        return;
    }
    const bool apart = k && v;
    if (apart ? !read_heads(r, q, count, &s->batch, &s->heads, &s->q_len, &s->head_dim) ||
                    !read_heads(r, k, kv, &batch, &s->kv_heads, &s->kv_len, &s->v_dim) ||
                    !read_heads(r, v, kv, &batch, &s->kv_heads, &length, &s->v_dim)
              : !packed_shape(r, q, count, kv, s))
        return;
    if (past && past->dims == 4) s->kv_len += past->dim[2];
    s->window = grouped && ft__onnx_int(r->at, "local_window_size", -1) > 0
                    ? ft__onnx_int(r->at, "local_window_size", 0)
                    : 0;
    s->causal = grouped || ft__onnx_int(r->at, "unidirectional", 0) != 0;
    int64_t dim[3] = {s->batch, s->q_len, s->heads * s->v_dim};
    keep(r, 1, q->type, s->batch, s->kv_heads, s->kv_len, s->head_dim);
    keep(r, 2, q->type, s->batch, s->kv_heads, s->kv_len, s->v_dim);
    ft_onnx_item *y = ft__onnx_result(r, 0, q->type, 3, dim);
    if (!y || ft__onnx_count(y) < 1 || !sound(r, s)) return;
    if (apart) {
        attend(r, q, k, v, &h, y);
        return;
    }
    ft__onnx_dense(r, q);
    ft_ref all = ft__onnx_ref_as(r, q, s->batch * s->q_len, (s->heads + 2 * s->kv_heads) * s->head_dim);
    int64_t cols[3] = {s->heads * s->head_dim, s->kv_heads * s->head_dim, s->kv_heads * s->head_dim};
    if (!ft__onnx_failed(r)) attend_packed(r, all, dim, cols, &h, y);
}

/* -- rotary embeddings, activations ---------------------------------------------------------------- */

static void build_rotary(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    ft_onnx_item *y = x ? ft__onnx_like(r, 0, x, x->type) : NULL;
    if (!y) return;
    ft__onnx_pointwise(r, "rotary", 1, &x, y);
    if (ft__onnx_failed(r) || ft__onnx_count(y) < 1) return;
    r->b->g->nodes[r->b->g->node_count - 1].op.u.elementwise.ops_per_element = 6;
}

/* x (+ bias), then the activation, in one kernel. */
static void build_biased(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *bias = ft__onnx_optional(r, 1), sum;
    if (!x) return;
    ft_onnx_item *y = ft__onnx_like(r, 0, x, x->type), *both[2] = {x, bias};
    if (!y || ft__onnx_count(y) < 1) return;
    sum = *x;
    if (bias) {
        sum = *y;
        ft__onnx_pointwise(r, "add", 2, both, &sum);
        if (ft__onnx_failed(r)) return;
        ft_op *op = &r->b->g->nodes[r->b->g->node_count - 1].op;
        *op = ft__bytes_kernel("add", op->dtype, 0, 0);
    }
    both[0] = &sum;
    ft__onnx_pointwise(r, r->at->rule->word, 1, both, y);
}

const ft_onnx_rule ft__onnx_fused_rules[] = {
    {"Attention", 3, build_attention, ""},
    {"RotaryEmbedding", 1, build_rotary, ""},
    {0},
};

const ft_onnx_rule ft__onnx_microsoft_rules[] = {
    {"Attention", 2, build_packed_attention, ""},
    {"MultiHeadAttention", 1, build_heads_attention, ""},
    {"GroupQueryAttention", 1, build_heads_attention, ""},
    {"RotaryEmbedding", 1, build_rotary, ""},
    {"Gelu", 1, build_biased, "gelu"},
    {"FastGelu", 1, build_biased, "gelu"},
    {"BiasGelu", 2, build_biased, "gelu"},
    {"QuickGelu", 1, build_biased, "silu"},
    {0},
};
