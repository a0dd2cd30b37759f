/* One operator through the expert closest in kinship: physics, correction, interval. */
#include "kernel/expert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/calibration.h"
#include "kernel/expert_constants.h"
#include "kernel/kernel.h"
#include "kernel/power.h"
#include "kernel/reference.h"
#include "kernel/skinny.h"

/* One eager call between two events: the host spends `gap` on the whole call and reaches the launch about half-way. The
 * second event is stamped when the host gets to it or when the kernel ends, whichever is later: max(gap, lead +
 * device). NeuSight's pointwise operators show just that on every GPU: flat up to a kink, then the kernel's time plus
 * 0.4 to 0.5 of the flat value however long the kernel is. (A p-norm of the two, the law we had before, lets the lead
 * of long kernels vanish and rounds the kink: 9 % off at it, 2 to 4 % at ten times the gap.) */
double ft__op_time(double device_ms, double gap_ms)
{
    double late = device_ms + FT_K_EXPERT_CALL_LEAD * gap_ms, high = fmax(late, gap_ms), r = fmin(late, gap_ms) / high;
    double r2 = r * r, r4 = r2 * r2;
    return high * (1 + FT_K_EXPERT_CALL_KINK * r4 * r4);
}

/* What no operator that passes ft__op_check takes on any device. */
#define LONGEST_MS 1e30
/* Neither a correction nor an interval is a factor beyond 400: no fit makes one, a damaged file might. */
#define MOST_LOG 6.0

/* No interval is wider than a factor of four to either side. Up to half of that nothing changes; beyond, a wider spread
 * still gives a wider interval. */
static double bounded(double width)
{
    double x = fmin(width, 60) / FT_K_EXPERT_WIDEST_LOG, square = x * x;
    return width > 0 ? x * FT_K_EXPERT_WIDEST_LOG / sqrt(sqrt(1 + square * square)) : 0;
}

static double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }

static double at_quantile(const float *spread, double quantile)
{
    const double *level = ft__quantile_levels;
    if (quantile <= level[0]) return (double)spread[0] * quantile / level[0];
    for (int i = 1; i < FT_QUANTILES; i++)
        if (quantile <= level[i]) {
            double t = (quantile - level[i - 1]) / (level[i] - level[i - 1]);
            return (double)spread[i - 1] * (1 - t) + (double)spread[i] * t;
        }
    return (double)spread[FT_QUANTILES - 1];
}

/* Figures that nothing was fitted to: as wide as they were off on their GPU, wider elsewhere, at other levels as the
 * expert's errors are. */
static double own_width(const ft_expert *expert, double spread, ft_kinship kinship, double quantile)
{
    double nine = at_quantile(expert->spread_high[kinship], 1 - 0.1),
           at = at_quantile(expert->spread_high[kinship], quantile);
    return spread * (kinship == FT_KIN_SELF ? 1 : FT_K_EXPERT_ELSEWHERE) * (nine > 0 ? at / nine : 1);
}

void ft__forecast_begin(const ft_device *device, const ft_op *op, ft_forecast *out)
{
    memset(out, 0, sizeof *out);
    out->kin = out->family = "";
    out->flops = ft__op_flops(op);
    out->bytes = ft__op_bytes(op);
    out->intensity = out->bytes > 0 ? out->flops / out->bytes : 0;
    out->roofline_ms = ft__roofline_ms(device, op);
}

/* What trees learned of kernels at their units' own rate says nothing of units that are held below it: there the parts
 * that they correct are hidden. */
static bool of_capped_units(const ft_device *device, const ft_op *op)
{
    bool product = op->kind == FT_OP_GEMM || op->kind == FT_OP_ATTENTION || op->kind == FT_OP_CONV2D ||
                   op->kind == FT_OP_MOE || op->kind == FT_OP_MLA;
    return product && ft__matrix_cap(device, op->dtype) < 1;
}

/* One operator on its way to a forecast: who answers for it, and what physics says. */
typedef struct asked_op {
    const ft_predictor *p;
    const ft_device *device;
    ft_op op;
    double quantile;
    const ft_family *family; /* NULL: none */
    int variant;
    const ft_expert *expert; /* NULL: nobody was fitted */
    ft_kinship kinship;
    bool untaught;      /* nothing that its trees learned holds here */
    const double *lent; /* constants of the nearest GPU, for one that nobody measured; NULL: the expert's own */
    double copied[FT_MAX_THETA]; /* those, with what is not known of this variant */
    ft_physics ph;
    bool own;                 /* figures that nothing was fitted to */
    double launch_ms, all_ms; /* before it is corrected */
} asked_op;

