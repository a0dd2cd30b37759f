/* Collectives among the GPUs of one NVLink, xGMI or PCIe domain, as NCCL runs them (nccl-tests' time per call).
 *
 *   T = launch + sqrt(a^2 + b^2 + 2 k a b) + f, of
 *                steps a                     bytes b               filling f
 *     LL         s aL + h (c + s cs)         w / (eL U Ln)
 *     LL, pairs  s aL + h (c + s cs)         v / rP
 *     LL128      dM + log2(n) aM             w / (eM U Mn)
 *     Simple     dS + s aS                   w / (eS U Mn G)
 *     pairs      dS + log2(n) aS             w / (eS U Mn)         F y / (1 + y)
 *     NVLS       dN                          w / (eN U)            F z / (1 + z)
 *
 * s: steps of the ring, 2(n-1) or n-1. w: bytes a rank sends, 2(n-1)/n or (n-1)/n of the buffer; v: to one peer. U: the
 * link's nominal rate per direction. Mn, Ln: what is left of it among four and eight GPUs (PCIe trees cross sockets
 * there). rP: one channel between two GPUs, in bytes per clock and so the same on every link. G: a ring's efficiency
 * still grows with the message, slowly. f: the same of pairs and of the switch, whose growth ends: half of F is spent
 * at 37 us of buffer (y, to the power of 1.5) or 32 us of wire (z). h: from 3.5 KB a rank on NCCL opens more than one
 * channel. All but an all-reduce also copy a rank's own share. k is 1 where steps and bytes add up, 0 where the shorter
 * hides. Numbers of one byte are summed more slowly, and old versions of NCCL start later.
 * Fixed times of a GPU of two dies are longer. Which line applies: protocol.c.
 *
 * Engines' own one-shot all-reduces (TensorRT-LLM, vLLM, SGLang) are variants apart: every rank reads all others. Where
 * no switch joins them each peer stands behind a wire of its own, and nothing that was learned through switches holds:
 *     once       d + S / (e W)
 *     in two     d + (n - 1) d2 + 2 S / n (1 / (e W) + (n - 1) / R)  W: a wire; R: what the few blocks read in all
 *
 * Leaves out: what else made nccl-tests' runs differ on one GPU (two of six on B200, by up to a half in the middle
 * sizes and not by version), NCCL's environment variables, and what else uses the links. */
#include "kernel/collective.h"

#include <math.h>
#include <string.h>

#include "device/traits.h"
#include "graph/operator.h"
#include "kernel/collective_constants.h"
#include "kernel/families.h"
#include "kernel/feature.h"
#include "kernel/priors_constants.h"

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
    LL_OF_FOUR,
    PAIR_RATE,
    FILL,
    NARROW,
    NARROW_RATE,
    OLD,
    THETA_COUNT
};

