/* Forecasts that need no learned model, to fall back on and to compare with. */
#ifndef FT_KERNEL_REFERENCE_H
#define FT_KERNEL_REFERENCE_H
#include "kernel/predictor.h"

/* `out` has its flops, bytes and roofline filled. pure: the bare roofline as a baseline; otherwise at typical
 * efficiency with a launch, as the answer of last resort. */
void ft__roofline_forecast(const ft_device *device, const ft_op *op, double quantile, bool pure, ft_forecast *out);

/* Per-GPU linear regression (Li et al.); false when the predictor has no line for this cell. */
bool ft__linear_forecast(const ft_predictor *p, const ft_family *family, int variant, const ft_device *device,
                         const ft_op *op, double quantile, ft_forecast *out);

/* Wave scaling (Habitat, Yu et al. 2021) from the GPU the predictor names, whose own learned forecast stands in for
 * a measurement. */
ft_status ft__scaling_forecast(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                               ft_forecast *out, ft_error *err);
#endif
