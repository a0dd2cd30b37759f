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

#include <string.h>

#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/gemm_tiles.h"
#include "kernel/kernel.h"
#include "kernel/power.h"
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

static const double heights[] = {64, 128, 256};

/* What a block of threads takes at a time: rows of the side it owns, steps of the other, which it walks. */
typedef struct shape {
    int lowest, highest; /* of `heights` */
    double step;
    bool owns_keys;
} shape;

/* Frameworks' kernels, as their names and sources say: cuDNN 9.19 for Hopper has blocks of 128 queries that walk 128
 * keys at a time, FlashAttention-2 128 and, with heads wider than 64, 64 (flash_fwd_launch_template.h); backward both
 * own 128 keys and walk 64 queries. What is shorter is padded. Of engines' kernels the measured lengths do not say. */
static bool frameworks(const ft_op *op) { return op->engine == FT_ENGINE_BARE || op->pass != FT_PASS_FWD; }

static shape shape_of(const ft_device *device, const ft_op *op, bool back)
{
    enum { NARROW = 64, WIDE = 128 };
    if (!frameworks(op)) return (shape){0, 2, 64, false};
    if (back) return (shape){1, 1, 64, true};
    bool async = device->matrix_issue == FT_ISSUE_WGMMA || device->matrix_issue == FT_ISSUE_TCGEN05;
    return (shape){1, 1, op->u.attention.head_dim <= (async ? WIDE : NARROW) ? 128 : 64, false};
}

/* FlashAttention-2 is compiled for heads in steps of 32 (static_switch.h), the others in steps of 64. */
static double padded(const ft_device *device, const ft_op *op, double d)
{
    bool second = frameworks(op) && device->matrix_issue == FT_ISSUE_MMA;
    return second ? 32 * ceil(d / 32) : ft__head_padded(d);
}

typedef struct walk {
    double ms, tiles, waves, longest_share;
    int height;
    double step;
} walk;

typedef struct costs {
    double cell_ms; /* a row and a column in one SM */
    double small, tile_ms, wave_ms, q_full, q_causal;
    double diagonal; /* more of the steps that a causal mask cuts */
    shape tile;
} costs;

/* The tile height that ends first. `group` query heads that share a key-value head may stand in one tile. */
static void schedule(const ft_op *op, double sms, const costs *c, double group, walk *best)
{
    double rows = (double)op->u.attention.q_len, columns = (double)op->u.attention.kv_len;
    double q = (c->tile.owns_keys ? columns : rows) * group, kv = c->tile.owns_keys ? rows : columns;
    double heads = (double)(op->u.attention.batch * op->u.attention.heads) / group,
           window = (double)op->u.attention.window;
    bool causal = op->u.attention.causal;
    for (int i = c->tile.lowest; i <= c->tile.highest; i++) {
        double bq = heights[i], bk = c->tile.step, n = ceil(q / bq), all = bk * ceil(kv / bk), seen = bq / group;
        double first = fmax(0, kv - q / group), sum = n * all, longest = all;
        if (causal) sum = fmin(sum, n * first + seen * n * (n + 1) / 2 + n * bk * c->diagonal);
        if (window > 0) {
            longest = fmin(longest, bk * ceil((window + seen) / bk));
            sum = fmin(sum, n * longest);
        }
        double tiles = heads * n, cost = c->cell_ms * bq / (i == 0 ? c->small : 1), load = tiles / sms;
        double work = tiles * c->tile_ms + heads * sum * cost, last = longest * cost + c->tile_ms;
        /* Few rows against a long cache: the columns are split over the idle SMs. */
        if (kv > 2 * q && tiles < sms && !c->tile.owns_keys)
            last /= fmax(1, fmin(floor(sms / tiles), kv / FT_K_ATTENTION_SPLIT_KEYS));
        /* Equal tiles fill whole waves; unequal ones end within a tile of each other (a share of Graham's bound). */
        double even = work / sms, up = ceil(load);
        if (load > 1) even = causal ? even + c->q_causal * last : even * (1 + c->q_full * (up / load - 1));
        double ms = fmax(even, last) + up * c->wave_ms;
        if (ms < best->ms) *best = (walk){ms, tiles, load, last / ms, (int)bq, bk};
    }
}

/* FlashAttention-3 packs the query heads of a group into a tile; FlashAttention-2 does when there is one query. */
static bool packs(const ft_device *device, const ft_op *op)
{
    if (op->pass != FT_PASS_FWD || op->u.attention.heads == op->u.attention.kv_heads) return false;
    if (op->engine == FT_ENGINE_BARE || op->engine == FT_ENGINE_TRTLLM) return false;
    return op->u.attention.q_len == 1 || device->matrix_issue == FT_ISSUE_WGMMA;
}

