/* rollout.c: generating answers before a step that trains on them.
 *
 * As TRL and verl do it with engines on the same GPUs, each of as many tensor ranks as train, or as many as are asked
 * for (TRL's vllm_tensor_parallel_size, verl's rollout.tensor_model_parallel_size): every engine has its part of the
 * answers; no more than it runs at once are decoded beside each other, and those take turns for which its part of the
 * memory has no room.
 *
 * Answers of one length are decoded in waves: each takes its prompts' prefill and as many decode steps as an answer has
 * tokens, each as long as one halfway through.
 *
 * Where they vary, a place that is free takes the next answer, and the step waits for the longest: places are full
 * until no answer is left to start, then fewer and fewer decode. Lengths are lognormal with the mean that is said, as
 * wide as makes the longest of all answers as long as it is said, and cut off there. The time of a decode step is
 * forecast where the number of answers that still run falls to a few shares of the first, with the cache as long as it
 * then is, and taken to be straight in between.
 *
 * Before that the engines get the new weights (handover.c).
 *
 * On GPUs of its own an engine lets those that train wait, for all of it or, where it generates for the next step
 * meanwhile, for what it takes longer; new weights are waited for by all. Where answers may be older than a step, so
 * many steps' are generated together, and of the time each has its part: the longest is waited for once.
 *
 * Leaves out: reading answers again that were put back for want of room, rewards, what GPUs of its own draw, and
 * engines that go on with old answers while new weights arrive. */
#include "study/rollout.h"

#include <math.h>

#include "comm/cluster.h"
#include "model/lengths.h"
#include "study/answer_lengths.h"
#include "study/handover.h"
#include "study/rollout_constants.h"
#include "timeline/energy.h"

enum { US_PER_MS = 1000, GIB = 1 << 30 };

/* One forward pass of an engine that generates. */
typedef struct pass {
    ft_task task;
    int64_t tp, batch, seq;
} pass;

/* Where things are asked for. */
typedef struct asking {
    const ft_context *ft;
    ft_scratch *s;
    const ft_model_request *of;
    double quantile;
    ft_error *err;
    int64_t inside; /* GPUs of a node */
    /* Of the pass forecast last: its weights; what a rank holds. */
    ft_parcel weights;
    ft_memory memory;
} asking;

static ft_status forecast_pass(asking *ask, const pass *one, ft_rollout *out)
{
    ft_model_request r = *ask->of;
    const ft_answers *a = &ask->of->work.answers;
    ft_step step = {0};
    ft_step_view view = {.quantile = ask->quantile};
    ft_graph *g = NULL;
    r.work = (ft_workload){.task = one->task,
                           .dtype = ask->of->work.dtype,
                           .batch = one->batch,
                           .seq = one->seq,
                           .kv_dtype = ft__usual_kv_dtype(ask->of->work.dtype, true),
                           .attention = FT_FLASH,
                           .execution = a->graphs ? FT_RUN_CUDA_GRAPH : FT_RUN_FUSED,
                           .cache = FT_CACHE_PAGED,
                           .optimizer = FT_NO_OPTIMIZER,
                           .accumulate = 1,
                           .host = ask->of->work.host};
    r.ask = one->task == FT_DECODE ? FT_ASK_DECODE : FT_ASK_PREFILL;
    r.parallel.tp = one->tp;
    r.parallel.dp = r.parallel.pp = r.parallel.vpp = r.parallel.cp = r.parallel.ep = 1;
    r.parallel.etp = 0;
    r.parallel.zero = 0;
    r.parallel.sp = false;
    r.parallel.schedule = FT_1F1B;
    if (one->tp <= ask->inside) r.closed_forms = true; /* they stand in one node: what joins it is all they use */
    r.loader.given = false;
    FT_TRY(ft__scratch_empty(ask->s, ask->err));
    FT_TRY(ft__request_forecast(ask->ft, ask->s, &r, &view, &step, &g, ask->err));
    ask->weights = (ft_parcel){.bytes = g->parameters * (double)one->tp * ft_dtype_bytes(FT_BF16),
                               .tensors = (double)g->parameter_tensors};
    ask->memory = step.memory;
    const double host_ms = a->engine == FT_ROLLOUT_INLINE && one->task == FT_DECODE
                               ? FT_K_ROLLOUT_INLINE_MS + FT_K_ROLLOUT_INLINE_US * (double)one->batch / US_PER_MS
                               : 0;
    *out = (ft_rollout){.ms = step.step_ms + host_ms,
                        .low_ms = step.low_ms + host_ms,
                        .high_ms = step.high_ms + host_ms,
                        .joules = ft__step_joules(g, &step, r.device),
                        .tp = one->tp,
                        .fits = step.memory.fits};
    return FT_OK;
}

