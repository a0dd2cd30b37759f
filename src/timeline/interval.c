/* interval.c: how far from its forecast a step may end: by its kernels' errors, by software that was not said, by the
 * host. */
#include "timeline/interval.h"

#include <math.h>

#include "kernel/attention_library.h"
#include "kernel/power.h"
#include "model/pytorch.h"
#include "model/stack.h"
#include "timeline/interval_constants.h"
#include "timeline/ported.h"

double ft__interval_level(double quantile)
{
    const struct ft__k_interval_levels *at = ft__k_interval_levels;
    const int count = FT_K_INTERVAL_LEVELS_COUNT;
    for (int i = 1; i < count; i++)
        if (quantile <= at[i].share)
            return at[i - 1].width +
                   (at[i].width - at[i - 1].width) * (quantile - at[i - 1].share) / (at[i].share - at[i - 1].share);
    return at[count - 1].width;
}

double ft__interval_below(double share) { return fmin(share, FT_K_INTERVAL_BELOW); }
double ft__interval_least(double ms) { return FT_K_INTERVAL_LEAST * ms; }

/* How much sooner a step may end whose compiled attention is given a mask, as transformers' is: whether other software
 * would call it causal instead is not known where no stack is named. */
static double without_masks(const ft_graph *g, const ft_workload *work, const ft_device *device)
{
    if (work->stack || work->attention != FT_SDPA || work->execution != FT_RUN_COMPILE) return 0;
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].op.kind == FT_OP_ATTENTION && g->nodes[i].manner & FT_MANNER_MASK)
            return ft__library_of_mask(device, &g->nodes[i].op) == FT_LIBRARY_XFORMERS
                       ? FT_K_INTERVAL_IN_MASKS_EFFICIENT
                       : FT_K_INTERVAL_IN_MASKS;
    return 0;
}

/* Of fused kernels that name no stack NVIDIA's recipes or the layers of before them are forecast; what ran is not
 * known. */
static bool software_unsaid(const ft_workload *work)
{
    if (work->stack || work->task != FT_TRAIN) return false;
    const ft_stack *stack = ft__stack(work);
    return stack == ft__default_stacks[FT_STACK_FOR_FUSED] ||
           stack == ft__default_stacks[FT_STACK_FOR_FUSED_BEFORE_FP8] || stack->ported_engine;
}

/* PyTorch's own kernels were made for NVIDIA's GPUs, and for AMD's step by step: by how much each step gained is mostly
 * unpublished. */
static double untuned(const ft_workload *work, const ft_device *device)
{
    if (device->vendor != FT_VENDOR_AMD || !ft__pytorch_decides(work)) return 0;
    if (!ft__pytorch(work)) return FT_K_INTERVAL_UNTUNED_UNSAID;
    return ft__pytorch(work)->rocm_tuned ? 0 : FT_K_INTERVAL_UNTUNED_LATER;
}

/* What is not known of a step beside its kernels' own errors, as shares of it at 0.9. */
typedef struct widths {
    double kernels;       /* in a model, or fused by a compiler */
    double sooner, later; /* software that was not said */
    double held;          /* a board that its limit holds far below its clock */
    double untuned;       /* kernels that were made for other GPUs */
    double hosts;
} widths;

static widths widths_of(const ft_run *t)
{
    const ft_workload *work = t->work;
    const bool compiled = work->execution == FT_RUN_COMPILE || work->execution == FT_RUN_CUDA_GRAPH;
    const bool unsaid = software_unsaid(work);
    const double masks = without_masks(t->g, work, t->device);
    const double hosts = ft__host_interval(&t->host);
    widths w = {.kernels = compiled ? FT_K_INTERVAL_IN_FUSION : FT_K_INTERVAL_IN_MODEL};
    if (unsaid)
        w.later = FT_K_INTERVAL_SOFTWARE_LATER;
    else if (work->causal_by_name)
        w.later = FT_K_INTERVAL_IN_MASKS_EFFICIENT; /* a mask may have been passed */
    if (masks > 0)
        w.sooner = masks;
    else if (unsaid)
        w.sooner = fmax(FT_K_INTERVAL_SOFTWARE_SOONER, ft__ported_sooner(work));
    if (ft__power_share(t->device) < FT_K_INTERVAL_HELD_SHARE) w.held = FT_K_INTERVAL_HELD_LATER;
    w.untuned = untuned(work, t->device);
    w.hosts = t->g->site_count ? hypot(hosts, FT_K_INTERVAL_IN_CODE) /* a model's own Python, where nobody timed it */
                               : hosts;
    return w;
}

/* Walks again with errors of the kernels and of the host at their ends, and with both half-way there (in variance): a
 * step that host and GPU take equally long for gets no faster by one of them alone. */
void ft__step_interval(const ft_run *t, double below, double above, ft_step *out)
{
    const widths w = widths_of(t);
    const double busy = fmax(out->busy_ms, 1e-9), level = ft__interval_level(t->quantile);
    const double faster = ft__interval_below(hypot(below / busy, hypot(w.kernels, w.sooner) * level));
    ft_pace pace = *out->pace;
    pace.gpu_scale = 1 - faster;
    below = out->step_ms - ft__stream_walk(t->g, &pace).total;
    pace.gpu_scale = 1 + hypot(above / busy, hypot(w.kernels, hypot(w.later, hypot(w.held, w.untuned))) * level);
    above = ft__stream_walk(t->g, &pace).total - out->step_ms;
    pace.gpu_scale = 1;
    if (out->host_ms > 0) {
        pace.host_scale = 1 / (1 + w.hosts * level);
        below = hypot(below, out->step_ms - ft__stream_walk(t->g, &pace).total);
        pace.host_scale = 1 + w.hosts * level;
        above = hypot(above, ft__stream_walk(t->g, &pace).total - out->step_ms);
        pace.gpu_scale = 1 - faster * sqrt(0.5);
        pace.host_scale = 1 / (1 + w.hosts * level * sqrt(0.5));
        below = fmax(below, out->step_ms - ft__stream_walk(t->g, &pace).total);
    }
    out->low_ms = fmax(out->step_ms - below, ft__interval_least(out->step_ms));
    out->high_ms = out->step_ms + above;
}
