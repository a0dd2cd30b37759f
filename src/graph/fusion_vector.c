/* fusion_vector.c: products of one row as kernels of the compiler's own.
 *
 * With coordinate descent on, Inductor does not call a library for a product of one row: it writes it as a product and
 * a sum (torch/_inductor/decomposition.py, mm and bmm) and makes a kernel of that, which reads every weight once and is
 * bound by memory as any other. On an H200 that is as fast as cuBLAS; of experts it reads the weights where they lie
 * instead of taking them out of their stack first, half of the time (data/measurements/h200/matvec.jsonl). */
#include "graph/graph.h"
#include "graph/operator.h"

/* Weights of fewer bits have kernels of their own. */
static bool one_row(const ft_node *n)
{
    const ft_op *op = &n->op;
    return n->phase == FT_FORWARD && op->kind == FT_OP_GEMM && op->u.gemm.m == 1 &&
           op->weights == FT_STORED_AS_COMPUTED && ft_dtype_bytes(op->dtype) >= 2;
}

/* Made element by element of two results as wide as it is: the weight of a norm is none. */
static bool gated(const ft_graph *g, int32_t reader)
{
    ft_ref x = g->nodes[reader].in_count > 0 ? g->nodes[reader].in[0] : FT_NONE;
    for (int32_t i = reader - 1; i >= 0 && x != FT_NONE; i--) {
        const ft_node *n = &g->nodes[i];
        if (n->out_count < 1 || g->tensors[n->out[0]].storage != g->tensors[x].storage) continue;
        if (n->verb == FT_DO_VIEW) continue;
        int wide = 0;
        for (int j = 0; j < n->in_count; j++) {
            const ft_tensor *t = &g->tensors[n->in[j]];
            wide += t->role != FT_PARAMETER && t->rows == g->tensors[x].rows && t->cols == g->tensors[x].cols;
        }
        return n->verb == FT_DO_POINTWISE && wide > 1;
    }
    return false;
}

/* Weights of 8 bits are widened by such a kernel as well; what comes before it is part of it. */
void ft__graph_gate_vectors(ft_graph *g)
{
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_node *n = &g->nodes[i];
        const ft_op *op = &n->op;
        if (n->phase == FT_FORWARD && op->kind == FT_OP_GEMM && op->u.gemm.b == 1 && op->u.gemm.m == 1 &&
            op->weights == FT_STORED_INT8 && ft_dtype_bytes(op->dtype) >= 2 && gated(g, i))
            n->manner |= FT_MANNER_GATED;
    }
}

void ft__graph_stream_vectors(ft_graph *g)
{
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_node *n = &g->nodes[i];
        if (!one_row(n)) continue;
        ft_op kernel = {.kind = FT_OP_ELEMENTWISE, .name = "fused", .dtype = n->op.dtype, .kv_dtype = n->op.dtype};
        kernel.u.elementwise.numel = n->op.u.gemm.b * n->op.u.gemm.n * n->op.u.gemm.k;
        kernel.u.elementwise.inputs = 1;
        kernel.u.elementwise.bytes = ft__op_bytes(&n->op);
        kernel.u.elementwise.ops_per_element = 2;
        n->op = kernel;
        n->manner = FT_MANNER_STREAM;
        n->contracts = true;
    }
}
