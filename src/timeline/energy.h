/* What a step draws (kernel/energy.h says of what). */
#ifndef FT_TIMELINE_ENERGY_H
#define FT_TIMELINE_ENERGY_H
#include "kernel/energy.h"
#include "timeline/step.h"

/* Joules of the kernels and exchanges of a step, beyond what a waiting GPU draws. On many GPUs: of the slowest stage's
 * ranks, which the others are taken to be like. */
double ft__step_joules(const ft_graph *g, const ft_step *step, const ft_device *device);
ft_energy ft__step_energy(const ft_graph *g, const ft_step *step, const ft_device *device, double quantile);
#endif
