/* conv.c: convolutions. Images lie as the request's `layout` says, whatever the file's axes are called:
 * PyTorch's channels_last changes memory, not shapes. */
#include <string.h>

#include "import/onnx/window.h"

bool ft__onnx_slide(ft_onnx_run *r, const ft_onnx_item *x, ft_onnx_window *w)
{
    const char *automatic = ft__onnx_string(r->at, "auto_pad", "NOTSET");
    bool up = ft__onnx_int(r->at, "ceil_mode", 0) != 0, same = !strncmp(automatic, "SAME", 4);
    w->axes = x->dims - 2;
    if (w->axes < 1 || w->axes > 3) {
        ft__onnx_fail(r, FT_E_RANGE, "images of %d axes: [n, c] and one to three of space are expected", x->dims);
        return false;
    }
    for (int i = 0; i < w->axes; i++) w->stride[i] = w->dilation[i] = 1;
    int strides = ft__onnx_ints(r->at, "strides", w->axes, w->stride);
    int dilations = ft__onnx_ints(r->at, "dilations", w->axes, w->dilation);
    int pads = ft__onnx_ints(r->at, "pads", 2 * w->axes, w->pad);
    if ((strides && strides != w->axes) || (dilations && dilations != w->axes) || (pads && pads != 2 * w->axes)) {
        ft__onnx_fail(r, FT_E_RANGE, "strides, dilations and pads do not go with %d axes", w->axes);
        return false;
    }
    w->even = true;
    for (int i = 0; i < w->axes; i++) {
        int64_t low = w->pad[i], high = w->pad[i + w->axes], size = x->dim[i + 2];
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] > 1 << 20 ||
            w->stride[i] > 1 << 20 || w->dilation[i] > 1 << 20 || low < 0 || high < 0 || low > 1 << 20 ||
            high > 1 << 20) {
            ft__onnx_fail(r, FT_E_RANGE, "a window of %lld, stride %lld, dilation %lld, padding %lld",
                          (long long)w->kernel[i], (long long)w->stride[i], (long long)w->dilation[i], (long long)low);
            return false;
        }
        int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (same) {
            w->out[i] = (size + w->stride[i] - 1) / w->stride[i];
            int64_t needed = (w->out[i] - 1) * w->stride[i] + span - size;
            low = needed > 0 ? needed / 2 : 0;
            high = needed > 0 ? needed - low : 0;
        } else {
            int64_t room = size + low + high - span;
            if (room < 0) {
                ft__onnx_fail(r, FT_E_RANGE, "a window of %lld does not fit %lld pixels with %lld of padding",
                              (long long)span, (long long)size, (long long)low + (long long)high);
                return false;
            }
            w->out[i] = room / w->stride[i] + 1;
            /* A window that would start beyond the image and its first padding is not counted. */
            if (up && room % w->stride[i] && w->out[i] * w->stride[i] < size + low) w->out[i]++;
        }
        w->even &= low == high && w->dilation[i] == 1 && w->stride[i] == w->stride[0] && low == w->pad[0] && !up;
        w->pad[i] = low;
    }
    for (int i = 0; i < w->axes; i++) w->even &= w->pad[i] == w->pad[0];
    return true;
}

/* -- channels-last --------------------------------------------------------------------------------- */

static void lay(const ft_onnx_run *r, ft_onnx_item *y)
{
    if (!r->nhwc || y->dims < 3) return;
    for (int i = 1; i < y->dims - 1; i++) y->order[i] = (uint8_t)(i + 1);
    y->order[y->dims - 1] = 1;
}

/* x in the order that the convolution wants. */
static ft_ref laid(ft_onnx_run *r, ft_onnx_item *x)
{
    int64_t rows, cols;
    bool strided;
    ft_onnx_item want = *x;
    want.gaps = false;
    for (int i = 0; i < x->dims; i++) want.order[i] = (uint8_t)i;
    lay(r, &want);
    ft_ref ref = ft__onnx_ref(r, x);
    if (ft__onnx_failed(r) || (!x->gaps && ft__onnx_lies(x, want.order))) return ref;
    ft__onnx_extent(&want, &rows, &cols, &strided);
    x->ref = ft__transpose(r->b, r->label, ref, rows, cols);
    memcpy(x->order, want.order, sizeof x->order);
    x->gaps = false;
    return x->ref;
}

/* -- convolutions ---------------------------------------------------------------------------------- */

