/* Experts that are loaded unevenly: forecasts that do not fall where the load grows more uneven. */
#ifndef FT_KERNEL_SKEW_H
#define FT_KERNEL_SKEW_H
#include "kernel/kernel.h"

/* As ft__kernel_forecast, for FT_OP_MOE with skew > 0. */
ft_status ft__skewed_forecast(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                              ft_forecast *out, ft_error *err);
/* moe.c: every expert has a token, and 64 on average: the weights of all of them are read, and that is not what takes
 * the time. */
bool ft__moe_all_awake(const ft_op *op);
#endif
