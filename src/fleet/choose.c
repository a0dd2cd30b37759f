/* choose.c: GPUs for serving, by what they cost.
 *
 * Engines know nothing of each other, so that instances need no network between them unless one engine is larger than
 * an instance, or prompts and answers are served apart; a plan is paid by whole instances, of which each holds whole
 * engines. Of the plans on one kind of GPU the cheapest by the hour is its choice. */
#include "fleet/choose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/choose.h"
#include "search/kinds_constants.h"

static const double hour_s = 3600, day_s = 86400;

/* -- one choice -------------------------------------------------------------------------------- */

static void pay(const ft_context *ft, const ft_fleet_chosen *out, const ft_fleet *f, const char *asked,
                ft_fleet_choice *c)
{
    const ft_choose_request *r = out->asked;
    const ft_way *w = &c->way;
    c->joined = w->prefill.tp ? w->gpus : ft__engine_gpus(&w->layout);
    char rented[sizeof c->gpu];
    ft__rented_as(ft, f->gpu, asked, rented, sizeof rented);
    ft_price_search search = {.gpu = rented,
                              .gpus = w->gpus,
                              .node_gpus = f->node_gpus,
                              .joined = c->joined,
                              .providers = r->provider_count ? r->provider : NULL,
                              .provider_count = r->provider_count,
                              .pricing = r->pricing};
    c->price = ft__price_of(&search);
    c->own_usd = ft__own_price(ft, r, rented, asked);
    c->usd_per_hour = c->own_usd >= 0     ? c->own_usd * (double)w->gpus
                      : c->price.cheapest ? ft__offer_per_hour(c->price.cheapest, w->gpus, c->joined)
                                          : 0;
    double kw = w->energy.node_watts * (double)w->gpus * 1e-3 * r->pue;
    if (c->usd_per_hour > 0 || c->own_usd >= 0) c->usd_per_hour += kw * r->kwh_price;
    c->kwh_per_million = w->tokens_per_s > 0 ? kw / hour_s / w->tokens_per_s * 1e6 : 0;
    c->kg_per_million = c->kwh_per_million * r->kg_per_kwh;
    c->usd_per_million = w->tokens_per_s > 0 ? c->usd_per_hour / hour_s / w->tokens_per_s * 1e6 : 0;
    if (r->requests > 0 && w->rate > 0) {
        c->days = r->requests / w->rate / day_s;
        c->usd = c->days * day_s / hour_s * c->usd_per_hour;
        c->kwh = c->days * day_s / hour_s * kw;
        c->kg = c->kwh * r->kg_per_kwh;
    }
}

static bool priced(const ft_fleet_choice *c) { return c->usd_per_hour > 0 || c->own_usd >= 0; }

/* What a plan of one kind of GPU should have least of. Carbon follows the energy. */
static double rank(const ft_fleet_choice *c, ft_choose_goal goal)
{
    if (goal == FT_CHOOSE_TIME) return c->way.e2e_ms;
    return goal == FT_CHOOSE_COST || goal == FT_CHOOSE_KNEE ? c->usd_per_hour : c->kwh_per_million;
}

/* Whoever looks at GPUs and not at prices finds this one: the answer says what it lacks. */
static void keep_fewer(const ft_fleet *f, const ft_fleet_choice *tried, ft_fleet_fewer *fewer)
{
    if (fewer->way.gpus && fewer->way.gpus <= tried->way.gpus) return;
    *fewer = (ft_fleet_fewer){.way = tried->way,
                              .joined = tried->joined,
                              .offer = tried->price.cheapest,
                              .usd_per_hour = tried->usd_per_hour,
                              .network = tried->joined > f->node_gpus};
}

