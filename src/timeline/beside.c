/* beside.c: what kernels lose to an exchange that runs beside them. */
#include "timeline/beside.h"

#include <math.h>
#include <string.h>

#include "device/traits.h"

bool ft__beside_whole(const ft_device *device) { return ft__matrix_async(device); }

/* python/measure/beside.py on an H200: 30 products beside a kernel that holds 1 to 32 SMs (data/measurements/h200/
 * beside.jsonl, 4 % off on average). A product of one wave takes nearly twice as long once its blocks do not all fit,
 * one of four 1.4 times, one of fifty loses the SMs' share and 3 %. */
double ft__beside_product(const ft_op *op, double sms, double taken)
{
    const double rows = 128, columns = 256; /* the tile of large products on Hopper */
    const double most = 0.85;
    double tail = ft_dtype_bytes(op->dtype) < 2 ? 0.5 : 1.5; /* waves; those of 8-bit products are shorter */
    double m = (double)op->u.gemm.m, n = (double)op->u.gemm.n, batch = fmax((double)op->u.gemm.b, 1);
    double waves = ceil(m / rows) * ceil(n / columns) * batch / fmax(sms, 1);
    if (!(taken > 0)) return 0;
    return fmin(taken + tail / fmax(waves, 1), most);
}

double ft__beside_others(double d, double beside, double left)
{
    if (!(left > 0) || !(beside > 0)) return 0;
    return fmin(left, d * (1 + beside)) * beside / (1 + beside);
}
