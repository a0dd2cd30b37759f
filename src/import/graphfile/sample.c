/* sample.c: images of a graph file that are read at places of another tensor (graph/sample.h). */
#include "graph/sample.h"

#include "graph/emit.h"
#include "import/graphfile/reader.h"

/* x [n, c, h, w], places [n, h', w', 2]; x [n, c, d, h, w], places [n, d', h', w', 3]. */
static bool fits(const ft_named *x, const ft_named *places)
{
    int axes = x->dims - 2;
    return (axes == 2 || axes == 3) && places->dims == x->dims && places->dim[0] == x->dim[0] &&
           places->dim[places->dims - 1] == axes;
}

void ft__read_sampled(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x, places;
    if (!ft__graphfile_operand(r, 0, &x) || !ft__graphfile_operand(r, 1, &places)) return;
    if (!fits(&x, &places)) {
        ft__graphfile_fail(
            r, FT_E_RANGE,
            "it takes [n, c, h, w] and places [n, h', w', 2], or both with a depth and three coordinates");
        return;
    }
    const json_t *mode = json_object_get(r->at, "mode");
    int by = !mode ? (int)FT_RESIZE_LINEAR : json_is_string(mode) ? ft__resizing_find(json_string_value(mode)) : -1;
    if (by < 0) {
        ft__graphfile_fail(r, FT_E_NAME, "\"mode\" must be \"nearest\", \"linear\" or \"cubic\"");
        return;
    }
    int64_t dim[FT_GRAPHFILE_DIMS] = {x.dim[0], x.dim[1]};
    for (int i = 2; i < x.dims; i++) dim[i] = places.dim[i - 1];
    if (!ft__graphfile_possible(r, x.dims, dim)) return;
    ft_named out = ft__graphfile_fresh(FT_NONE, x.dims, dim);
    int64_t pixels = ft__graphfile_span(&out, 2, out.dims);
    ft_sample how = {.by = (ft_resizing)by,
                     .axes = x.dims - 2,
                     .places = (double)x.dim[0] * (double)pixels,
                     .channels = (double)x.dim[1],
                     .last = ft__graphfile_channels_last(&x),
                     .clipped = ft__graphfile_truth(r, "border", false),
                     .low = ft__tensor_of(b, x.ref)->element_bytes < 4};
    if (ft__graphfile_failed(r)) return;
    out.ref = ft__sampled(b, at, x.ref, places.ref, dim[0] * dim[1], pixels, &how);
    ft__graphfile_contiguous(&out);
    ft__graphfile_give(r, 0, &out);
}
