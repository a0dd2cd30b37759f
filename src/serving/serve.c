/* serve.c: from a request to its outcome: the model as the engine holds it, the tables of an iteration, the cache, the
 * load, the run, and what it means. */
#include "serving/serve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serving/settle.h"
#include "serving/step_constants.h"
#include "timeline/step.h"

const char *const ft__serving_bound_words[FT_SERVING_BOUNDS] = {[FT_BOUND_BY_DECODE] = "decode",
                                                                [FT_BOUND_BY_PREFILL] = "prefill",
                                                                [FT_BOUND_BY_CACHE] = "kv",
                                                                [FT_BOUND_BY_FRONTEND] = "frontend",
                                                                [FT_BOUND_BY_QUEUE] = "queue"};

/* -- what it means ----------------------------------------------------------------------------- */

static double span_ms(const ft_outcome *o) { return fmax(o->last_ms - o->first_ms, 1e-9); }

double ft__serving_requests_per_s(const ft_serving *s) { return s->out->requests / span_ms(s->out) * 1e3; }

double ft__serving_frontend_ms(const ft_serving *s)
{
    double prompt = s->out->requests > 0 ? s->out->prompt_tokens / s->out->requests : 0;
    return s->scene.request_ms + s->scene.prompt_token_ms * prompt;
}

double ft__serving_usd_per_million(const ft_serving *s)
{
    double rate = ft__serving_tokens_per_s_per_gpu(s);
    return rate > 0 ? s->device->price_usd_per_hour / 3600 / rate * 1e6 : 0;
}

double ft__serving_tokens_per_s_per_gpu(const ft_serving *s)
{
    return s->out->answer_tokens / span_ms(s->out) * 1e3 / (double)s->gpus;
}

/* Iterations of one kind, as their mean: what they draw grows evenly enough. */
static double joules_of(const ft_costs *c, const ft_worked *w, double tokens_each)
{
    if (w->steps <= 0) return 0;
    ft_iteration mean = {.decoders = w->decoders / w->steps,
                         .context = w->context / w->steps,
                         .tokens_each = tokens_each,
                         .prompts = w->prompts / w->steps,
                         .prompt_tokens = w->prompt_tokens / w->steps,
                         .rows = w->rows / w->steps};
    return w->steps * ft__iteration_joules(c, &mean);
}

/* Every GPU of every engine is there from the first request to the last; joules of iterations are those of one rank. */
static void find_energy(ft_serving *s)
{
    const ft_outcome *o = s->out;
    double each = 1 + s->policy.drafts, ms = span_ms(o);
    double both = (double)ft__served_gpus(&s->served), first = 0;
    if (s->scene.prefill_costs) {
        const ft_served *m = &s->prefill_served;
        first = (double)ft__served_gpus(m) * joules_of(&s->prefill_costs, &o->prefilled, 1);
    }
    double joules = first + both * (joules_of(&s->costs, &o->decoded, each) + joules_of(&s->costs, &o->mixed, each));
    s->energy = ft__energy_of(s->device, joules / (double)s->gpus, ms, ms, ms, ft__interval_level(s->quantile));
}

double ft__serving_joules_per_token(const ft_serving *s)
{
    return s->out->answer_tokens > 0 ? s->energy.joules * (double)s->gpus / s->out->answer_tokens : 0;
}

static ft_bounds_ms bounds(double mean, double spread, double kernels, double quantile)
{
    double wider = fmax(0, kernels * kernels - FT_K_STEP_KERNEL_SPREAD * FT_K_STEP_KERNEL_SPREAD);
    double half = sqrt(spread * spread + wider) * ft__interval_level(quantile);
    double down = exp(-half), up = exp(half);
    return (ft_bounds_ms){mean * down, mean * up};
}

ft_bounds_ms ft__serving_bounds(const ft_serving *s, double ms)
{
    return bounds(ms, s->engine->tpot_spread, s->costs.spread, s->quantile);
}

/* An engine's spreads are errors on runs whose scripts are public. Of anybody else's server a request says neither host
 * nor client, nor the exact version and its flags; who says spreads of an engine of his own knows them. */
