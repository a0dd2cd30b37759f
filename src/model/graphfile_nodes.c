/* graphfile_nodes.c: the operators of a graph file, each with its keys and its rule for the result's shape. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/emit.h"
#include "model/graphfile_reader.h"

typedef ft_graph_reader reader;
typedef ft_named named;

static const int64_t LARGEST = (int64_t)1 << 40;

/* -- operands and results ---------------------------------------------------------------------- */

static const json_t *inputs(const reader *r) { return json_object_get(r->at, "in"); }

static size_t operands(const reader *r) { return json_is_string(inputs(r)) ? 1 : json_array_size(inputs(r)); }

static const char *result_name(const json_t *node)
{
    const json_t *out = json_object_get(node, "out");
    return json_string_value(json_is_array(out) ? json_array_get(out, 0) : out);
}

/* A node of this block that comes too late for who reads it. */
static bool made_later(const reader *r, const char *name)
{
    for (size_t i = (size_t)r->node; i < json_array_size(r->nodes); i++) {
        const char *made = result_name(json_array_get(r->nodes, i));
        if (made && !strcmp(made, name)) return true;
    }
    return false;
}

static named *operand(reader *r, size_t index)
{
    const char *name = json_string_value(json_is_string(inputs(r)) && index == 0 ? inputs(r)
                                                                                 : json_array_get(inputs(r), index));
    if (ft__graphfile_failed(r)) return NULL;
    if (!name) {
        ft__graphfile_fail(r, FT_E_MISSING, "operand %d is missing in \"in\"", (int)index + 1);
        return NULL;
    }
    named *n = ft__graphfile_find(r, name);
    if (n) return n;
    int cut = (int)ft__utf8_cut(name, 60);
    if (made_later(r, name)) {
        ft__graphfile_fail(r, FT_E_NAME, "\"%.*s\" is made later: nodes run in the order of the list, without cycles",
                           cut, name);
        return NULL;
    }
    const char **all = malloc(((size_t)r->count + 1) * sizeof *all), *near = NULL;
    for (int32_t i = 0; all && i < r->count; i++) all[i] = r->names[i].name;
    if (all) near = ft__nearest(name, all, (size_t)r->count);
    ft__graphfile_fail(r, FT_E_NAME, "\"%.*s\" was not made before%s%.*s%s", cut, name, near ? "; did you mean \"" : "",
                       near ? (int)ft__utf8_cut(near, 60) : 0, near ? near : "", near ? "\"?" : "");
    free((void *)(uintptr_t)all);
    return NULL;
}

static void result(reader *r, ft_ref ref, int dims, const int64_t *dim)
{
    const char *name = result_name(r->at);
    if (ft__graphfile_failed(r)) return;
    if (!name)
        ft__graphfile_fail(r, FT_E_MISSING, "\"out\" must name the result");
    else
        ft__graphfile_keep(r, name, ref, dims, dim);
}

static int64_t whole(reader *r, const char *key, int64_t otherwise, int64_t low)
{
    return ft__graphfile_whole(r, key, otherwise, low, LARGEST);
}

static bool truth(reader *r, const char *key)
{
    const json_t *value = json_object_get(r->at, key);
    if (value && !json_is_boolean(value)) ft__graphfile_fail(r, FT_E_TYPE, "\"%s\" must be true or false", key);
    return json_is_true(value);
}

static ft_bias bias(reader *r) { return truth(r, "bias") ? FT_BIAS : FT_NO_BIAS; }

static double elements(const named *n)
{
    return (double)ft__graphfile_rows(n->dims, n->dim) * (double)n->dim[n->dims - 1];
}

/* -- products ---------------------------------------------------------------------------------- */

