/* conv_physics.c: what one convolution takes, before anything is learned. conv.c says what was read where. */
#include "kernel/conv_physics.h"

#include <math.h>

#include "graph/operator.h"
#include "kernel/conv_constants.h"
#include "kernel/conv_product.h"
#include "kernel/conv_theta.h"
#include "kernel/depthwise.h"
#include "kernel/feature.h"
#include "kernel/gemm_tiles.h"
#include "kernel/grouped.h"
#include "kernel/kernel.h"
#include "kernel/traffic.h"

/* Where cuDNN 9's heuristic, asked for a 7x7 filter in half precision, answers with an fp32 kernel on the vector units,
 * ten times slower than its neighbours. Nothing physical: regions of shapes read off rows with such filters. */
static bool forward_hole(double c, double k, double pixels, double image, double size, double stride)
{
    const struct ft__k_conv_forward_holes *at = &ft__k_conv_forward_holes;
    bool many = c >= at->many_c && k >= at->many_k && (image >= at->many_pixels || c < at->few_c) && size > at->from &&
                size < at->to;
    bool middling = c >= at->middling_c && k >= at->middling_k_from && k <= at->middling_k_to && stride == 1 &&
                    pixels > at->middling_outputs && pixels * k < at->middling_values;
    return many || middling;
}
static bool weights_hole(double c, double k, double pixels)
{
    const struct ft__k_conv_weights_holes *at = &ft__k_conv_weights_holes;
    return c >= at->c && k >= at->k && pixels > at->from && pixels < at->to;
}

static double out_size(int64_t in, int64_t filter, int64_t stride, int64_t pad)
{
    return floor((double)(in + 2 * pad - filter) / (double)stride) + 1;
}

/* Share of a kernel's output that the next one still finds in the last-level cache. */
static double kept(const ft_device *device, double bytes)
{
    return ft__resident(bytes, FT_K_CONV_KEPT_CACHE * device->l2_mib * 1048576);
}

/* One more kernel that reads and writes `bytes` of elements of `e`: a change of layout. In 16 bits the SMs hold it on a
 * GPU with as much bandwidth as ours, the memory on others; where both are near, neither is reached. */
static double transpose_ms(const ft_device *device, const double *th, double bytes, double e)
{
    double moved = bytes * (2 - FT_K_CONV_KEPT_GAIN * kept(device, bytes)) /
                   (th[TRANSPOSE_EB] * device->memory_gbps * 1e6);
    double turned = bytes / e / (FT_K_CONV_TURNED_PER_CLK * device->sms * ft__running_mhz(device) * 1e3);
    return th[TRANSPOSE_US] * 1e-3 + hypot(moved, turned);
}

/* The same of an image's few channels, filled up to `times` as many. */
static double fill_ms(const ft_device *device, const double *th, double bytes, double e, double times)
{
    double moved = bytes * (1 + times) / (th[TRANSPOSE_EB] * device->memory_gbps * 1e6);
    double turned = bytes / e * times / (FT_K_CONV_PADDED_PER_CLK * device->sms * ft__running_mhz(device) * 1e3);
    return th[TRANSPOSE_US] * 1e-3 + hypot(moved, turned);
}

/* Gradients on vector units, over the rate of an SM of 128 lanes, which is what was measured: an SM's shared memory
 * gives 128 bytes per clock whatever its lanes, and a product of 8x8 outputs per thread needs one for every
 * multiply-add. */
static double fed_rate(const ft_device *device, double rate)
{
    return fmax(rate, fmin(FT_K_CONV_FED_MOST, rate * fmax(1, FT_K_CONV_FED_LANES / device->lanes_per_sm)));
}

/* What features tell beside the shape. */
typedef struct inside {
    double data, filters, extra; /* ms of the gradients' products, and of passes around all */
    bool matrix, fast, lanes;
    ft_gemm_pick main, second;
} inside;

