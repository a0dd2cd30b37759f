/* The physics of the family of convolutions (conv.c). */
#ifndef FT_KERNEL_CONV_PHYSICS_H
#define FT_KERNEL_CONV_PHYSICS_H
#include "kernel/family.h"

enum { FT_CONV_FEATURES = 48 };

void ft__conv_physics(const ft_device *device, const ft_op *op, const double *theta, bool want_features,
                      ft_physics *out);
#endif
