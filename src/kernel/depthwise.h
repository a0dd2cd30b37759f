/* Depthwise convolutions: one filter per channel, no product. */
#ifndef FT_KERNEL_DEPTHWISE_H
#define FT_KERNEL_DEPTHWISE_H
#include "graph/graph.h"

static inline bool ft__is_depthwise(const ft_op *op)
{
    return op->u.conv.groups > 1 && op->u.conv.groups == op->u.conv.c;
}

/* Of kernels that nothing is learned of. */
typedef struct ft_own_figures {
    double ms;                    /* beyond a launch */
    double compute_ms, memory_ms; /* inside it */
    double spread;                /* of its figures, natural log */
    bool alone;                   /* hardly any row that is learned from is like it */
} ft_own_figures;

ft_own_figures ft__depthwise(const ft_device *device, const ft_op *op);
#endif
