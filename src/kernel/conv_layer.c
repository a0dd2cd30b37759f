/* conv_layer.c: the sizes of a convolution, and which of the library's ways it goes. Nothing here takes time: what each
 * way costs is in conv_physics.c. conv.c says what was read where. */
#include "kernel/conv_layer.h"

#include <math.h>

#include "kernel/conv_constants.h"

static double out_size(int64_t in, int64_t filter, int64_t stride, int64_t pad)
{
    return floor((double)(in + 2 * pad - filter) / (double)stride) + 1;
}

ft_conv_layer ft__conv_layer(const ft_op *op)
{
    int parts = ft__conv_parts(op);
    ft_conv_layer l = {.n = (double)op->u.conv.n,
                       .g = (double)op->u.conv.groups,
                       .c = (double)op->u.conv.c,
                       .k = (double)op->u.conv.k,
                       .h = (double)op->u.conv.h,
                       .w = (double)op->u.conv.w,
                       .r = (double)op->u.conv.r,
                       .s = (double)op->u.conv.s,
                       .stride = (double)op->u.conv.stride,
                       .depth = fmax(1, op->u.conv.depth),
                       .e = ft_dtype_bytes(op->dtype),
                       .oh = out_size(op->u.conv.h, op->u.conv.r, op->u.conv.stride, op->u.conv.pad),
                       .ow = out_size(op->u.conv.w, op->u.conv.s, op->u.conv.stride, op->u.conv.pad),
                       .eager = op->timing == FT_TIMING_OP,
                       .nhwc = op->u.conv.nhwc,
                       .forward = parts & FT_CONV_RESULT,
                       .to_input = parts & FT_CONV_INPUT,
                       .to_filter = parts & FT_CONV_FILTER};
    l.taps = l.r * l.s;
    l.pixels = l.n * l.oh * l.ow;
    l.flops = 2 * l.pixels * l.k * l.c / l.g * l.taps;
    l.x = l.n * l.c * l.h * l.w * l.e / l.depth;
    l.y = l.n * l.k * l.oh * l.ow * l.e;
    l.weights = l.k * l.c / l.g * l.taps * l.e;
    l.gradients = (l.to_input ? 1 : 0) + (l.to_filter ? 1 : 0);
    return l;
}

/* Which units multiply, and how many channels they take at a time. */
static void units(const ft_device *device, const ft_op *op, const ft_conv_layer *l, ft_conv_way *way)
{
    way->point = l->taps == 1 && l->stride == 1;
    way->matrix = (op->dtype != FT_FP32 && op->dtype != FT_FP64) && device->matrix_fma_per_clk_sm > 0;
    way->half = way->matrix && l->e <= 2;
    way->wide = device->matrix_fma_per_clk_sm > FT_K_CONV_OLDER_FMA;
    way->step = way->matrix ? fmax(16 / l->e, 1) : 1;
    way->cp = ceil(l->c / l->g / way->step) * way->step;
    bool large = l->taps > FT_K_CONV_LARGE_TAPS;
    way->chunk = !way->matrix ? 1 : way->point || large ? 64 / l->e : 32;
    way->chunk_c = ceil(l->c / l->g / way->chunk) * way->chunk;
}

/* An image's three channels: padded to 16 bytes where a kernel of matrix units takes them, their taps packed behind
 * each other where those units are an A100's or older. */
static void few_channels(const ft_op *op, const ft_conv_layer *l, ft_conv_way *way)
{
    /* A clip's depth stands among its channels; cuDNN 9.19 runs implicit_convolveNd_sgemm for clips of 1 and 3. */
    way->clip = op->u.conv.space == 3;
    double alone = way->clip && op->u.conv.depth > 1 ? l->c / op->u.conv.depth : l->c;
    way->few = way->matrix && alone / l->g < way->step;
    way->filled = way->half && way->few && !l->nhwc && !way->clip && l->taps >= FT_K_CONV_FILLED_TAPS;
    if (way->few && (l->nhwc || way->filled) && !way->wide) way->chunk_c = way->cp;
}

