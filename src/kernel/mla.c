/* Multi-head latent attention (DeepSeek-V2, 2024): keys and values of all heads come from one latent vector per token.
 *
 * Context: the latent is expanded, every head has its own K (nope + rope wide) and V, and the tiled kernel of
 * attention.c runs on them. The engine also writes the latent into the cache.
 * Generation: queries are absorbed into the latent space, so that all heads share one "key" of kv_lora + rope and one
 * "value" of kv_lora: flash-decoding with a group of all heads, compute-bound on 128 heads:
 *   memory  batch * keys * (kv_lora + rope) bytes
 *   mma     2 * pad64(heads) * keys * (2 kv_lora + rope) / (ec * peak)
 *   stream  waves * (tile_us + keys/split * (kv_lora + rope) bytes / pace) as in decode.c
 *
 * Leaves out: the projections around it (GEMMs of the graph), sparse attention over the latent. */
#include <math.h>

#include "graph/operator.h"
#include "kernel/attention.h"
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
    TAIL,
    EB,
    SMOOTH,
    POWER_US,
    ENERGY,
    WARM,
    KEEP,
    L2_CLK,
    PACE,
    SPLIT_US,
    JOIN,
    QUANTISATION,
    PASS_CLK,
    THETA_COUNT
};

static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_MLA_LAUNCH_US,
    [GAP] = FT_K_PRIORS_MLA_GAP_US,
    [EC] = FT_K_PRIORS_MLA_COMPUTE_EFFICIENCY,
    [ME] = FT_K_PRIORS_MLA_SOFTMAX_COST,
    [OVERLAP] = FT_K_PRIORS_MLA_OVERLAP,
    [TILE_US] = FT_K_PRIORS_MLA_TILE_US,
    [TAIL] = FT_K_PRIORS_MLA_TAIL,
    [EB] = FT_K_PRIORS_MLA_BANDWIDTH_EFFICIENCY,
    [SMOOTH] = FT_K_PRIORS_MLA_SMOOTH,
    [POWER_US] = FT_K_PRIORS_MLA_POWER_US,
    [ENERGY] = FT_K_PRIORS_MLA_ENERGY,
    [WARM] = FT_K_PRIORS_MLA_WARM,
    [KEEP] = FT_K_PRIORS_MLA_L2_KEEPS,
    [L2_CLK] = FT_K_PRIORS_MLA_L2_BYTES_PER_CLOCK,
    [PACE] = FT_K_PRIORS_MLA_STREAM_BYTES_PER_CLOCK,
    [SPLIT_US] = FT_K_PRIORS_MLA_SPLIT_US,
    [JOIN] = FT_K_PRIORS_MLA_JOIN_TRAFFIC,
    [QUANTISATION] = FT_K_PRIORS_MLA_WAVE_QUANTISATION,
    [PASS_CLK] = FT_K_PRIORS_MLA_CACHE_PASS_BYTES_PER_CLOCK,
};

enum { CONTEXT, GENERATION, CONTEXT_FP8, GENERATION_FP8, VARIANTS };
static const char *const variant_names[VARIANTS] = {"context", "generation", "context_fp8", "generation_fp8"};

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_MLA) return -1;
    bool low = ft_dtype_bytes(op->kv_dtype) < 2 || ft_dtype_bytes(op->dtype) < 2;
    return (op->u.mla.q_len == 1 && op->u.mla.kv_len > 1 ? GENERATION : CONTEXT) + (low ? 2 : 0);
}

static const char *variant_name(int v) { return variant_names[v]; }
static int variant_fallback(int v) { return v >= CONTEXT_FP8 ? v - 2 : -1; }

static const char *const feature_names[] = {
    "log_batch",     "log_heads",  "log_q",     "log_kv",     "log_time_over_launch", "log_compute_over_memory",
    "log_tiles",     "log_waves",  "wave_fill", "log_split",  "log_bytes_over_l2",    "log_batch_heads",
    "longest_share", "pass_share", "odd_q",     "log_tokens", "log_keys_per_task",    "log_batch_kv",
};

typedef struct shape {
    double batch, heads, q, kv, key, value, e, kv_e, sms, clock, peak, memory_rate, l2_rate;
} shape;

typedef struct answer {
    double compute_ms, memory_ms, body_ms, tiles, waves, longest_share, pass_ms, bytes;
    int split, height;
} answer;

static void context(const ft_device *device, const ft_op *op, const shape *s, const double *th, answer *a)
{
    double mma = 2 * (s->key + s->value) / (th[EC] * s->peak / s->sms), soft = th[ME] / ft__exp_per_ms_sm(device);
    double cell = fmax(mma, soft) + th[OVERLAP] * fmin(mma, soft), best = INFINITY;
    for (int rows = 64; rows <= 128; rows *= 2) {
        double bq = rows, n = ceil(s->q / bq), bk = 64, all = bk * ceil(s->kv / bk), first = fmax(0, s->kv - s->q),
               sum = n * all;
        if (op->u.mla.causal) sum = fmin(sum, n * first + bq * n * (n + 1) / 2 + n * bk / 2);
        double tiles = s->batch * s->heads * n, last = all * cell * bq + th[TILE_US] * 1e-3;
        double even = (tiles * th[TILE_US] * 1e-3 + s->batch * s->heads * sum * cell * bq) / s->sms;
        double ms = fmax(tiles > s->sms ? even + th[TAIL] * last : even, last);
        if (ms >= best) continue;
        best = ms;
        a->tiles = tiles, a->waves = tiles / s->sms, a->longest_share = last / ms, a->height = (int)bq;
    }
    a->split = 0;
    a->bytes = s->batch * s->heads * (s->q * (s->key * s->e + s->value * 2) + s->kv * (s->key + s->value) * s->e);
    double held = th[WARM] * ft__resident(device, th[KEEP], a->bytes);
    a->memory_ms = a->bytes * ((1 - held) / s->memory_rate + held / s->l2_rate);
    a->compute_ms = best * ft__power_slowdown(device, op->dtype, th[ENERGY], ft__op_flops(op) / best * 1e-9,
                                              best * 1e3 / th[POWER_US]);
    /* Queries and keys gathered with their rotary part, the latent written to the cache. */
    double latent = (double)(op->u.mla.kv_lora + op->u.mla.rope_dim);
    a->pass_ms = s->batch * s->q * (s->heads * 2 * s->key * 2 + latent * (2 + s->kv_e)) /
                 (th[PASS_CLK] * s->sms * s->clock);
    a->body_ms = ft__smooth_max(a->compute_ms, a->memory_ms, th[SMOOTH]) + a->pass_ms;
}

