/* run.c: values while the graph is built: shapes, contents, and where their memory is. */
#include "import/onnx/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "import/site.h"

void ft__onnx_fail(ft_onnx_run *r, ft_status code, const char *format, ...)
{
    char message[160];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    const char *name = r->at ? r->at->name : "?", *op = r->at ? r->at->op : "?";
    ft__build_fail(r->b, code, "node \"%.*s\" (%.*s): %.*s", (int)ft__utf8_cut(name, 50), name,
                   (int)ft__utf8_cut(op, 30), op, (int)ft__utf8_cut(message, 150), message);
}

/* -- values ---------------------------------------------------------------------------------------- */

ft_onnx_item *ft__onnx_optional(ft_onnx_run *r, int k)
{
    return k < r->at->in_count && r->at->in[k] >= 0 ? &r->items[r->at->in[k]] : NULL;
}

ft_onnx_item *ft__onnx_operand(ft_onnx_run *r, int k)
{
    ft_onnx_item *x = ft__onnx_optional(r, k);
    if (ft__onnx_failed(r)) return NULL;
    if (!x) ft__onnx_fail(r, FT_E_MISSING, "operand %d is missing", k + 1);
    return x;
}

double ft__onnx_count(const ft_onnx_item *x)
{
    double count = 1;
    for (int i = 0; i < x->dims; i++) count *= (double)x->dim[i];
    return count;
}

bool ft__onnx_same(const ft_onnx_item *x, int dims, const int64_t *dim)
{
    return x->dims == dims && (!dims || !memcmp(x->dim, dim, (size_t)dims * sizeof *dim));
}

bool ft__onnx_has(const ft_onnx_run *r, int k)
{
    if (k >= r->at->out_count || r->at->out[k] < 0) return false;
    const ft_onnx_value *v = &r->o->values[r->at->out[k]];
    return v->readers > 0 || v->output;
}

ft_onnx_item *ft__onnx_result(ft_onnx_run *r, int k, int type, int dims, const int64_t *dim)
{
    if (ft__onnx_failed(r)) return NULL;
    ft_onnx_item *y = k < r->at->out_count && r->at->out[k] >= 0 ? &r->items[r->at->out[k]] : &r->nowhere;
    double count = 1;
    if (dims > FT_ONNX_DIMS) {
        ft__onnx_fail(r, FT_E_UNSUPPORTED, "a result of %d axes: at most %d are read", dims, FT_ONNX_DIMS);
        return NULL;
    }
    *y = (ft_onnx_item){.kind = FT_ONNX_MADE, .type = type, .dims = dims, .ref = FT_NONE, .source = -1};
    for (int i = 0; i < dims; i++) {
        y->dim[i] = dim[i];
        y->order[i] = (uint8_t)i;
        count *= (double)dim[i];
        if (dim[i] < 0 || dim[i] > (int64_t)1 << 40) {
            ft__onnx_fail(r, FT_E_RANGE, "its result would have a size of %lld", (long long)dim[i]);
            return NULL;
        }
    }
    if (count > 1e15) {
        ft__onnx_fail(r, FT_E_RANGE, "a result of %.3g elements is too large for any machine", count);
        return NULL;
    }
    return y;
}

ft_onnx_item *ft__onnx_like(ft_onnx_run *r, int k, const ft_onnx_item *x, int type)
{
    ft_onnx_item from = *x;
    ft_onnx_item *y = ft__onnx_result(r, k, type, from.dims, from.dim);
    if (y) memcpy(y->order, from.order, sizeof y->order);
    return y;
}

void ft__onnx_pass(ft_onnx_run *r, int k, const ft_onnx_item *x)
{
    if (ft__onnx_failed(r) || k >= r->at->out_count || r->at->out[k] < 0) return;
    r->items[r->at->out[k]] = *x;
    r->items[r->at->out[k]].biased = r->items[r->at->out[k]].half = false;
    r->items[r->at->out[k]].raised = 0;
}

int ft__onnx_axis(ft_onnx_run *r, int64_t axis, int dims)
{
    if (axis >= -dims && axis < dims) return (int)(axis < 0 ? axis + dims : axis);
    ft__onnx_fail(r, FT_E_RANGE, "axis %lld of a tensor of %d axes", (long long)axis, dims);
    return -1;
}

void ft__onnx_unknown(ft_onnx_run *r, const char *why)
{
    int dims;
    int64_t dim[FT_ONNX_DIMS];
    r->deferred = r->at->out_count > 0 && r->at->out[0] >= 0 && ft__onnx_declared(r, r->at->out[0], &dims, dim);
    if (!r->deferred)
        ft__onnx_fail(r, FT_E_UNSUPPORTED, "%s depends on what is computed: it must be known beforehand", why);
}