ft_conv_way ft__conv_way(const ft_device *device, const ft_op *op, const ft_conv_layer *l)
{
    ft_conv_way way = {0};
    double c = l->c / l->g, k = l->k / l->g;
    units(device, op, l, &way);
    few_channels(op, l, &way);
    /* No 7x7 kernel was written for matrix units beyond an A100's 1,024 multiply-adds per clock and SM: large filters
     * run on those of the generation before, and only there at another rate than small ones. */
    bool odd = fmod(c, 16) > 0 || fmod(k, 16) > 0, large = l->taps > FT_K_CONV_LARGE_TAPS;
    way.older = way.matrix && way.wide && (large || (way.half && (way.few || (odd && l->taps > 1)) && !way.point));
    way.fast = !way.matrix && l->stride == 1 && l->taps > 1 && c >= FT_K_CONV_FAST_CHANNELS &&
               k >= FT_K_CONV_FAST_CHANNELS;
    way.skewed = way.matrix && way.point && !l->nhwc && fmod(l->h * l->w * l->e, 16) > 0;
    way.moved = way.matrix ? !l->nhwc && !way.point && !way.few : l->nhwc && c * l->taps > FT_K_CONV_SHORT_K;
    way.direct = l->g > 1 && c < FT_K_CONV_DIRECT_CHANNELS;
    way.short_k = c * l->taps <= FT_K_CONV_SHORT_K;
    return way;
}

/* Ten times slower than its neighbours, and nothing physical: regions of shapes read off rows with such filters. */
static bool may_fall(const ft_conv_layer *l, const ft_conv_way *way)
{
    return way->half && way->wide && l->taps > FT_K_CONV_LARGE_TAPS;
}

bool ft__conv_forward_hole(const ft_conv_layer *l, const ft_conv_way *way)
{
    const struct ft__k_conv_forward_holes *at = &ft__k_conv_forward_holes;
    double c = l->c / l->g, k = l->k / l->g, image = l->h * l->w, size = l->n * l->c * l->h * l->w;
    bool many = c >= at->many_c && k >= at->many_k && (image >= at->many_pixels || c < at->few_c) && size > at->from &&
                size < at->to;
    bool middling = c >= at->middling_c && k >= at->middling_k_from && k <= at->middling_k_to && l->stride == 1 &&
                    l->pixels > at->middling_outputs && l->pixels * k < at->middling_values;
    return may_fall(l, way) && (many || middling);
}

bool ft__conv_whole_hole(const ft_conv_layer *l, const ft_conv_way *way)
{
    const struct ft__k_conv_whole_holes *at = &ft__k_conv_whole_holes;
    return may_fall(l, way) && l->gradients == 0 && l->g == 1 && l->oh * l->ow == 1 && l->taps == at->taps &&
           l->n > at->from && l->n < at->to;
}

ft_own_figures ft__conv_whole(const ft_device *device, const ft_conv_layer *l, double memory_ms)
{
    const struct ft__k_conv_whole_holes *at = &ft__k_conv_whole_holes;
    double waves = fmax(1, l->pixels * l->k / at->tile / device->sms);
    double ms = 1e-3 * at->step_us * l->c * l->taps * waves;
    return (ft_own_figures){
        .ms = ms, .compute_ms = ms, .memory_ms = memory_ms, .spread = FT_K_CONV_WHOLE_SPREAD, .alone = true};
}

bool ft__conv_weights_hole(const ft_conv_layer *l, const ft_conv_way *way)
{
    const struct ft__k_conv_weights_holes *at = &ft__k_conv_weights_holes;
    return may_fall(l, way) && l->c / l->g >= at->c && l->k / l->g >= at->k && l->pixels > at->from &&
           l->pixels < at->to;
}