static walk walk_of(const ft_device *device, const ft_op *op, const costs *c)
{
    walk best = {.ms = INFINITY};
    schedule(op, device->sms, c, 1, &best);
    if (packs(device, op))
        schedule(op, device->sms, c, (double)(op->u.attention.heads / op->u.attention.kv_heads), &best);
    return best;
}

typedef struct times {
    double bytes, cache_bytes, compute_ms, memory_ms, pass_ms, mma_over_soft;
} times;

static void fill_features(const ft_device *device, const ft_op *op, const times *x, double launch_us, const walk *w,
                          ft_physics *out)
{
    double batch = (double)op->u.attention.batch, h = (double)op->u.attention.heads,
           kvh = (double)op->u.attention.kv_heads, e = ft_dtype_bytes(op->dtype);
    double q = (double)op->u.attention.q_len, kv = (double)op->u.attention.kv_len, d = (double)op->u.attention.head_dim;
    float *f = out->feature;
    double l2 = device->l2_mib * 1048576;
    *f++ = ft__lg(batch), *f++ = ft__lg(h), *f++ = ft__lg(kvh), *f++ = ft__lg(q), *f++ = ft__lg(kv), *f++ = (float)d;
    *f++ = (float)(h / kvh), *f++ = (float)op->u.attention.causal, *f++ = ft__lg(1 + (double)op->u.attention.window);
    *f++ = (float)(op->dtype == FT_BF16), *f++ = (float)(e < 2);
    *f++ = ft__lg(out->body_ms * 1e3 / launch_us), *f++ = ft__lg(x->compute_ms / x->memory_ms),
    *f++ = ft__lg(x->mma_over_soft);
    *f++ = ft__lg(w->tiles), *f++ = ft__lg(w->waves), *f++ = (float)(w->waves / ceil(w->waves)),
    *f++ = (float)w->height;
    *f++ = (float)w->longest_share, *f++ = (float)(x->pass_ms / out->body_ms), *f++ = ft__lg(x->bytes / l2);
    *f++ = ft__lg(x->cache_bytes / l2), *f++ = ft__log2_divisor(op->u.attention.q_len, 8),
    *f++ = ft__log2_divisor(op->u.attention.heads, 8);
    *f++ = ft__log2_divisor(op->u.attention.head_dim, 8), *f++ = (float)fmod(q, 128), *f++ = ft__lg(batch * q);
    *f++ = (float)(op->pass == FT_PASS_BWD), *f++ = ft__lg(ft__op_flops(op)), *f++ = ft__lg(q * h),
    *f++ = ft__lg(kvh * d);
    *f++ = ft__lg(q * h / kvh);
}

