/* gradient_math.c: gradients of products, attention, pointwise operators, norms and reductions. */
#include <ctype.h>
#include <string.h>

#include "graph/gradient_rules.h"
#include "graph/pointwise.h"

#define T(ref) (&t->b.g->tensors[ref])

/* -- products ---------------------------------------------------------------------------------- */

static ft_ref product(ft_tape *t, const ft_node *of, ft_ref x, ft_ref y, ft_ref like, int64_t m, int64_t n, int64_t k,
                      const char *layout)
{
    ft_node node = ft__node_of(of->verb, of->at);
    ft__node_in(&node, x);
    ft__node_in(&node, y);
    ft_ref out = ft__result_like(t, &node, like);
    node.op = ft__gemm_kernel(of->op.dtype, of->op.u.gemm.b, m, n, k, layout, false);
    node.op.name = of->op.name;
    if (of->op.u.gemm.quantized == 1) node.op.u.gemm.quantized = 1; /* cast apart, as going forward */
    node.cut = of->cut;
    node.core = of->core;
    node.empty = of->empty;
    ft__emit(&t->b, &node);
    return out;
}

static ft_ref column_sums(ft_tape *t, const ft_node *of, ft_ref g, ft_ref like)
{
    ft_node n = ft__node_of(FT_DO_ROW, of->at);
    ft__node_in(&n, g);
    ft_tensor shape = *ft__tensor_of(&t->b, g);
    ft_ref out = ft__result_like(t, &n, like);
    n.op = ft__row_kernel("sum_cols", FT_PASS_FWD, shape.rows, shape.cols, shape.dtype);
    ft__emit(&t->b, &n);
    return out;
}

void ft__backward_linear(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = n->in[0], weight = n->in[1], bias = n->in_count > 2 ? n->in[2] : FT_NONE;
    int64_t m = n->op.u.gemm.m, out = n->op.u.gemm.n, in = n->op.u.gemm.k;
    bool stored_across = n->op.u.gemm.layout[1] == 'n'; /* [in, out] */
    bool apart = ft__casts_apart(&t->b, n) && n->op.u.gemm.quantized == 1;
    if (apart) ft__cast_apart(&t->b, n->at, g, ft__needs_grad(t, weight));
    if (apart && ft__needs_grad(t, x)) ft__cast_apart(&t->b, n->at, weight, true);
    if (apart && ft__needs_grad(t, weight)) ft__cast_apart(&t->b, n->at, ft__tape_saved(t, x), true);
    if (ft__needs_grad(t, x)) {
        if (ft__packed(&t->b, weight, T(x)->dtype)) {
            ft__unpack(&t->b, n->at, weight);
            if (t->b.g->keeps_inputs && t->b.status == FT_OK) {
                ft_node *unpacks = &t->b.g->nodes[t->b.g->node_count - 1];
                ft__node_in(unpacks, ft__tape_saved(t, x));
                unpacks->keeps = true;
            }
        }
        ft__tape_give(t, x, product(t, n, g, ft__tape_saved(t, weight), x, m, in, out, stored_across ? "nt" : "nn"));
    }
    if (ft__needs_grad(t, weight)) {
        ft_ref saved = ft__tape_saved(t, x);
        ft_ref back = stored_across ? product(t, n, saved, g, weight, in, out, m, "tn")
                                    : product(t, n, g, saved, weight, out, in, m, "tn");
        /* Transformer Engine quantises a gradient once, for both products (module/linear.py, grad_output_quantizer). */
        if (t->b.status == FT_OK) t->b.g->nodes[t->b.g->node_count - 1].cast = ft__needs_grad(t, x);
        ft__tape_give(t, weight, back);
    }
    if (ft__needs_grad(t, bias)) ft__tape_give(t, bias, column_sums(t, n, g, bias));
}

