/* image.c: convolutions, pooling and resizing of a graph file. What the kernel room does not know as it is stands for
 * what it knows (graph/convolution.h). */
#include <math.h>
#include <string.h>

#include "graph/convolution.h"
#include "graph/emit.h"
#include "graph/resize.h"
#include "import/graphfile/reader.h"
#include "model/relative.h"

enum { SPACE = FT_CONV_AXES };
static const int64_t LARGEST = (int64_t)1 << 40;

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
static void filter_sizes(ft_graph_reader *r, ft_convolution *f)
{
    static const char *const keys[SPACE][SPACE] = {{"r"}, {"r", "s"}, {"t", "r", "s"}};
    const ft_named *w = ft__graphfile_named_weight(r, "weight");
    bool known = w && w->dims == f->space + 2;
    f->k = ft__graphfile_whole(r, "k", known ? (f->transposed ? w->dim[1] * f->groups : w->dim[0]) : 0, 1, LARGEST);
    for (int i = 0; i < f->space; i++) {
        int64_t usual = known ? w->dim[2 + i] : i > 0 ? f->filter[i - 1] : 0;
        f->filter[i] = ft__graphfile_whole(r, keys[f->space - 1][i], usual, 1, LARGEST);
    }
}

/* The result's sizes; false after an error. */
static bool filter_result(ft_graph_reader *r, ft_convolution *f, const ft_named *x, int64_t *dim)
{
    for (int i = 0; i < f->space; i++) f->in[i] = x->dim[2 + i];
    int small = ft__convolution_result(f);
    if (small >= 0) {
        ft__graphfile_fail(r, FT_E_RANGE, "a filter of %.0f does not fit a side of %.0f",
                           ft__convolution_reach(f, small), (double)f->in[small]);
        return false;
    }
    dim[0] = x->dim[0];
    dim[1] = f->k;
    for (int i = 0; i < f->space; i++) dim[2 + i] = f->out[i];
    return ft__graphfile_possible(r, f->space + 2, dim);
}

/* How the image is kept: as [n*pixels, c] where channels lie next to each other, otherwise as [n*c, pixels]. */
static ft_ref picture(ft_graph_reader *r, ft_at at, const ft_named *x, bool last)
{
    ft_build *b = ft__graphfile_build(r);
    int64_t pixels = ft__graphfile_span(x, 2, x->dims);
    const ft_tensor *t = ft__tensor_of(b, x->ref);
    if (!last) return ft__graphfile_matrix(r, at, x, x->dim[0] * x->dim[1], pixels);
    if (!t->strided && t->cols == x->dim[1]) return x->ref;
    return ft__view_as(b, x->ref, x->dim[0] * pixels, x->dim[1], FT_IN_ORDER);
}

/* Filters whose channels lie next to each other, as the model's images came in, ask the same of every image: one
 * that does not lie so (a group norm's result) is turned first (ATen/native/ConvUtils.h, suggested memory format). */
static bool turned_first(ft_graph_reader *r, const ft_named *x)
{
    const bool made = ft__tensor_of(ft__graphfile_build(r), x->ref)->role == FT_ACTIVATION;
    if (!made && !r->turned) return false; /* as it was said to lie */
    if (ft__graphfile_cut_channels(x)) return false;
    return (r->nhwc || r->turned) && x->dims > 3 && x->dim[1] > 1 && !x->unordered && !ft__graphfile_channels_last(x);
}

/* Whether a convolution of x gives channels last. An image of one pixel lies both ways: as the filters do. */
static bool lies_last(ft_graph_reader *r, const ft_named *x)
{
    const bool point = ft__graphfile_span(x, 2, x->dims) == 1;
    return turned_first(r, x) || ft__graphfile_cut_channels(x) ||
           (ft__graphfile_channels_last(x) && (r->nhwc || r->turned || !point));
}