static void set_intervals(ft_serving *s)
{
    const ft_outcome *o = s->out;
    const ft_serving_engine *e = s->engine;
    bool unsaid = s->served.latent && !s->drafts_said; /* such models come with a draft layer */
    double k = s->costs.spread, wait = unsaid ? e->latent_ttft_spread : e->ttft_spread;
    double token = unsaid ? e->latent_tpot_spread : e->tpot_spread;
    if (!s->ttft_known) wait = hypot(wait, FT_K_STEP_ELSEWHERE_TTFT);
    if (!s->tpot_known) token = hypot(token, FT_K_STEP_ELSEWHERE_TPOT);
    s->ttft = bounds(ft__tally_mean(&o->ttft), wait, k, s->quantile);
    s->tpot = bounds(ft__tally_mean(&o->tpot), token, k, s->quantile);
    s->itl = bounds(ft__tally_mean(&o->itl), token, k, s->quantile);
    double first = ft__tally_mean(&o->ttft), rest = fmax(0, ft__tally_mean(&o->e2e) - first);
    double spread = first + rest > 0 ? (first * wait + rest * token) / (first + rest) : 0;
    s->e2e = bounds(first + rest, spread, k, s->quantile);
}

static ft_serving_bound find_bound(const ft_serving *s)
{
    const ft_outcome *o = s->out;
    double busy = fmax(o->busy_ms, 1e-9);
    if (o->front_lag_ms / fmax(o->requests, 1) > FT_K_STEP_BOUND_SHARE * ft__tally_mean(&o->e2e))
        return FT_BOUND_BY_FRONTEND;
    if (o->blocked_ms / busy > FT_K_STEP_BOUND_SHARE) return FT_BOUND_BY_CACHE;
    if (o->full_ms / busy > FT_K_STEP_BOUND_SHARE) return FT_BOUND_BY_QUEUE;
    return o->mixed_ms > o->decode_ms ? FT_BOUND_BY_PREFILL : FT_BOUND_BY_DECODE;
}

/* What the share of requests that was asked for keeps of each objective, each by itself. */
static void find_nearest(ft_serving *s)
{
    const ft_outcome *o = s->out;
    const ft_scene *k = &s->scene;
    s->nearest_ttft_ms = k->slo_ttft_ms > 0 && s->stable ? ft__tally_quantile(&o->ttft, s->slo_share) : 0;
    s->nearest_tpot_ms = k->slo_tpot_ms > 0 ? ft__tally_quantile(&o->tpot, s->slo_share) : 0;
    s->nearest_e2e_ms = k->slo_e2e_ms > 0 && s->stable ? ft__tally_quantile(&o->e2e, s->slo_share) : 0;
}

static void judge(ft_serving *s)
{
    s->stable = s->load.clients || !ft__queue_grows(s->out, s->load.made); /* a queue that grows has no mean */
    s->bound = find_bound(s);
    set_intervals(s);
    find_energy(s);
    s->slo_met = s->slo_share > 0 && s->stable && s->out->requests > 0 &&
                 s->out->good >= s->slo_share * s->out->requests;
    if (s->slo_share > 0) find_nearest(s);
}

/* -- running it -------------------------------------------------------------------------------- */

static ft_status run_once(ft_serving *s, const ft_serve_request *r, ft_error *err)
{
    FT_TRY(ft__settle_load(r, s, err));
    ft_status status = ft__simulate(&s->scene, &s->load, s->out, err);
    ft__log_close(s->load.log);
    s->load.log = NULL;
    if (status == FT_OK) judge(s);
    return status;
}

/* Requests that come at a rate meet a full engine only after about as long as one of them takes; a run that is over by
 * then is a burst, whose rate says nothing. Its own mean says how many are under way at once: so many times that come,
 * and as many as are under way are not counted. 0: as many came as it takes, or more would not change the verdict. */
static double requests_to_settle(const ft_serving *s)
{
    if (!s->stable || (s->slo_share > 0 && !s->slo_met)) return 0;
    double came = (double)s->load.made, under_way = s->load.rate_per_s / 1e3 * ft__tally_mean(&s->out->e2e);
    double wanted = ceil(fmin(FT_K_STEP_SETTLED * under_way, FT_K_STEP_MOST_REQUESTS));
    return wanted > came ? fmin(fmax(wanted, 2 * came), FT_K_STEP_MOST_REQUESTS) : 0;
}

