/* Matrix products on matrix units (tensor cores, MFMA): bf16, fp16, tf32, fp8, int8, fp4.
 *
 * Compute: the best tile and split (gemm_tiles.c) at a fraction of the dense peak, fed from L2 at a rate that scales
 * with the arithmetic (bytes per flop: a generation that doubles its matrix rate also doubles what feeds it; an
 * absolute rate per clock carries far worse to a generation nobody measured). Memory: compulsory traffic and reloads
 * over a fraction of the bandwidth, less what a warm L2 holds. Power: energy per flop times rate must stay under the
 * board's limit; the clock gives way over about tp, since a short kernel ends before the controller reacts.
 *
 * Rows not aligned to 16 bytes take older kernels: gemm_unaligned.c.
 *
 * fp8, int8 and fp4 through serving engines include the dynamic quantisation of the activations: one pass for the
 * largest magnitude and one to scale.
 *
 * A GPU that caps what its units do (GeForce, when they accumulate in fp32) comes closer to the capped rate than
 * others to theirs: feed and prologue are the SM's and follow the units' own rate.
 *
 * Leaves out: clusters and multicast, the swizzle's exact reuse, structured sparsity. */
#include <math.h>
#include <string.h>

#include "device/traits.h"
#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/gemm_constants.h"
#include "kernel/gemm_tiles.h"
#include "kernel/gemm_unaligned.h"
#include "kernel/kernel.h"
#include "kernel/priors_constants.h"

/* clang-format off */
enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EC, EB, WAVE_US, FEED, PROLOGUE, SPLIT_US, SMOOTH, POWER_US, ENERGY, WARM, WARM_CAPACITY, L2_RATE, RAMP_US,
    UNALIGNED_FEED, UNALIGNED_PAIRS, UNALIGNED_US, LAYOUT_NN, LAYOUT_T,
    QUANTISATION, QUANT_US, QUANT_EB, BIAS, HABIT, SPLIT_OF_GROUPS,
    THETA_COUNT
};
/* clang-format on */

static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_GEMM_TENSOR_LAUNCH_US,
    [GAP] = FT_K_PRIORS_GEMM_TENSOR_GAP_US,
    [EC] = FT_K_PRIORS_GEMM_TENSOR_COMPUTE_EFFICIENCY,
    [EB] = FT_K_PRIORS_GEMM_TENSOR_BANDWIDTH_EFFICIENCY,
    [WAVE_US] = FT_K_PRIORS_GEMM_TENSOR_WAVE_US,
    [FEED] = FT_K_PRIORS_GEMM_TENSOR_FEED_BYTES_PER_FLOP,
    [PROLOGUE] = FT_K_PRIORS_GEMM_TENSOR_PROLOGUE_K,
    [SPLIT_US] = FT_K_PRIORS_GEMM_TENSOR_SPLIT_US,
    [SMOOTH] = FT_K_PRIORS_GEMM_TENSOR_SMOOTH,
    [POWER_US] = FT_K_PRIORS_GEMM_TENSOR_POWER_US,
    [ENERGY] = FT_K_PRIORS_GEMM_TENSOR_ENERGY,
    [WARM] = FT_K_PRIORS_GEMM_TENSOR_WARM,
    [WARM_CAPACITY] = FT_K_PRIORS_GEMM_TENSOR_WARM_CAPACITY,
    [L2_RATE] = FT_K_PRIORS_GEMM_TENSOR_L2_BYTES_PER_FLOP,
    [RAMP_US] = FT_K_PRIORS_GEMM_TENSOR_MEMORY_RAMP_US,
    [UNALIGNED_FEED] = FT_K_PRIORS_GEMM_TENSOR_UNALIGNED_BYTES_PER_CLOCK,
    [UNALIGNED_PAIRS] = FT_K_PRIORS_GEMM_TENSOR_UNALIGNED_PAIRS,
    [UNALIGNED_US] = FT_K_PRIORS_GEMM_TENSOR_UNALIGNED_US,
    [LAYOUT_NN] = FT_K_PRIORS_GEMM_TENSOR_LAYOUT_NN,
    [LAYOUT_T] = FT_K_PRIORS_GEMM_TENSOR_LAYOUT_T,
    [QUANTISATION] = FT_K_PRIORS_GEMM_TENSOR_WAVE_QUANTISATION,
    [QUANT_US] = FT_K_PRIORS_GEMM_TENSOR_QUANTISE_US,
    [QUANT_EB] = FT_K_PRIORS_GEMM_TENSOR_QUANTISE_BANDWIDTH,
    [HABIT] = FT_K_PRIORS_GEMM_TENSOR_HABIT,
    [BIAS] = FT_K_PRIORS_GEMM_TENSOR_SCALE,
    [SPLIT_OF_GROUPS] = FT_K_PRIORS_GEMM_TENSOR_SPLIT_OF_GROUPS,
};

