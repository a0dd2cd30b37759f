/* Optimizer steps and gradient clipping over `tensors` tensors of one size, `params` elements together.
 *
 *   T = launch + launches * (node + max(bytes per launch / (eb BW), instructions, chunk))
 *
 * PyTorch walks a list of tensors in chunks of 65,536 elements, a block of 512 threads each; one launch takes at most
 * 320 blocks and some 36 to 110 tensors (MultiTensorApply.cuh). A block's chunk is a chain of 32 trips through memory,
 * so that a launch takes 10 us or more however small the list is, unless its tensors are smaller than a chunk. Fused
 * steps are one such kernel; `foreach` steps are a kernel per arithmetic operation, each reading and writing whole
 * states. Tensors whose size is no multiple of four elements lose the vectorised path (bf16: twice the time).
 *
 * Traffic per parameter is in passes of the parameters' own width (states have the parameters' dtype here). Not
 * measured by us, from their definitions: 8-bit AdamW, Adafactor (row and column statistics: its passes are of the
 * update, kernels per tensor), LAMB (AdamW and two norms), Muon (momentum, then five Newton-Schulz iterations of three
 * products each on every matrix, taken as square: 30 n^3 flop), and loops over tensors, as PyTorch had them before such
 * lists: plain kernels of one tensor each, without chunks. The host is what those wait for (host.c).
 *
 * Leaves out: lists of very different sizes (their chunks add up all the same), sharded and offloaded states. */
#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/feature.h"
#include "kernel/gemm_tiles.h"
#include "kernel/kernel.h"
#include "kernel/optimizer_constants.h"
#include "kernel/priors_constants.h"
#include "kernel/traffic.h"

enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EB,
    PASSES,
    ISSUE,
    ISSUE_ODD,
    CHUNK_US,
    CHUNK_ODD,
    NODE_US,
    SMOOTH,
    CACHE_GAIN,
    WARM_SHARE,
    MATRIX,
    THETA_COUNT
};

_Static_assert((int)THETA_COUNT <= (int)FT_MAX_THETA, "a predictor file has no room for more constants");
static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_OPTIMIZER_LAUNCH_US,         [GAP] = FT_K_PRIORS_OPTIMIZER_GAP_US,
    [EB] = FT_K_PRIORS_OPTIMIZER_BANDWIDTH_EFFICIENCY,  [PASSES] = FT_K_PRIORS_OPTIMIZER_PASSES,
    [ISSUE] = FT_K_PRIORS_OPTIMIZER_INSTRUCTIONS,       [ISSUE_ODD] = FT_K_PRIORS_OPTIMIZER_INSTRUCTIONS_ODD,
    [CHUNK_US] = FT_K_PRIORS_OPTIMIZER_CHUNK_US,        [CHUNK_ODD] = FT_K_PRIORS_OPTIMIZER_CHUNK_ODD,
    [NODE_US] = FT_K_PRIORS_OPTIMIZER_NODE_US,          [SMOOTH] = FT_K_PRIORS_OPTIMIZER_SMOOTH,
    [CACHE_GAIN] = FT_K_PRIORS_OPTIMIZER_CACHE_GAIN,    [WARM_SHARE] = FT_K_PRIORS_OPTIMIZER_WARM_SHARE,
    [MATRIX] = FT_K_PRIORS_OPTIMIZER_MATRIX_EFFICIENCY,
};

enum {
    ADAMW_FUSED,
    ADAMW_FOREACH,
    SGD_FOREACH,
    SGD_FUSED,
    MOMENTUM_FOREACH,
    MOMENTUM_FUSED,
    CLIP,
    ADAMW_8BIT,
    ADAFACTOR,
    LAMB,
    MUON,
    ADAMW_LOOP,
    BERT_ADAM,
    SGD_LOOP,
    MOMENTUM_LOOP,
    CLIP_LOOP,
    ZERO_LOOP,
    VARIANTS
};

_Static_assert((int)FT_K_OPTIMIZER_KINDS_COUNT == (int)VARIANTS, "a line of the table for every variant");

static const int fallbacks[VARIANTS] = {
    [ADAMW_FUSED] = -1,          [ADAMW_FOREACH] = ADAMW_FUSED,    [SGD_FOREACH] = ADAMW_FUSED,
    [SGD_FUSED] = SGD_FOREACH,   [MOMENTUM_FOREACH] = SGD_FOREACH, [MOMENTUM_FUSED] = MOMENTUM_FOREACH,
    [CLIP] = SGD_FOREACH,        [ADAMW_8BIT] = ADAMW_FUSED,       [ADAFACTOR] = ADAMW_FOREACH,
    [LAMB] = ADAMW_FOREACH,      [MUON] = MOMENTUM_FOREACH,        [ADAMW_LOOP] = ADAMW_FOREACH,
    [BERT_ADAM] = ADAMW_FOREACH, [SGD_LOOP] = SGD_FOREACH,         [MOMENTUM_LOOP] = MOMENTUM_FOREACH,
    [CLIP_LOOP] = CLIP,          [ZERO_LOOP] = SGD_FOREACH,
};

