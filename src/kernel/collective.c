/* Collectives among the GPUs of one NVLink, xGMI or PCIe domain, as NCCL runs them (nccl-tests' time per call).
 *
 *   T = launch + sqrt(a^2 + b^2 + 2 k a b), of
 *                steps a                     bytes b
 *     LL         s aL + h (c + s cs)         w / (eL U Mn)
 *     LL128      dM + log2(n) aM             w / (eM U Mn)
 *     Simple     dS + log2(n) aS             w / (eS U Mn G)
 *     NVLS       dN                          w / (eN U G)
 *
 * s: steps of the ring, 2(n-1) or n-1. w: bytes a rank sends, 2(n-1)/n or (n-1)/n of the buffer. U: the link's
 * nominal rate per direction. Mn: what is left of it among four and eight GPUs (PCIe trees cross sockets there). G:
 * efficiency still grows with the message, slowly. h: from 3.5 KB a rank on NCCL opens more than one channel. All
 * but an all-reduce also copy a rank's own share. k is 1 where steps and bytes add up, 0 where the shorter hides.
 * Fixed times of a GPU of two dies are longer.
 *
 * Which line applies is what NCCL's own cost model decides (NCCL 2.2x, src/graph/tuning.cc): latency + w /
 * bandwidth, the least one wins, with NVLink steps of 0.6, 1.9 and 3.4 us (PCIe 1.0, 2.5, 5.7), 6.6, 14 and 8.4 us
 * to start, and an LL that fills 0.31 of the link at most. Its estimates are not the truth: where it switches from
 * LL to Simple between two GPUs the time doubles (A100 at 1 MB, H100 at 2, B200 at 4, each as the model's figures
 * say). Two figures are ours, set from the rows: see ft__collective_protocol. Point-to-point exchanges use LL up to
 * 16 KiB per peer.
 *
 * Engines' own one-shot all-reduces (TensorRT-LLM, vLLM, SGLang) are variants apart: every rank reads all others.
 *
 * Leaves out: the version of NCCL (2.27's and 2.29's times differ by up to 20 %), its environment variables, and
 * what else uses the links. */
#include "kernel/collective.h"

#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/feature.h"

enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    LL_STEP,
    LL_RATE,
    LL128_BASE,
    LL128_STEP,
    LL128_RATE,
    SIMPLE_BASE,
    SIMPLE_STEP,
    SIMPLE_RATE,
    NVLS_BASE,
    NVLS_RATE,
    LOCAL_RATE,
    OF_FOUR,
    OF_EIGHT,
    GROWTH,
    WIDE,
    WIDE_STEP,
    TWO_DIES,
    ADD_LL,
    ADD_SIMPLE,
    LL_OF_EIGHT,
    THETA_COUNT
};

_Static_assert((int)THETA_COUNT <= (int)FT_MAX_THETA, "a predictor file has no room for more constants");
static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = {"launch_us", 5, 1, 40, 0.4},
    [GAP] = {"gap_us", 20, 5, 1000, 0.7},
    [LL_STEP] = {"ll_step_us", 0.8, 0.1, 8, 0.4},
    [LL_RATE] = {"ll_rate", 0.3, 0.02, 1, 0.5},
    [LL128_BASE] = {"ll128_base_us", 2, 0.1, 60, 0.7},
    [LL128_STEP] = {"ll128_level_us", 3, 0.1, 30, 0.6},
    [LL128_RATE] = {"ll128_rate", 0.6, 0.05, 1, 0.4},
    [SIMPLE_BASE] = {"simple_base_us", 10, 0.5, 120, 0.7},
    [SIMPLE_STEP] = {"simple_level_us", 4, 0.1, 60, 0.6},
    [SIMPLE_RATE] = {"simple_rate", 0.75, 0.1, 1, 0.15},
    [NVLS_BASE] = {"nvls_base_us", 15, 1, 80, 0.5},
    [NVLS_RATE] = {"nvls_rate", 1, 0.3, 1.9, 0.2},
    [LOCAL_RATE] = {"local_rate", 2, 0.3, 20, 0.5},
    [OF_FOUR] = {"rate_of_four", 1, 0.02, 2, 1},
    [OF_EIGHT] = {"rate_of_eight", 1, 0.01, 2, 1},
    [GROWTH] = {"growth", 0.03, 0.001, 0.2, 0.8},
    [WIDE] = {"wide_us", 1, 0.05, 20, 0.7}, /* LL on more than one channel, from 4 KiB a rank on */
    [WIDE_STEP] = {"wide_step_us", 0.15, 0.01, 4, 0.7},
    [ADD_LL] = {"add_ll", 0.4, 0.02, 1, 0.7}, /* 1: steps and bytes add up; 0: the one hides in the other */
    [ADD_SIMPLE] = {"add_simple", 0.5, 0.02, 1, 0.7},
    [LL_OF_EIGHT] = {"ll_rate_of_eight", 1.1, 0.01, 4, 0.7},
    /* Fixed times of a GPU of two dies over those of one. Starts at none: a larger start would only repeat what
     * B200's own rows say (1.5), and a generation left out would then not be left out. */
    [TWO_DIES] = {"two_dies", 1.01, 1, 3, 0.5},
};

