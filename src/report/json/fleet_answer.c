/* fleet_answer.c: ways to serve, the best first, with what starts them; then what others lose by. */
#include "report/json/fleet_answer.h"

#include <string.h>

#include "report/json/choose_answer.h"
#include "report/json/serve_answer.h"
#include "report/launch/engines.h"
#include "request/words.h"

static void ranks(ft_text *out, const char *key, const ft_engine_layout *l, int64_t workers)
{
    ft__json_member_open(out, key);
    if (workers) ft__json_member_whole(out, "workers", workers);
    ft__json_member_whole(out, "tp", l->tp);
    ft__json_member_whole(out, "pp", l->pp);
    ft__json_member_whole(out, "dp", l->dp);
    ft__json_member_whole(out, "ep", l->ep);
    ft__json_close(out);
}

static void way(ft_text *out, const ft_way *w)
{
    if (w->prefill.tp) {
        ft__json_member_open(out, "disaggregated");
        ranks(out, "prefill", &w->prefill, w->prefill_workers);
        ranks(out, "decode", &w->layout, w->replicas);
        ft__json_close(out);
    } else {
        ranks(out, "parallel", &w->layout, 0);
        ft__json_member_whole(out, "replicas", w->replicas);
    }
    if (w->max_seqs) ft__json_member_whole(out, "max_num_seqs", w->max_seqs);
    if (w->budget) ft__json_member_whole(out, "max_num_batched_tokens", w->budget);
    ft__json_member_whole(out, "gpus", w->gpus);
}

static void figures(ft_text *out, const ft_way *w, ft_fleet_goal goal)
{
    ft__answer_figure(out, "rate", w->rate);
    if (goal != FT_FLEET_OFFLINE) {
        ft__answer_figure(out, "slo_share", w->share);
        ft__answer_figure(out, "ttft_ms", w->ttft_ms);
        ft__answer_figure(out, "ttft_low_ms", w->ttft_low_ms);
        ft__answer_figure(out, "ttft_high_ms", w->ttft_high_ms);
        ft__answer_figure(out, "ttft_ms_p90", w->ttft_p90_ms);
    }
    ft__answer_figure(out, "tpot_ms", w->tpot_ms);
    ft__answer_figure(out, "tpot_low_ms", w->tpot_low_ms);
    ft__answer_figure(out, "tpot_high_ms", w->tpot_high_ms);
    ft__answer_figure(out, "tpot_ms_p90", w->tpot_p90_ms);
    ft__answer_figure(out, "e2e_ms", w->e2e_ms);
    ft__answer_figure(out, "tokens_per_s_per_gpu", w->tokens_per_s / (double)w->gpus);
    ft__answer_served_energy(out, &w->energy, w->joules_per_token);
}

static void launch(ft_text *out, const ft_fleet *f, const ft_way *w)
{
    if (!f->asked->emit_count) return;
    ft__json_member_open(out, "launch");
    for (size_t i = 0; i < f->asked->emit_count; i++) {
        ft_text text = {0};
        ft__engine_launch(&text, f->asked->emit[i], f, w);
        ft__json_member_text(out, f->asked->emit[i], text.at ? text.at : "");
        ft__text_drop(&text, out);
    }
    ft__json_close(out);
}

