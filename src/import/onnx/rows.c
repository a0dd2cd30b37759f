/* rows.c: softmax, reductions, losses: operators along axes. */
#include <string.h>

#include "import/onnx/run.h"

/* -- softmax and its like -------------------------------------------------------------------------- */

static void build_softmax(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    if (!x || !x->dims) {
        if (x) ft__onnx_pass(r, 0, x);
        return;
    }
    bool cumsum = !strcmp(r->at->op, "CumSum");
    const ft_onnx_item *given = cumsum ? ft__onnx_optional(r, 1) : NULL;
    int64_t wanted = given && given->known && ft__onnx_count(given) == 1 ? given->known[0].i
                     : cumsum                                            ? 0
                                                                         : ft__onnx_int(r->at, "axis", -1);
    int axis = ft__onnx_axis(r, wanted, x->dims);
    if (axis < 0) return;
    ft_onnx_item *y = ft__onnx_like(r, 0, x, x->type);
    if (!y || ft__onnx_count(y) < 1) return;
    ft_build *b = r->b;
    int64_t wide = x->dim[axis], rows, cols;
    bool strided, last = axis == x->dims - 1 && x->order[x->dims - 1] == axis;
    if (last)
        ft__onnx_dense(r, x); /* a copy where x is strided */
    else
        ft__onnx_ref(r, x);
    if (ft__onnx_failed(r)) return;
    memcpy(y->order, x->order, sizeof y->order);
    y->gaps = false;
    ft__onnx_extent(y, &rows, &cols, &strided);
    /* Attention of a model whose norms are raised to fp32 raises its scores as well. */
    bool raised = r->raises && last && r->at->core >= 0 && !strcmp(r->at->op, "Softmax");
    ft_ref matrix = ft__onnx_ref_as(r, x, rows, cols);
    y->ref = raised ? ft__softmax(b, r->label, matrix, true) : ft__row(b, r->label, r->at->rule->word, matrix);
    if (ft__onnx_failed(r)) return;
    ft_tensor *t = &b->g->tensors[y->ref];
    t->strided = t->permuted = strided;
    if (!last) { /* as many rows as it has, along another axis */
        ft_node *n = &b->g->nodes[b->g->node_count - 1];
        n->op = ft__row_kernel(r->at->rule->word, FT_PASS_FWD, (int64_t)(ft__onnx_count(x) / (double)wide), wide,
                               n->op.dtype);
    }
}

/* -- reductions ------------------------------------------------------------------------------------ */

static void reduce_known(ft_onnx_run *r, const ft_onnx_item *x, ft_onnx_item *y)
{
    const char *op = r->at->op;
    size_t count = (size_t)ft__onnx_count(x);
    double f = !strcmp(op, "ReduceProd") ? 1 : 0;
    int64_t i = (int64_t)f;
    ft_onnx_number *out = ft__onnx_room(r, y);
    for (size_t k = 0; out && k < count; k++) {
        ft_onnx_number v = x->known[k];
        if (!strcmp(op, "ReduceProd")) {
            f *= v.f;
            i = (int64_t)((uint64_t)i * (uint64_t)v.i);
        } else if (!strcmp(op, "ReduceMax") || !strcmp(op, "ReduceMin")) {
            bool better = k == 0 || (!strcmp(op, "ReduceMax") ? v.f > f : v.f < f);
            f = better ? v.f : f;
            i = better ? v.i : i;
        } else {
            f += v.f;
            i = (int64_t)((uint64_t)i + (uint64_t)v.i);
        }
    }
    if (out && !strcmp(op, "ReduceMean") && count) {
        f /= (double)count;
        i /= (int64_t)count;
    }
    if (out) out[0] = (ft_onnx_number){i, ft__onnx_type_floats(x->type) ? f : (double)i};
}

/* `reduced` axes of x go; the rest is y, whose memory this sets. */
static void reduced(ft_onnx_run *r, ft_onnx_item *x, const bool *gone, const char *how, ft_onnx_item *y)
{
    ft_build *b = r->b;
    bool inside = true, kept = false;
    for (int i = x->dims - 1; i >= 0; i--) { /* what goes lies innermost */
        if (x->dim[x->order[i]] == 1) continue;
        if (!gone[x->order[i]]) kept = true;
        inside &= !(kept && gone[x->order[i]]);
    }
    double all = ft__onnx_count(x), left = ft__onnx_count(y);
    int64_t wide = (int64_t)(all / left), rows, cols;
    bool strided;
    if (ft__onnx_failed(r) || all < 1) return;
    if (x->gaps) ft__onnx_dense(r, x);
    ft__onnx_extent(y, &rows, &cols, &strided);
    if (inside) { /* along the last axis as it lies */
        ft_ref from = ft__onnx_ref_as(r, x, (int64_t)left, wide), out = ft__reduce(b, r->label, how, from);
        y->ref = ft__onnx_failed(r) ? FT_NONE : out;
        ft__onnx_set(r, y, out);
        return;
    }
    ft_ref from = ft__onnx_ref(r, x);
    ft_node n = ft__node_of(FT_DO_ROW, r->label);
    ft__node_in(&n, from);
    ft_tensor t = *ft__tensor_of(b, from);
    y->ref = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (y->ref == FT_NONE) return;
    n.op = ft__row_kernel("sum_cols", FT_PASS_FWD, wide, (int64_t)left, t.dtype);
    n.mean = !strcmp(how, "mean");
    ft__emit(b, &n);
}