void ft__backward_matmul(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = n->in[0], y = n->in[1];
    int64_t m = n->op.u.gemm.m, cols = n->op.u.gemm.n, k = n->op.u.gemm.k;
    bool y_across = n->op.u.gemm.layout[1] == 't';
    if (ft__needs_grad(t, x)) {
        ft_ref back = product(t, n, g, ft__tape_saved(t, y), x, m, k, cols, y_across ? "nn" : "nt");
        /* Experts are as uneven backward; between activations it is x that was hard to read. */
        if (t->b.status == FT_OK && T(y)->role == FT_PARAMETER)
            ft__same_manner(&t->b.g->nodes[t->b.g->node_count - 1], n);
        ft__tape_give(t, x, back);
    }
    if (ft__needs_grad(t, y)) {
        ft_ref saved = ft__tape_saved(t, x);
        ft_ref back = y_across ? product(t, n, g, saved, y, cols, k, m, "tn")
                               : product(t, n, saved, g, y, k, cols, m, "tn");
        if (t->b.status == FT_OK) ft__same_manner(&t->b.g->nodes[t->b.g->node_count - 1], n); /* reads the same x */
        ft__tape_give(t, y, back);
    }
    ft_ref bias = n->in_count > 2 ? n->in[2] : FT_NONE; /* of experts */
    if (ft__needs_grad(t, bias)) ft__tape_give(t, bias, column_sums(t, n, g, bias));
}

void ft__backward_attention(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_node back = ft__node_of(FT_DO_ATTENTION, n->at);
    ft__node_in(&back, g);
    for (int i = 0; i < 3; i++) ft__node_in(&back, ft__tape_saved(t, n->in[i]));
    for (int i = 0; i < n->out_count; i++) ft__node_in(&back, ft__tape_saved(t, n->out[i]));
    back.op = n->op;
    back.op.pass = FT_PASS_BWD;
    back.traffic = n->traffic;
    ft__same_manner(&back, n);
    /* dQ is summed in fp32 before it is rounded; what was gathered for the forward kernel is gathered again. */
    back.workspace = n->workspace + (float)(ft__tensor_numel(T(n->in[0])) * (ft_dtype_bytes(n->op.dtype) < 4 ? 4 : 0));
    ft_ref out[3];
    for (int i = 0; i < 3; i++) {
        out[i] = ft__result_like(t, &back, n->in[i]);
        if (out[i] != FT_NONE) T(out[i])->strided = T(n->in[i])->strided;
    }
    /* A learned mask: its gradient is written for every batch and head, then summed to its shape. */
    const ft_ref mask = n->in_count > 3 && ft__needs_grad(t, n->in[3]) ? n->in[3] : FT_NONE;
    ft_ref bias = FT_NONE;
    if (n->in_count > 3 && mask == FT_NONE) ft__node_in(&back, ft__tape_saved(t, n->in[3])); /* read again */
    if (mask != FT_NONE) {
        const int64_t rows = n->op.u.attention.batch * n->op.u.attention.heads * n->op.u.attention.q_len;
        ft__node_in(&back, ft__tape_saved(t, mask));
        bias = ft__node_out(&t->b, &back, rows, n->op.u.attention.kv_len, T(mask)->dtype, T(mask)->element_bytes);
    }
    ft__emit(&t->b, &back);
    for (int i = 0; i < 3; i++) ft__tape_give(t, n->in[i], out[i]);
    if (bias != FT_NONE) ft__tape_give(t, mask, ft__summed(t, n, bias, mask));
}

/* -- pointwise --------------------------------------------------------------------------------- */