/* clang-format off */
static const ft_gemm_tile tiles[] = {
    {256, 128}, {128, 256}, {192, 128}, {128, 192}, {128, 128}, {256, 64}, {64, 256}, {128, 64}, {64, 128}, {64, 64},
    {128, 32}, {32, 128}, {64, 32}, {32, 64}, {64, 16}, {16, 64}, {128, 16}, {16, 128}, {64, 8}, {8, 64},
    /* from here on: of warp groups alone */
    {320, 128}, {128, 320}, {192, 192}, {256, 160}, {160, 256}, {192, 160}, {160, 192}, {224, 128}, {128, 224},
    {160, 128}, {128, 160}, {112, 128}, {128, 112}, {96, 128}, {128, 96}, {80, 128}, {128, 80}, {96, 64}, {64, 96},
    {48, 64}, {64, 48},
};
/* clang-format on */
enum { TILES = 20, TILES_OF_GROUPS = sizeof tiles / sizeof *tiles };
_Static_assert((int)TILES_OF_GROUPS <= (int)FT_GEMM_MAX_TILES, "a pick has room for all");

/* Warp groups multiply 64 rows by any multiple of 8 columns (PTX: wgmma, tcgen05), and the library uses that: its
 * kernels on Hopper and Blackwell (nvjet, as profiles name them) have tiles of 8 to 320 in steps of 8. Where a few tile
 * sizes leave the last wave half empty, one of these does not. Their split K costs half as much again as the older
 * kernels': fitted to A100 and L40S it takes 2.2 and 1.6 us, to H100, H200 and B200 2.5, 2.5 and 2.8. */
static bool in_groups(const ft_device *device) { return ft__matrix_async(device); }

enum { HALF, TF32, FP8, INT8, FP4, BMM_HALF, BMM_TF32, BMM_FP8, VARIANTS };
static const char *const variant_names[VARIANTS] = {"half", "tf32",     "fp8",      "int8",
                                                    "fp4",  "bmm_half", "bmm_tf32", "bmm_fp8"};

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_GEMM) return -1;
    bool batched = op->u.gemm.b > 1 || !strcmp(op->name, "bmm");
    switch (op->dtype) {
    case FT_BF16:
    case FT_FP16: return batched ? BMM_HALF : HALF;
    case FT_TF32: return batched ? BMM_TF32 : TF32;
    case FT_FP8: return batched ? BMM_FP8 : FP8;
    case FT_INT8: return batched ? BMM_FP8 : INT8;
    case FT_FP4: return batched ? BMM_FP8 : FP4;
    default: return -1;
    }
}

static const char *variant_name(int v) { return variant_names[v]; }

static int variant_fallback(int v)
{
    static const int next[VARIANTS] = {-1, HALF, HALF, FP8, FP8, HALF, BMM_HALF, BMM_HALF};
    return next[v];
}

