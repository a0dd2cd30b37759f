/* Elementwise operators: bytes through memory, instructions through the vector lanes, whichever takes longer.
 *
 *   T = launch + max(bytes / (eb BW), numel * instructions / (ec lanes clock))        (a little more when both are
 * close)
 *
 * One GPU's memory-bound operators all reach the same share of the bandwidth, so that an operator is described by its
 * bytes and by what it issues per element (data/constants/kernel/elementwise.json, read off H200).
 *
 * Operands that fit a share of the last-level cache come from it: the call before, or the benchmark's own last
 * iteration, left them there. Eager timings repeat a call on the same operands (most of the cache is useful); our own
 * rotate through several copies, so that only operators under an eighth of the cache find theirs.
 *
 * PyTorch converts bf16 and fp16 to other formats by an element-at-a-time kernel, three times slower than its
 * vectorised one; a copy is cudaMemcpyAsync, at two thirds of the speed unless its bytes are a multiple of 8192;
 * dropout loses its vectors when the element count is no multiple of theirs.
 *
 * Leaves out: broadcasting and strides (a strided operand is a transpose_copy), fused chains other than by
 * ops_per_element. */
#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/elementwise_constants.h"
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
    EB_AMD,
    EC,
    CACHE_GAIN,
    WARM_SHARE,
    REPEAT_SHARE,
    SMOOTH,
    COPY_EB,
    HEAVY,
    LEAD_US,
    THETA_COUNT
};

_Static_assert((int)THETA_COUNT <= (int)FT_MAX_THETA, "a predictor file has no room for more constants");
static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_ELEMENTWISE_LAUNCH_US,
    [GAP] = FT_K_PRIORS_ELEMENTWISE_GAP_US,
    [EB] = FT_K_PRIORS_ELEMENTWISE_BANDWIDTH_EFFICIENCY,
    [EB_GDDR] = FT_K_PRIORS_ELEMENTWISE_GDDR,
    [EB_AMD] = FT_K_PRIORS_ELEMENTWISE_AMD,
    [EC] = FT_K_PRIORS_ELEMENTWISE_ISSUE_EFFICIENCY,
    [CACHE_GAIN] = FT_K_PRIORS_ELEMENTWISE_CACHE_GAIN,
    [WARM_SHARE] = FT_K_PRIORS_ELEMENTWISE_WARM_SHARE,
    [REPEAT_SHARE] = FT_K_PRIORS_ELEMENTWISE_REPEAT_SHARE,
    [SMOOTH] = FT_K_PRIORS_ELEMENTWISE_SMOOTH,
    [COPY_EB] = FT_K_PRIORS_ELEMENTWISE_COPY_BANDWIDTH,
    [LEAD_US] = FT_K_PRIORS_ELEMENTWISE_LEAD_US,
    [HEAVY] = FT_K_PRIORS_ELEMENTWISE_HEAVY_US,
};

/* Operands that are not one contiguous run: every element computes its offsets, one or two at a time. Instructions per
 * element:
 *
 *   formats differ     one operand is the cast of bf16 to fp32; two convert both
 *   spread             an operand of fewer elements is looked up; where formats differ, converted too
 *   strided            a transposed view or a slice; two operands twice the offsets; rows that are joined or turned
 *                      lose the order of memory on one side */
static double scattered(const ft_op *op)
{
    bool mixed = op->u.elementwise.pattern & FT_PATTERN_MIXED, two = op->u.elementwise.inputs > 1;
    bool spread = (op->u.elementwise.pattern & ~FT_PATTERN_MIXED) == FT_PATTERN_SPREAD;
    if ((op->u.elementwise.pattern & ~FT_PATTERN_MIXED) == FT_PATTERN_CONTIGUOUS) return ft__k_elementwise_mixed[two];
    if (mixed) return FT_K_ELEMENTWISE_MIXED_SCATTERED;
    for (int i = 0; i < FT_K_ELEMENTWISE_SCATTERED_COUNT; i++) {
        const struct ft__k_elementwise_scattered *own = &ft__k_elementwise_scattered[i];
        double issue = spread ? own->spread : own->strided;
        if (issue > 0 && !strcmp(own->name, op->name)) return issue;
    }
    if (spread) return FT_K_ELEMENTWISE_SPREAD;
    return !two && !strcmp(op->name, "mul") ? FT_K_ELEMENTWISE_STRIDED_MUL : ft__k_elementwise_strided[two];
}

/* Whether it is a kernel of mixed formats, of scattered operands, or both. */
static bool mixes(const ft_op *op) { return op->u.elementwise.pattern & FT_PATTERN_MIXED; }
static bool scatters(const ft_op *op)
{
    return (op->u.elementwise.pattern & ~FT_PATTERN_MIXED) != FT_PATTERN_CONTIGUOUS;
}

/* What a kernel of longer programs, or of operands an element at a time, takes before it is under way, in ms. */
static double start(const ft_op *op, double issue, double heavy)
{
    enum { NARROW, WIDE, MIXED, BOTH };
    if (op->u.elementwise.pattern <= 0) return heavy * 1e-5 * (issue - FT_K_ELEMENTWISE_PLAIN);
    int kind = mixes(op) ? scatters(op) ? BOTH : MIXED : ft_dtype_bytes(op->dtype) > 2 ? WIDE : NARROW;
    return ft__k_elementwise_start[kind] * 1e-3;
}

