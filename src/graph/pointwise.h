/* How autograd differentiates a pointwise operator: which kernels its backward launches, and what they read. */
#ifndef FT_GRAPH_POINTWISE_H
#define FT_GRAPH_POINTWISE_H
#include "foretell.h"

/* A gradient is a few kernels, one word each: "powu:x mulu:1 mul:g2" takes the power of the input, scales that, and
 * multiplies the incoming gradient with it. Operands: g the gradient, x, w and v the inputs, y the result, m the
 * second result (a mask), 1..9 the words before. "sum" is the node's own reduction. A word that ends in ! works in
 * place on its first operand. The last word is the gradient; "" passes g on unchanged. */
typedef struct ft_gradient {
    const char *op;
    const char *first;  /* to the first input */
    const char *second; /* to the second; NULL where there is none */
    const char *third;
} ft_gradient;

const ft_gradient *ft__gradient_find(const char *op); /* never NULL: unknown names pass one product with the input */
const char *ft__cast_name(ft_dtype to);
#endif
