/* windows.c: images of a graph file that are cut into windows, and windows that become images (graph/windows.h). */
#include "graph/windows.h"

#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"

enum { AXES = 2 };

/* unfold: x [n, c, h, w] to [n, c taps, places]; fold: the other way round. */
void ft__read_windows(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    bool fold = !strcmp(ft__graphfile_op(r), "fold");
    ft_named x;
    int dims;
    int64_t window[AXES], stride[AXES], dim[FT_GRAPHFILE_DIMS];
    if (!ft__graphfile_operand(r, 0, &x)) return;
    if (!ft__graphfile_each(r, "window", AXES, 0, 1, window) || !ft__graphfile_each(r, "stride", AXES, 1, 1, stride))
        return;
    if (!ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    const int64_t *picture = fold ? dim : x.dim, *windows = fold ? x.dim : dim;
    int64_t taps = window[0] * window[1];
    bool axes = x.dims == (fold ? 3 : 4) && dims == (fold ? 4 : 3);
    if (!axes || picture[0] != windows[0] || windows[1] % taps || windows[1] / taps != picture[1]) {
        ft__graphfile_fail(r, FT_E_RANGE, "it takes [n, c, h, w] and [n, c times the window's pixels, places]");
        return;
    }
    double meet = 1;
    for (int i = 0; i < AXES; i++) meet *= ceil((double)window[i] / (double)stride[i]);
    ft_windows how = {.pictures = (double)dim[0], .taps = (double)taps, .meet = meet, .fold = fold};
    ft_named out = ft__graphfile_fresh(FT_NONE, dims, dim);
    int64_t rows = dim[0] * dim[1], cols = fold ? dim[2] * dim[3] : dim[2];
    if (!ft__graphfile_possible(r, dims, dim)) return;
    out.ref = ft__windows(b, at, ft__graphfile_by_rows(r, at, &x), rows, cols, &how);
    ft__graphfile_contiguous(&out);
    ft__graphfile_give(r, 0, &out);
}
