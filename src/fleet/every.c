/* every.c: the search that passes nothing over: every layout, with stages too, with every pair of settings, and every
 * number of engines up to the GPUs of the best; of engines apart every division of the GPUs. It takes tens of times as
 * long as the search that it is there to check (tests/unit/fleet_every.c). */
#include "fleet/fleet.h"
#include "fleet/fleet_constants.h"
#include "request/keys.h"

static double worth(const ft_fleet *f, const ft_way *w)
{
    if (w->lost != FT_FLEET_STANDS) return 0;
    return f->goal == FT_FLEET_OFFLINE ? w->tokens_per_s : f->goal == FT_FLEET_RATE ? w->rate : 1 / (double)w->gpus;
}

/* The engine's own settings unless others are better by more than what the search leaves open, or noise. */
static void keep_better(const ft_fleet *f, ft_way *best, const ft_way *tried)
{
    const double noise = f->goal == FT_FLEET_OFFLINE ? FT_K_FLEET_WORTH_CHANGING
                         : f->goal == FT_FLEET_RATE  ? FT_K_FLEET_FOUND
                                                     : 0;
    if (worth(f, tried) > worth(f, best) * (1 + noise)) *best = *tried;
}

static void keep_first(const ft_fleet *f, ft_way *best, const ft_way *tried)
{
    bool better = f->goal == FT_FLEET_GPUS ? ft__fleet_by_gpus(tried, best) < 0 : ft__fleet_by_rate(tried, best) < 0;
    if (!best->replicas || better) *best = *tried;
}

/* GPUs that are worth trying: with more than the best has a way is not the best. */
static int64_t limit_of(const ft_fleet_bench *b) { return b->best > 0 && b->best < b->most ? b->best : b->most; }

static void note_best(ft_fleet_bench *b, const ft_way *w)
{
    if (w->lost == FT_FLEET_STANDS && (!b->best || w->gpus < b->best)) b->best = w->gpus;
}

/* Every number from one on, until one is enough. */
static ft_status count_up(ft_fleet_bench *b, ft_way *w, ft_error *err)
{
    int64_t each = ft__engine_gpus(&w->layout), limit = limit_of(b);
    ft_way tried = *w;
    for (tried.replicas = 1; tried.replicas * each <= limit; tried.replicas++) {
        FT_TRY(ft__fleet_stands(b, &tried, b->fleet->rate, err));
        if (tried.lost != FT_FLEET_STANDS) continue;
        *w = tried;
        return FT_OK;
    }
    w->lost = limit == b->most ? FT_FLEET_TOO_MANY : FT_FLEET_MORE;
    w->gpus = tried.replicas * each;
    w->as_many_fail = true;
    return FT_OK;
}

static ft_status with_settings(ft_fleet_bench *b, ft_way *w, ft_error *err)
{
    const ft_fleet *f = b->fleet;
    int64_t each = ft__engine_gpus(&w->layout);
    w->replicas = 1;
    w->gpus = each;
    FT_TRY(ft__fleet_find(b, w, b->guess * (double)each, false, err));
    if (w->lost != FT_FLEET_STANDS) return FT_OK;
    b->guess = w->rate / (double)each;
    w->alone = w->rate;
    if (f->goal == FT_FLEET_GPUS) return count_up(b, w, err);
    w->replicas = b->most / each;
    return ft__fleet_find(b, w, w->alone * (double)w->replicas, true, err);
}

