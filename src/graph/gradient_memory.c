/* gradient_memory.c: gradients of views, slices, concatenations and lookups. */
#include <math.h>
#include <string.h>

#include "graph/embedding_constants.h"
#include "graph/experts_constants.h"
#include "graph/gradient_rules.h"

#define T(ref) (&t->b.g->tensors[ref])

ft_ref ft__zeros(ft_tape *t, ft_at at, ft_ref like)
{
    ft_node n = ft__node_of(FT_DO_FILL, at);
    ft_ref out = ft__result_like(t, &n, like);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(t->b.g, "fill", n.in, 0, T(out));
    ft__emit(&t->b, &n);
    return out;
}

/* A view whose neighbours lie far apart, or do not. */
static ft_ref lying(ft_tape *t, ft_ref x, bool across)
{
    if (x != FT_NONE && t->b.status == FT_OK) T(x)->across = across;
    return x;
}

void ft__backward_view(ft_tape *t, const ft_node *n, ft_ref g)
{
    const ft_tensor *x = T(n->in[0]);
    int64_t rows = x->rows, cols = x->cols;
    bool strided = T(g)->strided;
    if (T(n->out[0])->rows == rows && T(n->out[0])->cols == cols && !n->transposes) {
        ft__tape_give(t, n->in[0], g);
        return;
    }
    bool reshapes = T(n->out[0])->cols != cols;
    bool turned = x->strided && x->permuted; /* brought back into order by a view, and the gradient out of it by one */
    bool across = T(g)->across != (x->across != T(n->out[0])->across); /* turned back as far as the view turned */
    if (n->transposes) {
        strided = !strided;
        if (strided && reshapes && !turned) { /* heads side by side again: what lies head by head is copied */
            g = lying(t, ft__view(&t->b, g, rows, cols, true), across);
            g = ft__contiguous(&t->b, n->at, g);
            strided = false;
        }
    } else if (strided) { /* reshaping what is not contiguous copies it */
        g = ft__contiguous(&t->b, n->at, g);
        strided = false;
    }
    ft__tape_give(t, n->in[0], lying(t, ft__view(&t->b, g, rows, cols, strided), strided && across));
}

void ft__backward_slice(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref all = ft__zeros(t, n->at, n->in[0]);
    if (all == FT_NONE || t->b.status != FT_OK) return;
    ft_node copy = ft__node_of(FT_DO_COPY, n->at);
    ft__node_in(&copy, all);
    ft__node_in(&copy, g);
    ft_tensor part = *T(g);
    copy.op = ft__pointwise_kernel(t->b.g, "copy", &g, 1, &part);
    copy.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    copy.in_place = true;
    if (n->count > 1) ft__op_share(&copy.op, (double)n->count);
    ft_ref out = ft__node_view(&t->b, &copy, all, T(all)->rows, T(all)->cols, false);
    ft__emit(&t->b, &copy);
    if (n->count > 1) /* parts that a loop reads: each part's zeros are added to what the others gave */
        out = ft__pointwise_in_place(&t->b, n->at, "add", out, all);
    ft__tape_give(t, n->in[0], out);
}

void ft__backward_split(ft_tape *t, const ft_node *n)
{
    ft_ref part[FT_NODE_OUTPUTS];
    bool any = false;
    for (int i = 0; i < n->out_count; i++) any |= (part[i] = ft__tape_grad(t, n->out[i])) != FT_NONE;
    if (!any || !ft__needs_grad(t, n->in[0])) return;
    for (int i = 0; i < n->out_count; i++)
        if (part[i] == FT_NONE) part[i] = ft__zeros(t, n->at, n->out[i]);
    if (n->streams) {
        ft__tape_give(t, n->in[0], ft__both(&t->b, part[0], part[1]));
        return;
    }
    const ft_tensor *x = T(n->in[0]);
    ft__tape_give(t, n->in[0], ft__cat(&t->b, n->at, n->out_count, part, x->rows, x->cols));
}

/* What was written into part of a tensor: the gradient is copied, the part taken out of it and zeroed there, except
 * that nothing is left to be zeroed for after the last (autograd's CopySlices). */
static void assembled(ft_tape *t, const ft_node *n, ft_ref g)
{
    for (int i = n->in_count - 1; i >= 0; i--) {
        int64_t rows = T(n->in[i])->rows, cols = T(n->in[i])->cols;
        g = ft__copy(&t->b, n->at, g, T(g)->rows, T(g)->cols);
        ft_ref part = ft__view(&t->b, g, rows, cols, true);
        if (part == FT_NONE) return;
        T(part)->gaps = true;
        part = ft__copy(&t->b, n->at, part, rows, cols);
        if (i > 0) {
            ft_ref zero = ft__zeros(t, n->at, n->in[i]);
            ft_ref there = ft__copy(&t->b, n->at, zero, rows, cols);
            if (there != FT_NONE) t->b.g->nodes[t->b.g->node_count - 1].op.u.elementwise.pattern = FT_PATTERN_STRIDED;
        }
        ft__tape_give(t, n->in[i], part);
    }
}

