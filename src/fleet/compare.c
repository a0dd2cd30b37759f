/* compare.c: the plans for serving beside each other.
 *
 * What a way needs for a request is its GPUs over the requests per second that it carries; of several ways the one that
 * needs least is the best, and forecasts of it err. Ways of one model on one GPU err together, as layouts of a training
 * job do: what is left between two of them is taken as large as there (search/chance.c). */
#include <math.h>

#include "fleet/fleet.h"
#include "search/plan.h"
#include "search/space_constants.h"

/* GPU-seconds of a request: at the rate that its engines keep by themselves where the rate was asked for. */
static double need(const ft_fleet *f, const ft_way *w)
{
    double carries = f->goal == FT_FLEET_GPUS && !w->prefill.tp ? w->alone * (double)w->replicas : w->rate;
    return carries > 0 ? (double)w->gpus / carries : INFINITY;
}

static bool beats(const ft_fleet *f, const ft_way *a, const ft_way *b)
{
    double x = f->goal == FT_FLEET_GPUS ? (double)a->gpus : -a->rate,
           y = f->goal == FT_FLEET_GPUS ? (double)b->gpus : -b->rate;
    return x <= y && a->e2e_ms <= b->e2e_ms && (x < y || a->e2e_ms < b->e2e_ms);
}

/* Whether no way can do with fewer GPUs than the best, with the settings that were tried: the others that stand were
 * tried with fewer engines until the objectives broke, after which fewer still are taken to break them too; what was
 * not simulated has at least one engine of each kind, or missed them with as many GPUs as the best (of two kinds not
 * every division of them is tried, but where everything is). Of rates, which are searched
 * for, nothing is proven. */
static bool fewest(const ft_fleet *f)
{
    if (f->goal != FT_FLEET_GPUS || !f->plans) return false;
    for (size_t i = 0; i < f->count; i++) {
        const ft_way *w = &f->ways[i];
        int64_t least = ft__engine_gpus(&w->layout) + (w->prefill.tp ? ft__engine_gpus(&w->prefill) : 0);
        bool open = !w->as_many_fail || (w->prefill.tp && !f->asked->exhaustive);
        if (w->lost == FT_FLEET_MORE && open && least < f->ways[0].gpus) return false;
    }
    return true;
}

void ft__fleet_say(const ft_fleet *f, ft_text *out)
{
    ft__text_add(out, f->beyond);
    ft__idle_say(f->idle.at, f->idle.count, out);
}

const char *ft__fleet_proof(const ft_fleet *f)
{
    if (f->asked->exhaustive && f->goal != FT_FLEET_GPUS)
        return "every way and setting of the search was simulated; a rate is found to 2 %";
    if (f->asked->exhaustive && f->plans) return "none does with fewer GPUs, of every way, setting and number";
    if (f->proven) return "none does with fewer GPUs, of these ways with the settings that were tried";
    if (!f->plans && f->goal == FT_FLEET_OFFLINE) return "nothing has room for its weights and a cache";
    if (!f->plans) return "settings that were not tried may keep them";
    return "no proof: ways and settings that were not tried may do better";
}

void ft__fleet_compare(ft_fleet *f)
{
    double needs[FT_PLAN_MOST_TOP] = {0}, chance[FT_PLAN_MOST_TOP] = {0};
    size_t shown = f->plans < (size_t)f->asked->top ? f->plans : (size_t)f->asked->top;
    if (shown > FT_PLAN_MOST_TOP) shown = FT_PLAN_MOST_TOP;
    for (size_t i = 0; i < shown; i++) needs[i] = need(f, &f->ways[i]);
    ft__plan_chances(needs, shown, FT_K_SPACE_ORDER_SPREAD, chance);
    for (size_t i = 0; i < shown; i++) f->ways[i].chance = chance[i];
    f->proven = fewest(f);
    for (size_t i = 0; i < f->plans; i++) {
        f->ways[i].front = true;
        for (size_t k = 0; k < f->plans; k++) f->ways[i].front &= !beats(f, &f->ways[k], &f->ways[i]);
    }
}
