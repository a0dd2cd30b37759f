/* fleet.c: the search for a way to serve.
 *
 * Of every layout one engine is tried first: the highest rate at which it keeps the objectives, with the engine's own
 * settings and with others, one setting after the other. As many engines as the rate needs are then simulated together,
 * behind a router, and one less as long as that is enough: engines that share a queue do better than each by itself.
 * What would be too many by that is simulated once with as many as the best has, or as there are.
 * Engines that only prefill and engines that only decode are tried the same way, each kind first beside more of the
 * other than it needs. Every figure of a plan comes from a simulation of the whole of it. */
#include "fleet/fleet.h"

#include <math.h>
#include <stdlib.h>

#include "fleet/fleet_constants.h"
#include "request/keys.h"

const char *const ft__fleet_goal_words[] = {"gpus", "rate", "tokens"};
const int64_t ft__fleet_budgets[FT_FLEET_BUDGETS] = {2048, 4096, 8192, 16384, 32768};
const int64_t ft__fleet_sequences[FT_FLEET_SEQUENCES] = {64, 128, 256, 512};
const char *const ft__fleet_lost_words[FT_FLEET_LOSTS] = {"stands", "memory", "ttft",     "tpot",
                                                          "e2e",    "gpus",   "more_gpus"};

ft_status ft__fleet_add(ft_fleet *f, const ft_way *w, ft_error *err)
{
    if (f->count == f->room) {
        size_t room = f->room ? 2 * f->room : 64;
        ft_way *more = realloc(f->ways, room * sizeof *more);
        if (!more) return ft__no_memory(err);
        f->ways = more;
        f->room = room;
    }
    f->ways[f->count++] = *w;
    return FT_OK;
}

static int64_t gpus_of(const ft_way *w)
{
    return ft__engine_gpus(&w->layout) * w->replicas +
           (w->prefill.tp ? ft__engine_gpus(&w->prefill) * w->prefill_workers : 0);
}

static int by_layout(const ft_way *x, const ft_way *y)
{
    const int64_t one[] = {x->prefill.tp, x->layout.tp,  x->layout.dp,  x->layout.pp,
                           x->layout.ep,  x->prefill.dp, x->prefill.pp, x->prefill.ep};
    const int64_t two[] = {y->prefill.tp, y->layout.tp,  y->layout.dp,  y->layout.pp,
                           y->layout.ep,  y->prefill.dp, y->prefill.pp, y->prefill.ep};
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        if (one[i] != two[i]) return one[i] < two[i] ? -1 : 1;
    return 0;
}

/* -- settings ---------------------------------------------------------------------------------- */

static double worth(const ft_fleet *f, const ft_way *w)
{
    return w->lost != FT_FLEET_STANDS ? 0 : f->goal == FT_FLEET_OFFLINE ? w->tokens_per_s : w->rate;
}

static ft_status better(ft_fleet_bench *b, ft_way *best, ft_way tried, ft_error *err)
{
    FT_TRY(ft__fleet_find(b, &tried, best->rate, false, err));
    double gain = worth(b->fleet, &tried) - worth(b->fleet, best) * (1 + FT_K_FLEET_WORTH_CHANGING);
    if (gain > 0) *best = tried;
    return FT_OK;
}

/* What else one engine might be started with: one setting after the other. */
static ft_status settle(ft_fleet_bench *b, ft_way *w, ft_error *err)
{
    const json_t *base = b->fleet->asked->base;
    ft_way own = *w;
    for (size_t i = 0; i < FT_FLEET_BUDGETS && !ft__key_get(base, FT_KEY_ID_MAX_NUM_BATCHED_TOKENS); i++) {
        own.budget = ft__fleet_budgets[i];
        FT_TRY(better(b, w, own, err));
    }
    own.budget = w->budget;
    for (size_t i = 0; i < FT_FLEET_SEQUENCES && !ft__key_get(base, FT_KEY_ID_MAX_NUM_SEQS); i++) {
        own.max_seqs = ft__fleet_sequences[i];
        FT_TRY(better(b, w, own, err));
    }
    return FT_OK;
}

static const double ENGINES_PART = 0.5; /* of a search, half of it with a router; the rest: engines apart */

enum { STEPS = 8 }; /* numbers of engines change by an eighth at once */

/* -- how many of them -------------------------------------------------------------------------- */

ft_status ft__fleet_stands(ft_fleet_bench *b, ft_way *w, double rate, ft_error *err)
{
    b->verdict_alone = true;
    ft_status status = ft__fleet_try(b, w, rate, err);
    b->verdict_alone = false;
    return status;
}