/* The operator with the file's sizes, or one of stride one that gives as many pixels of as much work. */
static ft_op conv_kernel(const ft_onnx_run *r, ft_dtype dtype, ft_dtype flow, const int64_t *picture, int64_t n,
                         int64_t c, int64_t k, int64_t groups, const ft_onnx_window *w)
{
    ft_op op = {.kind = FT_OP_CONV2D, .name = "conv2d", .dtype = dtype, .kv_dtype = flow};
    bool flat = w->axes == 1, even = w->even && !flat;
    op.u.conv.n = n;
    op.u.conv.c = c;
    op.u.conv.k = k;
    op.u.conv.groups = groups;
    op.u.conv.r = flat ? 1 : w->kernel[0];
    op.u.conv.s = w->kernel[w->axes - 1];
    op.u.conv.stride = even ? w->stride[0] : 1;
    op.u.conv.pad = even ? w->pad[0] : 0;
    op.u.conv.h = flat ? 1 : even ? picture[0] : w->out[0] - 1 + op.u.conv.r;
    op.u.conv.w = even ? picture[1] : w->out[w->axes - 1] - 1 + op.u.conv.s;
    op.u.conv.nhwc = r->nhwc;
    return op;
}

static void add_bias(ft_onnx_run *r, ft_onnx_item *bias, int64_t channels, ft_onnx_item *y)
{
    if (!bias || bias->zero || ft__onnx_failed(r) || ft__onnx_count(bias) != (double)channels) return;
    /* cuDNN's convolution adds none; PyTorch does so afterwards. */
    ft_ref offset = ft__onnx_ref_as(r, bias, r->nhwc ? 1 : channels, r->nhwc ? channels : 1);
    offset = ft__cast(r->b, r->label, offset, ft__tensor_of(r->b, y->ref)->dtype);
    y->ref = ft__pointwise_in_place(r->b, r->label, "add", y->ref, offset);
}

/* Volumes have no family of their own: bytes and arithmetic. */
static void convolve(ft_onnx_run *r, ft_onnx_item *x, ft_onnx_item *weight, ft_onnx_item *y, const ft_op *op,
                     double flops)
{
    ft_build *b = r->b;
    int64_t rows, cols;
    bool strided;
    lay(r, y);
    ft_ref from = laid(r, x), w;
    double filters = (double)weight->dim[0], all = ft__onnx_count(weight);
    if (weight->kind == FT_ONNX_WEIGHT)
        w = ft__onnx_product_weight(r, weight, (int64_t)filters, (int64_t)(all / filters));
    else
        w = ft__onnx_ref(r, weight);
    if (ft__onnx_failed(r)) return;
    if (b->autocast) {
        from = ft__cast(b, r->label, from, ft__flowing(b->math));
        w = ft__lowered(b, r->label, w);
    }
    ft_node n = ft__node_of(op ? FT_DO_CONV : FT_DO_OTHER, r->label);
    ft__node_in(&n, from);
    ft__node_in(&n, w);
    ft__onnx_extent(y, &rows, &cols, &strided);
    ft_tensor t = *ft__tensor_of(b, from), filter = *ft__tensor_of(b, w);
    y->ref = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (y->ref == FT_NONE) return;
    double bytes = ft__tensor_bytes(&t) + ft__tensor_bytes(&filter) + ft__tensor_bytes(ft__tensor_of(b, y->ref));
    n.op = op ? *op : ft__bytes_kernel("conv3d", t.dtype, bytes, flops);
    if (op) n.op.dtype = ft__product_dtype(b, &t);
    ft__emit(b, &n);
    ft__module(b, 1);
}

static bool channels_agree(ft_onnx_run *r, int64_t have, int64_t want, int64_t groups, int64_t filters)
{
    if (groups >= 1 && groups <= have && have % groups == 0 && filters % groups == 0 && want == have / groups)
        return true;
    ft__onnx_fail(r, FT_E_RANGE, "%lld channels in %lld groups do not go with filters of %lld channels",
                  (long long)have, (long long)groups, (long long)want);
    return false;
}

