/* Attention with more than one query per sequence: prefill, training forward and backward, by tiled kernels that never
 * write the score matrix (FlashAttention-2, Dao 2023; FlashAttention-3, Shah et al. 2024; cuDNN, TensorRT-LLM).
 *
 * A CTA owns bq query rows of one head and walks the key columns its mask lets it see:
 *   mma   = 2 (D + Dv) / (ec * peak / SMs)           both products, per row and column
 *   soft  = me / (16 * clock)                        exp on the special-function units, me counts what surrounds it
 *   c     = bq * (max(mma, soft) + ov * min(mma, soft))
 *   tile  = columns * c + tile_us
 * Hopper's d = 64 sits on `soft`, d = 128 on `mma`: that is why 64 reaches half of the peak and 128 seven tenths.
 * Tiles are dealt to SMs. Equal ones fill waves, T = sum / SMs * (1 + q (ceil(w)/w - 1)) with w = tiles / SMs; causal
 * ones end within a tile of each other, T = max(sum / SMs + tail * longest, longest). Memory is hidden behind that but
 * for the first wave's, 1 / (1 + w) of the smaller. Backward: five products instead of two at their own efficiency, exp
 * once more, and passes over dO, O and an fp32 dQ by kernels before and behind it.
 *
 * Frameworks' kernels have one shape of tile, and what does not fill it is padded: a window of 49 tokens takes what 128
 * do, ViT's 197 what 256 do. In cuDNN's for Hopper keys that do not fill their tiles are also selected in every step,
 * `ragged` times the softmax; FlashAttention-2 has one such step (flash_fwd_kernel.h), cuDNN on Blackwell none. So
 * are the tiles that a causal mask cuts, and no others under it. Of engines' kernels the height is the one of 64, 128,
 * 256 that ends first.
 *
 * A serving engine's operator also splits the packed QKV, rotates it and writes the paged cache: a pass over
 * B Q (q H + 2 KV) D elements before the kernel, which for short prompts with many key-value heads takes twice as long
 * as the kernel itself. Its rows were taken with a warm L2. So engines are variants apart, and so is each engine: on
 * identical requests TensorRT-LLM and vLLM differ by 22 % at the median. "any" is their mixture, for requests that do
 * not say.
 *
 * Leaves out: dropout, biases, document masks; reloads of K and V that L2 does not catch; clusters. */
#include "kernel/attention.h"

#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/attention_walk.h"
#include "kernel/families.h"
#include "kernel/gemm_tiles.h"
#include "kernel/gemm_unaligned.h"
#include "kernel/kernel.h"
#include "kernel/power.h"
#include "kernel/power_constants.h"
#include "kernel/priors_constants.h"

enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EC,
    ME,
    OVERLAP,
    TILE_US,
    SMALL,
    EB,
    SMOOTH,
    Q_FULL,
    Q_CAUSAL,
    POWER_US,
    ENERGY,
    WARM,
    EC_BWD,
    ME_BWD,
    BWD_US,
    BWD_BYTES,
    PASS_CLK,
    PASS_Q,
    WAVE_US,
    KEEP,
    SYNC,
    L2_CLK,
    RAGGED,
    THETA_COUNT
};

