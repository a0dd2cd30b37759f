/* choose.c: from plans to a choice.
 *
 * A choice of GPU and number is planned as `plan` does it (the best layout alone); its step, over the share of time
 * that failures leave useful, times the steps of the run is how long it takes; whole instances over that time are what
 * it costs. The interval of days takes the step's own and that of the failures' rate as two things that do not know of
 * each other; dollars follow the days. Power is drawn over the whole time, by the node, times what the building adds.
 *
 * front.c has the front of days against dollars and its knee. */
#include "search/choose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/kinds_constants.h"

const char *const ft__lost_words[FT_LOST_COUNT] = {"chosen",  "memory",        "refused",  "failures",
                                                   "network", "price_unknown", "deadline", "budget",
                                                   "speed",   "price",         "energy"};

static const double hour_s = 3600, hours_per_day = 24;

const ft_offer *ft__choice_offer(const ft_choice *c) { return c->own_usd >= 0 ? NULL : c->price.cheapest; }

/* -- one choice -------------------------------------------------------------------------------- */

static void find_price(const ft_context *ft, const ft_choose_request *r, int64_t node_gpus, const char *asked,
                       ft_choice *c)
{
    char rented[sizeof c->gpu];
    ft__rented_as(ft, c->gpu, asked, rented, sizeof rented);
    ft_price_search search = {.gpu = rented,
                              .gpus = c->gpus,
                              .node_gpus = node_gpus,
                              .providers = r->provider_count ? r->provider : NULL,
                              .provider_count = r->provider_count,
                              .pricing = r->pricing};
    c->price = ft__price_of(&search);
    c->own_usd = ft__own_price(ft, r, rented, asked);
    if (c->own_usd >= 0)
        c->usd_per_hour = c->own_usd * (double)c->gpus;
    else if (c->price.cheapest)
        c->usd_per_hour = ft__offer_per_hour(c->price.cheapest, c->gpus, 0);
}

static void work_out(const ft_choose_request *r, double steps, const ft_search *s, const ft_candidate *plan,
                     ft_choice *c)
{
    double low_ms = plan->low_ms, high_ms = plan->high_ms;
    c->planned = true;
    c->layout = plan->layout;
    c->step_ms = plan->step_ms;
    c->mfu = plan->mfu;
    c->energy = plan->energy;
    c->goodput = ft__goodput(&r->failures, (double)c->nodes, ft__checkpoint_bytes(s->trained));
    double seconds = steps * plan->step_ms * 1e-3 / c->goodput.useful, hours = seconds / hour_s;
    double below = hypot(1 - low_ms / plan->step_ms, 1 - c->goodput.useful / c->goodput.high),
           above = hypot(high_ms / plan->step_ms - 1, c->goodput.useful / c->goodput.low - 1);
    /* Both at their best at once is the least there is: what failures leave may be off by any factor. */
    below = fmin(below, 1 - low_ms / plan->step_ms * c->goodput.useful / c->goodput.high);
    c->days = (ft_span){hours / hours_per_day, hours / hours_per_day * (1 - below),
                        hours / hours_per_day * (1 + above)};
    c->in_time = r->deadline_days > 0 ? ft__chance_within(&c->days, r->deadline_days, ft__interval_level(s->quantile))
                                      : -1;
    c->gpu_hours = hours * (double)c->gpus;
    c->restarts = ft__expected_failures(&c->goodput, seconds);
    c->kwh = c->energy.node_watts * (double)c->gpus * hours * 1e-3 * r->pue;
    c->kg = c->kwh * r->kg_per_kwh;
    double usd = c->usd_per_hour * hours + c->kwh * r->kwh_price;
    c->usd = (ft_span){usd, usd * (1 - below), usd * (1 + above)};
}

/* The plan that a kind and number of GPUs would be asked for; free `request` and `asked` either way. */
static ft_status plan_of(const ft_choose_request *r, const char *gpu, int64_t gpus, json_t **asked,
                         ft_plan_request *request, ft_error *err)
{
    *asked = ft__study_copy(r->base);
    if (!*asked || !ft__key_set(*asked, FT_KEY_ID_GPU, json_string(gpu)) ||
        !ft__key_set(*asked, FT_KEY_ID_PLAN_GPUS, json_integer(gpus)))
        return ft__no_memory(err);
    return ft__plan_request_read(*asked, request, err);
}