/* Instructions per element. */
static double instructions(const ft_op *op)
{
    if (op->u.elementwise.pattern > 0)
        return scattered(op) * (!mixes(op) && ft_dtype_bytes(op->dtype) > 2 ? FT_K_ELEMENTWISE_WIDE : 1);
    if (op->u.elementwise.ops_per_element > 0) return FT_K_ELEMENTWISE_FUSED + op->u.elementwise.ops_per_element;
    if (!strncmp(op->name, "cast_", 5)) return op->dtype == FT_FP32 ? FT_K_ELEMENTWISE_PLAIN : FT_K_ELEMENTWISE_CAST;
    if (!strcmp(op->name, "dropout"))
        return FT_K_ELEMENTWISE_DROPOUT * (fmod((double)op->u.elementwise.numel, 16 / ft_dtype_bytes(op->dtype)) > 0
                                               ? FT_K_ELEMENTWISE_DROPOUT_ODD
                                               : 1);
    if (!strcmp(op->name, "pow"))
        return op->u.elementwise.inputs > 1 ? FT_K_ELEMENTWISE_POW_OF_TWO_TENSORS : FT_K_ELEMENTWISE_PLAIN;
    for (int i = 0; i < FT_K_ELEMENTWISE_INSTRUCTIONS_COUNT; i++)
        if (!strcmp(ft__k_elementwise_instructions[i].name, op->name)) return ft__k_elementwise_instructions[i].issue;
    return FT_K_ELEMENTWISE_PLAIN;
}

/* Offsets are computed beside the arithmetic where an SM has other pipes for them: since Volta four schedulers issue
 * 128 lanes a clock whatever the number of fp32 lanes, on AMD a scalar unit takes a share. */
static double beside(const ft_device *device)
{
    if (device->vendor == FT_VENDOR_AMD) return FT_K_ELEMENTWISE_BESIDE_AMD;
    if (device->lanes_per_sm <= 0 || device->lanes_per_sm >= FT_K_ELEMENTWISE_BESIDE_LANES) return 1;
    return device->dual_issue ? FT_K_ELEMENTWISE_BESIDE_DUAL
                              : fmax(1, (double)device->issue_lanes_per_sm / device->lanes_per_sm);
}

/* An element at a time: nearly all that is issued are offsets, branches on formats and moves. */
static bool by_element(const ft_op *op)
{
    return op->u.elementwise.pattern > 0 || (!strncmp(op->name, "cast_", 5) && op->dtype != FT_FP32);
}

/* Philox's integers: 64 lanes multiply them on every SM from Volta to Hopper (CUDA's programming guide, throughput of
 * instructions), so that the fp32 lanes an SM lacks are not missed. */
static bool drawn(const ft_device *device, const ft_op *op)
{
    return !strcmp(op->name, "dropout") && device->vendor != FT_VENDOR_AMD && !device->dual_issue;
}

enum { PLAIN, VARIANTS };
static int variant_of(const ft_op *op) { return op->kind == FT_OP_ELEMENTWISE ? PLAIN : -1; }
static const char *variant_name(int v) { return v == PLAIN ? "pointwise" : ""; }
static int variant_fallback(int v) { return (void)v, -1; }

static const char *const feature_names[] = {
    "log_time_over_start",
    "log_compute_over_memory",
    "log_bytes_over_cache",
    "log_numel",
    "operator",
    "inputs",
    "element_bytes",
    "instructions",
    "numel_multiple",
    "is_fp16",
    "device_timed",
};

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    double numel = (double)op->u.elementwise.numel, issue = instructions(op), bytes = ft__op_bytes(op);
    bool eager = op->timing == FT_TIMING_OP, copy = !strcmp(op->name, "copy");
    bool slow_copy = copy && fmod(numel * ft_dtype_bytes(op->dtype), FT_K_ELEMENTWISE_COPY_BYTES) > 0;
    ft_cache_state cache = {eager ? th[REPEAT_SHARE] : th[WARM_SHARE], th[CACHE_GAIN]};
    double eb = th[EB] * (device->memory_is_hbm ? 1 : th[EB_GDDR]) * ft__plain_memory(device) *
                (device->vendor == FT_VENDOR_AMD ? th[EB_AMD] : 1);
    double memory = ft__traffic_ms(device, bytes, eb * (slow_copy ? th[COPY_EB] : 1), cache);
    double compute = numel * issue /
                     (th[EC] * ft__lane_rate(device) * (by_element(op) || drawn(device, op) ? beside(device) : 1));
    out->compute_ms = compute;
    out->memory_ms = memory;
    out->body_ms = ft__smooth_max(compute, memory, th[SMOOTH]) + start(op, issue, th[HEAVY]) +
                   (eager ? th[LEAD_US] * 1e-3 : 0);
    out->tile_m = out->tile_n = out->split_k = 0;
    out->tiles = out->waves = 0;
    out->note = NULL;
    if (!want) return;
    float *f = out->feature;
    int at = ft__pointwise_op_find(op->name);
    *f++ = ft__lg(1 + out->body_ms * 1e3 / th[eager ? GAP : LAUNCH]);
    *f++ = ft__lg(compute / memory);
    *f++ = ft__lg(bytes / (device->l2_mib * 1048576));
    *f++ = ft__lg(numel);
    *f++ = (float)at;
    *f++ = (float)op->u.elementwise.inputs;
    *f++ = (float)ft_dtype_bytes(op->dtype);
    *f++ = (float)issue;
    int64_t n = op->u.elementwise.numel;
    *f++ = (float)(n % 4096 == 0 ? 5 : n % 2048 == 0 ? 4 : n % 1024 == 0 ? 3 : n % 8 == 0 ? 2 : n % 4 == 0 ? 1 : 0);
    *f++ = (float)(op->dtype == FT_FP16);
    *f++ = (float)!eager;
}

const ft_family ft__elementwise_family = {
    .name = "elementwise",
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
