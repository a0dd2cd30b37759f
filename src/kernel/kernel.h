/* One operator on one device -> its time with an interval. The room's front door. */
#ifndef FT_KERNEL_KERNEL_H
#define FT_KERNEL_KERNEL_H
#include "base/error.h"
#include "kernel/predictor.h"

/* One eager call: the launch gap hides behind the kernel but for the host's way to the launch. */
double ft__op_time(double device_ms, double gap_ms);

/* `quantile`: the share of cases that low..high should cover (0.5 to 0.99). The op has passed ft__op_check. */
ft_status ft__kernel_forecast(const ft_predictor *predictor, const ft_device *device, const ft_op *op, double quantile,
                              ft_forecast *out, ft_error *err);

/* `effort`, how many times as long a kernel takes for what its operator does not say (dropout in attention), on this
 * device. */
double ft__kernel_effort(const ft_device *device, const ft_op *op, double effort);

/* What is too large to be meant, in every front end: one extent of an operator; the elements or bytes of one tensor, a
 * thousand times the largest GPU's memory. */
#define FT_LARGEST_SIZE ((int64_t)1 << 40)
#define FT_LARGEST_TENSOR 1e15

/* Sizes positive and small enough that no product overflows, a dtype the device has, sensible combinations. */
ft_status ft__op_check(const ft_op *op, const ft_device *device, ft_error *err);

/* max(flops / peak, bytes / bandwidth) from the spec sheet, in ms: the roofline as everybody draws it. */
double ft__roofline_ms(const ft_device *device, const ft_op *op);
/* No kernel is faster than this: arithmetic at the boost clock, traffic that cannot have waited in the cache. */
double ft__floor_ms(const ft_device *device, const ft_op *op);
/* Dense peak of a dtype in TFLOP/s, the dtype that would run in its place when the device lacks it counted. */
double ft__peak_tflops(const ft_device *device, ft_dtype dtype);
/* How much faster the matrix units run at the boost clock than their published peaks say; 1: not. */
double ft__matrix_boost(const ft_device *device);
/* What a kernel reaches of a capped rate when it reaches `efficiency` of an uncapped one: what held it belongs to the
 * SM, works at the units' own rate and hides behind slower ones. `cap` as of ft__matrix_cap. */
double ft__capped_efficiency(double efficiency, double cap);
/* How much more of its bandwidth a memory gives that keeps no correction bits among its data, over those that do: what
 * rows measured of GDDR had them (T4, L4, P4, L40S). 1 for HBM, which has bits of its own. */
double ft__plain_memory(const ft_device *device);
/* Of the units that this operator computes on: matrix units in its dtype, or vector units in fp32. */
double ft__arithmetic_tflops(const ft_device *device, const ft_op *op);

/* Whether memory holds a kernel rather than the arithmetic that its physics found, by the two sides of its roofline. */
bool ft__memory_holds(const ft_device *device, const ft_op *op, const ft_forecast *f);
/* Settles the bound by them, and notes where the cache must have helped. For who shows one kernel. */
void ft__settle_bound(const ft_device *device, const ft_op *op, ft_forecast *f);
/* The same kernel `by` times as long: its time, its interval, its time when it runs for seconds. */
void ft__forecast_scale(ft_forecast *f, double by);
/* So many bytes more, which take so long more. */
void ft__forecast_add(ft_forecast *f, double bytes, double ms);
#endif