/* The cheapest of the plans on this kind of GPU; of those that nobody rents the first. */
static void take_best(const ft_context *ft, const ft_fleet_chosen *out, const ft_fleet *f, const char *asked,
                      ft_fleet_choice *c)
{
    ft_fleet_choice best = *c;
    ft_fleet_fewer fewer = {0};
    ft_choose_goal goal = out->asked->goal;
    for (size_t i = 0; i < f->plans; i++) {
        ft_fleet_choice tried = *c;
        tried.way = f->ways[i];
        tried.planned = true;
        pay(ft, out, f, asked, &tried);
        keep_fewer(f, &tried, &fewer);
        double a = rank(&tried, goal), b = rank(&best, goal);
        if (!best.planned || (priced(&tried) && (!priced(&best) || a < b))) best = tried;
    }
    *c = best;
    bool by_price = (goal == FT_CHOOSE_COST || goal == FT_CHOOSE_KNEE) && priced(&best) && best.own_usd < 0;
    if (by_price && !(out->asked->requests > 0) && fewer.way.gpus < best.way.gpus) c->fewer = fewer;
}

static const char *why_not(const ft_fleet *f)
{
    bool memory = true;
    for (size_t i = 0; i < f->count; i++) memory = memory && f->ways[i].lost == FT_FLEET_MEMORY;
    return memory ? "memory" : f->least_gpus ? "gpus" : "objectives";
}

/* One plan's progress as part of the choice's. */
typedef struct part_of {
    const ft_choose_request *asked;
    const char *gpu;
    double from, share;
} part_of;

static void tell_part(void *part, const char *stage, double done)
{
    const part_of *p = part;
    (void)stage;
    p->asked->progress(p->asked->watcher, p->gpu, p->from + p->share * done);
}

/* The plan that is asked for on one kind of GPU; `asked`, to be released, holds what it points to. */
static ft_status plan_asked(const ft_fleet_chosen *out, const char *gpu, int64_t limit, json_t **asked,
                            ft_plan_request *request, ft_error *err)
{
    *asked = ft__study_copy(out->asked->base);
    if (!*asked || !ft__key_set(*asked, FT_KEY_ID_GPU, json_string(gpu)) ||
        (limit > 0 && !ft__key_set(*asked, FT_KEY_ID_PLAN_GPUS, json_integer(limit))))
        return ft__no_memory(err);
    return ft__plan_serve_request_read(*asked, request, err);
}

static ft_status choose_one(const ft_context *ft, ft_scratch *scratch, ft_fleet_chosen *out, part_of *part,
                            ft_fleet_choice *c, ft_error *err)
{
    json_t *asked = NULL;
    ft_plan_request request = {0};
    ft_fleet fleet = {0};
    const char *gpu = part->gpu;
    snprintf(c->gpu, sizeof c->gpu, "%s", gpu);
    ft_status status = plan_asked(out, gpu, c->limit, &asked, &request, err);
    request.watcher = part;
    if (out->asked->progress) request.progress = tell_part;
    if (status == FT_OK) status = ft__fleet_search(ft, scratch, &request, &fleet, err);
    if (status == FT_OK) {
        if (!out->count) out->idle = fleet.idle;
        ft__idle_keep(&out->idle, &fleet.idle);
        memcpy(out->beyond, fleet.beyond, sizeof out->beyond);
        out->goal = fleet.goal;
        out->rate = fleet.rate;
        snprintf(c->gpu, sizeof c->gpu, "%s", fleet.gpu);
        take_best(ft, out, &fleet, gpu, c);
        if (!c->planned) c->verdict = why_not(&fleet);
    } else if (status == FT_E_UNSUPPORTED && !strcmp(err->where, "dtype")) {
        c->verdict = "refused"; /* of several GPUs one lacks the format */
        snprintf(c->why, sizeof c->why, "%.*s", (int)ft__utf8_cut(err->message, sizeof c->why - 1), err->message);
        out->refusal = status;
        status = FT_OK;
    }
    ft__fleet_free(&fleet);
    ft__plan_request_free(&request);
    json_decref(asked);
    return status;
}

