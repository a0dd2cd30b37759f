/* Attention with heads that only PyTorch's memory-efficient kernels take. */
#ifndef FT_KERNEL_ATTENTION_WIDE_H
#define FT_KERNEL_ATTENTION_WIDE_H
#include "foretell.h"

bool ft__attention_wide(const ft_device *device, const ft_op *op);
/* Makes the forecast of another kernel that of the one which takes such heads. */
void ft__attention_wide_apply(const ft_device *device, const ft_op *op, ft_forecast *f);
#endif