static ft_status together(ft_fleet_bench *b, const ft_engine_layout *l, ft_way *best, ft_error *err)
{
    const json_t *base = b->fleet->asked->base;
    int budgets = ft__key_get(base, FT_KEY_ID_MAX_NUM_BATCHED_TOKENS) ? 0 : FT_FLEET_BUDGETS;
    int sequences = ft__key_get(base, FT_KEY_ID_MAX_NUM_SEQS) ? 0 : FT_FLEET_SEQUENCES;
    *best = (ft_way){.layout = *l};
    for (int i = 0; i <= budgets; i++)
        for (int k = 0; k <= sequences; k++) {
            ft_way w = {.layout = *l};
            w.budget = i ? ft__fleet_budgets[i - 1] : 0;
            w.max_seqs = k ? ft__fleet_sequences[k - 1] : 0;
            FT_TRY(with_settings(b, &w, err));
            note_best(b, &w);
            if (!i && !k)
                *best = w;
            else
                keep_better(b->fleet, best, &w);
            if (w.lost == FT_FLEET_MEMORY && !i && !k) return FT_OK;
        }
    return FT_OK;
}

/* Every division of so many GPUs; the rest of them may be idle. */
static ft_status divide(ft_fleet_bench *b, const ft_way *pair, int64_t gpus, ft_way *best, ft_error *err)
{
    int64_t p = ft__engine_gpus(&pair->prefill), d = ft__engine_gpus(&pair->layout);
    bool all = b->fleet->goal == FT_FLEET_GPUS; /* of them, as fewer were tried before */
    for (int64_t n = 1; n * p + d <= gpus; n++) {
        ft_way w = *pair;
        w.prefill_workers = n;
        w.replicas = (gpus - n * p) / d;
        w.gpus = n * p + w.replicas * d;
        if (all && w.gpus < gpus) continue;
        FT_TRY(all ? ft__fleet_stands(b, &w, b->fleet->rate, err)
                   : ft__fleet_find(b, &w, b->guess * (double)w.gpus, true, err));
        keep_first(b->fleet, best, &w);
    }
    return FT_OK;
}

static ft_status apart(ft_fleet_bench *b, const ft_engine_layout *prefill, const ft_engine_layout *decode,
                       ft_error *err)
{
    ft_way pair = {.layout = *decode, .prefill = *prefill}, best = {0};
    int64_t first = ft__engine_gpus(prefill) + ft__engine_gpus(decode), limit = limit_of(b);
    if (b->fleet->goal == FT_FLEET_RATE) {
        FT_TRY(divide(b, &pair, b->most, &best, err));
        return best.replicas ? ft__fleet_add(b->fleet, &best, err) : FT_OK;
    }
    for (int64_t gpus = first; gpus <= limit && !(best.replicas && best.lost == FT_FLEET_STANDS); gpus++)
        FT_TRY(divide(b, &pair, gpus, &best, err));
    if (!best.replicas || best.lost != FT_FLEET_STANDS) {
        best = pair;
        best.replicas = best.prefill_workers = 1;
        best.gpus = limit > first ? limit + 1 : first;
        best.lost = limit == b->most ? FT_FLEET_TOO_MANY : FT_FLEET_MORE;
        best.as_many_fail = true;
    }
    note_best(b, &best);
    return ft__fleet_add(b->fleet, &best, err);
}

ft_status ft__fleet_every(ft_fleet_bench *b, const ft_engine_layout *layouts, size_t count, ft_error *err)
{
    ft_fleet *f = b->fleet;
    const double part = f->goal == FT_FLEET_OFFLINE ? 1 : 0.5;
    for (size_t i = 0; i < count; i++) {
        ft_way best;
        ft__fleet_tell(b, "one kind of engine", part * (double)i / (double)count);
        FT_TRY(together(b, &layouts[i], &best, err));
        FT_TRY(ft__fleet_add(f, &best, err));
    }
    for (size_t p = 0; p < count && f->goal != FT_FLEET_OFFLINE; p++)
        for (size_t d = 0; d < count; d++) {
            double done = (double)(p * count + d) / (double)(count * count);
            ft__fleet_tell(b, "engines apart", part + (1 - part) * done);
            if (f->ways[p].lost != FT_FLEET_MEMORY && f->ways[d].lost != FT_FLEET_MEMORY)
                FT_TRY(apart(b, &layouts[p], &layouts[d], err));
        }
    return FT_OK;
}
