/* What comes to a training step beside its own passes: other models, and what lies on the host. */
#ifndef FT_RANKS_COMPLETE_H
#define FT_RANKS_COMPLETE_H
#include "timeline/step.h"

/* Adds it to a forecast step; nothing where a workload has none of it. */
void ft__step_complete(const ft_workload *work, const ft_device *device, ft_step *step);
#endif
