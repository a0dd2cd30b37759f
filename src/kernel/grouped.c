/* grouped.c: convolutions of groups of few channels in 16 bits, as cuDNN runs them: products over 32 channels, of
 * which a group of fewer fills a part, so that a result costs the same whatever the group's width. Widths that do not
 * divide 32 fall to slower kernels. NCHW is turned to channels last and back. Nothing of it is learned; figures and
 * rows in data/constants/kernel/grouped.json. */
#include "kernel/grouped.h"

#include <math.h>

#include "graph/operator.h"
#include "kernel/grouped_constants.h"
#include "kernel/kernel.h"

enum { FORWARD, INPUT, FILTER, PARTS, WIDTH = 32 };

typedef struct effort {
    const char *name;
    double start_us, share, share_four, share_odd_last, share_odd_first;
} effort;
static const effort efforts[PARTS] = {FT_K_GROUPED_KERNELS_FORWARD, FT_K_GROUPED_KERNELS_INPUT,
                                      FT_K_GROUPED_KERNELS_FILTER};

bool ft__is_narrow_grouped(const ft_device *device, const ft_op *op)
{
    int64_t width = op->u.conv.groups > 0 ? op->u.conv.c / op->u.conv.groups : 0;
    return op->u.conv.groups > 1 && width > 1 && width <= WIDTH && device->matrix_fma_per_clk_sm > 0 &&
           (op->dtype == FT_FP16 || op->dtype == FT_BF16);
}

static double share_of(const effort *e, int64_t width, bool last)
{
    if (WIDTH % width) return last ? e->share_odd_last : e->share_odd_first;
    return width <= 4 ? e->share_four : e->share;
}

ft_own_figures ft__grouped(const ft_device *device, const ft_op *op)
{
    double n = (double)op->u.conv.n, c = (double)op->u.conv.c, k = (double)op->u.conv.k, h = (double)op->u.conv.h,
           w = (double)op->u.conv.w, taps = (double)op->u.conv.r * (double)op->u.conv.s,
           stride = (double)op->u.conv.stride, e = ft_dtype_bytes(op->dtype), bandwidth = device->memory_gbps * 1e6;
    double oh = floor((h + 2 * (double)op->u.conv.pad - (double)op->u.conv.r) / stride) + 1,
           ow = floor((w + 2 * (double)op->u.conv.pad - (double)op->u.conv.s) / stride) + 1;
    double peak = ft__peak_tflops(device, op->dtype) * 1e9, x = n * c * h * w, y = n * k * oh * ow;
    double bytes = (x + y) * e / (FT_K_GROUPED_BANDWIDTH * bandwidth);
    double turns = op->u.conv.nhwc ? 0
                                   : 2 * (FT_K_GROUPED_TURN_US * 1e-3 + (x + y) * e / (FT_K_GROUPED_TURN * bandwidth));
    int parts = ft__conv_parts(op);
    ft_own_figures out = {.spread = FT_K_GROUPED_SPREAD};
    for (int part = FORWARD; part < PARTS; part++) {
        if (!(parts & 1 << part)) continue;
        const effort *f = &efforts[part];
        double share = share_of(f, op->u.conv.c / op->u.conv.groups, op->u.conv.nhwc);
        double ms = 2 * (part == INPUT ? x * k / c : y) * taps * WIDTH / (share * peak);
        out.compute_ms += ms;
        out.memory_ms += bytes;
        out.ms += f->start_us * 1e-3 + fmax(ms, bytes) + turns;
    }
    return out;
}