/* Fewer engines of one kind, in ever smaller steps, as long as they are enough. */
static ft_status shrink(ft_fleet_bench *b, ft_way *w, bool prefills, double rate, ft_error *err)
{
    int64_t number = prefills ? w->prefill_workers : w->replicas, step = (number + STEPS - 1) / STEPS, too_few = 0;
    while (step > 0 && number > 1) {
        ft_way tried = *w;
        int64_t fewer = number - step > 1 ? number - step : 1;
        *(prefills ? &tried.prefill_workers : &tried.replicas) = fewer;
        if (fewer != too_few) FT_TRY(ft__fleet_stands(b, &tried, rate, err));
        if (fewer != too_few && tried.lost == FT_FLEET_STANDS) {
            *w = tried;
            number = fewer;
        } else {
            too_few = fewer;
            step = step > 1 ? step / 2 : 0;
        }
    }
    return FT_OK;
}

/* So many GPUs in two kinds of engines, first as one of each kind by itself would have them; then what is missed says
 * of which there are too few. */
static ft_status divided(ft_fleet_bench *b, ft_way *w, int64_t gpus, double rate, ft_error *err)
{
    enum { TRIES = 3 };
    int64_t p = ft__engine_gpus(&w->prefill), d = ft__engine_gpus(&w->layout), low = 1, high = (gpus - d) / p;
    int64_t number = w->prefill_workers * gpus / w->gpus;
    w->lost = FT_FLEET_TOO_MANY;
    for (int i = 0; i < TRIES && low <= high; i++, number = (low + high) / 2) {
        w->prefill_workers = number < low ? low : number > high ? high : number;
        w->replicas = (gpus - w->prefill_workers * p) / d;
        FT_TRY(ft__fleet_stands(b, w, rate, err));
        if (w->lost == FT_FLEET_STANDS) return FT_OK;
        if (w->lost == FT_FLEET_TTFT)
            low = w->prefill_workers + 1;
        else
            high = w->prefill_workers - 1;
    }
    return FT_OK;
}

/* What one engine's rate puts beyond the GPUs there are, or far beyond the best, may do with fewer behind a router. */
static ft_status with_fewer(ft_fleet_bench *b, ft_way *w, double rate, ft_error *err)
{
    ft_way fewer = *w;
    int64_t gpus = b->best > 0 && b->best < b->most ? b->best : b->most;
    w->lost = w->gpus > b->most ? FT_FLEET_TOO_MANY : FT_FLEET_MORE;
    if (w->prefill.tp) {
        FT_TRY(divided(b, &fewer, gpus, rate, err));
    } else {
        fewer.replicas = gpus / ft__engine_gpus(&w->layout);
        if (!fewer.replicas) return FT_OK;
        FT_TRY(ft__fleet_stands(b, &fewer, rate, err));
    }
    if (fewer.lost == FT_FLEET_STANDS)
        *w = fewer;
    else
        w->as_many_fail = gpus == b->best;
    return FT_OK;
}

ft_status ft__fleet_fewest(ft_fleet_bench *b, ft_way *w, double rate, ft_error *err)
{
    for (int i = 0; i <= STEPS / 2; i++) {
        w->gpus = gpus_of(w);
        bool beyond = w->gpus > b->most || (b->best > 0 && w->gpus > FT_K_FLEET_FAR_MORE * b->best);
        FT_TRY(beyond ? with_fewer(b, w, rate, err) : ft__fleet_try(b, w, rate, err));
        if (w->lost == FT_FLEET_STANDS) {
            if (w->prefill.tp) FT_TRY(shrink(b, w, true, rate, err));
            FT_TRY(shrink(b, w, false, rate, err));
            if (!b->best || w->gpus < b->best) b->best = w->gpus;
        }
        if (beyond || w->lost == FT_FLEET_STANDS) return FT_OK;
        int64_t *number = w->prefill.tp && w->lost == FT_FLEET_TTFT ? &w->prefill_workers : &w->replicas;
        *number += (*number + STEPS - 1) / STEPS;
    }
    return FT_OK;
}

/* -- the same engines do both ------------------------------------------------------------------ */