/* Sums a gradient down to the shape of an operand that was broadcast. */
ft_ref ft__summed(ft_tape *t, const ft_node *of, ft_ref g, ft_ref like)
{
    const ft_tensor *from = T(g), *to = T(like);
    if (ft__tensor_numel(from) <= ft__tensor_numel(to)) return g;
    if (to->rows == 1 && to->cols == from->cols) return column_sums(t, of, g, like);
    ft_node n = ft__node_of(FT_DO_ROW, of->at);
    ft__node_in(&n, g);
    if (to->cols == from->cols && to->rows > 1 && from->rows % to->rows == 0) { /* repeated over the batch */
        int64_t times = from->rows / to->rows, wide = to->rows * to->cols;
        ft_dtype format = from->dtype;
        ft_ref sum = ft__result_like(t, &n, like);
        n.op = ft__row_kernel("sum_cols", FT_PASS_FWD, times, wide, format);
        ft__emit(&t->b, &n);
        return sum;
    }
    int64_t rows = to->cols == 1 ? from->rows : to->rows;
    double all = ft__tensor_numel(from);
    ft_dtype dtype = from->dtype;
    ft_ref out = ft__result_like(t, &n, like);
    int64_t cols = (int64_t)(all / (double)(rows > 0 ? rows : 1));
    n.op = ft__row_kernel("sum_rows", FT_PASS_FWD, rows, cols > 0 ? cols : 1, dtype);
    ft__emit(&t->b, &n);
    return out;
}

/* A comparison: one byte per element. */
static ft_ref compared(ft_tape *t, ft_at at, ft_ref x, ft_ref y)
{
    ft_node n = ft__node_of(FT_DO_POINTWISE, at);
    ft__node_in(&n, x);
    ft__node_in(&n, y);
    ft_tensor shape = *ft__tensor_of(&t->b, x);
    ft_ref out = ft__node_out(&t->b, &n, shape.rows, shape.cols, shape.dtype, 1);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(t->b.g, "compare", n.in, n.in_count, T(out));
    ft__emit(&t->b, &n);
    return out;
}

/* The node's own reduction, of something of its operand's size. */
static ft_ref reduced(ft_tape *t, const ft_node *of, ft_ref x)
{
    ft_node n = ft__node_of(FT_DO_ROW, of->at);
    ft__node_in(&n, x);
    ft_ref out = ft__result_like(t, &n, of->out[0]);
    n.op = of->op;
    ft__emit(&t->b, &n);
    return out;
}

/* Runs a gradient's words: see pointwise.h. */
static ft_ref words(ft_tape *t, const ft_node *n, const char *program, ft_ref g, ft_ref to)
{
    ft_ref made[10];
    int count = 0;
    ft_ref last = g;
    while (*program && t->b.status == FT_OK) {
        char op[32];
        size_t length = strcspn(program, ":");
        if (length >= sizeof op || !program[length]) break;
        memcpy(op, program, length);
        op[length] = 0;
        ft_ref operand[2] = {FT_NONE, FT_NONE};
        int operands = 0;
        for (program += length + 1; *program && *program != ' '; program++) {
            ft_ref o = *program == 'g'   ? g
                       : *program == 'x' ? ft__tape_saved(t, n->in[0])
                       : *program == 'w' ? ft__tape_saved(t, n->in[n->in_count > 1 ? 1 : 0])
                       : *program == 'y' ? ft__tape_saved(t, n->out[0])
                       : *program == 'v' ? ft__tape_saved(t, n->in[n->in_count > 2 ? 2 : 0])
                       : *program == 'm' ? ft__tape_saved(t, n->out[n->out_count > 1 ? 1 : 0])
                       : isdigit((unsigned char)*program) && *program - '1' < count ? made[*program - '1']
                                                                                    : FT_NONE;
            if (operands < 2) operand[operands++] = o;
        }
        while (*program == ' ') program++;
        bool in_place = length && op[length - 1] == '!';
        if (in_place) op[length - 1] = 0;
        const char *kernel = !strcmp(op, "mul") ? "mul"
                             : !strcmp(op, "div")
                                 ? "div"
                                 : (ft__pointwise_op_find(op) >= 0 ? ft__pointwise_ops[ft__pointwise_op_find(op)].name
                                                                   : "mulu");
        if (!strcmp(op, "cast_back"))
            last = ft__cast(&t->b, n->at, operand[0], T(to)->dtype);
        else if (!strcmp(op, "sum"))
            last = reduced(t, n, operand[0]);
        else if (!strcmp(op, "compare"))
            last = compared(t, n->at, operand[0], operand[1]);
        else if (in_place)
            last = ft__pointwise_in_place(&t->b, n->at, kernel, operand[0], operand[1]);
        else
            last = ft__pointwise2(&t->b, n->at, kernel, operand[0], operand[1]);
        if (count < 9) made[count++] = last;
    }
    if (n->contracts && t->b.status == FT_OK) t->b.g->nodes[t->b.g->node_count - 1].contracts = true; /* summed next */
    return last;
}