static void features(const ft_device *device, const ft_op *op, const double *th, const inside *in, ft_physics *out)
{
    double n = (double)op->u.conv.n, g = (double)op->u.conv.groups, c = (double)op->u.conv.c, k = (double)op->u.conv.k;
    double h = (double)op->u.conv.h, w = (double)op->u.conv.w, r = (double)op->u.conv.r, s = (double)op->u.conv.s;
    double e = ft_dtype_bytes(op->dtype), taps = r * s, depth = fmax(1, op->u.conv.depth);
    double oh = out_size(op->u.conv.h, op->u.conv.r, op->u.conv.stride, op->u.conv.pad);
    double ow = out_size(op->u.conv.w, op->u.conv.s, op->u.conv.stride, op->u.conv.pad);
    double x = n * c * h * w * e / depth, y = n * k * oh * ow * e, weights = k * c / g * taps * e, pixels = n * oh * ow;
    double step = in->matrix ? fmax(16 / e, 1) : 1, cp = ceil(c / g / step) * step, waves = fmax(in->main.waves, 1e-3);
    bool eager = op->timing == FT_TIMING_OP;
    float *f = out->feature;
    *f++ = ft__lg(1 + out->body_ms * 1e3 / th[eager ? GAP : LAUNCH]), *f++ = ft__lg(out->compute_ms / out->memory_ms);
    *f++ = ft__lg(pixels), *f++ = ft__lg(k), *f++ = ft__lg(c * taps), *f++ = ft__lg(c), *f++ = ft__lg(oh * ow),
    *f++ = ft__lg(n);
    *f++ = (float)taps, *f++ = (float)op->u.conv.stride, *f++ = (float)op->u.conv.nhwc, *f++ = (float)e,
    *f++ = (float)!in->matrix;
    *f++ = (float)(waves / ceil(waves)), *f++ = ft__lg(waves), *f++ = (float)in->main.split, *f++ = (float)out->tile_m,
    *f++ = (float)out->tile_n;
    *f++ = (float)(cp * g != c), *f++ = ft__lg((x + y + weights) / (device->l2_mib * 1048576)), *f++ = (float)in->fast;
    *f++ = ft__lg((in->filters + 1e-6) / (in->data + 1e-6)), *f++ = ft__lg(fmax(in->second.waves, 1e-3)),
    *f++ = (float)in->second.split;
    *f++ = in->main.log_ratio[0], *f++ = in->main.log_ratio[2], *f++ = in->main.log_ratio[5],
    *f++ = in->main.log_ratio[7];
    *f++ = (float)fmin(c * taps / 64, 16);
    *f++ = ft__lg(c / k), *f++ = ft__lg(x), *f++ = ft__lg(2 * pixels * k * c / g * taps), *f++ = ft__lg(c * k),
    *f++ = (float)in->lanes;
    *f++ = (float)(in->extra / out->body_ms);
    *f++ = (float)(op->u.conv.space ? op->u.conv.space : 2), *f++ = (float)depth, *f++ = (float)op->u.conv.dilated;
    *f++ = (float)ft__conv_parts(op), *f++ = ft__lg(g), *f++ = ft__lg(c / g), *f++ = (float)r, *f++ = (float)s;
    *f++ = (float)(fmod(k / g, 8) > 0);
}

/* Kernels with figures of their own, launches within them: what is left is learned in 16 bits, elsewhere nothing is. */
static void own_figures(const ft_device *device, const ft_op *op, const double *th, ft_own_figures d, const char *note,
                        bool want, ft_physics *out)
{
    bool half = ft_dtype_bytes(op->dtype) <= 2;
    out->compute_ms = d.compute_ms;
    out->memory_ms = d.memory_ms;
    out->body_ms = fmax(0, d.ms - th[LAUNCH] * 1e-3) + (op->timing == FT_TIMING_OP ? th[LEAD_US] * 1e-3 : 0);
    out->spread = half ? 0 : d.spread;
    out->tile_m = out->tile_n = out->split_k = 0;
    out->tiles = out->waves = 0;
    out->note = note;
    for (int i = 0; i < FT_CONV_FEATURES; i++) out->feature[i] = 0;
    inside in = {.lanes = true};
    if (want && half) features(device, op, th, &in, out);
}

