/* image.c: convolutions, pooling and resizing of a graph file.
 *
 * The kernel room knows two-dimensional convolutions with one stride and one border. The others stand for one of those
 * with the same arithmetic and the same results: a picture that is just large enough for dilated or unequal strides, a
 * row of pixels for one dimension, depth as channels and pictures for three; a transposed convolution is the gradient
 * of the one that goes the other way. */
#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"
#include "model/relative.h"

enum { SPACE = 3 };
static const int64_t LARGEST = (int64_t)1 << 40;

typedef struct filter {
    int space; /* axes of the picture */
    int64_t k, groups, size[SPACE], stride[SPACE], pad[SPACE], dilation[SPACE], more[SPACE];
    bool transposed;
} filter;

/* Filters that were computed (standardised, modulated) are the second operand; false after an error. */
static bool computed_filters(ft_graph_reader *r, double elements, ft_ref *out)
{
    ft_named w;
    if (ft__graphfile_operands(r) < 2) return true;
    if (!ft__graphfile_operand(r, 1, &w)) return false;
    if (json_object_get(r->at, "weight")) {
        ft__graphfile_fail(r, FT_E_RANGE, "its weight is given twice: as the second operand and by \"weight\"");
        return false;
    }
    if (ft__graphfile_elements(&w) != elements) {
        ft__graphfile_fail(r, FT_E_RANGE, "the weight has %.0f elements, the filters %.0f", ft__graphfile_elements(&w),
                           elements);
        return false;
    }
    *out = w.ref;
    return true;
}

/* Sizes of the filters: keys, or the shape of a named weight [k, c / groups, ...], [c, k / groups, ...] transposed. */
static void filter_sizes(ft_graph_reader *r, filter *f)
{
    static const char *const keys[SPACE][SPACE] = {{"r"}, {"r", "s"}, {"t", "r", "s"}};
    const ft_named *w = ft__graphfile_named_weight(r, "weight");
    bool known = w && w->dims == f->space + 2;
    f->k = ft__graphfile_whole(r, "k", known ? (f->transposed ? w->dim[1] * f->groups : w->dim[0]) : 0, 1, LARGEST);
    for (int i = 0; i < f->space; i++) {
        int64_t usual = known ? w->dim[2 + i] : i > 0 ? f->size[i - 1] : 0;
        f->size[i] = ft__graphfile_whole(r, keys[f->space - 1][i], usual, 1, LARGEST);
    }
}

/* The result's sizes; false after an error. */
static bool filter_result(ft_graph_reader *r, const filter *f, const ft_named *x, int64_t *dim)
{
    dim[0] = x->dim[0];
    dim[1] = f->k;
    for (int i = 0; i < f->space; i++) {
        double in = (double)x->dim[2 + i], reach = (double)f->dilation[i] * (double)(f->size[i] - 1) + 1;
        double out = f->transposed
                         ? (in - 1) * (double)f->stride[i] - 2 * (double)f->pad[i] + reach + (double)f->more[i]
                         : floor((in + 2 * (double)f->pad[i] - reach) / (double)f->stride[i]) + 1;
        if (!(out >= 1 && out <= (double)LARGEST)) {
            ft__graphfile_fail(r, FT_E_RANGE, "a filter of %.0f does not fit a side of %.0f", reach, in);
            return false;
        }
        dim[2 + i] = (int64_t)out;
    }
    return ft__graphfile_possible(r, f->space + 2, dim);
}

/* The two-dimensional convolution that costs as much: from `from` to `to`, which are swapped for a transposed one. */
static ft_conv_shape stand_in(const filter *f, const ft_named *from, const int64_t *to, double *input)
{
    int last = f->space - 1;
    ft_conv_shape s = {
        .n = from->dim[0], .c = from->dim[1], .k = to[1], .groups = f->groups, .stride = f->stride[last]};
    bool square = f->space == 2 && !f->transposed && f->stride[0] == f->stride[1] && f->pad[0] == f->pad[1] &&
                  f->dilation[0] == 1 && f->dilation[1] == 1;
    *input = 0;
    s.s = f->size[last];
    s.r = f->space > 1 ? f->size[last - 1] : 1;
    if (square) {
        s.h = from->dim[2];
        s.w = from->dim[3];
        s.pad = f->pad[0];
        return s;
    }
    *input = ft__graphfile_elements(from);
    s.w = (to[2 + last] - 1) * s.stride + s.s;
    s.h = f->space > 1 ? (to[1 + last] - 1) * s.stride + s.r : 1;
    if (f->space == 3) { /* every picture of the result sums over its depth of them */
        s.n *= to[2];
        s.c *= f->size[0];
    }
    return s;
}