enum {
    ENGINES = FT_COLLECTIVE_COUNT, /* trtllm, vllm, sglang follow */
    KINDS = ENGINES + FT_ENGINE_COUNT - FT_ENGINE_TRTLLM,
    VARIANTS = 2 * KINDS /* over links of their own, then over PCIe */
};
_Static_assert((int)VARIANTS <= (int)FT_MAX_VARIANTS, "predictors index every variant");

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_COLLECTIVE) return -1;
    int kind = op->u.collective.op;
    if (kind == FT_ALL_REDUCE && op->engine >= FT_ENGINE_TRTLLM) kind = ENGINES + (int)op->engine - FT_ENGINE_TRTLLM;
    return kind + (op->u.collective.pcie ? KINDS : 0);
}

static const char *variant_name(int v)
{
    static const char *const names[VARIANTS] = {
        "all_reduce",          "all_gather",      "reduce_scatter", "all_to_all",  "broadcast",       "reduce",
        "send_recv",           "trtllm",          "vllm",           "sglang",      "pcie_all_reduce", "pcie_all_gather",
        "pcie_reduce_scatter", "pcie_all_to_all", "pcie_broadcast", "pcie_reduce", "pcie_send_recv",  "pcie_trtllm",
        "pcie_vllm",           "pcie_sglang"};
    return names[v];
}

static int variant_fallback(int v)
{
    int kind = v % KINDS, base = v - kind;
    switch (kind) {
    case FT_ALL_REDUCE: return base ? FT_ALL_REDUCE : -1;
    case FT_ALL_GATHER:
    case FT_REDUCE_SCATTER: return base + FT_ALL_REDUCE;
    case FT_ALL_TO_ALL:
    case FT_BROADCAST: return base + FT_ALL_GATHER;
    case FT_REDUCE: return base + FT_REDUCE_SCATTER;
    case FT_SEND_RECV: return base + FT_ALL_TO_ALL;
    default: return base + FT_ALL_REDUCE;
    }
}

const char *const ft__protocol_notes[FT_PROTOCOL_COUNT] = {
    [FT_LL] = "LL", [FT_LL128] = "LL128", [FT_SIMPLE] = "Simple", [FT_NVLS] = "NVLS"};

double ft__collective_wire(int op, double n)
{
    switch (op) {
    case FT_ALL_REDUCE: return 2 * (n - 1) / n;
    case FT_ALL_GATHER:
    case FT_REDUCE_SCATTER:
    case FT_ALL_TO_ALL: return (n - 1) / n;
    default: return n > 1 ? 1 : 0;
    }
}

/* Beyond eight ranks trees take over: their depth grows with the logarithm. */
static double steps_of(int op, double n)
{
    switch (op) {
    case FT_ALL_REDUCE: return n <= 8 ? 2 * (n - 1) : 14 + 4 * log2(n / 8);
    case FT_ALL_TO_ALL: return log2(n);
    case FT_SEND_RECV: return 1;
    default: return n - 1;
    }
}

static bool pairwise(const ft_op *op)
{
    return op->u.collective.op == FT_ALL_TO_ALL || op->u.collective.op == FT_SEND_RECV;
}

ft_protocol ft__collective_protocol(const ft_op *op)
{
    static const double step_us[2][FT_NVLS] = {{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}};
    static const double start_us[FT_NVLS] = {6.6, 14, 8.4};
    /* LL at most 87.7 GB/s over A100's 300, 141 over H100's 450 and twice that over B200's 900: NCCL's table. That
     * LL128 ends earlier on B200 is not in it: set to where the rows switch. */
    double u = op->u.collective.link_gbps;
    const double rate[FT_NVLS] = {u <= 300 ? 0.292 : 0.313, u <= 450 ? 0.74 : 0.6, 0.8};
    double n = (double)op->u.collective.ranks, us_per_byte = 1e-3 / op->u.collective.link_gbps;
    double bytes = op->u.collective.bytes;
    if (pairwise(op)) return bytes / n <= 16384 ? FT_LL : FT_SIMPLE;
    double w = ft__collective_wire(op->u.collective.op, n) * bytes, s = steps_of(op->u.collective.op, n);
    double least = 0;
    ft_protocol best = FT_LL;
    for (int p = FT_LL; p < FT_NVLS; p++) {
        if (p == FT_LL128 && op->u.collective.pcie) continue;
        double us = start_us[p] + s * step_us[op->u.collective.pcie][p] + w * us_per_byte / rate[p];
        if (p == FT_LL || us < least) least = us, best = (ft_protocol)p;
    }
    bool nvls = op->u.collective.op == FT_ALL_REDUCE && op->u.collective.reduces && n > 4;
    /* 27 and not the table's 25: where the rows switch on H100 and B200. */
    return nvls && 27 + w * us_per_byte / 1.05 < least ? FT_NVLS : best;
}

