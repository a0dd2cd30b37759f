/* What the board's power limit does to arithmetic. */
#ifndef FT_KERNEL_POWER_H
#define FT_KERNEL_POWER_H
#include "foretell.h"

/* What the board may draw: its own limit, or what it is held to below that. */
double ft__watts_limit(const ft_device *device);

/* Energy of one flop on this device in pJ, operand movement inside the SM included. */
double ft__energy_pj(const ft_device *device, ft_dtype dtype);

/* Factor (>= 1) on the time of a kernel that would run at `tflops`; `x` is its length over the controller's time
 * constant: x << 1 ends before the clock gives way, x >> 1 runs at what the limit sustains. `energy` scales the
 * energy per flop. */
double ft__power_slowdown(const ft_device *device, ft_dtype dtype, double energy, double tflops, double x);

/* What a kernel of `flops` in `ms` draws over what the board gives once it has run back to back for seconds: above 1 it
 * cannot go on so. 0 for kernels that are no products, for convolutions in fp32 and for fp64. */
double ft__power_draw(const ft_device *device, const ft_op *op, double flops, double ms);

/* Factor (>= 1) by which a kernel of that draw slowed itself down when it was timed alone, for some milliseconds. */
double ft__power_alone(const ft_device *device, double draw, double ms);

/* The share of their 16-bit peak at which the board's limit holds the matrix units; 1 where it does not. */
double ft__power_share(const ft_device *device);

/* What the hungriest of so many GPUs draws over one of them. */
double ft__power_hungriest(int64_t gpus);
#endif