_Static_assert((int)THETA_COUNT <= (int)FT_MAX_THETA, "a predictor file has no room for more constants");
static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_COLLECTIVE_LAUNCH_US,
    [GAP] = FT_K_PRIORS_COLLECTIVE_GAP_US,
    [LL_STEP] = FT_K_PRIORS_COLLECTIVE_LL_STEP_US,
    [LL_RATE] = FT_K_PRIORS_COLLECTIVE_LL_RATE,
    [LL128_BASE] = FT_K_PRIORS_COLLECTIVE_LL128_BASE_US,
    [LL128_STEP] = FT_K_PRIORS_COLLECTIVE_LL128_LEVEL_US,
    [LL128_RATE] = FT_K_PRIORS_COLLECTIVE_LL128_RATE,
    [SIMPLE_BASE] = FT_K_PRIORS_COLLECTIVE_SIMPLE_BASE_US,
    [SIMPLE_STEP] = FT_K_PRIORS_COLLECTIVE_SIMPLE_LEVEL_US,
    [SIMPLE_RATE] = FT_K_PRIORS_COLLECTIVE_SIMPLE_RATE,
    [NVLS_BASE] = FT_K_PRIORS_COLLECTIVE_NVLS_BASE_US,
    [NVLS_RATE] = FT_K_PRIORS_COLLECTIVE_NVLS_RATE,
    [LOCAL_RATE] = FT_K_PRIORS_COLLECTIVE_LOCAL_RATE,
    [OF_FOUR] = FT_K_PRIORS_COLLECTIVE_RATE_OF_FOUR,
    [OF_EIGHT] = FT_K_PRIORS_COLLECTIVE_RATE_OF_EIGHT,
    [GROWTH] = FT_K_PRIORS_COLLECTIVE_GROWTH,
    [WIDE] = FT_K_PRIORS_COLLECTIVE_WIDE_US,
    [WIDE_STEP] = FT_K_PRIORS_COLLECTIVE_WIDE_STEP_US,
    [ADD_LL] = FT_K_PRIORS_COLLECTIVE_ADD_LL,
    [ADD_SIMPLE] = FT_K_PRIORS_COLLECTIVE_ADD_SIMPLE,
    [LL_OF_EIGHT] = FT_K_PRIORS_COLLECTIVE_LL_RATE_OF_EIGHT,
    [LL_OF_FOUR] = FT_K_PRIORS_COLLECTIVE_LL_RATE_OF_FOUR,
    [PAIR_RATE] = FT_K_PRIORS_COLLECTIVE_PAIR_GBPS,
    [FILL] = FT_K_PRIORS_COLLECTIVE_FILL_US,
    [NARROW] = FT_K_PRIORS_COLLECTIVE_NARROW_STEPS,
    [NARROW_RATE] = FT_K_PRIORS_COLLECTIVE_NARROW_RATE,
    [OLD] = FT_K_PRIORS_COLLECTIVE_OLD_US,
    [TWO_DIES] = FT_K_PRIORS_COLLECTIVE_TWO_DIES,
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
    if (kind == FT_COLLECTIVE_ALL_REDUCE && op->engine >= FT_ENGINE_TRTLLM)
        kind = ENGINES + (int)op->engine - FT_ENGINE_TRTLLM;
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
    case FT_COLLECTIVE_ALL_REDUCE: return base ? FT_COLLECTIVE_ALL_REDUCE : -1;
    case FT_COLLECTIVE_ALL_GATHER:
    case FT_COLLECTIVE_REDUCE_SCATTER: return base + FT_COLLECTIVE_ALL_REDUCE;
    case FT_COLLECTIVE_ALL_TO_ALL:
    case FT_COLLECTIVE_BROADCAST: return base + FT_COLLECTIVE_ALL_GATHER;
    case FT_COLLECTIVE_REDUCE: return base + FT_COLLECTIVE_REDUCE_SCATTER;
    case FT_COLLECTIVE_SEND_RECV: return base + FT_COLLECTIVE_ALL_TO_ALL;
    default: return base + FT_COLLECTIVE_ALL_REDUCE;
    }
}

/* B200 and its kin, whose fixed times are 1.3 to 1.5 times as long as H100's at the same clock. Why is not known: that
 * fences and flags go through both halves of the cache is a guess, and published L2 latencies do not show as much. */
static bool two_dies(const ft_device *device) { return ft__joined_dies(device); }

static const char *const feature_names[] = {
    "log_bytes",           "log_ranks", "log_share",          "log_wire_time", "log_time_over_start",
    "log_rate_over_steps", "protocol",  "log_wire_over_pick", "narrow",        "old",
};

/* Of what 64 MiB reach. */
static double grown(double growth, double bytes)
{
    return exp2(growth * (fmin(log2(bytes), FT_K_COLLECTIVE_GROWTH_TO) - FT_K_COLLECTIVE_GROWTH_FROM));
}

/* Two GPUs count as 1. */
static double of_many(double four, double eight, double lg_n)
{
    return lg_n <= 1   ? 1
           : lg_n <= 2 ? 1 + (four - 1) * (lg_n - 1)
           : lg_n <= 3 ? four + (eight - four) * (lg_n - 2)
                       : eight;
}

