/* Convolutions of groups on matrix units. */
#ifndef FT_KERNEL_GROUPED_H
#define FT_KERNEL_GROUPED_H
#include "kernel/depthwise.h"

/* Groups of two and more channels in 16 bits. */
bool ft__is_grouped(const ft_device *device, const ft_op *op);
ft_own_figures ft__grouped(const ft_device *device, const ft_op *op);
#endif
