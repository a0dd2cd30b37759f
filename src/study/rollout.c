/* rollout.c: generating answers before a step that trains on them.
 *
 * As TRL and verl do it with engines on the same GPUs, each of as many tensor ranks as train, or as many as are asked
 * for (TRL's vllm_tensor_parallel_size, verl's rollout.tensor_model_parallel_size): every engine has its part of the
 * answers; no more than it runs at once are decoded beside each other, wave after wave. A wave takes its prompts'
 * prefill and as many decode steps as an answer has tokens, each as long as one halfway through.
 *
 * Leaves out: answers that end early (a wave is as long as its longest), passing new weights to the engine, the
 * engine's memory, which sleeps while the step trains, and rewards. */
#include "study/rollout.h"

#include <math.h>

#include "study/rollout_constants.h"
#include "timeline/energy.h"

/* One forward pass of an engine that generates. */
typedef struct pass {
    ft_task task;
    int64_t tp, batch, seq;
} pass;

static ft_status forecast_pass(const ft_context *ft, ft_scratch *s, const ft_model_request *of, const pass *one,
                               double quantile, ft_rollout *out, ft_error *err)
{
    ft_model_request r = *of;
    ft_step step = {0};
    ft_step_view view = {.quantile = quantile};
    ft_graph *g = NULL;
    r.work = (ft_workload){.task = one->task,
                           .dtype = of->work.dtype,
                           .batch = one->batch,
                           .seq = one->seq,
                           .kv_dtype = ft__usual_kv_dtype(of->work.dtype, true),
                           .attention = FT_FLASH,
                           .execution = FT_RUN_CUDA_GRAPH,
                           .cache = FT_CACHE_PAGED,
                           .optimizer = FT_NO_OPTIMIZER,
                           .accumulate = 1,
                           .host = of->work.host};
    r.ask = one->task == FT_DECODE ? FT_ASK_DECODE : FT_ASK_PREFILL;
    r.parallel.tp = one->tp;
    r.parallel.dp = r.parallel.pp = r.parallel.vpp = r.parallel.cp = r.parallel.ep = 1;
    r.parallel.etp = 0;
    r.parallel.zero = 0;
    r.parallel.sp = false;
    r.parallel.schedule = FT_1F1B;
    r.cluster = NULL; /* the tensor ranks of one engine stand in one node */
    r.loader.given = false;
    FT_TRY(ft__scratch_empty(s, err));
    FT_TRY(ft__request_forecast(ft, s, &r, &view, &step, &g, err));
    *out = (ft_rollout){.ms = step.step_ms,
                        .low_ms = step.low_ms,
                        .high_ms = step.high_ms,
                        .joules = ft__step_joules(g, &step, r.device),
                        .tp = one->tp,
                        .fits = step.memory.fits};
    return FT_OK;
}

ft_status ft__rollout_by(const ft_context *ft, ft_scratch *s, const ft_model_request *r, const ft_engines *by,
                         double quantile, ft_rollout *out, ft_error *err)
{
    const ft_workload *w = &r->work;
    if (by->gpus % by->tp)
        return ft__fail_at(err, FT_E_RANGE, "rollout_tp", 0, 0,
                           "\"rollout_tp\" %lld does not divide the %lld GPUs into engines", (long long)by->tp,
                           (long long)by->gpus);
    const double engines = (double)(by->gpus / by->tp), answers = ceil(by->answers / engines);
    const double waves = ceil(answers / FT_K_ROLLOUT_AT_ONCE), tokens = (double)w->rollout_tokens;
    const int64_t prompt = w->seq - w->rollout_tokens, batch = (int64_t)ceil(answers / waves);
    const int64_t portion = (int64_t)fmax(floor(FT_K_ROLLOUT_PREFILL_TOKENS / (double)prompt), 1);
    const int64_t once = batch < portion ? batch : portion;
    const double portions = ceil((double)batch / (double)once);
    const pass prefill = {FT_PREFILL, by->tp, once, prompt};
    const pass decode = {FT_DECODE, by->tp, batch, prompt + w->rollout_tokens / 2}; /* half an answer is there */
    ft_rollout fill, each;
    FT_TRY(forecast_pass(ft, s, r, &prefill, quantile, &fill, err));
    FT_TRY(forecast_pass(ft, s, r, &decode, quantile, &each, err));
    out->ms = waves * (portions * fill.ms + tokens * each.ms);
    out->low_ms = waves * (portions * fill.low_ms + tokens * each.low_ms);
    out->high_ms = waves * (portions * fill.high_ms + tokens * each.high_ms);
    out->joules = waves * (portions * fill.joules + tokens * each.joules);
    out->tp = by->tp;
    out->fits = fill.fits && each.fits;
    return FT_OK;
}

ft_status ft__rollout_of(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile,
                         ft_rollout *out, ft_error *err)
{
    const ft_workload *w = &r->work;
    const ft_parallel *p = &r->parallel;
    const ft_engines by = {.tp = w->rollout_tp > 0 ? w->rollout_tp : p->tp,
                           .gpus = p->dp * p->tp * p->pp * p->cp,
                           .answers = (double)w->batch * fmax((double)w->accumulate, 1) * (double)p->dp};
    *out = (ft_rollout){0};
    if (w->rollout_tokens < 1 || w->task != FT_TRAIN || r->ask == FT_ASK_MEMORY) return FT_OK;
    return ft__rollout_by(ft, s, r, &by, quantile, out, err);
}

void ft__rollout_apply(const ft_rollout *rollout, ft_step *step)
{
    if (!(rollout->ms > 0) || !(step->step_ms > 0)) return;
    const double before = step->step_ms, longer = (before + rollout->ms) / before;
    step->rollout_ms = rollout->ms;
    step->rollout_joules = rollout->joules;
    step->step_ms += rollout->ms;
    step->low_ms += rollout->low_ms;
    step->high_ms += rollout->high_ms;
    step->busy_ms += rollout->ms;
    step->tokens_per_s /= longer;
    step->model_tflops /= longer;
    step->mfu /= longer;
    step->hfu /= longer;
    for (int i = 0; i < 4; i++) step->regime[i] /= longer;
    step->regime[FT_BOUND_MEMORY] += rollout->ms / step->step_ms; /* decoding reads weights and the cache */
    for (int i = 0; i < 4; i++)
        if (step->regime[i] > step->regime[step->bound]) step->bound = (ft_bound)i;
}