/* Whoever listens hears of the last run alone. */
static ft_status run_settled(ft_serving *s, const ft_serve_request *r, ft_error *err)
{
    ft_serve_request tried = *r;
    const ft_serving_sink *sink = s->scene.sink;
    ft_said_value *said = tried.said.at;
    bool warmup = ft__given(&r->said, FT_KEY_ID_WARMUP), fixed = ft__given(&r->said, FT_KEY_ID_REQUESTS) && !r->lasting;
    if (fixed || !ft__given(&r->said, FT_KEY_ID_RATE)) return run_once(s, r, err);
    s->scene.sink = NULL;
    FT_TRY(run_once(s, r, err));
    for (double wanted; (wanted = requests_to_settle(s)) > 0;) {
        said[FT_KEY_ID_REQUESTS] = (ft_said_value){.given = true, .whole = (int64_t)wanted};
        if (!warmup)
            said[FT_KEY_ID_WARMUP] = (ft_said_value){.given = true, .whole = (int64_t)(wanted / FT_K_STEP_SETTLED)};
        FT_TRY(run_once(s, &tried, err));
    }
    if (!sink) return FT_OK;
    s->scene.sink = sink;
    return run_once(s, &tried, err);
}

void ft__serve_at(ft_serve_request *r, ft_find what, double load)
{
    bool rate = what == FT_FIND_RATE;
    r->said.at[FT_KEY_ID_RATE] = (ft_said_value){.given = rate, .real = load};
    r->said.at[FT_KEY_ID_CONCURRENCY] = (ft_said_value){.given = !rate, .whole = (int64_t)load};
    r->said.at[FT_KEY_ID_REQUEST_LOG].given = false;
}

/* One request by itself ends the search where not even that keeps the objectives. */
static ft_status try_load(ft_serving *s, const ft_serve_request *r, double load, ft_error *err)
{
    ft_serve_request tried = *r;
    ft__serve_at(&tried, r->find, load);
    return run_settled(s, &tried, err);
}

/* Doubles until the objectives break, then halves the gap: to a percent of a rate, to one client. More clients than
 * requests are no other load. */
static ft_status find_most(ft_serving *s, const ft_serve_request *r, ft_error *err)
{
    bool rate = r->find == FT_FIND_RATE;
    double low = 0, high = rate ? FT_K_STEP_LEAST_RATE : 1, most = 1e6;
    bool all = !rate && ft__given(&r->said, FT_KEY_ID_REQUESTS);
    if (all) most = fmin(most, (double)ft__whole_of(&r->said, FT_KEY_ID_REQUESTS));
    while (high <= most) {
        FT_TRY(try_load(s, r, high, err));
        if (!s->slo_met) break;
        low = high;
        high = all && low < most ? fmin(2 * low, most) : 2 * low;
    }
    while (low > 0 && high <= most && high - low > (rate ? 0.01 * low : 1)) {
        double middle = rate ? (low + high) / 2 : floor((low + high) / 2);
        FT_TRY(try_load(s, r, middle, err));
        if (s->slo_met)
            low = middle;
        else
            high = middle;
    }
    s->found = low;
    s->scene.give_up = 0;
    return try_load(s, r, low > 0 ? low : rate ? FT_K_STEP_LEAST_RATE : 1, err);
}

ft_status ft__serve_of(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r,
                       const ft_serving_sink *sink, ft_serving *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    out->out = calloc(1, sizeof *out->out);
    if (!out->out) return ft__no_memory(err);
    FT_TRY(ft__settle_model(ft, scratch, r, out, err));
    FT_TRY(ft__settle_policy(r, out, err));
    out->scene.sink = r->find == FT_FIND_NOTHING ? sink : NULL;
    out->find = r->find;
    bool objectives = r->slo_ttft_ms > 0 || r->slo_tpot_ms > 0 || r->slo_e2e_ms > 0;
    out->slo_share = objectives ? r->slo_share : 0;
    out->scene.give_up = r->verdict_alone || r->find != FT_FIND_NOTHING ? out->slo_share : 0;
    FT_TRY(r->find == FT_FIND_NOTHING ? run_settled(out, r, err) : find_most(out, r, err));
    if (out->warnings.failed) return ft__no_memory(err);
    return FT_OK;
}

void ft__serving_free(ft_serving *s)
{
    ft__log_close(s->load.log);
    s->load.log = NULL;
    free(s->out);
    s->out = NULL;
    free(s->pairs);
    s->pairs = NULL;
    ft__text_free(&s->recipes);
    ft__text_free(&s->warnings);
}
