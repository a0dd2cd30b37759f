/* Products of a few rows on the vector units. */
#ifndef FT_KERNEL_SKINNY_H
#define FT_KERNEL_SKINNY_H
#include "kernel/predictor.h"

/* Device time of a kernel that streams the matrix once; infinite where the expert knows better, or for other
 * products. */
double ft__skinny_ms(const ft_device *device, const ft_op *op, const ft_expert *expert, ft_kinship kinship);
#endif
