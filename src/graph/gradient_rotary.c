/* gradient_rotary.c: a rotation is undone by one the other way round, over the same elements. */
#include "graph/gradient_rules.h"

#define T(ref) (&t->b.g->tensors[ref])

static void in_place(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_node back = ft__node_of(FT_DO_ROTATE, n->at);
    g = ft__contiguous(&t->b, n->at, g);
    ft__node_in(&back, g);
    back.op = n->op;
    back.in_place = true;
    ft_tensor like = *ft__tensor_of(&t->b, g);
    ft_ref out = ft__node_view(&t->b, &back, g, like.rows, like.cols, false);
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}

void ft__backward_rotate(ft_tape *t, const ft_node *n)
{
    ft_ref g[FT_NODE_OUTPUTS], out[FT_NODE_INPUTS];
    bool any = false, wanted = false;
    for (int i = 0; i < n->out_count; i++) any |= (g[i] = ft__tape_grad(t, n->out[i])) != FT_NONE;
    for (int i = 0; i < n->in_count; i++) wanted |= ft__needs_grad(t, n->in[i]);
    if (!any || !wanted) return;
    if (n->in_place) {
        in_place(t, n, g[0]);
        return;
    }
    ft_node back = ft__node_of(FT_DO_ROTATE, n->at);
    for (int i = 0; i < n->out_count; i++) {
        g[i] = g[i] == FT_NONE ? ft__zeros(t, n->at, n->out[i]) : ft__contiguous(&t->b, n->at, g[i]);
        ft__node_in(&back, g[i]);
    }
    for (int i = 0; i < n->in_count && i < FT_NODE_OUTPUTS; i++)
        out[i] = ft__needs_grad(t, n->in[i]) ? ft__result_like(t, &back, n->in[i]) : FT_NONE;
    back.op = n->op;
    ft__emit(&t->b, &back);
    for (int i = 0; i < n->in_count && i < FT_NODE_OUTPUTS; i++)
        if (out[i] != FT_NONE) ft__tape_give(t, n->in[i], out[i]);
}