/* How the picture is kept: as [n*pixels, c] where channels lie next to each other, otherwise as [n*c, pixels]. */
static ft_ref picture(ft_graph_reader *r, ft_at at, const ft_named *x, bool last)
{
    ft_build *b = ft__graphfile_build(r);
    int64_t pixels = ft__graphfile_span(x, 2, x->dims);
    const ft_tensor *t = ft__tensor_of(b, x->ref);
    if (!last) return ft__graphfile_matrix(r, at, x, x->dim[0] * x->dim[1], pixels);
    if (!t->strided && t->cols == x->dim[1]) return x->ref;
    return ft__view_as(b, x->ref, x->dim[0] * pixels, x->dim[1], FT_IN_ORDER);
}

/* Filters whose channels lie next to each other, as the model's pictures came in, ask the same of every picture: one
 * that does not lie so (a group norm's result) is turned first (ATen/native/ConvUtils.h, suggested memory format). */
static bool turned_first(ft_graph_reader *r, const ft_named *x)
{
    if (ft__tensor_of(ft__graphfile_build(r), x->ref)->role != FT_ACTIVATION) return false; /* as it was said to lie */
    return r->nhwc && x->dims > 3 && x->dim[1] > 1 && !x->unordered && !ft__graphfile_channels_last(x);
}

/* Filters of three sides over few channels, or to few, come from vector units: cuDNN 9.19 runs its
 * implicit_convolveNd_sgemm for clips of 1 and 3 channels and for 3 classes (data/measurements/h200/workspaces.jsonl.gz),
 * tensor cores for their gradients. */
static bool by_vectors(const filter *f, int64_t channels)
{
    static const int64_t TENSOR_CORE_CHANNELS = 8; /* 16 bytes of 16 bits: what their kernels read at once */
    return f->space == 3 && !f->transposed && f->groups == 1 &&
           (channels < TENSOR_CORE_CHANNELS || f->k < TENSOR_CORE_CHANNELS);
}

static void by_units_of_fp32(ft_build *b)
{
    ft_node *n = &b->g->nodes[b->g->node_count - 1];
    if (ft_dtype_bytes(n->op.dtype) == 2) n->op.dtype = FT_FP32;
}

static ft_ref convolved(ft_graph_reader *r, ft_at at, const filter *f, const ft_named *x, ft_named *out)
{
    ft_build *b = ft__graphfile_build(r);
    int64_t taps = f->size[0] * (f->space > 1 ? f->size[1] : 1) * (f->space > 2 ? f->size[2] : 1);
    int64_t inner = (f->transposed ? f->k : x->dim[1]) / f->groups * taps, outer = f->transposed ? x->dim[1] : f->k;
    bool turned = turned_first(r, x), last = turned || ft__graphfile_channels_last(x), before = b->channels_last;
    ft_ref weight = FT_NONE;
    if (!computed_filters(r, (double)outer * (double)inner, &weight)) return FT_NONE;
    if (weight == FT_NONE) weight = ft__graphfile_weight(r, "weight", true, "conv.weight", outer, inner);
    ft_ref bias = ft__graphfile_weight(r, "bias", false, "conv.bias", 1, f->k);
    if (ft__graphfile_failed(r)) return FT_NONE;
    double input;
    ft_conv_shape s;
    if (f->transposed) {
        s = stand_in(f, out, x->dim, &input);
        s.parts = FT_CONV_INPUT;
        input = 0;
    } else {
        s = stand_in(f, x, out->dim, &input);
    }
    double drawn = (double)s.n * (double)s.c * (double)s.h * (double)s.w;
    if (!(drawn <= 1e18 && (double)s.n * (double)s.k <= 1e18)) {
        ft__graphfile_fail(r, FT_E_RANGE, "a picture of %.4g elements is beyond any machine", drawn);
        return FT_NONE;
    }
    ft_ref in = picture(r, at, x, last && !turned);
    if (turned) in = ft__turned(b, at, in, x->dim[0] * ft__graphfile_span(x, 2, x->dims), x->dim[1]);
    b->channels_last = last;
    /* Filters stand as the model's pictures came in; others are turned each time. */
    if (last && !r->nhwc && s.c / s.groups > 1)
        ft__aside(b, at, "copy", FT_NONE, outer, inner, ft__tensor_of(b, in)->element_bytes, 1);
    int64_t pixels = ft__graphfile_span(out, 2, out->dims);
    ft_ref y = ft__conv_with(b, at, in, weight, &s, out->dim[0] * f->k, pixels, input);
    b->channels_last = before;
    if (ft__graphfile_failed(r)) return FT_NONE;
    if (by_vectors(f, x->dim[1])) by_units_of_fp32(b);
    if (last) y = ft__view_as(b, y, out->dim[0] * pixels, f->k, FT_IN_ORDER);
    if (bias == FT_NONE) return y;
    /* cuDNN's convolution adds none; PyTorch does so afterwards. */
    if (!last) bias = ft__view(b, bias, f->k, 1, false);
    return ft__pointwise_in_place(b, at, "add", y, ft__cast(b, at, bias, ft__tensor_of(b, y)->dtype));
}

