/* 2-D convolutions as implicit matrix products, the way cuDNN computes them.
 *
 *   forward   Y[n oh ow, k] = X[n oh ow, c r s] W[c r s, k]           M = n oh ow, N = k,     K = c r s
 *   data      dX[n h w, c]  = dY[n h w, k r s / stride^2] W           M = n h w,   N = c,     K = k r s / stride^2
 *   weights   dW[k, c r s]  = dY[k, n oh ow] X                        M = k,       N = c r s, K = n oh ow
 *
 * Each goes through the same choice of tiles as a matrix product (conv_product.c). The backward pass is data plus
 * weights, two kernels or more. What cuDNN launches was read off the kernels' names and grids of 4,831 H200 rows
 * (cuDNN 9.19, heuristic choice, no benchmark mode):
 *
 *   half, tf32  want NHWC. NCHW operands are transposed before and after, a kernel each, except for 1x1 filters with
 *               stride 1 (a product per image) and an image's three channels (fp32 kernels on the vector units).
 *   7x7         forward and weights run on kernels of the generation before: half the rate, half the feed, and in tf32
 *               operands rounded by a pass of their own. In half precision some shapes fall to fp32 kernels (holes).
 *   fp32        wants NCHW: NHWC is transposed unless K is short. Filters of 3x3 and more with stride 1 may go through
 *               Winograd or Fourier transforms, forward and for the weights.
 *
 * Depthwise filters and narrow groups in 16 bits have files (depthwise.c, grouped.c). Other narrow groups are direct
 * kernels: bytes, or a multiply-add per lane.
 *
 * Leaves out: dilation, 1-D and 3-D, the autotuner (cudnn.benchmark) that would pick better, and when exactly the
 * heuristic takes a transform: on the same sizes it does so in one case of five, without a pattern we could find. */
#include <math.h>

#include "graph/operator.h"
#include "kernel/conv_constants.h"
#include "kernel/conv_product.h"
#include "kernel/conv_theta.h"
#include "kernel/depthwise.h"
#include "kernel/families.h"
#include "kernel/feature.h"
#include "kernel/gemm_tiles.h"
#include "kernel/grouped.h"
#include "kernel/kernel.h"
#include "kernel/priors_constants.h"
#include "kernel/traffic.h"

_Static_assert((int)THETA_COUNT <= (int)FT_MAX_THETA, "a predictor file has no room for more constants");
static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_CONV_LAUNCH_US,
    [GAP] = FT_K_PRIORS_CONV_GAP_US,
    [EC] = FT_K_PRIORS_CONV_EFFICIENCY,
    [EB] = FT_K_PRIORS_CONV_BANDWIDTH_EFFICIENCY,
    [WAVE_US] = FT_K_PRIORS_CONV_WAVE_US,
    [POINT_WAVE_US] = FT_K_PRIORS_CONV_POINT_WAVE_US,
    [POINT_PROLOGUE] = FT_K_PRIORS_CONV_POINT_PROLOGUE_K,
    [FEED] = FT_K_PRIORS_CONV_FEED_BYTES_PER_FLOP,
    [PROLOGUE] = FT_K_PRIORS_CONV_PROLOGUE_K,
    [SPLIT_US] = FT_K_PRIORS_CONV_SPLIT_US,
    [SMOOTH] = FT_K_PRIORS_CONV_SMOOTH,
    [TAPS9] = FT_K_PRIORS_CONV_TAPS_9,
    [TAPS49] = FT_K_PRIORS_CONV_TAPS_49,
    [HABIT] = FT_K_PRIORS_CONV_HABIT,
    [HOLES] = FT_K_PRIORS_CONV_STRIDED,
    [NARROW] = FT_K_PRIORS_CONV_NARROW,
    [SKEW] = FT_K_PRIORS_CONV_SKEW,
    [DATA] = FT_K_PRIORS_CONV_DATA_GRADIENT,
    [WEIGHTS] = FT_K_PRIORS_CONV_WEIGHT_GRADIENT,
    [STRIDED] = FT_K_PRIORS_CONV_STRIDED_DATA,
    [DIRECT] = FT_K_PRIORS_CONV_DIRECT,
    [PAD_EB] = FT_K_PRIORS_CONV_PAD_BANDWIDTH,
    [TRANSPOSE_US] = FT_K_PRIORS_CONV_TRANSPOSE_US,
    [TRANSPOSE_EB] = FT_K_PRIORS_CONV_TRANSPOSE_BANDWIDTH,
    [WINOGRAD] = FT_K_PRIORS_CONV_WINOGRAD,
    [SECOND_US] = FT_K_PRIORS_CONV_SECOND_US,
    [LEAD_US] = FT_K_PRIORS_CONV_LEAD_US,
    [FOURIER] = FT_K_PRIORS_CONV_FOURIER,
};