static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_ATTENTION_LAUNCH_US,
    [GAP] = FT_K_PRIORS_ATTENTION_GAP_US,
    [EC] = FT_K_PRIORS_ATTENTION_COMPUTE_EFFICIENCY,
    [ME] = FT_K_PRIORS_ATTENTION_SOFTMAX_COST,
    [OVERLAP] = FT_K_PRIORS_ATTENTION_OVERLAP,
    [TILE_US] = FT_K_PRIORS_ATTENTION_TILE_US,
    [SMALL] = FT_K_PRIORS_ATTENTION_SMALL_TILE,
    [EB] = FT_K_PRIORS_ATTENTION_BANDWIDTH_EFFICIENCY,
    [SMOOTH] = FT_K_PRIORS_ATTENTION_SMOOTH,
    [Q_FULL] = FT_K_PRIORS_ATTENTION_WAVE_QUANTISATION,
    [Q_CAUSAL] = FT_K_PRIORS_ATTENTION_CAUSAL_QUANTISATION,
    [POWER_US] = FT_K_PRIORS_ATTENTION_POWER_US,
    [ENERGY] = FT_K_PRIORS_ATTENTION_ENERGY,
    [WARM] = FT_K_PRIORS_ATTENTION_WARM,
    [EC_BWD] = FT_K_PRIORS_ATTENTION_BACKWARD_EFFICIENCY,
    [ME_BWD] = FT_K_PRIORS_ATTENTION_BACKWARD_SOFTMAX,
    [BWD_US] = FT_K_PRIORS_ATTENTION_BACKWARD_US,
    [BWD_BYTES] = FT_K_PRIORS_ATTENTION_BACKWARD_PASSES,
    [PASS_CLK] = FT_K_PRIORS_ATTENTION_CACHE_PASS_BYTES_PER_CLOCK,
    [PASS_Q] = FT_K_PRIORS_ATTENTION_CACHE_PASS_QUERY,
    [WAVE_US] = FT_K_PRIORS_ATTENTION_WAVE_US,
    [KEEP] = FT_K_PRIORS_ATTENTION_L2_KEEPS,
    [L2_CLK] = FT_K_PRIORS_ATTENTION_L2_BYTES_PER_CLOCK,
    [SYNC] = FT_K_PRIORS_ATTENTION_MMA_SYNC_EFFICIENCY,
    [RAGGED] = FT_K_PRIORS_ATTENTION_RAGGED,
};

enum { FORWARD, BACKWARD, FORWARD_FP8, TRTLLM, VLLM, SGLANG, TRTLLM_FP8, VLLM_FP8, ANY, VARIANTS };
static const char *const variant_names[VARIANTS] = {"fwd",    "bwd",        "fwd_fp8",  "trtllm", "vllm",
                                                    "sglang", "trtllm_fp8", "vllm_fp8", "any"};

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_ATTENTION || (op->u.attention.q_len == 1 && op->u.attention.kv_len > 1)) return -1;
    bool low = ft_dtype_bytes(ft__attention_math(op)) < 2;
    if (op->pass != FT_PASS_FWD) return BACKWARD;
    switch (op->engine) {
    case FT_ENGINE_TRTLLM: return low ? TRTLLM_FP8 : TRTLLM;
    case FT_ENGINE_VLLM: return low ? VLLM_FP8 : VLLM;
    case FT_ENGINE_SGLANG: return low ? VLLM_FP8 : SGLANG;
    case FT_ENGINE_ANY: return low ? VLLM_FP8 : ANY;
    default: return low ? FORWARD_FP8 : FORWARD;
    }
}

static const char *variant_name(int v) { return variant_names[v]; }

static int variant_fallback(int v)
{
    static const int next[VARIANTS] = {-1, FORWARD, FORWARD, VLLM, FORWARD, VLLM, VLLM_FP8, VLLM, VLLM};
    return next[v];
}

static const char *const feature_names[] = {
    "log_batch",
    "log_heads",
    "log_kv_heads",
    "log_q",
    "log_kv",
    "head_dim",
    "group",
    "causal",
    "window",
    "is_bf16",
    "query_fp8",
    "log_time_over_launch",
    "log_compute_over_memory",
    "log_mma_over_softmax",
    "log_tiles",
    "log_waves",
    "wave_fill",
    "tile_q",
    "longest_share",
    "pass_share",
    "log_bytes_over_l2",
    "log_kv_over_l2",
    "odd_q",
    "odd_heads",
    "odd_head_dim",
    "q_mod_128",
    "log_tokens",
    "backward_alone",
    "log_pairs",
    "log_q_heads",
    "log_kv_bytes_per_token",
    "log_rows",
};

/* FlashAttention-2 is compiled for heads in steps of 32 (static_switch.h), the others in steps of 64. */
static double padded(const ft_device *device, const ft_op *op, double d)
{
    bool second = ft__attention_of_frameworks(op) && device->matrix_issue == FT_ISSUE_MMA;
    return second ? 32 * ceil(d / 32) : ft__head_padded(d);
}

