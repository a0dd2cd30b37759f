/* index.c: elements and rows by index, and places that are written by index. */
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"

static const int64_t LARGEST = (int64_t)1 << 40;

/* gather: `rows` of x's last axis, as x[i] picks them. */
static void rows_by_index(ft_graph_reader *r, ft_at at, const ft_named *x)
{
    int64_t rows = ft__graphfile_whole(r, "rows", 0, 1, LARGEST), dim[2] = {rows, x->dim[x->dims - 1]};
    if (ft__graphfile_failed(r) || !ft__graphfile_possible(r, 2, dim)) return;
    ft_named out = ft__graphfile_fresh(FT_NONE, 2, dim);
    out.ref = ft__gather(ft__graphfile_build(r), at, ft__graphfile_by_rows(r, at, x), rows);
    out.values = x->values;
    ft__graphfile_give(r, 0, &out);
}

void ft__read_pick(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    const char *op = ft__graphfile_op(r);
    ft_named x;
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
    if (!ft__graphfile_operand(r, 0, &x)) return;
    if (!strcmp(op, "gather") && !json_object_get(r->at, "shape")) {
        rows_by_index(r, at, &x);
        return;
    }
    if (!ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    bool found = !strcmp(op, "nonzero"), waits = found || !strcmp(op, "masked_select");
    if (waits) ft__sync(b, at); /* for how many there are */
    int64_t rows = ft__graphfile_rows(dims, dim), cols = dim[dims - 1];
    bool whole_rows = strcmp(op, "take_along") && !waits && cols == x.dim[x.dims - 1] && x.dims > 1 && cols > 1;
    ft_named out = ft__graphfile_fresh(FT_NONE, dims, dim);
    out.values = found ? FT_INTEGERS : x.values;
    if (whole_rows && strcmp(op, "index_select"))
        out.ref = ft__gather(b, at, ft__graphfile_by_rows(r, at, &x), rows);
    else
        out.ref = ft__pick(b, at, whole_rows ? ft__graphfile_by_rows(r, at, &x) : x.ref, rows, cols, whole_rows);
    if (!strcmp(op, "take_along") && !ft__graphfile_failed(r)) b->g->nodes[b->g->node_count - 1].keeps = true;
    if (found) ft__retype(b, out.ref, ft__tensor_of(b, out.ref)->dtype, 8, false);
    ft__graphfile_give(r, 0, &out);
}

void ft__read_scatter(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    const char *op = ft__graphfile_op(r);
    ft_named x, from = {.ref = FT_NONE};
    bool number = !strcmp(op, "index_fill");
    bool in_place = ft__graphfile_truth(r, "in_place", false);
    bool adds = !strcmp(op, "scatter_add") || !strcmp(op, "index_add");
    bool part = !strcmp(op, "scatter") && ft__graphfile_truth(r, "part", false);
    if (!ft__graphfile_operand(r, 0, &x) || (!number && !ft__graphfile_operand(r, 1, &from))) return;
    double count = number ? (double)ft__graphfile_whole(r, "count", 0, 1, LARGEST) : 0;
    if (ft__graphfile_failed(r)) return;
    ft_named out = x;
    out.repeats = FT_NONE;
    if (!in_place) {
        x.ref = ft__graphfile_in_order(&x) ? x.ref : ft__graphfile_copied(r, at, &x);
        ft__graphfile_contiguous(&out);
    }
    out.ref = ft__scatter(b, at, x.ref, from.ref, count, adds, in_place);
    if (part && !ft__graphfile_failed(r)) ft__by_slice(b, from.ref);
    ft__graphfile_give(r, 0, &out);
}

/* Zeros, and a one in each row. */
void ft__read_one_hot(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    int64_t classes = ft__graphfile_whole(r, "classes", 0, 1, LARGEST);
    double count = ft__graphfile_elements(&x);
    if (ft__graphfile_failed(r)) return;
    if (x.dims == FT_GRAPHFILE_DIMS) {
        ft__graphfile_fail(r, FT_E_RANGE, "its result would have %d axes, more than %d", x.dims + 1, FT_GRAPHFILE_DIMS);
        return;
    }
    x.dim[x.dims++] = classes;
    if (!ft__graphfile_possible(r, x.dims, x.dim)) return;
    ft_named out = ft__graphfile_fresh(FT_NONE, x.dims, x.dim);
    out.ref = ft__fill(b, at, (int64_t)count, classes, b->stored, 8);
    out.ref = ft__scatter(b, at, out.ref, FT_NONE, count, false, true);
    out.values = FT_INTEGERS;
    ft__graphfile_give(r, 0, &out);
}
