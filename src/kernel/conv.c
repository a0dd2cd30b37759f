/* 2-D convolutions as implicit matrix products, the way cuDNN computes them.
 *
 *   forward   Y[n oh ow, k] = X[n oh ow, c r s] W[c r s, k]           M = n oh ow, N = k,     K = c r s
 *   data      dX[n h w, c]  = dY[n h w, k r s / stride^2] W           M = n h w,   N = c,     K = k r s / stride^2
 *   weights   dW[k, c r s]  = dY[k, n oh ow] X                        M = k,       N = c r s, K = n oh ow
 *
 * Each goes through the same choice of tiles and split-K as a matrix product (gemm_tiles.c), at lower rates: gathering
 * addresses costs where r s > 1, and the weights' gradient accumulates over a long K in few tiles. The backward pass is
 * data plus weights, two kernels or more.
 *
 * Matrix units want channels in multiples of 8 (half precision) or 4 (tf32), innermost: other channel counts are
 * padded by a kernel of their own, and NCHW operands are transposed before and after, except for 1x1 filters (a
 * product per image) and an image's own three channels. fp32 without TF32 runs in either layout on the
 * vector units; 3x3 filters with stride 1 take Winograd's F(4x4, 3x3), 4 times less arithmetic of which the transforms
 * eat about half (cuDNN's winograd_nonfused in NeuSight's traces).
 *
 * Depthwise (groups = channels) and narrow groups are direct kernels: bytes, or a multiply-add per lane.
 *
 * Leaves out: FFT algorithms, dilation, 1-D and 3-D, the autotuner (cudnn.benchmark) that would pick better. */
#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/gemm_tiles.h"
#include "kernel/kernel.h"
#include "kernel/power.h"
#include "kernel/traffic.h"

enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EC,
    EB,
    WAVE_US,
    FEED,
    PROLOGUE,
    SPLIT_US,
    SMOOTH,
    TAPS9,
    TAPS25,
    TAPS49,
    HOLES,
    NARROW,
    SKEW,
    DATA,
    WEIGHTS,
    STRIDED,
    PAD_US,
    PAD_EB,
    POINT_WAVE_US,
    POINT_PROLOGUE,
    TRANSPOSE_US,
    TRANSPOSE_EB,
    WINOGRAD,
    SECOND_US,
    LEAD_US,
    NCHW,
    THETA_COUNT
};

_Static_assert((int)THETA_COUNT <= (int)FT_MAX_THETA, "a predictor file has no room for more constants");
static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = {"launch_us", 2.5, 0.8, 15, 0.4},
    [GAP] = {"gap_us", 40, 3, 200, 0.7},
    [EC] = {"efficiency", 0.8, 0.15, 1, 0.25},
    [EB] = {"bandwidth_efficiency", 0.75, 0.3, 0.95, 0.2},
    [WAVE_US] = {"wave_us", 1.5, 0.05, 6, 0.7},
    [POINT_WAVE_US] = {"point_wave_us", 0.3, 0.02, 4, 0.6}, /* 1x1 filters with stride 1 are plain matrix products */
    [POINT_PROLOGUE] = {"point_prologue_k", 80, 5, 200, 0.6},
    [FEED] = {"feed_bytes_per_flop", 0.0125, 0.005, 0.05, 0.3},
    [PROLOGUE] = {"prologue_k", 60, 5, 200, 0.7},
    [SPLIT_US] = {"split_us", 3, 0.3, 15, 0.6},
    [SMOOTH] = {"smooth", 0.4, 0.02, 1, 0.6},
    [TAPS9] = {"taps_9", 0.95, 0.3, 1.3, 0.2}, /* rates over the 1x1 filter's: 3x3, 5x5, 7x7 and larger */
    [TAPS25] = {"taps_25", 0.8, 0.2, 1.3, 0.3},
    [TAPS49] = {"taps_49", 0.6, 0.1, 1.3, 0.4},
    [HOLES] = {"strided", 0.8, 0.2, 1.2, 0.3},      /* and with stride > 1 */
    [NARROW] = {"narrow", 0.8, 0.2, 1.2, 0.3},      /* and with fewer channels than a step of K */
    [SKEW] = {"skew", 0.4, 0.1, 1.1, 0.4},          /* 1x1 in NCHW whose images are no multiple of 16 bytes */
    [DATA] = {"data_gradient", 0.8, 0.2, 1.2, 0.3}, /* rates over the forward one */
    [WEIGHTS] = {"weight_gradient", 0.6, 0.1, 1.2, 0.4},
    [STRIDED] = {"strided_data", 0.6, 0.1, 1.2, 0.5}, /* data gradient with stride > 1: holes between outputs */
    [PAD_US] = {"pad_us", 3, 0.3, 15, 0.6},           /* padding channels: launch and bandwidth */
    [PAD_EB] = {"pad_bandwidth", 0.3, 0.02, 0.95, 0.7},
    [TRANSPOSE_US] = {"transpose_us", 2.5, 0.3, 15, 0.6}, /* NCHW <-> NHWC, each */
    [TRANSPOSE_EB] = {"transpose_bandwidth", 0.5, 0.05, 0.95, 0.5},
    [WINOGRAD] = {"winograd", 1.7, 0.7, 4, 0.4},  /* how much faster than the direct product */
    [SECOND_US] = {"second_us", 3, 0.3, 30, 0.6}, /* start of the backward pass' further kernels */
    [LEAD_US] = {"lead_us", 5, 0.05, 80, 1},
    [NCHW] = {"nchw_fp32", 1, 0.3, 2, 0.3}, /* fp32 rate in NCHW over NHWC */
};