static void read_linear(reader *r, const char *name)
{
    named *x = operand(r, 0);
    int64_t features = whole(r, "features", 0, 1);
    const json_t *weight = json_object_get(r->at, "weight");
    ft_bias biased = bias(r);
    ft_build *b = ft__graphfile_build(r);
    if (ft__graphfile_failed(r) || !x) return;
    ft_ref y;
    if (weight) {
        const char *tied = json_string_value(weight);
        const named *w = tied ? ft__graphfile_find(r, tied) : NULL;
        double wanted = (double)features * (double)x->dim[x->dims - 1];
        if (!w || ft__tensor_of(b, w->ref)->role != FT_PARAMETER) {
            ft__graphfile_fail(r, FT_E_NAME, "\"weight\" must name the \"table\" of an embedding made before");
            return;
        }
        if (elements(w) != wanted) {
            ft__graphfile_fail(r, FT_E_RANGE, "the tied weight has %.0f elements, not %lld x %lld", elements(w),
                               (long long)features, (long long)x->dim[x->dims - 1]);
            return;
        }
        ft_ref extra = biased == FT_BIAS ? ft__parameter(b, "bias", 1, features) : FT_NONE;
        y = ft__linear_with(b, name, x->ref, w->ref, features, extra, FT_WHOLE);
    } else {
        y = ft__linear(b, name, x->ref, features, biased, FT_WHOLE);
    }
    int64_t dim[FT_GRAPHFILE_DIMS];
    memcpy(dim, x->dim, sizeof dim);
    dim[x->dims - 1] = features;
    result(r, y, x->dims, dim);
}

/* [..., m, k] x [..., k, n]; "transposed": the second is [..., n, k]. */
static void read_matmul(reader *r, const char *name)
{
    named *a = operand(r, 0), *c = operand(r, 1);
    bool across = truth(r, "transposed");
    if (!a || !c || ft__graphfile_failed(r)) return;
    if (a->dims < 2 || c->dims < 2) {
        ft__graphfile_fail(r, FT_E_RANGE, "a product needs two axes of each operand, got %d and %d", a->dims, c->dims);
        return;
    }
    int64_t m = a->dim[a->dims - 2], k = a->dim[a->dims - 1];
    int64_t inner = c->dim[c->dims - (across ? 1 : 2)], n = c->dim[c->dims - (across ? 2 : 1)];
    if (k != inner) {
        ft__graphfile_fail(r, FT_E_RANGE, "the operands' inner sizes differ: %lld and %lld", (long long)k,
                           (long long)inner);
        return;
    }
    double batch = (double)ft__graphfile_rows(a->dims, a->dim) / (double)m;
    double other = elements(c) / ((double)k * (double)n);
    if (batch != other) {
        ft__graphfile_fail(r, FT_E_RANGE, "the operands' batches differ: %.0f and %.0f matrices", batch, other);
        return;
    }
    ft_ref y = ft__matmul(ft__graphfile_build(r), name, a->ref, c->ref, (int64_t)batch, m, n, k, across ? "nt" : "nn");
    int64_t dim[FT_GRAPHFILE_DIMS];
    memcpy(dim, a->dim, sizeof dim);
    dim[a->dims - 1] = n;
    result(r, y, a->dims, dim);
}

/* q, k, v as [batch, heads, length, dim]. */
static void read_attention(reader *r, const char *name)
{
    named *q = operand(r, 0), *k = operand(r, 1), *v = operand(r, 2);
    int64_t window = whole(r, "window", 0, 0);
    bool causal = truth(r, "causal"), masked = truth(r, "masked");
    if (!q || !k || !v || ft__graphfile_failed(r)) return;
    if (q->dims != 4 || k->dims != 4 || v->dims != 4 || q->dim[0] != k->dim[0] || k->dim[0] != v->dim[0] ||
        k->dim[1] != v->dim[1] || k->dim[2] != v->dim[2] || q->dim[3] != k->dim[3] || q->dim[1] % k->dim[1]) {
        ft__graphfile_fail(
            r, FT_E_RANGE,
            "attention takes q, k, v as [batch, heads, length, dim]: one batch, k and v of equal heads and "
            "lengths, q and k of equal dim, heads of q a multiple of k's");
        return;
    }
    ft_attention_shape s = {.batch = q->dim[0],
                            .heads = q->dim[1],
                            .kv_heads = k->dim[1],
                            .q_len = q->dim[2],
                            .kv_len = k->dim[2],
                            .head_dim = q->dim[3],
                            .v_dim = v->dim[3],
                            .window = window,
                            .causal = causal,
                            .masked = masked};
    ft_ref y = ft__attention(ft__graphfile_build(r), name, q->ref, k->ref, v->ref, &s, 0);
    int64_t dim[3] = {q->dim[0], q->dim[2], q->dim[1] * v->dim[3]};
    result(r, y, 3, dim);
}

