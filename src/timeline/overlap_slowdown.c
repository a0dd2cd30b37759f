/* overlap_slowdown.c: what kernels lose to an exchange that runs beside them. */
#include "timeline/overlap_slowdown.h"

#include <math.h>

#include "device/traits.h"
#include "timeline/in_model_constants.h"

bool ft__overlap_whole_waves(const ft_device *device) { return ft__matrix_async(device); }

/* The SMs' share, and once the blocks do not all fit a part of a wave at the end. */
double ft__overlap_slowdown_product(const ft_op *op, double sms, double taken)
{
    const double rows = 128, columns = 256; /* the tile of large products on Hopper */
    double tail = ft_dtype_bytes(op->dtype) < 2 ? FT_K_IN_MODEL_BESIDE_TAIL_NARROW : FT_K_IN_MODEL_BESIDE_TAIL;
    double m = (double)op->u.gemm.m, n = (double)op->u.gemm.n, batch = fmax((double)op->u.gemm.b, 1);
    double waves = ceil(m / rows) * ceil(n / columns) * batch / fmax(sms, 1);
    if (!(taken > 0)) return 0;
    return fmin(taken + tail / fmax(waves, 1), FT_K_IN_MODEL_BESIDE_MOST);
}

double ft__overlap_slowdown(double d, double slowdown, double left)
{
    if (!(left > 0) || !(slowdown > 0)) return 0;
    return fmin(left, d * (1 + slowdown)) * slowdown / (1 + slowdown);
}
