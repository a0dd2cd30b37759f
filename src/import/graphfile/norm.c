/* norm.c: norms of a graph file. */
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"
#include "model/relative.h"

/* The weight that a norm finds among its operands: one that was computed (nemotron's w + 1), not a parameter. `of`:
 * what must have as many elements. */
static ft_ref computed_weight(ft_graph_reader *r, int64_t cols, const char *of)
{
    ft_named w;
    if (!ft__graphfile_operand(r, 1, &w)) return FT_NONE;
    if (json_object_get(r->at, "weight")) {
        ft__graphfile_fail(r, FT_E_RANGE, "its weight is given twice: as the second operand and by \"weight\"");
        return FT_NONE;
    }
    if (ft__graphfile_elements(&w) == (double)cols) return w.ref;
    ft__graphfile_fail(r, FT_E_RANGE, "the weight has %.0f elements, %s %lld", ft__graphfile_elements(&w), of,
                       (long long)cols);
    return FT_NONE;
}

enum { WARP = 32 };

/* layernorm, rmsnorm over the last axes. What does not lie in rows is copied into order first, and the copy dropped: x
 * itself is kept for the gradient, which copies it again. */
void ft__read_norm(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    int last = (int)ft__graphfile_whole(r, "last", 1, 1, x.dims);
    bool root = !strcmp(ft__graphfile_op(r), "rmsnorm");
    if (ft__graphfile_failed(r)) return;
    int64_t cols = ft__graphfile_span(&x, x.dims - last, x.dims), rows = ft__graphfile_span(&x, 0, x.dims - last);
    ft_ref weight = ft__graphfile_operands(r) > 1 ? computed_weight(r, cols, "a row")
                                                  : ft__graphfile_weight(r, "weight", true, "norm.weight", 1, cols);
    ft_ref bias = root ? FT_NONE : ft__graphfile_weight(r, "bias", false, "norm.bias", 1, cols);
    if (ft__graphfile_failed(r)) return;
    const ft_tensor *t = ft__tensor_of(b, x.ref);
    ft_ref in = x.ref;
    const bool copied = !x.unordered && !ft__graphfile_in_order(&x);
    if (copied) {
        double bytes = t->element_bytes;
        ft_dtype dtype = t->dtype;
        if (t->rows != rows || t->cols != cols) in = ft__view_as(b, x.ref, rows, cols, ft__graphfile_order(&x));
        ft__no_grad_kernels(b, at, "copy", in, rows, cols, bytes, 1);
        /* Rows shorter than a warp: the same threads come back to a sector for what lies next in it. */
        if (!ft__graphfile_failed(r) && ft__graphfile_order(&x) != FT_GAPS && cols >= WARP)
            b->g->nodes[b->g->node_count - 1].op = ft__row_kernel("transpose_copy", FT_PASS_FWD, rows, cols, dtype);
    } else if (t->rows != rows || t->cols != cols) {
        in = ft__view_as(b, x.ref, rows, cols, x.unordered ? FT_PERMUTED : FT_IN_ORDER);
    }
    ft_ref y;
    if (weight == FT_NONE && bias == FT_NONE) {
        ft__module(b, 1);
        y = ft__row(b, at, root ? "rmsnorm" : "layernorm", in);
    } else {
        y = ft__norm_with(b, at, root ? "rmsnorm" : "layernorm", in, weight, bias);
    }
    if (copied && !ft__graphfile_failed(r)) b->g->nodes[b->g->node_count - 1].transposes = true;
    int64_t wide = x.dim[x.dims - 1];
    if (wide != cols) y = ft__view_as(b, y, ft__graphfile_rows(x.dims, x.dim), wide, FT_IN_ORDER);
    ft__graphfile_result(r, y, x.dims, x.dim);
}

typedef enum statistics { BY_TASK, OF_BATCH, KEPT } statistics;

/* Whose moments a batch norm takes: its own and the kept ones as the task says, its own alone (filters that are
 * standardised), or kept ones whether it trains or not. */
static statistics statistics_of(ft_graph_reader *r)
{
    const json_t *said = json_object_get(r->at, "statistics");
    const char *word = json_string_value(said);
    if (!said) return BY_TASK;
    if (word && !strcmp(word, "batch")) return OF_BATCH;
    if (word && !strcmp(word, "running")) return KEPT;
    ft__graphfile_fail(r, FT_E_NAME, "\"statistics\" must be \"batch\" or \"running\"");
    return BY_TASK;
}

