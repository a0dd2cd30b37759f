/* build_pointwise.c: pointwise operators, casts, dropout, and operators along the last axis. */
#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "graph/pointwise.h"

ft_op ft__pointwise_kernel(const ft_graph *g, const char *name, const ft_ref *in, int count, const ft_tensor *out)
{
    ft_op op = {.kind = FT_OP_ELEMENTWISE, .name = name, .dtype = out->dtype, .kv_dtype = out->dtype};
    double numel = ft__tensor_numel(out), bytes = ft__tensor_bytes(out), widest = ft_dtype_bytes(out->dtype);
    /* Kernels of a framework's own: one operand may be twice as wide as the other, or a weight per row. */
    bool own = !strncmp(name, "swiglu", 6) || strstr(name, "_weighed");
    bool mixed = false, cast = !strncmp(name, "cast_", 5), turned = out->strided, straight = !out->strided,
         gaps = false;
    op.u.elementwise.numel = (int64_t)numel;
    for (int i = 0; i < count; i++) {
        const ft_tensor *t = &g->tensors[in[i]], *memory = &g->tensors[t->storage];
        bool repeats = ft__tensor_numel(t) > ft__tensor_numel(memory); /* an expansion: memory has it once */
        bytes += ft__tensor_bytes(repeats ? memory : t);
        gaps |= !repeats && t->strided && (t->gaps || !t->permuted || !strcmp(name, "copy"));
        if (ft__tensor_numel(t) >= numel && !repeats) {
            op.u.elementwise.inputs++;
            turned |= t->strided;
            straight |= !t->strided;
        }
        /* A row, a column or a table that every element looks up: the framework leaves its vectorised kernel. */
        else if (ft__tensor_numel(t) > 1 && op.u.elementwise.pattern == FT_PATTERN_CONTIGUOUS && !own)
            op.u.elementwise.pattern = FT_PATTERN_SPREAD;
        if (t->element_bytes <= 4) widest = fmax(widest, t->element_bytes);
        mixed |= t->element_bytes != out->element_bytes && fmin(t->element_bytes, out->element_bytes) >= 2 &&
                 t->element_bytes <= 4;
    }
    /* The other choice is a number in memory, which every element looks up. */
    if (!strcmp(name, "where") && op.u.elementwise.pattern == FT_PATTERN_CONTIGUOUS)
        op.u.elementwise.pattern = FT_PATTERN_SPREAD;
    /* Operands in one order, whichever, are one run of memory; a table looked up in another order is not. */
    if (gaps || (turned && (straight || op.u.elementwise.pattern == FT_PATTERN_SPREAD)))
        op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    if (mixed && !cast) op.u.elementwise.pattern |= FT_PATTERN_MIXED;
    if (op.u.elementwise.inputs < 1) op.u.elementwise.inputs = 1;
    op.u.elementwise.bytes = bytes;
    if (widest > 2 && ft_dtype_bytes(op.dtype) <= 2 && !cast) op.dtype = FT_FP32;
    return op;
}

ft_op ft__row_kernel(const char *name, ft_pass pass, int64_t rows, int64_t cols, ft_dtype dtype)
{
    ft_op op = {.kind = FT_OP_ROW, .name = name, .dtype = dtype, .kv_dtype = dtype, .pass = pass};
    op.u.row.rows = rows;
    op.u.row.cols = cols;
    return op;
}

ft_op ft__bytes_kernel(const char *name, ft_dtype dtype, double bytes, double flops)
{
    ft_op op = {.kind = FT_OP_OTHER, .name = name, .dtype = dtype, .kv_dtype = dtype};
    op.u.other.bytes = bytes;
    op.u.other.flops = flops;
    return op;
}

/* Two formats meet: the wider one wins. */
static ft_dtype wider(const ft_tensor *x, const ft_tensor *y)
{
    return ft_dtype_bytes(y->dtype) > ft_dtype_bytes(x->dtype) && y->element_bytes == ft_dtype_bytes(y->dtype)
               ? y->dtype
               : x->dtype;
}

/* Operators that autocast runs in fp32, of those that models use. */
static bool wants_fp32(const char *op)
{
    static const char *const names[] = {"powu", "pow", "square", "exp", "expm1", "log", "rsqrt", "softplus"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], op)) return true;
    return false;
}

/* Whether whole operands lie in unlike orders: threads walk in that of one and fetch a sector of memory for each
 * element of another. */
static bool lie_apart(const ft_graph *g, const ft_node *n)
{
    const ft_tensor *out = &g->tensors[n->out[0]];
    for (int i = 0; i < n->in_count; i++) {
        const ft_tensor *t = &g->tensors[n->in[i]];
        bool whole = ft__tensor_numel(t) == ft__tensor_numel(out) &&
                     ft__tensor_numel(&g->tensors[t->storage]) >= ft__tensor_numel(t);
        if (whole && t->across != out->across) return true;
    }
    return false;
}