static ft_status together(ft_fleet_bench *b, ft_way *w, ft_error *err)
{
    ft_fleet *f = b->fleet;
    int64_t each = ft__engine_gpus(&w->layout);
    w->gpus = each;
    w->replicas = 1;
    FT_TRY(ft__fleet_find(b, w, b->guess * (double)each, false, err));
    if (w->lost == FT_FLEET_MEMORY) return FT_OK;
    if (w->lost == FT_FLEET_STANDS) b->guess = w->rate / (double)each;
    FT_TRY(settle(b, w, err));
    w->alone = w->rate;
    if (w->lost != FT_FLEET_STANDS) return FT_OK;
    w->replicas = f->goal == FT_FLEET_GPUS ? ft__fleet_needed(f->rate, w->alone) : b->most / each;
    w->gpus = gpus_of(w);
    return FT_OK;
}

static int by_number(const void *a, const void *b)
{
    const ft_way *x = a, *y = b;
    if (x->lost != y->lost) return x->lost < y->lost ? -1 : 1;
    if (x->gpus != y->gpus) return x->gpus < y->gpus ? -1 : 1;
    return by_layout(x, y);
}

/* The most that so many engines carry: settings that one engine did better with by itself must do so here too. */
static ft_status most(ft_fleet_bench *b, ft_way *w, ft_error *err)
{
    ft_way own = *w;
    FT_TRY(ft__fleet_find(b, w, w->alone * (double)w->replicas, true, err));
    if (!w->budget && !w->max_seqs) return FT_OK;
    own.budget = own.max_seqs = 0;
    FT_TRY(ft__fleet_find(b, &own, own.alone * (double)own.replicas, true, err));
    if (worth(b->fleet, &own) >= worth(b->fleet, w)) *w = own;
    return FT_OK;
}

/* Those that need fewest by themselves first: far behind them nothing is simulated. */
static ft_status behind_router(ft_fleet_bench *b, ft_error *err)
{
    ft_fleet *f = b->fleet;
    qsort(f->ways, f->count, sizeof *f->ways, by_number);
    for (size_t i = 0; i < f->count; i++) {
        ft_way *w = &f->ways[i];
        if (w->lost != FT_FLEET_STANDS) continue;
        ft__fleet_tell(b, "several engines", ENGINES_PART * (1 + (double)i / (double)f->count) / 2);
        if (f->goal == FT_FLEET_GPUS)
            FT_TRY(ft__fleet_fewest(b, w, f->rate, err));
        else
            FT_TRY(most(b, w, err));
    }
    return FT_OK;
}

/* -- the whole --------------------------------------------------------------------------------- */

/* What stands first: the fewest GPUs and of those the fastest; or the most requests, the most tokens, per GPU that is
 * there. Behind it what loses, by what it loses by. */
int ft__fleet_by_gpus(const void *a, const void *b)
{
    const ft_way *x = a, *y = b;
    if (x->lost != y->lost) return x->lost < y->lost ? -1 : 1;
    if (x->gpus != y->gpus) return x->gpus < y->gpus ? -1 : 1;
    if (x->e2e_ms != y->e2e_ms) return x->e2e_ms < y->e2e_ms ? -1 : 1;
    return by_layout(x, y);
}

int ft__fleet_by_rate(const void *a, const void *b)
{
    const ft_way *x = a, *y = b;
    if (x->lost != y->lost) return x->lost < y->lost ? -1 : 1;
    if (x->rate != y->rate) return x->rate > y->rate ? -1 : 1;
    return by_layout(x, y);
}

/* An object without a time, or an empty text, asks for nothing that requests could keep. */
static bool names_time(const json_t *slo)
{
    static const ft_key_id times[] = {FT_KEY_ID_SLO_TTFT, FT_KEY_ID_SLO_TPOT, FT_KEY_ID_SLO_E2E};
    if (json_is_string(slo)) return json_string_length(slo) > 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (ft__key_get(slo, times[i])) return true;
    return false;
}

static ft_status no_such_engine(const ft_fleet_bench *b, ft_error *err)
{
    const ft_plan_request *r = b->fleet->asked;
    if (b->experts < 1 && r->ep.count && !(r->ep.count == 1 && r->ep.at[0] == 1))
        return ft__fail_at(
            err, FT_E_RANGE, "search", 0, 0,
            "no engine has these degrees: the model has no experts that \"ep\" could spread; 1 would do");
    return ft__fail_at(err, FT_E_RANGE, "search", 0, 0,
                       "no engine has these degrees: tensor ranks are powers of two up to %lld that divide the "
                       "model's %lld heads",
                       (long long)b->domain, (long long)b->heads);
}

