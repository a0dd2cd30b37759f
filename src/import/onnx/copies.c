/* copies.c: operators that make tensors larger, join them, or fill them with numbers. */
#include <string.h>

#include "import/onnx/run.h"

/* -- larger ---------------------------------------------------------------------------------------- */

static void build_expand(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *shape = ft__onnx_operand(r, 1), to = {0}, *both[2] = {x, &to};
    int64_t given[FT_ONNX_KNOWN], dim[FT_ONNX_DIMS], rows, cols;
    bool strided;
    if (!x || !shape || !ft__onnx_numbers(r, shape, "the shape", &to.dims, given)) return;
    if (to.dims > FT_ONNX_DIMS) {
        ft__onnx_fail(r, FT_E_UNSUPPORTED, "a shape of %d axes: at most %d are read", to.dims, FT_ONNX_DIMS);
        return;
    }
    memcpy(to.dim, given, (size_t)to.dims * sizeof *given);
    for (int i = 0; i < to.dims; i++)
        if (to.dim[i] == -1) to.dim[i] = 1; /* as exporters write "keep it" */
    int dims = ft__onnx_broadcast(r, 2, both, dim);
    if (dims < 0) return;
    if (ft__onnx_count(x) > 0 && ft__onnx_same(x, dims, dim)) {
        ft__onnx_pass(r, 0, x);
        return;
    }
    ft_onnx_item in = *x, *y = ft__onnx_result(r, 0, in.type, dims, dim);
    if (!y || ft__onnx_count(y) < 1) return;
    if (in.known && in.kind == FT_ONNX_FIXED) {
        ft_onnx_number *out = ft__onnx_room(r, y);
        for (size_t i = 0; out && i < (size_t)ft__onnx_count(y); i++) out[i] = in.known[ft__onnx_met(&in, y, i)];
        if (out || ft__onnx_failed(r)) return;
    }
    if (in.kind == FT_ONNX_FIXED && in.ref == FT_NONE) { /* spread out once, before the step */
        y->kind = FT_ONNX_FIXED;
        y->zero = in.zero || (in.known && ft__onnx_count(&in) == 1 && !(in.known->f < 0) && !(in.known->f > 0));
        return;
    }
    if (ft__onnx_count(y) == ft__onnx_count(&in)) { /* axes of one element in front */
        ft__onnx_reshaped(r, x, dims, dim);
        return;
    }
    y->gaps = true;
    ft__onnx_extent(y, &rows, &cols, &strided);
    y->ref = ft__expand(r->b, ft__onnx_ref(r, x), rows, cols);
}

static void copied(ft_onnx_run *r, ft_onnx_item *x, ft_onnx_item *y)
{
    int64_t rows, cols;
    bool strided;
    if (!y || ft__onnx_count(y) < 1) return;
    ft__onnx_extent(y, &rows, &cols, &strided);
    y->ref = ft__copy(r->b, r->label, ft__onnx_ref(r, x), rows, cols);
}

static void build_tile(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *times = ft__onnx_operand(r, 1);
    int64_t given[FT_ONNX_KNOWN], dim[FT_ONNX_DIMS];
    int count;
    if (!x || !times || !ft__onnx_numbers(r, times, "how often", &count, given)) return;
    if (count != x->dims) {
        ft__onnx_fail(r, FT_E_RANGE, "%d repetitions for %d axes", count, x->dims);
        return;
    }
    for (int i = 0; i < count; i++) {
        if (given[i] < 0 || (double)given[i] * (double)x->dim[i] > 1e12) {
            ft__onnx_fail(r, FT_E_RANGE, "%lld repetitions", (long long)given[i]);
            return;
        }
        dim[i] = x->dim[i] * given[i];
    }
    if (ft__onnx_same(x, count, dim)) {
        ft__onnx_pass(r, 0, x);
        return;
    }
    ft_onnx_item in = *x, *y = ft__onnx_result(r, 0, in.type, count, dim);
    if (y && in.known && in.kind == FT_ONNX_FIXED && count == 1 && in.dim[0] > 0) {
        ft_onnx_number *out = ft__onnx_room(r, y);
        for (size_t i = 0; out && i < (size_t)dim[0]; i++) out[i] = in.known[i % (size_t)in.dim[0]];
        if (out) return;
    }
    copied(r, x, y);
}

