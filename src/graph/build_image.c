/* build_image.c: convolutions, batch norm, pooling. */
#include <math.h>
#include <string.h>

#include "graph/batchnorm.h"
#include "graph/emit.h"
#include "graph/resize.h"

static ft_ref filter(ft_build *b, ft_at at, ft_ref x, ft_ref weight, ft_ref bias, const ft_conv_shape *s, int64_t rows,
                     int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_CONV, at);
    weight = ft__lowered(b, at, weight);
    bias = ft__lowered(b, at, bias);
    ft__node_in(&n, x);
    ft__node_in(&n, weight);
    ft__node_in(&n, bias);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_dtype flow = b->autocast ? ft__flowing(b->math) : t.dtype;
    ft_ref y = ft__node_out(b, &n, rows, cols, flow, ft_dtype_bytes(flow));
    n.op = (ft_op){.kind = FT_OP_CONV2D, .name = "conv2d", .dtype = ft__product_dtype(b, &t), .kv_dtype = flow};
    n.op.u.conv.n = s->n;
    n.op.u.conv.c = s->c;
    n.op.u.conv.h = s->h;
    n.op.u.conv.w = s->w;
    n.op.u.conv.k = s->k;
    n.op.u.conv.r = s->r;
    n.op.u.conv.s = s->s;
    n.op.u.conv.stride = s->stride;
    n.op.u.conv.pad = s->pad;
    n.op.u.conv.groups = s->groups;
    n.op.u.conv.nhwc = b->channels_last;
    n.op.u.conv.parts = s->parts;
    n.op.u.conv.dilated = s->dilated;
    n.op.u.conv.space = (signed char)(s->space == 2 ? 0 : s->space);
    n.op.u.conv.depth = (signed char)(s->depth > 1 ? s->depth : 0);
    ft__emit(b, &n);
    return y;
}

ft_ref ft__conv_with(ft_build *b, ft_at at, ft_ref x, ft_ref weight, const ft_conv_shape *s, int64_t rows, int64_t cols)
{
    if (b->autocast) x = ft__cast(b, at, x, ft__flowing(b->math));
    ft_ref y = filter(b, at, x, weight, FT_NONE, s, rows, cols);
    ft__module(b, 1);
    return y;
}

ft_ref ft__conv(ft_build *b, ft_at at, ft_ref x, const ft_conv_shape *s, ft_bias bias)
{
    if (b->status != FT_OK) return FT_NONE;
    if (s->stride < 1 || s->groups < 1 || s->h + 2 * s->pad < s->r || s->w + 2 * s->pad < s->s) {
        ft__build_fail(b, FT_E_RANGE, "%s: a filter of %lld x %lld does not fit an image of %lld x %lld", at->name,
                       (long long)s->r, (long long)s->s, (long long)s->h, (long long)s->w);
        return FT_NONE;
    }
    int64_t out_h = (s->h + 2 * s->pad - s->r) / s->stride + 1, out_w = (s->w + 2 * s->pad - s->s) / s->stride + 1;
    if (b->autocast) x = ft__cast(b, at, x, ft__flowing(b->math));
    ft_ref weight = ft__parameter(b, "conv.weight", s->k, s->c / s->groups * s->r * s->s);
    ft_ref offset = bias == FT_BIAS ? ft__parameter(b, "conv.bias", 1, s->k) : FT_NONE;
    ft_ref y = filter(b, at, x, weight, offset, s, s->n * s->k, out_h * out_w);
    ft__module(b, 1);
    return y;
}

/* The moments are a kernel of their own, the result another; cuDNN does both in one. */
ft_ref ft__batchnorm(ft_build *b, ft_at at, ft_ref x, int64_t channels)
{
    ft_ref weight = ft__parameter(b, "bn.weight", 1, channels), bias = ft__parameter(b, "bn.bias", 1, channels);
    return ft__batchnorm_with(b, at, x, channels, weight, bias);
}

static void walks(ft_node *n, ft_walking w)
{
    n->walk = w.walk;
    n->trips = (float)w.trips;
    n->blocks = (float)w.blocks;
}

/* Element by element, in an order that no kernel of the norm knows. */
static ft_walking whole(const ft_tensor *x, ft_walk walk) { return (ft_walking){walk, 1, ft__tensor_numel(x) / 512}; }

