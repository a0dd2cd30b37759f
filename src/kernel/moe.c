/* A mixture-of-experts layer after the router: permute, up and gate, activation, down, combine, as grouped GEMMs.
 *
 * Tokens per expert decide everything: weights of the active experts are read once, however few tokens each has, and
 * every expert's rows are padded to the tile. Balanced routing is exact: T*k over E experts, some one more than others.
 * `skew` > 0 draws loads whose density falls as x^-skew between 1 and 0.8 T (how aiconfigurator, the source of the
 * skewed rows, draws them); we take the quantiles of that density, 16 buckets of experts.
 *
 *   GEMM 1: m_e x 2I x H      GEMM 2: m_e x H x I
 *   tiles  = sum_e ceil(m_e / bm) ceil(N / bn)
 *   T_g    = smooth max( waves * (max(2 bm bn (K + prologue) / rate, (bm + bn) K bytes / feed) + wave_us),
 *                        weights of active experts / (eb BW) )
 *   T      = launch + T_1 + T_2 + passes over the routed activations + experts_us * active
 * with the tile that ends first, as gemm_tiles.c has it for one GEMM; low-precision rows quantise their activations.
 *
 * FT_ENGINE_BARE is a framework's pair of grouped products with the activation between them, the rows already gathered.
 *
 * Which program runs (CUTLASS, Triton, Marlin, TensorRT-LLM's precompiled ones) is moe_backend.c's to find: each with
 * each format is a variant, fitted by itself. Weights of fewer bits than the activations are read as they are stored
 * and multiplied at the activations' rate. Of `ep` ranks that share the experts this is one: its experts, and the
 * tokens of all that picked them. `drawn` tokens pick at random: E(1 - (1 - k/E)^T) experts are awake, their loads
 * scatter like counts.
 *
 * Leaves out: the router, expert parallelism's all-to-all, shared experts (a dense MLP). */
#include <math.h>

#include "graph/operator.h"
#include "kernel/attention.h"
#include "kernel/families.h"
#include "kernel/gemm_tiles.h"
#include "kernel/kernel.h"
#include "kernel/moe_constants.h"
#include "kernel/power.h"
#include "kernel/priors_constants.h"
#include "kernel/skew.h"

enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EC,
    EB,
    FEED,
    WAVE_US,
    PROLOGUE,
    SMOOTH,
    QUANTISATION,
    PASS_EB,
    EXPERT_US,
    POWER_US,
    ENERGY,
    WARM,
    KEEP,
    L2_CLK,
    QUANT_US,
    SHAPE,
    THETA_COUNT
};

static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_MOE_LAUNCH_US,
    [GAP] = FT_K_PRIORS_MOE_GAP_US,
    [EC] = FT_K_PRIORS_MOE_COMPUTE_EFFICIENCY,
    [EB] = FT_K_PRIORS_MOE_BANDWIDTH_EFFICIENCY,
    [FEED] = FT_K_PRIORS_MOE_FEED_BYTES_PER_FLOP,
    [WAVE_US] = FT_K_PRIORS_MOE_WAVE_US,
    [PROLOGUE] = FT_K_PRIORS_MOE_PROLOGUE_K,
    [SMOOTH] = FT_K_PRIORS_MOE_SMOOTH,
    [QUANTISATION] = FT_K_PRIORS_MOE_WAVE_QUANTISATION,
    [PASS_EB] = FT_K_PRIORS_MOE_PASS_BANDWIDTH,
    [EXPERT_US] = FT_K_PRIORS_MOE_EXPERT_US,
    [POWER_US] = FT_K_PRIORS_MOE_POWER_US,
    [ENERGY] = FT_K_PRIORS_MOE_ENERGY,
    [WARM] = FT_K_PRIORS_MOE_WARM,
    [KEEP] = FT_K_PRIORS_MOE_L2_KEEPS,
    [L2_CLK] = FT_K_PRIORS_MOE_L2_BYTES_PER_CLOCK,
    [QUANT_US] = FT_K_PRIORS_MOE_QUANTISE_US,
    [SHAPE] = FT_K_PRIORS_MOE_SMALL_TILE,
};