static void read_conv(reader *r, const char *name)
{
    named *x = operand(r, 0);
    if (!x) return;
    if (x->dims != 4) {
        ft__graphfile_fail(r, FT_E_RANGE, "a convolution takes [n, c, h, w], got %d axes", x->dims);
        return;
    }
    ft_conv_shape s = {.n = x->dim[0], .c = x->dim[1], .h = x->dim[2], .w = x->dim[3]};
    s.k = whole(r, "k", 0, 1);
    s.r = whole(r, "r", 0, 1);
    s.s = whole(r, "s", s.r, 1);
    s.stride = whole(r, "stride", 1, 1);
    s.pad = whole(r, "pad", 0, 0);
    s.groups = whole(r, "groups", 1, 1);
    ft_bias biased = bias(r);
    if (ft__graphfile_failed(r)) return;
    if (s.c % s.groups || s.k % s.groups) {
        ft__graphfile_fail(r, FT_E_RANGE, "%lld groups do not divide %lld and %lld channels", (long long)s.groups,
                           (long long)s.c, (long long)s.k);
        return;
    }
    ft_ref y = ft__conv(ft__graphfile_build(r), name, x->ref, &s, biased);
    int64_t dim[4] = {s.n, s.k, (s.h + 2 * s.pad - s.r) / s.stride + 1, (s.w + 2 * s.pad - s.s) / s.stride + 1};
    result(r, y, 4, dim);
}

static void read_embedding(reader *r, const char *name)
{
    named *x = operand(r, 0);
    int64_t rows = whole(r, "rows", 0, 1), features = whole(r, "features", 0, 1);
    if (!x || ft__graphfile_failed(r)) return;
    const char *label = json_string_value(json_object_get(r->at, "table"));
    const named *known = label ? ft__graphfile_find(r, label) : NULL;
    if (known && (known->dims != 2 || known->dim[0] != rows || known->dim[1] != features)) {
        ft__graphfile_fail(r, FT_E_RANGE, "\"table\" names a tensor of another shape than %lld x %lld", (long long)rows,
                           (long long)features);
        return;
    }
    ft_ref table = known ? known->ref : FT_NONE;
    ft_ref y = ft__embedding(ft__graphfile_build(r), name, x->ref, rows, features, &table);
    int64_t dim[FT_GRAPHFILE_DIMS] = {0}, shape[2] = {rows, features};
    int dims = x->dims < FT_GRAPHFILE_DIMS ? x->dims + 1 : FT_GRAPHFILE_DIMS;
    memcpy(dim, x->dim, (size_t)(dims - 1) * sizeof *dim);
    dim[dims - 1] = features;
    if (label && !known) ft__graphfile_keep(r, label, table, 2, shape); /* moves the names: x is no more */
    result(r, y, dims, dim);
}

/* -- shapes ------------------------------------------------------------------------------------ */