/* What the model's own code holds while this convolution runs, its result counted: its workspace comes on top. */
static void read_held(ft_graph_reader *r, int32_t first)
{
    const json_t *value = json_object_get(r->at, "held_bytes");
    ft_graph *g = ft__graphfile_build(r)->g;
    int64_t bytes = 0;
    if (!value || ft__graphfile_failed(r)) return;
    if (!ft__graphfile_size_read(r, value, &bytes)) {
        ft__graphfile_fail(r, FT_E_TYPE,
                           "\"held_bytes\" must be a whole number from 1 on, or a formula with batch and seq");
        return;
    }
    for (int32_t i = first; i < g->node_count; i++)
        if (g->nodes[i].op.kind == FT_OP_CONV2D) g->nodes[i].each = (double)bytes;
}

static int space_of(const ft_graph_reader *r) { return ft__graphfile_op(r)[4] - '0'; }

void ft__read_conv(ft_graph_reader *r, ft_at at)
{
    ft_named x;
    filter f = {.space = space_of(r)};
    if (!ft__graphfile_operand(r, 0, &x)) return;
    if (x.dims != f.space + 2) {
        static const char *const shapes[SPACE] = {"[n, c, l]", "[n, c, h, w]", "[n, c, d, h, w]"};
        ft__graphfile_fail(r, FT_E_RANGE, "a convolution takes %s, got %d axes", shapes[f.space - 1], x.dims);
        return;
    }
    f.groups = ft__graphfile_whole(r, "groups", 1, 1, LARGEST);
    f.transposed = ft__graphfile_truth(r, "transposed", false);
    filter_sizes(r, &f);
    if (!ft__graphfile_each(r, "stride", f.space, 1, 1, f.stride) ||
        !ft__graphfile_each(r, "pad", f.space, 0, 0, f.pad) ||
        !ft__graphfile_each(r, "dilation", f.space, 1, 1, f.dilation) ||
        !ft__graphfile_each(r, "output_pad", f.space, 0, 0, f.more))
        return;
    if (ft__graphfile_failed(r)) return;
    if (x.dim[1] % f.groups || f.k % f.groups) {
        ft__graphfile_fail(r, FT_E_RANGE, "%lld groups do not divide %lld and %lld channels", (long long)f.groups,
                           (long long)x.dim[1], (long long)f.k);
        return;
    }
    double taps = (double)f.size[0] * (double)(f.space > 1 ? f.size[1] : 1) * (double)(f.space > 2 ? f.size[2] : 1);
    int64_t dim[FT_GRAPHFILE_DIMS];
    if (!filter_result(r, &f, &x, dim)) return;
    if (taps * (double)f.k * (double)x.dim[1] > 1e18) {
        ft__graphfile_fail(r, FT_E_RANGE, "filters of %.4g elements are beyond any machine",
                           taps * (double)f.k * (double)x.dim[1]);
        return;
    }
    ft_named out = ft__graphfile_fresh(FT_NONE, x.dims, dim);
    bool last = turned_first(r, &x) || ft__graphfile_channels_last(&x);
    r->pictures |= x.dims > 3;
    const int32_t first = ft__graphfile_build(r)->g->node_count;
    out.ref = convolved(r, at, &f, &x, &out);
    read_held(r, first);
    if (last) ft__graphfile_set_channels_last(&out);
    if (!ft__graphfile_failed(r)) ft__graphfile_give(r, 0, &out);
}

/* -- pooling ----------------------------------------------------------------------------------- */

static ft_named like_picture(const ft_named *x, const int64_t *dim)
{
    ft_named out = ft__graphfile_fresh(FT_NONE, x->dims, dim);
    if (ft__graphfile_channels_last(x)) ft__graphfile_set_channels_last(&out);
    return out;
}

/* Rows and columns of a picture as it is kept. */
static int64_t kept_rows(const ft_named *n, bool last)
{
    return n->dim[0] * (last ? ft__graphfile_span(n, 2, n->dims) : n->dim[1]);
}
static int64_t kept_cols(const ft_named *n, bool last) { return last ? n->dim[1] : ft__graphfile_span(n, 2, n->dims); }

static bool is_picture(ft_graph_reader *r, const ft_named *x)
{
    if (x->dims >= 3 && x->dims <= 2 + SPACE) return true;
    ft__graphfile_fail(r, FT_E_RANGE, "it takes [n, c, ...] of 3 to 5 axes, got %d", x->dims);
    return false;
}