/* Programs of their own: backend by format. The first four are CUTLASS (TensorRT-LLM) and a framework's. */
/* clang-format off */
enum {
    HALF, FP8, FP4, BARE,
    BLOCK, MXFP4,
    FLASHINFER_HALF, FLASHINFER_FP8, FLASHINFER_BLOCK, FLASHINFER_FP4,
    GEN_HALF, GEN_FP8, GEN_BLOCK, GEN_FP4, GEN_MXFP4, GEN_MXFP4_FP8,
    TRITON_HALF, TRITON_FP8, TRITON_BLOCK, TRITON_MXFP4,
    MARLIN, DEEPGEMM,
    VARIANTS
};
static const char *const variant_names[VARIANTS] = {
    "half", "fp8", "fp4", "bare",
    "fp8_block", "mxfp4",
    "flashinfer_half", "flashinfer_fp8", "flashinfer_block", "flashinfer_fp4",
    "gen_half", "gen_fp8", "gen_block", "gen_fp4", "gen_mxfp4", "gen_mxfp4_fp8",
    "triton_half", "triton_fp8", "triton_block", "triton_mxfp4",
    "marlin", "deepgemm",
};
/* clang-format on */

/* Formats as backends tell them apart: activations in 16 bits over weights of as many, of fewer; in 8; in 4. */
enum { IN_HALF, IN_FP8, IN_BLOCK, IN_FP4, OVER_FOUR, OVER_FOUR_FP8, FORMATS };

static int format_of(const ft_op *op)
{
    double e = ft_dtype_bytes(op->dtype), stored = ft__stored_bytes(op);
    if (e >= 2) return stored >= 2 ? IN_HALF : OVER_FOUR;
    if (e < 1) return IN_FP4;
    return stored < 1 ? OVER_FOUR_FP8 : op->weights == FT_STORED_FP8_BLOCK ? IN_BLOCK : IN_FP8;
}

static int variant_of(const ft_op *op)
{
    static const int of[FT_MOE_BACKEND_COUNT][FORMATS] = {
        [FT_MOE_ANY] = {HALF, FP8, BLOCK, FP4, MXFP4, GEN_MXFP4_FP8},
        [FT_MOE_CUTLASS] = {HALF, FP8, BLOCK, FP4, MXFP4, GEN_MXFP4_FP8},
        [FT_MOE_TRTLLM_GEN] = {GEN_HALF, GEN_FP8, GEN_BLOCK, GEN_FP4, GEN_MXFP4, GEN_MXFP4_FP8},
        [FT_MOE_TRITON] = {TRITON_HALF, TRITON_FP8, TRITON_BLOCK, TRITON_FP8, TRITON_MXFP4, TRITON_MXFP4},
        [FT_MOE_MARLIN] = {MARLIN, MARLIN, MARLIN, MARLIN, MARLIN, MARLIN},
        [FT_MOE_DEEPGEMM] = {HALF, DEEPGEMM, DEEPGEMM, FP4, MXFP4, DEEPGEMM},
    };
    static const int flashinfer[FORMATS] = {FLASHINFER_HALF, FLASHINFER_FP8, FLASHINFER_BLOCK,
                                            FLASHINFER_FP4,  MXFP4,          GEN_MXFP4_FP8};
    if (op->kind != FT_OP_MOE) return -1;
    int format = format_of(op), backend = op->u.moe.backend;
    if (op->engine == FT_ENGINE_BARE && format == IN_HALF) return BARE;
    if (backend == FT_MOE_CUTLASS && op->engine >= FT_ENGINE_VLLM) return flashinfer[format];
    return of[backend][format];
}

static const char *variant_name(int v) { return variant_names[v]; }