static ft_status choose_one(const ft_context *ft, ft_scratch *scratch, ft_chosen *out, const char *gpu, ft_choice *c,
                            ft_error *err)
{
    const ft_choose_request *r = out->asked;
    json_t *asked = NULL;
    ft_plan_request request = {0};
    snprintf(c->gpu, sizeof c->gpu, "%s", gpu);
    ft_plan *plan = calloc(1, sizeof *plan); /* some KiB */
    ft_status status = plan ? plan_of(r, gpu, c->gpus, &asked, &request, err) : FT_E_MEMORY;
    if (status == FT_OK) status = ft__plan_best(ft, scratch, &request, plan, err);
    if (status == FT_OK) {
        const ft_search *s = &plan->search;
        if (*plan->remark && (!out->warnings.length || !strstr(out->warnings.at, plan->remark)))
            ft__text_addf(&out->warnings, "%s%s", out->warnings.length ? "\n" : "", plan->remark);
        if (!out->count) out->idle = plan->idle;
        ft__idle_keep(&out->idle, &plan->idle);
        c->nodes = (c->gpus + s->cluster.gpus_per_node - 1) / s->cluster.gpus_per_node;
        out->tokens_per_step = (double)(request.global * ft__sequences_each(s->request.work.trainer)) *
                               (double)s->request.work.seq;
        out->samples = ft__counts_samples(s->request.arch);
        out->steps = ceil(r->tokens / out->tokens_per_step);
        snprintf(c->gpu, sizeof c->gpu, "%s", s->request.device->name);
        find_price(ft, r, s->cluster.gpus_per_node, gpu, c);
        c->lost = plan->plan_count ? FT_LOST_NOTHING : plan->too_large ? FT_LOST_MEMORY : FT_LOST_REFUSED;
        if (plan->plan_count) work_out(r, out->steps, s, &plan->plans[0], c);
    } else if (status == FT_E_UNSUPPORTED ||
               (status == FT_E_RANGE && r->count_count > 1 && err && !strcmp(err->where, "global_batch"))) {
        /* Of several GPUs one lacks the format; of several numbers one does not divide the batch. */
        c->lost = FT_LOST_REFUSED;
        if (err)
            snprintf(c->why, sizeof c->why, "%.*s", (int)ft__utf8_cut(err->message, sizeof c->why - 1), err->message);
        out->refusal = status;
        status = FT_OK;
    }
    if (plan) ft__plan_free(plan);
    free(plan);
    ft__plan_request_free(&request);
    json_decref(asked);
    return status == FT_E_MEMORY ? ft__no_memory(err) : status;
}

/* -- among them -------------------------------------------------------------------------------- */

static void judge(const ft_choose_request *r, ft_choice *c)
{
    if (!c->planned) return;
    if (!isfinite(c->days.at))
        c->lost = FT_LOST_FAILURES;
    else if (!(c->usd_per_hour > 0) && c->own_usd < 0)
        c->lost = c->price.network_lacks ? FT_LOST_NETWORK : FT_LOST_UNKNOWN;
    else if (r->deadline_days > 0 && c->days.at > r->deadline_days)
        c->lost = FT_LOST_DEADLINE;
    else if (r->budget_usd > 0 && c->usd.at > r->budget_usd)
        c->lost = FT_LOST_BUDGET;
}

static bool stands(const ft_choice *c) { return c->planned && c->lost == FT_LOST_NOTHING; }

static ft_status mark_front(ft_chosen *out, ft_error *err)
{
    ft_traded *all = calloc(out->count + 1, sizeof *all);
    if (!all) return ft__no_memory(err);
    for (size_t i = 0; i < out->count; i++) {
        const ft_choice *c = &out->choices[i];
        all[i] = (ft_traded){.time = c->days.at, .cost = c->usd.at, .stands = stands(c)};
    }
    size_t knee = ft__front(all, out->count);
    for (size_t i = 0; i < out->count; i++) {
        out->choices[i].front = all[i].front;
        out->choices[i].knee = i == knee;
    }
    free(all);
    return FT_OK;
}