static ft_ref convolved(ft_graph_reader *r, ft_at at, const ft_convolution *f, const ft_named *x, ft_named *out)
{
    ft_build *b = ft__graphfile_build(r);
    int64_t taps = f->filter[0] * (f->space > 1 ? f->filter[1] : 1) * (f->space > 2 ? f->filter[2] : 1);
    int64_t inner = (f->transposed ? f->k : x->dim[1]) / f->groups * taps, outer = f->transposed ? x->dim[1] : f->k;
    bool turned = turned_first(r, x), cut = ft__graphfile_cut_channels(x), before = b->channels_last;
    bool last = lies_last(r, x);
    ft_ref weight = FT_NONE;
    if (!computed_filters(r, (double)outer * (double)inner, &weight)) return FT_NONE;
    if (weight == FT_NONE) weight = ft__graphfile_weight(r, "weight", true, "conv.weight", outer, inner);
    ft_ref bias = ft__graphfile_weight(r, "bias", false, "conv.bias", 1, f->k);
    if (ft__graphfile_failed(r)) return FT_NONE;
    ft_conv_shape s = ft__convolution_shape(f);
    double drawn = (double)s.n * (double)s.c * (double)s.h * (double)s.w;
    if (!(drawn <= 1e18 && (double)s.n * (double)s.k <= 1e18)) {
        ft__graphfile_fail(r, FT_E_RANGE, "an image of %.4g elements is too large for any machine", drawn);
        return FT_NONE;
    }
    /* Some of an image's channels are copied together first. */
    ft_ref in = cut ? ft__copy(b, at, x->ref, x->dim[0] * ft__graphfile_span(x, 2, x->dims), x->dim[1])
                    : picture(r, at, x, last && !turned);
    if (turned) in = ft__turned(b, at, in, x->dim[0] * ft__graphfile_span(x, 2, x->dims), x->dim[1]);
    b->channels_last = last;
    /* Filters stand as the model's images came in; others are turned each time, by a compiler not those of one
     * pixel, which lie both ways. */
    if (last && !r->nhwc && s.c / s.groups > 1 && !(r->turned && taps == 1))
        ft__no_grad_kernels(b, at, "copy", FT_NONE, outer, inner, ft__tensor_of(b, in)->element_bytes, 1);
    int64_t pixels = ft__graphfile_span(out, 2, out->dims);
    ft_ref y = ft__conv_with(b, at, in, weight, &s, out->dim[0] * f->k, pixels);
    b->channels_last = before;
    if (ft__graphfile_failed(r)) return FT_NONE;
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
        if (g->nodes[i].op.kind == FT_OP_CONV2D) g->nodes[i].held_bytes = (double)bytes;
}

static int space_of(const ft_graph_reader *r) { return ft__graphfile_op(r)[4] - '0'; }

