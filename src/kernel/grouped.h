/* Convolutions of narrow groups on matrix units. */
#ifndef FT_KERNEL_GROUPED_H
#define FT_KERNEL_GROUPED_H
#include "kernel/depthwise.h"

/* Groups of 2 to 32 channels in 16 bits: cuDNN has kernels of their own for them. */
bool ft__is_narrow_grouped(const ft_device *device, const ft_op *op);
ft_own_figures ft__grouped(const ft_device *device, const ft_op *op);
#endif
