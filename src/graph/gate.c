/* gate.c: a gated activation of two products in one kernel, and one for both of its gradients.
 *
 * Liger's LigerSiLUMulFunction (liger_kernel/ops/swiglu.py) and Unsloth's swiglu_fg_kernel (unsloth/kernels/swiglu.py)
 * read gate and up and write act(gate) up; the activation itself is never in memory, so that autograd keeps the two
 * operands alone. Going back one kernel reads them and what comes in, and writes both gradients over them. */
#include <string.h>

#include "graph/gradient_rules.h"

#define T(ref) (&t->b.g->tensors[ref])

static const char GATE[] = "swiglu", GATE_BACK[] = "swiglu_backward";

ft_ref ft__gate(ft_build *b, ft_at at, ft_ref gate, ft_ref up)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_POINTWISE, at);
    ft__node_in(&n, gate);
    ft__node_in(&n, up);
    ft_tensor t = *ft__tensor_of(b, gate);
    ft_ref out = ft__node_out(b, &n, t.rows, t.cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, GATE, n.in, n.in_count, &b->g->tensors[out]);
    ft__emit(b, &n);
    return out;
}

bool ft__is_gate(const ft_node *n) { return n->in_count == 2 && n->op.name && !strcmp(n->op.name, GATE); }

void ft__backward_gate(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_node back = ft__node_of(FT_DO_POINTWISE, n->at);
    ft_ref out[2];
    back.in_place = true;
    for (int i = 0; i < 2; i++) ft__node_in(&back, ft__tape_saved(t, n->in[i]));
    ft__node_in(&back, g);
    for (int i = 0; i < 2; i++) {
        ft_tensor like = *T(back.in[i]);
        out[i] = ft__node_view(&t->b, &back, back.in[i], like.rows, like.cols, like.strided);
    }
    if (t->b.status != FT_OK) return;
    back.op = ft__pointwise_kernel(t->b.g, GATE_BACK, back.in, back.in_count, T(out[0]));
    back.op.u.elementwise.bytes += ft__tensor_bytes(T(out[1]));
    ft__emit(&t->b, &back);
    for (int i = 0; i < 2; i++) ft__tape_give(t, n->in[i], out[i]);
}
