/* exchange.c: one exchange among ranks, by formula or through the simulator. */
#include "study/context.h"

static ft_status forecast(const ft_context *ft, const ft_collective_request *r, double quantile, ft_comm *c,
                          ft_error *err)
{
    return ft__collective_forecast(ft__context_predictor(ft), r->device, &r->cluster, r->op, r->bytes, &r->group,
                                   quantile, c, err);
}

/* Once to learn what is sent, then through the simulator. */
static ft_status simulate(const ft_context *ft, ft_scratch *scratch, ft_collective_request *r, double quantile,
                          ft_comm *c, ft_error *err)
{
    if (!scratch->trials) scratch->trials = ft__arena_new((size_t)512 << 20);
    if (!scratch->trials) return ft__no_memory(err);
    ft__arena_reset(scratch->trials);
    int64_t ranks = r->group.size * (r->group.stride > 0 ? r->group.stride : 1);
    FT_TRY(ft__simulated_new(&r->cluster, ranks, scratch->trials, &r->cluster.simulated, err));
    if (!r->cluster.simulated) return FT_OK;
    FT_TRY(forecast(ft, r, quantile, c, err));
    FT_TRY(ft__simulated_run(r->cluster.simulated, scratch->simulator, err));
    return forecast(ft, r, quantile, c, err);
}

ft_status ft__collective_request_of(const ft_context *ft, ft_scratch *scratch, const json_t *object,
                                    ft_collective_request *out, ft_error *err)
{
    ft_finder f = {ft, scratch};
    FT_TRY(ft__collective_request_read(object, ft__find_device, &f, out, err));
    return ft__idle_warnings(scratch, out->device, &out->idle, &out->warnings, err);
}

ft_status ft__exchange_of(const ft_context *ft, ft_scratch *scratch, ft_collective_request *r, ft_comm *out,
                          ft_error *err)
{
    double quantile = r->quantile > 0 ? r->quantile : ft__context_quantile(ft);
    FT_TRY(forecast(ft, r, quantile, out, err));
    if (r->cluster.simulate) FT_TRY(simulate(ft, scratch, r, quantile, out, err));
    if (ft__forecast_sound(&(ft_forecast){.ms = out->ms, .low_ms = out->low_ms, .high_ms = out->high_ms})) return FT_OK;
    return ft__fail(err, FT_E_BUG, "the forecast of %s on %s is %g ms in [%g, %g]: please report it",
                    ft__collective_name(r->op), r->device->name, out->ms, out->low_ms, out->high_ms);
}
