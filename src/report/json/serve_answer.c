/* serve_answer.c: serving under load as one JSON object. Where requests come faster than they are served, times that
 * would grow with the length of the run are left out. */
#include "report/json/serve_answer.h"

#include <stdio.h>

#include "report/json/answer.h"

static void add_time(ft_text *out, const char *name, const ft_tally *t, const ft_bounds_ms *b)
{
    static const struct {
        const char *key;
        double share;
    } at[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};
    char key[32];
    snprintf(key, sizeof key, "%s_ms", name);
    ft__answer_figure(out, key, ft__tally_mean(t));
    snprintf(key, sizeof key, "%s_low_ms", name);
    ft__answer_figure(out, key, b->low);
    snprintf(key, sizeof key, "%s_high_ms", name);
    ft__answer_figure(out, key, b->high);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        snprintf(key, sizeof key, "%s_ms_%s", name, at[i].key);
        ft__answer_figure(out, key, ft__tally_quantile(t, at[i].share));
    }
}

static void add_times(ft_text *out, const ft_serving *s)
{
    const ft_outcome *o = s->out;
    if (s->stable) add_time(out, "ttft", &o->ttft, &s->ttft);
    if (o->tpot.count > 0) add_time(out, "tpot", &o->tpot, &s->tpot);
    if (o->itl.count > 0) add_time(out, "itl", &o->itl, &s->itl);
    if (!s->stable) return;
    add_time(out, "e2e", &o->e2e, &s->e2e);
    ft__answer_figure(out, "queue_ms", ft__tally_mean(&o->queue));
    ft__answer_figure(out, "frontend_ms", ft__serving_frontend_ms(s));
}

static void add_objectives(ft_text *out, const ft_serving *s)
{
    const ft_outcome *o = s->out;
    if (s->slo_share <= 0) return;
    double share = o->requests > 0 ? o->good / o->requests : 0;
    ft__answer_figure(out, "goodput_per_s", ft__serving_requests_per_s(s) * share);
    ft__answer_figure(out, "slo_share", share);
    ft__json_member_flag(out, "slo_met", s->slo_met);
    if (!s->slo_met) {
        ft__json_member_open(out, "slo_nearest");
        if (s->nearest_ttft_ms > 0) ft__answer_figure(out, "ttft_ms", s->nearest_ttft_ms);
        if (s->nearest_tpot_ms > 0) ft__answer_figure(out, "tpot_ms", s->nearest_tpot_ms);
        if (s->nearest_e2e_ms > 0) ft__answer_figure(out, "e2e_ms", s->nearest_e2e_ms);
        ft__json_close(out);
    }
    if (s->find == FT_FIND_RATE) ft__answer_figure(out, "rate", s->found);
    if (s->find == FT_FIND_CONCURRENCY) ft__answer_figure(out, "concurrency", s->found);
}

void ft__answer_served_energy(ft_text *out, const ft_energy *e, double each)
{
    if (!(e->joules > 0)) return;
    ft__json_member_open(out, "energy");
    ft__answer_figure(out, "joules_per_token", each);
    ft__answer_figure(out, "low_joules", each * e->low_joules / e->joules);
    ft__answer_figure(out, "high_joules", each * e->high_joules / e->joules);
    ft__answer_figure(out, "kwh_per_million_tokens", each / 3.6);
    ft__answer_figure(out, "watts_per_gpu", e->watts);
    ft__answer_figure(out, "node_watts_per_gpu", e->node_watts);
    ft__json_close(out);
}

static void add_engine(ft_text *out, const ft_serving *s)
{
    const ft_outcome *o = s->out;
    double steps = o->steps_decode + o->steps_mixed;
    ft__answer_figure(out, "running_mean", o->busy_ms > 0 ? o->running_ms / o->busy_ms : 0);
    ft__answer_figure(out, "running_max", o->running_max);
    ft__json_member_open(out, "kv");
    ft__json_member_whole(out, "capacity_tokens", (int64_t)s->policy.capacity);
    ft__json_member_whole(out, "peak_tokens", (int64_t)o->peak_tokens);
    ft__json_member_whole(out, "preemptions", o->preemptions);
    if (o->known_tokens > 0) ft__answer_figure(out, "hit_share", o->known_tokens / o->prompt_tokens);
    ft__json_close(out);
    ft__json_member_open(out, "steps");
    ft__json_member_whole(out, "count", (int64_t)steps);
    ft__json_member_whole(out, "decode", (int64_t)o->steps_decode);
    ft__json_member_whole(out, "mixed", (int64_t)o->steps_mixed);
    ft__answer_figure(out, "decode_ms", o->steps_decode > 0 ? o->decode_ms / o->steps_decode : 0);
    ft__answer_figure(out, "mixed_ms", o->steps_mixed > 0 ? o->mixed_ms / o->steps_mixed : 0);
    if (s->policy.drafts > 0) {
        ft__answer_figure(out, "drafts", s->policy.drafts);
        ft__answer_figure(out, "tokens_each", s->policy.accepted);
    }
    double host = s->costs.nodes * s->engine->gap_us / 1e3 + s->engine->step_ms;
    ft__answer_figure(out, "host_share", steps > 0 ? host * steps / (o->decode_ms + o->mixed_ms) : 0);
    ft__json_close(out);
    if (o->clients < 2) return;
    ft__json_member_open(out, "fairness");
    ft__answer_figure(out, "jain", o->jain);
    ft__json_member_whole(out, "clients", o->clients);
    ft__answer_figure(out, "worst_over_mean", o->worst_client_ratio);
    ft__json_close(out);
}