/* A sequence that lies turned is normed as it lies, and so does its result (ATen/native/cuda/Normalization.cu). */
static bool lies_turned(const ft_named *x)
{
    const int64_t channels = x->dim[1], pixels = ft__graphfile_span(x, 2, x->dims);
    return x->dims == 3 && !x->unordered && channels > 1 && pixels > 1 && x->stride[1] == 1 &&
           x->stride[2] == channels && (x->dim[0] == 1 || x->stride[0] == channels * pixels);
}

/* The rows that the kernel reads; `last`: channels lie last, and so will the result. */
static ft_ref rows_to_norm(ft_graph_reader *r, ft_at at, const ft_named *x, bool batch, bool *last)
{
    ft_build *b = ft__graphfile_build(r);
    const int64_t channels = x->dim[1], pixels = ft__graphfile_span(x, 2, x->dims);
    const ft_tensor *t = ft__tensor_of(b, x->ref);
    *last = ft__graphfile_channels_last(x);
    if (batch && lies_turned(x)) return ft__view_as(b, x->ref, x->dim[0] * pixels, channels, FT_IN_ORDER);
    if (*last && !batch) { /* PyTorch's group norm wants channels first, and leaves its result so */
        *last = false;
        return ft__turned(b, at, x->ref, x->dim[0] * channels, pixels);
    }
    if (!*last && x->dims > 2) return ft__graphfile_matrix(r, at, x, x->dim[0] * channels, pixels);
    if (!*last) return ft__graphfile_by_rows(r, at, x);
    if (!t->strided && t->cols == channels) return x->ref;
    return ft__view_as(b, x->ref, x->dim[0] * pixels, channels, FT_IN_ORDER);
}

/* batchnorm, groupnorm of [n, c, ...]. */
void ft__read_picture_norm(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x, out;
    bool batch = !strcmp(ft__graphfile_op(r), "batchnorm");
    if (!ft__graphfile_operand(r, 0, &x)) return;
    if (x.dims < 2) {
        ft__graphfile_fail(r, FT_E_RANGE, "it takes [n, c, ...], got one axis");
        return;
    }
    int64_t channels = x.dim[1], groups = batch ? 1 : ft__graphfile_whole(r, "groups", 0, 1, channels);
    if (!ft__graphfile_failed(r) && channels % groups)
        ft__graphfile_fail(r, FT_E_RANGE, "%lld groups do not divide %lld channels", (long long)groups,
                           (long long)channels);
    const statistics whose = batch ? statistics_of(r) : BY_TASK;
    ft_ref weight = ft__graphfile_operands(r) > 1
                        ? computed_weight(r, channels, "the channels are")
                        : ft__graphfile_weight(r, "weight", true, batch ? "bn.weight" : "gn.weight", 1, channels);
    ft_ref bias = ft__graphfile_weight(r, "bias", true, batch ? "bn.bias" : "gn.bias", 1, channels);
    if (ft__graphfile_failed(r)) return;
    const bool turned = batch && lies_turned(&x);
    bool last;
    ft_ref in = rows_to_norm(r, at, &x, batch, &last);
    out = ft__graphfile_fresh(FT_NONE, x.dims, x.dim);
    if (last) ft__graphfile_set_channels_last(&out);
    if (turned)
        for (int i = 0; i < x.dims; i++) out.stride[i] = x.stride[i];
    const bool training = b->training;
    if (whose != BY_TASK) b->training = whose == OF_BATCH;
    if (whose == OF_BATCH)
        ;                          /* nothing is kept of it */
    else if (batch && b->training) /* counts its batches while it learns, raises its variances when it does not */
        ft__pointwise_in_place(b, at, "addu", ft__buffer(b, 1, 1, 8), FT_NONE);
    else if (batch && ft_dtype_bytes(b->stored) < 4)
        ft__cast(b, at, ft__buffer(b, 1, channels, ft_dtype_bytes(b->stored)), FT_FP32);
    b->turned_norms = turned;
    out.ref = batch ? ft__batchnorm_with(b, at, in, channels, weight, bias)
                    : ft__groupnorm(b, at, in, x.dim[0] * groups, weight, bias);
    b->training = training;
    b->turned_norms = false;
    if (!ft__graphfile_failed(r)) ft__graphfile_give(r, 0, &out);
}