static void add(ft_rollout *sum, const ft_rollout *one, double times)
{
    sum->ms += times * one->ms;
    sum->low_ms += times * one->low_ms;
    sum->high_ms += times * one->high_ms;
    sum->joules += times * one->joules;
    sum->fits = sum->fits && one->fits;
}

/* -- lengths ----------------------------------------------------------------------------------- */

/* Answers of one engine: lognormal lengths with a mean, cut off at the longest. */
typedef struct mix {
    double mean, longest, place, width;
    double prompt, answers, places; /* of one; of the engine; that it has at once */
    double room, shared;            /* tokens that its cache holds; those of a prompt that each answer takes of it */
} mix;

static void widen(mix *m, double all)
{
    m->width = ft__answer_width(m->mean, m->longest, all);
    m->place = log(m->mean) - m->width * m->width / 2;
}

/* The share of answers that have more tokens than these. */
static double beyond(const mix *m, double tokens)
{
    if (tokens >= m->longest) return 0;
    if (tokens <= 0) return 1;
    return erfc((log(tokens) - m->place) / (m->width * sqrt(2))) / 2;
}

/* Of places that have been filled again and again, the share whose answer goes on for longer than this: the integral of
 * `beyond` from there on, over the mean. */
static double left(const mix *m, double tokens)
{
    enum { SLICES = 64 };
    const double slice = (m->longest - tokens) / SLICES, from = fmax(tokens, 0);
    double sum = 0, whole = 0;
    for (int i = 0; i < SLICES; i++) {
        sum += beyond(m, tokens + (i + 0.5) * slice) * slice;
        whole += beyond(m, (i + 0.5) * m->longest / SLICES) * m->longest / SLICES;
    }
    return from >= m->longest ? 0 : sum / whole;
}

/* Answers that still run so many steps after the last of them has found a place. */
static double running(const mix *m, double steps)
{
    return m->answers > m->places ? m->places * left(m, steps) : m->answers * beyond(m, steps);
}