/* Half precision, tf32 and fp32 are different kernels; so are the passes. */
enum { FORWARD, BACKWARD, BOTH, PASSES };
enum { HALF, TF32, FP32, KINDS, VARIANTS = KINDS * PASSES };
static const char *const variant_names[VARIANTS] = {"half_forward", "half_backward", "half_both",
                                                    "tf32_forward", "tf32_backward", "tf32_both",
                                                    "fp32_forward", "fp32_backward", "fp32_both"};

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_CONV2D) return -1;
    int kind = op->dtype == FT_TF32 ? TF32 : op->dtype == FT_FP32 || op->dtype == FT_FP64 ? FP32 : HALF;
    int parts = ft__conv_parts(op);
    return kind * PASSES + (parts == FT_CONV_RESULT ? FORWARD : parts & FT_CONV_RESULT ? BOTH : BACKWARD);
}
static const char *variant_name(int v) { return variant_names[v]; }
static int variant_fallback(int v)
{
    int pass = v % PASSES, kind = v / PASSES;
    return pass == BOTH ? v - 1 : kind == TF32 ? HALF * PASSES + pass : pass == BACKWARD ? v - 1 : -1;
}

/* Gradients in fp32 were measured on an H200 alone, whose library hides no traffic behind them and sums filters' in a
 * slow kernel. Other generations' own forward kernels say more of theirs. */
static int variant_lent(int v) { return v == FP32 * PASSES + BACKWARD ? v - BACKWARD + FORWARD : -1; }

static const char *const feature_names[] = {
    "log_time_over_start",
    "log_compute_over_memory",
    "log_m",
    "log_n",
    "log_k",
    "log_c",
    "log_size",
    "log_batch",
    "taps",
    "stride",
    "nhwc",
    "element_bytes",
    "vector_units",
    "wave_fill",
    "log_waves",
    "split",
    "tile_m",
    "tile_n",
    "odd_c",
    "log_bytes_over_cache",
    "fast",
    "log_weight_share",
    "weight_waves",
    "weight_split",
    "r0",
    "r2",
    "r5",
    "r7",
    "few_k",
    "log_c_over_k",
    "log_input_bytes",
    "log_flops",
    "log_channel_pairs",
    "lanes",
    "extra_share",
};

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

/* One more kernel that reads and writes `bytes`: a change of layout. */
static double transpose_ms(const ft_device *device, const double *th, double bytes)
{
    return th[TRANSPOSE_US] * 1e-3 +
           bytes * (2 - FT_K_CONV_KEPT_GAIN * kept(device, bytes)) / (th[TRANSPOSE_EB] * device->memory_gbps * 1e6);
}

/* Gradients on vector units, over the rate of an SM of 128 lanes, which is what was measured: an SM's shared memory
 * gives 128 bytes per clock whatever its lanes, and a product of 8x8 outputs per thread needs one for every
 * multiply-add. */
static double fed_rate(const ft_device *device, double rate)
{
    return fmax(rate, fmin(FT_K_CONV_FED_MOST, rate * fmax(1, FT_K_CONV_FED_LANES / device->lanes_per_sm)));
}