void ft__conv_physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    out->spread = 0;
    if (ft__is_depthwise(op)) {
        own_figures(device, op, th, ft__depthwise(device, op),
                    "one filter per channel: multiply-adds by the lane, no product", want, out);
        return;
    }
    if (ft__is_grouped(device, op)) {
        own_figures(device, op, th, ft__grouped(device, op), "groups of channels: padded to a power of two, or apart",
                    want, out);
        return;
    }
    int parts = ft__conv_parts(op);
    bool eager = op->timing == FT_TIMING_OP, forward = parts & FT_CONV_RESULT, to_input = parts & FT_CONV_INPUT,
         to_filter = parts & FT_CONV_FILTER, backward = to_input || to_filter, nhwc = op->u.conv.nhwc;
    double gradients = (to_input ? 1 : 0) + (to_filter ? 1 : 0);
    double n = (double)op->u.conv.n, g = (double)op->u.conv.groups, c = (double)op->u.conv.c, k = (double)op->u.conv.k;
    double h = (double)op->u.conv.h, w = (double)op->u.conv.w, r = (double)op->u.conv.r, s = (double)op->u.conv.s;
    double stride = (double)op->u.conv.stride, e = ft_dtype_bytes(op->dtype), bandwidth = device->memory_gbps * 1e6;
    double oh = out_size(op->u.conv.h, op->u.conv.r, op->u.conv.stride, op->u.conv.pad);
    double ow = out_size(op->u.conv.w, op->u.conv.s, op->u.conv.stride, op->u.conv.pad);
    double taps = r * s;
    bool point = taps == 1 && stride == 1; /* a plain matrix product */
    bool matrix = (op->dtype != FT_FP32 && op->dtype != FT_FP64) && device->matrix_fma_per_clk_sm > 0;
    double step = matrix ? fmax(16 / e, 1) : 1, cp = ceil(c / g / step) * step;
    double chunk = !matrix                       ? 1
                   : point                       ? 64 / e
                   : taps > FT_K_CONV_LARGE_TAPS ? 64 / e
                                                 : 32,
           chunk_c = ceil(c / g / chunk) * chunk;
    double x = n * c * h * w * e / fmax(1, op->u.conv.depth), y = n * k * oh * ow * e, weights = k * c / g * taps * e;
    double pixels = n * oh * ow, flops = 2 * pixels * k * c / g * taps;
    /* A clip's depth stands among its channels; cuDNN 9.19 runs implicit_convolveNd_sgemm for clips of 1 and 3. */
    bool clip = op->u.conv.space == 3;
    double alone = clip && op->u.conv.depth > 1 ? c / op->u.conv.depth : c;
    bool few = matrix && alone / g < step; /* an image's three channels */
    /* No 7x7 kernel was written for matrix units beyond an A100's 1,024 multiply-adds per clock and SM: large filters
     * run on those of the generation before, and only there at another rate than small ones. */
    bool wide = device->matrix_fma_per_clk_sm > FT_K_CONV_OLDER_FMA;
    bool half = matrix && e <= 2, odd = fmod(c / g, 16) > 0 || fmod(k / g, 16) > 0;
    bool older = matrix && wide && (taps > FT_K_CONV_LARGE_TAPS || (half && (few || (odd && taps > 1)) && !point));
    double large = matrix ? (older ? th[TAPS49] : 1) : taps > FT_K_CONV_LARGE_TAPS ? th[TAPS49] : 1;
    double rate = th[EC] * (taps > 1 ? th[TAPS9] : 1) * (stride > 1 ? th[HOLES] : 1) *
                  (matrix && fmin(c, k) / g < chunk ? th[NARROW] : 1);
    /* Other algorithms than the product, on vector units, where the filter moves by one pixel. */
    bool fast = !matrix && stride == 1 && taps > 1 && c / g >= FT_K_CONV_FAST_CHANNELS &&
                k / g >= FT_K_CONV_FAST_CHANNELS;
    double gain = !fast ? 1 : taps <= FT_K_CONV_FAST_TAPS ? th[WINOGRAD] : th[FOURIER];
    /* Elsewhere an image's channels are padded to 16 bytes and its taps packed behind each other. */
    bool filled = half && few && !nhwc && !clip && taps >= FT_K_CONV_FILLED_TAPS,
         packed = few && (nhwc || filled) && !wide;
    if (packed) chunk_c = cp;
    double blocks = ceil(pixels / 128) * ceil(k / 128) / device->sms;
    double slow_ms = flops / (th[DIRECT] * 2 * ft__lane_rate(device)) * ceil(blocks) / blocks; /* 128x128 tiles */
    bool skewed = matrix && point && !nhwc && fmod(h * w * e, 16) > 0;
    double level = rate; /* of images that begin at multiples of 16 bytes */
    if (skewed) rate *= th[SKEW];
    /* Pixels between the strides of a small filter are never read. */
    double seen = fmin(1, r / stride) * fmin(1, s / stride);
    bool moved = matrix ? !nhwc && !point && !few : nhwc && c / g * taps > FT_K_CONV_SHORT_K;
    double x_moved = moved ? 1 - FT_K_CONV_KEPT_GAIN * kept(device, x) : 1;
    double x_read = x * seen * x_moved, y_read = y * (moved ? 1 - FT_K_CONV_KEPT_GAIN * kept(device, y) : 1);
    double traffic = (x_read + y_read + weights) / (th[EB] * bandwidth);
    double traffic_data = (x * x_moved + y_read + weights) / (th[EB] * bandwidth);
    double wide_k = half && few ? ceil(k / g / FT_K_CONV_VECTOR_FILTERS) * FT_K_CONV_VECTOR_FILTERS * g : k;
    double vector_ms = 2 * pixels * wide_k * (c / g * taps + FT_K_CONV_VECTOR_START) /
                       (th[DIRECT] * 2 * ft__lane_rate(device));
    double move = taps > 1 ? transpose_ms(device, th, weights, e) : 0;
    move += half && few && !nhwc ? fill_ms(device, th, x, e, cp * g / c) : transpose_ms(device, th, x, e);
    move += transpose_ms(device, th, y, e);
    double compute = 0, data = 0, filters = 0, extra = 0, body = 0;
    /* Only products and the weights' gradient share K out. */
    int split = !matrix || (older && !half && forward) ? 1 : point ? 16 : 2;
    ft_gemm_pick main = {0}, second = {0};
    bool direct = g > 1 && c / g < FT_K_CONV_DIRECT_CHANNELS, short_k = c / g * taps <= FT_K_CONV_SHORT_K,
         lanes = false, hole = false;
    if (direct) { /* one multiply-add per lane and tap */
        double each = n * k * oh * ow * taps * (c / g) * FT_K_CONV_DIRECT_INSTRUCTIONS / ft__lane_rate(device);
        data = to_input ? (FT_K_CONV_DIRECT_BACKWARD - FT_K_CONV_DIRECT_FILTERS) * each : 0;
        filters = to_filter ? FT_K_CONV_DIRECT_FILTERS * each : 0;
        compute = (forward ? each : 0) + data + filters;
        body = ft__smooth_max(compute, traffic * ((forward ? 1 : 0) + gradients), th[SMOOTH]);
    } else {
        bool images = point && !nhwc; /* a product per image */
        if (forward) {
            unsigned tiles = older && !half ? FT_CONV_OLDER_TF32_TILES : 0;
            ft_conv_product p = {g, pixels, k / g, chunk_c * taps, rate * large * gain, split, point, older, tiles};
            if (images) p.b = g * n, p.m = oh * ow;
            ft__conv_run(device, op, th, p, matrix, want, &main);
            if (skewed && !wide)
                ft__conv_turn(device, op, th,
                              (ft_conv_product){g, pixels, k / g, chunk_c, level, split, point, older, 0}, move, &main);
            lanes = (few && !point && !filled && (!nhwc || clip)) || (clip && matrix && k < step) ||
                    (matrix && !half && taps == 1 && stride > 1 && c / g <= FT_K_CONV_FEW_CHANNELS) ||
                    (!matrix && nhwc && short_k);
            hole = half && wide && taps > FT_K_CONV_LARGE_TAPS &&
                   forward_hole(c / g, k / g, pixels, h * w, n * c * h * w, stride);
            double ms = hole ? slow_ms : lanes ? vector_ms : main.ms;
            body += ft__smooth_max(ms, traffic, th[SMOOTH]);
            compute += ms;
            if (few && nhwc && !lanes && !point)
                extra += 2 * th[TRANSPOSE_US] * 1e-3 + x * (1 + cp * g / c) / (th[PAD_EB] * bandwidth);
            else if (few && point)
                extra += (x + y) / (th[PAD_EB] * bandwidth);
            else if ((moved || filled) && !lanes && !hole)
                extra += move;
            else if (older && e > 2 && !lanes) /* tf32's older kernels want their operands rounded first */
                extra += transpose_ms(device, th, x, e);
        }
        if (backward) {
            double gaps = stride > 1 ? th[STRIDED] : 1;
            ft_gemm_pick pick;
            double block = matrix ? chunk : stride > 1 ? FT_K_CONV_K_BLOCK_STRIDED : FT_K_CONV_K_BLOCK;
            /* The residues of the stride are products of their own, ceil(r / stride)^2 taps the longest of them: its
             * length counts where the GPU is not full, the mean where it is. */
            double full = fmin(1, ceil(n * h * w / 128) * ceil(c / g / 128) * g / device->sms);
            double longest = ceil(r / stride) * ceil(s / stride), mean = taps / (stride * stride);
            double deep = fmax(1, ceil(k / g / block) * block * (full * mean + (1 - full) * longest));
            ft_conv_product d = {g, n * h * w, c / g, deep, rate * th[DATA] * gaps, split, point, false, 0};
            if (images) d.b = g * n, d.m = h * w;
            if (!matrix) d.rate = fed_rate(device, d.rate);
            ft__conv_run(device, op, th, d, matrix, want && !forward, &pick);
            if (skewed && !wide)
                ft__conv_turn(device, op, th,
                              (ft_conv_product){g, pixels, c / g, deep, level * th[DATA], split, point, false, 0}, move,
                              &pick);
            if (!forward) main = pick;
            double weights_rate = rate * (matrix ? large : 1) * gain * th[WEIGHTS];
            ft_conv_product f = {
                g, k / g, c / g * taps, pixels, weights_rate, 1024, point, older || c / g <= FT_K_CONV_FEW_CHANNELS, 0};
            if (!matrix) f.rate = fed_rate(device, f.rate);
            ft__conv_run(device, op, th, f, matrix, false, &second);
            if (skewed && !wide) {
                f.rate = level * gain * th[WEIGHTS];
                ft__conv_turn(device, op, th, f, transpose_ms(device, th, x, e), &second);
            }
            data = to_input ? pick.ms : 0, filters = to_filter ? second.ms : 0;
            if (to_filter && half && wide && taps > FT_K_CONV_LARGE_TAPS && weights_hole(c / g, k / g, pixels))
                hole = true, filters = flops / (th[DIRECT] * 2 * ft__lane_rate(device));
            compute += data + filters;
            if (to_input) body += ft__smooth_max(data, traffic_data, th[SMOOTH]);
            if (to_filter) body += ft__smooth_max(filters, traffic, th[SMOOTH]);
            extra += (gradients - 1) * th[SECOND_US] * 1e-3;
            if (matrix && few && nhwc && !point)
                extra += gradients * (2 * th[TRANSPOSE_US] * 1e-3 + x * (1 + cp * g / c) / (th[PAD_EB] * bandwidth));
            else if (few && point)
                extra += gradients * (x + y) / (th[PAD_EB] * bandwidth);
            else if (matrix && !nhwc && !point)
                extra += gradients * move;
            else if (!matrix && nhwc)
                extra += move;
            else if (older && e > 2)
                extra += transpose_ms(device, th, x, e) + transpose_ms(device, th, y, e);
        }
    }
    double passes = (forward ? 1 : 0) + gradients;
    if (direct) matrix = false;
    out->compute_ms = compute;
    out->memory_ms = traffic * passes;
    out->body_ms = body + extra + (eager ? th[LEAD_US] * 1e-3 : 0);
    out->tile_m = direct ? 0 : ft__conv_tile(matrix, main.tile).m;
    out->tile_n = direct ? 0 : ft__conv_tile(matrix, main.tile).n;
    out->split_k = direct ? 0 : main.split;
    out->tiles = main.tiles;
    out->waves = main.waves;
    out->note = !matrix                   ? NULL
                : hole                    ? "7x7 filter: cuDNN falls to a kernel without matrix units here"
                : nhwc && cp * g != c     ? "channels not a multiple of 16 bytes: padded first"
                : !nhwc && !point && !few ? "NCHW: transposed before and after the product"
                                          : NULL;
    if (!want) return;
    inside in = {.data = data,
                 .filters = filters,
                 .extra = extra,
                 .matrix = matrix,
                 .fast = fast,
                 .lanes = lanes || hole,
                 .main = main,
                 .second = second};
    features(device, op, th, &in, out);
}