static void find_expert(asked_op *a)
{
    a->variant = -1;
    a->family = ft__family_of(&a->op, &a->variant);
    a->kinship = FT_KIN_WORLD;
    if (a->family && a->p->mode == FT_PREDICT_LEARNED)
        a->expert = ft__predictor_expert(a->p, a->family, a->variant, a->device, &a->kinship);
    /* A request that does not say how its low-precision operands arrive means what the GPU's own rows meant, and
     * elsewhere what engines do: quantise the activations on the way. */
    if (a->op.kind == FT_OP_GEMM && a->op.u.gemm.quantized < 0)
        a->op.u.gemm.quantized = !a->expert ||
                                 (a->kinship == FT_KIN_SELF && (a->expert->flags & FT_EXPERT_BARE_OPERANDS));
}

/* False: constants of a made-up file, which make no time. */
static bool find_physics(asked_op *a)
{
    a->untaught = a->kinship != FT_KIN_SELF && of_capped_units(a->device, &a->op) &&
                  !ft__calibrated_of(a->p, a->expert);
    if (a->untaught && a->kinship == FT_KIN_SIBLING) {
        ft_device stranger =
            *a->device; /* of no generation: the world's constants, and intervals of whom nobody measured */
        stranger.generation[0] = '\0';
        a->expert = ft__predictor_expert(a->p, a->family, a->variant, &stranger, &a->kinship);
    }
    if (a->kinship == FT_KIN_WORLD) a->lent = ft__predictor_lent(a->p, a->family, a->variant, a->device);
    if (a->lent && a->family->lend) {
        memcpy(a->copied, a->lent, sizeof a->copied);
        a->family->lend(a->copied);
        a->lent = a->copied;
    }
    a->ph.older = a->expert->flags & FT_EXPERT_OLDER;
    a->family->physics(a->device, &a->op, a->lent ? a->lent : a->expert->theta, true, &a->ph);
    for (int i = a->family->feature_count; i < FT_MAX_FEATURES; i++) a->ph.feature[i] = 0;
    a->own = a->ph.spread > 0;
    a->launch_ms = a->expert->theta[FT_THETA_LAUNCH_US] * 1e-3 * ft__clock_scale(a->device);
    double device_ms = a->launch_ms + a->ph.body_ms;
    if (!(device_ms < LONGEST_MS)) return false; /* also not a number */
    a->all_ms = a->op.timing == FT_TIMING_OP ? ft__op_time(device_ms, a->expert->theta[FT_THETA_GAP_US] * 1e-3)
                                             : device_ms;
    return true;
}

/* What an expert's trees say of one case: those of a calibration, or of the predictor. */
typedef struct asked_trees {
    const ft_tree *calibrated; /* NULL: the predictor's */
    const ft_forests *forests;
    uint32_t key[FT_MAX_FEATURES];
    uint8_t rank[FT_MAX_FEATURES];
} asked_trees;

static void ask_trees(const asked_op *a, const ft_calibrated *measured, asked_trees *out)
{
    const ft_expert *e = a->expert;
    out->forests = &a->p->trees;
    out->calibrated = measured && !ft__inherited(measured) ? a->p->calibration->file.trees : NULL;
    memset(out->key, 0, sizeof out->key);
    for (int i = 0; i < a->family->feature_count; i++) out->key[i] = ft__feature_key(a->ph.feature[i]);
    if (!out->calibrated && (e->tree_count || e->sigma_count))
        ft__forest_ranks(out->forests, e->sigma_count ? e->sigma_first : e->tree_first, out->key, out->rank);
}

static double sum_of(const asked_trees *t, uint32_t first, uint32_t count)
{
    if (t->calibrated) return ft__trees_sum(t->calibrated + first, count, t->key);
    return ft__forest_sum(t->forests, first, count, t->rank);
}