static ft_ref pointwise(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref with, bool in_place)
{
    if (b->status != FT_OK) return FT_NONE;
    if (b->autocast && wants_fp32(op)) x = ft__cast(b, at, x, FT_FP32);
    ft_node n = ft__node_of(FT_DO_POINTWISE, at);
    ft__node_in(&n, x);
    ft__node_in(&n, with);
    ft_tensor tx = *ft__tensor_of(b, x), tw = with != FT_NONE ? *ft__tensor_of(b, with) : tx;
    ft_dtype dtype = with != FT_NONE ? wider(&tx, &tw) : tx.dtype;
    bool swap = with != FT_NONE && ft__tensor_numel(&tw) > ft__tensor_numel(&tx); /* weight * x */
    const ft_tensor *shape = swap ? &tw : &tx;
    int64_t rows = shape->rows, cols = shape->cols;
    if (with != FT_NONE && tx.cols == 1 && tw.rows == 1) { /* outer product */
        rows = tx.rows;
        cols = tw.cols;
    }
    ft_ref out = in_place ? ft__node_view(b, &n, x, rows, cols, tx.strided)
                          : ft__node_out(b, &n, rows, cols, dtype, ft_dtype_bytes(dtype));
    if (out == FT_NONE) return out;
    if (!in_place) {
        b->g->tensors[out].strided = b->g->tensors[out].permuted = shape->permuted;
        b->g->tensors[out].across = shape->permuted && shape->across;
    }
    n.in_place = in_place;
    n.op = ft__pointwise_kernel(b->g, op, n.in, n.in_count, &b->g->tensors[out]);
    ft__emit(b, &n);
    if (lie_apart(b->g, &n)) ft__walks_across(b, (double)rows * (double)cols);
    return out;
}

ft_ref ft__pointwise(ft_build *b, ft_at at, const char *op, ft_ref x)
{
    return pointwise(b, at, op, x, FT_NONE, false);
}
ft_ref ft__pointwise2(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref with)
{
    return pointwise(b, at, op, x, with, false);
}
ft_ref ft__pointwise_in_place(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref with)
{
    return pointwise(b, at, op, x, with, true);
}

ft_ref ft__pointwise_over(ft_build *b, ft_at at, const char *op, int count, const ft_ref *x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK || count < 1 || count > 3) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_POINTWISE, at);
    for (int i = 0; i < count; i++)
        ft__node_in(&n, b->autocast && wants_fp32(op) ? ft__cast(b, at, x[i], FT_FP32) : x[i]);
    ft_tensor widest = *ft__tensor_of(b, n.in[0]);
    for (int i = 1; i < count; i++) {
        ft_tensor t = *ft__tensor_of(b, n.in[i]);
        widest.dtype = wider(&widest, &t);
        widest.element_bytes = ft_dtype_bytes(widest.dtype);
    }
    ft_ref out = ft__node_out(b, &n, rows, cols, widest.dtype, ft_dtype_bytes(widest.dtype));
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, op, n.in, n.in_count, &b->g->tensors[out]);
    ft__emit(b, &n);
    return out;
}

void ft__retype(ft_build *b, ft_ref x, ft_dtype dtype, double element_bytes, bool trained)
{
    if (b->status != FT_OK || x == FT_NONE) return;
    ft_tensor *t = &b->g->tensors[x];
    double more = ft__tensor_numel(t) * (element_bytes - t->element_bytes);
    t->dtype = dtype;
    t->element_bytes = element_bytes;
    t->trained = t->trained && trained;
    for (int32_t i = b->g->node_count - 1; i >= 0 && i >= b->g->node_count - 4; i--) {
        ft_node *n = &b->g->nodes[i];
        for (int k = 0; k < n->out_count; k++)
            if (n->out[k] == x && n->op.kind == FT_OP_ELEMENTWISE && n->op.u.elementwise.bytes + more > 0)
                n->op.u.elementwise.bytes += more;
    }
}

/* `op` of x, in x's format, and of a weight per row if there is one. */
static ft_ref by_row(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref weights, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_POINTWISE, at);
    ft__node_in(&n, x);
    if (weights != FT_NONE) ft__node_in(&n, weights);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, t.rows, cols > 0 ? cols : 1, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, op, n.in, n.in_count, &b->g->tensors[out]);
    ft__emit(b, &n);
    return out;
}

ft_ref ft__swiglu(ft_build *b, ft_at at, ft_ref both, ft_ref weights)
{
    int64_t half = b->status == FT_OK ? ft__tensor_of(b, both)->cols / 2 : 1;
    return by_row(b, at, weights == FT_NONE ? "swiglu" : "swiglu_weighed", both, weights, half);
}

