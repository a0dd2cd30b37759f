/* Images cut into windows and put together again (im2col and col2im), and views whose windows overlap. */
#ifndef FT_GRAPH_WINDOWS_H
#define FT_GRAPH_WINDOWS_H
#include "graph/build.h"

typedef struct ft_windows {
    double pictures; /* of the batch */
    double taps;     /* pixels of a window */
    double meet;     /* windows that hold one pixel, at most */
    bool fold;       /* windows become an image */
} ft_windows;

/* rows x cols: [n c taps, places] of images, or [n c, pixels] of windows. */
ft_ref ft__windows(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols, const ft_windows *how);
/* A view of windows that share elements. `indexed`: its gradient finds their places by an index (as_strided), not by
 * counting (unfold). */
ft_ref ft__overlap(ft_build *b, ft_ref x, int64_t rows, int64_t cols, bool indexed);
#endif