/* What the expert learned: how far physics is off, as a logarithm, and how wide errors lie about that. */
static void correct(const asked_op *a, double *correction, double *scale)
{
    const ft_expert *expert = a->expert;
    const ft_calibrated *measured = ft__calibrated_of(a->p, expert);
    asked_trees trees;
    ask_trees(a, measured, &trees);
    *correction = a->untaught || a->own ? 0 : (double)expert->bias[a->kinship];
    if (expert->weight[a->kinship] > 0 && !a->untaught && !a->lent && !a->own)
        *correction += (double)expert->weight[a->kinship] * sum_of(&trees, expert->tree_first, expert->tree_count);
    if (!a->own && measured && measured->process.blocks)
        *correction += ft__process_mean(&measured->process, a->p->calibration->file.values, a->ph.feature);
    double log_scale = (double)expert->sigma_base;
    if (expert->sigma_count) log_scale += sum_of(&trees, expert->sigma_first, expert->sigma_count);
    /* Wider where the operator lies outside of what was measured. */
    double stretch = a->own ? 0 : ft__expert_stretch(expert, a->ph.feature, a->family->feature_count);
    *scale = exp(clamp(log_scale, -12, 6)) * (1 + fmin(stretch, FT_K_EXPERT_MOST_STRETCH));
}

static void fill_interval(const asked_op *a, double scale, double floor_ms, ft_forecast *out)
{
    double below = scale * at_quantile(a->expert->spread_low[a->kinship], a->quantile),
           above = scale * at_quantile(a->expert->spread_high[a->kinship], a->quantile);
    if (a->own) below = above = own_width(a->expert, a->ph.spread, a->kinship, a->quantile);
    out->low_ms = fmax(out->ms * exp(-bounded(below)), fmin(floor_ms, out->ms));
    out->high_ms = out->ms * exp(bounded(above));
}

/* Whom the figures come from, what holds the kernel, and how it runs. `streams`: no tile of the search does. */
static void describe(const asked_op *a, bool streams, ft_forecast *out)
{
    const ft_calibrated *measured = ft__calibrated_of(a->p, a->expert);
    const ft_physics *ph = &a->ph;
    const char *note = ph->note;
    bool calibrated = measured && !ft__inherited(measured), self = a->kinship == FT_KIN_SELF;
    out->source = a->own                         ? FT_SOURCE_PHYSICS
                  : calibrated && self           ? FT_SOURCE_CALIBRATED
                  : self                         ? FT_SOURCE_LEARNED
                  : a->kinship == FT_KIN_SIBLING ? FT_SOURCE_SIBLING
                                                 : FT_SOURCE_PHYSICS;
    out->kin = a->own || a->expert->gpu[0] == '*' ? "" : a->expert->gpu;
    out->bound = a->all_ms - ph->body_ms > ph->body_ms ? FT_BOUND_OVERHEAD
                 : ph->compute_ms >= ph->memory_ms     ? FT_BOUND_COMPUTE
                                                       : FT_BOUND_MEMORY;
    out->tile_m = ph->tile_m;
    out->tile_n = ph->tile_n;
    out->split_k = ph->split_k;
    out->tiles = ph->tiles;
    out->waves = ph->waves;
    if (streams) {
        out->bound = FT_BOUND_MEMORY;
        out->tile_m = out->tile_n = out->split_k = 0;
        out->tiles = out->waves = 0;
        note = "a few rows: the matrix streams, at a share of the bandwidth that was measured on another GPU";
    }
    bool quantises = a->op.kind == FT_OP_GEMM && a->op.u.gemm.quantized == 0 && ft_dtype_bytes(a->op.dtype) < 2;
    if (!note && quantises) note = "includes quantising the activations (\"quantized\": true leaves it out)";
    if (note) snprintf(out->note, sizeof out->note, "%s", note);
}

