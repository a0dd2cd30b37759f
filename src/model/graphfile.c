/* graphfile.c: from a graph file to a graph.
 *
 * The file is a list of blocks, each a list of nodes in the order in which they run. A node names its operands, which
 * must have been made before it: a cycle cannot be written, and a name nobody made is an error with the nearest one.
 * Sizes are whole numbers or products with "batch" and "seq", so that one file serves every batch size. */
#include "model/graphfile.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "graph/emit.h"

enum { MOST_DIMS = 8, MOST_NAMES = 1 << 16 };

/* A name and the tensor behind it, with the shape that the file means. */
typedef struct named {
    const char *name;
    ft_ref ref;
    int dims;
    int64_t dim[MOST_DIMS];
} named;

typedef struct reader {
    ft_maker *m;
    named *names;
    int32_t count, room;
    const char *block;
    int32_t node; /* number of the node being read, for messages */
    const json_t *at;
} reader;

static ft_build *builder(reader *r) { return &r->m->b; }
static bool failed(reader *r) { return r->m->b.status != FT_OK; }

static const char *node_name(const reader *r)
{
    const char *name = json_string_value(json_object_get(r->at, "name"));
    return name ? name : json_string_value(json_object_get(r->at, "op"));
}

#define COMPLAIN(r, code, format, ...)                                                                             \
    ft__build_fail(builder(r), code, "block \"%.40s\", node %d (%.40s): " format, (r)->block, (int)(r)->node + 1, \
                   node_name(r) ? node_name(r) : "?", __VA_ARGS__)

/* -- names ------------------------------------------------------------------------------------- */

static named *find(reader *r, const char *name)
{
    for (int32_t i = r->count - 1; i >= 0; i--) /* the latest of that name: blocks may use the same ones */
        if (!strcmp(r->names[i].name, name)) return &r->names[i];
    return NULL;
}

static void keep(reader *r, const char *name, ft_ref ref, int dims, const int64_t *dim)
{
    if (failed(r) || ref == FT_NONE) return;
    if (r->count == r->room) {
        int32_t room = r->room ? 2 * r->room : 128;
        named *fresh = room <= MOST_NAMES ? ft__arena_array(builder(r)->g->arena, (size_t)room, sizeof *fresh) : NULL;
        if (!fresh) {
            ft__build_fail(builder(r), FT_E_MEMORY, "a graph of more than %d tensors", MOST_NAMES);
            return;
        }
        if (r->count) memcpy(fresh, r->names, (size_t)r->count * sizeof *fresh);
        r->names = fresh;
        r->room = room;
    }
    named *n = &r->names[r->count++];
    *n = (named){.name = name, .ref = ref, .dims = dims};
    memcpy(n->dim, dim, (size_t)dims * sizeof *dim);
}

static named *operand(reader *r, size_t index)
{
    const json_t *in = json_object_get(r->at, "in");
    const char *name = json_string_value(json_is_string(in) && index == 0 ? in : json_array_get(in, index));
    if (failed(r)) return NULL;
    if (!name) {
        COMPLAIN(r, FT_E_MISSING, "operand %d is missing in \"in\"", (int)index + 1);
        return NULL;
    }
    named *n = find(r, name);
    if (n) return n;
    const char **all = malloc(((size_t)r->count + 1) * sizeof *all), *near = NULL;
    for (int32_t i = 0; all && i < r->count; i++) all[i] = r->names[i].name;
    if (all) near = ft__nearest(name, all, (size_t)r->count);
    COMPLAIN(r, FT_E_NAME, "\"%.60s\" was not made before%s%.60s%s", name, near ? "; did you mean \"" : "",
             near ? near : "", near ? "\"?" : "");
    free((void *)(uintptr_t)all);
    return NULL;
}

static size_t operands(const reader *r)
{
    const json_t *in = json_object_get(r->at, "in");
    return json_is_string(in) ? 1 : json_array_size(in);
}

/* -- sizes ------------------------------------------------------------------------------------- */

/* 4096, "batch", "batch*seq", "2*batch". */
static bool size_of(const reader *r, const json_t *value, int64_t *out)
{
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return *out >= 1 && *out <= (int64_t)1 << 40;
    }
    const char *s = json_string_value(value);
    if (!s || !*s) return false;
    double product = 1;
    while (*s) {
        size_t n = strcspn(s, "*");
        char word[24];
        int64_t factor = 0;
        if (n == 0 || n >= sizeof word) return false;
        memcpy(word, s, n);
        word[n] = 0;
        if (!strcmp(word, "batch"))
            factor = r->m->work->batch;
        else if (!strcmp(word, "seq"))
            factor = r->m->work->seq;
        else if (!ft__whole_parse(word, &factor))
            return false;
        product *= (double)factor;
        s += n + (s[n] == '*');
    }
    if (!(product >= 1 && product <= 1099511627776.0)) return false;
    *out = (int64_t)product;
    return true;
}