/* The first step at which no more than so many run. */
static double until(const mix *m, double many)
{
    enum { HALVINGS = 40 };
    double low = 0, high = m->longest;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        if (running(m, middle) > many)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* How many tokens have room beside the weights. */
static ft_status hold(asking *ask, mix *m, int64_t tp)
{
    const ft_answers *a = &ask->of->work.answers;
    const double usual = a->gpus > 0 ? FT_K_ROLLOUT_MEMORY_APART : FT_K_ROLLOUT_MEMORY;
    const double share = a->memory > 0 ? a->memory : usual;
    const pass one = {FT_DECODE, tp, (int64_t)fmin(m->places, m->answers), (int64_t)(m->prompt + m->mean)};
    ft_rollout ignored;
    FT_TRY(forecast_pass(ask, &one, &ignored));
    const double cache = ask->memory.kv_cache_bytes, token = cache / (double)(one.batch * one.seq);
    const double left = share * ask->of->device->memory_gib * GIB - (ask->memory.peak_bytes - cache);
    m->room = cache > 0 && left > 0 ? left / token : INFINITY; /* whether the weights have room is said elsewhere */
    m->shared = m->prompt / (double)a->samples;
    return FT_OK;
}

/* A step in which so many answers get a token, each with so many already. Where the cache has no room for all of them
 * at once they take turns. */
static ft_status decode_at(asking *ask, const mix *m, int64_t tp, double many, double tokens, ft_rollout *out)
{
    const double most = fmax(floor(m->room / (m->shared + tokens)), 1), turns = fmax(many / most, 1);
    const pass one = {FT_DECODE, tp, (int64_t)fmax(ceil(many / turns), 1), (int64_t)(m->prompt + tokens)};
    ft_rollout turn;
    FT_TRY(forecast_pass(ask, &one, &turn));
    *out = (ft_rollout){.tp = tp, .fits = true};
    add(out, &turn, turns);
    return FT_OK;
}

/* Until the longest is there. */
static ft_status drain(asking *ask, const mix *m, int64_t tp, ft_rollout *sum)
{
    /* places that were filled one after the other hold answers of all ages */
    const double old = m->answers > m->places ? m->mean / 2 : 0;
    double from = 0, many = running(m, 0);
    ft_rollout before;
    FT_TRY(decode_at(ask, m, tp, many, old, &before));
    for (bool all = true, last = false; !last; all = false) {
        many /= all ? 2 : 4;
        last = many < 1;
        const double to = last ? m->longest : until(m, many);
        ft_rollout now;
        FT_TRY(decode_at(ask, m, tp, many, fmin(old + to, m->longest), &now));
        add(sum, &before, (to - from) / 2);
        add(sum, &now, (to - from) / 2);
        before = now;
        from = to;
    }
    return FT_OK;
}

static ft_status varied(asking *ask, const mix *m, int64_t tp, ft_rollout *sum)
{
    if (m->answers > m->places) {
        ft_rollout full;
        FT_TRY(decode_at(ask, m, tp, m->places, m->mean / 2, &full));
        add(sum, &full, (m->answers - m->places) * m->mean / m->places);
    }
    return drain(ask, m, tp, sum);
}

/* -- engines ----------------------------------------------------------------------------------- */

static ft_status alike(asking *ask, const mix *m, int64_t tp, double waves, int64_t batch, ft_rollout *sum)
{
    ft_rollout each;
    FT_TRY(decode_at(ask, m, tp, (double)batch, floor(m->mean / 2), &each)); /* half an answer is there */
    add(sum, &each, waves * m->mean);
    return FT_OK;
}

static void share(ft_rollout *sum, double steps)
{
    sum->ms /= steps;
    sum->low_ms /= steps;
    sum->high_ms /= steps;
    sum->joules /= steps;
}

ft_status ft__rollout_by(const ft_context *ft, ft_scratch *s, const ft_model_request *r, const ft_engines *by,
                         double quantile, ft_rollout *out, ft_error *err)
{
    const ft_answers *a = &r->work.answers;
    asking ask = {.ft = ft, .s = s, .of = r, .quantile = quantile, .err = err};
    ft_cluster cluster;
    if (by->gpus % by->tp)
        return ft__fail_at(err, FT_E_RANGE, "rollout_tp", 0, 0,
                           "\"rollout_tp\" %lld does not divide the %lld GPUs into engines", (long long)by->tp,
                           (long long)by->gpus);
    mix m = {.mean = (double)a->tokens,
             .longest = (double)(a->longest > a->tokens ? a->longest : a->tokens),
             .prompt = (double)(r->work.seq - a->tokens),
             .answers = ceil(by->answers / (double)(by->gpus / by->tp)),
             .places = a->at_once > 0 ? (double)a->at_once : FT_K_ROLLOUT_AT_ONCE};
    if (m.longest > m.mean) widen(&m, by->answers);
    FT_TRY(ft__cluster_read(r->cluster, r->device, by->gpus, &cluster, err));
    ask.inside = cluster.gpus_per_node;
    FT_TRY(hold(&ask, &m, by->tp));
    const double waves = ceil(m.answers / m.places), prompts = m.answers / (double)a->samples;
    const int64_t batch = (int64_t)ceil(m.answers / waves), each = (int64_t)fmax(ceil(prompts / waves), 1);
    const int64_t portion = (int64_t)fmax(floor(FT_K_ROLLOUT_PREFILL_TOKENS / m.prompt), 1);
    const int64_t once = each < portion ? each : portion;
    const pass prefill = {FT_PREFILL, by->tp, once, (int64_t)m.prompt};
    ft_rollout fill;
    *out = (ft_rollout){.tp = by->tp, .fits = true};
    out->spread = exp(FT_K_ROLLOUT_SPREAD * ft__normal_quantile((1 + quantile) / 2));
    FT_TRY(forecast_pass(&ask, &prefill, &fill));
    add(out, &fill, waves * ceil((double)each / (double)once));
    FT_TRY(m.longest > m.mean ? varied(&ask, &m, by->tp, out) : alike(&ask, &m, by->tp, waves, batch, out));
    if (by->steps > 1) share(out, (double)by->steps);
    return ft__handover_refit(ft, r, &ask.weights, by->gpus, quantile, out, err);
}

ft_status ft__rollout_of(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile,
                         ft_rollout *out, ft_error *err)
{
    const ft_workload *w = &r->work;
    const ft_parallel *p = &r->parallel;
    const int64_t steps = w->answers.ahead && w->answers.age > 1 ? w->answers.age : 1;
    const ft_engines by = {.tp = w->answers.tp > 0 ? w->answers.tp : p->tp,
                           .gpus = w->answers.gpus > 0 ? w->answers.gpus : p->dp * p->tp * p->pp * p->cp,
                           .steps = steps,
                           .answers = (double)w->batch * fmax((double)w->accumulate, 1) * (double)(p->dp * steps)};
    *out = (ft_rollout){0};
    if (w->answers.tokens < 1 || w->task != FT_TRAIN || r->ask == FT_ASK_MEMORY) return FT_OK;
    FT_TRY(ft__rollout_by(ft, s, r, &by, quantile, out, err));
    out->apart = w->answers.gpus > 0;
    out->ahead = out->apart && w->answers.ahead;
    out->away = w->answers.away;
    return FT_OK;
}

/* What those that train wait for it. */
static double waited(const ft_rollout *r, double rollout_ms, double step_ms)
{
    return r->ahead ? fmax(rollout_ms - r->refit_ms - step_ms, 0) + r->refit_ms : rollout_ms;
}

void ft__rollout_apply(const ft_rollout *forecast, ft_step *step)
{
    ft_rollout with = *forecast, *rollout = &with;
    if (!(rollout->ms > 0) || !(step->step_ms > 0)) return;
    if (rollout->away) ft__handover_host(rollout, step);
    const double before = step->step_ms, ms = waited(rollout, rollout->ms, before), longer = (before + ms) / before;
    step->rollout_ms = rollout->ms;
    step->refit_ms = rollout->refit_ms;
    step->rollout_joules = rollout->apart ? 0 : rollout->joules;
    step->low_ms += waited(rollout, rollout->low_ms, step->low_ms);
    step->high_ms += waited(rollout, rollout->high_ms, step->high_ms);
    step->low_ms /= rollout->spread;
    step->high_ms *= rollout->spread;
    step->step_ms += ms;
    *(rollout->apart ? &step->idle_ms : &step->busy_ms) += ms;
    step->tokens_per_s /= longer;
    step->model_tflops /= longer;
    step->mfu /= longer;
    step->hfu /= longer;
    for (int i = 0; i < 4; i++) step->regime[i] /= longer;
    step->regime[FT_BOUND_MEMORY] += ms / step->step_ms; /* decoding reads weights and the cache */
    for (int i = 0; i < 4; i++)
        if (step->regime[i] > step->regime[step->bound]) step->bound = (ft_bound)i;
}
