/* The forecasters we compare with, fitted from the same rows. */
#ifndef FT_FIT_BASELINE_H
#define FT_FIT_BASELINE_H
#include "fit/cell.h"

/* Li et al.: T = a + b * flops / peak + c * bytes / bandwidth, by least squares on relative error. For one GPU, or
 * (gpu NULL) over all of the cell's. Its record carries the family's name behind a '~'. */
void ft__baseline_linear(const ft_cell *cell, const ft_cell_gpu *gpu, ft_expert *out);
#endif