static bool shape_of(reader *r, const json_t *value, const char *key, int *dims, int64_t *dim)
{
    size_t n = json_array_size(value);
    bool good = json_is_array(value) && n >= 1 && n <= MOST_DIMS;
    for (size_t i = 0; good && i < n; i++) good = size_of(r, json_array_get(value, i), &dim[i]);
    *dims = (int)n;
    if (!good)
        COMPLAIN(r, FT_E_TYPE,
                 "\"%s\" must be a list of 1 to %d sizes: whole numbers, \"batch\", \"seq\" or products of them", key,
                 MOST_DIMS);
    return good;
}

static int64_t whole(reader *r, const char *key, int64_t otherwise, int64_t low)
{
    const json_t *value = json_object_get(r->at, key);
    int64_t n = otherwise;
    if (failed(r) || (!value && otherwise >= low)) return otherwise;
    if (!value || !size_of(r, value, &n)) {
        if (value && json_is_integer(value) && json_integer_value(value) == 0 && low == 0) return 0;
        COMPLAIN(r, value ? FT_E_TYPE : FT_E_MISSING, "\"%s\" must be a whole number of at least %lld", key,
                 (long long)low);
        return low > 0 ? low : 1;
    }
    return n;
}

static bool truth(const reader *r, const char *key) { return json_is_true(json_object_get(r->at, key)); }

static int64_t rows_of(int dims, const int64_t *dim)
{
    double rows = 1;
    for (int i = 0; i + 1 < dims; i++) rows *= (double)dim[i];
    return rows > 4e18 ? 0 : (int64_t)rows; /* 0 is refused where a tensor is made */
}

/* -- operators --------------------------------------------------------------------------------- */

static void result(reader *r, ft_ref ref, int dims, const int64_t *dim)
{
    const json_t *out = json_object_get(r->at, "out");
    const char *name = json_string_value(json_is_array(out) ? json_array_get(out, 0) : out);
    if (failed(r)) return;
    if (!name) {
        COMPLAIN(r, FT_E_MISSING, "\"out\" must name the %s", "result");
        return;
    }
    keep(r, name, ref, dims, dim);
}

static void read_linear(reader *r, const char *name)
{
    named *x = operand(r, 0);
    int64_t features = whole(r, "features", 0, 1);
    const char *tied = json_string_value(json_object_get(r->at, "weight"));
    if (failed(r) || !x) return;
    ft_ref y;
    if (tied) {
        named *w = find(r, tied);
        if (!w) {
            COMPLAIN(r, FT_E_NAME, "no parameter \"%.60s\" was made before", tied);
            return;
        }
        ft_ref bias = truth(r, "bias") ? ft__parameter(builder(r), "bias", 1, features) : FT_NONE;
        y = ft__linear_with(builder(r), name, x->ref, w->ref, features, bias, FT_WHOLE);
    } else {
        y = ft__linear(builder(r), name, x->ref, features, truth(r, "bias") ? FT_BIAS : FT_NO_BIAS, FT_WHOLE);
    }
    int64_t dim[MOST_DIMS];
    memcpy(dim, x->dim, sizeof dim);
    dim[x->dims - 1] = features;
    result(r, y, x->dims, dim);
}

/* [..., m, k] x [..., k, n]; "transposed": the second is [..., n, k]. */
static void read_matmul(reader *r, const char *name)
{
    named *a = operand(r, 0), *c = operand(r, 1);
    if (!a || !c) return;
    bool across = truth(r, "transposed");
    if (a->dims < 2 || c->dims < 2) {
        COMPLAIN(r, FT_E_RANGE, "a product needs two axes of each operand, got %d and %d", a->dims, c->dims);
        return;
    }
    int64_t m = a->dim[a->dims - 2], k = a->dim[a->dims - 1];
    int64_t inner = c->dim[c->dims - (across ? 1 : 2)], n = c->dim[c->dims - (across ? 2 : 1)];
    if (k != inner) {
        COMPLAIN(r, FT_E_RANGE, "the operands' inner sizes differ: %lld and %lld", (long long)k, (long long)inner);
        return;
    }
    double batch = (double)rows_of(a->dims, a->dim) / (double)m;
    ft_ref y = ft__matmul(builder(r), name, a->ref, c->ref, (int64_t)batch, m, n, k, across ? "nt" : "nn");
    int64_t dim[MOST_DIMS];
    memcpy(dim, a->dim, sizeof dim);
    dim[a->dims - 1] = n;
    result(r, y, a->dims, dim);
}