static void build_pad(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *pads = ft__onnx_optional(r, 1);
    int64_t given[FT_ONNX_KNOWN], dim[FT_ONNX_DIMS];
    int count, axes[FT_ONNX_DIMS], axis_count = x && pads ? ft__onnx_axes(r, 3, x->dims, axes) : -1;
    if (!x || axis_count < 0 || !ft__onnx_numbers(r, pads, "the padding", &count, given)) return;
    for (int i = 0; !axis_count && i < x->dims; i++) axes[i] = i;
    if (!axis_count) axis_count = x->dims;
    if (count != 2 * axis_count) {
        ft__onnx_fail(r, FT_E_RANGE, "%d paddings for %d axes", count, axis_count);
        return;
    }
    memcpy(dim, x->dim, sizeof dim);
    for (int i = 0; i < axis_count; i++) {
        double size = (double)dim[axes[i]] + (double)given[i] + (double)given[i + axis_count];
        dim[axes[i]] = size > 1e12 ? -1 : (int64_t)size;
    }
    if (ft__onnx_same(x, x->dims, dim)) {
        ft__onnx_pass(r, 0, x);
        return;
    }
    ft_onnx_item in = *x, *y = ft__onnx_result(r, 0, in.type, in.dims, dim);
    if (!y) return;
    if (!in.gaps) memcpy(y->order, in.order, sizeof y->order);
    copied(r, x, y);
}

/* Pixels to channels and back: a copy. */
static void build_pixels(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    int64_t size = ft__onnx_int(r->at, "blocksize", 0);
    if (!x) return;
    if (x->dims != 4 || size < 1 || size > 1 << 15) {
        ft__onnx_fail(r, FT_E_RANGE, "it takes [n, c, h, w] and a block size of at least 1");
        return;
    }
    bool deep = !strcmp(r->at->op, "SpaceToDepth");
    int64_t dim[4] = {x->dim[0], deep ? x->dim[1] * size * size : x->dim[1] / (size * size),
                      deep ? x->dim[2] / size : x->dim[2] * size, deep ? x->dim[3] / size : x->dim[3] * size};
    copied(r, x, ft__onnx_result(r, 0, x->type, 4, dim));
}

/* -- joined ---------------------------------------------------------------------------------------- */

static void join_known(ft_onnx_run *r, int axis, ft_onnx_item *y)
{
    ft_onnx_number *out = ft__onnx_room(r, y);
    size_t outer = 1, wide = 1, at = 0;
    for (int i = 0; i < axis; i++) outer *= (size_t)y->dim[i];
    for (int i = axis + 1; i < y->dims; i++) wide *= (size_t)y->dim[i];
    for (size_t o = 0; out && o < outer; o++)
        for (int k = 0; k < r->at->in_count; k++) {
            const ft_onnx_item *x = ft__onnx_optional(r, k);
            size_t run = x ? (size_t)x->dim[axis] * wide : 0;
            if (run) memcpy(out + at, x->known + o * run, run * sizeof *out);
            at += run;
        }
}

/* More parts than a node reads: groups of them first, whose copies are not made twice. */
static ft_ref joined(ft_onnx_run *r, const ft_onnx_item *y, ft_ref *part, int count)
{
    int64_t rows, cols;
    bool strided;
    ft__onnx_extent(y, &rows, &cols, &strided);
    while (count > FT_NODE_INPUTS && !ft__onnx_failed(r)) {
        double elements = 0;
        for (int i = 0; i < FT_NODE_INPUTS; i++) elements += ft__tensor_numel(ft__tensor_of(r->b, part[i]));
        ft_ref some = ft__cat(r->b, r->label, FT_NODE_INPUTS, part, 1, (int64_t)elements);
        if (ft__onnx_failed(r)) return FT_NONE;
        ft_node *n = &r->b->g->nodes[r->b->g->node_count - 1];
        n->op = ft__bytes_kernel("cat", n->op.dtype, 0, 0);
        part[0] = some;
        memmove(part + 1, part + FT_NODE_INPUTS, (size_t)(count - FT_NODE_INPUTS) * sizeof *part);
        count -= FT_NODE_INPUTS - 1;
    }
    return ft__cat(r->b, r->label, count, part, rows, cols);
}