/* The program closest to one that nobody measured. */
static int variant_fallback(int v)
{
    static const int next[VARIANTS] = {
        [HALF] = BARE,
        [FP8] = HALF,
        [FP4] = FP8,
        [BARE] = -1,
        [BLOCK] = FP8,
        [MXFP4] = TRITON_MXFP4,
        [FLASHINFER_HALF] = HALF,
        [FLASHINFER_FP8] = FP8,
        [FLASHINFER_BLOCK] = BLOCK,
        [FLASHINFER_FP4] = FP4,
        [GEN_HALF] = HALF,
        [GEN_FP8] = GEN_HALF,
        [GEN_BLOCK] = GEN_FP8,
        [GEN_FP4] = GEN_FP8,
        [GEN_MXFP4] = GEN_HALF,
        [GEN_MXFP4_FP8] = GEN_FP8,
        [TRITON_HALF] = HALF,
        [TRITON_FP8] = TRITON_HALF,
        [TRITON_BLOCK] = TRITON_FP8,
        [TRITON_MXFP4] = TRITON_HALF,
        [MARLIN] = TRITON_HALF,
        [DEEPGEMM] = BLOCK,
    };
    return next[v];
}

static const char *const feature_names[] = {
    "log_tokens",
    "log_hidden",
    "log_inter",
    "topk",
    "log_experts",
    "skew",
    "log_tokens_per_expert",
    "active_share",
    "pad_share",
    "tile_m",
    "log_tiles",
    "log_waves",
    "wave_fill",
    "log_compute_over_memory",
    "log_time_over_launch",
    "pass_share",
    "log_weights_over_l2",
    "log_activations_over_l2",
    "log_routed",
    "is_bf16",
    "odd_tokens",
    "log_inter_over_hidden",
    "log_largest",
    "expert_share",
    "log_weights_per_expert",
    "wave_fill_down",
    "ungated",
};

enum { BUCKETS = 16 };
typedef struct load {
    double count[BUCKETS], tokens[BUCKETS]; /* experts in the bucket, routed tokens each */
    int used;
    double active, largest;
} load;

/* Tokens that pick at random: those awake have a mean and, as counts do, its root for a deviation. Three points of
 * equal moments stand for them. */
static void draw(double awake, double routed, load *l)
{
    double mean = fmax(1, routed / awake), apart = sqrt(3 * (mean - 1));
    l->count[0] = l->count[2] = awake / 6;
    l->count[1] = awake * 2 / 3;
    l->tokens[0] = fmax(1, mean - apart);
    l->tokens[1] = mean;
    l->tokens[2] = mean + apart;
    l->used = 3;
    l->active = awake;
    l->largest = l->tokens[2];
}

static void route(const ft_op *op, load *l)
{
    double experts = ft__experts_here(op), tokens = (double)op->u.moe.tokens,
           routed = fmax(1, tokens * (double)op->u.moe.topk / fmax(1, (double)op->u.moe.ep));
    if (op->u.moe.skew <= 0 && op->u.moe.drawn) {
        draw(ft__experts_awake(op), routed, l);
        return;
    }
    if (op->u.moe.skew <= 0) {
        double each = floor(routed / experts), more = routed - each * experts;
        l->count[0] = more, l->tokens[0] = each + 1;
        l->count[1] = experts - more, l->tokens[1] = each;
        l->used = each > 0 ? 2 : 1;
        l->active = each > 0 ? experts : more;
        l->largest = more > 0 ? each + 1 : each;
        return;
    }
    double skew = fabs(op->u.moe.skew - 1) < 1e-3 ? 1.001 : op->u.moe.skew, sum = 0;
    double top = fmax(FT_K_MOE_TOP_SHARE * tokens, FT_K_MOE_TOP_LEAST);
    double power = 1 - skew, at_top = pow(top, power), invert = 1 / power;
    l->used = BUCKETS;
    l->active = l->largest = 0;
    for (int i = 0; i < BUCKETS; i++) {
        double u = (i + 0.5) / BUCKETS;
        sum += l->tokens[i] = pow(1 + (at_top - 1) * u, invert);
    }
    /* No expert gets a token twice; what the heaviest cannot take goes to the next. */
    double share = experts / BUCKETS, left = 0;
    for (int i = BUCKETS - 1; i >= 0; i--) {
        double each = l->tokens[i] / sum * routed / share + left;
        left = fmax(0, each - tokens);
        l->tokens[i] = each - left;
    }
    for (int i = 0; i < BUCKETS; i++) {
        /* A bucket with less than one token each: that many of its experts get one. */
        l->count[i] = l->tokens[i] < 1 ? share * l->tokens[i] : share;
        l->tokens[i] = fmax(l->tokens[i], 1);
        l->active += l->count[i];
        l->largest = fmax(l->largest, l->tokens[i]);
    }
}

