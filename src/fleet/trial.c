/* trial.c: one way to serve, simulated. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fleet/fleet.h"
#include "fleet/fleet_constants.h"

int64_t ft__engine_gpus(const ft_engine_layout *l) { return l->tp * l->pp * l->dp; }

static json_t *ranks_of(const ft_engine_layout *l, int64_t workers)
{
    json_t *out = json_object();
    bool fine = out && ft__key_set(out, FT_KEY_ID_SIDE_TP, json_integer(l->tp));
    if (fine && workers) fine = ft__key_set(out, FT_KEY_ID_SIDE_WORKERS, json_integer(workers));
    if (fine && l->pp > 1) fine = ft__key_set(out, FT_KEY_ID_SIDE_PP, json_integer(l->pp));
    if (fine && l->dp > 1) fine = ft__key_set(out, FT_KEY_ID_SIDE_DP, json_integer(l->dp));
    if (fine && l->ep > 1) fine = ft__key_set(out, FT_KEY_ID_SIDE_EP, json_integer(l->ep));
    if (fine) return out;
    json_decref(out);
    return NULL;
}

static bool lay_out(json_t *out, const ft_way *w)
{
    if (!w->prefill.tp)
        return ft__key_set(out, FT_KEY_ID_PARALLEL, ranks_of(&w->layout, 0)) &&
               (w->replicas < 2 || (ft__key_set(out, FT_KEY_ID_REPLICAS, json_integer(w->replicas)) &&
                                    (ft__key_get(out, FT_KEY_ID_ROUTING) ||
                                     ft__key_set(out, FT_KEY_ID_ROUTING, json_string("least_loaded")))));
    json_t *split = json_object();
    bool fine = split && ft__key_set(split, FT_KEY_ID_PREFILL_SIDE, ranks_of(&w->prefill, w->prefill_workers)) &&
                ft__key_set(split, FT_KEY_ID_DECODE_SIDE, ranks_of(&w->layout, w->replicas));
    if (fine) return ft__key_set(out, FT_KEY_ID_DISAGGREGATED, split);
    json_decref(split);
    return false;
}

/* Engines that wait for nobody: clients beyond what runs at once. */
static int64_t clients_of(const ft_way *w) { return (int64_t)FT_K_FLEET_OFFLINE_CLIENTS * w->layout.dp * w->replicas; }

json_t *ft__fleet_json(const ft_fleet *f, const ft_way *w)
{
    json_t *out = ft__study_copy(f->asked->base);
    int64_t engines = w->replicas + w->prefill_workers, requests = (int64_t)FT_K_FLEET_REQUESTS_PER_ENGINE * engines;
    if (requests < (int64_t)FT_K_FLEET_REQUESTS) requests = (int64_t)FT_K_FLEET_REQUESTS;
    if (requests > (int64_t)FT_K_FLEET_MOST_REQUESTS) requests = (int64_t)FT_K_FLEET_MOST_REQUESTS;
    bool offline = f->goal == FT_FLEET_OFFLINE;
    if (f->quick) requests = (int64_t)FT_K_FLEET_QUICK_REQUESTS;
    if (offline) requests = 3 * clients_of(w);
    if (w->requests) requests = w->requests;
    bool fine = out && ft__key_set(out, FT_KEY_ID_TASK, json_string("serve")) && lay_out(out, w) &&
                ft__key_set(out, FT_KEY_ID_REQUESTS, json_integer(requests));
    if (fine && w->warmup) fine = ft__key_set(out, FT_KEY_ID_WARMUP, json_integer(w->warmup));
    if (fine && w->max_seqs) fine = ft__key_set(out, FT_KEY_ID_MAX_NUM_SEQS, json_integer(w->max_seqs));
    if (fine && w->budget) fine = ft__key_set(out, FT_KEY_ID_MAX_NUM_BATCHED_TOKENS, json_integer(w->budget));
    if (fine && offline)
        fine = ft__key_set(out, FT_KEY_ID_CONCURRENCY, json_integer(clients_of(w))) &&
               ft__key_set(out, FT_KEY_ID_SERVE_START, json_string("steady"));
    if (fine && !offline) fine = ft__key_set(out, FT_KEY_ID_RATE, json_real(w->rate));
    if (fine) return out;
    json_decref(out);
    return NULL;
}

