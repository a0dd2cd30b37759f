/* What runs beside a training step's own kernels: copies to and from the host, its update, a frozen copy of the
 * model. */
#ifndef FT_RANKS_BESIDE_H
#define FT_RANKS_BESIDE_H
#include "timeline/step.h"

/* Adds them to a forecast step; nothing where a workload has none of them. */
void ft__beside_apply(const ft_workload *work, const ft_device *device, ft_step *step);
#endif
