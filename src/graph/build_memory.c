/* build_memory.c: views, copies, lookups, the loss, and what has no kind of its own. */
#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "graph/pointwise.h"

ft_ref ft__view(ft_build *b, ft_ref x, int64_t rows, int64_t cols, bool strided)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_VIEW, FT_AT(VIEW));
    ft__node_in(&n, x);
    /* A slice has gaps, but its axes stand where they stood. */
    const ft_tensor *t = ft__tensor_of(b, x);
    n.transposes = (t->strided && (t->permuted || !t->gaps)) != strided;
    ft_ref out = ft__node_view(b, &n, x, rows, cols, strided);
    if (out != FT_NONE) {
        b->g->tensors[out].permuted = strided;
        b->g->tensors[out].across = false;
    }
    ft__emit(b, &n);
    return out;
}

ft_ref ft__view_as(ft_build *b, ft_ref x, int64_t rows, int64_t cols, ft_order order)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_VIEW, FT_AT(VIEW));
    ft__node_in(&n, x);
    const ft_tensor *t = ft__tensor_of(b, x);
    bool permuted = order == FT_PERMUTED || order == FT_PERMUTED_GAPS;
    n.transposes = (t->strided && (t->permuted || !t->gaps)) != permuted;
    ft_ref out = ft__node_view(b, &n, x, rows, cols, order != FT_IN_ORDER);
    if (out != FT_NONE) {
        b->g->tensors[out].permuted = permuted;
        b->g->tensors[out].across = false;
        b->g->tensors[out].gaps = order == FT_GAPS || order == FT_PERMUTED_GAPS;
    }
    ft__emit(b, &n);
    return out;
}

ft_ref ft__detach(ft_build *b, ft_ref x)
{
    const ft_tensor *t = ft__tensor_of(b, x);
    ft_order order = !t->strided ? FT_IN_ORDER : !t->gaps ? FT_PERMUTED : t->permuted ? FT_PERMUTED_GAPS : FT_GAPS;
    ft_ref out = ft__view_as(b, x, t->rows, t->cols, order);
    if (out != FT_NONE) b->g->tensors[out].trained = false;
    return out;
}

ft_ref ft__slice(ft_build *b, ft_ref x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_SLICE, FT_AT(SLICE));
    ft__node_in(&n, x);
    ft_ref out = ft__node_view(b, &n, x, rows, cols, true);
    if (out != FT_NONE) b->g->tensors[out].gaps = true;
    ft__emit(b, &n);
    return out;
}

void ft__split(ft_build *b, ft_ref x, int count, const int64_t *cols, ft_ref *out)
{
    for (int i = 0; i < count; i++) out[i] = FT_NONE;
    if (b->status != FT_OK) return;
    ft_node n = ft__node_of(FT_DO_SPLIT, FT_AT(SPLIT));
    ft__node_in(&n, x);
    for (int i = 0; i < count && i < FT_NODE_OUTPUTS; i++)
        out[i] = ft__node_view(b, &n, x, ft__tensor_of(b, x)->rows, cols[i], true);
    for (int i = 0; i < n.out_count; i++) b->g->tensors[n.out[i]].gaps = true;
    ft__emit(b, &n);
}

ft_ref ft__both(ft_build *b, ft_ref x, ft_ref y)
{
    if (b->status != FT_OK) return FT_NONE;
    const ft_tensor t = *ft__tensor_of(b, x), u = *ft__tensor_of(b, y);
    const bool alike = t.rows == u.rows;
    ft_node n = ft__node_of(FT_DO_CAT, FT_AT(SPLIT));
    ft__node_in(&n, x);
    ft__node_in(&n, y);
    ft_ref out = ft__node_out(b, &n, alike ? t.rows : t.rows * t.cols + u.rows * u.cols, alike ? t.cols + u.cols : 1,
                              t.dtype, t.element_bytes);
    n.streams = true;
    ft__emit(b, &n);
    return out;
}

