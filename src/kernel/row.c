/* Row operators on [rows, cols]: softmax, normalisations, reductions, scans, gathers, transposes, and their gradients.
 *
 *   T = launch + max(memory, issue, chain) + what runs beside it
 *
 *   memory  passes over the matrix at a share of the bandwidth. A block that reads its row again (softmax: maximum,
 *           sum, result; layernorm: moments, result) finds it in the last-level cache as long as all rows in flight
 *           fit there: SMs * threads per SM / threads per row of them. V100, T4 and P4 fall to a half (softmax) or two
 *           thirds (layernorm) of their bandwidth where they do not, at the widths this predicts.
 *   issue   elements * instructions / lanes: what broadcasting, strided and scanning kernels are bound by.
 *   chain   a row's block is a chain of steps: start, reduce across the block, and ceil(cols / (threads * vector))
 *           trips through memory; waves of rows repeat it. Few long rows, or many short ones, show nothing else.
 *
 * Constants are per operator and pass, since each is a program of its own; threads, vector width and passes are
 * PyTorch's (row_layout.c).
 *
 * Beside it: cross_entropy's loss walks its rows with a single block of 32 threads; the weight gradients of
 * normalisations walk down columns; embedding's gradient zeroes the table, then walks all rows in one pass (up to 3072
 * of them) or sorts.
 *
 * Leaves out: reductions over more than two axes, non-contiguous rows, kernels of newer libraries where they differ
 * from PyTorch's. */
#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/feature.h"
#include "kernel/gemm_tiles.h"
#include "kernel/kernel.h"
#include "kernel/priors_constants.h"
#include "kernel/row_constants.h"
#include "kernel/row_layout.h"
#include "kernel/traffic.h"

enum {
    LAUNCH = FT_THETA_LAUNCH_US,
    GAP = FT_THETA_GAP_US,
    EB,
    EB_GDDR,
    EB_AMD,
    ISSUE,
    ISSUE_ODD,
    START,
    TRIP,
    TRIP_ODD,
    CACHE_GAIN,
    WARM_SHARE,
    REPEAT_SHARE,
    AGAIN_SHARE,
    SMOOTH,
    LINE_NS,
    STAGE_US,
    SORT_US,
    LEAD_US,
    THETA_COUNT
};

static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_ROW_LAUNCH_US,
    [GAP] = FT_K_PRIORS_ROW_GAP_US,
    [EB] = FT_K_PRIORS_ROW_BANDWIDTH_EFFICIENCY,
    [EB_GDDR] = FT_K_PRIORS_ROW_GDDR,
    [EB_AMD] = FT_K_PRIORS_ROW_AMD,
    [ISSUE] = FT_K_PRIORS_ROW_INSTRUCTIONS,
    [ISSUE_ODD] = FT_K_PRIORS_ROW_INSTRUCTIONS_ODD,
    [START] = FT_K_PRIORS_ROW_START_CYCLES,
    [TRIP] = FT_K_PRIORS_ROW_TRIP_CYCLES,
    [TRIP_ODD] = FT_K_PRIORS_ROW_TRIP_ODD,
    [CACHE_GAIN] = FT_K_PRIORS_ROW_CACHE_GAIN,
    [WARM_SHARE] = FT_K_PRIORS_ROW_WARM_SHARE,
    [REPEAT_SHARE] = FT_K_PRIORS_ROW_REPEAT_SHARE,
    [AGAIN_SHARE] = FT_K_PRIORS_ROW_AGAIN_SHARE,
    [SMOOTH] = FT_K_PRIORS_ROW_SMOOTH,
    [LINE_NS] = FT_K_PRIORS_ROW_LINE_NS,
    [STAGE_US] = FT_K_PRIORS_ROW_STAGE_US,
    [SORT_US] = FT_K_PRIORS_ROW_SORT_US,
    [LEAD_US] = FT_K_PRIORS_ROW_LEAD_US,
};

enum { FORWARD, BACKWARD, PASSES };

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_ROW) return -1;
    int at = ft__row_op_find(op->name);
    if (at < 0 || at * PASSES >= FT_MAX_VARIANTS) return -1;
    return at * PASSES + (op->pass == FT_PASS_FWD ? FORWARD : BACKWARD);
}