/* `*as_timed`: the expert's rows were timed the way this operator asks for. */
static ft_status forecast_as_asked(const ft_predictor *p, const ft_device *device, const ft_op *asked, double quantile,
                                   bool *as_timed, ft_forecast *out, ft_error *err)
{
    asked_op a = {.p = p, .device = device, .op = *asked, .quantile = quantile};
    const ft_op *op = &a.op;
    double correction, scale;
    *as_timed = true;
    find_expert(&a);
    ft__forecast_begin(device, op, out);
    if (a.family) out->family = a.family->name;
    if (p->mode == FT_PREDICT_LINEAR && a.family &&
        ft__linear_forecast(p, a.family, a.variant, device, op, quantile, out))
        return FT_OK;
    if (p->mode == FT_PREDICT_SCALING) return ft__scaling_forecast(p, device, op, quantile, out, err);
    if (!a.expert || !find_physics(&a)) {
        ft__roofline_forecast(device, op, quantile, p->mode == FT_PREDICT_ROOFLINE, out);
        return FT_OK;
    }
    correct(&a, &correction, &scale);
    double floor_ms = a.ph.nothing ? 0 : fmax(ft__floor_ms(device, op), FT_K_EXPERT_SHORTEST_MS);
    double skinny = ft__skinny_ms(device, op, a.expert, a.kinship);
    if (op->timing == FT_TIMING_OP && isfinite(skinny))
        skinny = ft__op_time(skinny, a.expert->theta[FT_THETA_GAP_US] * 1e-3);
    double corrected = a.all_ms * exp(clamp(correction, -MOST_LOG, MOST_LOG));
    out->ms = fmax(fmin(corrected, skinny), floor_ms);
    fill_interval(&a, scale, floor_ms, out);
    bool eager = a.expert->flags & FT_EXPERT_EAGER;
    *as_timed = op->timing == FT_TIMING_OP ? eager : !eager || (a.expert->flags & FT_EXPERT_DEVICE);
    out->launch_ms = fmin(a.launch_ms, out->ms);
    out->sustained_ms = out->ms * fmax(1, ft__power_draw(device, op, out->flops, out->ms));
    describe(&a, skinny < corrected, out);
    return FT_OK;
}

/* A calibrated variant was measured as kernels, and so was its correction; a call is such a kernel behind the gap that
 * was measured beside. False: answered otherwise. */
static bool forecast_call(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                          ft_forecast *out, ft_status *status, ft_error *err)
{
    int variant;
    ft_kinship kinship;
    const ft_family *family = p->calibration && p->mode == FT_PREDICT_LEARNED ? ft__family_of(op, &variant) : NULL;
    const ft_expert *expert = family ? ft__predictor_expert(p, family, variant, device, &kinship) : NULL;
    const ft_calibrated *measured = expert ? ft__calibrated_of(p, expert) : NULL;
    if (!measured || ft__inherited(measured) || (expert->flags & FT_EXPERT_EAGER)) return false;
    ft_op kernel = *op;
    bool as_timed;
    kernel.timing = FT_TIMING_DEVICE;
    *status = forecast_as_asked(p, device, &kernel, quantile, &as_timed, out, err);
    if (*status != FT_OK) return true;
    double gap = expert->theta[FT_THETA_GAP_US] * 1e-3, kernel_ms = out->ms;
    out->ms = ft__op_time(kernel_ms, gap);
    out->low_ms = fmin(ft__op_time(out->low_ms, gap), out->ms);
    out->high_ms = fmax(ft__op_time(out->high_ms, gap), out->ms);
    out->sustained_ms = fmax(out->ms, ft__op_time(out->sustained_ms, gap));
    if (out->ms - kernel_ms > kernel_ms) out->bound = FT_BOUND_OVERHEAD;
    return true;
}

/* One call never takes less time than its kernel. Where trees were fitted to one way of timing, the other is asked for
 * and the two contradict each other, the one that was measured stands. Where both were measured (calls alone, kernels
 * inside models, on a board in another state) each stands by itself. */
ft_status ft__expert_forecast(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                              ft_forecast *out, ft_error *err)
{
    bool as_timed, call = op->timing == FT_TIMING_OP;
    ft_status status;
    if (call && forecast_call(p, device, op, quantile, out, &status, err)) return status;
    FT_TRY(forecast_as_asked(p, device, op, quantile, &as_timed, out, err));
    if (as_timed) return FT_OK;
    ft_op other = *op;
    ft_forecast f;
    other.timing = call ? FT_TIMING_DEVICE : FT_TIMING_OP;
    FT_TRY(forecast_as_asked(p, device, &other, quantile, &as_timed, &f, err));
    if (call ? f.ms <= out->ms : f.ms >= out->ms) return FT_OK;
    out->sustained_ms *= f.ms / out->ms;
    out->ms = f.ms;
    out->launch_ms = fmin(out->launch_ms, f.ms);
    out->low_ms = fmin(out->low_ms, f.low_ms);
    out->high_ms = fmax(out->high_ms, f.high_ms);
    return FT_OK;
}