/* clang-format off */
static const char *const feature_names[] = {
    "log_m", "log_n", "log_k", "log_b", "log_time_over_launch", "log_compute_over_memory", "wave_fill", "log_waves",
    "pad_m", "pad_n", "split", "tile_m", "tile_n", "log_operands_over_l2", "log_output_over_l2", "log_min_mn_over_max",
    "align_a", "align_b", "align_c", "layout_a", "layout_b", "is_bf16", "quantised",
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r12", "r14", "r15",
    "twos_m", "twos_n", "twos_k",
    "resident", "log_rotation_over_l2", "fill_256x256", "fill_128x256", "fill_256x128", "fill_128x128", "fill_64x128",
    "log_k_per_split",
};
/* clang-format on */

/* Of what kernels reach on other GPUs; a row of a table where the library has others for this one. */
static double library_share(const ft_device *device, ft_dtype dtype)
{
    for (int i = 0; i < FT_K_GEMM_LIBRARY_COUNT; i++)
        if (!strcmp(ft__k_gemm_library[i].capability, device->compute_capability) &&
            !strcmp(ft__k_gemm_library[i].dtype, ft_dtype_name(dtype)))
            return ft__k_gemm_library[i].share;
    return 1;
}

/* Kernels on AMD's units load through registers, with nothing in flight behind a lone tile: what its start and end,
 * and a split of K, take beside NVIDIA's, the rate it has by itself, and how much of the shorter of loads and products
 * does not hide behind the longer. */
typedef struct habits {
    double start, split, lone, turns;
} habits;

static habits habits_of(const ft_device *device, const ft_op *op)
{
    /* A vector streams as ever. In 8 bits the libraries have no kernels for one, and take those for a few rows. */
    int each[3];
    bool vector = (op->u.gemm.m == 1 || op->u.gemm.n == 1) &&
                  (ft_dtype_bytes(op->dtype) >= 2 || ft__gemm_op_alignment(op, each) < 16);
    if (device->matrix_issue != FT_ISSUE_MFMA || vector) return (habits){1, 1, 1, 0};
    return (habits){FT_K_GEMM_MFMA_START, FT_K_GEMM_MFMA_SPLIT, FT_K_GEMM_MFMA_LONE, FT_K_GEMM_MFMA_TURNS};
}

/* A product on its way to a time. */
typedef struct product {
    const ft_device *device;
    const ft_op *op;
    const double *th;
    double m, n, k, b, e; /* e: bytes of an element */
    double peak, cap;     /* flop per ms; the share of the units' own rate that is sold */
    double ec;            /* what kernels reach of it */
    double clocks;        /* ms of a clock's worth of microseconds */
    double resident, memory_ms;
    bool a_t, b_t, unaligned; /* unaligned: rows not aligned to 16 bytes */
    int aligned[3], align;
} product;

static product product_of(const ft_device *device, const ft_op *op, const double *th)
{
    product p = {.device = device,
                 .op = op,
                 .th = th,
                 .m = (double)op->u.gemm.m,
                 .n = (double)op->u.gemm.n,
                 .k = (double)op->u.gemm.k,
                 .b = (double)op->u.gemm.b,
                 .e = ft_dtype_bytes(op->dtype),
                 .peak = ft__peak_tflops(device, op->dtype) * ft__matrix_boost(device) * 1e9,
                 .cap = ft__matrix_cap(device, op->dtype),
                 .ec = fmin(th[EC] * library_share(device, op->dtype), 1),
                 .clocks = 1e-3 * ft__clock_scale(device),
                 .a_t = op->u.gemm.layout[0] == 't',
                 .b_t = op->u.gemm.layout[1] == 't'};
    p.align = ft__gemm_op_alignment(op, p.aligned);
    p.unaligned = p.align < 16 && p.m > 1 && p.n > 1; /* vectors stream as ever */
    double bytes = ft__gemm_bytes(device, op, th[WARM_CAPACITY], &p.resident);
    p.memory_ms = ft__gemm_memory_ms(device, bytes, p.resident, th[EB], th[WARM], th[L2_RATE], th[RAMP_US] * p.clocks);
    return p;
}