static const char *variant_name(int v)
{
    return v % PASSES == FORWARD ? ft__row_ops[v / PASSES].name : ft__row_ops[v / PASSES].backward;
}

static int variant_fallback(int v) { return v % PASSES == BACKWARD ? v - BACKWARD : -1; }

static bool is(const ft_op *op, const char *name) { return !strcmp(op->name, name); }

/* Passes over the matrix beyond the compulsory ones, by kernels that PyTorch runs apart: softmax's gradient multiplies
 * output and gradient first, normalisations read both operands again for their weights, cross entropy stores the log
 * probabilities and, backwards, fills a matrix with zeros and reads it. */
static double more_passes(const ft_op *op)
{
    if (op->pass == FT_PASS_FWD) return is(op, "cross_entropy") ? 1 : 0;
    return is(op, "softmax") ? 3 : is(op, "layernorm") || is(op, "rmsnorm") || is(op, "cross_entropy") ? 2 : 0;
}

/* GA100, GH100 and Blackwell's large chips keep a copy of far data in each half of their cache. */
static double useful_cache(const ft_device *device)
{
    return device->l2_mib * 1048576 / fmax(device->l2_partitions, 1);
}

/* What an operator's gradient or loss runs beside its main kernel, in ms. */
static double beside(const ft_device *device, const ft_op *op, bool older, const double *th)
{
    double rows = (double)op->u.row.rows, cols = (double)op->u.row.cols;
    bool back = op->pass != FT_PASS_FWD;
    if (is(op, "cross_entropy") && !back) return rows * th[LINE_NS] * 1e-6;
    if (back && (is(op, "layernorm") || is(op, "rmsnorm"))) {
        /* Blocks of 32 columns walk down the rows, with threads beside each other; few columns, few blocks. Since
         * PyTorch 2.8 they are 1 to 32, each with eight rows at a time, and very many rows of few columns become sums
         * of parts, which another kernel adds up (LaunchGammaBetaBackwardCUDAKernel, layer_norm_kernel.cu). */
        double waves = fmax(1, cols / 32 / (device->sms * FT_K_ROW_COLUMN_BLOCKS));
        double abreast = rows < 64 ? 1 : rows < 128 ? 8 : rows < 256 ? 16 : 32;
        if (older) return rows * th[LINE_NS] * 1e-6 * waves;
        if (rows > 65536 && floor(cols / 32) < floor(device->sms / 2)) return th[STAGE_US] * 1e-3;
        return ceil(rows / (8 * abreast)) * 256 * th[LINE_NS] * 1e-6 * waves;
    }
    if (back && is(op, "embedding")) {
        if (rows > 3072) return th[SORT_US] * 1e-3 + rows * th[LINE_NS] * FT_K_ROW_SORTED_LINE;
        return rows * th[LINE_NS] * 1e-6 * fmax(1, cols / 32 / (device->sms * FT_K_ROW_COLUMN_BLOCKS));
    }
    if (is(op, "cumsum") && cols <= FT_K_ROW_SCAN_COLS && rows > FT_K_ROW_SCAN_ROWS)
        return rows * th[LINE_NS] * FT_K_ROW_SCAN_LINE; /* a path of its own */
    return 0;
}

static const char *const feature_names[] = {
    "log_time_over_start",
    "log_issue_over_memory",
    "log_chain_over_memory",
    "log_bytes_over_cache",
    "log_rows",
    "log_cols",
    "element_bytes",
    "align",
    "trips",
    "fill",
    "log_waves",
    "missed",
    "twos_cols",
    "log_rows_per_sm",
    "log_elements",
    "kernel",
    "device_timed",
};