static ft_status open_search(ft_fleet_bench *b, ft_error *err)
{
    ft_fleet *f = b->fleet;
    const ft_plan_request *r = f->asked;
    const json_t *rate = ft__key_get(r->base, FT_KEY_ID_RATE), *osl = ft__key_get(r->base, FT_KEY_ID_SERVE_OSL);
    const json_t *objectives = ft__key_get(r->base, FT_KEY_ID_SLO);
    const bool slo = objectives != NULL;
    f->rate = json_number_value(rate);
    f->osl = json_number_value(osl);
    f->goal = rate ? FT_FLEET_GPUS : slo ? FT_FLEET_RATE : FT_FLEET_OFFLINE;
    if (rate && !slo)
        return ft__fail_at(err, FT_E_MISSING, "slo", 0, 0,
                           "\"slo\" is missing: what must requests keep? "
                           "{\"ttft_ms\": 500, \"tpot_ms\": 30}; as a text \"ttft=500ms,tpot=30ms\"");
    if (slo && !names_time(objectives))
        return ft__fail_at(err, FT_E_MISSING, "slo", 0, 0,
                           "\"slo\" names no time: what must requests keep? "
                           "{\"ttft_ms\": 500, \"tpot_ms\": 30}; as a text \"ttft=500ms,tpot=30ms\"");
    ft_way first = {.layout = {1, 1, 1, 1, 1}, .replicas = 1};
    FT_TRY(ft__fleet_try(b, &first, FT_K_FLEET_LEAST_RATE, err)); /* what the model is, and the node */
    b->domain = 1;
    while (2 * b->domain <= f->node_gpus) b->domain *= 2;
    b->most = r->gpus > 0 ? r->gpus : rate ? (int64_t)FT_K_FLEET_MOST_GPUS : b->domain;
    f->domain = b->domain;
    f->most = b->most;
    return FT_OK;
}

static ft_status search(ft_fleet_bench *b, ft_engine_layout *layouts, size_t count, ft_error *err)
{
    ft_fleet *f = b->fleet;
    const ft_plan_request *r = f->asked;
    size_t fitting = 0;
    bool whole = false; /* something does without stages */
    for (size_t i = 0; i < count; i++) {
        ft_way w = {.layout = layouts[i]};
        ft__fleet_tell(b, "one engine", ENGINES_PART * (double)i / (double)count / 2);
        if (w.layout.pp > 1 && whole && !r->pp.count) continue;
        FT_TRY(together(b, &w, err));
        FT_TRY(ft__fleet_add(f, &w, err));
        whole = whole || (w.lost == FT_FLEET_STANDS && w.layout.pp == 1);
        if (w.lost == FT_FLEET_MEMORY) continue;
        layouts[fitting++] = layouts[i];
    }
    FT_TRY(behind_router(b, err));
    return f->goal == FT_FLEET_OFFLINE ? FT_OK : ft__fleet_apart(b, layouts, fitting, err);
}

ft_status ft__fleet_search(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_fleet *out,
                           ft_error *err)
{
    *out = (ft_fleet){.asked = r};
    ft_fleet_bench b = {.ft = ft, .scratch = scratch, .fleet = out};
    ft_engine_layout *layouts = NULL;
    size_t count = 0;
    FT_TRY(open_search(&b, err));
    ft_status status = ft__fleet_layouts(&b, &layouts, &count, err);
    if (status == FT_OK && !count) status = no_such_engine(&b, err);
    if (status == FT_OK)
        status = r->exhaustive ? ft__fleet_every(&b, layouts, count, err) : search(&b, layouts, count, err);
    free(layouts);
    if (status != FT_OK) return status;
    for (size_t i = 0; i < r->idle.count; i++) ft__idle_put(&out->idle, r->idle.at[i].key, r->idle.at[i].why);
    qsort(out->ways, out->count, sizeof *out->ways, out->goal == FT_FLEET_GPUS ? ft__fleet_by_gpus : ft__fleet_by_rate);
    while (out->plans < out->count && out->ways[out->plans].lost == FT_FLEET_STANDS) out->plans++;
    ft__fleet_compare(out);
    for (size_t i = 0; !out->plans && i < out->count; i++) {
        const ft_way *w = &out->ways[i];
        if (w->lost == FT_FLEET_TOO_MANY && (!out->least_gpus || w->gpus < out->least_gpus)) out->least_gpus = w->gpus;
    }
    return FT_OK;
}

ft_status ft__fleet_of(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_fleet *out,
                       ft_error *err)
{
    FT_TRY(ft__fleet_search(ft, scratch, r, out, err));
    return ft__fleet_least(ft, scratch, out, err);
}

void ft__fleet_free(ft_fleet *f)
{
    free(f->ways);
    *f = (ft_fleet){0};
}