bool ft__onnx_numbers(ft_onnx_run *r, const ft_onnx_item *x, const char *why, int *count, int64_t *out)
{
    double n = ft__onnx_count(x);
    if (ft__onnx_failed(r)) return false;
    if (!x->known || n > FT_ONNX_KNOWN) {
        ft__onnx_unknown(r, why);
        return false;
    }
    *count = (int)n;
    for (int i = 0; i < *count; i++) out[i] = x->known[i].i;
    return true;
}

int ft__onnx_axes(ft_onnx_run *r, int operand, int dims, int *axes)
{
    int64_t given[FT_ONNX_KNOWN];
    int count = ft__onnx_ints(r->at, "axes", FT_ONNX_DIMS, given);
    ft_onnx_item *x = count ? NULL : ft__onnx_optional(r, operand);
    if (x && !ft__onnx_numbers(r, x, "which axes", &count, given)) return -1;
    if (count > FT_ONNX_DIMS) {
        ft__onnx_fail(r, FT_E_RANGE, "%d axes", count);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        axes[i] = ft__onnx_axis(r, given[i], dims);
        if (axes[i] < 0) return -1;
        for (int k = 0; k < i; k++)
            if (axes[k] == axes[i]) {
                ft__onnx_fail(r, FT_E_RANGE, "axis %lld is given twice", (long long)given[i]);
                return -1;
            }
    }
    return count;
}

int ft__onnx_broadcast(ft_onnx_run *r, int count, ft_onnx_item *const *x, int64_t *dim)
{
    int dims = 0;
    for (int i = 0; i < count; i++)
        if (x[i]->dims > dims) dims = x[i]->dims;
    for (int i = 0; i < dims; i++) dim[i] = 1;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < x[k]->dims; i++) {
            int64_t *to = &dim[dims - x[k]->dims + i], from = x[k]->dim[i];
            if (from == 1 || from == *to) continue;
            if (*to != 1) {
                ft__onnx_fail(r, FT_E_RANGE, "operands whose sizes are %lld and %lld along one axis do not go together",
                              (long long)*to, (long long)from);
                return -1;
            }
            *to = from;
        }
    return dims;
}

/* -- memory ---------------------------------------------------------------------------------------- */

bool ft__onnx_lies(const ft_onnx_item *x, const uint8_t *order)
{
    int a = 0, b = 0;
    for (;;) {
        while (a < x->dims && x->dim[x->order[a]] == 1) a++;
        while (b < x->dims && x->dim[order[b]] == 1) b++;
        if (a == x->dims || b == x->dims) return a == b;
        if (x->order[a++] != order[b++]) return false;
    }
}