bool ft__moe_all_awake(const ft_op *op)
{
    double experts = ft__experts_here(op);
    load l;
    route(op, &l);
    return l.active >= experts * (1 - 1e-9) &&
           (double)op->u.moe.tokens * (double)op->u.moe.topk >= FT_K_MOE_AWAKE * (double)op->u.moe.experts;
}

typedef struct grouped {
    double ms, tiles, waves, pad;
    int bm, bn;
} grouped;

/* One grouped GEMM, [m_e, n] = [m_e, k] [k, n]: the tile that ends first. `striped`: all tiles' steps along k are dealt
 * out evenly over the multiprocessors, as Marlin does it: however few tiles there are, all work, and none waits for a
 * last wave. */
static grouped pick(const load *l, double n, double k, double sms, double rate, double feed, double e, bool striped,
                    const double *th)
{
    static const double heights[] = {16, 32, 64, 128, 256}, widths[] = {64, 128, 256};
    grouped best = {.ms = INFINITY};
    double rows = 0, prologue = th[PROLOGUE] * 2 / e, wave_ms = th[WAVE_US] * 1e-3;
    for (int b = 0; b < l->used; b++) rows += l->count[b] * l->tokens[b];
    for (int i = 0; i < 5; i++) {
        double bm = heights[i], blocks = 0;
        for (int b = 0; b < l->used; b++) blocks += l->count[b] * ceil(l->tokens[b] / bm);
        for (int j = 0; j < 3; j++) {
            double bn = widths[j], tiles = blocks * ceil(n / bn), ratio = tiles / sms;
            if (bm * bn > 32768) continue;
            double mma = 2 * bm * bn * (k + prologue) / (rate * (bm * bn < 8192 ? th[SHAPE] : 1)),
                   fed = (bm + bn) * e * k / feed;
            double waves = th[QUANTISATION] * ceil(ratio) + (1 - th[QUANTISATION]) * fmax(ratio, 1);
            double ms = striped ? ratio * fmax(mma, fed) + wave_ms : waves * (fmax(mma, fed) + wave_ms);
            if (ms < best.ms) best = (grouped){ms, tiles, ratio, rows / (blocks * bm), (int)bm, (int)bn};
        }
        if (bm >= 4 * l->largest) break;
    }
    return best;
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    double tokens = (double)op->u.moe.tokens, h = (double)op->u.moe.hidden, inter = (double)op->u.moe.inter;
    double routed = fmax(1, tokens * (double)op->u.moe.topk / fmax(1, (double)op->u.moe.ep)),
           experts = ft__experts_here(op), ups = op->u.moe.ungated ? 1 : 2;
    double e = ft_dtype_bytes(op->dtype), stored = ft__stored_bytes(op), sms = device->sms,
           peak = ft__peak_tflops(device, op->dtype) * 1e9;
    double rate = th[EC] * peak / sms,
           feed = fmax(th[FEED] * 2 / e * peak / sms, ft__gemm_least_feed(device->matrix_mhz));
    double memory_rate = th[EB] * device->memory_gbps * 1e6, l2_rate = th[L2_CLK] * sms * ft__running_mhz(device) * 1e3;
    load l;
    route(op, &l);
    bool striped = op->u.moe.backend == FT_MOE_MARLIN;
    grouped up = pick(&l, ups * inter, h, sms, rate, feed, e, striped, th),
            down = pick(&l, h, inter, sms, rate, feed, e, striped, th);
    double weights = l.active * h * inter * stored, each = h * inter * stored,
           activations = routed * (h + ups * inter) * 2;
    double held = th[WARM] * ft__resident(device, th[KEEP], (1 + ups) * weights + activations);
    double per_byte = (1 - held) / memory_rate + held / l2_rate;
    double compute = up.ms + down.ms;
    double slow = ft__power_slowdown(device, op->dtype, th[ENERGY], 2 * (1 + ups) * routed * h * inter / compute * 1e-9,
                                     compute * 1e3 / th[POWER_US]);
    double memory_up = (ups * weights + tokens * h * e + routed * ups * inter * 2) * per_byte;
    double memory_down = (weights + routed * inter * e + routed * h * 2) * per_byte;
    /* Gathering the rows, the activation between the products, weighing and adding up what comes back. */
    bool bare = op->engine == FT_ENGINE_BARE; /* rows arrive gathered and stay apart */
    double moved = 2 * ((bare ? 0 : 2 * tokens * h + 2 * routed * h) + (1 + ups) * routed * inter) +
                   (e < 2 ? routed * (h + inter) * (2 + e) : 0);
    double pass = moved / (th[PASS_EB] * device->memory_gbps * 1e6) *
                      (1 - FT_K_MOE_PASSES_HELD * ft__resident(device, th[KEEP], moved)) +
                  th[EXPERT_US] * 1e-3 * l.active;
    out->compute_ms = compute * slow;
    out->memory_ms = memory_up + memory_down;
    out->body_ms = ft__smooth_max(up.ms * slow, memory_up, th[SMOOTH]) +
                   ft__smooth_max(down.ms * slow, memory_down, th[SMOOTH]) + pass + (e < 2 ? th[QUANT_US] * 1e-3 : 0);
    out->tile_m = up.bm;
    out->tile_n = up.bn;
    out->split_k = 0;
    out->tiles = up.tiles + down.tiles;
    out->waves = up.waves;
    out->note = NULL;
    if (!want) return;
    float *f = out->feature;
    double l2 = device->l2_mib * 1048576;
    *f++ = ft__lg(tokens), *f++ = ft__lg(h), *f++ = ft__lg(inter), *f++ = (float)op->u.moe.topk, *f++ = ft__lg(experts);
    *f++ = (float)op->u.moe.skew, *f++ = ft__lg(routed / experts), *f++ = (float)(l.active / experts),
    *f++ = (float)up.pad;
    *f++ = (float)up.bm, *f++ = ft__lg(up.tiles), *f++ = ft__lg(up.waves),
    *f++ = (float)(striped ? 1 : up.waves / ceil(up.waves));
    *f++ = ft__lg(out->compute_ms / out->memory_ms), *f++ = ft__lg(out->body_ms * 1e3 / th[LAUNCH]);
    *f++ = (float)(pass / out->body_ms), *f++ = ft__lg((1 + ups) * weights / l2), *f++ = ft__lg(activations / l2),
    *f++ = ft__lg(routed);
    *f++ = (float)(op->dtype == FT_BF16), *f++ = ft__log2_divisor(op->u.moe.tokens, 8), *f++ = ft__lg(inter / h),
    *f++ = ft__lg(l.largest);
    *f++ = (float)(l.active * th[EXPERT_US] * 1e-3 / out->body_ms), *f++ = ft__lg(each / l2);
    *f++ = (float)(striped ? 1 : down.waves / ceil(down.waves)), *f++ = (float)op->u.moe.ungated;
}

const ft_family ft__moe_family = {
    .name = "moe",
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