/* Nothing was found on any kind of GPU: the fewest that would do. */
static ft_status find_least(const ft_context *ft, ft_scratch *scratch, ft_fleet_chosen *out, ft_error *err)
{
    ft_status status = FT_OK;
    out->least_gpus = 0;
    for (size_t i = 0; status == FT_OK && i < out->count; i++) {
        const ft_fleet_choice *c = &out->choices[i];
        /* Of a kind the choice that had most. */
        const bool last = i + 1 == out->count || strcmp(c->gpu, out->choices[i + 1].gpu) != 0;
        json_t *asked = NULL;
        ft_plan_request request = {0};
        ft_fleet fleet = {0};
        if (*c->why || !last) continue;
        status = plan_asked(out, c->gpu, c->limit, &asked, &request, err);
        if (status == FT_OK) status = ft__fleet_of(ft, scratch, &request, &fleet, err);
        if (status == FT_OK && fleet.least_gpus && (!out->least_gpus || fleet.least_gpus < out->least_gpus)) {
            out->least_gpus = fleet.least_gpus;
            memcpy(out->least_gpu, c->gpu, sizeof c->gpu);
        }
        ft__fleet_free(&fleet);
        ft__plan_request_free(&request);
        json_decref(asked);
    }
    return status;
}

/* -- among them -------------------------------------------------------------------------------- */

static double time_of(const ft_fleet_choice *c) { return c->days > 0 ? c->days : c->way.e2e_ms; }
static double cost_of(const ft_fleet_choice *c) { return c->days > 0 ? c->usd : c->usd_per_hour; }

/* What a choice should have least of, among kinds and numbers. */
static double worth_of(const ft_fleet_choice *c, ft_choose_goal goal)
{
    if (goal == FT_CHOOSE_TIME) return time_of(c);
    if (goal == FT_CHOOSE_COST) return cost_of(c);
    return c->kwh_per_million > 0 ? c->kwh_per_million : INFINITY; /* a job's tokens are all choices' */
}

static void judge(const ft_choose_request *r, ft_fleet_choice *c)
{
    if (!c->planned) return;
    if (!priced(c))
        c->verdict = c->price.network_lacks ? "network" : "price_unknown";
    else if (r->deadline_days > 0 && c->days > r->deadline_days)
        c->verdict = "deadline";
    else if (r->budget_usd > 0 && cost_of(c) > r->budget_usd)
        c->verdict = "budget";
}

/* Which of them nothing is faster and cheaper than, and the corner of those. */
static ft_status mark_front(ft_fleet_chosen *out, size_t *knee, ft_error *err)
{
    ft_traded *all = calloc(out->count + 1, sizeof *all);
    if (!all) return ft__no_memory(err);
    for (size_t i = 0; i < out->count; i++) {
        const ft_fleet_choice *c = &out->choices[i];
        all[i] = (ft_traded){.time = time_of(c), .cost = cost_of(c), .stands = !c->verdict};
    }
    *knee = ft__front(all, out->count);
    for (size_t i = 0; i < out->count; i++) out->choices[i].front = all[i].front;
    if (*knee < out->count) out->choices[*knee].knee = true;
    free(all);
    return FT_OK;
}

static ft_status decide(ft_fleet_chosen *out, ft_error *err)
{
    const ft_choose_request *r = out->asked;
    size_t knee = 0;
    for (size_t i = 0; i < out->count; i++) judge(r, &out->choices[i]);
    FT_TRY(mark_front(out, &knee, err));
    out->best = r->goal == FT_CHOOSE_KNEE ? knee : out->count;
    for (size_t i = 0; i < out->count && r->goal != FT_CHOOSE_KNEE; i++) {
        const ft_fleet_choice *c = &out->choices[i], *best = out->best < out->count ? &out->choices[out->best] : NULL;
        if (!c->verdict && (!best || worth_of(c, r->goal) < worth_of(best, r->goal))) out->best = i;
    }
    for (size_t i = 0; i < out->count; i++) {
        ft_fleet_choice *c = &out->choices[i];
        if (c->verdict) continue;
        bool slower = r->goal == FT_CHOOSE_TIME || cost_of(c) <= cost_of(&out->choices[out->best]);
        c->verdict = i == out->best                                               ? "chosen"
                     : r->goal == FT_CHOOSE_ENERGY || r->goal == FT_CHOOSE_CARBON ? "energy"
                     : slower                                                     ? "speed"
                                                                                  : "price";
    }
    return FT_OK;
}