static void physics(const ft_device *device, const ft_op *op, const double *th, bool want, ft_physics *out)
{
    bool eager = op->timing == FT_TIMING_OP;
    ft_row_layout g = ft__row_layout(device, op, out->older);
    double rows = (double)op->u.row.rows, cols = (double)op->u.row.cols;
    double e = ft_dtype_bytes(op->dtype), elements = rows * cols;
    double bytes = ft__op_bytes(op) + more_passes(op) * elements * e, l2 = device->l2_mib * 1048576;
    double eb = th[EB] * (device->memory_is_hbm ? 1 : th[EB_GDDR]) * ft__plain_memory(device) *
                (device->vendor == FT_VENDOR_AMD ? th[EB_AMD] : 1);
    double per_sm = fmax(1, fmin(32, floor(device->max_warps_per_sm * 32 / fmax(g.block, 32))));
    if (g.most > 0) per_sm = fmin(per_sm, g.most);
    double in_flight = fmin(rows, device->sms * per_sm * g.rows_each);
    double f = in_flight * cols * e / (th[AGAIN_SHARE] * useful_cache(device)), f4 = f * f * f * f;
    double missed = g.again > 0 ? f4 * f / (1 + f4 * f) : 0;
    ft_cache_state cache = {eager ? th[REPEAT_SHARE] : th[WARM_SHARE], th[CACHE_GAIN]};
    double memory = ft__traffic_ms(device, bytes, eb, cache) +
                    missed * g.again * elements * e / (eb * device->memory_gbps * 1e6);
    double both = op->pass == FT_PASS_FWD_BWD ? FT_K_ROW_BOTH_PASSES : 1;
    double issue = both * elements * th[ISSUE] * g.issue * (g.odd ? th[ISSUE_ODD] : 1) / ft__lane_rate(device);
    if (g.alone) issue *= ceil(g.blocks / device->sms) * device->sms / g.blocks; /* the others wait for the last */
    double waves = g.blocks / (device->sms * per_sm);
    double trip = g.trip * th[TRIP] * (g.odd ? th[TRIP_ODD] : 1);
    double chain = both * fmax(1, waves) * (g.start * th[START] + g.trips * trip) / (ft__running_mhz(device) * 1e3);
    double busy = fmax(issue, chain);
    out->compute_ms = busy;
    out->memory_ms = memory;
    out->body_ms = ft__smooth_max(busy, memory, th[SMOOTH]) + beside(device, op, out->older, th) +
                   (g.launches - 1) * th[LAUNCH] * 1e-3 + (g.kernel == FT_ROW_STAGED ? th[STAGE_US] * 1e-3 : 0) +
                   (eager ? th[LEAD_US] * 1e-3 : 0);
    bool view = is(op, "transpose_copy") && (op->u.row.rows == 1 || op->u.row.cols == 1);
    out->nothing = view;
    if (view) out->body_ms = FT_K_ROW_EMPTY_NODE_MS - th[LAUNCH] * 1e-3 * ft__clock_scale(device); /* no launch */
    out->tile_m = out->tile_n = out->split_k = 0;
    out->tiles = g.blocks;
    out->waves = waves;
    out->note = view ? "a transposed vector is itself: nothing runs" : NULL;
    if (!want) return;
    float *p = out->feature;
    *p++ = ft__lg(1 + fmax(out->body_ms, 0) * 1e3 / th[eager ? GAP : LAUNCH]);
    *p++ = ft__lg(issue / memory), *p++ = ft__lg(chain / memory);
    *p++ = ft__lg(bytes / l2), *p++ = ft__lg(rows), *p++ = ft__lg(cols);
    *p++ = (float)e, *p++ = (float)ft__gemm_alignment(op->u.row.cols, e);
    *p++ = (float)fmin(g.trips, 64), *p++ = (float)g.fill, *p++ = ft__lg(waves), *p++ = (float)missed;
    *p++ = ft__log2_divisor(op->u.row.cols, 10), *p++ = ft__lg(rows / device->sms), *p++ = ft__lg(elements),
    *p++ = (float)g.kernel, *p++ = (float)!eager;
}

const ft_family ft__row_family = {
    .name = "row",
    .parameters = parameters,
    .parameter_count = THETA_COUNT,
    .feature_names = feature_names,
    .feature_count = sizeof feature_names / sizeof *feature_names,
    .variant_count = FT_ROW_OPS * PASSES,
    .variant_of = variant_of,
    .variant_name = variant_name,
    .variant_fallback = variant_fallback,
    .physics = physics,
};
