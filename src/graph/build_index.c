/* build_index.c: elements and rows picked by index, scattered, sorted; constants. */
#include <math.h>

#include "graph/emit.h"

ft_ref ft__pick(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols, bool by_rows)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_GATHER, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    n.adds = true;
    if (by_rows) {
        n.op = ft__row_kernel("embedding", FT_PASS_FWD, rows, cols, t.dtype);
        n.op.u.row.vocab = t.rows;
    } else {
        n.op = ft__pointwise_kernel(b->g, "gather", n.in, 0, &b->g->tensors[out]);
        n.op.u.elementwise.bytes = (double)rows * (double)cols * (2 * t.element_bytes + 8); /* and an index each */
        n.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    }
    ft__emit(b, &n);
    return out;
}

ft_ref ft__take_along(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols)
{
    ft_ref out = ft__pick(b, at, x, rows, cols, false);
    if (out != FT_NONE && b->status == FT_OK) b->g->nodes[b->g->node_count - 1].keeps = true;
    return out;
}

ft_ref ft__permute(ft_build *b, ft_at at, ft_ref x, int64_t rows)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_PERMUTE, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, t.cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    const ft_tensor *y = ft__tensor_of(b, out);
    n.op = ft__pointwise_kernel(b->g, "copy", NULL, 0, t.rows > rows ? &t : y);
    n.op.u.elementwise.bytes = ft__tensor_bytes(&t) + ft__tensor_bytes(y);
    ft__emit(b, &n);
    return out;
}

ft_ref ft__scatter(ft_build *b, ft_at at, ft_ref x, ft_ref from, double count, bool adds, bool in_place)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_tensor t = *ft__tensor_of(b, x);
    if (!in_place) x = ft__copy(b, at, x, t.rows, t.cols);
    ft_node n = ft__node_of(FT_DO_GATHER, at);
    ft__node_in(&n, x);
    ft__node_in(&n, from);
    n.in_place = true;
    n.adds = adds;
    ft_ref out = ft__node_view(b, &n, x, t.rows, t.cols, in_place && t.strided);
    if (out == FT_NONE) return out;
    double moved = from != FT_NONE ? ft__tensor_numel(ft__tensor_of(b, from)) : fmax(1, count);
    n.op = ft__pointwise_kernel(b->g, "index_put", NULL, 0, &b->g->tensors[out]);
    n.op.u.elementwise.numel = (int64_t)moved;
    n.op.u.elementwise.bytes = moved * ((from != FT_NONE ? 2 : 1) * t.element_bytes + 8);
    n.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    ft__emit(b, &n);
    return out;
}

void ft__by_slice(ft_build *b, ft_ref from)
{
    if (b->status != FT_OK || from == FT_NONE) return;
    ft_op *op = &b->g->nodes[b->g->node_count - 1].op;
    op->name = "copy";
    op->u.elementwise.bytes = 2 * ft__tensor_bytes(ft__tensor_of(b, from));
}

/* A block per row selects by digits and a second kernel sorts what it found. Whole rows are sorted by a radix sort,
 * four passes over values and indices. */
ft_ref ft__topk(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols, int64_t k, ft_ref *indices)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_GATHER, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, k, t.dtype, t.element_bytes);
    ft_ref where = ft__node_out(b, &n, rows, k, t.dtype, 8);
    if (out == FT_NONE || where == FT_NONE) return FT_NONE;
    b->g->tensors[where].trained = false;
    if (indices) *indices = where;
    n.adds = true;
    bool all = k == cols;
    n.op = all ? ft__bytes_kernel("sort", t.dtype, ft__tensor_numel(&t) * (t.element_bytes + 8) * 4 * 2, 0)
               : ft__row_kernel("argmax", FT_PASS_FWD, rows, cols, t.dtype);
    if (!all) n.manner |= FT_MANNER_SELECT;
    ft__emit(b, &n);
    if (all) return out;
    ft_node order = ft__node_of(FT_DO_OTHER, at);
    order.op = n.op;
    ft__same_manner(&order, &n);
    ft__emit(b, &order);
    return out;
}

ft_ref ft__fill(ft_build *b, ft_at at, int64_t rows, int64_t cols, ft_dtype dtype, double element_bytes)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_FILL, at);
    ft_ref out = ft__node_out(b, &n, rows, cols, dtype, element_bytes);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, "fill", NULL, 0, &b->g->tensors[out]);
    ft__emit(b, &n);
    return out;
}
