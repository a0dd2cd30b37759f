/* gradient_index.c: gradients of elements that were picked by index or scattered. */
#include <string.h>

#include "graph/gradient_rules.h"

#define T(ref) (&t->b.g->tensors[ref])

static ft_op moved(const ft_tape *t, const char *name, const ft_tensor *of)
{
    ft_op op = ft__pointwise_kernel(t->b.g, name, NULL, 0, of);
    op.u.elementwise.bytes = ft__tensor_numel(of) * (2 * of->element_bytes + 8);
    op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    return op;
}

/* Zeros, and what came back added to its places by atomics (scatter_add, index_add). */
void ft__backward_pick(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref all = ft__zeros(t, n->at, n->in[0]);
    if (all == FT_NONE || t->b.status != FT_OK) return;
    ft_node put = ft__node_of(FT_DO_COPY, n->at);
    ft__node_in(&put, all);
    ft__node_in(&put, g);
    if (n->keeps) ft__node_in(&put, ft__tape_saved(t, n->in[0]));
    put.op = moved(t, "index_put", T(g));
    put.in_place = true;
    if (T(g)->element_bytes == 2) {
        put.walk = FT_WALK_ATOMIC;
        put.trips = 1;
        put.blocks = (float)(ft__tensor_numel(T(g)) / 512);
    }
    ft_ref out = ft__node_view(&t->b, &put, all, T(all)->rows, T(all)->cols, false);
    ft__emit(&t->b, &put);
    ft__tape_give(t, n->in[0], out);
}

/* x[...] = from (autograd's CopySlices, torch/csrc/autograd/functions/tensor.cpp): the whole gradient is copied, the
 * slice's part of it once more, which is what `from` gets; zeros take its place where x has a gradient of its own. */
static void written_slice(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = n->in[0], from = n->in[1];
    const int64_t rows = T(from)->rows, cols = T(from)->cols;
    ft_ref all = ft__copy(&t->b, n->at, g, T(x)->rows, T(x)->cols);
    if (all == FT_NONE) return;
    ft_ref part = ft__view(&t->b, all, rows, cols, true);
    if (part == FT_NONE) return;
    T(part)->gaps = true;
    part = ft__copy(&t->b, n->at, part, rows, cols);
    if (part == FT_NONE) return;
    t->b.g->nodes[t->b.g->node_count - 1].op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    if (ft__needs_grad(t, from)) ft__tape_give(t, from, part);
    if (!ft__needs_grad(t, x)) return;
    ft_ref zeros = ft__zeros(t, n->at, from);
    if (zeros == FT_NONE) return;
    ft_node clear = ft__node_of(FT_DO_COPY, n->at);
    ft__node_in(&clear, all);
    ft__node_in(&clear, zeros);
    clear.op = n->op;
    clear.in_place = true;
    ft_ref out = ft__node_view(&t->b, &clear, all, T(all)->rows, T(all)->cols, false);
    ft__emit(&t->b, &clear);
    ft__tape_give(t, x, out);
}

/* What was scattered gets its places of the gradient. What it was written over gets the gradient with those places
 * zeroed, what it was added to the gradient itself. */
void ft__backward_scatter(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = n->in[0], from = n->in_count > 1 ? n->in[1] : FT_NONE;
    if (from != FT_NONE && !strcmp(n->op.name, "copy")) {
        written_slice(t, n, g);
        return;
    }
    if (ft__needs_grad(t, from)) {
        ft_node pick = ft__node_of(FT_DO_COPY, n->at);
        ft__node_in(&pick, g);
        ft_ref part = ft__result_like(t, &pick, from);
        if (part == FT_NONE) return;
        pick.op = moved(t, "gather", T(part));
        ft__emit(&t->b, &pick);
        ft__tape_give(t, from, part);
    }
    if (!ft__needs_grad(t, x)) return;
    if (n->adds) {
        ft__tape_give(t, x, g);
        return;
    }
    ft_ref rest = ft__copy(&t->b, n->at, g, T(g)->rows, T(g)->cols);
    if (rest == FT_NONE) return;
    ft_node zero = ft__node_of(FT_DO_COPY, n->at);
    ft__node_in(&zero, rest);
    zero.op = n->op;
    zero.in_place = true;
    ft_ref out = ft__node_view(&t->b, &zero, rest, T(rest)->rows, T(rest)->cols, false);
    ft__emit(&t->b, &zero);
    ft__tape_give(t, x, out);
}

void ft__backward_permute(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (!ft__needs_grad(t, n->in[0])) return;
    ft_node back = ft__node_of(FT_DO_PERMUTE, n->at);
    ft__node_in(&back, g);
    ft_ref out = ft__result_like(t, &back, n->in[0]);
    if (out == FT_NONE) return;
    back.op = n->op; /* reads and writes the same rows, the other way round */
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}