void ft__read_pool(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x;
    int64_t window[SPACE], stride[SPACE], pad[SPACE], dilation[SPACE], dim[FT_GRAPHFILE_DIMS];
    if (!ft__graphfile_operand(r, 0, &x) || !is_picture(r, &x)) return;
    int space = x.dims - 2;
    bool up = ft__graphfile_truth(r, "ceil", false), maximum = !strcmp(ft__graphfile_op(r), "maxpool");
    if (!ft__graphfile_each(r, "window", space, 0, 1, window)) return;
    memcpy(stride, window, sizeof stride);
    if (json_object_get(r->at, "stride") && !ft__graphfile_each(r, "stride", space, 1, 1, stride)) return;
    if (!ft__graphfile_each(r, "pad", space, 0, 0, pad) || !ft__graphfile_each(r, "dilation", space, 1, 1, dilation))
        return;
    if (ft__graphfile_failed(r)) return;
    dim[0] = x.dim[0];
    dim[1] = x.dim[1];
    double taps = 1;
    for (int i = 0; i < space; i++) {
        double reach = (double)dilation[i] * (double)(window[i] - 1) + 1, in = (double)x.dim[2 + i];
        double steps = (in + 2 * (double)pad[i] - reach) / (double)stride[i];
        double out = (up ? ceil(steps) : floor(steps)) + 1;
        if (!(out >= 1 && out <= (double)LARGEST)) {
            ft__graphfile_fail(r, FT_E_RANGE, "a window of %.0f does not fit a side of %.0f", reach, in);
            return;
        }
        dim[2 + i] = (int64_t)out;
        taps *= (double)window[i];
    }
    if (!ft__graphfile_possible(r, x.dims, dim)) return;
    bool last = ft__graphfile_channels_last(&x);
    ft_named out = like_picture(&x, dim);
    ft_ref in = picture(r, at, &x, last);
    int64_t rows = kept_rows(&out, last), cols = kept_cols(&out, last);
    out.ref = maximum ? ft__pool(b, at, in, rows, cols, fmin(taps, 1e6))
                      : ft__resample(b, at, "pool", in, rows, cols, taps);
    ft__graphfile_give(r, 0, &out);
}

/* Averages over what the result's size says, interpolations, borders. A single pixel is a mean over all of them. */
void ft__read_resized(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    const char *op = ft__graphfile_op(r);
    ft_named x;
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
    bool border = !strcmp(op, "pad"), average = !strcmp(op, "adaptive_avgpool");
    if (!ft__graphfile_operand(r, 0, &x)) return;
    if (!ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    bool fits = dims == x.dims && (border || (dims >= 3 && dim[0] == x.dim[0] && dim[1] == x.dim[1]));
    for (int i = 0; fits && border && i < dims; i++) fits = dim[i] >= x.dim[i];
    if (!fits) {
        ft__graphfile_fail(r, FT_E_RANGE, "\"shape\" must have x's %d axes%s", x.dims,
                           border ? ", none of them smaller" : ", and its first two sizes");
        return;
    }
    bool last = ft__graphfile_channels_last(&x);
    ft_named out = like_picture(&x, dim);
    double pixels = x.dims > 2 ? (double)ft__graphfile_span(&x, 2, x.dims) : 1;
    double made = x.dims > 2 ? (double)ft__graphfile_span(&out, 2, out.dims) : 1;
    if (average && made == 1) {
        ft_reduction mean = {.what = "mean", .kernel = "sum_rows", .rows = x.dim[0] * x.dim[1], .cols = 1};
        mean.kernel_rows = mean.rows;
        mean.kernel_cols = (int64_t)pixels;
        ft_ref in = last ? ft__view_as(b, picture(r, at, &x, true), mean.rows, (int64_t)pixels, FT_PERMUTED)
                         : picture(r, at, &x, false);
        out.ref = ft__reduce_over(b, at, in, &mean);
        ft__graphfile_contiguous(&out);
    } else if (border && !last) {
        out.ref = ft__resample(b, at, "pad", ft__graphfile_by_rows(r, at, &x), ft__graphfile_rows(dims, dim),
                               dim[dims - 1], 1);
        ft__graphfile_contiguous(&out);
    } else {
        ft_ref in = picture(r, at, &x, last);
        out.ref = ft__resample(b, at,
                               border    ? "pad"
                               : average ? "pool"
                                         : "upsample",
                               in, kept_rows(&out, last), kept_cols(&out, last), average ? fmax(1, pixels / made) : 4);
    }
    ft__graphfile_give(r, 0, &out);
}
