/* Kernels from an image to one of another size: averages and interpolations, how their threads walk (graph/manner.h).
 */
#ifndef FT_GRAPH_RESIZE_H
#define FT_GRAPH_RESIZE_H
#include "graph/batchnorm.h"

typedef enum ft_resizing {
    FT_RESIZE_OTHER,
    FT_RESIZE_AVERAGE,
    FT_RESIZE_ADAPTIVE, /* averages over what the sizes leave, by kernels of their own */
    FT_RESIZE_NEAREST,
    FT_RESIZE_LINEAR,
    FT_RESIZE_CUBIC
} ft_resizing;

typedef struct ft_resize {
    ft_resizing by;
    int axes;                /* of the image, without batch and channels */
    double pictures, pixels; /* batch times channels; pixels of a result */
    double window;           /* pixels that one of the result is made of, as an average says it */
    bool last;               /* channels last */
    double from;             /* pixels that an image had before */
    double channels;         /* of one image */
    double bytes;            /* of an element */
    double width;            /* of a result: blocks of smoothed ones are a warp wide; 0: not said */
    bool smooth;             /* pixels that vanish are averaged as well (antialias) */
    bool same;               /* of the size that it has */
} ft_resize;

/* What a gradient goes back from: the forward kernel's walk, elements before and after. */
typedef struct ft_resized {
    ft_walking forward;
    double window, in, out, bytes; /* bytes: of an element */
    bool odd;                      /* channels, where they lie last */
} ft_resized;

/* -1: unknown. */
int ft__resizing_find(const char *name);
ft_walking ft__resize_walk(const ft_resize *how);
/* Pixels that one of the result is made of. */
double ft__resize_window(const ft_resize *how);
ft_walking ft__resize_gradient(const ft_resized *n);
#endif
