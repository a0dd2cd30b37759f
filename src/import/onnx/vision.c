/* vision.c: batch norms, pools, and what else changes the size of an image. */
#include <math.h>
#include <string.h>

#include "import/onnx/window.h"

/* -- norms ----------------------------------------------------------------------------------------- */

/* Scale and bias are its own parameters wherever they are initialisers of nobody else. */
static void build_batchnorm(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *scale = ft__onnx_operand(r, 1);
    if (!x || !scale) return;
    if (x->dims < 1 || ft__onnx_count(scale) != (double)(x->dims > 1 ? x->dim[1] : 1)) {
        ft__onnx_fail(r, FT_E_RANGE, "%.0f scales do not go with its channels", ft__onnx_count(scale));
        return;
    }
    int64_t channels = x->dims > 1 ? x->dim[1] : 1;
    for (int k = 1; k < 3; k++)
        if (k < r->at->out_count && r->at->out[k] >= 0) {
            ft_onnx_item *moments = ft__onnx_result(r, k, scale->type, 1, scale->dim);
            if (moments) moments->kind = FT_ONNX_FIXED;
        }
    ft_onnx_item *y = ft__onnx_like(r, 0, x, x->type);
    if (!y || ft__onnx_count(y) < 1) return;
    ft_ref from = x->gaps ? ft__onnx_dense(r, x) : ft__onnx_ref(r, x);
    int64_t rows, cols;
    bool strided;
    memcpy(y->order, x->order, sizeof y->order);
    y->gaps = false;
    ft__onnx_extent(y, &rows, &cols, &strided);
    if (x->dims > 2 && !ft__onnx_failed(r) && cols != channels) { /* NCHW: a row per image and channel */
        from = ft__onnx_ref_as(r, x, x->dim[0] * channels,
                               (int64_t)(ft__onnx_count(x) / (double)(x->dim[0] * channels)));
    }
    ft__onnx_set(r, y, ft__batchnorm(r->b, r->label, from, channels));
}

/* -- pools ----------------------------------------------------------------------------------------- */

static void build_pool(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    ft_onnx_window w = {0};
    int64_t dim[FT_ONNX_DIMS], rows, cols;
    bool strided, most = !strcmp(r->at->op, "MaxPool");
    if (!x) return;
    if (x->dims < 3 || ft__onnx_ints(r->at, "kernel_shape", FT_ONNX_DIMS, w.kernel) != x->dims - 2) {
        ft__onnx_fail(r, FT_E_RANGE, "\"kernel_shape\" does not go with an image of %d axes", x->dims);
        return;
    }
    if (!ft__onnx_slide(r, x, &w)) return;
    dim[0] = x->dim[0];
    dim[1] = x->dim[1];
    double taps = 1;
    for (int i = 0; i < w.axes; i++) {
        dim[i + 2] = w.out[i];
        taps *= (double)w.kernel[i];
    }
    if (ft__onnx_has(r, 1)) ft__onnx_filled(r, "fill", ft__onnx_result(r, 1, FT_ONNX_INT64, x->dims, dim));
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, x->dims, dim);
    if (!y || ft__onnx_count(y) < 1 || ft__onnx_count(x) < 1) return;
    if (!x->gaps) memcpy(y->order, x->order, sizeof y->order);
    ft__onnx_extent(y, &rows, &cols, &strided);
    ft_ref from = x->gaps ? ft__onnx_dense(r, x) : ft__onnx_ref(r, x);
    if (most) {
        y->ref = ft__pool(r->b, r->label, from, rows, cols, taps);
        return;
    }
    ft_node n = ft__node_of(FT_DO_POOL, r->label);
    ft__node_in(&n, from);
    ft_tensor t = *ft__tensor_of(r->b, from);
    y->ref = ft__node_out(r->b, &n, rows, cols, t.dtype, t.element_bytes);
    if (y->ref == FT_NONE) return;
    n.op = ft__pointwise_kernel(r->b->g, "pool", n.in, 1, &r->b->g->tensors[y->ref]);
    n.op.u.elementwise.ops_per_element = taps;
    ft__emit(r->b, &n);
    ft__module(r->b, 1);
}

/* -- other sizes ----------------------------------------------------------------------------------- */

