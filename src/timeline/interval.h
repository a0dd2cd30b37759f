/* The interval of a step, from the errors of its kernels. */
#ifndef FT_TIMELINE_INTERVAL_H
#define FT_TIMELINE_INTERVAL_H
#include "timeline/timed.h"

/* Sets low_ms and high_ms of a step that was walked. `below`, `above`: what its kernels' errors add up to, in ms. */
void ft__step_interval(const ft_run *t, double below, double above, ft_step *out);
#endif
