/* space.c: layouts of one engine: tensor ranks inside of what NVLink joins, attention-data-parallel ranks with experts
 * spread over them, stages where nothing else fits or keeps the objectives. */
#include <stdlib.h>

#include "fleet/fleet.h"

static bool asked(const ft_plan_set *set, int64_t value)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->at[i] == value) return true;
    return set->count == 0;
}

static bool add(ft_engine_layout **list, size_t *count, const ft_plan_request *r, ft_engine_layout l)
{
    if (!asked(&r->tp, l.tp) || !asked(&r->pp, l.pp) || !asked(&r->ep, l.ep)) return true;
    ft_engine_layout *more = realloc(*list, (*count + 1) * sizeof *more);
    if (!more) return false;
    more[(*count)++] = l;
    *list = more;
    return true;
}

ft_status ft__fleet_layouts(const ft_fleet_bench *b, ft_engine_layout **out, size_t *count, ft_error *err)
{
    const ft_plan_request *r = b->fleet->asked;
    bool fine = true;
    *out = NULL;
    *count = 0;
    for (int64_t tp = 1; fine && tp <= b->domain && tp <= b->most; tp *= 2) {
        if (b->heads % tp) continue;
        for (int64_t pp = 1; fine && pp <= FT_FLEET_STAGES && tp * pp <= b->most; pp *= 2)
            if (pp == 1 || tp == b->domain) fine = add(out, count, r, (ft_engine_layout){tp, pp, 1, 1, 1});
        for (int64_t dp = 1; fine && b->experts > 0 && tp * dp <= b->most && tp * dp <= FT_FLEET_STAGES * b->domain;
             dp *= 2)
            if (tp * dp > 1 && b->experts % (tp * dp) == 0)
                fine = add(out, count, r, (ft_engine_layout){tp, 1, dp, tp * dp, 1});
    }
    return fine ? FT_OK : ft__no_memory(err);
}