static const ft_gemm_tile matrix_tiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256},
                                            {128, 64},  {64, 128},  {64, 64},   {128, 32}, {32, 128},
                                            {64, 32},   {32, 64},   {256, 32},  {128, 16}, {16, 128}};
static const ft_gemm_tile vector_tiles[] = {{128, 128}, {128, 64}, {64, 128}, {128, 32}, {32, 128}, {64, 64},
                                            {64, 32},   {32, 32},  {128, 16}, {16, 128}, {128, 8},  {8, 128}};
enum {
    MATRIX_TILES = sizeof matrix_tiles / sizeof *matrix_tiles,
    VECTOR_TILES = sizeof vector_tiles / sizeof *vector_tiles
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
    return kind * PASSES + (op->pass == FT_FWD ? FORWARD : op->pass == FT_BWD ? BACKWARD : BOTH);
}
static const char *variant_name(int v) { return variant_names[v]; }
static int variant_fallback(int v)
{
    int pass = v % PASSES, kind = v / PASSES;
    return pass == BOTH ? v - 1 : kind == TF32 ? HALF * PASSES + pass : pass == BACKWARD ? v - 1 : -1;
}

static const char *const feature_names[] = {
    "log_time_over_start",
    "log_compute_over_memory",
    "log_m",
    "log_n",
    "log_k",
    "log_c",
    "log_filters",
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
    "winograd",
    "log_weight_share",
    "weight_waves",
    "weight_split",
    "r0",
    "r2",
    "r5",
    "r7",
    "few_k",
};

static float lg(double x) { return (float)log2(x); }

typedef struct product {
    double b, m, n, k, rate; /* rate: share of the device's */
    int split;               /* at most */
    bool point;              /* a plain matrix product */
} product;