ft_ref ft__relu2_weighed(ft_build *b, ft_at at, ft_ref x, ft_ref weights)
{
    int64_t cols = b->status == FT_OK ? ft__tensor_of(b, x)->cols : 1;
    return by_row(b, at, "relu2_weighed", x, weights, cols);
}
ft_ref ft__add(ft_build *b, ft_at at, ft_ref x, ft_ref y) { return pointwise(b, at, "add", x, y, false); }
ft_ref ft__mul(ft_build *b, ft_at at, ft_ref x, ft_ref y) { return pointwise(b, at, "mul", x, y, false); }

const char *ft__cast_name(ft_dtype to)
{
    return to == FT_FP32 || to == FT_TF32 ? "cast_fp32" : to == FT_FP16 ? "cast_fp16" : "cast_bf16";
}

ft_ref ft__cast(ft_build *b, ft_at at, ft_ref x, ft_dtype to)
{
    if (to == FT_TF32) to = FT_FP32;
    if (to == FT_FP8 || to == FT_INT8 || to == FT_FP4) to = FT_BF16;
    const ft_tensor *t = ft__tensor_of(b, x);
    if (b->status != FT_OK || t->dtype == to) return x;
    ft_node n = ft__node_of(FT_DO_POINTWISE, at);
    ft__node_in(&n, x);
    ft_dtype from = t->dtype;
    ft_ref out = ft__node_out(b, &n, t->rows, t->cols, to, ft_dtype_bytes(to));
    if (out == FT_NONE) return out;
    b->g->tensors[out].strided = b->g->tensors[out].permuted = b->g->tensors[x].permuted;
    b->g->tensors[out].across = b->g->tensors[x].permuted && b->g->tensors[x].across;
    n.op = ft__pointwise_kernel(b->g, ft__cast_name(to), n.in, n.in_count, &b->g->tensors[out]);
    n.op.dtype = from; /* a cast is named for where it goes and typed for where it comes from */
    ft__emit(b, &n);
    return out;
}

ft_ref ft__dropout(ft_build *b, ft_at at, ft_ref x, double probability)
{
    if (!b->training || probability <= 0 || b->status != FT_OK) return x;
    ft_node n = ft__node_of(FT_DO_POINTWISE, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, t.rows, t.cols, t.dtype, t.element_bytes);
    ft_ref mask = ft__node_out(b, &n, t.rows, t.cols, t.dtype, 1);
    if (out == FT_NONE || mask == FT_NONE) return FT_NONE;
    b->g->tensors[mask].trained = false;
    n.op = ft__pointwise_kernel(b->g, "dropout", n.in, n.in_count, &b->g->tensors[out]);
    n.op.u.elementwise.bytes += ft__tensor_numel(&t); /* the mask */
    ft__emit(b, &n);
    return out;
}

/* -- along the last axis ----------------------------------------------------------------------- */

ft_ref ft__autocast_to_fp32(ft_build *b, ft_at at, ft_ref x) { return b->autocast ? ft__cast(b, at, x, FT_FP32) : x; }

ft_ref ft__row(ft_build *b, ft_at at, const char *op, ft_ref x)
{
    if (b->status != FT_OK) return FT_NONE;
    x = ft__autocast_to_fp32(b, at, x);
    ft_node n = ft__node_of(FT_DO_ROW, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, t.rows, t.cols, t.dtype, t.element_bytes);
    n.op = ft__row_kernel(op, FT_PASS_FWD, t.rows, t.cols, t.dtype);
    ft__emit(b, &n);
    return out;
}

ft_ref ft__reduce(ft_build *b, ft_at at, const char *op, ft_ref x)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_ROW, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, t.rows, 1, t.dtype, t.element_bytes);
    n.op = ft__row_kernel("sum_rows", FT_PASS_FWD, t.rows, t.cols, t.dtype);
    n.mean = !strcmp(op, "mean");
    ft__emit(b, &n);
    return out;
}

ft_ref ft__softmax(ft_build *b, ft_at at, ft_ref x, bool in_fp32)
{
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    if ((!in_fp32 && !b->autocast) || ft_dtype_bytes(low) > 2) return ft__row(b, at, "softmax", x);
    if (low != FT_FP16 && b->autocast) return ft__row(b, at, "softmax", x);
    if (low != FT_FP16) { /* softmax(x, dtype=float32) of bf16 raises it in a kernel of its own */
        x = ft__cast(b, at, x, FT_FP32);
        return ft__cast(b, at, ft__row(b, at, "softmax", x), low);
    }
    /* Of fp16 it reads the low format and writes fp32 in one kernel (ATen/native/SoftMax.cpp, half_to_float), autocast
     * or not; the cast back is another, autocast's before whatever reads it. */
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_ROW, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, t.rows, t.cols, FT_FP32, 4);
    n.op = ft__row_kernel("softmax", FT_PASS_FWD, t.rows, t.cols, FT_FP32);
    n.traffic = 0.75F;
    ft__emit(b, &n);
    return b->autocast ? out : ft__cast(b, at, out, low);
}
