/* energy.c: a step's kernels, added up, with those of models beside the one that it trains. */
#include "timeline/energy.h"

double ft__step_joules(const ft_graph *g, const ft_step *step, const ft_device *device)
{
    const double trained = step->critic_ms > 0 ? 2 : 1; /* models */
    double sum = ft__exchange_joules(device, step->comm_ms) + step->rollout_joules;
    for (int32_t i = 0; i < step->kernel_count; i++) {
        const ft_timed *k = &step->kernels[i];
        const ft_forecast *f = &k->forecast;
        const ft_node *n = &g->nodes[k->node];
        const double times = k->times * (trained + (n->phase == FT_FORWARD ? step->frozen_passes : 0));
        sum += times * ft__kernel_joules(device, &n->op, f->flops, f->bytes, f->ms, f->launch_ms);
    }
    return sum;
}

ft_energy ft__step_energy(const ft_graph *g, const ft_step *step, const ft_device *device, double quantile)
{
    return ft__energy_of(device, ft__step_joules(g, step, device), step->step_ms, step->low_ms, step->high_ms,
                         ft__interval_level(quantile));
}