void ft__backward_cat(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (!strcmp(n->op.name, "copy")) {
        assembled(t, n, g);
        return;
    }
    for (int i = 0; i < n->in_count; i++) {
        const ft_tensor *x = T(n->in[i]);
        if (!x->trained) continue;
        if (n->in_place && i == 0) { /* what the others were joined to */
            ft__tape_give(t, n->in[i], g);
            continue;
        }
        ft_ref part = ft__view(&t->b, g, x->rows, x->cols, !n->streams);
        if (part != FT_NONE) T(part)->gaps = !n->streams;
        ft__tape_give(t, n->in[i], part);
    }
}

/* aten/src/ATen/native/cuda/Indexing.cu (index_put_with_sort_kernel): the first of the rows that share an index has a
 * warp for every 128 columns, which adds all of them one after the other; the warps of the others leave. Up to a
 * warp's 32 columns, and one, have kernels of their own. Experts are not dealt rows evenly: the fullest is waited for.
 */
static void meet(ft_node *put, const ft_tensor *rows, double places)
{
    enum { WARP = 32, COLUMNS = 128, MANY = 64 };
    double shared = (double)rows->rows / places, fullest = put->at->of->site == FT_SITE_MOE ? FT_K_EXPERTS_FULLEST : 1;
    if (shared <= MANY) return;
    put->walk = rows->cols == 1           ? FT_WALK_MEET_SINGLE
                : rows->cols <= WARP      ? FT_WALK_MEET_NARROW
                : rows->element_bytes > 2 ? FT_WALK_MEET_WIDE
                                          : FT_WALK_MEET;
    put->trips = (float)(shared * fullest);
    put->blocks = (float)(places * ceil((double)rows->cols / COLUMNS) / fullest);
}

/* Rows that an index picked go back by index_put: indices are sorted so that equal ones can be added up in order. */
static void put_rows(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref all = ft__zeros(t, n->at, n->in[0]);
    if (all == FT_NONE || t->b.status != FT_OK) return;
    ft_node sort = ft__node_of(FT_DO_OTHER, n->at);
    sort.op = ft__bytes_kernel("sort", T(g)->dtype, (double)T(g)->rows * 16, (double)T(g)->rows);
    sort.count = 12;
    sort.inside = true;
    ft__emit(&t->b, &sort);
    ft_node put = ft__node_of(FT_DO_COPY, n->at);
    ft__node_in(&put, all);
    ft__node_in(&put, g);
    ft_tensor part = *T(g);
    put.op = ft__pointwise_kernel(t->b.g, "index_put", &g, 1, &part);
    put.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    meet(&put, &part, (double)T(all)->rows);
    put.in_place = true;
    ft_ref out = ft__node_view(&t->b, &put, all, T(all)->rows, T(all)->cols, false);
    ft__emit(&t->b, &put);
    ft__tape_give(t, n->in[0], out);
}

/* Bags: indices are sorted together with their places, equal ones counted and cut into pieces, by library kernels over
 * the indices alone (_embedding_bag_dense_backward_cuda and embedding_backward_cuda_kernel of PyTorch). */
static void sort_bags(ft_tape *t, const ft_node *n)
{
    ft_node sort = ft__node_of(FT_DO_OTHER, n->at);
    sort.op = ft__bytes_kernel("sort", n->op.dtype, (double)n->op.u.row.rows * 32, (double)n->op.u.row.rows);
    sort.count = (float)FT_K_EMBEDDING_BAG_KERNELS;
    sort.inside = true;
    ft__emit(&t->b, &sort);
}

void ft__backward_lookup(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref table = n->verb == FT_DO_GATHER ? n->in[0] : n->in[1];
    if (n->verb == FT_DO_GATHER && n->in_place) {
        ft__backward_scatter(t, n, g);
        return;
    }
    if (!ft__needs_grad(t, table)) return;
    if (n->verb == FT_DO_GATHER) {
        if (n->adds)
            ft__backward_pick(t, n, g);
        else if (T(n->out[0])->rows == T(table)->rows && T(n->out[0])->cols < T(table)->cols)
            ft__backward_slice(t, n, g); /* top-k */
        else
            put_rows(t, n, g);
        return;
    }
    if (n->adds) sort_bags(t, n);
    ft_node back = ft__node_of(n->verb, n->at);
    ft__node_in(&back, g);
    ft__node_in(&back, n->in[0]);
    ft_ref out = ft__result_like(t, &back, table);
    back.op = n->op;
    back.op.pass = FT_PASS_BWD;
    ft__emit(&t->b, &back);
    ft__tape_give(t, table, out);
}
