/* Images read at places that were computed (grid_sample): deformable attention, optical flow, tables of positions. */
#ifndef FT_GRAPH_SAMPLE_H
#define FT_GRAPH_SAMPLE_H
#include "graph/build.h"
#include "graph/resize.h"

typedef struct ft_sample {
    ft_resizing by;
    int axes;                /* of the image, without batch and channels */
    double places, channels; /* of all images; of one */
    bool last;               /* the image's channels lie next to each other; the result's never do */
    bool clipped;            /* places outside are moved to its border first, not read as zeros */
    bool low;                /* of fewer than 32 bits */
} ft_sample;

ft_walking ft__sample_walk(const ft_sample *how);
/* Going back from a forward walk. `pixels`: does the image want a gradient, or its places alone. low: of fewer than
 * 32 bits. */
ft_walking ft__sample_gradient(const ft_node *forward, bool pixels, bool low);
/* rows x cols of x, read where `places` says. */
ft_ref ft__sampled(ft_build *b, ft_at at, ft_ref x, ft_ref places, int64_t rows, int64_t cols, const ft_sample *how);
#endif
