/* grouped.c: convolutions of groups of channels in 16 bits, as cuDNN runs them.
 *
 *   as they lie   groups of 4, 8, 16 ... channels: products over 64 channels, of which a narrower group fills a part,
 * so that a result costs the same whatever the group's width. padded        other widths go to the next power of two
 * first, images and filters, and back afterwards. The kernel that does it computes where every element goes and takes
 * longer than the product. apart         where padding would waste too much, and for wide groups of few pixels: every
 * group is cut out, has a product of its own, and is put back.
 * long          filters of 64 taps and more along one axis: apart whatever the width, on several streams. Tables have
 * how long all of them take; a step counts kernel by kernel (ft__grouped_kernels_ms).
 * points        filters of one pixel: apart as well going back, and forward where a group is 16 channels or wider.
 *
 * NCHW is turned to channels last and back, padded on the way. Figures and rows in data/constants/kernel/grouped.json;
 * what they leave is learned. */
#include "kernel/grouped.h"

#include <math.h>

#include "graph/operator.h"
#include "kernel/grouped_constants.h"
#include "kernel/kernel.h"
#include "kernel/traffic.h"

enum { FORWARD, INPUT, FILTER, PARTS, WIDTH = 64, LEAST = 4 };

typedef struct effort {
    const char *name;
    double start_us, narrow, wide;
} effort;
static const effort efforts[PARTS] = {FT_K_GROUPED_KERNELS_FORWARD, FT_K_GROUPED_KERNELS_INPUT,
                                      FT_K_GROUPED_KERNELS_FILTER};

bool ft__is_grouped(const ft_device *device, const ft_op *op)
{
    return op->u.conv.groups > 1 && op->u.conv.groups < op->u.conv.c && device->matrix_fma_per_clk_sm > 0 &&
           (op->dtype == FT_FP16 || op->dtype == FT_BF16);
}

static double power_of_two(double width)
{
    double p = LEAST;
    while (p < width) p *= 2;
    return p;
}

/* What the parts share: sizes in elements, times in ms. */
typedef struct sizes {
    double groups, x, y, pixels, taps, width, padded, each, element, bandwidth, peak, turn;
    bool line; /* filters along one axis */
} sizes;

static bool runs_apart(const sizes *s, int part, double stride)
{
    const struct ft__k_grouped_apart *at = &ft__k_grouped_apart;
    bool whole = s->padded == s->width, strided = part == INPUT && stride > 1;
    if (s->width < at->width) return false;
    if (whole) return strided || (part == FORWARD && s->pixels < at->whole_pixels);
    if (part == FILTER) return s->pixels > at->filter_pixels && s->width > at->narrow;
    return strided || (s->width > at->narrow && s->width < at->wide) ||
           (s->width >= at->wide && s->pixels < at->pixels);
}

/* Filters so long that no kernel takes all groups: each by itself, a step along its sum behind the other. 0: shorter
 * ones, and gradients of filters, whose sums are over pixels. */
static double long_ms(const sizes *s, int part)
{
    const struct ft__k_grouped_long_filters *at = &ft__k_grouped_long_filters;
    double least = part == FORWARD ? at->width : at->input_width, deep = s->width * s->taps;
    if (part == FILTER || !s->line || s->taps < at->taps || !(s->width > least)) return 0;
    bool odd = fmod(s->width, at->even) > 0;
    bool lanes = odd && (part == FORWARD ? deep > at->deep : s->width > at->odd_width || s->pixels < at->pixels);
    double steps = ceil(s->width / at->even) * s->taps;
    double us = lanes ? deep * (part == FORWARD ? at->lane_us : at->input_lane_us)
                      : at->start_us + steps * (part == FORWARD ? at->step_us : at->input_us);
    return 1e-3 * us * s->groups;
}

/* Filters of one pixel, group by group: a gradient of filters is a sum over pixels, which the library cuts among blocks
 * where groups are few. */
static double points_ms(const sizes *s, int part, bool last)
{
    const struct ft__k_grouped_points *at = &ft__k_grouped_points;
    bool whole = s->width < at->width ||
                 (last ? s->width >= at->wide && s->pixels > at->pixels : s->pixels > at->turned_pixels);
    if (part == FORWARD) return whole ? 0 : 1e-3 * s->groups * (at->forward_us + s->pixels * s->width * at->element_us);
    if (part == INPUT) return 1e-3 * s->groups * at->input_us;
    return 1e-3 * s->groups * (at->filter_us + s->pixels * (s->groups > at->few ? at->sum_us : at->cut_us));
}