static void run(const ft_device *device, const ft_op *op, const double *th, product p, bool matrix, bool want,
                ft_gemm_pick *out)
{
    double e = ft_dtype_bytes(op->dtype), peak = ft__peak_tflops(device, op->dtype) * 1e9;
    double narrow[VECTOR_TILES];
    for (int t = 0; t < VECTOR_TILES; t++) {
        int area = vector_tiles[t].m * vector_tiles[t].n;
        narrow[t] = area >= 16384 ? 1 : area >= 8192 ? 0.92 : area >= 4096 ? 0.82 : area >= 2048 ? 0.6 : 0.35;
    }
    /* Too few tiles for the SMs: K is shared out, by whole factors beyond the sixteen that the search tries. */
    double plain = fmax(1, ceil(p.m / 64) * ceil(p.n / 64) * p.b), room = floor(device->sms / plain), before = 1;
    if (p.split > 16 && room > 16) before = fmin(fmin(room / 16, p.k / 4096), 64);
    before = fmax(1, floor(before));
    ft_gemm_search s = {
        .batch = p.b * before,
        .m = p.m,
        .n = p.n,
        .k = p.k / before,
        .sms = device->sms,
        .tiles = matrix ? matrix_tiles : vector_tiles,
        .tile_count = matrix ? MATRIX_TILES : VECTOR_TILES,
        .tile_efficiency = matrix ? NULL : narrow,
        .flop_per_ms_sm = p.rate * peak / device->sms,
        .feed_bytes_per_ms_sm = matrix ? fmax(th[FEED] * 2 / e * peak / device->sms, 20 * device->boost_mhz * 1e3)
                                       : 64 * device->boost_mhz * 1e3,
        .element_bytes = e,
        .k_step = matrix ? 64 / e : 8,
        .prologue_k = th[p.point ? POINT_PROLOGUE : PROLOGUE] * (matrix ? 2 / e : 0.1),
        .lone = matrix ? 1 : 0.75,
        .wave_ms = th[p.point ? POINT_WAVE_US : WAVE_US] * 1e-3,
        .quantisation = 0.75,
        .memory_ms = 0,
        .smooth = 0,
        .split_ms = th[SPLIT_US] * 1e-3,
        .split_ms_per_element = 8.0 / (3 * device->memory_gbps * 1e6),
        .max_split = (int)fmax(1, fmin(fmin(p.split, 16), room)),
    };
    ft__gemm_pick(&s, want, out);
    double slow = ft__power_slowdown(device, op->dtype, 1, p.rate * peak * 1e-9, out->compute_ms / 0.3);
    out->ms += (slow - 1) * out->compute_ms;
}