/* q, k, v as [batch, heads, length, dim]. */
static void read_attention(reader *r, const char *name)
{
    named *q = operand(r, 0), *k = operand(r, 1), *v = operand(r, 2);
    if (!q || !k || !v) return;
    if (q->dims != 4 || k->dims != 4 || v->dims != 4 || k->dim[2] != v->dim[2] || q->dim[3] != k->dim[3] ||
        k->dim[1] < 1 || q->dim[1] % k->dim[1]) {
        COMPLAIN(r, FT_E_RANGE,
                 "attention takes q, k, v as [batch, heads, length, dim]: equal dims, equal lengths of k and v, and "
                 "%lld query heads in groups of %lld",
                 (long long)q->dim[1], (long long)k->dim[1]);
        return;
    }
    ft_attention_shape s = {.batch = q->dim[0],
                            .heads = q->dim[1],
                            .kv_heads = k->dim[1],
                            .q_len = q->dim[2],
                            .kv_len = k->dim[2],
                            .head_dim = q->dim[3],
                            .v_dim = v->dim[3],
                            .window = whole(r, "window", 0, 0),
                            .causal = truth(r, "causal"),
                            .masked = truth(r, "masked")};
    ft_ref y = ft__attention(builder(r), name, q->ref, k->ref, v->ref, &s, 0);
    int64_t dim[3] = {q->dim[0], q->dim[2], q->dim[1] * v->dim[3]};
    result(r, y, 3, dim);
}

static void read_conv(reader *r, const char *name)
{
    named *x = operand(r, 0);
    if (!x) return;
    if (x->dims != 4) {
        COMPLAIN(r, FT_E_RANGE, "a convolution takes [n, c, h, w], got %d axes", x->dims);
        return;
    }
    ft_conv_shape s = {.n = x->dim[0], .c = x->dim[1], .h = x->dim[2], .w = x->dim[3]};
    s.k = whole(r, "k", 0, 1);
    s.r = whole(r, "r", 0, 1);
    s.s = whole(r, "s", s.r, 1);
    s.stride = whole(r, "stride", 1, 1);
    s.pad = whole(r, "pad", 0, 0);
    s.groups = whole(r, "groups", 1, 1);
    if (failed(r)) return;
    if (s.c % s.groups || s.k % s.groups) {
        COMPLAIN(r, FT_E_RANGE, "%lld groups do not divide %lld and %lld channels", (long long)s.groups,
                 (long long)s.c, (long long)s.k);
        return;
    }
    ft_ref y = ft__conv(builder(r), name, x->ref, &s, truth(r, "bias") ? FT_BIAS : FT_NO_BIAS);
    int64_t dim[4] = {s.n, s.k, (s.h + 2 * s.pad - s.r) / s.stride + 1, (s.w + 2 * s.pad - s.s) / s.stride + 1};
    result(r, y, 4, dim);
}

static void read_embedding(reader *r, const char *name)
{
    named *x = operand(r, 0);
    int64_t rows = whole(r, "rows", 0, 1), features = whole(r, "features", 0, 1);
    if (!x || failed(r)) return;
    const char *label = json_string_value(json_object_get(r->at, "table"));
    named *known = label ? find(r, label) : NULL;
    ft_ref table = known ? known->ref : FT_NONE;
    ft_ref y = ft__embedding(builder(r), name, x->ref, rows, features, &table);
    int64_t dim[MOST_DIMS] = {0}, shape[2] = {rows, features};
    if (label && !known) keep(r, label, table, 2, shape);
    int dims = x->dims < MOST_DIMS ? x->dims + 1 : MOST_DIMS;
    memcpy(dim, x->dim, (size_t)(dims - 1) * sizeof *dim);
    dim[dims - 1] = features;
    result(r, y, dims, dim);
}