/* ms; steps and fill at 1.8 GHz */
typedef struct parts {
    double steps, moved, fill, add;
} parts;

static parts by_ll(const ft_device *device, const ft_op *op, const double *th, double lg_n)
{
    double n = (double)op->u.collective.ranks, share = op->u.collective.bytes / n;
    double s = ft__collective_steps(op->u.collective.op, n) * 1e-3, u = op->u.collective.link_gbps * 1e6;
    double x = share / FT_K_COLLECTIVE_WIDE_BYTES, wide = x * x * x * x / (1 + x * x * x * x);
    bool channel = ft__collective_pairwise(op) && !op->u.collective.pcie && !ft__collective_many_channels(op);
    parts p = {.steps = s * th[LL_STEP] + wide * (th[WIDE] * 1e-3 + s * th[WIDE_STEP]), .add = th[ADD_LL]};
    if (channel)
        p.moved = share / (th[PAIR_RATE] * 1e6 / ft__clock_scale(device));
    else
        p.moved = ft__collective_wire(op->u.collective.op, n) * op->u.collective.bytes /
                  (th[LL_RATE] * u * of_many(th[LL_OF_FOUR], th[LL_OF_EIGHT], lg_n));
    return p;
}

static parts by_chunks(const ft_op *op, ft_protocol protocol, const double *th, double lg_n)
{
    double n = (double)op->u.collective.ranks, u = op->u.collective.link_gbps * 1e6; /* bytes per ms */
    double w = ft__collective_wire(op->u.collective.op, n) * op->u.collective.bytes;
    double many = of_many(th[OF_FOUR], th[OF_EIGHT], lg_n);
    bool pairs = ft__collective_pairwise(op);
    double levels = n <= 8 ? lg_n
                           : 3 + (pairs ? lg_n - 3
                                        : (n - 8) / FT_K_COLLECTIVE_LONG_RING); /* long rings again go step by step */
    parts p = {.add = th[ADD_SIMPLE]};
    if (protocol == FT_LL128) {
        p.steps = (th[LL128_BASE] + levels * th[LL128_STEP]) * 1e-3;
        p.moved = w / (th[LL128_RATE] * u * many);
    } else if (protocol == FT_NVLS) {
        p.steps = th[NVLS_BASE] * 1e-3;
        p.moved = w / (th[NVLS_RATE] * u);
        p.fill = th[FILL] * 1e-3 * w / (w + FT_K_COLLECTIVE_NVLS_FILL_MS * u);
        p.add = 1;
    } else if (pairs) {
        double y = op->u.collective.bytes / (FT_K_COLLECTIVE_PAIR_FILL_MS * u), y15 = y * sqrt(y);
        p.steps = (th[SIMPLE_BASE] + levels * th[SIMPLE_STEP]) * 1e-3;
        p.moved = w / (th[SIMPLE_RATE] * u * many);
        p.fill = th[FILL] * 1e-3 * y15 / (1 + y15);
    } else {
        p.steps = (th[SIMPLE_BASE] + ft__collective_steps(op->u.collective.op, n) * th[SIMPLE_STEP]) * 1e-3;
        p.moved = w / (th[SIMPLE_RATE] * u * many * grown(th[GROWTH], w + 1));
    }
    return p;
}

/* An engine's own sum among GPUs that no switch joins; 0: it leaves that to the library. */
static double mesh_ms(const ft_op *op, double clocks)
{
    double n = (double)op->u.collective.ranks, bytes = op->u.collective.bytes;
    if (op->u.collective.switched || op->u.collective.pcie || bytes > FT_K_COLLECTIVE_MESH_MOST) return 0;
    double wire = FT_K_COLLECTIVE_MESH_WIRE * op->u.collective.link_gbps * 1e6 / (n - 1); /* bytes per ms */
    bool once = n <= 2 || bytes < (n <= 4 ? FT_K_COLLECTIVE_MESH_ONCE_OF_FOUR : FT_K_COLLECTIVE_MESH_ONCE_OF_EIGHT);
    if (once) return FT_K_COLLECTIVE_MESH_START_US * 1e-3 * clocks + bytes / wire;
    double each = 2 * bytes / n;
    return (FT_K_COLLECTIVE_MESH_START_US + (n - 1) * FT_K_COLLECTIVE_MESH_SECOND_US) * 1e-3 * clocks +
           each * (1 / wire + (n - 1) / (FT_K_COLLECTIVE_MESH_READ_GBPS * 1e6));
}

