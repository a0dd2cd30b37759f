/* build_memory.c: views, copies, lookups, the loss, and what has no kind of its own. */
#include <string.h>

#include "graph/emit.h"
#include "graph/pointwise.h"

ft_ref ft__view(ft_build *b, ft_ref x, int64_t rows, int64_t cols, bool strided)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_VIEW, "view");
    ft__node_in(&n, x);
    n.transposes = ft__tensor_of(b, x)->strided != strided;
    ft_ref out = ft__node_view(b, &n, x, rows, cols, strided);
    if (out != FT_NONE) b->g->tensors[out].permuted = strided;
    ft__emit(b, &n);
    return out;
}

ft_ref ft__slice(ft_build *b, ft_ref x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_SLICE, "slice");
    ft__node_in(&n, x);
    ft_ref out = ft__node_view(b, &n, x, rows, cols, true);
    ft__emit(b, &n);
    return out;
}

void ft__split(ft_build *b, ft_ref x, int count, const int64_t *cols, ft_ref *out)
{
    for (int i = 0; i < count; i++) out[i] = FT_NONE;
    if (b->status != FT_OK) return;
    ft_node n = ft__node_of(FT_DO_SPLIT, "split");
    ft__node_in(&n, x);
    for (int i = 0; i < count && i < FT_NODE_OUTPUTS; i++)
        out[i] = ft__node_view(b, &n, x, ft__tensor_of(b, x)->rows, cols[i], true);
    ft__emit(b, &n);
}

ft_ref ft__expand(ft_build *b, ft_ref x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_EXPAND, "expand");
    ft__node_in(&n, x);
    ft_ref out = ft__node_view(b, &n, x, rows, cols, true);
    ft__emit(b, &n);
    return out;
}

ft_ref ft__copy(ft_build *b, const char *name, ft_ref x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_COPY, name);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, "copy", n.in, n.in_count, &b->g->tensors[out]);
    ft__emit(b, &n);
    return out;
}

ft_ref ft__transpose(ft_build *b, const char *name, ft_ref x, int64_t rows, int64_t cols)
{
    ft_ref out = ft__copy(b, name, x, rows, cols);
    if (out != FT_NONE && b->status == FT_OK) {
        ft_op *op = &b->g->nodes[b->g->node_count - 1].op;
        op->name = "transpose";
        op->u.elementwise.pattern = FT_STRIDED;
    }
    return out;
}

ft_ref ft__contiguous(ft_build *b, const char *name, ft_ref x)
{
    const ft_tensor *t = ft__tensor_of(b, x);
    return t->strided ? ft__copy(b, name, x, t->rows, t->cols) : x;
}

ft_ref ft__cat(ft_build *b, const char *name, int count, const ft_ref *x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_CAT, name);
    for (int i = 0; i < count; i++) ft__node_in(&n, x[i]);
    ft_tensor t = *ft__tensor_of(b, x[0]);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    bool strided = false;
    for (int i = 0; i < n.in_count; i++) strided |= ft__tensor_of(b, n.in[i])->strided;
    n.op = ft__row_kernel("cat_halves", FT_FWD, rows, cols, t.dtype);
    if (strided && out != FT_NONE) {
        n.op = ft__pointwise_kernel(b->g, "cat", n.in, 1, &b->g->tensors[out]);
        n.op.u.elementwise.bytes = 2 * ft__tensor_bytes(&b->g->tensors[out]);
        n.op.u.elementwise.pattern = FT_STRIDED;
    }
    ft__emit(b, &n);
    return out;
}

ft_ref ft__gather(ft_build *b, const char *name, ft_ref x, int64_t rows)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_GATHER, name);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, t.cols, t.dtype, t.element_bytes);
    n.op = ft__row_kernel("embedding", FT_FWD, rows, t.cols, t.dtype);
    n.op.u.row.vocab = t.rows;
    ft__emit(b, &n);
    return out;
}