/* Why one request by itself does not keep the objectives. */
static ft_fleet_lost misses(const ft_serving *s)
{
    const ft_scene *k = &s->scene;
    if (k->slo_ttft_ms > 0 && (!s->stable || s->nearest_ttft_ms > k->slo_ttft_ms)) return FT_FLEET_TTFT;
    if (k->slo_tpot_ms > 0 && s->nearest_tpot_ms > k->slo_tpot_ms) return FT_FLEET_TPOT;
    return FT_FLEET_E2E;
}

static void take(const ft_serving *s, ft_way *w)
{
    const ft_outcome *o = s->out;
    w->requests = s->load.made;
    w->warmup = s->scene.warmup;
    w->drafts = s->costs.draft && !s->draft_served.device ? s->drafts : 0;
    w->ttft_ms = ft__tally_mean(&o->ttft);
    w->ttft_low_ms = s->ttft.low;
    w->ttft_high_ms = s->ttft.high;
    w->ttft_p90_ms = ft__tally_quantile(&o->ttft, 0.9);
    w->tpot_ms = ft__tally_mean(&o->tpot);
    w->tpot_low_ms = s->tpot.low;
    w->tpot_high_ms = s->tpot.high;
    w->tpot_p90_ms = ft__tally_quantile(&o->tpot, 0.9);
    w->e2e_ms = ft__tally_mean(&o->e2e);
    w->share = o->requests > 0 ? o->good / o->requests : 0;
    w->tokens_per_s = ft__serving_tokens_per_s_per_gpu(s) * (double)s->gpus;
    w->gpus = s->gpus;
    w->energy = s->energy;
    w->joules_per_token = s->energy.joules > 0 ? ft__serving_joules_per_token(s) : 0;
}

static void remember(ft_fleet_bench *b, const ft_serving *s)
{
    ft_fleet *f = b->fleet;
    if (!s->served.arch) return;
    b->heads = s->served.arch->heads;
    b->experts = s->served.arch->experts;
    const ft_cluster *c = &s->served.cluster;
    if (c->gpus_per_node > 0) f->node_gpus = c->gpus_per_node;
    snprintf(f->model, sizeof f->model, "%s", s->model ? s->model : "");
    snprintf(f->gpu, sizeof f->gpu, "%s", s->device->name);
    memcpy(f->beyond, s->beyond, sizeof f->beyond);
    snprintf(f->engine, sizeof f->engine, "%s", s->engine->name);
}

/* A key is idle where no way has a use for it. What the search itself says is nobody's key. */
static void note_idle(ft_fleet *f, const ft_serving *s)
{
    if (!s->served.arch) return;
    if (f->simulations > 1) {
        ft__idle_keep(&f->idle, &s->idle);
        return;
    }
    for (size_t i = 0; i < s->idle.count; i++) {
        const ft_idle_key *k = &s->idle.at[i];
        const char *section = ft__section_name(ft__keys[k->key].section);
        const json_t *home = *section ? json_object_get(f->asked->base, section) : f->asked->base;
        if (ft__key_get(home, k->key)) ft__idle_put(&f->idle, k->key, k->why);
    }
}

/* The weights leave no room for a cache, or none for one request: that way loses, and others may stand. */
static bool lacks_memory(ft_status status, const ft_serving *s, const ft_error *err)
{
    if (!s->served.arch) return false; /* the request itself is wrong */
    return (status == FT_E_UNSUPPORTED && !strcmp(err->where, "gpu")) ||
           (status == FT_E_RANGE && !strcmp(err->where, "isl"));
}

void ft__fleet_tell(ft_fleet_bench *b, const char *stage, double done)
{
    const ft_plan_request *r = b->fleet->asked;
    b->stage = stage;
    b->done = done;
    if (r->progress) r->progress(r->watcher, stage, done);
}

/* Engines that wait for nobody work alike, however many there are: so many of them stand for all. */
static ft_way simulated_of(const ft_fleet *f, const ft_way *w)
{
    ft_way some = *w;
    if (f->goal == FT_FLEET_OFFLINE && w->replicas > (int64_t)FT_K_FLEET_OFFLINE_ENGINES)
        some.replicas = (int64_t)FT_K_FLEET_OFFLINE_ENGINES;
    return some;
}

