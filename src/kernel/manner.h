/* What the manner of a kernel (graph/manner.h) does to its time. */
#ifndef FT_KERNEL_MANNER_H
#define FT_KERNEL_MANNER_H
#include "graph/graph.h"

/* Its time over the operator's own. `each` as the node has it. */
double ft__manner_effort(unsigned manner, double each, const ft_op *op);
/* What it moves over what the operator says. */
double ft__manner_traffic(unsigned manner);
#endif