static void build_reduce(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    int axes[FT_ONNX_DIMS], count = x ? ft__onnx_axes(r, 1, x->dims, axes) : -1, dims = 0;
    bool keep = ft__onnx_int(r->at, "keepdims", 1) != 0, gone[FT_ONNX_DIMS] = {0};
    int64_t dim[FT_ONNX_DIMS];
    if (count < 0) return;
    if (!count && ft__onnx_int(r->at, "noop_with_empty_axes", 0)) {
        ft__onnx_pass(r, 0, x);
        return;
    }
    for (int i = 0; i < x->dims; i++) gone[i] = !count;
    for (int i = 0; i < count; i++) gone[axes[i]] = true;
    for (int i = 0; i < x->dims; i++)
        if (!gone[i] || keep) dim[dims++] = gone[i] ? 1 : x->dim[i];
    ft_onnx_item in = *x, *y = ft__onnx_result(r, 0, in.type, dims, dim);
    if (!y || ft__onnx_count(y) < 1) return;
    if (in.known && in.kind == FT_ONNX_FIXED && ft__onnx_count(y) == 1 && *r->at->rule->word) {
        reduce_known(r, &in, y);
        return;
    }
    reduced(r, x, gone, strcmp(r->at->op, "ReduceMean") ? "sum" : "mean", y);
}

static void build_global_pool(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    bool gone[FT_ONNX_DIMS] = {0};
    int64_t dim[FT_ONNX_DIMS];
    if (!x) return;
    for (int i = 0; i < x->dims; i++) {
        gone[i] = i > 1;
        dim[i] = i > 1 ? 1 : x->dim[i];
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, x->dims, dim);
    if (y && ft__onnx_count(y) > 0) reduced(r, x, gone, r->at->rule->word, y);
}

static void build_argmax(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    if (!x) return;
    int axis = ft__onnx_axis(r, ft__onnx_int(r->at, "axis", 0), x->dims), dims = 0;
    bool keep = ft__onnx_int(r->at, "keepdims", 1) != 0;
    int64_t dim[FT_ONNX_DIMS], rows, cols;
    bool strided;
    if (axis < 0) return;
    for (int i = 0; i < x->dims; i++)
        if (i != axis || keep) dim[dims++] = i == axis ? 1 : x->dim[i];
    ft_onnx_item *y = ft__onnx_result(r, 0, FT_ONNX_INT64, dims, dim);
    if (!y || ft__onnx_count(x) < 1) return;
    ft__onnx_extent(y, &rows, &cols, &strided);
    ft_ref from = ft__onnx_ref(r, x);
    ft_node n = ft__node_of(FT_DO_ROW, r->label);
    ft__node_in(&n, from);
    y->ref = ft__node_out(r->b, &n, rows, cols, r->b->stored, 8);
    if (ft__onnx_failed(r)) return;
    r->b->g->tensors[y->ref].trained = false;
    n.op = ft__row_kernel("argmax", FT_PASS_FWD, (int64_t)ft__onnx_count(y), x->dim[axis],
                          ft__tensor_of(r->b, from)->dtype);
    ft__emit(r->b, &n);
}

/* -- losses ---------------------------------------------------------------------------------------- */

/* Of the scores' second axis; in inference the logarithms alone are worth computing. */
static void build_loss(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *labels = ft__onnx_operand(r, 1);
    const char *how = ft__onnx_string(r->at, "reduction", "mean");
    if (!x || !labels) return;
    if (x->dims < 2) {
        ft__onnx_fail(r, FT_E_RANGE, "scores of %d axes: [batch, classes, ...] are expected", x->dims);
        return;
    }
    bool each = !strcmp(how, "none");
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, each ? labels->dims : 0, labels->dim);
    if (ft__onnx_has(r, 1)) ft__onnx_filled(r, "fill", ft__onnx_like(r, 1, x, x->type));
    double all = ft__onnx_count(x), classes = (double)x->dim[1];
    if (!y || all < 1 || ft__onnx_count(y) < 1) return;
    ft__onnx_dense(r, x);
    ft_ref scores = ft__onnx_ref_as(r, x, (int64_t)(all / classes), (int64_t)classes);
    ft_ref loss = ft__loss(r->b, r->label, scores, false);
    if (!each) y->ref = loss;
    if (each) ft__onnx_filled(r, "fill", y);
}

const ft_onnx_rule ft__onnx_row_rules[] = {
    {"Softmax", 1, build_softmax, "softmax"},
    {"LogSoftmax", 1, build_softmax, "log_softmax"},
    {"Hardmax", 1, build_softmax, "softmax"},
    {"CumSum", 2, build_softmax, "cumsum"},
    {"ReduceSum", 1, build_reduce, "sum"},
    {"ReduceMean", 1, build_reduce, "sum"},
    {"ReduceMax", 1, build_reduce, "sum"},
    {"ReduceMin", 1, build_reduce, "sum"},
    {"ReduceProd", 1, build_reduce, "sum"},
    {"ReduceL1", 1, build_reduce, ""},
    {"ReduceL2", 1, build_reduce, ""},
    {"ReduceLogSum", 1, build_reduce, ""},
    {"ReduceLogSumExp", 1, build_reduce, ""},
    {"ReduceSumSquare", 1, build_reduce, ""},
    {"GlobalAveragePool", 1, build_global_pool, "mean"},
    {"GlobalMaxPool", 1, build_global_pool, "sum"},
    {"GlobalLpPool", 1, build_global_pool, "sum"},
    {"ArgMax", 1, build_argmax, ""},
    {"ArgMin", 1, build_argmax, ""},
    {"SoftmaxCrossEntropyLoss", 2, build_loss, ""},
    {"NegativeLogLikelihoodLoss", 2, build_loss, ""},
    {0},
};
