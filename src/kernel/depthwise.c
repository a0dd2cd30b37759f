/* depthwise.c: one filter per channel, no product: instructions by what an SM issues, or bytes.
 *
 * Who computes it is PyTorch's choice (aten/src/ATen/native/Convolution.cpp, use_cudnn_depthwise): cuDNN channels last,
 * cuDNN for fp16 in NCHW where filter, stride and channels suit it, else kernels of PyTorch's own, whatever the format.
 * cuDNN's own are for square filters, one per channel; filters of unequal sides, of one pixel and several per channel
 * fall to kernels that know nothing of the shape. What each spends on a multiply-add is in
 * data/constants/kernel/depthwise.json; what that leaves is learned for the former alone.
 *
 * On AMD's GPUs it is MIOpen, whose kernels for groups are products with a matrix of one column for each: nearly the
 * whole tile is filled up, and a result costs the same whatever its filter. The gradient of the pictures is a plain
 * kernel without any of that. Leaves out: the kernels of their own that 2026 brought for filters of 3x3 and 5x5 over
 * pictures of some sizes, and of 7x7 on gfx950. */
#include "kernel/depthwise.h"

#include <math.h>
#include <string.h>

#include "kernel/depthwise_constants.h"
#include "kernel/grouped.h"
#include "kernel/traffic.h"

typedef struct effort {
    const char *name;
    double start_us, three, five, other;
} effort;

enum { NATIVE, FIRST, LAST, LAST_WIDE, WHO };
enum { FORWARD, INPUT, FILTER, PARTS };
enum { WARP = 32, MOST_TAPS = 1024 }; /* of a side, beyond which nobody counts them one by one */
static const effort efforts[WHO][PARTS] = {
    [NATIVE] = {FT_K_DEPTHWISE_KERNELS_NATIVE_FORWARD, FT_K_DEPTHWISE_KERNELS_NATIVE_INPUT,
                FT_K_DEPTHWISE_KERNELS_NATIVE_FILTER},
    [FIRST] = {FT_K_DEPTHWISE_KERNELS_FIRST_FORWARD, FT_K_DEPTHWISE_KERNELS_FIRST_INPUT,
               FT_K_DEPTHWISE_KERNELS_FIRST_FILTER},
    [LAST] = {FT_K_DEPTHWISE_KERNELS_LAST_FORWARD, FT_K_DEPTHWISE_KERNELS_LAST_INPUT,
              FT_K_DEPTHWISE_KERNELS_LAST_FILTER},
    [LAST_WIDE] = {FT_K_DEPTHWISE_KERNELS_LAST_WIDE_FORWARD, FT_K_DEPTHWISE_KERNELS_LAST_WIDE_INPUT,
                   FT_K_DEPTHWISE_KERNELS_LAST_WIDE_FILTER},
};

static int who(const ft_op *op)
{
    int64_t r = op->u.conv.r, s = op->u.conv.s, w = op->u.conv.w, c = op->u.conv.c, stride = op->u.conv.stride;
    if (op->u.conv.nhwc) return ft_dtype_bytes(op->dtype) < 4 ? LAST : LAST_WIDE;
    if (op->dtype != FT_FP16 || r != s || (r != 1 && r != 3 && r != 5) || w < 7) return NATIVE;
    if (stride == 1) return FIRST;
    if (stride != 2 || r == 1) return NATIVE;
    const struct ft__k_depthwise_choice *at = &ft__k_depthwise_choice;
    bool many = (double)c >= at->channels || ((double)c >= at->channels_wide && (double)w >= at->width);
    return op->u.conv.n == 1 || many ? FIRST : NATIVE;
}

static double each(const effort *e, int64_t filter)
{
    return filter == 3 ? e->three : filter == 5 ? e->five : e->other;
}

/* Share of taps that lie on the picture, along one of its sides. */
static double inside(double side, int64_t taps, double pad, double stride, double results)
{
    double count = 0;
    for (int tap = 0; tap < taps; tap++) /* results whose tap lies between the first pixel and the last */
        count += fmax(0, fmin(results - 1, floor((side - 1 + pad - tap) / stride)) -
                             fmax(0, ceil((pad - tap) / stride)) + 1);
    return count / (results * (double)taps);
}