static ft_status warn(ft_fleet_chosen *out, ft_error *err)
{
    const ft_offer **offers = calloc(out->count + 1, sizeof *offers);
    if (!offers) return ft__no_memory(err);
    for (size_t i = 0; i < out->count; i++) {
        const ft_fleet_choice *c = &out->choices[i];
        offers[i] = c->planned && c->own_usd < 0 ? c->price.cheapest : NULL;
    }
    ft__price_dates_told(offers, out->count, out->asked->today, &out->warnings);
    free(offers);
    return FT_OK;
}

ft_status ft__fleet_choose(const ft_context *ft, ft_scratch *scratch, const ft_choose_request *r, ft_fleet_chosen *out,
                           ft_error *err)
{
    *out = (ft_fleet_chosen){.asked = r};
    size_t kinds = r->gpu_count ? r->gpu_count : (size_t)FT_K_KINDS_GPUS_COUNT;
    size_t numbers = r->requests > 0 && r->count_count ? r->count_count : 1; /* of a rate: as many as it takes */
    out->choices = calloc(kinds * numbers + 1, sizeof *out->choices);
    if (!out->choices) return ft__no_memory(err);
    for (size_t g = 0; g < kinds; g++)
        for (size_t i = 0; i < numbers; i++) {
            ft_fleet_choice *c = &out->choices[out->count];
            c->own_usd = -1;
            if (r->requests > 0 && r->count_count) c->limit = r->counts[i];
            for (size_t k = 0; !(r->requests > 0) && k < r->count_count; k++)
                c->limit = r->counts[k] > c->limit ? r->counts[k] : c->limit;
            const char *gpu = r->gpu_count ? r->gpu[g] : ft__k_kinds_gpus[g].gpu;
            const double share = 1 / (double)(kinds * numbers);
            part_of part = {r, gpu, (double)out->count * share, share};
            FT_TRY(choose_one(ft, scratch, out, &part, c, err));
            out->count++;
        }
    bool any = false; /* none of them: the error of the last says why */
    for (size_t i = 0; i < out->count && !any; i++) any = !*out->choices[i].why;
    if (!any) return out->refusal;
    bool planned = false;
    for (size_t i = 0; i < out->count; i++) planned = planned || out->choices[i].planned;
    if (!planned) FT_TRY(find_least(ft, scratch, out, err));
    FT_TRY(decide(out, err));
    FT_TRY(warn(out, err));
    const char **gpus = calloc(out->count + 1, sizeof *gpus);
    if (!gpus) return ft__no_memory(err);
    for (size_t i = 0; i < out->count; i++) gpus[i] = out->choices[i].gpu;
    ft_status status = ft__own_prices_told(ft, r, gpus, out->count, &out->warnings, err);
    free(gpus);
    FT_TRY(status);
    if (*out->beyond) ft__text_addf(&out->warnings, "%s%s", out->warnings.length ? "\n" : "", out->beyond);
    ft__idle_say(out->idle.at, out->idle.count, &out->warnings);
    return out->warnings.failed ? ft__no_memory(err) : FT_OK;
}

void ft__fleet_chosen_free(ft_fleet_chosen *c)
{
    free(c->choices);
    ft__text_free(&c->warnings);
    *c = (ft_fleet_chosen){0};
}
