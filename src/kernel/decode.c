/* Attention of one query per sequence against a cache: decoding.
 *
 * Flash-decoding (Dao, Haziza, Massa, Sizov 2023): a CTA takes one key-value head of one sequence and a share of its
 * keys; the query heads of the group stand in its tile, padded to 16 rows; a second pass joins partial results.
 *   memory  bytes of K and V over the bandwidth, less what a warm L2 holds
 *   stream  ceil(tasks / SMs) * (tile_us + keys/split * (D + Dv) bytes / (clk bytes per clock))     one SM's own pace
 *   mma     2 * pad16(group) * keys * (D + Dv) / (ec * peak)
 *   T       smooth max of memory and max(stream, mma), plus split_us and the traffic of the partial results
 * and the split is the power of two that ends first, never under 64 keys a part. A CTA's pace is what holds short
 * caches and few sequences, bandwidth what holds the rest.
 *
 * Serving engines write the new key and value into the paged cache first: a launch, no traffic to speak of. They are
 * variants apart from the bare kernel and from each other: on identical requests vLLM and TensorRT-LLM differ by
 * 17 to 20 % at the median on Hopper, either way. "any" is their mixture, for requests that do not say.
 *
 * On AMD's units engines' kernels hold a third of the bandwidth, and no more where the cache behind it has the keys.
 *
 * Leaves out: speculative decoding (more queries: attention.c), page sizes, sequences of unequal length. */
#include "kernel/attention.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/gemm_tiles.h"
#include "kernel/kernel.h"
#include "kernel/priors_constants.h"

enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EB,
    CLK,
    TILE_US,
    SPLIT_US,
    EC,
    WARM,
    KEEP,
    L2_CLK,
    SMOOTH,
    QUANTISATION,
    JOIN,
    GROUP_US,
    HEAD_US,
    ALONE,
    SWITCH,
    THETA_COUNT
};

static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_DECODE_LAUNCH_US,
    [GAP] = FT_K_PRIORS_DECODE_GAP_US,
    [EB] = FT_K_PRIORS_DECODE_BANDWIDTH_EFFICIENCY,
    [CLK] = FT_K_PRIORS_DECODE_STREAM_BYTES_PER_CLOCK,
    [TILE_US] = FT_K_PRIORS_DECODE_TILE_US,
    [SPLIT_US] = FT_K_PRIORS_DECODE_SPLIT_US,
    [EC] = FT_K_PRIORS_DECODE_COMPUTE_EFFICIENCY,
    [WARM] = FT_K_PRIORS_DECODE_WARM,
    [KEEP] = FT_K_PRIORS_DECODE_L2_KEEPS,
    [L2_CLK] = FT_K_PRIORS_DECODE_L2_BYTES_PER_CLOCK,
    [SMOOTH] = FT_K_PRIORS_DECODE_SMOOTH,
    [QUANTISATION] = FT_K_PRIORS_DECODE_WAVE_QUANTISATION,
    [JOIN] = FT_K_PRIORS_DECODE_JOIN_TRAFFIC,
    [GROUP_US] = FT_K_PRIORS_DECODE_GROUP_TILE_US,
    [HEAD_US] = FT_K_PRIORS_DECODE_HEAD_US_PER_WAVE,
    [ALONE] = FT_K_PRIORS_DECODE_LONE_HEAD_RATE,
    [SWITCH] = FT_K_PRIORS_DECODE_BLACKWELL_TILE,
};

enum { BARE, TRTLLM, VLLM, SGLANG, BARE_FP8, TRTLLM_FP8, VLLM_FP8, ANY, VARIANTS };
static const char *const variant_names[VARIANTS] = {"bare",     "trtllm",     "vllm",     "sglang",
                                                    "bare_fp8", "trtllm_fp8", "vllm_fp8", "any"};

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_ATTENTION || op->u.attention.q_len != 1 || op->u.attention.kv_len == 1 ||
        op->pass != FT_PASS_FWD)
        return -1;
    bool low = ft_dtype_bytes(ft__attention_math(op)) < 2;
    switch (op->engine) {
    case FT_ENGINE_TRTLLM: return low ? TRTLLM_FP8 : TRTLLM;
    case FT_ENGINE_VLLM: return low ? VLLM_FP8 : VLLM;
    case FT_ENGINE_SGLANG: return low ? VLLM_FP8 : SGLANG;
    case FT_ENGINE_ANY: return low ? VLLM_FP8 : ANY;
    default: return low ? BARE_FP8 : BARE;
    }
}