/* Views and copies say what comes out; the number of elements decides whether that can be. */
static void read_reshaped(reader *r, const char *name, const char *op)
{
    named *x = operand(r, 0);
    int dims;
    int64_t dim[MOST_DIMS];
    if (!x || !shape_of(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    int64_t rows = rows_of(dims, dim), cols = dim[dims - 1];
    double had = (double)rows_of(x->dims, x->dim) * (double)x->dim[x->dims - 1], has = (double)rows * (double)cols;
    bool same = !strcmp(op, "view") || !strcmp(op, "transpose") || !strcmp(op, "contiguous");
    if (same ? had != has : !strcmp(op, "slice") ? has > had : has < had) {
        COMPLAIN(r, FT_E_RANGE, "%s of %.0f elements cannot give %.0f", op, had, has);
        return;
    }
    ft_build *b = builder(r);
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
    int64_t dim[MOST_DIMS];
    if (!shape_of(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    if (count < 1 || count > FT_NODE_INPUTS) {
        COMPLAIN(r, FT_E_RANGE, "1 to %d tensors can be concatenated at once, got %d", FT_NODE_INPUTS, (int)count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        named *x = operand(r, i);
        if (!x) return;
        in[i] = x->ref;
    }
    result(r, ft__cat(builder(r), name, (int)count, in, rows_of(dims, dim), dim[dims - 1]), dims, dim);
}

static void read_other(reader *r, const char *name, const char *op)
{
    named *x = operand(r, 0);
    int dims;
    int64_t dim[MOST_DIMS];
    double bytes = json_number_value(json_object_get(r->at, "bytes")), flops = json_number_value(json_object_get(r->at, "flops"));
    if (!x || !shape_of(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    if (!(bytes > 0 && bytes < 1e18) || !(flops >= 0 && flops < 1e24)) {
        COMPLAIN(r, FT_E_RANGE, "an operator of another kind (\"%.40s\") needs \"bytes\", and \"flops\" if it has any",
                 op);
        return;
    }
    result(r, ft__other(builder(r), name, op, x->ref, rows_of(dims, dim), dim[dims - 1], bytes, flops), dims, dim);
}

/* Operators that keep their first operand's shape. */
static bool read_alike(reader *r, const char *name, const char *op)
{
    ft_build *b = builder(r);
    bool pointwise = ft__pointwise_op_find(op) >= 0;
    static const char *const rows[] = {"softmax", "log_softmax", "layernorm", "rmsnorm", "dropout", "cast", "cumsum"};
    bool along = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) along |= !strcmp(op, rows[i]);
    if (!pointwise && !along) return false;
    named *x = operand(r, 0), *w = operands(r) > 1 ? operand(r, 1) : NULL;
    if (!x || failed(r)) return true;
    ft_ref y = FT_NONE;
    if (!strcmp(op, "layernorm")) {
        y = ft__layernorm(b, name, x->ref, truth(r, "bias") ? FT_BIAS : FT_NO_BIAS);
    } else if (!strcmp(op, "rmsnorm")) {
        y = ft__rmsnorm_fused(b, name, x->ref);
    } else if (!strcmp(op, "dropout")) {
        double p = json_number_value(json_object_get(r->at, "p"));
        if (!(p >= 0 && p < 1))
            COMPLAIN(r, FT_E_RANGE, "\"p\" must be from 0 to 1, got %g", p);
        else
            y = ft__dropout(b, name, x->ref, p);
    } else if (!strcmp(op, "cast")) {
        const char *to = json_string_value(json_object_get(r->at, "to"));
        ft_dtype dtype;
        if (!to || !ft_dtype_parse(to, &dtype))
            COMPLAIN(r, FT_E_NAME, "\"to\" must name a dtype, got \"%.20s\"", to ? to : "");
        else
            y = ft__cast(b, name, x->ref, dtype);
    } else if (along) {
        y = ft__row(b, name, !strcmp(op, "softmax") ? "softmax" : !strcmp(op, "cumsum") ? "cumsum" : "log_softmax", x->ref);
    } else {
        const char *known = ft__pointwise_ops[ft__pointwise_op_find(op)].name;
        y = w ? ft__pointwise2(b, name, known, x->ref, w->ref) : ft__pointwise(b, name, known, x->ref);
        if (w && ft__tensor_numel(ft__tensor_of(b, w->ref)) > ft__tensor_numel(ft__tensor_of(b, x->ref))) x = w;
    }
    result(r, y, x->dims, x->dim);
    return true;
}

static void read_reduced(reader *r, const char *name, const char *op)
{
    named *x = operand(r, 0);
    if (!x) return;
    int64_t dim[MOST_DIMS];
    memcpy(dim, x->dim, sizeof dim);
    dim[x->dims - 1] = 1;
    result(r, ft__reduce(builder(r), name, op, x->ref), x->dims, dim);
}

static void read_node(reader *r)
{
    const char *op = json_string_value(json_object_get(r->at, "op"));
    static const char *const known[] = {"linear", "matmul", "attention", "conv2d",     "embedding", "cat",
                                        "view",   "slice",  "expand",    "transpose",  "copy",      "contiguous",
                                        "sum",    "mean",   "gather",    "cross_entropy", "softmax", "layernorm",
                                        "rmsnorm", "dropout", "cast",    "add",        "mul",       "gelu", "silu", "relu"};
    if (!op) {
        COMPLAIN(r, FT_E_MISSING, "\"%s\" is missing", "op");
        return;
    }
    const char *name = node_name(r);
    if (!strcmp(op, "linear")) read_linear(r, name);
    else if (!strcmp(op, "matmul")) read_matmul(r, name);
    else if (!strcmp(op, "attention")) read_attention(r, name);
    else if (!strcmp(op, "conv2d")) read_conv(r, name);
    else if (!strcmp(op, "embedding")) read_embedding(r, name);
    else if (!strcmp(op, "cat")) read_cat(r, name);
    else if (!strcmp(op, "view") || !strcmp(op, "slice") || !strcmp(op, "expand") || !strcmp(op, "transpose") ||
             !strcmp(op, "copy") || !strcmp(op, "contiguous"))
        read_reshaped(r, name, op);
    else if (!strcmp(op, "sum") || !strcmp(op, "mean")) read_reduced(r, name, op);
    else if (!strcmp(op, "gather")) {
        named *x = operand(r, 0);
        int64_t rows = whole(r, "rows", 0, 1), dim[2] = {rows, x ? x->dim[x->dims - 1] : 1};
        if (x && !failed(r)) result(r, ft__gather(builder(r), name, x->ref, rows), 2, dim);
    } else if (!strcmp(op, "cross_entropy")) {
        named *x = operand(r, 0);
        int64_t one[1] = {1};
        if (!x) return;
        /* Inference has no loss: the node passes its logits on. */
        if (r->m->work->task == FT_TRAIN) result(r, ft__loss(builder(r), name, x->ref, truth(r, "fp32")), 1, one);
        else result(r, x->ref, x->dims, x->dim);
    } else if (!read_alike(r, name, op)) {
        if (json_object_get(r->at, "bytes")) {
            read_other(r, name, op);
            return;
        }
        const char *near = ft__nearest(op, known, sizeof known / sizeof *known);
        COMPLAIN(r, FT_E_NAME, "unknown operator \"%.40s\"%s%s%s; one that is really new needs \"bytes\" and \"shape\"",
                 op, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
}

/* -- the whole --------------------------------------------------------------------------------- */

static void read_inputs(reader *r, const json_t *inputs)
{
    const char *name;
    json_t *value;
    r->block = "inputs";
    json_object_foreach((json_t *)(uintptr_t)inputs, name, value)
    {
        int dims;
        int64_t dim[MOST_DIMS];
        const char *type = json_string_value(json_object_get(value, "dtype"));
        ft_dtype dtype = builder(r)->stored;
        double bytes = ft_dtype_bytes(dtype);
        r->at = value;
        if (!shape_of(r, json_object_get(value, "shape"), name, &dims, dim)) return;
        if (type && !strncmp(type, "int", 3) && strcmp(type, "int8"))
            bytes = strcmp(type, "int32") ? 8 : 4;
        else if (type && !strcmp(type, "bool"))
            bytes = 1;
        else if (type && ft_dtype_parse(type, &dtype))
            bytes = ft_dtype_bytes(dtype);
        else if (type) {
            ft__build_fail(builder(r), FT_E_NAME, "input \"%.60s\": unknown dtype \"%.20s\"", name, type);
            return;
        }
        ft_ref x = ft__input(builder(r), rows_of(dims, dim), dim[dims - 1], bytes);
        keep(r, name, x, dims, dim);
        r->node++;
    }
}

static void read_block(reader *r, const json_t *block, bool last)
{
    ft_build *b = builder(r);
    const char *in = json_string_value(json_object_get(block, "in"));
    const char *out = json_string_value(json_object_get(block, "out"));
    const json_t *nodes = json_object_get(block, "nodes");
    r->at = block;
    r->node = 0;
    int64_t repeat = whole(r, "repeat", 1, 1);
    if (failed(r)) return;
    if (!json_is_array(nodes) || !json_array_size(nodes) || !out) {
        ft__build_fail(b, FT_E_MISSING, "block \"%.40s\" needs \"nodes\", a list, and \"out\", the name of its result",
                       r->block);
        return;
    }
    named *carry = in ? find(r, in) : NULL;
    if (in && !carry) {
        ft__build_fail(b, FT_E_NAME, "block \"%.40s\": its input \"%.60s\" was not made before", r->block, in);
        return;
    }
    if (repeat > 1 && !in) {
        ft__build_fail(b, FT_E_MISSING, "block \"%.40s\" repeats: it needs \"in\", what walks from one iteration to the "
                                        "next",
                       r->block);
        return;
    }
    named from = carry ? *carry : (named){0};
    /* Inputs of the whole graph are read where they are; what blocks made is carried. */
    bool carried = carry && ft__tensor_of(b, carry->ref)->role != FT_INPUT;
    ft_ref x = ft__block_open(b, r->block, repeat, carried || repeat > 1 ? (carry ? carry->ref : FT_NONE) : FT_NONE);
    if (x != FT_NONE) keep(r, from.name, x, from.dims, from.dim);
    for (size_t i = 0; i < json_array_size(nodes) && !failed(r); i++) {
        r->at = json_array_get(nodes, i);
        r->node = (int32_t)i;
        if (!json_is_object(r->at))
            ft__build_fail(b, FT_E_TYPE, "block \"%.40s\", node %d must be an object", r->block, (int)i + 1);
        else
            read_node(r);
    }
    named *made = failed(r) ? NULL : find(r, out);
    if (failed(r)) return;
    if (!made) {
        ft__build_fail(b, FT_E_NAME, "block \"%.40s\": its result \"%.60s\" is made by none of its nodes", r->block, out);
        return;
    }
    const ft_tensor *y = ft__tensor_of(b, made->ref), *start = ft__tensor_of(b, from.ref);
    if (repeat > 1 && ft__tensor_numel(y) != ft__tensor_numel(start)) {
        ft__build_fail(b, FT_E_RANGE, "block \"%.40s\" repeats, but its result has %.0f elements and its input %.0f",
                       r->block, ft__tensor_numel(y), ft__tensor_numel(start));
        return;
    }
    (void)last;
    ft__block_close(b, made->ref);
}

void ft__make_custom(ft_maker *m)
{
    const json_t *file = m->arch->graph, *blocks = json_object_get(file, "blocks");
    reader r = {.m = m, .at = file, .block = ""};
    if (m->work->task == FT_DECODE || m->work->task == FT_PREFILL) {
        ft__build_fail(&m->b, FT_E_UNSUPPORTED, "a graph file has no cache: it takes the tasks train and forward");
        return;
    }
    read_inputs(&r, json_object_get(file, "inputs"));
    for (size_t i = 0; i < json_array_size(blocks) && m->b.status == FT_OK; i++) {
        const json_t *block = json_array_get(blocks, i);
        const char *name = json_string_value(json_object_get(block, "name"));
        r.block = name ? name : "block";
        read_block(&r, block, i + 1 == json_array_size(blocks));
    }
}

bool ft__graphfile_is(const json_t *object) { return json_object_get(object, "foretell_graph") != NULL; }

ft_status ft__graphfile_read(const json_t *object, const char *where, ft_arch *out, ft_error *err)
{
    int64_t version = 0;
    static const char *const keys[] = {"foretell_graph", "name", "inputs", "blocks", "source"};
    FT_TRY(ft__json_known_keys(object, keys, sizeof keys / sizeof *keys, where, err));
    FT_TRY(ft__json_whole(object, "foretell_graph", FT_REQUIRED, 1, 1, &version, where, err));
    const json_t *blocks = json_object_get(object, "blocks");
    if (!json_is_object(json_object_get(object, "inputs")) || !json_is_array(blocks) || !json_array_size(blocks))
        return ft__fail_at(err, FT_E_MISSING, where, 0, 0,
                           "a graph file needs \"inputs\", an object of shapes, and \"blocks\", a list");
    memset(out, 0, sizeof *out);
    out->model_type = "graph";
    out->design = FT_CUSTOM;
    out->graph = json_incref((json_t *)(uintptr_t)object); /* Jansson counts references inside the value */
    out->layers = (int64_t)json_array_size(blocks);
    return FT_OK;
}

void ft__arch_release(ft_arch *arch)
{
    json_decref(arch->graph);
    arch->graph = NULL;
}
