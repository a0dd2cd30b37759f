/* loss.c: losses of a graph file. Inference has none: the node passes its first operand on. */
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"

/* A row of logits for every position. Of an image that the loss looks at in more pixels than it was made in, one for
 * each of those: classes lie an image apart, which the kernel walks as they lie. */
static ft_ref by_classes(ft_graph_reader *r, ft_at at, const ft_named *x)
{
    int dims;
    int64_t pixels[FT_GRAPHFILE_DIMS];
    const json_t *said = json_object_get(r->at, "pixels");
    if (!said) return ft__graphfile_by_rows(r, at, x);
    if (!ft__graphfile_shape(r, said, "pixels", &dims, pixels)) return FT_NONE;
    if (dims != x->dims - 2 || dims < 1) {
        ft__graphfile_fail(r, FT_E_RANGE, "\"pixels\" must have the axes of an image behind its channels");
        return FT_NONE;
    }
    ft_named wide;
    ft__graphfile_interpolated(r, at, x, pixels, &wide);
    return ft__view_as(ft__graphfile_build(r), wide.ref, wide.dim[0] * ft__graphfile_span(&wide, 2, wide.dims),
                       wide.dim[1], FT_IN_ORDER);
}

void ft__read_loss(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    const char *op = ft__graphfile_op(r);
    ft_named x, y = {.ref = FT_NONE};
    int64_t one[1] = {1};
    bool fp32 = ft__graphfile_truth(r, "fp32", false);
    if (!ft__graphfile_operand(r, 0, &x)) return;
    if (ft__graphfile_operands(r) > 1 && !ft__graphfile_operand(r, 1, &y)) return;
    if (r->m->work->task != FT_TRAIN) {
        if (!ft__graphfile_failed(r)) ft__graphfile_give(r, 0, &x);
        return;
    }
    bool classes = !strcmp(op, "cross_entropy") || !strcmp(op, "nll_loss");
    if (!classes) { /* a number for each pair of elements */
        if (y.ref != FT_NONE && ft__graphfile_elements(&y) > ft__graphfile_elements(&x)) {
            ft__graphfile_fail(r, FT_E_RANGE, "%.0f targets for %.0f elements", ft__graphfile_elements(&y),
                               ft__graphfile_elements(&x));
            return;
        }
        ft__graphfile_result(r, ft__pair_loss(b, at, op, x.ref, y.ref), 1, one);
        return;
    }
    ft_ref rows = by_classes(r, at, &x);
    if (rows == FT_NONE) return;
    ft__graphfile_result(r, op[0] == 'c' ? ft__loss(b, at, rows, fp32) : ft__likelihood_loss(b, at, rows), 1, one);
}