ft_ref ft__batchnorm_with(ft_build *b, ft_at at, ft_ref x, int64_t channels, ft_ref weight, ft_ref bias)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_tensor t = *ft__tensor_of(b, x);
    ft_pictures pictures = ft__pictures_of(&t, channels);
    bool low = t.element_bytes < 4;
    bool library = ft__batchnorm_by_library(t.dtype, weight == FT_NONE ? 0 : ft__tensor_of(b, weight)->element_bytes);
    if (b->training && !library) {
        ft_node moments = ft__node_of(FT_DO_FILL, at);
        ft__node_in(&moments, x);
        ft_ref sums = ft__node_out(b, &moments, 2, channels, FT_FP32, 4);
        if (sums == FT_NONE) return FT_NONE;
        b->g->tensors[sums].trained = false;
        moments.op = ft__bytes_kernel("batchnorm_moments", t.dtype, ft__tensor_bytes(&t), 4 * ft__tensor_numel(&t));
        walks(&moments, b->turned_norms ? whole(&t, FT_WALK_MOMENTS_TURNED) : ft__batchnorm_moments(&pictures));
        ft__emit(b, &moments);
    }
    ft_node n = ft__node_of(FT_DO_BATCHNORM, at);
    ft__node_in(&n, x);
    ft__node_in(&n, weight);
    ft__node_in(&n, bias);
    ft__buffer(b, 2, channels, ft_dtype_bytes(b->stored)); /* running mean and variance */
    ft__buffer(b, 1, 1, 8);                                /* batches seen */
    ft_ref out = ft__node_out(b, &n, t.rows, t.cols, t.dtype, t.element_bytes);
    ft_ref moments = ft__node_out(b, &n, 2, channels, FT_FP32, 4);
    if (out == FT_NONE || moments == FT_NONE) return FT_NONE;
    b->g->tensors[moments].trained = false;
    n.op = ft__pointwise_kernel(b->g, "batchnorm", n.in, 1, &b->g->tensors[out]);
    if (b->training && library) { /* moments first, then the result */
        n.op.u.elementwise.bytes += ft__tensor_bytes(&t);
        walks(&n, ft__batchnorm_both(&pictures, low));
    } else {
        walks(&n, b->turned_norms ? whole(&t, FT_WALK_NORM_TURNED) : ft__batchnorm_result(&pictures, low));
    }
    ft__emit(b, &n);
    ft__module(b, 1);
    return out;
}

/* Maximum over a window; where it was found is kept, eight bytes each. */
ft_ref ft__pool(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols, double window)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_POOL, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    ft_ref found = ft__node_out(b, &n, rows, cols, t.dtype, 8);
    if (out == FT_NONE || found == FT_NONE) return FT_NONE;
    b->g->tensors[found].trained = false;
    n.op = ft__pointwise_kernel(b->g, "pool", n.in, 1, &b->g->tensors[out]);
    n.op.u.elementwise.ops_per_element = window;
    n.op.u.elementwise.bytes += ft__tensor_bytes(ft__tensor_of(b, found));
    n.walk = b->channels_last ? FT_WALK_POOL_LAST : FT_WALK_POOL;
    n.trips = (float)window;
    n.blocks = (float)((double)rows * (double)cols / 256);
    ft__emit(b, &n);
    ft__module(b, 1);
    return out;
}

ft_ref ft__resample(ft_build *b, ft_at at, const char *op, ft_ref x, int64_t rows, int64_t cols, double window)
{
    if (b->status != FT_OK) return FT_NONE;
    if (!strcmp(op, "pad")) { /* the border's number goes everywhere first */
        ft_node border = ft__node_of(FT_DO_FILL, at);
        ft_tensor like = *ft__tensor_of(b, x);
        like.rows = rows;
        like.cols = cols;
        border.op = ft__pointwise_kernel(b->g, "fill", NULL, 0, &like);
        ft__emit(b, &border);
    }
    ft_node n = ft__node_of(FT_DO_POOL, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, op, n.in, 1, &b->g->tensors[out]);
    if (!strcmp(op, "pad")) { /* copied into the middle of it */
        n.op.u.elementwise.numel = (int64_t)ft__tensor_numel(&t);
        n.op.u.elementwise.bytes = 2 * ft__tensor_bytes(&t);
        n.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    } else {
        n.op.u.elementwise.ops_per_element = fmin(window, 1e6);
    }
    ft__emit(b, &n);
    return out;
}

ft_ref ft__resize(ft_build *b, ft_at at, const char *op, ft_ref x, int64_t rows, int64_t cols, const ft_resize *how)
{
    ft_ref out = ft__resample(b, at, op, x, rows, cols, ft__resize_window(how));
    if (out == FT_NONE) return out;
    ft_resize with = *how;
    with.bytes = ft__tensor_of(b, x)->element_bytes;
    walks(&b->g->nodes[b->g->node_count - 1], ft__resize_walk(&with));
    return out;
}
