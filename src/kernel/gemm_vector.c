/* Matrix products in fp32 (TF32 off) and fp64: vector units on NVIDIA, fp32 matrix instructions on AMD.
 *
 * The same decomposition as gemm_tensor.c with an SGEMM library's tiles. What differs: smaller tiles reach less of the
 * rate (operands come through shared memory once per tile edge), one tile per SM cannot hide latencies, SMs with 128
 * lanes do not issue an FMA to every lane every clock (0.79 of the peak at best on our H200; 0.87 was needed for H100
 * and L4), and boards with little power (P4, T4, L4: 70 W) hold far less than their boost clock.
 *
 * NeuSight's single products were timed in sweeps of hours; the same boards hold more in models, which are short and
 * mixed: device time counts with less energy per flop, and boards that power does not hold do not feel it.
 *
 * Leaves out: the choice between SGEMM generations on Pascal, sliced-K kernels. */
#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/gemm_constants.h"
#include "kernel/gemm_tiles.h"
#include "kernel/kernel.h"
#include "kernel/priors_constants.h"

/* clang-format off */
enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EC, EB, E8K, E4K, E2K, E1K, LONE, LANES128, WAVE_US, PROLOGUE, SPLIT_US, SMOOTH, POWER_US, ENERGY, WARM,
    QUANTISATION,
    LAYOUT_NN, LAYOUT_T, BIAS, DUAL_ISSUE, AMD,
    THETA_COUNT
};
/* clang-format on */

static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_GEMM_VECTOR_LAUNCH_US,
    [GAP] = FT_K_PRIORS_GEMM_VECTOR_GAP_US,
    [EC] = FT_K_PRIORS_GEMM_VECTOR_COMPUTE_EFFICIENCY,
    [EB] = FT_K_PRIORS_GEMM_VECTOR_BANDWIDTH_EFFICIENCY,
    [E8K] = FT_K_PRIORS_GEMM_VECTOR_TILE_8192,
    [E4K] = FT_K_PRIORS_GEMM_VECTOR_TILE_4096,
    [E2K] = FT_K_PRIORS_GEMM_VECTOR_TILE_2048,
    [E1K] = FT_K_PRIORS_GEMM_VECTOR_TILE_1024,
    [LONE] = FT_K_PRIORS_GEMM_VECTOR_ONE_TILE_PER_SM,
    [LANES128] = FT_K_PRIORS_GEMM_VECTOR_LANES_128,
    [WAVE_US] = FT_K_PRIORS_GEMM_VECTOR_WAVE_US,
    [PROLOGUE] = FT_K_PRIORS_GEMM_VECTOR_PROLOGUE_K,
    [SPLIT_US] = FT_K_PRIORS_GEMM_VECTOR_SPLIT_US,
    [SMOOTH] = FT_K_PRIORS_GEMM_VECTOR_SMOOTH,
    [POWER_US] = FT_K_PRIORS_GEMM_VECTOR_POWER_US,
    [ENERGY] = FT_K_PRIORS_GEMM_VECTOR_ENERGY,
    [WARM] = FT_K_PRIORS_GEMM_VECTOR_WARM,
    [QUANTISATION] = FT_K_PRIORS_GEMM_VECTOR_WAVE_QUANTISATION,
    [LAYOUT_NN] = FT_K_PRIORS_GEMM_VECTOR_LAYOUT_NN,
    [LAYOUT_T] = FT_K_PRIORS_GEMM_VECTOR_LAYOUT_T,
    [BIAS] = FT_K_PRIORS_GEMM_VECTOR_SCALE,
    [DUAL_ISSUE] = FT_K_PRIORS_GEMM_VECTOR_DUAL_ISSUE,
    [AMD] = FT_K_PRIORS_GEMM_VECTOR_AMD,
};

static const ft_gemm_tile tiles[] = {{128, 128}, {128, 64}, {64, 128},  {64, 64},   {128, 32}, {32, 128}, {64, 32},
                                     {32, 64},   {32, 32},  {256, 128}, {128, 256}, {64, 256}, {256, 64}};
enum { TILES = sizeof tiles / sizeof *tiles };

enum { FP32, FP64, BMM_FP32, VARIANTS };
static const char *const variant_names[VARIANTS] = {"fp32", "fp64", "bmm_fp32"};

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_GEMM || (op->dtype != FT_FP32 && op->dtype != FT_FP64)) return -1;
    return op->u.gemm.b > 1 || !strcmp(op->name, "bmm") ? BMM_FP32 : op->dtype == FT_FP64 ? FP64 : FP32;
}

static const char *variant_name(int v) { return variant_names[v]; }

static int variant_fallback(int v)
{
    static const int next[VARIANTS] = {-1, FP32, FP32};
    return next[v];
}

/* clang-format off */
static const char *const feature_names[] = {
    "log_m", "log_n", "log_k", "log_b", "log_time_over_launch", "log_compute_over_memory", "wave_fill", "log_waves",
    "pad_m", "pad_n", "split", "tile_area", "log_operands_over_l2", "log_output_over_l2", "log_min_mn_over_max",
    "align_a", "align_b", "align_c", "layout_a", "layout_b",
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12",
    "twos_m", "twos_n", "twos_k", "has_bias", "log_work_per_sm", "device_timed",
};
/* clang-format on */

/* Batched products have fewer kernels to choose from. Seen in profiles of NeuSight's rows: Pascal always runs 64x128
 * (one kernel of Maxwell's, whose SM it has), A100 and L4 128x128 (fed by cp.async), Volta, Turing, Hopper several. */
static unsigned batched_tiles(const ft_device *device)
{
    if (device->dual_issue) return 1u << 1 | 1u << 2;
    if (device->async_copy == FT_COPY_CP_ASYNC) return 1u << 0;
    return 0;
}