/* The operator's sizes; bytes of an element, and of one of the cache. */
typedef struct sizes {
    double batch, h, kvh, q, kv, d, dv, e, kv_e;
} sizes;

static sizes sizes_of(const ft_op *op)
{
    double d = (double)op->u.attention.head_dim;
    return (sizes){.batch = (double)op->u.attention.batch,
                   .h = (double)op->u.attention.heads,
                   .kvh = (double)op->u.attention.kv_heads,
                   .q = (double)op->u.attention.q_len,
                   .kv = (double)op->u.attention.kv_len,
                   .d = d,
                   .dv = op->u.attention.v_dim ? (double)op->u.attention.v_dim : d,
                   .e = ft_dtype_bytes(op->dtype),
                   .kv_e = ft_dtype_bytes(op->kv_dtype)};
}

typedef struct times {
    double bytes, cache_bytes, compute_ms, memory_ms, pass_ms, mma_over_soft;
} times;

static void fill_features(const ft_device *device, const ft_op *op, const times *x, double launch_us,
                          const ft_attention_walk *w, ft_physics *out)
{
    const sizes s = sizes_of(op);
    float *f = out->feature;
    double l2 = device->l2_mib * 1048576;
    *f++ = ft__lg(s.batch), *f++ = ft__lg(s.h), *f++ = ft__lg(s.kvh), *f++ = ft__lg(s.q), *f++ = ft__lg(s.kv),
    *f++ = (float)s.d;
    *f++ = (float)(s.h / s.kvh), *f++ = (float)op->u.attention.causal,
    *f++ = ft__lg(1 + (double)op->u.attention.window);
    *f++ = (float)(op->dtype == FT_BF16), *f++ = (float)(s.e < 2);
    *f++ = ft__lg(out->body_ms * 1e3 / launch_us), *f++ = ft__lg(x->compute_ms / x->memory_ms),
    *f++ = ft__lg(x->mma_over_soft);
    *f++ = ft__lg(w->tiles), *f++ = ft__lg(w->waves), *f++ = (float)(w->waves / ceil(w->waves)),
    *f++ = (float)w->height;
    *f++ = (float)w->longest_share, *f++ = (float)(x->pass_ms / out->body_ms), *f++ = ft__lg(x->bytes / l2);
    *f++ = ft__lg(x->cache_bytes / l2), *f++ = ft__log2_divisor(op->u.attention.q_len, 8),
    *f++ = ft__log2_divisor(op->u.attention.heads, 8);
    *f++ = ft__log2_divisor(op->u.attention.head_dim, 8), *f++ = (float)fmod(s.q, 128), *f++ = ft__lg(s.batch * s.q);
    *f++ = (float)(op->pass == FT_PASS_BWD), *f++ = ft__lg(ft__op_flops(op)), *f++ = ft__lg(s.q * s.h),
    *f++ = ft__lg(s.kvh * s.d);
    *f++ = ft__lg(s.q * s.h / s.kvh);
}

/* -- what a cell and a tile cost, there and back ------------------------------------------------- */

/* One SM: how fast it multiplies and takes exponentials. */
typedef struct pace {
    double cap, rate, width, special;
    double share, reach; /* of warp-level matrix units, against asynchronous ones */
} pace;

/* Four bytes an element are PyTorch's memory-efficient kernels alone, CUTLASS's, which multiply on matrix units where
 * these take tf32, whatever the request allows products: every number in two parts and three warp-level products for
 * one (gemm_kernel_utils.h, DefaultGemmType of float from sm_80 on: OpMultiplyAddFastF32). Vector units elsewhere. An
 * SM's flop per ms; 0: not such kernels. */
static double three_products(const ft_device *device, const ft_op *op)
{
    double tf32 = device->vendor == FT_VENDOR_NVIDIA ? device->peak_tflops[FT_TF32] : 0;
    if (ft_dtype_bytes(ft__attention_math(op)) != 4 || !ft__attention_of_frameworks(op) || !(tf32 > 0)) return 0;
    return FT_K_ATTENTION_THREE_PRODUCTS * fmin(tf32 * 1e9 / device->sms, ft__mma_sync_rate(device, 4));
}

