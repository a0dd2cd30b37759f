/* What kernels lose to an exchange that runs beside them. */
#ifndef FT_TIMELINE_OVERLAP_SLOWDOWN_H
#define FT_TIMELINE_OVERLAP_SLOWDOWN_H
#include <stdbool.h>

#include "device/gpu.h"

/* Whether the library's products are persistent kernels on this GPU: one block for every SM, each with its share of
 * the tiles from the start. All 1,247 aligned 8- and 16-bit products above 0.1 TFLOP of our H200 are (grids of 108 to
 * 132 blocks for 132 SMs, data/measurements/h200/tiles.csv.gz); before Hopper a block is a tile. */
bool ft__overlap_whole_waves(const ft_device *device);

/* How much slower such a product runs while an exchange holds the share `taken` of `sms` SMs: 0.2 for a fifth. Blocks
 * whose SMs are held come late, with their tiles still before them: the fewer waves, the more of it shows. "matmuls
 * take 2x as long to complete when they are overlapped with a NCCL kernel" (pytorch/pytorch issue 143988, H100, FSDP)
 * is what products of a wave or two do. */
double ft__overlap_slowdown_product(const ft_op *op, double sms, double taken);

/* Everybody else loses a share of the SMs while it goes on: `beside` 0.1 for a tenth slower. */
double ft__overlap_slowdown(double d, double slowdown, double left);
#endif