static void scale(ft_way *w, double rate, double times)
{
    w->rate = rate * times;
    w->tokens_per_s *= times;
    w->gpus = ft__engine_gpus(&w->layout) * w->replicas;
    if (times > 1) w->requests = 3 * clients_of(w);
}

ft_status ft__fleet_try(ft_fleet_bench *b, ft_way *w, double rate, ft_error *err)
{
    ft_serve_request request = {0};
    ft_serving served = {0};
    ft_fleet *f = b->fleet;
    w->rate = rate;
    w->lost = FT_FLEET_STANDS;
    w->requests = w->warmup = 0;
    const int64_t engines = w->replicas + w->prefill_workers, most = (int64_t)ft__keys[FT_KEY_ID_REPLICAS].high;
    if (engines > most)
        return ft__fail_at(err, FT_E_RANGE, f->goal == FT_FLEET_GPUS ? "rate" : "gpus", 0, 0,
                           "a fleet of %lld engines: up to %lld are simulated", (long long)engines, (long long)most);
    const ft_way simulated = simulated_of(f, w);
    const double times = (double)w->replicas / (double)simulated.replicas;
    json_t *asked = ft__fleet_json(f, &simulated);
    ft_status status = asked ? ft__serve_request_read(asked, &request, err) : ft__no_memory(err);
    request.lasting = f->goal != FT_FLEET_OFFLINE;
    request.verdict_alone = b->verdict_alone;
    if (status == FT_OK) status = ft__serve_of(b->ft, b->scratch, &request, NULL, &served, err);
    remember(b, &served);
    f->simulations++;
    if (b->stage) ft__fleet_tell(b, b->stage, b->done);
    note_idle(f, &served);
    if (status == FT_OK) {
        take(&served, w);
        if (f->goal == FT_FLEET_OFFLINE)
            scale(w, ft__serving_requests_per_s(&served), times);
        else if (!served.slo_met)
            w->lost = misses(&served);
    } else if (lacks_memory(status, &served, err)) {
        w->lost = FT_FLEET_MEMORY;
        status = FT_OK;
    }
    ft__serving_free(&served);
    ft__serve_request_free(&request);
    json_decref(asked);
    return status;
}

/* As an answer writes it: near the most that is kept a seventh digit decides who waits for whom, and who asks for the
 * rate that was found is to find what the plan says. */
static double as_said(double rate)
{
    enum { DIGITS = 6 };
    const double places = DIGITS - 1 - floor(log10(rate)), unit = pow(10, fabs(places));
    return places < 0 ? round(rate / unit) * unit : round(rate * unit) / unit;
}

/* Doubles or halves until the objectives break or hold, then halves the gap. */
static ft_status find(ft_fleet_bench *b, ft_way *way, double guess, ft_error *err)
{
    ft_way tried = *way;
    double low = 0, high = 0, rate = as_said(guess);
    for (;;) {
        b->verdict_alone = rate >= FT_K_FLEET_LEAST_RATE;
        ft_status status = ft__fleet_try(b, &tried, rate, err);
        b->verdict_alone = false;
        FT_TRY(status);
        if (tried.lost == FT_FLEET_MEMORY || (tried.lost != FT_FLEET_STANDS && rate < FT_K_FLEET_LEAST_RATE)) {
            *way = tried; /* not even one request by itself */
            return FT_OK;
        }
        if (tried.lost == FT_FLEET_STANDS) {
            *way = tried;
            low = rate;
        } else {
            high = rate;
        }
        if (low > 0 && high > 0 && high - low <= FT_K_FLEET_FOUND * low) return FT_OK;
        if (rate > FT_K_FLEET_MOST_RATE) return FT_OK;
        rate = as_said(low > 0 && high > 0 ? sqrt(low * high) : low > 0 ? 2 * rate : rate / 4);
    }
}

ft_status ft__fleet_find(ft_fleet_bench *b, ft_way *way, double guess, bool whole, ft_error *err)
{
    if (b->fleet->goal == FT_FLEET_OFFLINE) return ft__fleet_try(b, way, 1, err);
    b->fleet->quick = !whole;
    ft_status status = find(b, way, guess > 0 ? guess : 1, err);
    b->fleet->quick = false;
    return status;
}