static void generation(const ft_device *device, const ft_op *op, const shape *s, const double *th, answer *a)
{
    double latent = (double)(op->u.mla.kv_lora + op->u.mla.rope_dim), value = (double)op->u.mla.kv_lora;
    double blocks = ceil(s->heads / 64), rows = 64;
    a->bytes = s->batch * s->kv * latent * s->kv_e + s->batch * s->heads * (latent * s->e + value * 2);
    double held = th[WARM] * ft__resident(device, th[KEEP], a->bytes);
    a->memory_ms = a->bytes * ((1 - held) / s->memory_rate + held / s->l2_rate);
    double per_key = fmax(latent * s->kv_e / (th[PACE] * s->clock),
                          2 * rows * (latent + value) / (th[EC] * s->peak / s->sms));
    double best = INFINITY;
    for (int halving = 0; halving <= 6; halving++) {
        double split = 1 << halving;
        if (split > 1 && s->kv < 64 * split) break;
        double tasks = s->batch * blocks * split, load = tasks / s->sms;
        double waves = load <= 1 ? 1 : th[QUANTISATION] * ceil(load) + (1 - th[QUANTISATION]) * load;
        double stream = waves * (th[TILE_US] * 1e-3 + ceil(s->kv / split) * per_key);
        double join = split > 1 ? th[SPLIT_US] * 1e-3 + th[JOIN] * s->batch * s->heads * split * value * 8 / s->l2_rate
                                : 0;
        double ms = ft__smooth_max(stream, a->memory_ms, th[SMOOTH]) + join;
        if (ms >= best) continue;
        best = ms;
        a->compute_ms = stream, a->body_ms = ms, a->tiles = tasks, a->waves = load, a->split = (int)split;
    }
    a->height = (int)rows;
    a->longest_share = a->compute_ms / a->body_ms;
    a->pass_ms = 0;
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    bool low = ft_dtype_bytes(op->kv_dtype) < 2, decode = op->u.mla.q_len == 1 && op->u.mla.kv_len > 1;
    shape s = {
        .batch = (double)op->u.mla.batch,
        .heads = (double)op->u.mla.heads,
        .q = (double)op->u.mla.q_len,
        .kv = (double)op->u.mla.kv_len,
        .key = (double)(op->u.mla.nope_dim + op->u.mla.rope_dim),
        .value = (double)op->u.mla.v_dim,
        .e = ft_dtype_bytes(op->dtype),
        .kv_e = ft_dtype_bytes(op->kv_dtype),
        .sms = device->sms,
        .clock = ft__running_mhz(device) * 1e3,
        .peak = ft__peak_tflops(device, low ? FT_FP8 : op->dtype) * 1e9,
        .memory_rate = th[EB] * device->memory_gbps * 1e6,
        .l2_rate = th[L2_CLK] * device->sms * ft__running_mhz(device) * 1e3,
    };
    answer a = {0};
    if (decode)
        generation(device, op, &s, th, &a);
    else
        context(device, op, &s, th, &a);
    out->compute_ms = a.compute_ms;
    out->memory_ms = a.memory_ms + a.pass_ms;
    out->body_ms = a.body_ms;
    out->tile_m = a.height;
    out->tile_n = 64;
    out->split_k = a.split;
    out->tiles = a.tiles;
    out->waves = a.waves;
    out->note = NULL;
    if (!want) return;
    float *f = out->feature;
    *f++ = ft__lg(s.batch), *f++ = ft__lg(s.heads), *f++ = ft__lg(s.q), *f++ = ft__lg(s.kv);
    *f++ = ft__lg(a.body_ms * 1e3 / th[LAUNCH]), *f++ = ft__lg(a.compute_ms / out->memory_ms), *f++ = ft__lg(a.tiles);
    *f++ = ft__lg(a.waves), *f++ = (float)(a.waves / ceil(a.waves)), *f++ = (float)a.split;
    *f++ = ft__lg(a.bytes / (device->l2_mib * 1048576)), *f++ = ft__lg(s.batch * s.heads),
    *f++ = (float)a.longest_share;
    *f++ = (float)(a.pass_ms / a.body_ms), *f++ = ft__log2_divisor(op->u.mla.q_len, 8), *f++ = ft__lg(s.batch * s.q);
    *f++ = ft__lg(s.kv / (a.split > 1 ? a.split : 1)), *f++ = ft__lg(s.batch * s.kv);
}

const ft_family ft__mla_family = {
    .name = "mla",
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