void ft__read_conv(ft_graph_reader *r, ft_at at)
{
    ft_named x;
    ft_convolution f = {.space = space_of(r)};
    if (!ft__graphfile_operand(r, 0, &x)) return;
    if (x.dims != f.space + 2) {
        static const char *const shapes[SPACE] = {"[n, c, l]", "[n, c, h, w]", "[n, c, d, h, w]"};
        ft__graphfile_fail(r, FT_E_RANGE, "a convolution takes %s, got %d axes", shapes[f.space - 1], x.dims);
        return;
    }
    f.n = x.dim[0];
    f.c = x.dim[1];
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
    double taps = (double)f.filter[0] * (double)(f.space > 1 ? f.filter[1] : 1) *
                  (double)(f.space > 2 ? f.filter[2] : 1);
    int64_t dim[FT_GRAPHFILE_DIMS];
    if (!filter_result(r, &f, &x, dim)) return;
    if (taps * (double)f.k * (double)x.dim[1] > 1e18) {
        ft__graphfile_fail(r, FT_E_RANGE, "filters of %.4g elements are too large for any machine",
                           taps * (double)f.k * (double)x.dim[1]);
        return;
    }
    ft_named out = ft__graphfile_fresh(FT_NONE, x.dims, dim);
    bool last = lies_last(r, &x);
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

/* Rows and columns of an image as it is kept. */
static int64_t kept_rows(const ft_named *n, bool last)
{
    return n->dim[0] * (last ? ft__graphfile_span(n, 2, n->dims) : n->dim[1]);
}
static int64_t kept_cols(const ft_named *n, bool last) { return last ? n->dim[1] : ft__graphfile_span(n, 2, n->dims); }

static double pixels_of(const ft_named *n) { return n->dims > 2 ? (double)ft__graphfile_span(n, 2, n->dims) : 1; }

/* What is known of how its kernel walks. */
static ft_resize resizing(const ft_named *x, const ft_named *out, ft_resizing by, double window, bool last)
{
    bool same = true;
    for (int i = 2; i < x->dims; i++) same = same && x->dim[i] == out->dim[i];
    return (ft_resize){.by = by,
                       .axes = out->dims - 2,
                       .pictures = (double)out->dim[0] * (double)out->dim[1],
                       .pixels = pixels_of(out),
                       .window = window,
                       .last = last,
                       .from = pixels_of(x),
                       .channels = (double)out->dim[1],
                       .width = (double)out->dim[out->dims - 1],
                       .same = same};
}

/* How new pixels come from old ones; false after an error. */
static bool read_mode(ft_graph_reader *r, int *by)
{
    const json_t *value = json_object_get(r->at, "mode");
    if (!value) return true;
    *by = json_is_string(value) ? ft__resizing_find(json_string_value(value)) : -1;
    if (*by >= 0) return true;
    ft__graphfile_fail(r, FT_E_NAME, "\"mode\" must be \"nearest\", \"linear\" or \"cubic\"");
    return false;
}

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
    double taps = 1, whole = 1;
    for (int i = 0; i < space; i++) {
        double reach = (double)dilation[i] * (double)(window[i] - 1) + 1, in = (double)x.dim[2 + i];
        double steps = (in + 2 * (double)pad[i] - reach) / (double)stride[i];
        double out = (up ? ceil(steps) : floor(steps)) + 1;
        if (!(out >= 1 && out <= (double)LARGEST)) {
            ft__graphfile_fail(r, FT_E_RANGE, "a window of %.0f does not fit a side of %.0f", reach, in);
            return;
        }
        dim[2 + i] = (int64_t)out;
        whole *= (double)window[i];
        taps *= fmin((double)window[i], ceil(in / (double)dilation[i])); /* kernels clip windows to the image */
    }
    if (!ft__graphfile_possible(r, x.dims, dim)) return;
    bool last = ft__graphfile_channels_last(&x);
    ft_named out = like_picture(&x, dim);
    ft_ref in = picture(r, at, &x, last);
    int64_t rows = kept_rows(&out, last), cols = kept_cols(&out, last);
    ft_resize mean = resizing(&x, &out, FT_RESIZE_AVERAGE, taps, last);
    bool before = b->channels_last;
    b->channels_last = last;
    out.ref = maximum ? ft__pool(b, at, in, rows, cols, fmin(taps, 1e6))
                      : ft__resize(b, at, "pool", in, rows, cols, &mean);
    if (!maximum && b->status == FT_OK) b->g->nodes[b->g->node_count - 1].each = whole;
    b->channels_last = before;
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
    double pixels = pixels_of(&x);
    /* An image of one pixel lies both ways: as the model's do. Tokens behind a class token leave gaps. */
    bool last = ft__graphfile_cut_channels(&x) ||
                (ft__graphfile_channels_last(&x) && (pixels > 1 || r->nhwc || r->turned));
    ft_named out = ft__graphfile_fresh(FT_NONE, x.dims, dim);
    if (last) ft__graphfile_set_channels_last(&out);
    double made = pixels_of(&out);
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
        int by = average ? (int)FT_RESIZE_ADAPTIVE : (int)FT_RESIZE_OTHER;
        if (!border && !average && !read_mode(r, &by)) return;
        ft_ref in = picture(r, at, &x, last);
        ft_resize how = resizing(&x, &out, (ft_resizing)by, 4, last);
        how.smooth = !border && !average && ft__graphfile_truth(r, "antialias", false);
        out.ref = ft__resize(b, at,
                             border    ? "pad"
                             : average ? "pool"
                                       : "upsample",
                             in, kept_rows(&out, last), kept_cols(&out, last), &how);
    }
    ft__graphfile_give(r, 0, &out);
}

/* An image in other pixels, interpolated (mode bilinear). */
void ft__graphfile_interpolated(ft_graph_reader *r, ft_at at, const ft_named *x, const int64_t *pixels, ft_named *out)
{
    int64_t dim[FT_GRAPHFILE_DIMS];
    for (int i = 0; i < x->dims; i++) dim[i] = i < 2 ? x->dim[i] : pixels[i - 2];
    *out = ft__graphfile_fresh(FT_NONE, x->dims, dim);
    const bool last = ft__graphfile_channels_last(x);
    if (last) ft__graphfile_set_channels_last(out);
    ft_resize how = resizing(x, out, FT_RESIZE_LINEAR, 4, last);
    out->ref = ft__resize(ft__graphfile_build(r), at, "upsample", picture(r, at, x, last), kept_rows(out, last),
                          kept_cols(out, last), &how);
}