/* Share of a filter's taps that cost anything. PyTorch's own kernels have a thread per result, ask of every tap whether
 * it lies on the image and pass over it where not (aten/src/ATen/native/cuda/DepthwiseConv2d.cu): the warp is spared
 * it where none of its threads needs it. They cover a row of results, or as many rows as 32 have room for. */
static double needed(const ft_op *op, double oh, double ow)
{
    double h = (double)op->u.conv.h, w = (double)op->u.conv.w, r = (double)op->u.conv.r, s = (double)op->u.conv.s,
           stride = (double)op->u.conv.stride, pad = (double)op->u.conv.pad, across = 0;
    if (!(oh >= 1 && ow >= 1) || r > MOST_TAPS || s > MOST_TAPS) return 1;
    for (int tap = 0; tap < s; tap++) /* any result of a row */
        across += fmin(ow - 1, floor((w - 1 + pad - tap) / stride)) >= fmax(0, ceil((pad - tap) / stride));
    return fmin(1, inside(h, op->u.conv.r, pad, stride, oh) + (fmax(1, WARP / ow) - 1) / r) * across / s;
}

/* Channels last in 16 bits, as two dimensions have it. */
static bool last_half(const ft_op *op)
{
    return op->u.conv.nhwc && ft_dtype_bytes(op->dtype) < 4 && op->u.conv.space == 0;
}

/* 0: not without matrix units. */
static double by_groups(const ft_device *device, const ft_op *op, int part)
{
    if (!(device->matrix_fma_per_clk_sm > 0)) return 0;
    ft_op one = *op;
    one.u.conv.parts = 1 << part;
    return ft__grouped(device, &one).ms;
}

/* A block per channel and tap walks over all pixels. */
static double direct_filter_ms(const ft_device *device, double pixels, double blocks)
{
    const struct ft__k_depthwise_direct *at = &ft__k_depthwise_direct;
    return 1e-3 * pixels / at->pixels_per_us * fmax(1, blocks / (at->blocks_per_sm * device->sms));
}

/* Filters of 7x7 and more, channels last in 32 bits: cuDNN has kernels of its own for their results and for gradients of
 * pictures, none for those of filters. A block per channel and tap walks over the pixels on which the tap lies; in tf32,
 * from a size of pictures on, matrix units compute a product with every tap. 0: others. */
static double wide_filter_ms(const ft_device *device, const ft_op *op, double oh, double ow)
{
    const struct ft__k_depthwise_direct_wide *at = &ft__k_depthwise_direct_wide;
    const struct ft__k_depthwise_indexed *by = &ft__k_depthwise_indexed;
    double n = (double)op->u.conv.n, c = (double)op->u.conv.c, h = (double)op->u.conv.h, w = (double)op->u.conv.w,
           pad = (double)op->u.conv.pad, stride = (double)op->u.conv.stride;
    int64_t r = op->u.conv.r, s = op->u.conv.s;
    if (!op->u.conv.nhwc || ft_dtype_bytes(op->dtype) < 4 || op->u.conv.space != 0) return 0;
    if (r != s || (double)r < at->taps || r > MOST_TAPS || op->u.conv.k != op->u.conv.c || !(oh >= 1 && ow >= 1))
        return 0;
    double seen = inside(h, r, pad, stride, oh) * inside(w, s, pad, stride, ow);
    double ms = 1e-3 * n * oh * ow * seen / at->pixels_per_us *
                fmax(1, c * (double)(r * s) / (at->blocks_per_sm * device->sms));
    bool indexed = op->dtype == FT_TF32 && device->matrix_fma_per_clk_sm > 0 && w >= by->from;
    return indexed ? fmin(ms, 1e-3 * n * c * oh * ow / (by->results_per_us * device->sms)) : ms;
}

