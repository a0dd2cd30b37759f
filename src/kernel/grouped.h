/* Convolutions of groups on matrix units. */
#ifndef FT_KERNEL_GROUPED_H
#define FT_KERNEL_GROUPED_H
#include "kernel/depthwise.h"

/* Groups of two and more channels in 16 bits. */
bool ft__is_grouped(const ft_device *device, const ft_op *op);
ft_own_figures ft__grouped(const ft_device *device, const ft_op *op);
/* Long filters run group by group on several streams: what their kernels take together, of which a part runs beside
 * each other. 0: others. */
double ft__grouped_kernels_ms(const ft_device *device, const ft_op *op);
#endif