/* Sums a gradient down to the shape of one operand. The product with the other was written in the other's order: where
 * that lies across the result's, the sum reads across the order in which it writes, and takes as much longer as the
 * forward product did (H200, 805e6 elements: 5.4 instead of 2.2 ms). */
static ft_ref summed_beside(ft_tape *t, const ft_node *n, ft_ref g, ft_ref like, ft_ref other)
{
    ft_ref sum = ft__summed(t, n, g, like);
    if (sum != g && t->b.status == FT_OK && n->manner & FT_MANNER_ACROSS && other != FT_NONE && T(other)->permuted)
        t->b.g->nodes[t->b.g->node_count - 1].manner |= FT_MANNER_ACROSS;
    return sum;
}

void ft__backward_pointwise(ft_tape *t, const ft_node *n, ft_ref g)
{
    const ft_gradient *rule = ft__gradient_find(n->op.name);
    ft_ref x = n->in[0], w = n->in_count > 1 ? n->in[1] : FT_NONE;
    /* A gradient comes back in its operand's format: where two formats met, one of them is cast. */
    bool second = ft__needs_grad(t, w) && rule->second;
    ft_ref to_x = ft__needs_grad(t, x) ? words(t, n, rule->first, g, x) : FT_NONE, to_w = FT_NONE;
    /* Autograd sums gradients to the shapes of broadcast operands when all are there: two whole ones at once. */
    double whole = ft__tensor_numel(T(n->out[0]));
    if (to_x != FT_NONE && second && ft__tensor_numel(T(x)) < whole && ft__tensor_numel(T(w)) < whole)
        to_w = words(t, n, rule->second, g, w);
    if (to_x != FT_NONE) {
        ft_ref back = summed_beside(t, n, to_x, x, w);
        ft__tape_give(t, x, ft__cast(&t->b, n->at, back, T(x)->dtype));
    }
    if (second) {
        ft_ref back = summed_beside(t, n, to_w != FT_NONE ? to_w : words(t, n, rule->second, g, w), w, x);
        ft__tape_give(t, w, ft__cast(&t->b, n->at, back, T(w)->dtype));
    }
    ft_ref v = n->in_count > 2 ? n->in[2] : FT_NONE;
    if (ft__needs_grad(t, v) && rule->third) {
        ft_ref back = ft__summed(t, n, words(t, n, rule->third, g, v), v);
        ft__tape_give(t, v, ft__cast(&t->b, n->at, back, T(v)->dtype));
    }
}

/* -- rows -------------------------------------------------------------------------------------- */

/* What a norm was given, in rows: its gradient's kernel, like its own, reads nothing else, and what was kept is what
 * the model handed on (PyTorch's layer_norm_backward_cuda makes its input contiguous). */
static ft_ref in_rows(ft_tape *t, const ft_node *n, ft_ref x)
{
    const ft_tensor like = *T(x);
    ft_node copy = ft__node_of(FT_DO_COPY, n->at);
    ft__node_in(&copy, x);
    ft_ref out = ft__node_out(&t->b, &copy, like.rows, like.cols, like.dtype, like.element_bytes);
    if (out == FT_NONE) return x;
    const bool gaps = like.gaps && !like.permuted, narrow = like.cols < 32; /* a warp's lanes */
    copy.op = gaps || narrow ? ft__pointwise_kernel(t->b.g, "copy", copy.in, 1, T(out))
                             : ft__row_kernel("transpose_copy", FT_PASS_FWD, like.rows, like.cols, like.dtype);
    ft__emit(&t->b, &copy);
    return out;
}