static pace pace_of(const ft_device *device, const ft_op *op, const sizes *s, const double *th)
{
    ft_dtype math = ft__attention_math(op);
    double runs = ft__running_mhz(device) / device->boost_mhz, peak = ft__peak_tflops(device, math) * runs * 1e9;
    double three = three_products(device, op);
    /* Warp-level mma.sync (Ampere, Ada, GeForce Blackwell) leaves more of the peak unused than Hopper's and datacentre
     * Blackwell's asynchronous units; but its small CTAs share an SM and hide each other's start and end. */
    bool async = device->uncapped_fma_per_clk_sm >= 2048;
    return (pace){.cap = ft__matrix_cap(device, math),
                  .rate = three > 0 ? three * runs : peak / device->sms,
                  .width = padded(device, op, s->d) + padded(device, op, s->dv),
                  .special = 1 / ft__exp_per_ms_sm(device),
                  .share = async ? 1 : fmax(FT_K_ATTENTION_SYNC_LEAST, device->uncapped_fma_per_clk_sm / 2048),
                  .reach = async || three > 0 ? 1 : th[SYNC]};
}

static ft_attention_costs forward_costs(const ft_device *device, const ft_op *op, const double *th, const pace *p,
                                        double *mma_over_soft)
{
    double mma = 2 * p->width / (ft__capped_efficiency(th[EC] * p->reach, p->cap) * p->rate);
    double soft = th[ME] * p->special;
    ft_attention_tile tile = ft__attention_tile(device, op, false);
    bool selects = device->matrix_issue == FT_ISSUE_WGMMA && ft__attention_of_frameworks(op) && !op->u.attention.causal;
    if (selects && fmod((double)op->u.attention.kv_len, tile.step) > 0) soft *= th[RAGGED];
    /* Where a tile's first loads come through registers, nothing hides them. */
    double start = device->matrix_issue == FT_ISSUE_MFMA ? FT_K_ATTENTION_MFMA_START : p->share;
    *mma_over_soft = mma / soft;
    return (ft_attention_costs){.cell_ms = fmax(mma, soft) + th[OVERLAP] * fmin(mma, soft),
                                .small = th[SMALL],
                                .tile_ms = start * th[TILE_US] * 1e-3,
                                .wave_ms = p->share * th[WAVE_US] * 1e-3,
                                .q_full = th[Q_FULL],
                                .q_causal = th[Q_CAUSAL],
                                .diagonal = ft__attention_of_frameworks(op) ? th[RAGGED] - 1 : 0.5,
                                .tile = tile};
}

/* Five products instead of two, at their own efficiency. */
static ft_attention_costs back_costs(const ft_device *device, const ft_op *op, const double *th, const pace *p,
                                     ft_attention_costs c)
{
    double efficiency = ft__capped_efficiency(th[EC_BWD] * p->reach, pow(p->cap, FT_K_ATTENTION_CAPPED_BACK));
    c.cell_ms = 5 * p->width / (efficiency * p->rate) + th[ME_BWD] * p->special;
    c.tile_ms *= FT_K_ATTENTION_BACK_START;
    c.tile = ft__attention_tile(device, op, true);
    return c;
}

/* Kernels of their own beside the one that goes back: O, dO for the row sums and zeros for dQ before, its cast
 * afterwards. Grouped heads write dK and dV per query head and add them up. */
static double beside_back_bytes(const sizes *s)
{
    double grouped = s->h > s->kvh ? s->batch * s->h * s->kv * (s->d + s->dv) * 2 * s->e : 0;
    return s->batch * s->h * s->q * (2 * s->dv * s->e + s->d * (8 + s->e)) + grouped;
}

