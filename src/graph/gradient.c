/* gradient.c: what each node's backward launches, after PyTorch's derivative formulas (tools/autograd/derivatives.yaml
 * names them; the shapes follow from calculus). A product has two gradients, a norm one for its input and one for its
 * weights in the same pair of kernels, a slice a zeroed tensor with a copy inside, a reshape of a strided gradient a
 * copy. */
#include "graph/gradient.h"
#include "graph/batchnorm.h"

#include "graph/gradient_rules.h"

#define T(ref) (&t->b.g->tensors[ref])

ft_ref ft__result_like(ft_tape *t, ft_node *n, ft_ref like)
{
    ft_tensor l = *ft__tensor_of(&t->b, like);
    double bytes = l.role == FT_PARAMETER ? ft_dtype_bytes(l.dtype) : l.element_bytes;
    return ft__node_out(&t->b, n, l.rows, l.cols, l.dtype, bytes);
}

/* A copy for a kernel that reads one order alone: the gradient goes back into the other. */
static ft_ref turned_back(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_tensor before = *T(n->in[0]);
    ft_ref out = ft__transpose(&t->b, n->at, g, before.rows, before.cols);
    if (n->walk == FT_WALK_ACROSS) ft__walks_across(&t->b, ft__tensor_numel(&before));
    return out;
}

/* An assignment to a part of a tensor (autograd's CopySlices): what the whole's gradient is before it is copied, and
 * the part taken out, once for every part. */
static ft_ref parts_back(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref out = ft__copy(&t->b, n->at, g, T(g)->rows, T(g)->cols);
    if (t->b.status == FT_OK) t->b.g->nodes[t->b.g->node_count - 1].count = n->count;
    return out;
}

static void loss(ft_tape *t, const ft_node *n)
{
    ft_ref all = ft__zeros(t, n->at, n->in[0]);
    if (all == FT_NONE) return;
    ft_node write = ft__node_of(FT_DO_LOSS, n->at);
    ft__node_in(&write, all);
    ft__node_in(&write, ft__tape_saved(t, n->in[0])); /* autograd keeps it, for its shape alone */
    ft_tensor shape = *T(all);
    ft_ref out = ft__node_view(&t->b, &write, all, shape.rows, shape.cols, false);
    write.in_place = true;
    write.op = ft__bytes_kernel("nll_loss_backward", shape.dtype, (double)shape.rows * 64, (double)shape.rows);
    ft__emit(&t->b, &write);
    ft__tape_give(t, n->in[0], out);
}

/* An exchange's gradient is its conjugate: what was gathered is scattered, what was summed is passed on. */
static void comm(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (!ft__needs_grad(t, n->in[0])) return;
    ft_node back = ft__node_of(FT_DO_COMM, n->at);
    ft__node_in(&back, g);
    back.exchange = (ft_exchange){.kind = n->exchange.gradient,
                                  .gradient = n->exchange.kind,
                                  .axis = n->exchange.axis,
                                  .bytes = n->exchange.gradient_bytes,
                                  .gradient_bytes = n->exchange.bytes};
    const ft_tensor *x = T(n->in[0]);
    ft_ref out = back.exchange.kind == FT_EXCHANGE_NONE || back.exchange.kind == FT_EXCHANGE_ALL_REDUCE
                     ? ft__node_view(&t->b, &back, g, x->rows, x->cols, T(g)->strided)
                     : ft__result_like(t, &back, n->in[0]);
    back.in_place = out != FT_NONE && T(out)->storage == T(g)->storage;
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}

/* What has no rule of its own reads the gradient and its input, does twice the arithmetic and writes once. */
static void other(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (!ft__needs_grad(t, n->in[0])) return;
    ft_node back = ft__node_of(n->verb, n->at);
    ft__node_in(&back, g);
    for (int i = 0; i < n->in_count && i < 4; i++) ft__node_in(&back, ft__tape_saved(t, n->in[i]));
    ft_ref out[FT_NODE_OUTPUTS];
    for (int i = 0; i < n->in_count && i < FT_NODE_OUTPUTS; i++)
        out[i] = ft__needs_grad(t, n->in[i]) ? ft__result_like(t, &back, n->in[i]) : FT_NONE;
    back.op = n->op;
    if (n->walk == FT_WALK_WEIGHT_NORM) {
        back.walk = FT_WALK_WEIGHT_NORM_BACKWARD;
        back.trips = n->trips;
        back.blocks = n->blocks;
    }
    if (n->op.kind == FT_OP_OTHER) {
        back.op.u.other.bytes *= n->back > 0 ? (double)n->back : 2;
        back.op.u.other.flops *= 2;
    } else {
        back.count = 2;
    }
    ft__emit(&t->b, &back);
    for (int i = 0; i < n->in_count && i < FT_NODE_OUTPUTS; i++) ft__tape_give(t, n->in[i], out[i]);
}

