/* What the attention families share: the format they multiply in, exponentials, padded heads, what L2 still holds. */
#ifndef FT_KERNEL_ATTENTION_H
#define FT_KERNEL_ATTENTION_H
#include <math.h>

#include "device/traits.h"
#include "kernel/attention_constants.h"
#include "kernel/feature.h"

/* An fp8 cache is multiplied in fp8 wherever the GPU can, whatever the queries' format. */
static inline ft_dtype ft__attention_math(const ft_op *op)
{
    return ft_dtype_bytes(op->kv_dtype) < ft_dtype_bytes(op->dtype) ? op->kv_dtype : op->dtype;
}

/* Exponentials per millisecond and SM. */
static inline double ft__exp_per_ms_sm(const ft_device *device)
{
    double mhz = (device->matrix_mhz > 0 ? device->matrix_mhz : device->boost_mhz) * ft__running_mhz(device) /
                 device->boost_mhz;
    return ft__exp_per_clk(device) * mhz * 1e3;
}

/* Kernels are compiled for head dimensions in steps of 64: on our H200 a head of 80 or 96 costs what 128 does. */
static inline double ft__head_padded(double d) { return 64 * ceil(d / 64); }

/* Share of `bytes` that a warm L2 still holds from the last replay: 1 well below what the cache keeps, 0 well above.
 * Two-part caches beside HBM keep less of their size for one working set than single ones beside GDDR; times `keep`. */
static inline double ft__resident(const ft_device *device, double keep, double bytes)
{
    double keeps = device->memory_is_hbm ? FT_K_ATTENTION_HBM_KEEPS : FT_K_ATTENTION_GDDR_KEEPS;
    double f = bytes / (keep * keeps * device->l2_mib * 1048576);
    f *= f;
    f *= f;
    return 1 / (1 + f * f);
}
#endif
