/* What kernels lose to an exchange that runs beside them. */
#ifndef FT_TIMELINE_BESIDE_H
#define FT_TIMELINE_BESIDE_H
#include <stdbool.h>

#include "device/gpu.h"

/* Whether the library's products are persistent kernels on this GPU: one block for every SM, each with its share of the
 * tiles from the start. All 1,247 aligned 8- and 16-bit products above 0.1 TFLOP of our H200 are (grids of 108 to 132
 * blocks for 132 SMs, data/measurements/h200/tiles.csv.gz); before Hopper a block is a tile. */
bool ft__beside_whole(const ft_device *device);

/* Persistent products, `count` of d ms in all: the blocks whose SMs an exchange holds begin when it ends, or when the
 * first blocks are done, and then have all of their share before them. An exchange of `left` ms costs as much as it
 * takes, at most the product once more. "matmuls take 2x as long to complete when they are overlapped with a NCCL
 * kernel" (pytorch/pytorch issue 143988, H100, FSDP; the same of CUTLASS's in NVIDIA/cutlass issue 2471). */
double ft__beside_persistent(double d, double count, double left);

/* Everybody else loses a share of the SMs while it goes on: `beside` 0.1 for a tenth slower. */
double ft__beside_others(double d, double beside, double left);
#endif