static void build_concat(ft_onnx_run *r)
{
    ft_onnx_item *first = ft__onnx_operand(r, 0), *only = NULL;
    int64_t dim[FT_ONNX_DIMS];
    int parts = 0;
    bool known = true, alike = true;
    if (!first) return;
    int axis = ft__onnx_axis(r, ft__onnx_int(r->at, "axis", 0), first->dims);
    if (axis < 0) return;
    memcpy(dim, first->dim, sizeof dim);
    dim[axis] = 0;
    ft_ref *part = ft__arena_array(r->b->g->arena, (size_t)r->at->in_count, sizeof *part);
    if (!part) {
        ft__build_fail(r->b, FT_E_MEMORY, "out of memory");
        return;
    }
    for (int k = 0; k < r->at->in_count; k++) {
        ft_onnx_item *x = ft__onnx_operand(r, k);
        if (!x) return;
        for (int i = 0; i < first->dims; i++)
            if (x->dims != first->dims || (i != axis && x->dim[i] != first->dim[i])) {
                ft__onnx_fail(r, FT_E_RANGE, "operand %d does not have the shape of the first beside axis %d", k + 1,
                              axis);
                return;
            }
        dim[axis] += x->dim[axis];
        known &= x->known && x->kind == FT_ONNX_FIXED;
        alike &= !memcmp(x->order, first->order, sizeof x->order) && x->kind == FT_ONNX_MADE;
        if (ft__onnx_count(x) < 1) continue;
        only = x;
        parts++;
    }
    if (parts == 1 && only) {
        ft__onnx_pass(r, 0, only);
        return;
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, first->type, first->dims, dim);
    if (!y || ft__onnx_count(y) < 1) return;
    if (known && ft__onnx_count(y) <= FT_ONNX_KNOWN) {
        join_known(r, axis, y);
        return;
    }
    if (alike) memcpy(y->order, first->order, sizeof y->order);
    int count = 0;
    for (int k = 0; k < r->at->in_count; k++) {
        ft_onnx_item *x = ft__onnx_operand(r, k);
        if (x && ft__onnx_count(x) > 0) part[count++] = ft__onnx_ref(r, x);
    }
    if (!ft__onnx_failed(r)) y->ref = joined(r, y, part, count);
}

/* -- made of nothing ------------------------------------------------------------------------------- */

void ft__onnx_filled(ft_onnx_run *r, const char *op, ft_onnx_item *y)
{
    int64_t rows, cols;
    bool strided;
    double bytes;
    if (!y || ft__onnx_failed(r) || ft__onnx_count(y) < 1) return;
    ft__onnx_extent(y, &rows, &cols, &strided);
    ft_dtype dtype = ft__onnx_dtype(r, y->type, &bytes);
    ft_node n = ft__node_of(FT_DO_FILL, r->label);
    ft_ref out = ft__node_out(r->b, &n, rows, cols, dtype, bytes);
    if (out == FT_NONE) return;
    n.op = ft__pointwise_kernel(r->b->g, op, n.in, 0, &r->b->g->tensors[out]);
    ft__emit(r->b, &n);
    y->ref = out;
}

static void build_shape(ft_onnx_run *r)
{
    const ft_onnx_item *x = ft__onnx_operand(r, 0);
    if (!x) return;
    int64_t start = ft__onnx_int(r->at, "start", 0), end = ft__onnx_int(r->at, "end", x->dims), none[1] = {0};
    bool size = !strcmp(r->at->op, "Size");
    ft_onnx_item in = *x;
    if (start < 0) start += in.dims;
    if (end < 0) end += in.dims;
    start = start < 0 ? 0 : start > in.dims ? in.dims : start;
    end = end < start ? start : end > in.dims ? in.dims : end;
    none[0] = end - start;
    ft_onnx_item *y = ft__onnx_result(r, 0, FT_ONNX_INT64, !size, none);
    ft_onnx_number *out = y ? ft__onnx_room(r, y) : NULL;
    if (out && size) out[0] = (ft_onnx_number){(int64_t)ft__onnx_count(&in), ft__onnx_count(&in)};
    for (int64_t i = start; out && !size && i < end; i++)
        out[i - start] = (ft_onnx_number){in.dim[i], (double)in.dim[i]};
}

