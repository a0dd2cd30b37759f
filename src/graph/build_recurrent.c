/* build_recurrent.c: LSTM, GRU and plain recurrences as cuDNN runs them.
 *
 * The inputs of all steps are one product, which stands before this. Then every step multiplies the state with its
 * weights and puts the gates together, in two kernels that wait for those of the step before. */
#include "graph/emit.h"

/* Backward a step is undone by the gates' gradients and the product that hands them to the state; the weights' are one
 * product over all steps at the end (gradient_recurrent.c). */
ft_ref ft__recurrence(ft_build *b, ft_at at, const ft_recurrence *r)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_tensor t = *ft__tensor_of(b, r->gates[0]);
    int64_t rows = r->steps * r->batch, wide = r->blocks * r->hidden;
    ft_node cell = ft__node_of(FT_DO_RECUR, at);
    ft_ref weight[2];
    for (int i = 0; i < r->ways; i++) {
        weight[i] = ft__lowered(b, at, r->weight[i]);
        ft_node product = ft__node_of(FT_DO_RECUR, at);
        ft__node_in(&product, r->gates[i]);
        ft__node_in(&product, weight[i]);
        product.op = ft__gemm_kernel(ft__product_dtype(b, &t), 1, r->batch, wide, r->hidden, "nt", false);
        product.count = (float)r->steps;
        ft__emit(b, &product);
    }
    for (int i = 0; i < r->ways; i++) ft__node_in(&cell, r->gates[i]);
    for (int i = 0; i < r->ways; i++) ft__node_in(&cell, weight[i]);
    for (int i = 0; i < r->ways; i++) ft__node_in(&cell, r->bias[i]);
    ft_ref y = ft__node_out(b, &cell, rows, r->ways * r->hidden, t.dtype, t.element_bytes);
    if (y == FT_NONE) return FT_NONE;
    if (b->training) { /* what a gradient needs: the gates behind their functions, and the states */
        ft_ref kept = ft__node_out(b, &cell, rows, r->ways * (wide + 2 * r->hidden), t.dtype, t.element_bytes);
        if (kept == FT_NONE) return FT_NONE;
        b->g->tensors[kept].trained = false;
    }
    double elements = (double)r->batch * (double)r->hidden;
    cell.op = ft__bytes_kernel("recurrent_cell", t.dtype, elements * (double)(r->blocks + 3) * t.element_bytes,
                               elements * (double)r->blocks * 5);
    cell.count = (float)((double)r->steps * r->ways);
    ft__emit(b, &cell);
    ft__module(b, 1);
    return y;
}
