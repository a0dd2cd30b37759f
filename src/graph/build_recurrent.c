/* build_recurrent.c: LSTM, GRU and plain recurrences as cuDNN runs them.
 *
 * The inputs of all steps are one product, which stands before this. Then every step multiplies the state with its
 * weights and puts the gates together, in two kernels that wait for those of the step before. */
#include "graph/emit.h"
#include "graph/recurrent_constants.h"

typedef struct kind {
    const char *name;
    double step, kept;
} kind;

static const kind *kind_of(int64_t blocks)
{
    static const kind lstm = FT_K_RECURRENT_KINDS_LSTM, gru = FT_K_RECURRENT_KINDS_GRU, rnn = FT_K_RECURRENT_KINDS_RNN;
    return blocks == 4 ? &lstm : blocks == 3 ? &gru : &rnn;
}

/* What cuDNN asks for, beside the gates of all steps, which are a tensor here: one call runs all layers, so that each
 * of them holds the weights of all. Those are copied side by side first: PyTorch keeps weights that way in fp32 and
 * fp16 alone (torch.backends.cudnn.is_acceptable knows no bf16), and copies bf16 once more for it. */
static double held(const ft_recurrence *r, ft_dtype dtype, double element)
{
    if (r->layers < 1) return 0;
    double ways = r->ways, layers = (double)r->layers, state = (double)r->batch * (double)r->hidden;
    double all = (double)r->steps * state, wide = (double)(r->blocks * r->hidden);
    double inner = (double)r->hidden * (ways + 1), outer = (double)(r->inputs + r->hidden);
    double weights = ways * wide * (outer + (layers - 1) * inner);
    double between = ways > 1 && layers > 1 ? FT_K_RECURRENT_BOTH_WAYS_BETWEEN : 0;
    double step = kind_of(r->blocks)->step + (ways > 1 ? FT_K_RECURRENT_BOTH_WAYS_STEP : 0);
    double elements = all * ways * (1 + between) + (double)r->steps * (double)r->batch * (double)r->inputs +
                      step * ways * layers * state + weights * (dtype == FT_BF16 ? 2 : 1);
    return element * elements + FT_K_RECURRENT_PRODUCTS_MIB * 1048576 * ways * layers;
}

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
        int64_t states = (int64_t)kind_of(r->blocks)->kept;
        ft_ref kept = ft__node_out(b, &cell, rows, r->ways * states * r->hidden, t.dtype, t.element_bytes);
        if (kept == FT_NONE) return FT_NONE;
        b->g->tensors[kept].trained = false;
    }
    double elements = (double)r->batch * (double)r->hidden;
    cell.op = ft__bytes_kernel("recurrent_cell", t.dtype, elements * (double)(r->blocks + 3) * t.element_bytes,
                               elements * (double)r->blocks * 5);
    cell.count = (float)((double)r->steps * r->ways);
    cell.workspace = (float)held(r, t.dtype, t.element_bytes);
    ft__emit(b, &cell);
    ft__module(b, 1);
    return y;
}