static void norm(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = ft__tape_saved(t, n->in[0]);
    if (n->transposes && t->b.status == FT_OK) x = in_rows(t, n, x);
    ft_node back = ft__node_of(FT_DO_ROW, n->at);
    ft__node_in(&back, g);
    ft__node_in(&back, x);
    for (int i = 1; i < n->out_count; i++) ft__node_in(&back, ft__tape_saved(t, n->out[i]));
    back.op = n->op;
    back.op.pass = FT_PASS_BWD;
    ft_ref out[3] = {FT_NONE, FT_NONE, FT_NONE};
    for (int i = 0; i < n->in_count && i < 3; i++)
        if (ft__needs_grad(t, n->in[i])) out[i] = ft__result_like(t, &back, n->in[i]);
    ft__emit(&t->b, &back);
    for (int i = 0; i < n->in_count && i < 3; i++) ft__tape_give(t, n->in[i], out[i]);
}

void ft__backward_row(ft_tape *t, const ft_node *n, ft_ref g)
{
    const char *op = n->op.name;
    if (!strcmp(op, "layernorm") || !strcmp(op, "rmsnorm")) {
        norm(t, n, g);
        return;
    }
    if (n->rule) {
        if (ft__needs_grad(t, n->in[0])) ft__tape_give(t, n->in[0], words(t, n, n->rule, g, n->in[0]));
        return;
    }
    if (!strcmp(op, "sum")) { /* over an axis before the last: repeated along it, which a reshape writes out */
        ft_tensor shape = *T(n->in[0]);
        ft__tape_give(t, n->in[0], ft__copy(&t->b, n->at, g, shape.rows, shape.cols));
        return;
    }
    if (!strcmp(op, "sum_rows") || !strcmp(op, "sum_cols") ||
        !strcmp(op, "mean_all")) { /* the same number everywhere; a mean's is divided */
        ft_tensor shape = *T(n->in[0]);
        if (!n->mean) {
            ft__tape_give(t, n->in[0], ft__expand(&t->b, g, shape.rows, shape.cols));
            return;
        }
        ft_node spread = ft__node_of(FT_DO_POINTWISE, n->at);
        ft__node_in(&spread, g);
        ft_ref out = ft__result_like(t, &spread, n->in[0]);
        if (out == FT_NONE) return;
        spread.op = ft__pointwise_kernel(t->b.g, "divu", spread.in, 1, T(out));
        spread.op.u.elementwise.pattern = FT_PATTERN_SPREAD;
        ft__emit(&t->b, &spread);
        ft__tape_give(t, n->in[0], out);
        return;
    }
    if (!strcmp(op, "cumsum")) { /* the sums from the other end: turned round, summed, turned back */
        g = ft__copy(&t->b, n->at, g, T(g)->rows, T(g)->cols);
        g = ft__row(&t->b, n->at, "cumsum", g);
        if (n->walk == FT_WALK_SCAN) ft__walks_steps(&t->b, n->op.u.row.cols, n->op.u.row.rows);
        ft__tape_give(t, n->in[0], ft__copy(&t->b, n->at, g, T(g)->rows, T(g)->cols));
        return;
    }
    if (strcmp(op, "softmax") && strcmp(op, "log_softmax")) return; /* argmax: not differentiated */
    ft_node back = ft__node_of(FT_DO_ROW, n->at);
    ft__node_in(&back, g);
    ft__node_in(&back, ft__tape_saved(t, n->out[0]));
    back.op = n->op;
    back.op.pass = FT_PASS_BWD;
    back.core = n->core;
    back.traffic = n->traffic < 1 ? 0.83F : 1; /* writes the input's low format */
    if (n->walk == FT_WALK_CHANNELS || n->walk == FT_WALK_TOGETHER) {
        back.walk = n->walk == FT_WALK_CHANNELS ? FT_WALK_CHANNELS_BACKWARD : FT_WALK_TOGETHER_BACKWARD;
        back.trips = n->trips;
        back.blocks = n->blocks;
    }
    ft_ref out = ft__result_like(t, &back, n->in[0]);
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}