static void picture(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (ft__is_windows(n))
        ft__backward_windows(t, n, g);
    else if (n->in_count > 1)
        ft__backward_sample(t, n, g);
    else
        ft__backward_pool(t, n, g);
}

static void undo(ft_tape *t, const ft_node *n)
{
    if (n->verb == FT_DO_SPLIT) {
        ft__backward_split(t, n);
        return;
    }
    if (n->verb == FT_DO_ROTATE) {
        ft__backward_rotate(t, n);
        return;
    }
    ft_ref g = n->out_count ? ft__tape_grad(t, n->out[0]) : FT_NONE;
    if (g == FT_NONE) return;
    switch (n->verb) {
    case FT_DO_LINEAR: ft__backward_linear(t, n, ft__contiguous(&t->b, n->at, g)); break;
    case FT_DO_MATMUL: ft__backward_matmul(t, n, g); break;
    case FT_DO_ATTENTION: ft__backward_attention(t, n, g); break;
    case FT_DO_POINTWISE: (ft__is_gate(n) ? ft__backward_gate : ft__backward_pointwise)(t, n, g); break;
    case FT_DO_ROW: ft__backward_row(t, n, g); break;
    case FT_DO_EMBEDDING:
    case FT_DO_GATHER: ft__backward_lookup(t, n, g); break;
    case FT_DO_PERMUTE: ft__backward_permute(t, n, g); break;
    case FT_DO_COPY:
        ft__tape_give(t, n->in[0],
                      n->transposes ? turned_back(t, n, g)
                      : n->assigns  ? parts_back(t, n, g)
                                    : ft__summed(t, n, g, n->in[0]));
        break;
    case FT_DO_EXPAND:
        if (ft__is_overlap(n))
            ft__backward_overlap(t, n, g);
        else
            ft__tape_give(t, n->in[0], ft__summed(t, n, g, n->in[0]));
        break;
    case FT_DO_CAT: ft__backward_cat(t, n, g); break;
    case FT_DO_VIEW: ft__backward_view(t, n, g); break;
    case FT_DO_SLICE: ft__backward_slice(t, n, g); break;
    case FT_DO_CONV: ft__backward_conv(t, n, ft__contiguous(&t->b, n->at, g)); break;
    case FT_DO_BATCHNORM:
        ft__is_groupnorm(n) ? ft__backward_groupnorm(t, n, g) : ft__backward_batchnorm(t, n, g);
        break;
    case FT_DO_POOL: picture(t, n, g); break;
    case FT_DO_RECUR: ft__backward_recur(t, n, g); break;
    case FT_DO_LOSS: loss(t, n); break;
    case FT_DO_COMM: comm(t, n, g); break;
    case FT_DO_SCAN:
    case FT_DO_EXPERTS:
    case FT_DO_OTHER: other(t, n, g); break;
    default: break;
    }
}

void ft__tape_node(ft_tape *t, const ft_node *n)
{
    int32_t first = t->b.g->node_count;
    undo(t, n);
    if (!(n->count > 1) || n->verb == FT_DO_RECUR || ft__is_windows(n) || t->b.status != FT_OK) return;
    /* A node of a loop: its gradients run as often, over as small shares. Operators of n's own kind took n's sizes;
     * pointwise ones and sums were sized by their tensors. */
    for (int32_t i = first; i < t->b.g->node_count; i++) {
        ft_node *back = &t->b.g->nodes[i];
        back->count *= n->count;
        if (n->verb == FT_DO_SLICE) continue; /* said by the slice itself: whole tensors of zeros, one part copied */
        if (back->op.kind == FT_OP_ELEMENTWISE || back->op.kind != n->op.kind)
            ft__op_share(&back->op, (double)n->count);
    }
}
