/* Kernels whose thread blocks wait for one load before they issue the next (graph/manner.h). */
#ifndef FT_KERNEL_WALK_H
#define FT_KERNEL_WALK_H
#include "graph/graph.h"

/* Milliseconds of so many trips of so many blocks; 0 without any. */
double ft__walk_ms(const ft_device *device, ft_walk walk, double trips, double blocks);
#endif