static const char *variant_name(int v) { return variant_names[v]; }

static int variant_fallback(int v)
{
    static const int next[VARIANTS] = {-1, VLLM, BARE, VLLM, BARE, VLLM_FP8, VLLM, VLLM};
    return next[v];
}

static const char *const feature_names[] = {
    "log_batch",
    "log_heads",
    "log_kv_heads",
    "log_kv",
    "head_dim",
    "group",
    "is_bf16",
    "window",
    "log_time_over_launch",
    "log_stream_over_memory",
    "log_mma_over_memory",
    "log_tasks",
    "log_waves",
    "wave_fill",
    "log_split",
    "log_bytes_over_l2",
    "log_keys_per_task",
    "log_cta_fill",
    "odd_heads",
    "odd_group",
    "log_batch_kv_heads",
    "log_batch_heads",
    "log_bytes",
    "join_share",
    "alone",
};

typedef struct plan {
    double ms, stream_ms, join_ms, tasks, waves;
    int split;
} plan;

/* What a launch has to do, and how fast a device does it. */
typedef struct job {
    double batch, h, kvh, kv, d, dv, group;
    double pairs, rows; /* walks over keys, and rows of the matrix units' tiles in each */
    double bytes, l2_rate, memory_ms, mma_ms;
    bool alone; /* every query head walks the keys by itself */
} job;

static job job_of(const ft_device *device, const ft_op *op, const double *th)
{
    double h = (double)op->u.attention.heads, kvh = (double)op->u.attention.kv_heads;
    double kv = (double)op->u.attention.kv_len, window = (double)op->u.attention.window;
    job j = {.batch = (double)op->u.attention.batch, .h = h, .kvh = kvh, .group = h / kvh};
    j.d = (double)op->u.attention.head_dim;
    j.dv = op->u.attention.v_dim ? (double)op->u.attention.v_dim : j.d;
    j.kv = window > 0 ? fmin(kv, window) : kv;
    j.rows = 16 * ceil(j.group / 16);
    j.pairs = j.batch * kvh;
    double e = ft_dtype_bytes(op->dtype), kv_e = ft_dtype_bytes(op->kv_dtype), clock = ft__running_mhz(device) * 1e3;
    j.bytes = j.pairs * j.kv * (j.d + j.dv) * kv_e + j.batch * h * (j.d * e + j.dv * 2);
    j.l2_rate = th[L2_CLK] * device->sms * clock;
    double memory_rate = th[EB] * device->memory_gbps * 1e6;
    double resident = th[WARM] * ft__resident(device, th[KEEP], j.bytes);
    bool engine = op->engine != FT_ENGINE_BARE; /* whose kernels were timed there */
    if (engine && device->matrix_issue == FT_ISSUE_MFMA) memory_rate *= FT_K_ATTENTION_DECODE_MFMA, resident = 0;
    j.memory_ms = j.bytes * ((1 - resident) / memory_rate + resident / j.l2_rate);
    j.mma_ms = 2 * j.pairs * j.rows * j.kv * (j.d + j.dv) /
               (th[EC] * ft__peak_tflops(device, ft__attention_math(op)) * 1e9);
    /* TensorRT-LLM has no tile for so many query heads to a key-value head: every query head then walks the keys
     * by itself, through L2. */
    j.alone = op->engine == FT_ENGINE_TRTLLM && j.group > FT_K_ATTENTION_TRTLLM_GROUP;
    if (j.alone) {
        j.rows = 16;
        j.pairs = j.batch * h;
        j.mma_ms = fmax(j.mma_ms, j.pairs * j.kv * (j.d + j.dv) * kv_e / (th[ALONE] * j.l2_rate));
    }
    return j;
}