static const uint8_t in_order[FT_ONNX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint8_t channels_last[3][FT_ONNX_DIMS] = {{0, 2, 1}, {0, 2, 3, 1}, {0, 2, 3, 4, 1}};

bool ft__onnx_plain(const ft_onnx_item *x) { return !x->gaps && ft__onnx_lies(x, in_order); }

/* Images that lie channels-last are rows of channels; anything else has its last axis as columns. */
void ft__onnx_extent(const ft_onnx_item *x, int64_t *rows, int64_t *cols, bool *strided)
{
    bool plain = ft__onnx_plain(x);
    bool picture = !plain && !x->gaps && x->dims >= 3 && x->dims <= 5 && ft__onnx_lies(x, channels_last[x->dims - 3]);
    double count = ft__onnx_count(x);
    *cols = picture ? x->dim[1] : x->dims ? x->dim[x->dims - 1] : 1;
    if (*cols < 1) *cols = 1;
    *rows = (int64_t)(count / (double)*cols);
    if (*rows < 1) *rows = 1;
    *strided = !plain && !picture;
}

ft_dtype ft__onnx_dtype(const ft_onnx_run *r, int type, double *bytes)
{
    ft_dtype stored = r->b->stored;
    *bytes = ft__onnx_type_bytes(type) > 0 ? ft__onnx_type_bytes(type) : 8;
    if (!ft__onnx_type_floats(type)) return stored;
    /* Most weights' format is what the request's dtype replaces; a wider one beside it is meant. */
    if (type != r->o->main_float) {
        if (type == FT_ONNX_DOUBLE) stored = FT_FP64;
        if (type == FT_ONNX_FLOAT && r->o->main_float != FT_ONNX_DOUBLE) stored = FT_FP32;
        if (type == FT_ONNX_FLOAT16 && ft_dtype_bytes(stored) > 2) stored = FT_FP16;
        if (type == FT_ONNX_BFLOAT16 && ft_dtype_bytes(stored) > 2) stored = FT_BF16;
    }
    *bytes = ft_dtype_bytes(stored);
    return stored;
}

static ft_ref make_weight(ft_onnx_run *r, ft_onnx_item *x, int64_t rows, int64_t cols, bool product)
{
    ft_build *b = r->b;
    const ft_onnx_value *v = &r->o->values[x->source];
    ft_onnx_item *home = &r->items[x->source];
    bool floats = ft__onnx_type_floats(v->tensor->type), frozen = b->frozen;
    const char *name = ft__arena_copy(b->g->arena, v->name, strlen(v->name));
    if (home->ref != FT_NONE) return home->ref;
    if (!name) {
        ft__build_fail(b, FT_E_MEMORY, "out of memory");
        return FT_NONE;
    }
    b->frozen |= !floats; /* what is quantised is not trained */
    home->ref = product && floats ? ft__weight(b, name, rows, cols) : ft__parameter(b, name, rows, cols);
    ft__of_experts(b, home->ref, ft__import_expert(name));
    b->frozen = frozen;
    if (home->ref != FT_NONE && !floats) {
        ft_tensor *t = &b->g->tensors[home->ref];
        double bytes = ft__onnx_type_bytes(v->tensor->type);
        b->g->parameter_bytes += (bytes - t->element_bytes) * ft__tensor_numel(t);
        t->element_bytes = bytes;
    }
    return home->ref;
}

static ft_ref turned(ft_onnx_run *r, ft_ref ref, int64_t rows, int64_t cols, bool strided)
{
    const ft_tensor *t = ft__tensor_of(r->b, ref);
    if (ref == FT_NONE || (t->rows == rows && t->cols == cols && t->strided == strided)) return ref;
    bool gaps = t->gaps && strided;
    ft_ref out = ft__view(r->b, ref, rows, cols, strided);
    if (out != FT_NONE && gaps) r->b->g->tensors[out].gaps = true;
    return out;
}

ft_ref ft__onnx_ref(ft_onnx_run *r, ft_onnx_item *x)
{
    int64_t rows, cols;
    bool strided;
    double bytes;
    if (ft__onnx_failed(r)) return FT_NONE;
    if (x->ref != FT_NONE) return x->ref;
    ft__onnx_extent(x, &rows, &cols, &strided);
    if (x->kind == FT_ONNX_WEIGHT) {
        ft_ref ref = make_weight(r, x, rows, cols, false);
        if (ref != FT_NONE && ft__tensor_numel(ft__tensor_of(r->b, ref)) == ft__onnx_count(x))
            ref = turned(r, ref, rows, cols, false);
        x->ref = ref;
        return ref;
    }
    ft_dtype dtype = ft__onnx_dtype(r, x->type, &bytes);
    x->ref = ft__buffer(r->b, rows, cols, bytes);
    if (x->ref != FT_NONE) r->b->g->tensors[x->ref].dtype = dtype;
    return x->ref;
}

ft_ref ft__onnx_ref_as(ft_onnx_run *r, ft_onnx_item *x, int64_t rows, int64_t cols)
{
    ft_ref ref = ft__onnx_ref(r, x);
    return turned(r, ref, rows, cols, ft__tensor_of(r->b, ref)->strided);
}

/* The last copy reads across the order in memory: it costs what a transposition does. */
static void across(ft_onnx_run *r, int64_t rows, int64_t cols)
{
    if (ft__onnx_failed(r)) return;
    ft_node *n = &r->b->g->nodes[r->b->g->node_count - 1];
    n->op = ft__row_kernel("transpose_copy", FT_PASS_FWD, rows, cols, ft__tensor_of(r->b, n->out[0])->dtype);
}

ft_ref ft__onnx_dense(ft_onnx_run *r, ft_onnx_item *x)
{
    ft_ref ref = ft__onnx_ref(r, x);
    if (ft__onnx_plain(x) || ref == FT_NONE) return ref;
    int64_t rows, cols;
    bool strided, innermost = x->dims && x->order[x->dims - 1] == x->dims - 1;
    memcpy(x->order, in_order, sizeof x->order); /* it stays so for who comes later */
    x->gaps = false;
    ft__onnx_extent(x, &rows, &cols, &strided);
    bool gaps = ft__tensor_of(r->b, ref)->gaps;
    ref = turned(r, ref, rows, cols, true);
    x->ref = ft__copy(r->b, r->label, ref, rows, cols);
    if (!innermost && !gaps) across(r, rows, cols);
    return x->ref;
}

ft_ref ft__onnx_product_weight(ft_onnx_run *r, ft_onnx_item *x, int64_t out, int64_t in)
{
    return make_weight(r, x, out, in, true);
}

void ft__onnx_set(ft_onnx_run *r, ft_onnx_item *y, ft_ref ref)
{
    int64_t rows, cols;
    bool strided;
    ft__onnx_extent(y, &rows, &cols, &strided);
    y->ref = turned(r, ref, rows, cols, strided);
}