void ft__apart(ft_build *b, ft_ref both, const int64_t rows[2], const int64_t cols[2], ft_ref out[2])
{
    out[0] = out[1] = FT_NONE;
    if (b->status != FT_OK) return;
    ft_node n = ft__node_of(FT_DO_SPLIT, FT_AT(SPLIT));
    ft__node_in(&n, both);
    for (int i = 0; i < 2; i++) out[i] = ft__node_view(b, &n, both, rows[i], cols[i], false);
    n.streams = true;
    ft__emit(b, &n);
}

ft_ref ft__expand(ft_build *b, ft_ref x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_EXPAND, FT_AT(EXPAND));
    ft__node_in(&n, x);
    ft_ref out = ft__node_view(b, &n, x, rows, cols, true);
    if (out != FT_NONE) b->g->tensors[out].gaps = true;
    ft__emit(b, &n);
    return out;
}

ft_ref ft__copy(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_COPY, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, "copy", n.in, n.in_count, &b->g->tensors[out]);
    ft__emit(b, &n);
    return out;
}

ft_ref ft__transpose(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols)
{
    ft_ref out = ft__copy(b, at, x, rows, cols);
    if (out != FT_NONE && b->status == FT_OK) {
        ft_op *op = &b->g->nodes[b->g->node_count - 1].op;
        op->name = "transpose";
        op->u.elementwise.pattern = ft__tensor_numel(ft__tensor_of(b, x)) < (double)rows * (double)cols
                                        ? FT_PATTERN_SPREAD
                                        : FT_PATTERN_STRIDED;
    }
    return out;
}

ft_ref ft__turned(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols)
{
    ft_ref out = ft__transpose(b, at, x, rows, cols);
    if (out != FT_NONE && b->status == FT_OK) b->g->nodes[b->g->node_count - 1].transposes = true;
    return out;
}

void ft__walks_across(ft_build *b, double elements)
{
    enum { BLOCK = 512 };
    if (b->status != FT_OK || b->g->node_count < 1) return;
    ft_node *n = &b->g->nodes[b->g->node_count - 1];
    n->walk = FT_WALK_ACROSS;
    n->trips = 1;
    n->blocks = (float)(elements / BLOCK);
}

void ft__walks_steps(ft_build *b, int64_t steps, int64_t columns)
{
    enum { BLOCK = 512 };
    if (b->status != FT_OK || b->g->node_count < 1) return;
    ft_node *n = &b->g->nodes[b->g->node_count - 1];
    n->walk = FT_WALK_SCAN;
    n->trips = (float)steps;
    n->blocks = (float)columns / BLOCK;
}

ft_ref ft__across(ft_build *b, ft_at at, ft_ref x)
{
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__turned(b, at, x, t.rows, t.cols);
    ft__walks_across(b, ft__tensor_numel(&t));
    return out;
}

ft_ref ft__contiguous(ft_build *b, ft_at at, ft_ref x)
{
    const ft_tensor t = *ft__tensor_of(b, x);
    if (!t.strided) return x;
    ft_ref out = ft__copy(b, at, x, t.rows, t.cols);
    if (t.across) ft__walks_across(b, ft__tensor_numel(&t));
    return out;
}

/* More operands than a node has: the rest are joined to the result in place, each by a kernel of its share. */
static ft_ref joined(ft_build *b, ft_at at, ft_ref out, int count, const ft_ref *x)
{
    while (count > 0 && b->status == FT_OK) {
        ft_node n = ft__node_of(FT_DO_CAT, at);
        int some = count < FT_NODE_INPUTS - 1 ? count : FT_NODE_INPUTS - 1;
        ft__node_in(&n, out);
        double bytes = 0;
        for (int i = 0; i < some; i++) {
            ft__node_in(&n, x[i]);
            bytes += 2 * ft__tensor_bytes(ft__tensor_of(b, x[i]));
        }
        ft_tensor t = *ft__tensor_of(b, out);
        out = ft__node_view(b, &n, out, t.rows, t.cols, false);
        if (out == FT_NONE) return out;
        n.in_place = true;
        n.op = ft__pointwise_kernel(b->g, "append", n.in, 1, &b->g->tensors[out]);
        n.op.u.elementwise.numel = (int64_t)(bytes / 2 / t.element_bytes);
        n.op.u.elementwise.bytes = bytes;
        ft__emit(b, &n);
        x += some;
        count -= some;
    }
    return out;
}

