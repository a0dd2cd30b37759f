/* recurrent.c: LSTM, GRU and RNN as PyTorch's fused kernels run them: the inputs of all steps in one product, then
 * a product with the state at each step and the gates behind it. */
#include <string.h>

#include "import/onnx/run.h"

static void build_recurrent(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *w = ft__onnx_operand(r, 1), *u = ft__onnx_operand(r, 2);
    ft_onnx_item *bias = ft__onnx_optional(r, 3);
    int gates = !strcmp(r->at->op, "LSTM") ? 4 : !strcmp(r->at->op, "GRU") ? 3 : 1;
    bool first = ft__onnx_int(r->at, "layout", 0) != 0; /* the batch stands first */
    if (!x || !w || !u) return;
    if (x->dims != 3 || w->dims != 3 || u->dims != 3 || w->dim[2] != x->dim[2] || u->dim[0] != w->dim[0] ||
        u->dim[1] != w->dim[1] || w->dim[1] != gates * u->dim[2]) {
        ft__onnx_fail(r, FT_E_RANGE, "[length, batch, width] and weights of %d gates for it are expected", gates);
        return;
    }
    int64_t steps = x->dim[first], batch = x->dim[!first], ways = w->dim[0], wide = u->dim[2], in = x->dim[2];
    int64_t all[4] = {steps, ways, batch, wide}, turned[4] = {batch, steps, ways, wide};
    int64_t last[3] = {ways, batch, wide}, last_turned[3] = {batch, ways, wide};
    ft_build *b = r->b;
    for (int k = 1; k < 3; k++)
        if (ft__onnx_has(r, k))
            ft__onnx_filled(r, "copy", ft__onnx_result(r, k, x->type, 3, first ? last_turned : last));
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, 4, first ? turned : all);
    if (!y || ft__onnx_count(y) < 1 || in < 1) return;
    ft__onnx_dense(r, x);
    ft_ref from = ft__onnx_ref_as(r, x, steps * batch, in);
    ft_ref input = w->kind == FT_ONNX_WEIGHT ? ft__onnx_product_weight(r, w, ways * gates * wide, in)
                                             : ft__onnx_ref(r, w);
    ft_ref state = u->kind == FT_ONNX_WEIGHT ? ft__onnx_product_weight(r, u, ways * gates * wide, wide)
                                             : ft__onnx_ref(r, u);
    ft_ref offset = bias && bias->kind == FT_ONNX_WEIGHT ? ft__onnx_ref(r, bias) : FT_NONE;
    if (ft__onnx_failed(r)) return;
    ft_ref gate = ft__linear_with(b, r->label, from, input, ways * gates * wide, offset, FT_WHOLE);
    if (ft__onnx_failed(r)) return;
    /* Both directions run side by side: their products stand behind each other. */
    ft_tensor t = *ft__tensor_of(b, gate);
    ft_node n = ft__node_of(FT_DO_OTHER, r->label);
    ft__node_in(&n, gate);
    ft__node_in(&n, state);
    ft_ref sums = ft__node_out(b, &n, steps * batch, ways * gates * wide, t.dtype, t.element_bytes);
    n.op = ft__gemm_kernel(b->math, 1, batch, gates * wide, wide, "nt", false);
    n.count = (float)((double)steps * (double)ways);
    ft__emit(b, &n);
    if (ft__onnx_failed(r)) return;
    ft_node act = ft__node_of(FT_DO_OTHER, r->label);
    ft__node_in(&act, sums);
    y->ref = ft__node_out(b, &act, steps * ways * batch, wide, t.dtype, t.element_bytes);
    double bytes = (double)batch * (double)wide * (double)(gates + 2) * t.element_bytes;
    act.op = ft__bytes_kernel("gates", t.dtype, bytes, 20 * (double)batch * (double)wide);
    act.count = (float)((double)steps * (double)ways);
    ft__emit(b, &act);
    ft__module(b, 1);
}

const ft_onnx_rule ft__onnx_recurrent_rules[] = {
    {"LSTM", 3, build_recurrent, ""},
    {"GRU", 3, build_recurrent, ""},
    {"RNN", 3, build_recurrent, ""},
    {0},
};
