/* Kernels from a picture to one of another size: averages and interpolations, how their threads walk (graph/manner.h).
 */
#ifndef FT_GRAPH_RESIZE_H
#define FT_GRAPH_RESIZE_H
#include "graph/batchnorm.h"

typedef enum ft_resizing {
    FT_RESIZE_OTHER,
    FT_RESIZE_AVERAGE,
    FT_RESIZE_NEAREST,
    FT_RESIZE_LINEAR,
    FT_RESIZE_CUBIC
} ft_resizing;

typedef struct ft_resize {
    ft_resizing by;
    int axes;                /* of the picture, without batch and channels */
    double pictures, pixels; /* batch times channels; pixels of a result */
    double window;           /* pixels that one of the result is made of, as an average says it */
    bool last;               /* channels last */
} ft_resize;

/* -1: unknown. */
int ft__resizing_find(const char *name);
ft_walking ft__resize_walk(const ft_resize *how);
/* Of a forward walk's gradient, over `in` elements from `out` of them. */
ft_walking ft__resize_gradient(ft_walk forward, double window, double in, double out, bool odd);
#endif
