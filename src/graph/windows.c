/* windows.c: images cut into windows and put together again, as PyTorch's kernels do it (aten/src/ATen/native/cuda/
 * Im2Col.cu, Col2Im.cu, im2col.cuh).
 *
 *   unfold  copies all images, then launches a kernel for each of them: a thread takes one place of one channel and
 *           copies its taps one behind the other.
 *   fold    is one kernel: a thread takes one pixel and adds the windows that hold it. A warp takes as long as the
 *           pixel of it that lies in most.
 *
 * Each is the other's gradient, and nothing is kept. Views whose windows overlap (Tensor.unfold, as_strided) cost
 * nothing going forward. Going back the one has a kernel that looks up every element's windows
 * (UnfoldBackwardKernel.cu), the other counts all elements, copies their numbers as the view lies and adds by them
 * (as_strided_backward in torch/csrc/autograd/FunctionsManual.cpp). */
#include "graph/windows.h"

#include "graph/emit.h"
#include "graph/gradient_rules.h"

enum { PLACES = 1024, PIXELS = 512, INDEX_BYTES = 8 }; /* of a thread block; of an element's number */
#define T(ref) (&t->b.g->tensors[ref])

/* The other direction's trips wait where an elementwise kernel says what an element takes. */
static void launched(const ft_build *b, ft_node *n, ft_ref in, const ft_tensor *out, const ft_windows *how)
{
    double windows = how->fold ? ft__tensor_numel(ft__tensor_of(b, in)) : ft__tensor_numel(out);
    n->op = ft__pointwise_kernel(b->g, "copy", &in, 1, out);
    n->op.u.elementwise.ops_per_element = how->fold ? how->taps : how->meet;
    n->each = how->pictures;
    n->walk = how->fold ? FT_WALK_FOLD : FT_WALK_UNFOLD;
    n->trips = (float)(how->fold ? how->meet : how->taps);
    n->blocks = (float)(how->fold ? ft__tensor_numel(out) / PIXELS : windows / how->taps / how->pictures / PLACES);
    if (how->fold) return;
    n->count = (float)how->pictures;
    ft__op_share(&n->op, how->pictures);
}

ft_ref ft__windows(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols, const ft_windows *how)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_tensor t = *ft__tensor_of(b, x);
    if (!how->fold) x = ft__copy(b, at, x, t.rows, t.cols);
    ft_node n = ft__node_of(FT_DO_POOL, at);
    ft__node_in(&n, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    launched(b, &n, x, &b->g->tensors[out], how);
    ft__emit(b, &n);
    ft__module(b, 1);
    return out;
}

bool ft__is_windows(const ft_node *n) { return n->walk == FT_WALK_FOLD || n->walk == FT_WALK_UNFOLD; }

void ft__backward_windows(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (!ft__needs_grad(t, n->in[0])) return;
    bool fold = n->walk == FT_WALK_UNFOLD;
    double other = n->op.u.elementwise.ops_per_element, own = (double)n->trips;
    ft_windows how = {.pictures = n->each, .taps = fold ? own : other, .meet = fold ? other : own, .fold = fold};
    ft_ref in = fold ? ft__contiguous(&t->b, n->at, g) : ft__copy(&t->b, n->at, g, T(g)->rows, T(g)->cols);
    ft_node back = ft__node_of(FT_DO_POOL, n->at);
    ft__node_in(&back, in);
    ft_ref out = ft__result_like(t, &back, n->in[0]);
    if (out == FT_NONE || t->b.status != FT_OK) return;
    launched(&t->b, &back, in, T(out), &how);
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}

ft_ref ft__overlap(ft_build *b, ft_ref x, int64_t rows, int64_t cols, bool indexed)
{
    ft_ref out = ft__expand(b, x, rows, cols);
    if (out == FT_NONE || b->status != FT_OK) return out;
    ft_node *n = &b->g->nodes[b->g->node_count - 1];
    n->adds = indexed;
    n->walk = FT_WALK_OVERLAP; /* of its gradient: a view runs nothing */
    return out;
}

bool ft__is_overlap(const ft_node *n) { return n->verb == FT_DO_EXPAND && n->walk == FT_WALK_OVERLAP; }

/* A number for every element of x, and their copy in the view's order, which both live until all is added. */
static ft_ref numbered(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_tensor x = *T(n->in[0]), y = *T(g);
    ft_node count = ft__node_of(FT_DO_FILL, n->at);
    ft_ref all = ft__node_out(&t->b, &count, x.rows, x.cols, x.dtype, INDEX_BYTES);
    if (all == FT_NONE) return all;
    count.op = ft__pointwise_kernel(t->b.g, "fill", NULL, 0, T(all));
    count.walk = FT_WALK_COUNT_UP;
    count.trips = 1;
    count.blocks = (float)(ft__tensor_numel(&x) / PIXELS);
    ft__emit(&t->b, &count);
    return ft__copy(&t->b, n->at, all, y.rows, y.cols);
}

void ft__backward_overlap(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (!ft__needs_grad(t, n->in[0])) return;
    g = ft__contiguous(&t->b, n->at, g);
    ft_ref all = ft__zeros(t, n->at, n->in[0]), where = n->adds ? numbered(t, n, g) : FT_NONE;
    if (all == FT_NONE || t->b.status != FT_OK) return;
    ft_node add = ft__node_of(FT_DO_COPY, n->at);
    ft__node_in(&add, all);
    ft__node_in(&add, g);
    ft__node_in(&add, where);
    ft_tensor shape = *T(all);
    add.op = ft__pointwise_kernel(t->b.g, "copy", add.in + 1, add.in_count - 1, T(g));
    add.walk = n->adds ? FT_WALK_ADD_BY_INDEX : FT_WALK_OVERLAP;
    add.trips = 1;
    add.blocks = (float)(ft__tensor_numel(n->adds ? T(g) : &shape) / PIXELS);
    add.in_place = true;
    ft_ref out = ft__node_view(&t->b, &add, all, shape.rows, shape.cols, false);
    ft__emit(&t->b, &add);
    ft__tape_give(t, n->in[0], out);
}
