/* cache_room.c: what weights and workspaces leave of a GPU's memory. */
#include "serving/cache_room.h"

#include <math.h>
#include <stdio.h>

#include "memory/resident.h"

static const double gib = 0x1p30;

/* `share`: what the request asked for; 0 where the whole memory would not do either. */
static ft_status no_room(const ft_served *m, double share, ft_error *err)
{
    const double memory = ft__device_capacity(m->device), weights = m->weights_bytes;
    char gpus[48] = "one GPU";
    if (ft__served_gpus(m) > 1) snprintf(gpus, sizeof gpus, "each of %lld GPUs", (long long)ft__served_gpus(m));
    if (share > 0 && share * memory > weights)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "gpu_memory_utilization", 0, 0,
                           "%g of the %.1f GiB of %s leave %.1f beside the weights on %s: the engine's workspace takes "
                           "that, and there is no room for a cache",
                           share, memory / gib, m->device->name, (share * memory - weights) / gib, gpus);
    if (share > 0)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "gpu_memory_utilization", 0, 0,
                           "the weights take %.1f GiB on %s, more than %g of the %.1f that %s has", weights / gib, gpus,
                           share, memory / gib, m->device->name);
    return ft__fail_at(err, FT_E_UNSUPPORTED, "gpu", 0, 0,
                       "the weights take %.1f GiB on %s, of %.1f that %s has: there is no room for a "
                       "cache; more \"tp\" or a narrower \"dtype\" would make some",
                       weights / gib, gpus, memory / gib, m->device->name);
}

/* The engine's own share of the memory, where the request gives none; a large token budget may leave nothing. */
static double own_share(const ft_served *m, const ft_serving_engine *e, double budget)
{
    double outside = e->outside_gib + e->outside_rank_gib * (double)(m->tp * m->pp);
    outside += e->outside_token_kib * budget / 1024 / 1024;
    return fmax(e->memory_share - outside * gib / ft__device_capacity(m->device), 0);
}

ft_status ft__cache_room(const ft_serve_request *r, const ft_served *m, const ft_serving_engine *e,
                         double max_sequences, double budget, ft_text *warnings, double *out, ft_error *err)
{
    const ft_said *said = &r->said;
    const double memory = ft__device_capacity(m->device), rest = memory - m->weights_bytes;
    const bool given = ft__given(said, FT_KEY_ID_GPU_MEMORY_UTILIZATION), of_rest = e->cache_share < 1;
    const bool held = given && !of_rest;
    const double asked = ft__real_of(said, FT_KEY_ID_GPU_MEMORY_UTILIZATION);
    const double share = held ? asked : own_share(m, e, budget), cache = given && of_rest ? asked : e->cache_share;
    double left = share * memory - m->weights_bytes - e->workspace_gib * gib;
    left -= e->sampler_bytes * max_sequences * (double)m->arch->vocab;
    const bool raised = !held && share < 1 && left * cache < fmax(m->length, 1) * m->kv_bytes_per_token;
    if (raised) left = rest / 2;
    *out = floor(left * cache / m->kv_bytes_per_token) * (double)m->dp;
    if (left <= 0 || *out <= 0) return no_room(m, held && rest > 0 ? share : 0, err);
    if (raised)
        ft__text_addf(warnings,
                      "weights of %.1f GiB leave no room for a cache in the engine's own share, %g of %.1f GiB: "
                      "assumed to be started with a larger one; \"gpu_memory_utilization\" sets it\n",
                      m->weights_bytes / gib, share, memory / gib);
    return FT_OK;
}
