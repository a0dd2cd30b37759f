/* What offloading adds to a training step: copies to and from the host, its update. */
#ifndef FT_RANKS_OFFLOAD_H
#define FT_RANKS_OFFLOAD_H
#include "timeline/step.h"

/* Adds them to a forecast step; nothing where a workload has none of them. */
void ft__offload_apply(const ft_workload *work, const ft_device *device, ft_step *step);
#endif
