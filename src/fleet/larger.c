/* larger.c: nothing stands on the GPUs there are; the fewest that would do. At a rate that is the plan of a search that
 * looks at as many as it likes. Without one, twice as many are looked at until something stands, up to the largest
 * engine. Figures of the search that failed stay as they are. */
#include "fleet/fleet.h"

static ft_status fewest_of(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, int64_t gpus,
                           int64_t *least, ft_error *err)
{
    ft_plan_request more = *r;
    ft_fleet found = {0};
    more.gpus = gpus;
    more.exhaustive = false;
    more.progress = NULL;
    ft_status status = ft__fleet_search(ft, scratch, &more, &found, err);
    for (size_t i = 0; status == FT_OK && i < found.plans; i++)
        if (!*least || found.ways[i].gpus < *least) *least = found.ways[i].gpus;
    ft__fleet_free(&found);
    return status;
}

static int64_t twice(int64_t gpus)
{
    int64_t out = 1;
    while (out <= gpus) out *= 2;
    return out;
}

ft_status ft__fleet_least(const ft_context *ft, ft_scratch *scratch, ft_fleet *f, ft_error *err)
{
    const ft_plan_request *r = f->asked;
    int64_t most = f->most, largest = FT_FLEET_STAGES * f->domain;
    if (f->plans) return FT_OK;
    f->least_gpus = 0;
    if (f->goal == FT_FLEET_GPUS) return r->gpus > 0 ? fewest_of(ft, scratch, r, 0, &f->least_gpus, err) : FT_OK;
    for (int64_t gpus = twice(most); gpus <= largest && !f->least_gpus; gpus *= 2)
        FT_TRY(fewest_of(ft, scratch, r, gpus, &f->least_gpus, err));
    return FT_OK;
}