static int variant_of(const ft_op *op)
{
    static const struct {
        const char *name;
        int variant;
    } also[] = {
        {"adamw", ADAMW_FUSED}, {"adam", ADAMW_FUSED}, {"sgd", SGD_FOREACH}, {"sgd_momentum", MOMENTUM_FOREACH}};
    if (op->kind != FT_OP_OPTIMIZER) return -1;
    for (int v = 0; v < VARIANTS; v++)
        if (!strcmp(ft__k_optimizer_kinds[v].name, op->name)) return v;
    for (size_t i = 0; i < sizeof also / sizeof *also; i++)
        if (!strcmp(also[i].name, op->name)) return also[i].variant;
    return SGD_FOREACH;
}
static const char *variant_name(int v) { return ft__k_optimizer_kinds[v].name; }
static int variant_fallback(int v) { return fallbacks[v]; }

static const char *const feature_names[] = {
    "log_time_over_start",
    "log_issue_over_memory",
    "log_chunk_over_memory",
    "log_bytes_over_cache",
    "log_params",
    "log_tensors",
    "log_size",
    "element_bytes",
    "odd",
    "log_launches",
    "log_blocks_over_sms",
};

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    const struct ft__k_optimizer_kinds *kind = &ft__k_optimizer_kinds[variant_of(op)];
    double params = (double)op->u.optimizer.params, tensors = fmin((double)op->u.optimizer.tensors, params);
    double size = params / tensors, e = ft_dtype_bytes(op->dtype), chunk = 65536;
    bool odd = op->u.optimizer.params / (int64_t)tensors % 4 != 0;
    double blocks = tensors * ceil(size / chunk), groups = fmax(ceil(tensors / kind->limit), ceil(blocks / 320));
    double launches = kind->kernels * groups;
    double bytes = params * (kind->passes * th[PASSES] * e + kind->bytes);
    ft_cache_state cache = {th[WARM_SHARE], th[CACHE_GAIN]};
    double memory = ft__traffic_ms(device, bytes / kind->kernels, th[EB], cache) * kind->kernels;
    double issue = params * kind->kernels * th[ISSUE] * (odd ? th[ISSUE_ODD] : 1) / ft__lane_rate(device);
    double waves = fmax(1, blocks / groups / (4 * device->sms));
    double chain = launches * waves * th[CHUNK_US] * (odd ? th[CHUNK_ODD] : 1) * fmin(1, size / chunk) * 1e-3;
    const double node_us = kind->loops ? FT_K_OPTIMIZER_LOOP_US : th[NODE_US];
    if (kind->loops) chain /= chunk; /* plain kernels, whose threads take a few elements each: next to nothing */
    double matrix = 0;
    if (kind == &ft__k_optimizer_kinds[MUON])
        matrix = 30 * tensors * size * sqrt(size) / (th[MATRIX] * ft__peak_tflops(device, FT_BF16) * 1e9);
    double busy = fmax(issue, chain);
    out->compute_ms = busy + matrix;
    out->memory_ms = memory;
    out->body_ms = ft__smooth_max(busy, memory, th[SMOOTH]) + matrix + launches * node_us * 1e-3;
    out->tile_m = out->tile_n = out->split_k = 0;
    out->tiles = blocks;
    out->waves = blocks / groups / (4 * device->sms);
    out->note = odd ? "tensor sizes are not multiples of 4 elements: no vectorised loads" : NULL;
    if (!want) return;
    float *f = out->feature;
    *f++ = ft__lg(1 + out->body_ms * 1e3 / th[LAUNCH]), *f++ = ft__lg(issue / memory), *f++ = ft__lg(chain / memory);
    *f++ = ft__lg(bytes / (device->l2_mib * 1048576)), *f++ = ft__lg(params), *f++ = ft__lg(tensors),
    *f++ = ft__lg(size), *f++ = (float)e;
    *f++ = (float)odd, *f++ = ft__lg(launches), *f++ = ft__lg(blocks / groups / device->sms);
}

const ft_family ft__optimizer_family = {
    .name = "optimizer",
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