static double out_size(int64_t in, int64_t filter, int64_t stride, int64_t pad)
{
    return floor((double)(in + 2 * pad - filter) / (double)stride) + 1;
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    bool eager = op->timing == FT_TIMING_OP, forward = op->pass != FT_BWD, backward = op->pass != FT_FWD,
         nhwc = op->u.conv.nhwc;
    double n = (double)op->u.conv.n, g = (double)op->u.conv.groups, c = (double)op->u.conv.c, k = (double)op->u.conv.k;
    double h = (double)op->u.conv.h, w = (double)op->u.conv.w, r = (double)op->u.conv.r, s = (double)op->u.conv.s;
    double stride = (double)op->u.conv.stride, e = ft_dtype_bytes(op->dtype), bandwidth = device->memory_gbps * 1e6;
    double oh = out_size(op->u.conv.h, op->u.conv.r, op->u.conv.stride, op->u.conv.pad);
    double ow = out_size(op->u.conv.w, op->u.conv.s, op->u.conv.stride, op->u.conv.pad);
    bool point = r * s == 1 && stride == 1; /* a plain matrix product */
    bool matrix = (op->dtype != FT_FP32 && op->dtype != FT_FP64) && device->matrix_fma_per_clk_sm > 0;
    double step = matrix ? fmax(16 / e, 1) : 1, cp = ceil(c / g / step) * step;
    double chunk = matrix ? 64 / e : 1, chunk_c = ceil(c / g / chunk) * chunk, chunk_k = ceil(k / g / chunk) * chunk;
    double x = n * c * h * w * e, y = n * k * oh * ow * e, weights = k * c / g * r * s * e;
    double rate = th[EC] *
                  (r * s > 25  ? th[TAPS49]
                   : r * s > 9 ? th[TAPS25]
                   : r * s > 1 ? th[TAPS9]
                               : 1) *
                  (stride > 1 ? th[HOLES] : 1) * (matrix && c / g < chunk ? th[NARROW] : 1);
    bool winograd = !matrix && r == 3 && s == 3 && stride == 1 && c / g >= 16 && k / g >= 16;
    if (!matrix && !nhwc) rate *= th[NCHW];
    if (winograd) rate *= th[WINOGRAD];
    if (matrix && point && !nhwc && fmod(h * w * e, 16) > 0) rate *= th[SKEW];
    double traffic = (x + y + weights) / (th[EB] * bandwidth);
    double compute = 0, data = 0, filters = 0, extra = 0;
    int split = matrix ? 16 : 1; /* SGEMM-like kernels do not share K out, but for the weights' gradient */
    ft_gemm_pick main = {0}, second = {0};
    bool direct = g > 1 && c / g < 16;
    if (direct) { /* one multiply-add per lane and tap, three instructions with its address */
        double taps = n * k * oh * ow * r * s * (c / g) * 3 / ft__lane_rate(device);
        compute = taps * ((forward ? 1 : 0) + (backward ? 2.5 : 0));
        data = backward ? taps : 0;
        filters = backward ? 1.5 * taps : 0;
    } else {
        if (forward) {
            run(device, op, th, (product){g, n * oh * ow, k / g, chunk_c * r * s, rate, split, point}, matrix, want,
                &main);
            compute += main.ms;
        }
        if (backward) {
            double hole = stride > 1 ? th[STRIDED] : 1;
            ft_gemm_pick pick;
            double deep = fmax(1, chunk_k * r * s / (stride * stride));
            run(device, op, th, (product){g, n * h * w, c / g, deep, rate * th[DATA] * hole, split, point}, matrix,
                want && !forward, &pick);
            if (!forward) main = pick;
            run(device, op, th, (product){g, k / g, c / g * r * s, n * oh * ow, rate * th[WEIGHTS], 1024, point},
                matrix, false, &second);
            data = pick.ms, filters = second.ms;
            compute += data + filters;
            extra += th[SECOND_US] * 1e-3;
        }
    }
    double passes = (forward ? 1 : 0) + (backward ? 2 : 0);
    bool first = c / g < step; /* an image's three channels: NCHW has a kernel for them, NHWC pads them */
    if (direct) matrix = false;
    if (matrix && nhwc && cp * g != c && !point)
        extra += passes * (th[PAD_US] * 1e-3 + x * (1 + cp * g / c) / (th[PAD_EB] * bandwidth));
    else if (matrix && point && first) /* rows of a few bytes: loads of one element each */
        extra += passes * (x + y) / (th[PAD_EB] * bandwidth);
    if (matrix && !nhwc && !point && !first)
        extra += passes * (2 * th[TRANSPOSE_US] * 1e-3 + 2 * (x + y) / (th[TRANSPOSE_EB] * bandwidth));
    out->compute_ms = compute;
    out->memory_ms = traffic * passes;
    out->body_ms = ft__smooth_max(compute, out->memory_ms, th[SMOOTH]) + extra + (eager ? th[LEAD_US] * 1e-3 : 0);
    out->tile_m = direct ? 0 : (matrix ? matrix_tiles : vector_tiles)[main.tile].m;
    out->tile_n = direct ? 0 : (matrix ? matrix_tiles : vector_tiles)[main.tile].n;
    out->split_k = direct ? 0 : main.split;
    out->tiles = main.tiles;
    out->waves = main.waves;
    out->note = !matrix                     ? NULL
                : nhwc && cp * g != c       ? "channels not a multiple of 16 bytes: padded first"
                : !nhwc && !point && !first ? "NCHW: transposed before and after the product"
                                            : NULL;
    if (!want) return;
    float *f = out->feature;
    double waves = fmax(main.waves, 1e-3);
    *f++ = lg(1 + out->body_ms * 1e3 / th[eager ? GAP : LAUNCH]), *f++ = lg(compute / out->memory_ms);
    *f++ = lg(n * oh * ow), *f++ = lg(k), *f++ = lg(c * r * s), *f++ = lg(c), *f++ = lg(k), *f++ = lg(oh * ow),
    *f++ = lg(n);
    *f++ = (float)(r * s), *f++ = (float)stride, *f++ = (float)nhwc, *f++ = (float)e, *f++ = (float)!matrix;
    *f++ = (float)(waves / ceil(waves)), *f++ = lg(waves), *f++ = (float)main.split, *f++ = (float)out->tile_m,
    *f++ = (float)out->tile_n;
    *f++ = (float)(cp * g != c), *f++ = lg((x + y + weights) / (device->l2_mib * 1048576)), *f++ = (float)winograd;
    *f++ = lg((filters + 1e-6) / (data + 1e-6)), *f++ = lg(fmax(second.waves, 1e-3)), *f++ = (float)second.split;
    *f++ = main.log_ratio[0], *f++ = main.log_ratio[2], *f++ = main.log_ratio[5], *f++ = main.log_ratio[7];
    *f++ = (float)fmin(c * r * s / 64, 16);
}

const ft_family ft__conv = {
    .name = "conv",
    .parameters = parameters,
    .parameter_count = THETA_COUNT,
    .feature_names = feature_names,
    .feature_count = sizeof feature_names / sizeof *feature_names,
    .variant_count = VARIANTS,
    .variant_of = variant_of,
    .variant_name = variant_name,
    .variant_fallback = variant_fallback,
    .physics = physics,
};