/* Arithmetic hides what is read for the tiles to come. The first wave's has nothing to hide behind. */
static double beside(const ft_op *op, double compute, double memory, double smooth, double waves)
{
    double alone = ft__attention_of_frameworks(op) ? fmin(compute, memory) / (1 + waves) : 0;
    return ft__smooth_max(compute, memory, smooth) + alone;
}

/* What a byte takes where so many are touched: some of them wait in L2. */
static double byte_ms(const ft_device *device, const double *th, double touched)
{
    double resident = th[WARM] * ft__resident(device, th[KEEP], touched);
    double l2_rate = th[L2_CLK] * device->sms * ft__running_mhz(device) * 1e3;
    return (1 - resident) / (th[EB] * (device->memory_gbps * 1e6)) + resident / l2_rate;
}

/* An engine's pass before the kernel: the packed QKV split, rotated, written into the paged cache. */
static double engine_pass_ms(const ft_device *device, const double *th, const sizes *s, double bytes)
{
    double moved = s->batch * s->q * (th[PASS_Q] * s->h * s->d + s->kvh * (s->d + s->dv)) * (2 + s->kv_e);
    return moved *
           (byte_ms(device, th, moved + bytes) + 1 / (th[PASS_CLK] * device->sms * ft__running_mhz(device) * 1e3));
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    const sizes s = sizes_of(op);
    const pace p = pace_of(device, op, &s, th);
    const bool forward = op->pass != FT_PASS_BWD, backward = op->pass != FT_PASS_FWD;
    double mma_over_soft;
    ft_attention_costs cost = forward_costs(device, op, th, &p, &mma_over_soft);
    ft_attention_walk w = ft__attention_walk(device, op, &cost), b = {.ms = 0};
    double queries = s.batch * s.h * s.q, cache_bytes = s.batch * s.kvh * s.kv * (s.d + s.dv) * s.kv_e;
    double bytes = queries * (s.d * s.e + s.dv * fmax(s.e, 2)) + cache_bytes;
    double back_bytes = 0, pass_bytes = 0;
    if (backward) {
        cost = back_costs(device, op, th, &p, cost);
        b = ft__attention_walk(device, op, &cost);
        back_bytes = 2 * bytes + queries * s.d * 4; /* Q, K, V, dO in and dK, dV out, dQ summed in fp32 */
        pass_bytes = th[BWD_BYTES] * beside_back_bytes(&s);
    }
    double compute = forward ? w.ms : 0, back = b.ms, per_byte = byte_ms(device, th, bytes);
    double memory_ms = (forward ? bytes : 0) * per_byte, back_ms = back_bytes * per_byte;
    double pass_ms = pass_bytes * per_byte;
    if (op->engine != FT_ENGINE_BARE && !backward) pass_ms += engine_pass_ms(device, th, &s, bytes);
    /* Heads that are padded draw for what runs, the zeros in them less. */
    double padding = (padded(device, op, s.d) + padded(device, op, s.dv)) / (s.d + s.dv) - 1;
    double runs = (1 + FT_K_POWER_ZEROS * padding) * ft__op_flops(op);
    double slow = ft__power_slowdown(device, ft__attention_math(op), th[ENERGY], runs / (compute + back) * 1e-9,
                                     (compute + back) * 1e3 / th[POWER_US]);
    compute *= slow, back *= slow;
    out->compute_ms = compute + back;
    out->memory_ms = memory_ms + back_ms + pass_ms;
    out->body_ms = pass_ms;
    if (forward) out->body_ms += beside(op, compute, memory_ms, th[SMOOTH], w.waves);
    if (backward) out->body_ms += beside(op, back, back_ms, th[SMOOTH], b.waves) + th[BWD_US] * 1e-3;
    if (!forward) w = b;
    out->tile_m = w.height;
    out->tile_n = (int)w.step;
    out->split_k = 0;
    out->tiles = w.tiles;
    out->waves = w.waves;
    out->note = NULL;
    times x = {bytes, cache_bytes, compute + back, memory_ms + back_ms, pass_ms, mma_over_soft};
    if (want) fill_features(device, op, &x, th[LAUNCH], &w, out);
}

const ft_family ft__attention_family = {
    .name = "attention",
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