/* Arithmetic per ms that the lanes reach, fed from operands that lie so. */
static double rate_of(const ft_device *device, const ft_op *op, const double *th)
{
    double peak = ft__peak_tflops(device, op->dtype) * 1e9;
    bool a_t = op->u.gemm.layout[0] == 't', b_t = op->u.gemm.layout[1] == 't';
    bool wide = device->vendor == FT_VENDOR_NVIDIA && device->lanes_per_sm >= 128 && device->process_nm < 12;
    double rate = th[EC] * peak * (wide ? th[LANES128] : 1);
    if (device->vendor == FT_VENDOR_AMD) rate *= th[AMD];
    if (device->dual_issue) rate *= th[DUAL_ISSUE];
    if (a_t)
        rate *= th[LAYOUT_T];
    else if (!b_t)
        rate *= th[LAYOUT_NN];
    return rate;
}

static void fill_features(const ft_device *device, const ft_op *op, const double *th, double memory_ms,
                          const ft_gemm_pick *pick, ft_physics *out)
{
    double m = (double)op->u.gemm.m, n = (double)op->u.gemm.n, k = (double)op->u.gemm.k, b = (double)op->u.gemm.b;
    double e = ft_dtype_bytes(op->dtype);
    bool a_t = op->u.gemm.layout[0] == 't', b_t = op->u.gemm.layout[1] == 't';
    float *f = out->feature;
    double l2 = device->l2_mib * 1048576;
    int aligned[3];
    ft__gemm_op_alignment(op, aligned);
    *f++ = ft__lg(m), *f++ = ft__lg(n), *f++ = ft__lg(k), *f++ = ft__lg(b);
    *f++ = ft__lg(1 + out->body_ms * 1e3 / th[op->timing == FT_TIMING_OP ? GAP : LAUNCH]),
    *f++ = ft__lg(out->compute_ms / memory_ms);
    *f++ = (float)(pick->waves / ceil(pick->waves)), *f++ = ft__lg(pick->waves);
    *f++ = (float)(m / (ceil(m / out->tile_m) * out->tile_m)),
    *f++ = (float)(n / (ceil(n / out->tile_n) * out->tile_n));
    *f++ = (float)pick->split, *f++ = (float)(out->tile_m * out->tile_n);
    *f++ = ft__lg(e * b * (m * k + k * n) / l2), *f++ = ft__lg(e * b * m * n / l2),
    *f++ = ft__lg(fmin(m, n) / fmax(m, n));
    *f++ = (float)aligned[0], *f++ = (float)aligned[1], *f++ = (float)aligned[2], *f++ = (float)a_t, *f++ = (float)b_t;
    for (int t = 0; t < TILES; t++) *f++ = pick->log_ratio[t];
    *f++ = ft__log2_divisor(op->u.gemm.m, 8), *f++ = ft__log2_divisor(op->u.gemm.n, 8),
    *f++ = ft__log2_divisor(op->u.gemm.k, 8), *f++ = (float)op->u.gemm.bias;
    *f++ = ft__lg(b * m * n * k / device->sms), *f++ = (float)(op->timing == FT_TIMING_DEVICE);
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    double m = (double)op->u.gemm.m, n = (double)op->u.gemm.n, k = (double)op->u.gemm.k, b = (double)op->u.gemm.b;
    double e = ft_dtype_bytes(op->dtype), clocks = 1e-3 * ft__clock_scale(device), rate = rate_of(device, op, th);
    double resident, bytes = ft__gemm_bytes(device, op, 1, &resident);
    double memory_ms = ft__gemm_memory_ms(device, bytes, resident, th[EB], th[WARM], FT_K_GEMM_VECTOR_L2_BYTES_PER_FLOP,
                                          FT_K_GEMM_VECTOR_RAMP_US * clocks);
    double efficiency[TILES];
    for (int t = 0; t < TILES; t++) {
        int area = tiles[t].m * tiles[t].n;
        efficiency[t] = area >= 16384  ? 1
                        : area >= 8192 ? th[E8K]
                        : area >= 4096 ? th[E4K]
                        : area >= 2048 ? th[E2K]
                                       : th[E1K];
    }
    ft_gemm_search s = {
        .batch = b,
        .m = m,
        .n = n,
        .k = k,
        .sms = device->sms,
        .tiles = tiles,
        .tile_count = TILES,
        .tile_efficiency = efficiency,
        .flop_per_ms_sm = rate / device->sms,
        .feed_bytes_per_ms_sm = FT_K_GEMM_VECTOR_FEED * ft__running_mhz(device) * 1e3,
        .element_bytes = e,
        .k_step = 8,
        .prologue_k = th[PROLOGUE],
        .lone = th[LONE],
        .wave_ms = th[WAVE_US] * clocks,
        .quantisation = th[QUANTISATION],
        .memory_ms = memory_ms,
        .smooth = th[SMOOTH],
        .split_ms = th[SPLIT_US] * clocks,
        .split_ms_per_element = ft__gemm_partial_ms(device),
        .allowed = b > 1 ? batched_tiles(device) : 0,
        .max_split = b > 1 ? 1 : 16,
    };
    double energy = th[ENERGY] * (op->timing == FT_TIMING_DEVICE ? FT_K_GEMM_IN_MODEL_ENERGY : 1);
    ft_gemm_pick pick;
    ft__gemm_outcome(device, op, &s, (ft_gemm_power){energy, rate * 1e-9, th[POWER_US]}, th[BIAS], want, &pick, out);
    out->note = NULL;
    if (want) fill_features(device, op, th, memory_ms, &pick, out);
}

const ft_family ft__gemm_vector_family = {
    .name = "gemm_vector",
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
