/* One kernel, forecast by one expert. */
#ifndef FT_KERNEL_EXPERT_H
#define FT_KERNEL_EXPERT_H
#include "kernel/predictor.h"

ft_status ft__expert_forecast(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                              ft_forecast *out, ft_error *err);
/* Clears a forecast and fills what follows from operator and device alone: flops, bytes, roofline. */
void ft__forecast_begin(const ft_device *device, const ft_op *op, ft_forecast *out);
#endif