/* Arithmetic hides what is read for the tiles to come. The first wave's has nothing to hide behind. */
static double beside(const ft_op *op, double compute, double memory, double smooth, double waves)
{
    double alone = frameworks(op) ? fmin(compute, memory) / (1 + waves) : 0;
    return ft__smooth_max(compute, memory, smooth) + alone;
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    double batch = (double)op->u.attention.batch, h = (double)op->u.attention.heads,
           kvh = (double)op->u.attention.kv_heads;
    double q = (double)op->u.attention.q_len, kv = (double)op->u.attention.kv_len, d = (double)op->u.attention.head_dim;
    double dv = op->u.attention.v_dim ? (double)op->u.attention.v_dim : d;
    ft_dtype math = ft__attention_math(op);
    double e = ft_dtype_bytes(op->dtype), kv_e = ft_dtype_bytes(op->kv_dtype), out_e = fmax(e, 2);
    double cap = ft__matrix_cap(device, math), runs = ft__running_mhz(device) / device->boost_mhz;
    double sms = device->sms, peak = ft__peak_tflops(device, math) * runs * 1e9, rate = peak / sms;
    double width = padded(device, op, d) + padded(device, op, dv), special = 1 / ft__exp_per_ms_sm(device);
    double bandwidth = device->memory_gbps * 1e6;
    /* Warp-level mma.sync (Ampere, Ada, GeForce Blackwell) leaves more of the peak unused than Hopper's and datacentre
     * Blackwell's asynchronous units; but its small CTAs share an SM and hide each other's start and end. */
    bool async = device->uncapped_fma_per_clk_sm >= 2048;
    double share = async ? 1 : fmax(FT_K_ATTENTION_SYNC_LEAST, device->uncapped_fma_per_clk_sm / 2048),
           reach = async ? 1 : th[SYNC];
    /* Where a tile's first loads come through registers, nothing hides them. */
    double start = device->matrix_issue == FT_ISSUE_MFMA ? FT_K_ATTENTION_MFMA_START : share;
    double mma = 2 * width / (ft__capped_efficiency(th[EC] * reach, cap) * rate), soft = th[ME] * special;
    shape tile = shape_of(device, op, false);
    bool selects = device->matrix_issue == FT_ISSUE_WGMMA && frameworks(op) && !op->u.attention.causal;
    if (selects && fmod(kv, tile.step) > 0) soft *= th[RAGGED];
    double c = fmax(mma, soft) + th[OVERLAP] * fmin(mma, soft);
    costs cost = {c,
                  th[SMALL],
                  start * th[TILE_US] * 1e-3,
                  share * th[WAVE_US] * 1e-3,
                  th[Q_FULL],
                  th[Q_CAUSAL],
                  frameworks(op) ? th[RAGGED] - 1 : 0.5,
                  tile};
    walk w = walk_of(device, op, &cost);
    double queries = batch * h * q, keys = batch * kvh * kv;
    double bytes = queries * (d * e + dv * out_e) + keys * (d + dv) * kv_e;
    double compute = op->pass == FT_PASS_BWD ? 0 : w.ms, memory = op->pass == FT_PASS_BWD ? 0 : bytes;
    double back = 0, back_bytes = 0, passes = 0, back_waves = 0;
    if (op->pass != FT_PASS_FWD) {
        cost.cell_ms = 5 * width /
                           (ft__capped_efficiency(th[EC_BWD] * reach, pow(cap, FT_K_ATTENTION_CAPPED_BACK)) * rate) +
                       th[ME_BWD] * special;
        cost.tile_ms *= FT_K_ATTENTION_BACK_START;
        cost.tile = shape_of(device, op, true);
        walk b = walk_of(device, op, &cost);
        back = b.ms, back_waves = b.waves;
        /* Q, K, V, dO in and dK, dV out, dQ summed in fp32. Kernels of their own: O, dO for the row sums and zeros for
         * dQ before, its cast afterwards. Grouped heads write dK and dV per query head and add them up. */
        double grouped = h > kvh ? batch * h * kv * (d + dv) * 2 * e : 0;
        back_bytes = 2 * bytes + queries * d * 4;
        passes = th[BWD_BYTES] * (queries * (2 * dv * e + d * (8 + e)) + grouped);
        if (op->pass == FT_PASS_BWD) w = b;
    }
    double l2_rate = th[L2_CLK] * sms * ft__running_mhz(device) * 1e3, memory_rate = th[EB] * bandwidth;
    double resident = th[WARM] * ft__resident(device, th[KEEP], bytes);
    double per_byte = (1 - resident) / memory_rate + resident / l2_rate;
    double memory_ms = memory * per_byte, back_ms = back_bytes * per_byte;
    double slow = ft__power_slowdown(device, math, th[ENERGY], ft__op_flops(op) / (compute + back) * 1e-9,
                                     (compute + back) * 1e3 / th[POWER_US]);
    compute *= slow, back *= slow;
    double pass_ms = passes * per_byte;
    bool engine = op->engine != FT_ENGINE_BARE && op->pass == FT_PASS_FWD;
    if (engine) {
        double moved = batch * q * (th[PASS_Q] * h * d + kvh * (d + dv)) * (2 + kv_e);
        double held = th[WARM] * ft__resident(device, th[KEEP], moved + bytes);
        pass_ms += moved * ((1 - held) / memory_rate + held / l2_rate +
                            1 / (th[PASS_CLK] * sms * ft__running_mhz(device) * 1e3));
    }
    out->compute_ms = compute + back;
    out->memory_ms = memory_ms + back_ms + pass_ms;
    out->body_ms = pass_ms;
    if (op->pass != FT_PASS_BWD) out->body_ms += beside(op, compute, memory_ms, th[SMOOTH], w.waves);
    if (op->pass != FT_PASS_FWD) out->body_ms += beside(op, back, back_ms, th[SMOOTH], back_waves) + th[BWD_US] * 1e-3;
    out->tile_m = w.height;
    out->tile_n = (int)w.step;
    out->split_k = 0;
    out->tiles = w.tiles;
    out->waves = w.waves;
    out->note = NULL;
    if (want)
        fill_features(device, op,
                      &(times){bytes, keys * (d + dv) * kv_e, compute + back, memory_ms + back_ms, pass_ms, mma / soft},
                      th[LAUNCH], &w, out);
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
