/* advise.c: a request is forecast again with something changed, in a second arena, so that the step it is
 * compared with stays. */
#include <string.h>

#include "study/step.h"

#include "device/gpu.h"
#include "study/gpus_constants.h"
#include "study/rollout.h"

typedef struct other_requests {
    const ft_context *ft;
    ft_scratch *scratch;
    const ft_model_request *request;
    double quantile;
} other_requests;

/* What is generated before the step, without a trace of it in the arena that the step itself is kept in. */
static ft_status rolled_aside(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile,
                              ft_rollout *out, ft_error *err)
{
    ft_arena *own = s->arena;
    s->arena = s->trials;
    ft_status status = ft__rollout_of(ft, s, r, quantile, out, err);
    s->arena = own;
    ft__arena_reset(s->trials);
    return status;
}

/* Where lengths vary it is the longest batch that must fit. */
static ft_status hold_longest(const other_requests *o, const ft_model_request *of, ft_step *step, ft_error *err)
{
    ft_model_request r = *of;
    ft_step longest;
    ft_step_view view = {.quantile = o->quantile};
    ft_graph *g = NULL;
    r.work.seq = r.longest;
    FT_TRY(ft__request_forecast(o->ft, o->scratch, &r, &view, &longest, &g, err));
    step->memory = longest.memory;
    if (!step->memory.remedy) step->memory.remedy = "";
    return FT_OK;
}

static ft_status forecast_changed(const ft_change *change, void *user, ft_reforecast_step *out, ft_error *err)
{
    other_requests *o = user;
    ft_scratch *s = o->scratch;
    ft_model_request r = *o->request;
    ft_graph *g = NULL;
    ft_step_view view = {.quantile = o->quantile};
    r.arch = change->arch;
    r.work = change->work;
    r.work.verdict_alone = true;
    r.parallel = change->parallel;
    r.device = change->device;
    r.loader = change->loader;
    FT_TRY(ft__model_request_check(&r, err));
    ft_arena *own = s->arena;
    ft_rollout rollout;
    FT_TRY(rolled_aside(o->ft, s, &r, o->quantile, &rollout, err));
    s->arena = s->trials;
    ft_status status = ft__request_forecast(o->ft, s, &r, &view, &out->step, &g, err);
    if (status == FT_OK && r.longest > r.work.seq) status = hold_longest(o, &r, &out->step, err);
    s->arena = own;
    if (status == FT_OK) ft__rollout_apply(&rollout, &out->step);
    out->graph = g;
    out->loading = view.loading;
    /* A change that makes the step too large to forecast is none that helps. */
    if (status == FT_E_MEMORY && ft__arena_full(s->trials))
        return ft__fail(err, FT_E_RANGE, "the changed step is too large to forecast");
    return status;
}

static ft_status forecast_kernel(const ft_op *op, void *user, ft_forecast *out, ft_error *err)
{
    const other_requests *o = user;
    return ft__memo_forecast(o->scratch->memo, ft__context_predictor(o->ft), o->request->device, op, o->quantile, out,
                             err);
}

/* -- other GPUs -------------------------------------------------------------------------------- */

enum { MOST_GPUS = 2 };

/* How much faster by the spec sheet, with the step's own shares of arithmetic and memory. */
static double promise(const ft_step *step, const ft_device *now, const ft_device *other, ft_dtype dtype)
{
    double peak = other->peak_tflops[dtype], had = now->peak_tflops[dtype];
    if (!(peak > 0) || !(had > 0) || !(other->memory_gbps > 0)) return 0;
    double rest = 1 - step->regime[FT_BOUND_COMPUTE] - step->regime[FT_BOUND_MEMORY];
    return 1 / (step->regime[FT_BOUND_COMPUTE] * had / peak +
                step->regime[FT_BOUND_MEMORY] * now->memory_gbps / other->memory_gbps + (rest > 0 ? rest : 0));
}