enum {
    VECTOR_BYTES = 16,
    RUN_BYTES = 128 * VECTOR_BYTES
}; /* what a thread copies at once, what a block of them does */

ft_ref ft__cat(ft_build *b, ft_at at, int count, const ft_ref *x, int64_t rows, int64_t cols)
{
    return ft__cat_runs(b, at, count, x, rows, cols, (double)cols);
}

ft_ref ft__cat_runs(ft_build *b, ft_at at, int count, const ft_ref *x, int64_t rows, int64_t cols, double run)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_CAT, at);
    for (int i = 0; i < count; i++) ft__node_in(&n, x[i]);
    ft_tensor t = *ft__tensor_of(b, x[0]);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    /* Parts narrower than 16 bytes (pairs put back together) are copied one by one, across the result's rows. */
    bool strided = count > 1 && run * t.element_bytes < (double)(VECTOR_BYTES * count);
    for (int i = 0; i < n.in_count; i++) strided |= ft__tensor_of(b, n.in[i])->strided;
    n.op = ft__row_kernel("cat_halves", FT_PASS_FWD, rows, cols, t.dtype);
    /* Long runs (channels of NCHW) are copied 16 bytes at a time, as fast as memory. */
    bool long_runs = !strided && count > 1 && run * t.element_bytes >= (double)(RUN_BYTES * count);
    if (long_runs && out != FT_NONE) {
        n.op = ft__pointwise_kernel(b->g, "cat", n.in, 1, &b->g->tensors[out]);
        n.op.u.elementwise.bytes = 2 * ft__tensor_bytes(&b->g->tensors[out]);
    }
    if (strided && out != FT_NONE) {
        n.op = ft__pointwise_kernel(b->g, "cat", n.in, 1, &b->g->tensors[out]);
        n.op.u.elementwise.bytes = 2 * ft__tensor_bytes(&b->g->tensors[out]);
        n.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
        /* Parts of unlike widths leave lanes idle; rows of an odd length begin at odd addresses. */
        if (fmod(run * t.element_bytes, 4) > 0)
            n.manner |= FT_MANNER_JOIN_ODD;
        else if (count == 2 && t.cols != ft__tensor_of(b, x[1])->cols)
            n.manner |= FT_MANNER_JOIN_UNLIKE;
    }
    int rest = count - n.in_count;
    if (rest > 0 && out != FT_NONE) { /* this node's share */
        double share = 0;
        for (int i = 0; i < n.in_count; i++) share += ft__tensor_bytes(ft__tensor_of(b, x[i]));
        n.traffic = (float)fmin(1, share / ft__tensor_bytes(&b->g->tensors[out]));
    }
    ft__emit(b, &n);
    return rest > 0 ? joined(b, at, out, rest, x + n.in_count) : out;
}

/* The same as a concatenation, written part by part into an empty tensor: k[..., :n] = x[0], k[..., n:] = x[1]. */
ft_ref ft__assemble(ft_build *b, ft_at at, int count, const ft_ref *x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_CAT, at);
    for (int i = 0; i < count; i++) ft__node_in(&n, x[i]);
    ft_tensor t = *ft__tensor_of(b, x[0]);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    for (int i = count - 1; i >= 0; i--) { /* the first part's kernel is the node's own */
        ft_node part = i > 0 ? ft__node_of(FT_DO_FILL, at) : n;
        if (i > 0) ft__node_in(&part, x[i]);
        part.op = ft__pointwise_kernel(b->g, "copy", &x[i], 1, ft__tensor_of(b, x[i]));
        part.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
        ft__emit(b, &part);
    }
    return out;
}

/* Long runs are copied at the memory's speed. An operand that is not one run, even the single row that comes last,
 * sends all of them through a kernel that computes an address per element. */
ft_ref ft__append(ft_build *b, ft_at at, ft_ref past, ft_ref x, int64_t rows, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_CAT, at);
    ft__node_in(&n, past);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, "append", n.in, 1, &b->g->tensors[out]);
    n.op.u.elementwise.bytes = 2 * ft__tensor_bytes(&b->g->tensors[out]);
    bool strided = t.strided || ft__tensor_of(b, past)->strided;
    n.op.u.elementwise.pattern = strided ? FT_PATTERN_STRIDED : FT_PATTERN_CONTIGUOUS;
    ft__emit(b, &n);
    return out;
}