/* Views and copies say what comes out; the number of elements decides whether that can be. */
static void read_reshaped(reader *r, const char *name)
{
    const char *op = json_string_value(json_object_get(r->at, "op"));
    named *x = operand(r, 0);
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
    if (!x || !ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    int64_t rows = ft__graphfile_rows(dims, dim), cols = dim[dims - 1];
    double had = elements(x), has = (double)rows * (double)cols;
    bool same = !strcmp(op, "view") || !strcmp(op, "transpose") || !strcmp(op, "contiguous");
    if (same ? had != has : !strcmp(op, "slice") ? has > had : has < had) {
        ft__graphfile_fail(r, FT_E_RANGE, "%s of %.0f elements cannot give %.0f", op, had, has);
        return;
    }
    ft_build *b = ft__graphfile_build(r);
    ft_ref y = !strcmp(op, "view")        ? ft__view(b, x->ref, rows, cols, ft__tensor_of(b, x->ref)->strided)
               : !strcmp(op, "transpose") ? ft__view(b, x->ref, rows, cols, true)
               : !strcmp(op, "slice")     ? ft__slice(b, x->ref, rows, cols)
               : !strcmp(op, "expand")    ? ft__expand(b, x->ref, rows, cols)
                                          : ft__copy(b, name, x->ref, rows, cols);
    result(r, y, dims, dim);
}

static void read_cat(reader *r, const char *name)
{
    ft_ref in[FT_NODE_INPUTS];
    size_t count = operands(r);
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
    double sum = 0;
    if (!ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    for (size_t i = 0; i < count || i == 0; i++) {
        const named *x = operand(r, i);
        if (!x) return;
        in[i] = x->ref;
        sum += elements(x);
    }
    int64_t rows = ft__graphfile_rows(dims, dim);
    if (sum != (double)rows * (double)dim[dims - 1]) {
        ft__graphfile_fail(r, FT_E_RANGE, "%d tensors of %.0f elements together cannot give %.0f", (int)count, sum,
                           (double)rows * (double)dim[dims - 1]);
        return;
    }
    result(r, ft__cat(ft__graphfile_build(r), name, (int)count, in, rows, dim[dims - 1]), dims, dim);
}

static void read_gather(reader *r, const char *name)
{
    named *x = operand(r, 0);
    int64_t rows = whole(r, "rows", 0, 1), dim[2] = {rows, x ? x->dim[x->dims - 1] : 1};
    if (x && !ft__graphfile_failed(r)) result(r, ft__gather(ft__graphfile_build(r), name, x->ref, rows), 2, dim);
}

static void read_reduced(reader *r, const char *name)
{
    named *x = operand(r, 0);
    int64_t dim[FT_GRAPHFILE_DIMS];
    if (!x) return;
    memcpy(dim, x->dim, sizeof dim);
    dim[x->dims - 1] = 1;
    const char *op = json_string_value(json_object_get(r->at, "op"));
    result(r, ft__reduce(ft__graphfile_build(r), name, op, x->ref), x->dims, dim);
}

static void read_loss(reader *r, const char *name)
{
    named *x = operand(r, 0);
    int64_t one[1] = {1};
    bool fp32 = truth(r, "fp32");
    if (!x || ft__graphfile_failed(r)) return;
    /* Inference has no loss: the node passes its logits on. */
    if (r->m->work->task == FT_TRAIN)
        result(r, ft__loss(ft__graphfile_build(r), name, x->ref, fp32), 1, one);
    else
        result(r, x->ref, x->dims, x->dim);
}

static void read_other(reader *r, const char *name)
{
    named *x = operand(r, 0);
    const json_t *bytes = json_object_get(r->at, "bytes"), *flops = json_object_get(r->at, "flops");
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
    if (!x || !ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    double moved = json_number_value(bytes), done = json_number_value(flops);
    if (!(moved > 0 && moved < 1e18) || (flops && !json_is_number(flops)) || !(done >= 0 && done < 1e24)) {
        ft__graphfile_fail(r, FT_E_RANGE,
                           "an operator of another kind needs \"bytes\", from 1 to 1e18, and \"flops\" if it "
                           "has any");
        return;
    }
    const char *op = json_string_value(json_object_get(r->at, "op"));
    result(
        r,
        ft__other(ft__graphfile_build(r), name, op, x->ref, ft__graphfile_rows(dims, dim), dim[dims - 1], moved, done),
        dims, dim);
}

/* -- operators that keep their operand's shape ------------------------------------------------- */

static void read_norm(reader *r, const char *name)
{
    named *x = operand(r, 0);
    ft_bias biased = bias(r);
    if (!x || ft__graphfile_failed(r)) return;
    ft_build *b = ft__graphfile_build(r);
    bool root = !strcmp(json_string_value(json_object_get(r->at, "op")), "rmsnorm");
    result(r, root ? ft__rmsnorm_fused(b, name, x->ref) : ft__layernorm(b, name, x->ref, biased), x->dims, x->dim);
}

static void read_row(reader *r, const char *name)
{
    static const char *const rows[] = {"softmax", "log_softmax", "cumsum"}; /* names that outlive the file */
    named *x = operand(r, 0);
    const char *op = json_string_value(json_object_get(r->at, "op"));
    for (size_t i = 0; x && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(op, rows[i])) {
            result(r, ft__row(ft__graphfile_build(r), name, rows[i], x->ref), x->dims, x->dim);
            return;
        }
}

static void read_dropout(reader *r, const char *name)
{
    named *x = operand(r, 0);
    const json_t *p = json_object_get(r->at, "p");
    double share = json_number_value(p);
    if (!x) return;
    if (!json_is_number(p) || !(share >= 0 && share < 1))
        ft__graphfile_fail(r, p ? FT_E_RANGE : FT_E_MISSING, "\"p\" must be a number from 0 to 1, 1 excluded");
    else
        result(r, ft__dropout(ft__graphfile_build(r), name, x->ref, share), x->dims, x->dim);
}

static void read_cast(reader *r, const char *name)
{
    named *x = operand(r, 0);
    const char *to = json_string_value(json_object_get(r->at, "to"));
    ft_dtype dtype;
    if (!x) return;
    if (!to || !ft_dtype_parse(to, &dtype))
        ft__graphfile_fail(r, FT_E_NAME, "\"to\" must name a dtype, got \"%.*s\"", to ? (int)ft__utf8_cut(to, 20) : 0,
                           to ? to : "");
    else
        result(r, ft__cast(ft__graphfile_build(r), name, x->ref, dtype), x->dims, x->dim);
}

/* Whether `small` can be repeated to the shape of `large`, axes counted from the last. */
static bool broadcasts(const named *small, const named *large)
{
    if (small->dims > large->dims) return false;
    for (int i = 1; i <= small->dims; i++) {
        int64_t s = small->dim[small->dims - i];
        if (s != 1 && s != large->dim[large->dims - i]) return false;
    }
    return true;
}

static void read_pointwise(reader *r, const char *name)
{
    const ft_pointwise_op *op =
        &ft__pointwise_ops[ft__pointwise_op_find(json_string_value(json_object_get(r->at, "op")))];
    bool two = op->inputs > 1;
    const named *x = operand(r, 0), *w = two ? operand(r, 1) : NULL;
    if (!x || (two && !w)) return;
    if (two && !broadcasts(w, x) && !broadcasts(x, w)) {
        ft__graphfile_fail(r, FT_E_RANGE,
                           "operands of %.0f and %.0f elements: one must have the result's shape, and the other equal "
                           "sizes or 1 in each of its last axes",
                           elements(x), elements(w));
        return;
    }
    ft_build *b = ft__graphfile_build(r);
    ft_ref y = two ? ft__pointwise2(b, name, op->name, x->ref, w->ref) : ft__pointwise(b, name, op->name, x->ref);
    if (two && !broadcasts(w, x)) x = w;
    result(r, y, x->dims, x->dim);
}

/* -- all of them ------------------------------------------------------------------------------- */

enum { MOST_KEYS = 7 };

typedef struct kind {
    const char *op;
    int least, most; /* operands */
    void (*read)(reader *, const char *name);
    const char *keys[MOST_KEYS]; /* beside op, name, in and out */
} kind;

static const kind kinds[] = {
    {"linear", 1, 1, read_linear, {"features", "bias", "weight"}},
    {"matmul", 2, 2, read_matmul, {"transposed"}},
    {"attention", 3, 3, read_attention, {"causal", "masked", "window"}},
    {"conv2d", 1, 1, read_conv, {"k", "r", "s", "stride", "pad", "groups", "bias"}},
    {"embedding", 1, 1, read_embedding, {"rows", "features", "table"}},
    {"view", 1, 1, read_reshaped, {"shape"}},
    {"transpose", 1, 1, read_reshaped, {"shape"}},
    {"slice", 1, 1, read_reshaped, {"shape"}},
    {"expand", 1, 1, read_reshaped, {"shape"}},
    {"contiguous", 1, 1, read_reshaped, {"shape"}},
    {"copy", 1, 1, read_reshaped, {"shape"}},
    {"cat", 1, FT_NODE_INPUTS, read_cat, {"shape"}},
    {"gather", 1, 2, read_gather, {"rows"}},
    {"sum", 1, 1, read_reduced, {NULL}},
    {"mean", 1, 1, read_reduced, {NULL}},
    {"cross_entropy", 1, 2, read_loss, {"fp32"}},
    {"softmax", 1, 1, read_row, {NULL}},
    {"log_softmax", 1, 1, read_row, {NULL}},
    {"cumsum", 1, 1, read_row, {NULL}},
    {"layernorm", 1, 1, read_norm, {"bias"}},
    {"rmsnorm", 1, 1, read_norm, {NULL}},
    {"dropout", 1, 1, read_dropout, {"p"}},
    {"cast", 1, 1, read_cast, {"to"}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* False after an error: an operator that nobody knows. */
static bool find_kind(reader *r, const char *op, kind *out)
{
    static const kind other = {"", 1, FT_NODE_INPUTS, read_other, {"bytes", "flops", "shape"}};
    for (size_t i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].op, op)) {
            *out = kinds[i];
            return true;
        }
    int pointwise = ft__pointwise_op_find(op);
    if (pointwise >= 0) {
        int count = ft__pointwise_ops[pointwise].inputs > 1 ? 2 : 1;
        *out = (kind){op, count, count, read_pointwise, {NULL}};
        return true;
    }
    *out = other;
    if (json_object_get(r->at, "bytes")) return true;
    const char *known[KINDS + 6] = {"add", "mul", "gelu", "silu", "relu", "cos"};
    for (size_t i = 0; i < KINDS; i++) known[6 + i] = kinds[i].op;
    const char *near = ft__nearest(op, known, sizeof known / sizeof *known);
    ft__graphfile_fail(
        r, FT_E_NAME, "unknown operator \"%.*s\"%s%s%s one that is really new needs \"bytes\" and \"shape\"",
        (int)ft__utf8_cut(op, 40), op, near ? "; did you mean \"" : ";", near ? near : "", near ? "\"?" : "");
    return false;
}

void ft__graphfile_node(reader *r)
{
    const char *op = json_string_value(json_object_get(r->at, "op")), *name;
    kind k;
    if (!op) {
        ft__graphfile_fail(r, FT_E_MISSING, "\"op\" must name the operator");
        return;
    }
    if (!find_kind(r, op, &k)) return;
    const char *known[4 + MOST_KEYS] = {"op", "name", "in", "out"};
    size_t count = 4;
    for (int i = 0; i < MOST_KEYS && k.keys[i]; i++) known[count++] = k.keys[i];
    ft_error err = {0};
    if (ft__json_known_keys(r->at, known, count, "", &err) != FT_OK) {
        ft__graphfile_fail(r, err.code, "%s", err.message);
        return;
    }
    if (operands(r) > (size_t)k.most) {
        ft__graphfile_fail(r, FT_E_RANGE, "it takes %d operands at most, got %d", k.most, (int)operands(r));
        return;
    }
    /* Those that an operator only reads (labels, indices) must be there too. */
    for (size_t i = 0; i < operands(r) || i < (size_t)k.least; i++)
        if (!operand(r, i)) return;
    name = json_string_value(json_object_get(r->at, "name"));
    k.read(r, ft__graphfile_text(r, name ? name : op));
}