static void build_resize(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *scales = ft__onnx_optional(r, !strcmp(r->at->op, "Upsample") ? 1 : 2);
    ft_onnx_item *sizes = !strcmp(r->at->op, "Upsample") ? NULL : ft__onnx_optional(r, 3);
    int64_t given[FT_ONNX_KNOWN], dim[FT_ONNX_DIMS], raw[FT_ONNX_DIMS];
    int count = 0, axes[FT_ONNX_DIMS], named;
    if (!x) return;
    bool by_size = sizes && ft__onnx_count(sizes) > 0;
    ft_onnx_item *by = by_size ? sizes : scales;
    if (!by || !ft__onnx_numbers(r, by, "its size", &count, given)) {
        if (!by) ft__onnx_fail(r, FT_E_MISSING, "neither scales nor sizes are given");
        return;
    }
    named = ft__onnx_ints(r->at, "axes", FT_ONNX_DIMS, raw);
    if (count != (named ? named : x->dims)) {
        ft__onnx_fail(r, FT_E_RANGE, "%d sizes for %d axes", count, named ? named : x->dims);
        return;
    }
    memcpy(dim, x->dim, sizeof dim);
    for (int i = 0; i < count; i++) {
        axes[i] = named ? ft__onnx_axis(r, raw[i], x->dims) : i;
        if (axes[i] < 0) return;
        double size = by_size ? (double)given[i] : floor((double)x->dim[axes[i]] * by->known[i].f);
        dim[axes[i]] = size >= 0 && size < 1e12 ? (int64_t)size : -1;
    }
    if (ft__onnx_same(x, x->dims, dim)) {
        ft__onnx_pass(r, 0, x);
        return;
    }
    ft_onnx_item in = *x, *y = ft__onnx_result(r, 0, in.type, in.dims, dim);
    int64_t rows, cols;
    bool strided;
    if (!y || ft__onnx_count(y) < 1 || ft__onnx_count(&in) < 1) return;
    if (!in.gaps) memcpy(y->order, in.order, sizeof y->order);
    ft__onnx_extent(y, &rows, &cols, &strided);
    ft_ref from = in.gaps ? ft__onnx_dense(r, x) : ft__onnx_ref(r, x);
    ft_tensor t = *ft__tensor_of(r->b, from);
    double bytes = ft__tensor_bytes(&t) + ft__onnx_count(y) * t.element_bytes;
    double each = !strcmp(ft__onnx_string(r->at, "mode", "nearest"), "nearest") ? 1 : 8;
    y->ref = ft__other(r->b, r->label, "upsample", from, rows, cols, bytes, each * ft__onnx_count(y));
}

/* Regions of interest, sampled grids: the result's image, bytes and some arithmetic per element. */
static void build_sampled(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *with = ft__onnx_operand(r, 1);
    int64_t dim[FT_ONNX_DIMS], shape[FT_ONNX_KNOWN], rows, cols;
    int dims = x ? x->dims : 0;
    bool strided;
    if (!x || !with) return;
    if (!strcmp(r->at->op, "RoiAlign") && x->dims == 4 && with->dims == 2) {
        dim[0] = with->dim[0];
        dim[1] = x->dim[1];
        dim[2] = ft__onnx_int(r->at, "output_height", 1);
        dim[3] = ft__onnx_int(r->at, "output_width", 1);
    } else if (!strcmp(r->at->op, "GridSample") && with->dims == x->dims && x->dims > 2) {
        dim[0] = x->dim[0];
        dim[1] = x->dim[1];
        for (int i = 2; i < x->dims; i++) dim[i] = with->dim[i - 1];
    } else if (!strcmp(r->at->op, "AffineGrid") && ft__onnx_numbers(r, with, "its size", &dims, shape) && dims > 2 &&
               dims <= 5) {
        dim[0] = shape[0];
        for (int i = 2; i < dims; i++) dim[i - 1] = shape[i];
        dim[dims - 1] = dims - 2;
    } else {
        if (!r->deferred)
            ft__onnx_fail(r, FT_E_RANGE, "operands of %d and %d axes do not go together", x->dims, with->dims);
        return;
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, dims, dim);
    if (!y || ft__onnx_count(y) < 1 || ft__onnx_count(x) < 1) return;
    ft__onnx_extent(y, &rows, &cols, &strided);
    ft_ref from = ft__onnx_ref(r, x);
    double bytes = ft__tensor_bytes(ft__tensor_of(r->b, from)) + ft__onnx_count(y) * 4;
    y->ref = ft__other(r->b, r->label, "sample", from, rows, cols, bytes, 16 * ft__onnx_count(y));
}

const ft_onnx_rule ft__onnx_vision_rules[] = {
    {"BatchNormalization", 5, build_batchnorm, ""},
    {"MaxPool", 1, build_pool, ""},
    {"AveragePool", 1, build_pool, ""},
    {"LpPool", 1, build_pool, ""},
    {"Resize", 1, build_resize, ""},
    {"Upsample", 2, build_resize, ""},
    {"RoiAlign", 2, build_sampled, ""},
    {"GridSample", 2, build_sampled, ""},
    {"AffineGrid", 2, build_sampled, ""},
    {0},
};
