/* convolution.h: convolutions of one to three axes, strided, dilated, transposed, as the two-dimensional one with one
 * stride and one border that costs as much. Kernels know that one; what it stands for is in `space`, `depth` and
 * `dilated` of the operator. */
#ifndef FT_GRAPH_CONVOLUTION_H
#define FT_GRAPH_CONVOLUTION_H
#include "graph/build.h"

enum { FT_CONV_AXES = 3 };

typedef struct ft_convolution {
    int space; /* axes of the image */
    int64_t n, c, k, groups, in[FT_CONV_AXES], out[FT_CONV_AXES], filter[FT_CONV_AXES], stride[FT_CONV_AXES],
        pad[FT_CONV_AXES], dilation[FT_CONV_AXES], more[FT_CONV_AXES]; /* more: of a transposed one's result */
    bool transposed;
} ft_convolution;

/* Fills `out`; the first axis whose image is smaller than its filter, -1 where all fit. */
int ft__convolution_result(ft_convolution *f);
/* How far a filter reaches along an axis. */
double ft__convolution_reach(const ft_convolution *f, int axis);
/* A transposed one is the gradient of the input of the one that goes the other way. */
ft_conv_shape ft__convolution_shape(const ft_convolution *f);
#endif