void ft__answer_fleet(ft_text *out, const json_t *id, const ft_fleet *f)
{
    ft__answer_begin(out, id);
    ft__json_member_text(out, "model", f->model);
    ft__json_member_text(out, "gpu", f->gpu);
    ft__json_member_text(out, "engine", f->engine);
    ft__answer_word(out, "objective", ft__fleet_goal_words[f->goal]);
    ft__json_member_whole(out, "candidates", (int64_t)f->count);
    ft__json_member_whole(out, "simulations", (int64_t)f->simulations);
    ft__answer_word(out, "proof", f->proven ? "optimal" : "none");
    ft__answer_word(out, "proof_covers", ft__fleet_proof(f));
    ft__json_member_flag(out, "fits", f->plans > 0);
    ft__json_member_list(out, "plans");
    for (size_t i = 0; i < f->plans && i < (size_t)f->asked->top; i++) {
        const ft_way *w = &f->ways[i];
        json_t *request = ft__fleet_json(f, w);
        ft__json_open(out);
        way(out, w);
        figures(out, w, f->goal);
        ft__answer_figure(out, "chance_best", w->chance);
        ft__json_member_flag(out, "front", w->front);
        if (request) ft__json_member_tree(out, "request", request);
        out->failed |= !request;
        json_decref(request);
        launch(out, f, w);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__json_member_list(out, "losers");
    for (size_t i = f->plans; i < f->count; i++) {
        const ft_way *w = &f->ways[i];
        ft__json_open(out);
        way(out, w);
        ft__answer_word(out, "loses_by", ft__fleet_lost_words[w->lost]);
        if (w->lost > FT_FLEET_MEMORY && w->lost < FT_FLEET_TOO_MANY) {
            ft__answer_figure(out, "ttft_ms_p90", w->ttft_p90_ms);
            ft__answer_figure(out, "tpot_ms_p90", w->tpot_p90_ms);
        }
        ft__json_close(out);
    }
    ft__json_close_list(out);
    if (f->least_gpus) ft__json_member_whole(out, "least_gpus", f->least_gpus);
    ft_text lines = {0};
    ft__fleet_say(f, &lines);
    ft__engine_warnings(&lines, f);
    if (lines.length) ft__answer_lines(out, "warnings", lines.at);
    ft__text_drop(&lines, out);
    ft__json_close(out);
}

/* -- choices ----------------------------------------------------------------------------------- */

/* The plan with fewer GPUs that loses by its price. */
static void fewer(ft_text *out, const ft_fleet_fewer *f)
{
    if (!f->way.gpus) return;
    ft__json_member_open(out, "fewer");
    way(out, &f->way);
    ft__json_member_flag(out, "needs_network", f->network);
    if (f->offer) ft__answer_figure(out, "usd_per_hour", f->usd_per_hour);
    ft__answer_offer(out, "cheapest", f->offer, f->way.gpus, f->joined);
    ft__json_close(out);
}

static void choice(ft_text *out, const ft_fleet_choice *c, ft_fleet_goal goal)
{
    ft__json_member_text(out, "gpu", c->gpu);
    ft__json_member_flag(out, "fits", c->planned);
    ft__answer_word(out, "verdict", c->verdict);
    if (*c->why) ft__json_member_text(out, "why", c->why);
    if (!c->planned) {
        if (c->limit) ft__json_member_whole(out, "gpus", c->limit);
        return;
    }
    way(out, &c->way);
    figures(out, &c->way, goal);
    ft__json_member_open(out, "price");
    ft__json_member_number(out, "usd_per_hour", c->usd_per_hour, 6);
    if (c->own_usd >= 0) ft__answer_figure(out, "own_usd_per_gpu_hour", c->own_usd);
    ft__answer_offer(out, "cheapest", c->price.cheapest, c->way.gpus, c->joined);
    ft__answer_offer(out, "median", c->price.median, c->way.gpus, c->joined);
    ft__answer_offer(out, "hyperscaler", c->price.hyperscaler, c->way.gpus, c->joined);
    ft__json_close(out);
    fewer(out, &c->fewer);
    if (c->usd_per_hour > 0) ft__answer_figure(out, "usd_per_million_tokens", c->usd_per_million);
    if (c->kwh_per_million > 0) ft__answer_figure(out, "kwh_per_million_tokens", c->kwh_per_million);
    if (c->kwh_per_million > 0) ft__answer_figure(out, "kg_co2_per_million_tokens", c->kg_per_million);
    if (c->days > 0 && c->kwh > 0) ft__answer_figure(out, "kwh", c->kwh);
    if (c->days > 0 && c->kwh > 0) ft__answer_figure(out, "kg_co2", c->kg);
    if (c->days > 0) ft__answer_figure(out, "days", c->days);
    if (c->days > 0 && c->usd_per_hour > 0) ft__answer_figure(out, "usd", c->usd);
    ft__json_member_flag(out, "front", c->front);
    if (c->knee) ft__json_member_flag(out, "knee", true);
}

/* What an option takes: of a job in all, of a service by the hour and the million tokens. */
static void point(ft_text *out, const ft_fleet_choice *c)
{
    bool paid = c->usd_per_hour > 0 || c->own_usd >= 0, job = c->days > 0;
    if (job) ft__answer_figure(out, "days", c->days);
    if (job && paid) ft__answer_figure(out, "dollars", c->usd);
    if (job && c->kwh > 0) ft__answer_figure(out, "kwh", c->kwh);
    if (job && c->kwh > 0) ft__answer_figure(out, "kg_co2", c->kg);
    if (paid) ft__answer_figure(out, "usd_per_hour", c->usd_per_hour);
    if (paid) ft__answer_figure(out, "usd_per_million_tokens", c->usd_per_million);
    if (c->kwh_per_million > 0) ft__answer_figure(out, "kwh_per_million_tokens", c->kwh_per_million);
    if (c->kwh_per_million > 0) ft__answer_figure(out, "kg_co2_per_million_tokens", c->kg_per_million);
}

/* An option in few words, by the offer that it is paid by. */
static void option(ft_text *out, const void *at)
{
    const ft_fleet_choice *c = at;
    const ft_offer *o = c->price.cheapest;
    bool lost = c->verdict && strcmp(c->verdict, "chosen") != 0;
    ft__json_member_text(out, "gpu", c->gpu);
    if (lost) ft__answer_word(out, "loses_by", c->verdict);
    if (c->planned || c->limit > 0) ft__json_member_whole(out, "gpus", c->planned ? c->way.gpus : c->limit);
    if (!c->planned) return;
    if (c->own_usd >= 0) {
        ft__answer_figure(out, "price", c->own_usd);
    } else if (o) {
        ft__answer_word(out, "provider", o->provider);
        ft__answer_word(out, "instance", o->instance);
        ft__answer_figure(out, "price", o->usd_per_hour / (double)o->gpus);
        ft__answer_word(out, "price_date", o->date);
    }
    ft__json_member_open(out, "plan");
    way(out, &c->way);
    ft__json_close(out);
    point(out, c);
}

static void front_point(ft_text *out, const void *at)
{
    const ft_fleet_choice *c = at;
    ft__json_member_text(out, "gpu", c->gpu);
    ft__json_member_whole(out, "gpus", c->way.gpus);
    ft__answer_figure(out, "tpot_ms", c->way.tpot_ms);
    point(out, c);
}

static bool on_front(const void *at) { return ((const ft_fleet_choice *)at)->front; }
static bool is_knee(const void *at) { return ((const ft_fleet_choice *)at)->knee; }

/* As of a training job: options, the front of them and its knee; the whole of each stands in `choices`. */
static void options(ft_text *out, const ft_fleet_chosen *c)
{
    ft_option_list list = {c->choices, c->count, sizeof *c->choices, option, front_point, on_front, is_knee};
    ft__answer_option_list(out, &list);
}

void ft__answer_fleet_chosen(ft_text *out, const json_t *id, const ft_fleet_chosen *c)
{
    ft__answer_begin(out, id);
    ft__answer_word(out, "objective", ft__choice_words[c->asked->goal]);
    if (c->rate > 0) ft__answer_figure(out, "rate", c->rate);
    if (c->asked->requests > 0) ft__answer_figure(out, "requests", c->asked->requests);
    ft__json_member_flag(out, "found", c->best < c->count);
    if (c->best < c->count) {
        ft__json_member_open(out, "chosen");
        choice(out, &c->choices[c->best], c->goal);
        ft__json_close(out);
    } else if (c->least_gpus) {
        ft__json_member_whole(out, "least_gpus", c->least_gpus);
        ft__json_member_text(out, "least_gpu", c->least_gpu);
    }
    ft__json_member_list(out, "choices");
    for (size_t i = 0; i < c->count; i++) {
        ft__json_open(out);
        choice(out, &c->choices[i], c->goal);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    options(out, c);
    ft__answer_lines(out, "warnings", c->warnings.at ? c->warnings.at : "");
    ft__json_close(out);
}
