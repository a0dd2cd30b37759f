/* A convolution on a GPU: its sizes, what of it is asked, and how the library runs it (conv_layer.c). */
#ifndef FT_KERNEL_CONV_LAYER_H
#define FT_KERNEL_CONV_LAYER_H
#include "device/traits.h"
#include "graph/operator.h"
#include "kernel/depthwise.h"

typedef struct ft_conv_layer {
    double n, g, c, k, h, w, r, s, stride, depth, e; /* as asked; e: bytes of an element */
    double oh, ow, taps, pixels, flops;              /* of the result; multiply-adds count two */
    double x, y, weights;                            /* bytes of image, result and filters */
    bool eager, nhwc, forward, to_input, to_filter;
    double gradients; /* how many of the two */
} ft_conv_layer;

typedef struct ft_conv_way {
    bool point;     /* a plain matrix product */
    bool matrix;    /* on matrix units */
    bool half;      /* on matrix units, in 16 bits or fewer */
    bool wide;      /* matrix units beyond an A100's, whose kernels were written anew */
    bool older;     /* by a kernel of the generation before */
    bool clip;      /* three dimensions, the depth among the channels */
    bool few;       /* an image's three channels */
    bool filled;    /* those filled up to 16 bytes, in NCHW */
    bool fast;      /* another algorithm than the product, on vector units */
    bool skewed;    /* images whose rows are not aligned */
    bool moved;     /* operands change their layout first */
    bool direct;    /* narrow groups: a multiply-add per lane and tap */
    bool short_k;   /* so little to sum that nothing is moved for it */
    double step;    /* channels of 16 bytes */
    double cp;      /* a group's channels, padded to that */
    double chunk;   /* channels that a step along K takes */
    double chunk_c; /* a group's channels, padded to whole chunks */
} ft_conv_way;

ft_conv_layer ft__conv_layer(const ft_op *op);
ft_conv_way ft__conv_way(const ft_device *device, const ft_op *op, const ft_conv_layer *l);
/* Where cuDNN 9's heuristic, asked for a 7x7 filter in half precision, answers with an fp32 kernel. */
bool ft__conv_forward_hole(const ft_conv_layer *l, const ft_conv_way *way);
/* The same of a filter as large as its image, and what that takes: one number of its sums behind the other. */
bool ft__conv_whole_hole(const ft_conv_layer *l, const ft_conv_way *way);
ft_own_figures ft__conv_whole(const ft_device *device, const ft_conv_layer *l, double memory_ms);
bool ft__conv_weights_hole(const ft_conv_layer *l, const ft_conv_way *way);
#endif
