/* workspace.c: temporaries inside operators, as PyTorch 2.11 takes them (read off its allocator, operator by operator,
 * on an H200; the rules are those of its sources). */
#include "memory/workspace.h"

#include <math.h>
#include <string.h>

#include "memory/resident_constants.h"

static bool is_op(const ft_node *n, const char *name) { return n->op.name && !strcmp(n->op.name, name); }

static double bytes_of(const ft_graph *g, const ft_ref *refs, int count, int at)
{
    if (at >= count || refs[at] < 0 || refs[at] >= g->tensor_count) return 0;
    return ft__tensor_bytes(&g->tensors[refs[at]]);
}

/* Sums over rows (ATen/native/cuda/Reduce.cuh): blocks of 32 x 4 threads, four columns each, sixteen to an SM; they
 * share a column once a thread would add 256 values or more, not below 16 each, and leave 4-byte partial sums of all
 * threads' columns in a buffer. */
static double column_sums(double rows, double cols, const ft_device *device)
{
    if (rows / 4 < 256) return 0;
    const double wanted = ceil(16.0 * device->sms / ceil(cols / 128)), most = ceil(rows / 4 / 16);
    return 4 * 128 * cols * fmin(wanted, most);
}

/* cuDNN's fast kernels want channels last: other layouts are turned into it and back. A 1x1 filter that touches every
 * pixel needs no turning; the input's channels are padded to eight. */
static double convolution(const ft_graph *g, const ft_node *n)
{
    const bool backward = n->op.pass != FT_PASS_FWD;
    if (n->op.u.conv.groups > 1)
        return backward && n->op.u.conv.groups == n->op.u.conv.c ? FT_K_RESIDENT_DEPTHWISE_BYTES : 0;
    if (n->op.u.conv.nhwc) return 0;
    const double channels = (double)n->op.u.conv.c, padded = ceil(channels / 8) * 8 / fmax(channels, 1);
    if (backward) /* gradient, input, weight; once for each of the two products, one after the other */
        return bytes_of(g, n->in, n->in_count, 0) + bytes_of(g, n->in, n->in_count, 1) * padded +
               bytes_of(g, n->in, n->in_count, 2);
    if (n->op.u.conv.r == 1 && n->op.u.conv.s == 1 && n->op.u.conv.stride == 1) return 0;
    return bytes_of(g, n->in, n->in_count, 0) * padded + bytes_of(g, n->out, n->out_count, 0);
}

double ft__node_workspace(const ft_graph *g, const ft_node *n, const ft_device *device)
{
    const double own = (double)n->workspace;
    switch (n->op.kind) {
    case FT_OP_ROW: {
        const double rows = (double)n->op.u.row.rows, cols = (double)n->op.u.row.cols;
        if (is_op(n, "sum_cols")) return own + column_sums(rows, cols, device);
        /* gradient times result, before the rows are summed; log_softmax does without */
        if (is_op(n, "softmax") && n->op.pass != FT_PASS_FWD) return own + bytes_of(g, n->out, n->out_count, 0);
        /* indices are sorted, rows of equal ones summed in fp32 pieces */
        if (is_op(n, "embedding") && n->op.pass != FT_PASS_FWD && n->verb == FT_DO_EMBEDDING)
            return own + rows * (4 * cols + FT_K_RESIDENT_EMBEDDING_BYTES);
        return own;
    }
    case FT_OP_CONV2D: return own + convolution(g, n);
    default: return own;
    }
}
