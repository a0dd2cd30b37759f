/* workspace.c: temporaries inside operators, as PyTorch 2.11 takes them (read off its allocator, operator by operator,
 * on an H200; the rules are those of its sources). */
#include "memory/workspace.h"

#include <math.h>
#include <string.h>

#include "graph/operator.h"
#include "memory/resident_constants.h"

static bool is_op(const ft_node *n, const char *name) { return n->op.name && !strcmp(n->op.name, name); }

bool ft__calls_blas(const ft_node *n)
{
    return n->verb == FT_DO_LINEAR || n->verb == FT_DO_MATMUL || n->verb == FT_DO_EXPERTS || n->verb == FT_DO_RECUR;
}

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
    const double wanted = ceil(16 * (double)device->sms / ceil(cols / 128)), most = ceil(rows / 4 / 16);
    return 4 * 128 * cols * fmin(wanted, most);
}

/* Sums of an embedding's gradient before they are added up (ATen/native/cuda/EmbeddingBackwardKernel.cu): one for every
 * ten rows of one index, and at least one for every index that occurs, here of indices that are drawn evenly. */
static double pieces(double rows, double vocab)
{
    static const double ROWS = 10; /* NROWS_PER_THREAD */
    return vocab > 0 ? fmin(rows, fmax(-vocab * expm1(-rows / vocab), rows / ROWS)) : rows;
}

/* cuDNN's fast kernels want channels last and channels by the eight: images and filters that lie otherwise are
 * copied, in and out. A 1x1 filter that touches every pixel needs none of it, and neither does an image's few channels
 * under a small filter, which vector units read as they lie: channels first always, channels last with a stride. fp32
 * reads NCHW; gradients of 3x3 filters go through a transform. */
static double convolution(const ft_graph *g, const ft_node *n)
{
    const int parts = ft__conv_parts(&n->op);
    const bool backward = n->op.pass != FT_PASS_FWD, first = !n->op.u.conv.nhwc, half = ft_dtype_bytes(n->op.dtype) < 4;
    /* A transposed one goes the other way: what it reads has the channels of the other's result. */
    const bool turned = backward ? (parts & FT_CONV_RESULT) != 0 : parts == FT_CONV_INPUT;
    const double c = (double)(turned ? n->op.u.conv.k : n->op.u.conv.c),
                 k = (double)(turned ? n->op.u.conv.c : n->op.u.conv.k), groups = (double)n->op.u.conv.groups,
                 taps = (double)n->op.u.conv.r * (double)n->op.u.conv.s;
    /* Of a gradient: what comes back, what went in, the filters. */
    double x = bytes_of(g, n->in, n->in_count, backward ? 1 : 0), w = bytes_of(g, n->in, n->in_count, backward ? 2 : 1),
           y = backward ? bytes_of(g, n->in, n->in_count, 0) : bytes_of(g, n->out, n->out_count, 0);
    if (groups == c && groups > 1) return backward ? FT_K_RESIDENT_DEPTHWISE_BYTES : 0;
    if (n->op.dtype == FT_FP32 || n->op.dtype == FT_FP64) {
        const bool transform = backward && taps == 9 && n->op.u.conv.stride == 1;
        return transform ? FT_K_RESIDENT_TRANSFORM_SHARE * (x + y) : 0;
    }
    if (taps == 1 && n->op.u.conv.stride == 1) return 0;
    const double eight = half ? 8 : 4, odd_x = ceil(c / eight) * eight / c, odd_y = ceil(k / eight) * eight / k;
    const double alone = n->op.u.conv.depth > 1 ? c / n->op.u.conv.depth : c; /* a clip's depth is among its channels */
    const bool few = groups == 1 && alone < eight;
    const bool clip = n->op.u.conv.space == 3; /* of few channels: vector units, whatever the filter */
    const bool direct = taps <= FT_K_RESIDENT_FEW_TAPS && (first || (alone < 4 && n->op.u.conv.stride > 1));
    if (few && parts == FT_CONV_RESULT && (clip || direct)) return 0;
    if (first) return x * (groups > 1 ? 1 : odd_x) + y * (groups > 1 ? 1 : odd_y) + (taps > 1 ? w : 0);
    if (groups > 1) { /* groups of a width that no kernel has are padded to one */
        const double width = c / groups, wider = ceil(width / FT_K_RESIDENT_GROUP_WIDTH) * FT_K_RESIDENT_GROUP_WIDTH;
        return half && width > FT_K_RESIDENT_GROUP_WIDTH && wider > width ? (x + y) * wider / width : 0;
    }
    return x * (odd_x > 1 ? odd_x : 0) + y * (odd_y > 1 ? odd_y : 0);
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
            return own +
                   pieces(rows, (double)n->op.u.row.vocab) *
                       (4 * cols + fmin(4 * cols, FT_K_RESIDENT_EMBEDDING_BYTES)) +
                   rows * FT_K_RESIDENT_EMBEDDING_INDEX_BYTES;
        return own;
    }
    case FT_OP_CONV2D: return own + convolution(g, n);
    default: return own;
    }
}
