/* Products by weights that are stored in fewer bits than they are multiplied in. */
#ifndef FT_KERNEL_WEIGHT_ONLY_H
#define FT_KERNEL_WEIGHT_ONLY_H
#include "kernel/predictor.h"

/* Whether the operator is one. */
bool ft__weight_only(const ft_op *op);
ft_status ft__weight_only_forecast(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                                   ft_forecast *out, ft_error *err);
/* Whether a device can run it. */
bool ft__weight_kernel_runs(const ft_device *device, ft_weight_kernel kernel);
const char *ft__weight_kernel_name(ft_weight_kernel kernel);
/* What a product's operands are when they meet: integers of 8 bits where its kernel rounds activations to them. */
ft_dtype ft__multiplied_in(const ft_device *device, const ft_op *op);
#endif