/* B200 and its kin, whose fixed times are half as long again as H100's at the same clock. Why is not known: that fences
 * and flags go through both halves of the cache is a guess, and published L2 latencies do not show as much. */
static bool two_dies(const ft_device *device) { return !strcmp(device->generation, "blackwell"); }

static const char *const feature_names[] = {
    "log_bytes",           "log_ranks",           "log_share", "log_wire_time",
    "log_time_over_start", "log_rate_over_steps", "protocol",  "log_wire_over_pick",
};

/* Of what 64 MiB reach; beyond a gibibyte nobody measured more. */
static double grown(double growth, double bytes) { return exp2(growth * (fmin(log2(bytes), 30) - 26)); }

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    double n = (double)op->u.collective.ranks, u = op->u.collective.link_gbps * 1e6; /* bytes per ms */
    double bytes = op->u.collective.bytes, w = ft__collective_wire(op->u.collective.op, n) * bytes;
    double s = steps_of(op->u.collective.op, n) * 1e-3, steps, moved, lg_n = log2(n);
    double many = lg_n <= 1   ? 1
                  : lg_n <= 2 ? 1 + (th[OF_FOUR] - 1) * (lg_n - 1)
                  : lg_n <= 3 ? th[OF_FOUR] + (th[OF_EIGHT] - th[OF_FOUR]) * (lg_n - 2)
                              : th[OF_EIGHT];
    bool engine = op->u.collective.op == FT_ALL_REDUCE && op->engine >= FT_ENGINE_TRTLLM;
    ft_protocol protocol = ft__collective_protocol(op);
    if (engine) protocol = protocol == FT_LL ? FT_LL : FT_SIMPLE;
    double levels = n <= 8 ? lg_n : 3 + (pairwise(op) ? lg_n - 3 : (n - 8) / 6); /* long rings again go step by step */
    double x = bytes / n / 3500, wide = x * x * x * x / (1 + x * x * x * x);
    switch (protocol) {
    case FT_LL:
        steps = s * th[LL_STEP] + wide * (th[WIDE] * 1e-3 + s * th[WIDE_STEP]);
        moved = w / (th[LL_RATE] * u * (1 + (th[LL_OF_EIGHT] - 1) * fmin((lg_n - 1) / 2, 1)));
        break;
    case FT_LL128:
        steps = (th[LL128_BASE] + levels * th[LL128_STEP]) * 1e-3;
        moved = w / (th[LL128_RATE] * u * many);
        break;
    case FT_NVLS:
        steps = th[NVLS_BASE] * 1e-3;
        moved = w / (th[NVLS_RATE] * u * grown(th[GROWTH], w));
        break;
    default:
        steps = (th[SIMPLE_BASE] + levels * th[SIMPLE_STEP]) * 1e-3;
        moved = w / (th[SIMPLE_RATE] * u * many * grown(th[GROWTH], w + 1));
    }
    steps *= ft__clock_scale(device); /* A100's steps take 1.4 times as long as H100's, as its clocks do */
    if (two_dies(device))
        steps = steps * th[TWO_DIES] + (th[TWO_DIES] - 1) * th[LAUNCH] * 1e-3 * ft__clock_scale(device);
    if (op->u.collective.op != FT_ALL_REDUCE) moved += bytes / n / (th[LOCAL_RATE] * u);
    out->compute_ms = steps;
    out->memory_ms = moved;
    double add = th[protocol == FT_LL ? ADD_LL : ADD_SIMPLE];
    out->body_ms = sqrt(steps * steps + moved * moved + 2 * add * steps * moved);
    out->tile_m = out->tile_n = out->split_k = 0;
    out->tiles = out->waves = 0;
    out->note = ft__protocol_notes[protocol];
    if (!want) return;
    float *f = out->feature;
    double tiny = 1e-9, nominal = w / u + tiny;
    *f++ = ft__lg(bytes), *f++ = (float)lg_n, *f++ = ft__lg(bytes / n), *f++ = ft__lg(nominal * 1e3);
    *f++ = ft__lg(1 + out->body_ms * 1e3 / (th[LAUNCH] * ft__clock_scale(device)));
    *f++ = ft__lg((moved + tiny) / (steps + tiny)), *f++ = (float)protocol, *f++ = ft__lg((moved + tiny) / nominal);
}

double ft__collective_start_ms(const ft_device *device, const ft_op *op)
{
    double th[THETA_COUNT];
    ft_physics ph;
    for (int i = 0; i < THETA_COUNT; i++) th[i] = parameters[i].start;
    physics(device, op, th, false, &ph);
    return th[LAUNCH] * 1e-3 * ft__clock_scale(device) + ph.body_ms;
}

const ft_family ft__collective_family = {
    .name = "collective",
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