/* Flop per ms and SM, of the units' own rate. */
static double rate_of(const product *p)
{
    const double *th = p->th;
    double rate = p->ec * (p->peak / p->cap);
    if (p->a_t)
        rate *= th[LAYOUT_T];
    else if (!p->b_t)
        rate *= th[LAYOUT_NN];
    rate /= p->device->sms;
    /* wgmma reads tf32 along K alone (PTX: it transposes 16-bit operands only). A transposed A is left to mma.sync: on
     * our H200 large products reach 421 TFLOP/s as "nt" and 268 as "tn". */
    if (p->op->dtype == FT_TF32 && p->a_t && p->device->matrix_issue == FT_ISSUE_WGMMA)
        rate = fmin(rate, th[EC] * ft__mma_sync_rate(p->device, p->e));
    return rate;
}

/* Which tiles and splits there are, and what each costs. */
static ft_gemm_search search_of(const product *p)
{
    const ft_device *device = p->device;
    const double *th = p->th;
    bool groups = in_groups(device);
    habits own = habits_of(device, p->op);
    ft_gemm_search s = {
        .batch = p->b,
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .sms = device->sms,
        .tiles = tiles,
        .tile_count = groups ? TILES_OF_GROUPS : TILES,
        .flop_per_ms_sm = rate_of(p),
        .feed_bytes_per_ms_sm = fmax(th[FEED] * fmax(1, p->e / 2) * (p->peak / p->cap) / device->sms,
                                     ft__gemm_least_feed(device->matrix_mhz)),
        .cap = p->cap < 1 ? p->cap : 0,
        .capped_flop_per_ms_sm = p->peak / device->sms,
        .element_bytes = p->e,
        .k_step = 64 / p->e,
        .prologue_k = th[PROLOGUE] * 2 / p->e,
        .lone = own.lone,
        .wave_ms = own.start * th[WAVE_US] * p->clocks,
        .quantisation = th[QUANTISATION],
        .memory_ms = p->memory_ms,
        .smooth = th[SMOOTH],
        .split_ms = own.split * th[SPLIT_US] * p->clocks * (groups ? th[SPLIT_OF_GROUPS] : 1),
        .split_ms_per_element = ft__gemm_partial_ms(device),
        .habit = th[HABIT],
        .favourites = 1u << 0 | 1u << 1 | 1u << 4 | 1u << 9, /* 256x128, 128x256, 128x128, 64x64 */
        .max_split = p->b > 1 ? 1 : 16,
    };
    if (p->unaligned)
        ft__gemm_unaligned_search(
            device, p->op,
            (ft_gemm_unaligned){p->align, th[EC], th[UNALIGNED_FEED], th[UNALIGNED_PAIRS], th[SPLIT_US] * p->clocks},
            &s);
    return s;
}

/* Read bf16 for the largest magnitude, read again, write low precision: from L2 where the activations fit. */
static double quantising_ms(const product *p)
{
    const double *th = p->th;
    double elements = p->b * p->m * p->k, passes = elements * (4 + p->e),
           x = elements * (2 + p->e) / (th[WARM_CAPACITY] * p->device->l2_mib * 1048576), held = 1 / (1 + x * x);
    return th[QUANT_US] * p->clocks +
           ft__gemm_memory_ms(p->device, passes, held, th[QUANT_EB], 1, th[L2_RATE], FT_K_GEMM_QUANTISE_RAMP_MS);
}