/* AMD's wires carry checks and headers beside the bytes, and the slowest of a GPU's holds the ring: no message is long
 * enough to leave that behind, as rings over switches do. 0: links that were measured. */
static double wires_ms(const ft_device *device, const ft_op *op)
{
    if (device->vendor != FT_VENDOR_AMD || op->u.collective.switched || op->u.collective.pcie) return 0;
    double share = ft__collective_pairwise(op) ? FT_K_COLLECTIVE_MESH_PAIRS : FT_K_COLLECTIVE_MESH_RING;
    double w = ft__collective_wire(op->u.collective.op, (double)op->u.collective.ranks) * op->u.collective.bytes;
    return w / (share * op->u.collective.link_gbps * 1e6);
}

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    double n = (double)op->u.collective.ranks, u = op->u.collective.link_gbps * 1e6, lg_n = log2(n);
    double bytes = op->u.collective.bytes, clocks = ft__clock_scale(device);
    bool engine = op->u.collective.op == FT_COLLECTIVE_ALL_REDUCE && op->engine >= FT_ENGINE_TRTLLM;
    ft_protocol protocol = ft__collective_protocol(device, op);
    if (engine) protocol = protocol == FT_LL ? FT_LL : FT_SIMPLE;
    parts p = protocol == FT_LL ? by_ll(device, op, th, lg_n) : by_chunks(op, protocol, th, lg_n);
    if (ft__collective_old(op)) p.steps += th[OLD] * 1e-3;
    p.steps *= clocks; /* A100's steps take 1.4 times as long as H100's, as its clocks do */
    if (two_dies(device)) {
        p.steps = p.steps * th[TWO_DIES] + (th[TWO_DIES] - 1) * th[LAUNCH] * 1e-3 * clocks;
        p.fill *= th[TWO_DIES];
    }
    if (ft__collective_eight_bit(op)) p.steps *= th[NARROW], p.moved /= th[NARROW_RATE];
    if (op->u.collective.op != FT_COLLECTIVE_ALL_REDUCE) p.moved += bytes / n / (th[LOCAL_RATE] * u);
    p.moved = fmax(p.moved, wires_ms(device, op));
    out->compute_ms = p.steps;
    out->memory_ms = p.moved;
    out->body_ms = sqrt(p.steps * p.steps + p.moved * p.moved + 2 * p.add * p.steps * p.moved) + p.fill;
    double mesh = engine ? mesh_ms(op, clocks) : 0;
    if (mesh > 0) {
        out->body_ms = fmax(mesh - th[LAUNCH] * 1e-3 * clocks, 0);
        out->spread = FT_K_COLLECTIVE_MESH_SPREAD;
    }
    out->tile_m = out->tile_n = out->split_k = 0;
    out->tiles = out->waves = 0;
    out->note = ft__protocol_notes[protocol];
    if (!want) return;
    float *f = out->feature;
    double tiny = 1e-9, nominal = ft__collective_wire(op->u.collective.op, n) * bytes / u + tiny;
    *f++ = ft__lg(bytes), *f++ = (float)lg_n, *f++ = ft__lg(bytes / n), *f++ = ft__lg(nominal * 1e3);
    *f++ = ft__lg(1 + out->body_ms * 1e3 / (th[LAUNCH] * clocks));
    *f++ = ft__lg((p.moved + tiny) / (p.steps + tiny)), *f++ = (float)protocol;
    *f++ = ft__lg((p.moved + tiny) / nominal);
    *f++ = ft__collective_eight_bit(op), *f++ = ft__collective_old(op);
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
    .repeated = true,
    .physics = physics,
};