static double worth(const ft_choice *c, ft_choose_goal goal)
{
    switch (goal) {
    case FT_CHOOSE_TIME: return c->days.at;
    case FT_CHOOSE_ENERGY: return c->kwh;
    case FT_CHOOSE_CARBON: return c->kg;
    case FT_CHOOSE_KNEE: return c->knee ? 0 : 1;
    default: return c->usd.at;
    }
}

static ft_status decide(ft_chosen *out, ft_error *err)
{
    const ft_choose_request *r = out->asked;
    out->best = out->count;
    for (size_t i = 0; i < out->count; i++) judge(r, &out->choices[i]);
    FT_TRY(mark_front(out, err));
    for (size_t i = 0; i < out->count; i++) {
        const ft_choice *c = &out->choices[i];
        if (!stands(c)) continue;
        const ft_choice *best = out->best < out->count ? &out->choices[out->best] : NULL;
        double a = worth(c, r->goal), b = best ? worth(best, r->goal) : INFINITY;
        if (a < b || (a == b && c->days.at < best->days.at)) out->best = i;
    }
    if (out->best == out->count) return FT_OK;
    const ft_choice *best = &out->choices[out->best];
    for (size_t i = 0; i < out->count; i++) {
        ft_choice *c = &out->choices[i];
        if (i == out->best || !stands(c)) continue;
        bool power = r->goal == FT_CHOOSE_ENERGY || r->goal == FT_CHOOSE_CARBON;
        c->lost = power                       ? FT_LOST_ENERGY
                  : r->goal == FT_CHOOSE_TIME ? FT_LOST_SPEED
                  : c->usd.at > best->usd.at  ? FT_LOST_PRICE
                                              : FT_LOST_SPEED;
    }
    return FT_OK;
}

static ft_status warn_of_strangers(const ft_context *ft, ft_chosen *out, ft_error *err)
{
    const char **gpus = calloc(out->count + 1, sizeof *gpus);
    if (!gpus) return ft__no_memory(err);
    for (size_t i = 0; i < out->count; i++) gpus[i] = out->choices[i].gpu;
    ft_status status = ft__own_prices_told(ft, out->asked, gpus, out->count, &out->warnings, err);
    free(gpus);
    return status;
}

static ft_status warn_of_prices(ft_chosen *out, ft_error *err)
{
    const ft_offer **offers = calloc(out->count + 1, sizeof *offers);
    if (!offers) return ft__no_memory(err);
    for (size_t i = 0; i < out->count; i++)
        offers[i] = out->choices[i].planned ? ft__choice_offer(&out->choices[i]) : NULL;
    ft__price_dates_told(offers, out->count, out->asked->today, &out->warnings);
    free(offers);
    return FT_OK;
}

/* Machines that are taken back are failures like others; how often that is, nobody publishes. */
static void warn_of_spot(ft_chosen *out)
{
    const ft_choose_request *r = out->asked;
    bool usual = r->failures.low < r->failures.high, priced = false; /* a rate that is given has no interval */
    for (size_t i = 0; i < out->count; i++)
        priced = priced || (out->choices[i].planned && ft__choice_offer(&out->choices[i]));
    if (r->pricing == FT_SPOT && usual && priced)
        ft__text_addf(&out->warnings,
                      "%sspot machines are taken back at any time, which the default rate of \"failures\" does not "
                      "include: give your own, {\"rate\": 0.1}",
                      out->warnings.length ? "\n" : "");
}

