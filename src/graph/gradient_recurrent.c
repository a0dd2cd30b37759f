/* gradient_recurrent.c: the gradient of a recurrent layer. Steps are undone from the last to the first, two kernels
 * each; what the weights and biases get is summed over all steps at once. */
#include "graph/gradient_rules.h"

#define T(ref) (&t->b.g->tensors[ref])

static ft_ref weight_gradient(ft_tape *t, const ft_node *n, ft_ref gates, ft_ref states, ft_ref weight)
{
    ft_node back = ft__node_of(FT_DO_LINEAR, n->at);
    ft__node_in(&back, gates);
    ft__node_in(&back, ft__tape_saved(t, states));
    ft_ref out = ft__result_like(t, &back, weight);
    ft_tensor w = *T(weight), g = *T(gates);
    back.op = ft__gemm_kernel(g.dtype, 1, w.rows, w.cols, g.rows, "tn", false);
    ft__emit(&t->b, &back);
    return out;
}

/* cuDNN sums biases' gradients over all steps and rows one behind the other, whatever the width: by its kernels' names
 * GENERIC_elementWise_bp2, GRU_elementWise_bp2. */
static ft_ref bias_gradient(ft_tape *t, const ft_node *n, ft_ref gates, ft_ref bias, ft_ref weight)
{
    ft_node back = ft__node_of(FT_DO_ROW, n->at);
    ft__node_in(&back, gates);
    ft_tensor g = *T(gates);
    ft_ref out = ft__result_like(t, &back, bias);
    back.op = ft__row_kernel("sum_cols", FT_PASS_FWD, g.rows, g.cols, g.dtype);
    int64_t blocks = T(weight)->rows / T(weight)->cols;
    back.walk = blocks == 4 ? FT_WALK_BIAS_LSTM : blocks == 3 ? FT_WALK_BIAS_GRU : FT_WALK_BIAS_PLAIN;
    back.trips = (float)g.rows;
    back.blocks = 1;
    ft__emit(&t->b, &back);
    return out;
}

/* One way's gates stand before its weight, two ways' before both: a weight is as wide as the states, gates as wide as
 * all their blocks. */
static int ways_of(const ft_tape *t, const ft_node *n)
{
    const ft_tensor *gates = T(n->in[0]), *next = T(n->in[1]), *y = T(n->out[0]);
    if (next->cols != gates->cols || next->rows != gates->rows) return 1;
    return y->cols == 2 * gates->cols || n->in_count > 3 ? 2 : 1;
}

/* n: the node of the gates' functions: in gates, weights and biases of every way; out results, what is kept. The
 * products before it have no result and so no gradient. */
void ft__backward_recur(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (n->out_count < 2) return;
    int ways = ways_of(t, n);
    ft_ref found[2] = {FT_NONE, FT_NONE};
    double steps = (double)n->count / ways;
    for (int i = 0; i < ways && t->b.status == FT_OK; i++) {
        ft_node cell = ft__node_of(FT_DO_RECUR, n->at);
        ft__node_in(&cell, g);
        ft__node_in(&cell, ft__tape_saved(t, n->out[1]));
        found[i] = ft__result_like(t, &cell, n->in[i]);
        if (found[i] == FT_NONE) return;
        cell.op = n->op;
        cell.op.u.other.bytes *= 2; /* gates and their gradients */
        cell.op.u.other.flops *= 2;
        cell.count = (float)steps;
        cell.workspace = n->workspace;
        ft__emit(&t->b, &cell);
        ft_ref weight = n->in[ways + i];
        ft_tensor w = *T(weight);
        ft_node product = ft__node_of(FT_DO_RECUR, n->at);
        ft__node_in(&product, found[i]);
        ft__node_in(&product, ft__tape_saved(t, weight));
        product.op = ft__gemm_kernel(T(found[i])->dtype, 1, (int64_t)((double)T(found[i])->rows / steps), w.cols,
                                     w.rows, "nn", false);
        product.count = (float)steps;
        ft__emit(&t->b, &product);
    }
    for (int i = 0; i < ways && t->b.status == FT_OK; i++) {
        ft_ref weight = n->in[ways + i], bias = n->in_count > 2 * ways ? n->in[2 * ways + i] : FT_NONE;
        if (ft__needs_grad(t, weight)) ft__tape_give(t, weight, weight_gradient(t, n, found[i], n->out[0], weight));
        if (ft__needs_grad(t, bias)) ft__tape_give(t, bias, bias_gradient(t, n, found[i], bias, weight));
        ft__tape_give(t, n->in[i], found[i]);
    }
}