/* The split of the keys that ends first. */
static plan plan_of(const ft_device *device, const ft_op *op, const double *th, const job *j)
{
    double sms = device->sms, clock = ft__running_mhz(device) * 1e3;
    /* One SM's pace; parts whose bandwidth would outrun it (Blackwell: 27 bytes per clock and SM) keep up. */
    double pace = th[CLK] * clock * fmax(1, device->memory_gbps * 1e6 / (sms * clock * FT_K_ATTENTION_DECODE_STREAM));
    double per_key = (ft__head_padded(j->d) + ft__head_padded(j->dv)) * ft_dtype_bytes(op->kv_dtype) / pace;
    /* On datacentre Blackwell vLLM leaves FlashAttention for TensorRT-LLM's kernels, whose CTAs start faster. */
    bool switched = (op->engine == FT_ENGINE_VLLM || op->engine == FT_ENGINE_ANY) &&
                    device->matrix_issue == FT_ISSUE_TCGEN05;
    double tile_ms = (th[TILE_US] * (switched ? th[SWITCH] : 1) + th[GROUP_US] * j->rows / 16) * 1e-3;
    plan best = {.ms = INFINITY};
    for (int halving = 0; halving <= 6; halving++) {
        double split = 1 << halving;
        if (split > 1 && j->kv < 64 * split) break;
        double tasks = j->pairs * split, load = tasks / sms;
        double waves = load <= 1 ? 1 : th[QUANTISATION] * ceil(load) + (1 - th[QUANTISATION]) * load;
        double stream = waves * (tile_ms + ceil(j->kv / split) * per_key);
        double join = split > 1 ? th[SPLIT_US] * 1e-3 + th[JOIN] * j->batch * j->h * split * j->dv * 8 / j->l2_rate : 0;
        double ms = ft__smooth_max(fmax(stream, j->mma_ms), j->memory_ms, th[SMOOTH]) + join;
        if (ms < best.ms) best = (plan){ms, stream, join, tasks, load, (int)split};
    }
    /* Reading queries, writing outputs and the new keys: a few instructions per head, by waves of heads. */
    best.ms += th[HEAD_US] * 1e-3 * j->batch * (j->h + 2 * j->kvh) / (sms * FT_K_ATTENTION_DECODE_HEADS);
    return best;
}

static void fill_features(const ft_device *device, const ft_op *op, const job *j, const plan *best, double launch_us,
                          float *f)
{
    *f++ = ft__lg(j->batch), *f++ = ft__lg(j->h), *f++ = ft__lg(j->kvh), *f++ = ft__lg(j->kv), *f++ = (float)j->d;
    *f++ = (float)j->group, *f++ = (float)(op->dtype == FT_BF16), *f++ = ft__lg(1 + (double)op->u.attention.window);
    *f++ = ft__lg(best->ms * 1e3 / launch_us), *f++ = ft__lg(best->stream_ms / j->memory_ms),
    *f++ = ft__lg(j->mma_ms / j->memory_ms);
    *f++ = ft__lg(best->tasks), *f++ = ft__lg(best->waves), *f++ = (float)(best->waves / ceil(best->waves));
    *f++ = ft__lg(best->split), *f++ = ft__lg(j->bytes / (device->l2_mib * 1048576));
    *f++ = ft__lg(j->kv / best->split), *f++ = ft__lg(j->pairs / device->sms);
    *f++ = ft__log2_divisor(op->u.attention.heads, 8), *f++ = ft__log2_divisor((int64_t)j->group, 8);
    *f++ = ft__lg(j->pairs), *f++ = ft__lg(j->batch * j->h), *f++ = ft__lg(j->bytes);
    *f++ = (float)(best->join_ms / best->ms), *f++ = (float)j->alone;
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    const job j = job_of(device, op, th);
    const plan best = plan_of(device, op, th, &j);
    out->compute_ms = fmax(best.stream_ms, j.mma_ms);
    out->memory_ms = j.memory_ms;
    out->body_ms = best.ms;
    out->tile_m = (int)fmin(j.rows, INT_MAX);
    out->tile_n = 64;
    out->split_k = best.split;
    out->tiles = best.tasks;
    out->waves = best.waves;
    out->note = NULL;
    if (want) fill_features(device, op, &j, &best, th[LAUNCH], out->feature);
}

const ft_family ft__decode_family = {
    .name = "decode",
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
