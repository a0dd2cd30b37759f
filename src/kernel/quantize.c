/* Quantisation of a bf16 or fp16 matrix to fp8, int8 or fp4, and back.
 *
 *   T = launch + further kernels + max(bytes / (eb BW), elements * instructions / lanes)
 *
 * What runs depends on who quantises. In eager PyTorch each step is a kernel that reads and writes the matrix:
 *
 *   bytes per element, to fp8                          kernels
 *   quantize_cast      2 + 1                           1   x.to(fp8)
 *   quantize_static    2 + 2, 2 + 1                    2   scale, cast
 *   quantize           abs 4, max 2, / 4, clamp 4, cast 3   9   scale from the tensor's largest magnitude
 *   quantize_rows      abs 4, max 2, / 6, clamp 8, cast 5   8   from each row's: the quotient is fp32
 *   scale_matrix       2 + 1                           1   an engine's fused scale and cast (TensorRT-LLM)
 *   dequantize         1 + 2                           1
 *
 * fp8 conversions cost instructions (no vectorised kernel in PyTorch: 3.3 TB/s on H200, where a copy reaches 4.3).
 *
 * Leaves out: block scales (MX formats, 1x128), which engines fuse into the kernel before. */
#include <string.h>

#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/feature.h"
#include "kernel/gemm_tiles.h"
#include "kernel/kernel.h"
#include "kernel/priors_constants.h"
#include "kernel/traffic.h"

enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EB,
    EB_GDDR,
    ISSUE,
    ISSUE_ODD,
    NODE_US,
    ROW_NS,
    SMOOTH,
    CACHE_GAIN,
    WARM_SHARE,
    THETA_COUNT
};

_Static_assert((int)THETA_COUNT <= (int)FT_MAX_THETA, "a predictor file has no room for more constants");
static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_QUANTIZE_LAUNCH_US,        [GAP] = FT_K_PRIORS_QUANTIZE_GAP_US,
    [EB] = FT_K_PRIORS_QUANTIZE_BANDWIDTH_EFFICIENCY, [EB_GDDR] = FT_K_PRIORS_QUANTIZE_GDDR,
    [ISSUE] = FT_K_PRIORS_QUANTIZE_INSTRUCTIONS,      [ISSUE_ODD] = FT_K_PRIORS_QUANTIZE_INSTRUCTIONS_ODD,
    [NODE_US] = FT_K_PRIORS_QUANTIZE_NODE_US,         [ROW_NS] = FT_K_PRIORS_QUANTIZE_ROW_NS,
    [SMOOTH] = FT_K_PRIORS_QUANTIZE_SMOOTH,           [CACHE_GAIN] = FT_K_PRIORS_QUANTIZE_CACHE_GAIN,
    [WARM_SHARE] = FT_K_PRIORS_QUANTIZE_WARM_SHARE,
};

enum { DYNAMIC, ROWS, STATIC, CAST, SCALE, BACK, VARIANTS };
static const struct kind {
    const char *name;
    double bytes; /* per element beside the narrow format's own */
    double kernels;
    int fallback;
} kinds[VARIANTS] = {
    [DYNAMIC] = {"quantize", 16, 9, -1},           [ROWS] = {"quantize_rows", 24, 8, DYNAMIC},
    [STATIC] = {"quantize_static", 6, 2, DYNAMIC}, [CAST] = {"quantize_cast", 2, 1, SCALE},
    [SCALE] = {"scale_matrix", 2, 1, CAST},        [BACK] = {"dequantize", 2, 1, CAST},
};

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_QUANTIZE) return -1;
    for (int v = 0; v < VARIANTS; v++)
        if (!strcmp(kinds[v].name, op->name)) return v;
    return DYNAMIC;
}
static const char *variant_name(int v) { return kinds[v].name; }
static int variant_fallback(int v) { return kinds[v].fallback; }

static const char *const feature_names[] = {
    "log_time_over_start",
    "log_issue_over_memory",
    "log_bytes_over_cache",
    "log_rows",
    "log_cols",
    "align",
    "log_elements",
    "twos_cols",
    "log_rows_per_sm",
};

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    const struct kind *kind = &kinds[variant_of(op)];
    double rows = (double)op->u.quantize.rows, cols = (double)op->u.quantize.cols, elements = rows * cols;
    double bytes = elements * (kind->bytes + ft_dtype_bytes(op->dtype)), each = bytes / kind->kernels;
    bool odd = op->u.quantize.cols % 8 != 0;
    double eb = th[EB] * (device->memory_is_hbm ? 1 : th[EB_GDDR]) * ft__plain_memory(device);
    ft_cache_state cache = {th[WARM_SHARE], th[CACHE_GAIN]};
    double memory = ft__traffic_ms(device, each, eb, cache) * kind->kernels;
    double issue = elements * kind->kernels * th[ISSUE] * (odd ? th[ISSUE_ODD] : 1) / ft__lane_rate(device) +
                   rows * th[ROW_NS] * 1e-6;
    out->compute_ms = issue;
    out->memory_ms = memory;
    out->body_ms = ft__smooth_max(issue, memory, th[SMOOTH]) + (kind->kernels - 1) * th[NODE_US] * 1e-3;
    out->tile_m = out->tile_n = out->split_k = 0;
    out->tiles = out->waves = 0;
    out->note = NULL;
    if (!want) return;
    float *f = out->feature;
    int64_t c = op->u.quantize.cols;
    int twos = 0;
    while (twos < 10 && c % 2 == 0) c /= 2, twos++;
    *f++ = ft__lg(1 + out->body_ms * 1e3 / th[LAUNCH]), *f++ = ft__lg(issue / memory),
    *f++ = ft__lg(bytes / (device->l2_mib * 1048576));
    *f++ = ft__lg(rows), *f++ = ft__lg(cols), *f++ = (float)ft__gemm_alignment(op->u.quantize.cols, 2),
    *f++ = ft__lg(elements);
    *f++ = (float)twos, *f++ = ft__lg(rows / device->sms);
}

const ft_family ft__quantize_family = {
    .name = "quantize",
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