/* Its own figures, not the family's: launches are within them. */
static void own_figures(const ft_op *op, const double *th, ft_own_figures d, const char *note, ft_physics *out)
{
    out->compute_ms = d.compute_ms;
    out->memory_ms = d.memory_ms;
    out->body_ms = fmax(0, d.ms - th[LAUNCH] * 1e-3) + (op->timing == FT_TIMING_OP ? th[LEAD_US] * 1e-3 : 0);
    out->spread = d.spread;
    out->tile_m = out->tile_n = out->split_k = 0;
    out->tiles = out->waves = 0;
    out->note = note;
    for (size_t i = 0; i < sizeof feature_names / sizeof *feature_names; i++) out->feature[i] = 0;
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    out->spread = 0;
    if (ft__is_depthwise(op)) {
        own_figures(op, th, ft__depthwise(device, op), "one filter per channel: multiply-adds by the lane, no product",
                    out);
        return;
    }
    if (ft__is_narrow_grouped(device, op)) {
        own_figures(op, th, ft__grouped(device, op), "narrow groups: products padded to 32 channels", out);
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
    double x = n * c * h * w * e, y = n * k * oh * ow * e, weights = k * c / g * taps * e;
    double pixels = n * oh * ow, flops = 2 * pixels * k * c / g * taps;
    bool few = matrix && c / g < step; /* an image's three channels */
    double large = taps > FT_K_CONV_LARGE_TAPS ? th[TAPS49] : 1;
    double rate = th[EC] * (taps > 1 ? th[TAPS9] : 1) * (stride > 1 ? th[HOLES] : 1) *
                  (matrix && fmin(c, k) / g < chunk ? th[NARROW] : 1);
    /* Other algorithms than the product, on vector units, where the filter moves by one pixel. */
    bool fast = !matrix && stride == 1 && taps > 1 && c / g >= FT_K_CONV_FAST_CHANNELS &&
                k / g >= FT_K_CONV_FAST_CHANNELS;
    double gain = !fast ? 1 : taps <= FT_K_CONV_FAST_TAPS ? th[WINOGRAD] : th[FOURIER];
    /* No 7x7 kernel was written for matrix units beyond an A100's 1,024 multiply-adds per clock and SM. */
    bool wide = device->matrix_fma_per_clk_sm > FT_K_CONV_OLDER_FMA;
    bool older = matrix && taps > FT_K_CONV_LARGE_TAPS && wide, half = matrix && e <= 2;
    /* Elsewhere an image's channels are padded to 16 bytes and its taps packed behind each other. */
    bool packed = few && nhwc && !wide;
    if (packed) chunk_c = cp, large = 1;
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
    double vector_ms = 2 * pixels * k * (c / g * taps + FT_K_CONV_VECTOR_START) /
                       (th[DIRECT] * 2 * ft__lane_rate(device));
    double move = taps > 1 ? transpose_ms(device, th, weights) : 0;
    move += transpose_ms(device, th, x) + transpose_ms(device, th, y);
    /* Groups whose width no kernel has are padded to the next that one has: a pass over pictures and results each time,
     * by a general kernel where channels lie last. */
    double width = c / g, wider = ceil(width / FT_K_CONV_GROUP_WIDTH) * FT_K_CONV_GROUP_WIDTH;
    double padding = half && g > 1 && wider > width && nhwc
                         ? (x + y) * (1 + wider / width) / (FT_K_CONV_GROUP_PAD * bandwidth)
                         : 0;
    double compute = 0, data = 0, filters = 0, extra = padding * ((forward ? 1 : 0) + gradients), body = 0;
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
            lanes = (few && !point && !nhwc) ||
                    (matrix && !half && taps == 1 && stride > 1 && c / g <= FT_K_CONV_FEW_CHANNELS) ||
                    (!matrix && nhwc && short_k);
            hole = half && older && forward_hole(c / g, k / g, pixels, h * w, n * c * h * w, stride);
            double ms = hole ? slow_ms : lanes ? vector_ms : main.ms;
            body += ft__smooth_max(ms, traffic, th[SMOOTH]);
            compute += ms;
            if (few && nhwc && !lanes && !point)
                extra += 2 * th[TRANSPOSE_US] * 1e-3 + x * (1 + cp * g / c) / (th[PAD_EB] * bandwidth);
            else if (few && point)
                extra += (x + y) / (th[PAD_EB] * bandwidth);
            else if (moved && !lanes && !hole)
                extra += move;
            else if (older && e > 2 && !lanes) /* tf32's older kernels want their operands rounded first */
                extra += transpose_ms(device, th, x);
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
                ft__conv_turn(device, op, th, f, transpose_ms(device, th, x), &second);
            }
            data = to_input ? pick.ms : 0, filters = to_filter ? second.ms : 0;
            if (to_filter && half && older && weights_hole(c / g, k / g, pixels))
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
                extra += transpose_ms(device, th, x) + transpose_ms(device, th, y);
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
    float *f = out->feature;
    double waves = fmax(main.waves, 1e-3);
    *f++ = ft__lg(1 + out->body_ms * 1e3 / th[eager ? GAP : LAUNCH]), *f++ = ft__lg(compute / out->memory_ms);
    *f++ = ft__lg(pixels), *f++ = ft__lg(k), *f++ = ft__lg(c * taps), *f++ = ft__lg(c), *f++ = ft__lg(oh * ow),
    *f++ = ft__lg(n);
    *f++ = (float)taps, *f++ = (float)stride, *f++ = (float)nhwc, *f++ = (float)e, *f++ = (float)!matrix;
    *f++ = (float)(waves / ceil(waves)), *f++ = ft__lg(waves), *f++ = (float)main.split, *f++ = (float)out->tile_m,
    *f++ = (float)out->tile_n;
    *f++ = (float)(cp * g != c), *f++ = ft__lg((x + y + weights) / (device->l2_mib * 1048576)), *f++ = (float)fast;
    *f++ = ft__lg((filters + 1e-6) / (data + 1e-6)), *f++ = ft__lg(fmax(second.waves, 1e-3)),
    *f++ = (float)second.split;
    *f++ = main.log_ratio[0], *f++ = main.log_ratio[2], *f++ = main.log_ratio[5], *f++ = main.log_ratio[7];
    *f++ = (float)fmin(c * taps / 64, 16);
    *f++ = ft__lg(c / k), *f++ = ft__lg(x), *f++ = ft__lg(flops), *f++ = ft__lg(c * k), *f++ = (float)(lanes || hole);
    *f++ = (float)(extra / out->body_ms);
}

const ft_family ft__conv_family = {
    .name = "conv",
    .parameters = parameters,
    .parameter_count = THETA_COUNT,
    .feature_names = feature_names,
    .feature_count = sizeof feature_names / sizeof *feature_names,
    .variant_count = VARIANTS,
    .variant_of = variant_of,
    .variant_name = variant_name,
    .variant_fallback = variant_fallback,
    .variant_lent = variant_lent,
    .physics = physics,
};