static void add_advice(ft_text *out, const ft_serving *s)
{
    ft__json_member_list(out, "advice");
    for (size_t i = 0; i < s->advice_count; i++) {
        const ft_serving_advice *a = &s->advice[i];
        ft__json_open(out);
        ft__json_member_text(out, "what", a->what);
        ft__json_member_text(out, "key", a->key);
        if (a->value > 0) ft__json_member_number(out, "value", a->value, 15);
        ft__json_member_whole(out, "gpus", a->gpus);
        if (a->stable) ft__answer_figure(out, "ttft_ms", a->ttft_ms);
        ft__answer_figure(out, "tpot_ms", a->tpot_ms);
        if (a->stable && s->stable) ft__answer_figure(out, "ttft_saved_ms", a->ttft_saved_ms);
        ft__answer_figure(out, "tpot_saved_ms", a->tpot_saved_ms);
        ft__answer_figure(out, "tokens_per_s_per_gpu", a->tokens_per_s_per_gpu);
        if (a->usd_per_million > 0) ft__answer_figure(out, "usd_per_million_tokens", a->usd_per_million);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void add_requests(ft_text *out, const ft_roll *record)
{
    ft__json_member_list(out, "per_request");
    for (size_t i = 0; i < record->request_count; i++) {
        const ft_served_request *q = &record->requests[i];
        ft__json_open(out);
        ft__answer_figure(out, "sent_ms", q->sent_ms);
        ft__answer_figure(out, "ttft_ms", q->first_ms - q->sent_ms);
        if (q->answer > 1) ft__answer_figure(out, "tpot_ms", (q->ended_ms - q->first_ms) / (q->answer - 1));
        ft__answer_figure(out, "e2e_ms", q->ended_ms - q->sent_ms);
        ft__json_member_whole(out, "input", q->prompt);
        ft__json_member_whole(out, "output", q->answer);
        ft__json_member_whole(out, "client", q->client);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

/* The queue and the cache over time, thinned out by the simulation itself. */
static void add_course(ft_text *out, const ft_course *c)
{
    ft__json_member_list(out, "course");
    for (int i = 0; i < c->count; i++) {
        ft__json_open(out);
        ft__answer_figure(out, "ms", c->at[i].ms);
        ft__answer_figure(out, "waiting", c->at[i].waiting);
        ft__answer_figure(out, "running", c->at[i].running);
        ft__answer_figure(out, "cache_share", c->at[i].cache_share);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

void ft__answer_serve(ft_text *out, const json_t *id, const ft_serving *s, const ft_roll *record, bool course)
{
    const ft_outcome *o = s->out;
    ft__answer_begin(out, id);
    ft__answer_word(out, "model", s->model);
    ft__answer_word(out, "gpu", s->device->name);
    ft__answer_word(out, "engine", s->engine->name);
    ft__json_member_whole(out, "gpus", s->gpus);
    add_times(out, s);
    ft__answer_figure(out, "requests", o->requests);
    ft__answer_figure(out, "seconds", (o->last_ms - o->first_ms) / 1e3);
    ft__answer_figure(out, "requests_per_s", ft__serving_requests_per_s(s));
    ft__answer_figure(out, "tokens_per_s_per_gpu", ft__serving_tokens_per_s_per_gpu(s));
    if (o->tpot.count > 0) ft__answer_figure(out, "tokens_per_s_per_user", 1e3 / ft__tally_mean(&o->tpot));
    if (s->device->price_usd_per_hour > 0)
        ft__answer_figure(out, "usd_per_million_tokens", ft__serving_usd_per_million(s));
    ft__answer_served_energy(out, &s->energy, s->energy.joules > 0 ? ft__serving_joules_per_token(s) : 0);
    add_objectives(out, s);
    add_engine(out, s);
    ft__answer_word(out, "bound", ft__serving_bound_words[s->bound]);
    ft__json_member_flag(out, "stable", s->stable);
    if (s->advice_count > 0) add_advice(out, s);
    if (record) add_requests(out, record);
    if (course) add_course(out, &o->course);
    if (s->recipes.length) ft__answer_lines(out, "recipe", s->recipes.at);
    ft__answer_lines(out, "warnings", s->warnings.at ? s->warnings.at : "");
    ft__json_close(out);
}
