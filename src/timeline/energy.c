/* energy.c: a step's kernels, added up. */
#include "timeline/energy.h"

double ft__step_joules(const ft_graph *g, const ft_step *step, const ft_device *device)
{
    double sum = ft__exchange_joules(device, step->comm_ms);
    for (int32_t i = 0; i < step->kernel_count; i++) {
        const ft_timed *k = &step->kernels[i];
        const ft_forecast *f = &k->forecast;
        sum += k->times * ft__kernel_joules(device, &g->nodes[k->node].op, f->flops, f->bytes, f->ms, f->launch_ms);
    }
    return sum;
}

ft_energy ft__step_energy(const ft_graph *g, const ft_step *step, const ft_device *device, double quantile)
{
    return ft__energy_of(device, ft__step_joules(g, step, device), step->step_ms, step->low_ms, step->high_ms,
                         ft__interval_level(quantile));
}