/* Layers that no specialised kernel takes; 0: others. */
static double special_ms(const ft_device *device, const ft_op *op, int part, double results, double sums)
{
    double c = (double)op->u.conv.c, k = (double)op->u.conv.k, lanes = ft__issue_rate(device);
    int64_t r = op->u.conv.r, s = op->u.conv.s;
    if (!last_half(op)) return 0;
    if (k > c && part == FORWARD)
        return 1e-3 * ft__k_depthwise_multiplied.group_us * c + sums * ft__k_depthwise_multiplied.multiply_add / lanes;
    if (k > c) return r * s > 1 ? by_groups(device, op, part) : 0;
    double direct = direct_filter_ms(device, results / k, k * (double)(r * s));
    /* Of one pixel: where it leaves pixels out. Without a stride it is a product with a number per channel. */
    if (r == 1 && s == 1) return part == FILTER && op->u.conv.stride > 1 ? direct : 0;
    if (r == s) return 0;
    if (part == FORWARD) return results * ft__k_depthwise_uneven.result / lanes;
    if (part == INPUT) /* by its results: the image stands for one of other borders */
        return results * (double)(r * s) * (r > s ? ft__k_depthwise_uneven.tall : ft__k_depthwise_uneven.wide) / lanes;
    double groups = by_groups(device, op, part);
    return groups > 0 ? fmin(direct, groups) : direct;
}

/* Clocks of a CU for a result, by the GPU's own row or that of all others, which has no name. */
static double filled_clocks(const ft_device *device)
{
    double others = 0;
    for (int i = 0; i < FT_K_DEPTHWISE_FILLED_COUNT; i++) {
        const struct ft__k_depthwise_filled *row = &ft__k_depthwise_filled[i];
        if (!strcmp(row->capability, device->compute_capability)) return row->clocks;
        if (!*row->capability) others = row->clocks;
    }
    return others;
}

static ft_own_figures by_filled_tiles(const ft_device *device, const ft_op *op, double results, double bytes)
{
    ft_own_figures out = {.spread = FT_K_DEPTHWISE_FILLED_SPREAD, .alone = true};
    double each_ms = results * filled_clocks(device) / (device->sms * ft__running_mhz(device) * 1e3);
    for (int part = FORWARD; part < PARTS; part++) {
        if (!(ft__conv_parts(op) & 1 << part)) continue;
        double ms = each_ms * (part == INPUT ? FT_K_DEPTHWISE_FILLED_INPUT : 1);
        out.compute_ms += ms;
        out.memory_ms += bytes;
        out.ms += fmax(ms, bytes);
    }
    return out;
}

ft_own_figures ft__depthwise(const ft_device *device, const ft_op *op)
{
    double n = (double)op->u.conv.n, c = (double)op->u.conv.c, k = (double)op->u.conv.k, h = (double)op->u.conv.h,
           w = (double)op->u.conv.w, taps = (double)op->u.conv.r * (double)op->u.conv.s,
           stride = (double)op->u.conv.stride, e = ft_dtype_bytes(op->dtype);
    double oh = floor((h + 2 * (double)op->u.conv.pad - (double)op->u.conv.r) / stride) + 1,
           ow = floor((w + 2 * (double)op->u.conv.pad - (double)op->u.conv.s) / stride) + 1;
    int by = who(op);
    double bytes = (n * c * h * w + n * k * oh * ow) * e / (FT_K_DEPTHWISE_BANDWIDTH * device->memory_gbps * 1e6);
    if (device->vendor == FT_VENDOR_AMD) return by_filled_tiles(device, op, n * k * oh * ow, bytes);
    double image = by == NATIVE ? FT_K_DEPTHWISE_IMAGE_PIXELS : 0;
    double seen = by == NATIVE ? needed(op, oh, ow) : 1;
    const double sums[PARTS] = {n * k * oh * ow * taps * seen, n * c * h * w * taps * k / c * seen,
                                n * k * taps * (oh * ow + image)};
    int parts = ft__conv_parts(op);
    ft_own_figures out = {.spread = FT_K_DEPTHWISE_SPREAD};
    for (int part = FORWARD; part < PARTS; part++) {
        if (!(parts & 1 << part)) continue;
        const effort *f = &efforts[by][part];
        double ms = special_ms(device, op, part, n * k * oh * ow, sums[part]);
        out.alone |= ms > 0;
        if (part == FILTER && !(ms > 0)) ms = wide_filter_ms(device, op, oh, ow);
        if (!(ms > 0)) ms = sums[part] * each(f, op->u.conv.r) / ft__issue_rate(device);
        out.compute_ms += ms;
        out.memory_ms += bytes;
        out.ms += f->start_us * 1e-3 + fmax(ms, bytes);
    }
    return out;
}
