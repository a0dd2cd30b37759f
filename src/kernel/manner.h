/* What the manner of a kernel (graph/manner.h) does to its time. */
#ifndef FT_KERNEL_MANNER_H
#define FT_KERNEL_MANNER_H
#include "graph/graph.h"

/* Its time over the operator's own. `each` as the node has it. */
double ft__manner_effort(const ft_device *device, unsigned manner, double each, const ft_op *op);
/* Rows that are dealt to several matrices, as one product of as much arithmetic: a grouped kernel is no faster than
 * that, whatever batched products of equal matrices do by themselves. False: the operator is none of those. */
bool ft__manner_joined(unsigned manner, double each, const ft_op *op, ft_op *out);
/* Log half-width of its interval at the 0.9 level, where the family's own is of kernels that differ more; 0: as it
 * is. */
double ft__manner_width(unsigned manner);
/* A product that adds to what is there reads its result behind the arithmetic of a tile, which hides little of it. */
void ft__manner_adds(const ft_device *device, unsigned manner, const ft_op *op, ft_forecast *f);
/* What it moves over what the operator says. */
double ft__manner_traffic(unsigned manner);
#endif