static void build_range(ft_onnx_run *r)
{
    ft_onnx_item *x[3];
    double limit[3];
    for (int k = 0; k < 3; k++) {
        if (!(x[k] = ft__onnx_operand(r, k))) return;
        if (!x[k]->known || ft__onnx_count(x[k]) != 1) {
            ft__onnx_unknown(r, "how long it is");
            return;
        }
        limit[k] = x[k]->known[0].f;
    }
    double steps = (limit[1] - limit[0]) / limit[2];
    int64_t dim[1] = {steps > 0 && steps < 1e12 ? (int64_t)steps + (steps > (double)(int64_t)steps) : 0};
    int type = x[0]->type;
    if (!(steps < 1e12)) {
        ft__onnx_fail(r, FT_E_RANGE, "a range of %g steps", steps);
        return;
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, type, 1, dim);
    if (!y || dim[0] < 1) return;
    ft_onnx_number *out = ft__onnx_room(r, y);
    for (int64_t i = 0; out && i < dim[0]; i++) {
        double f = limit[0] + (double)i * limit[2];
        out[i] = (ft_onnx_number){(int64_t)f, f};
    }
    if (!out) ft__onnx_filled(r, "fill", y);
}

static void build_constant_of_shape(ft_onnx_run *r)
{
    ft_onnx_item *shape = ft__onnx_operand(r, 0);
    const ft_onnx_attribute *value = ft__onnx_attribute(r->at, "value");
    const ft_onnx_tensor *t = value ? value->tensor : NULL;
    int64_t dim[FT_ONNX_KNOWN];
    int dims;
    if (!shape || !ft__onnx_numbers(r, shape, "the shape", &dims, dim)) return;
    ft_onnx_item *y = ft__onnx_result(r, 0, t ? t->type : FT_ONNX_FLOAT, dims, dim);
    if (!y || ft__onnx_count(y) < 1) return;
    ft_onnx_number *out = t && !t->known ? NULL : ft__onnx_room(r, y), zero = {0, 0};
    for (size_t i = 0; out && i < (size_t)ft__onnx_count(y); i++) out[i] = t && t->known ? t->known[0] : zero;
    if (!out) ft__onnx_filled(r, "fill", y);
}

/* -- masks ----------------------------------------------------------------------------------------- */

static void build_same(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    int64_t type = ft__onnx_int(r->at, "dtype", x ? x->type : 0);
    ft_onnx_item *y = x ? ft__onnx_like(r, 0, x, (int)type) : NULL;
    if (!y) return;
    if (*r->at->rule->word)
        ft__onnx_filled(r, r->at->rule->word, y);
    else
        ft__onnx_pointwise(r, "copy", 1, &x, y);
}

const ft_onnx_rule ft__onnx_copy_rules[] = {
    {"Expand", 2, build_expand, ""},
    {"Tile", 2, build_tile, ""},
    {"Pad", 2, build_pad, ""},
    {"DepthToSpace", 1, build_pixels, ""},
    {"SpaceToDepth", 1, build_pixels, ""},
    {"Concat", 1, build_concat, ""},
    {"Shape", 1, build_shape, ""},
    {"Size", 1, build_shape, ""},
    {"Range", 3, build_range, ""},
    {"ConstantOfShape", 1, build_constant_of_shape, ""},
    {"Trilu", 1, build_same, ""},
    {"ReverseSequence", 2, build_same, ""},
    {"EyeLike", 1, build_same, "fill"},
    {"RandomNormalLike", 1, build_same, "dropout"},
    {"RandomUniformLike", 1, build_same, "dropout"},
    {"Bernoulli", 1, build_same, "dropout"},
    {0},
};