ft_ref ft__gather(ft_build *b, ft_at at, ft_ref x, int64_t rows)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_GATHER, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, t.cols, t.dtype, t.element_bytes);
    n.op = ft__row_kernel("embedding", FT_PASS_FWD, rows, t.cols, t.dtype);
    n.op.u.row.vocab = t.rows;
    ft__emit(b, &n);
    return out;
}

static ft_ref look_up(ft_build *b, ft_at at, ft_ref indices, int64_t vocab, int64_t width, int64_t bag, ft_ref *table)
{
    if (b->status != FT_OK) return FT_NONE;
    if (*table == FT_NONE) *table = ft__parameter(b, "embedding.weight", vocab, width);
    ft_node n = ft__node_of(FT_DO_EMBEDDING, at);
    ft__node_in(&n, indices);
    ft__node_in(&n, *table);
    int64_t rows = ft__tensor_of(b, indices)->rows * ft__tensor_of(b, indices)->cols;
    const ft_tensor *t = ft__tensor_of(b, *table);
    ft_dtype dtype = t->dtype;
    ft_ref out = ft__node_out(b, &n, bag > 0 ? rows / bag : rows, width, dtype, ft_dtype_bytes(dtype));
    n.op = ft__row_kernel("embedding", FT_PASS_FWD, rows, width, dtype);
    n.op.u.row.vocab = vocab;
    n.adds = bag > 0;
    if (bag > 1) n.traffic = (float)((1 + 1. / (double)bag) / 2); /* all rows are read, one of a bag is written */
    ft__emit(b, &n);
    ft__module(b, 1);
    return out;
}

ft_ref ft__embedding(ft_build *b, ft_at at, ft_ref indices, int64_t vocab, int64_t width, ft_ref *table)
{
    return look_up(b, at, indices, vocab, width, 0, table);
}

ft_ref ft__embedding_bag(ft_build *b, ft_at at, ft_ref indices, int64_t vocab, int64_t width, int64_t bag,
                         ft_ref *table)
{
    return look_up(b, at, indices, vocab, width, bag, table);
}

ft_ref ft__loss(ft_build *b, ft_at at, ft_ref logits, bool to_fp32)
{
    /* Autocast reaches cross-entropy's second half alone: log_softmax keeps the logits' format, nll_loss takes fp32. */
    bool autocast = b->autocast;
    b->autocast = false;
    if (to_fp32) logits = ft__cast(b, at, logits, FT_FP32);
    ft_ref likelihood = ft__row(b, at, "log_softmax", logits);
    b->autocast = autocast;
    return ft__likelihood_loss(b, at, likelihood);
}

ft_ref ft__likelihood_loss(ft_build *b, ft_at at, ft_ref likelihood)
{
    if (b->autocast && !b->loss_of_its_own) likelihood = ft__cast(b, at, likelihood, FT_FP32);
    if (b->status != FT_OK) return FT_NONE;
    ft_tensor t = *ft__tensor_of(b, likelihood);
    ft_node n = ft__node_of(FT_DO_LOSS, at);
    ft__node_in(&n, likelihood);
    ft_ref out = ft__node_out(b, &n, 1, 1, t.dtype, t.element_bytes);
    /* One number per row, by a single block. */
    n.op = ft__bytes_kernel("nll_loss", t.dtype, (double)t.rows * 64, (double)t.rows);
    ft__emit(b, &n);
    return out;
}

ft_ref ft__other(ft_build *b, ft_at at, const char *op, ft_ref x, int64_t rows, int64_t cols, double bytes,
                 double flops)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    n.op = ft__bytes_kernel(op, t.dtype, bytes, flops);
    ft__emit(b, &n);
    return out;
}

void ft__sync(ft_build *b, ft_at at)
{
    if (b->status != FT_OK) return;
    ft_node n = ft__node_of(FT_DO_SYNC, at);
    n.synced = true;
    ft__emit(b, &n);
}