/* The most promising GPUs of the same maker that hold it and are joined as well. */
static ft_status other_gpus(const ft_context *ft, const ft_model_request *r, const ft_step *step, ft_arena *arena,
                            const ft_device **out, size_t *count, ft_error *err)
{
    double best[MOST_GPUS] = {0};
    *count = 0;
    for (size_t i = 0; i < ft__context_device_count(ft); i++) {
        if (!ft__catalogue_follows(i, r->device)) continue;
        ft_device *d = ft__arena_alloc(arena, sizeof *d);
        if (!d) return ft__no_memory(err);
        if (ft__context_device_at(ft, i, d, err) != FT_OK) continue;
        if (step->ranks > 1 && d->link_gbps_per_direction < r->device->link_gbps_per_direction) continue;
        double faster = promise(step, r->device, d, r->work.dtype);
        if (faster < FT_K_GPUS_FASTER) continue;
        size_t at = 0;
        while (at < *count && best[at] >= faster) at++;
        if (at >= MOST_GPUS) continue;
        size_t last = *count < MOST_GPUS ? (*count)++ : MOST_GPUS - 1;
        for (; last > at; last--) best[last] = best[last - 1], out[last] = out[last - 1];
        best[at] = faster;
        out[at] = d;
    }
    return FT_OK;
}

/* A simulation is not run thirty times: savings are differences between two steps whose exchanges are closed forms, the
 * verdicts those of the step that was simulated. */
static ft_status restore_verdicts(const ft_step_view *view, const ft_change *now, const ft_step *base, ft_arena *arena,
                                  ft_advised *advised, ft_error *err)
{
    ft_verdicts closed = advised->verdicts;
    FT_TRY(ft__verdicts_of(now, view->graph, view->step, arena, &advised->verdicts, err));
    advised->verdicts.doubled_batch = closed.doubled_batch;
    advised->verdicts.doubled_ms = closed.doubled_ms * view->step->step_ms / base->step_ms;
    advised->closed_forms = true;
    return FT_OK;
}

ft_status ft__step_advise(const ft_context *ft, ft_scratch *s, const ft_model_request *r, ft_step_view *view,
                          ft_error *err)
{
    bool asked = (r->advice || r->techniques) && r->ask != FT_ASK_MEMORY;
    if (!asked && !r->loader.given) return FT_OK;
    ft_change *now = ft__arena_alloc(s->arena, sizeof *now);
    if (!now) return ft__no_memory(err);
    *now = (ft_change){r->arch,   r->work,         r->parallel,    r->device,
                       r->loader, r->global_batch, r->zero_raised, r->kv_given};
    if (now->work.accumulate < 1) now->work.accumulate = 1;
    view->asked = now;
    if (!asked) return FT_OK;
    if (!s->trials) s->trials = ft__arena_new((size_t)512 << 20);
    ft_advised *advised = ft__arena_alloc(s->arena, sizeof *advised);
    if (!s->trials || !advised) return ft__no_memory(err);
    const ft_device *gpus[MOST_GPUS];
    size_t gpu_count;
    FT_TRY(other_gpus(ft, r, view->step, s->arena, gpus, &gpu_count, err));
    ft_model_request plain = *r;
    const ft_step *base = view->step;
    ft_graph *graph = NULL;
    plain.closed_forms = view->cluster && view->cluster->simulated;
    if (plain.closed_forms) {
        ft_step *closed = ft__arena_alloc(s->arena, sizeof *closed);
        ft_step_view aside = {.quantile = view->quantile};
        if (!closed) return ft__no_memory(err);
        ft_rollout rollout;
        FT_TRY(rolled_aside(ft, s, &plain, view->quantile, &rollout, err));
        FT_TRY(ft__request_forecast(ft, s, &plain, &aside, closed, &graph, err));
        ft__rollout_apply(&rollout, closed);
        base = closed;
    }
    other_requests others = {ft, s, &plain, view->quantile};
    ft_advice_case c = {.now = now,
                        .step = base,
                        .graph = graph ? graph : view->graph,
                        .loading = view->loading,
                        .again = forecast_changed,
                        .user = &others,
                        .probe = {forecast_kernel, &others},
                        .gpus = gpus,
                        .gpu_count = gpu_count,
                        .techniques = r->techniques,
                        .quantile = view->quantile};
    FT_TRY(ft__advise(&c, s->arena, advised, err));
    if (plain.closed_forms) FT_TRY(restore_verdicts(view, now, base, s->arena, advised, err));
    view->advised = advised;
    return FT_OK;
}