/* How full the last wave is for the common tiles; 256x256 runs on pairs of SMs. */
static float *last_waves(const product *p, float *f)
{
    static const ft_gemm_tile fills[] = {{256, 256}, {128, 256}, {256, 128}, {128, 128}, {64, 128}};
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        double units = i == 0 ? p->device->sms / 2 : p->device->sms;
        double load = ceil(p->m / fills[i].m) * ceil(p->n / fills[i].n) * p->b / units;
        *f++ = (float)(load / ceil(load));
    }
    return f;
}

static void features(const product *p, const ft_gemm_pick *pick, int tile_count, bool quantise, ft_physics *out)
{
    const ft_op *op = p->op;
    double m = p->m, n = p->n, k = p->k, b = p->b, e = p->e, l2 = p->device->l2_mib * 1048576;
    float *f = out->feature;
    *f++ = ft__lg(m), *f++ = ft__lg(n), *f++ = ft__lg(k), *f++ = ft__lg(b);
    *f++ = ft__lg(1 + out->body_ms * 1e3 / p->th[LAUNCH]), *f++ = ft__lg(out->compute_ms / p->memory_ms);
    *f++ = (float)(pick->waves / ceil(pick->waves)), *f++ = ft__lg(pick->waves);
    *f++ = (float)(m / (ceil(m / out->tile_m) * out->tile_m)),
    *f++ = (float)(n / (ceil(n / out->tile_n) * out->tile_n));
    *f++ = (float)pick->split, *f++ = (float)out->tile_m, *f++ = (float)out->tile_n;
    *f++ = ft__lg(e * b * (m * k + k * n) / l2), *f++ = ft__lg(2 * b * m * n / l2),
    *f++ = ft__lg(fmin(m, n) / fmax(m, n));
    *f++ = (float)p->aligned[0], *f++ = (float)p->aligned[1], *f++ = (float)p->aligned[2], *f++ = (float)p->a_t,
    *f++ = (float)p->b_t;
    *f++ = (float)(op->dtype == FT_BF16), *f++ = (float)quantise;
    static const int shown[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        *f++ = shown[i] < tile_count ? pick->log_ratio[shown[i]] : 0;
    *f++ = ft__log2_divisor(op->u.gemm.m, 10), *f++ = ft__log2_divisor(op->u.gemm.n, 10),
    *f++ = ft__log2_divisor(op->u.gemm.k, 10);
    *f++ = (float)p->resident,
    *f++ = ft__lg((fmin(FT_K_GEMM_ROTATED, ceil(l2 / (e * b * k * n))) * e * k * n + e * m * k + 2 * m * n) * b / l2);
    f = last_waves(p, f);
    *f++ = ft__lg(k / pick->split);
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    product p = product_of(device, op, th);
    ft_gemm_search s = search_of(&p);
    ft_gemm_pick pick;
    ft__gemm_outcome(device, op, &s,
                     (ft_gemm_power){th[ENERGY], ft__capped_efficiency(p.ec, p.cap) * p.peak * 1e-9, th[POWER_US]},
                     th[BIAS], want, &pick, out);
    double products_ms = 2 * p.b * p.m * p.n * p.k / (rate_of(&p) * device->sms);
    double turns_ms = habits_of(device, op).turns * fmin(products_ms, out->memory_ms);
    out->body_ms += fmax(0,
                         turns_ms - (out->compute_ms - pick.compute_ms)); /* a board bound by power rests meanwhile */
    if (p.unaligned) /* and the first load and the last store, with nothing to hide in */
        out->body_ms = ft__gemm_few_rows_ms(device, op, p.align, p.memory_ms,
                                            out->body_ms + th[UNALIGNED_US] * p.clocks);
    bool quantise = p.e < 2 && op->u.gemm.quantized == 0;
    if (quantise) out->body_ms += quantising_ms(&p);
    out->note = p.unaligned ? "rows not aligned to 16 bytes: the library takes a slower kernel" : NULL;
    if (want) features(&p, &pick, s.tile_count, quantise, out);
}

const ft_family ft__gemm_tensor_family = {
    .name = "gemm_tensor",
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