/* A deadline that not even one step keeps, on whatever was asked for. */
static void warn_of_deadline(ft_chosen *out)
{
    const ft_choice *first = NULL;
    for (size_t i = 0; i < out->count; i++) {
        const ft_choice *c = &out->choices[i];
        if (c->planned && (!first || c->step_ms < first->step_ms)) first = c;
    }
    double deadline_s = out->asked->deadline_days * 86400;
    if (!first || !(deadline_s > 0) || deadline_s * 1e3 >= first->step_ms) return;
    ft__text_addf(&out->warnings,
                  "%sthe deadline is before the first step: the shortest takes %.3g s, on %lld of \"%s\"",
                  out->warnings.length ? "\n" : "", first->step_ms * 1e-3, (long long)first->gpus, first->gpu);
}

/* Every GPU's price is the request's own: nobody's offers are looked at. */
static void warn_of_providers(ft_chosen *out)
{
    bool offered = !out->asked->provider_count || !out->count;
    for (size_t i = 0; i < out->count && !offered; i++) offered = out->choices[i].own_usd < 0;
    if (!offered)
        ft__text_addf(&out->warnings, "%s\"provider\" has no effect: the prices of all GPUs are your own",
                      out->warnings.length ? "\n" : "");
}

/* Nothing fits anywhere: the smallest cluster that would, of any of the kinds. */
static ft_status find_least(const ft_context *ft, ft_scratch *scratch, ft_chosen *out, ft_error *err)
{
    const ft_choose_request *r = out->asked;
    for (size_t i = 0; i < out->count; i++)
        if (out->choices[i].planned) return FT_OK;
    for (size_t i = r->count_count - 1; i < out->count; i += r->count_count) { /* the last number of every kind */
        const ft_choice *c = &out->choices[i];
        json_t *asked = NULL;
        ft_plan_request request = {0};
        if (c->lost != FT_LOST_MEMORY) continue;
        ft_status status = plan_of(r, c->gpu, c->gpus, &asked, &request, err);
        int64_t least = status == FT_OK ? ft__plan_least(ft, scratch, &request) : 0;
        ft__plan_request_free(&request);
        json_decref(asked);
        if (status != FT_OK) return status;
        if (!least || (out->least_gpus && out->least_gpus <= least)) continue;
        out->least_gpus = least;
        memcpy(out->least_gpu, c->gpu, sizeof c->gpu);
    }
    return FT_OK;
}

ft_status ft__choose_of(const ft_context *ft, ft_scratch *scratch, const ft_choose_request *r, ft_chosen *out,
                        ft_error *err)
{
    *out = (ft_chosen){.asked = r};
    const char *const *gpus = r->gpu_count ? r->gpu : NULL;
    size_t kinds = r->gpu_count ? r->gpu_count : (size_t)FT_K_KINDS_GPUS_COUNT;
    out->choices = calloc(kinds * r->count_count + 1, sizeof *out->choices);
    if (!out->choices) return ft__no_memory(err);
    for (size_t g = 0; g < kinds; g++)
        for (size_t i = 0; i < r->count_count; i++) {
            ft_choice *c = &out->choices[out->count];
            const char *gpu = gpus ? gpus[g] : ft__k_kinds_gpus[g].gpu;
            c->gpus = r->counts[i];
            if (r->progress) r->progress(r->watcher, gpu, (double)out->count / (double)(kinds * r->count_count));
            FT_TRY(choose_one(ft, scratch, out, gpu, c, err));
            out->count++;
        }
    bool any = false; /* none of them: the error of the last says what would do */
    for (size_t i = 0; i < out->count && !any; i++) any = out->choices[i].lost != FT_LOST_REFUSED;
    if (!any) return out->refusal;
    FT_TRY(find_least(ft, scratch, out, err));
    FT_TRY(decide(out, err));
    FT_TRY(warn_of_prices(out, err));
    warn_of_spot(out);
    FT_TRY(warn_of_strangers(ft, out, err));
    warn_of_deadline(out);
    warn_of_providers(out);
    ft__idle_say(out->idle.at, out->idle.count, &out->warnings);
    return out->warnings.failed ? ft__no_memory(err) : FT_OK;
}

void ft__chosen_free(ft_chosen *c)
{
    free(c->choices);
    ft__text_free(&c->warnings);
    *c = (ft_chosen){0};
}