ft_ref ft__embedding(ft_build *b, const char *name, ft_ref indices, int64_t vocab, int64_t width, ft_ref *table)
{
    if (b->status != FT_OK) return FT_NONE;
    if (*table == FT_NONE) *table = ft__parameter(b, "embedding.weight", vocab, width);
    ft_node n = ft__node_of(FT_DO_EMBEDDING, name);
    ft__node_in(&n, indices);
    ft__node_in(&n, *table);
    int64_t rows = ft__tensor_of(b, indices)->rows * ft__tensor_of(b, indices)->cols;
    const ft_tensor *t = ft__tensor_of(b, *table);
    ft_dtype dtype = t->dtype;
    ft_ref out = ft__node_out(b, &n, rows, width, dtype, ft_dtype_bytes(dtype));
    n.op = ft__row_kernel("embedding", FT_FWD, rows, width, dtype);
    n.op.u.row.vocab = vocab;
    ft__emit(b, &n);
    ft__module(b, 1);
    return out;
}

ft_ref ft__loss(ft_build *b, const char *name, ft_ref logits, bool to_fp32)
{
    /* Autocast reaches cross-entropy's second half alone: log_softmax keeps the logits' format, nll_loss takes fp32. */
    bool autocast = b->autocast;
    b->autocast = false;
    if (to_fp32) logits = ft__cast(b, name, logits, FT_FP32);
    ft_ref likelihood = ft__row(b, name, "log_softmax", logits);
    b->autocast = autocast;
    if (autocast) likelihood = ft__cast(b, name, likelihood, FT_FP32);
    if (b->status != FT_OK) return FT_NONE;
    ft_tensor t = *ft__tensor_of(b, likelihood);
    ft_node n = ft__node_of(FT_DO_LOSS, name);
    ft__node_in(&n, likelihood);
    ft_ref out = ft__node_out(b, &n, 1, 1, t.dtype, t.element_bytes);
    /* One number per row, by a single block. */
    n.op = ft__bytes_kernel("nll_loss", t.dtype, (double)t.rows * 64, (double)t.rows);
    ft__emit(b, &n);
    return out;
}

ft_ref ft__batchnorm(ft_build *b, const char *name, ft_ref x, int64_t channels)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_BATCHNORM, name);
    ft__node_in(&n, x);
    ft__node_in(&n, ft__parameter(b, "bn.weight", 1, channels));
    ft__node_in(&n, ft__parameter(b, "bn.bias", 1, channels));
    ft__buffer(b, 2, channels, ft_dtype_bytes(b->stored)); /* running mean and variance */
    ft__buffer(b, 1, 1, 8);                                /* batches seen */
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, t.rows, t.cols, t.dtype, t.element_bytes);
    ft_ref moments = ft__node_out(b, &n, 2, channels, FT_FP32, 4);
    if (out == FT_NONE || moments == FT_NONE) return FT_NONE;
    b->g->tensors[moments].trained = false;
    n.op = ft__pointwise_kernel(b->g, "batchnorm", n.in, 1, &b->g->tensors[out]);
    if (b->training) n.op.u.elementwise.bytes += ft__tensor_bytes(&t); /* moments first, then the result */
    ft__emit(b, &n);
    ft__module(b, 1);
    return out;
}

ft_ref ft__pool(ft_build *b, const char *name, ft_ref x, int64_t rows, int64_t cols, double window)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_POOL, name);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, "pool", n.in, 1, &b->g->tensors[out]);
    n.op.u.elementwise.ops_per_element = window;
    ft__emit(b, &n);
    ft__module(b, 1);
    return out;
}

ft_ref ft__other(ft_build *b, const char *name, const char *op, ft_ref x, int64_t rows, int64_t cols, double bytes,
                 double flops)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_OTHER, name);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    n.op = ft__bytes_kernel(op, t.dtype, bytes, flops);
    ft__emit(b, &n);
    return out;
}

void ft__sync(ft_build *b, const char *name)
{
    if (b->status != FT_OK) return;
    ft_node n = ft__node_of(FT_DO_SYNC, name);
    n.synced = true;
    ft__emit(b, &n);
}
