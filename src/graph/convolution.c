/* convolution.c: the two-dimensional convolution that stands for another.
 *
 * An image that is just large enough for dilated or unequal strides, a row of pixels for one dimension, depth as
 * channels and images for three; a transposed convolution is the gradient of the one that goes the other way.
 * Arithmetic and results are the same. */
#include "graph/convolution.h"

#include <limits.h>
#include <math.h>

static const int64_t LARGEST = (int64_t)1 << 40; /* sums and small multiples never overflow */

double ft__convolution_reach(const ft_convolution *f, int axis)
{
    return (double)f->dilation[axis] * (double)(f->filter[axis] - 1) + 1;
}

int ft__convolution_result(ft_convolution *f)
{
    for (int i = 0; i < f->space; i++) {
        double in = (double)f->in[i], reach = ft__convolution_reach(f, i), stride = (double)f->stride[i],
               pad = (double)f->pad[i];
        double out = f->transposed ? (in - 1) * stride - 2 * pad + reach + (double)f->more[i]
                                   : floor((in + 2 * pad - reach) / stride) + 1;
        if (!(out >= 1 && out <= (double)LARGEST)) return i;
        f->out[i] = (int64_t)out;
    }
    return -1;
}

static bool plain(const ft_convolution *f)
{
    return f->space == 2 && !f->transposed && f->stride[0] == f->stride[1] && f->pad[0] == f->pad[1] &&
           f->dilation[0] == 1 && f->dilation[1] == 1;
}

ft_conv_shape ft__convolution_shape(const ft_convolution *f)
{
    const bool back = f->transposed;
    const int64_t *from = back ? f->out : f->in, *to = back ? f->in : f->out;
    const int last = f->space - 1;
    ft_conv_shape s = {.n = f->n,
                       .c = back ? f->k : f->c,
                       .k = back ? f->c : f->k,
                       .groups = f->groups,
                       .stride = f->stride[last],
                       .parts = back ? FT_CONV_INPUT : 0,
                       .space = f->space};
    for (int i = 0; i < f->space; i++)
        if (f->dilation[i] > 1 && f->filter[i] > 1 && f->dilation[i] > s.dilated)
            s.dilated = (unsigned char)(f->dilation[i] < UCHAR_MAX ? f->dilation[i] : UCHAR_MAX);
    s.s = f->filter[last];
    s.r = f->space > 1 ? f->filter[last - 1] : 1;
    if (plain(f)) {
        s.h = from[0];
        s.w = from[1];
        s.pad = f->pad[0];
        return s;
    }
    s.w = (to[last] - 1) * s.stride + s.s;
    s.h = f->space > 1 ? (to[last - 1] - 1) * s.stride + s.r : 1;
    if (f->space == 3) { /* every image of the result sums over its depth of them */
        s.n *= to[0];
        s.c *= f->filter[0];
        int64_t again = f->filter[0] / f->stride[0];
        s.depth = (int)(again < 1 ? 1 : again > 100 ? 100 : again);
    }
    return s;
}