/* The two images that a part reads, or reads and writes. */
static double moved(const sizes *s, int part, double elements_ms)
{
    double wider = s->padded / s->width, in = part == INPUT ? s->y : s->x, out = part == INPUT ? s->x : s->y;
    return (in + (part == FILTER ? out : out * wider)) * elements_ms;
}

static double part_ms(const ft_device *device, const sizes *s, int part, double stride, bool last, double *compute)
{
    const effort *f = &efforts[part];
    double start = f->start_us * 1e-3, both = (s->x + s->y) * s->element, wide = fmax(s->padded, WIDTH);
    double bytes = both / (FT_K_GROUPED_BANDWIDTH * s->bandwidth), turns = both / (FT_K_GROUPED_TURN * s->bandwidth);
    double turn_us = FT_K_GROUPED_TURN_US * 1e-3;
    if (runs_apart(s, part, stride)) {
        *compute = s->each * fmax(s->width, WIDTH / 2.0) / (FT_K_GROUPED_APART_RATE * s->peak);
        return start + FT_K_GROUPED_APART_US * 1e-3 * s->groups + fmax(*compute, bytes) + turns + turn_us;
    }
    *compute = s->each * wide / ((s->padded < WIDTH ? f->narrow : f->wide) * s->peak);
    double ms = start + fmax(*compute, bytes);
    if (!last) return ms + 2 * turn_us + turns * (1 + s->padded / s->width) / 2;
    if (s->padded > s->width)
        ms += FT_K_GROUPED_PADDED_US * 1e-3 + moved(s, part, FT_K_GROUPED_PADDED_INSTRUCTIONS / ft__lane_rate(device));
    return ms;
}

static sizes sizes_of(const ft_device *device, const ft_op *op)
{
    double n = (double)op->u.conv.n, c = (double)op->u.conv.c, k = (double)op->u.conv.k, h = (double)op->u.conv.h,
           w = (double)op->u.conv.w, stride = (double)op->u.conv.stride, g = (double)op->u.conv.groups;
    double oh = floor((h + 2 * (double)op->u.conv.pad - (double)op->u.conv.r) / stride) + 1,
           ow = floor((w + 2 * (double)op->u.conv.pad - (double)op->u.conv.s) / stride) + 1;
    return (sizes){.groups = g,
                   .x = n * c * h * w / fmax(1, op->u.conv.depth),
                   .y = n * k * oh * ow,
                   .pixels = n * oh * ow,
                   .taps = (double)op->u.conv.r * (double)op->u.conv.s,
                   .width = c / g,
                   .padded = power_of_two(c / g),
                   .element = ft_dtype_bytes(op->dtype),
                   .bandwidth = device->memory_gbps * 1e6,
                   .peak = ft__peak_tflops(device, op->dtype) * 1e9,
                   .line = op->u.conv.r == 1 || op->u.conv.s == 1};
}

ft_own_figures ft__grouped(const ft_device *device, const ft_op *op)
{
    sizes s = sizes_of(device, op);
    double read = (double)op->u.conv.n * (double)op->u.conv.h * (double)op->u.conv.w * (double)op->u.conv.k;
    double stride = (double)op->u.conv.stride;
    int parts = ft__conv_parts(op);
    ft_own_figures out = {.spread = FT_K_GROUPED_SPREAD};
    for (int part = FORWARD; part < PARTS; part++) {
        if (!(parts & 1 << part)) continue;
        double compute = 0;
        s.each = 2 * (part == INPUT ? read / (stride * stride) : s.y) * s.taps;
        out.ms += part_ms(device, &s, part, stride, op->u.conv.nhwc, &compute);
        out.compute_ms += compute;
        out.memory_ms += (s.x + s.y) * s.element / (FT_K_GROUPED_BANDWIDTH * s.bandwidth);
    }
    return out;
}

double ft__grouped_kernels_ms(const ft_device *device, const ft_op *op)
{
    if (op->kind != FT_OP_CONV2D || device->matrix_issue != FT_ISSUE_WGMMA || !ft__is_grouped(device, op)) return 0;
    sizes s = sizes_of(device, op);
    int parts = ft__conv_parts(op);
    const bool point = s.taps == 1 && op->u.conv.stride == 1;
    double ms = 0;
    for (int part = FORWARD; part < PARTS; part++)
        if (parts & 1 << part) ms += point ? points_ms(&s, part, op->u.conv.nhwc) : long_ms(&s, part);
    return ms;
}