void ft__onnx_conv_of(ft_onnx_run *r, ft_onnx_item *x, ft_onnx_item *weight, ft_onnx_item *bias, int type)
{
    ft_onnx_window w = {0};
    int64_t dim[FT_ONNX_DIMS], groups = ft__onnx_int(r->at, "group", 1);
    if (!x || !weight) return;
    if (weight->dims != x->dims || x->dims < 3) {
        ft__onnx_fail(r, FT_E_RANGE, "filters of %d axes for images of %d", weight->dims, x->dims);
        return;
    }
    for (int i = 0; i + 2 < x->dims; i++) w.kernel[i] = weight->dim[i + 2];
    if (!channels_agree(r, x->dim[1], weight->dim[1], groups, weight->dim[0]) || !ft__onnx_slide(r, x, &w)) return;
    dim[0] = x->dim[0];
    dim[1] = weight->dim[0];
    for (int i = 0; i < w.axes; i++) dim[i + 2] = w.out[i];
    ft_onnx_item *y = ft__onnx_result(r, 0, type, x->dims, dim);
    if (!y || ft__onnx_count(y) < 1 || ft__onnx_count(x) < 1) return;
    ft_op op = conv_kernel(r, r->b->math, r->b->stored, x->dim + 2, x->dim[0], x->dim[1], weight->dim[0], groups, &w);
    double flops = 2 * ft__onnx_count(y) * ft__onnx_count(weight) / (double)weight->dim[0];
    convolve(r, x, weight, y, w.axes < 3 ? &op : NULL, flops);
    add_bias(r, bias, weight->dim[0], y);
}

static void build_conv(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    if (x) ft__onnx_conv_of(r, x, ft__onnx_operand(r, 1), ft__onnx_optional(r, 2), x->type);
}

/* The gradient of a convolution with respect to its input: the same products, from the other side. */
static void build_conv_transpose(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *weight = ft__onnx_operand(r, 1), *bias = ft__onnx_optional(r, 2);
    ft_onnx_window w = {0};
    int64_t dim[FT_ONNX_DIMS], extra[FT_ONNX_DIMS] = {0}, wanted[FT_ONNX_DIMS],
                               groups = ft__onnx_int(r->at, "group", 1);
    if (!x || !weight) return;
    w.axes = x->dims - 2;
    if (weight->dims != x->dims || w.axes < 1 || w.axes > 3 || groups < 1 || weight->dim[0] != x->dim[1] ||
        x->dim[1] % groups) {
        ft__onnx_fail(r, FT_E_RANGE, "filters of %lld channels for images of %lld", (long long)weight->dim[0],
                      (long long)(x->dims > 1 ? x->dim[1] : 0));
        return;
    }
    for (int i = 0; i < w.axes; i++) w.stride[i] = w.dilation[i] = 1;
    ft__onnx_ints(r->at, "strides", w.axes, w.stride);
    ft__onnx_ints(r->at, "dilations", w.axes, w.dilation);
    ft__onnx_ints(r->at, "pads", 2 * w.axes, w.pad);
    ft__onnx_ints(r->at, "output_padding", w.axes, extra);
    int given = ft__onnx_ints(r->at, "output_shape", FT_ONNX_DIMS, wanted);
    bool same = !strncmp(ft__onnx_string(r->at, "auto_pad", "NOTSET"), "SAME", 4);
    dim[0] = x->dim[0];
    dim[1] = weight->dim[1] * groups;
    for (int i = 0; i < w.axes; i++) {
        w.kernel[i] = weight->dim[i + 2];
        double size = (double)w.stride[i] * ((double)x->dim[i + 2] - 1) + (double)extra[i] +
                      ((double)w.kernel[i] - 1) * (double)w.dilation[i] + 1 - (double)w.pad[i] -
                      (double)w.pad[i + w.axes];
        if (same) size = (double)x->dim[i + 2] * (double)w.stride[i];
        if (given >= w.axes) size = (double)wanted[given - w.axes + i];
        dim[i + 2] = size < 0 || size > 1e12 ? -1 : (int64_t)size;
        w.out[i] = x->dim[i + 2];
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, x->dims, dim);
    if (!y || ft__onnx_count(y) < 1 || ft__onnx_count(x) < 1) return;
    ft_op op = conv_kernel(r, r->b->math, r->b->stored, x->dim + 2, x->dim[0], dim[1], x->dim[1], groups, &w);
    convolve(r, x, weight, y, w.axes < 3 ? &op : NULL,
             2 * ft__onnx_count(x) * ft__onnx_count(weight) / (double)x->dim[1]);
    add_bias(r, bias, dim[1], y);
}

const ft_onnx_rule ft__onnx_conv_rules[] = {
    {"Conv", 2, build_conv, ""},
    {"ConvTranspose", 2, build_conv_transpose, ""},
    {0},
};
