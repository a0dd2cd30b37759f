/* aten_rows.c: norms, softmax, reductions, lookups, concatenations, pools. */
#include <math.h>
#include <string.h>

#include "graph/batchnorm.h"
#include "graph/emit.h"
#include "trace/aten_entry.h"
#include "trace/price_constants.h"

static ft_called_part *rows(const ft_calling *c, const char *name, ft_pass pass, double numel, double cols, ft_dtype d)
{
    if (!(cols >= 1) || !(numel >= cols)) return NULL;
    return ft__call_add(c, ft__row_kernel(name, pass, (int64_t)(numel / cols), (int64_t)cols, d));
}

static ft_called_part *pass_over(const ft_calling *c, const char *name, double numel, double bytes, ft_dtype d,
                                 int pattern)
{
    if (!(numel >= 1)) return NULL;
    ft_op op = {.kind = FT_OP_ELEMENTWISE, .name = name, .dtype = d, .kv_dtype = d};
    op.u.elementwise.numel = (int64_t)numel;
    op.u.elementwise.inputs = 1;
    op.u.elementwise.bytes = fmax(bytes, 1);
    op.u.elementwise.pattern = pattern;
    return ft__call_add(c, op);
}

/* p: x, normalized_shape, weight; p[3] 1: gradients. */
bool ft__call_norm(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, c->p[0]), *w = ft__call_input(c, c->p[2]);
    int64_t shape[FT_INPUT_RANK];
    int n = ft__input_numbers(c->in, c->p[1], shape, FT_INPUT_RANK);
    double cols = 1;
    for (int i = 0; i < n; i++) cols *= (double)shape[i];
    if (n == 0) cols = w->numel > 1 ? w->numel : (double)ft__input_last(x);
    return rows(c, c->word, c->p[3] == 1 ? FT_PASS_BWD : FT_PASS_FWD, x->numel, cols, ft__call_dtype(c, x)) != NULL;
}

/* p: x; p[1]: the axis' place (-1: the last); p[2] 1: gradients. softmax and its like. */
bool ft__call_rows(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, c->p[0]);
    int64_t axis = -1;
    if (x->rank < 1) return false;
    ft__input_numbers(c->in, c->p[1], &axis, 1);
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank) axis = x->rank - 1;
    ft_called_part *part = rows(c, c->word, c->p[2] == 1 ? FT_PASS_BWD : FT_PASS_FWD, x->numel, (double)x->dim[axis],
                                ft__call_dtype(c, x));
    return part != NULL;
}

/* p: x; p[1]: the axes' place. Down the columns, along the rows, or all of it. */
bool ft__call_reduce(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, c->p[0]);
    int64_t axes[FT_INPUT_RANK];
    bool gone[FT_INPUT_RANK] = {false};
    if (x->rank < 1) return false;
    int n = ft__input_numbers(c->in, c->p[1], axes, FT_INPUT_RANK);
    double reduced = 1, trailing = 1;
    for (int i = 0; i < n; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + x->rank : axes[i];
        if (a >= 0 && a < x->rank) gone[a] = true;
    }
    for (int i = 0; i < x->rank; i++) {
        if (n == 0) gone[i] = true;
        if (gone[i]) reduced *= (double)x->dim[i];
    }
    int last = x->rank - 1;
    while (last >= 0 && (gone[last] || x->dim[last] == 1)) trailing *= (double)x->dim[last--];
    ft_dtype d = ft__call_dtype(c, x);
    if (x->numel <= reduced) /* one number comes out */
        return rows(c, "mean_all", FT_PASS_FWD, x->numel, (double)ft__input_last(x), d) != NULL;
    if (trailing >= reduced) return rows(c, "sum_rows", FT_PASS_FWD, x->numel, reduced, d) != NULL;
    return rows(c, "sum_cols", FT_PASS_FWD, x->numel, x->numel / reduced, d) != NULL;
}

static void walks(ft_called_part *part, ft_walking w)
{
    part->walk = w.walk;
    part->trips = w.trips;
    part->blocks = w.blocks;
}

/* p: x, p[1] 1: gradients, p[2] the place of `training` (-1: it is). */
bool ft__call_batchnorm(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, c->p[0]);
    if (x->rank < 2) return false;
    bool last = x->strides_known && x->rank > 2 && x->stride[1] == 1 && x->dim[1] > 1;
    double bytes = ft__call_bytes(c, x), channels = (double)x->dim[1], images = (double)x->dim[0];
    ft_pictures pictures = {images, channels, x->numel / fmax(1, images * channels), last};
    ft_dtype d = ft__call_dtype(c, x);
    bool low = ft_dtype_bytes(d) < 4, gradient = c->p[1] == 1;
    bool training = gradient || c->p[2] < 0 || ft__input_true(c->in, c->p[2]);
    const ft_input *weight = ft__call_input(c, gradient ? 2 : 1);
    bool library = ft__batchnorm_by_library(d, weight->rank == 1 ? ft_dtype_bytes(ft__call_dtype(c, weight)) : 0);
    ft_called_part *part;
    if (gradient) {
        part = pass_over(c, "batchnorm", x->numel, 5 * bytes, d, FT_PATTERN_CONTIGUOUS);
        if (!part) return false;
        part->op.u.elementwise.inputs = 2;
        walks(part, ft__batchnorm_gradient(&pictures, low, library));
        return true;
    }
    if (training && !library) {
        part = ft__call_add(c, ft__bytes_kernel("batchnorm_moments", d, fmax(bytes, 1), 4 * x->numel));
        if (!part) return false;
        walks(part, ft__batchnorm_moments(&pictures));
    }
    part = pass_over(c, "batchnorm", x->numel, (training && library ? 3 : 2) * bytes, d, FT_PATTERN_CONTIGUOUS);
    if (!part) return false;
    walks(part, training && library ? ft__batchnorm_both(&pictures, low) : ft__batchnorm_result(&pictures, low));
    return true;
}

/* The kernel's name tells the size of an element and whether its operands are runs of memory. */
bool ft__call_cat(const ft_calling *c)
{
    const ft_input *list = ft__call_input(c, 0);
    double element = ft_dtype_bytes(c->usual);
    const char *opaque = strstr(c->kernel, "OpaqueType<");
    if (!(list->numel >= 1)) return false;
    if (opaque && opaque[11] >= '1' && opaque[11] <= '9') element = opaque[11] - '0';
    ft_dtype d = element >= 4 ? FT_FP32 : element >= 2 ? FT_BF16 : FT_FP8;
    double bytes = 2 * list->numel * element;
    bool strided = *c->kernel ? strstr(c->kernel, "CatArrayBatchedCopy<") != NULL : list->scattered;
    if (strided || list->rank < 1 || element > 4)
        return pass_over(c, strided ? "cat" : "append", list->numel, bytes, d,
                         strided ? FT_PATTERN_STRIDED : FT_PATTERN_CONTIGUOUS) != NULL;
    int64_t axis = 0;
    ft__input_numbers(c->in, 1, &axis, 1);
    double cols = (double)ft__input_last(list);
    if (axis < 0 || axis == list->rank - 1) cols *= (double)(list->tensors > 0 ? list->tensors : 1);
    if (cols > list->numel) cols = list->numel;
    return rows(c, "cat_halves", FT_PASS_FWD, list->numel, fmax(cols, 1), d) != NULL;
}

/* p: table, index; p[2] 1: the gradient, 2: an index per element (gather). Rows of a table by number. */
bool ft__call_lookup(const ft_calling *c)
{
    const ft_input *table = ft__call_input(c, c->p[0]), *index = ft__call_input(c, c->p[1]);
    double found = index->numel, cols = (double)ft__input_last(table);
    if (c->p[2] == 1) { /* embedding_dense_backward(gradient, indices, rows of the table, ...) */
        double vocab = 0;
        ft_called_part *part = rows(c, "embedding", FT_PASS_BWD, found * cols, cols, ft__call_dtype(c, table));
        if (part && ft__input_number(c->in, 2, &vocab) && vocab >= 1 && vocab < 1e9)
            part->op.u.row.vocab = (int64_t)vocab;
        return part != NULL;
    }
    if (table->rank < 1 || !(found >= 1)) return false;
    if (table->rank > 2 && c->p[2] != 2) cols = table->numel / fmax(1, (double)table->dim[0]);
    if (c->p[2] == 2) {
        if (index->rank < 1) return false;
        cols = (double)ft__input_last(index);
        if (cols != (double)ft__input_last(table)) /* a few of each row */
            return pass_over(c, "copy", found, found * (8 + 2 * fmax(table->element_bytes, 1)),
                             ft__call_dtype(c, table), FT_PATTERN_STRIDED) != NULL;
        found /= cols;
    }
    ft_called_part *part = rows(c, "embedding", FT_PASS_FWD, found * cols, cols, ft__call_dtype(c, table));
    if (part) part->op.u.row.vocab = (int64_t)fmax(1, table->numel / cols);
    return part != NULL;
}

/* p: what is written, with its own index per row; -1: the whole of x. */
bool ft__call_scatter(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, c->p[0]);
    if (x->numel < 2 && c->p[1] >= 0) x = ft__call_input(c, c->p[1]);
    return pass_over(c, "index_put", x->numel, 3 * ft__call_bytes(c, x), ft__call_dtype(c, x), FT_PATTERN_STRIDED) !=
           NULL;
}

/* p: x, its larger end; p[1] 0: a window's maximum, with the place of its size; 1: its gradient; 2: averages. */
bool ft__call_pool(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, c->p[0]);
    int64_t window[2] = {3, 3}, stride[2] = {2, 2};
    if (x->rank < 3) return false;
    ft_dtype d = ft__call_dtype(c, x);
    if (c->p[1] == 2)
        return pass_over(c, "pool", x->numel, ft__call_bytes(c, x) * FT_K_PRICE_POOL_AVERAGE, d,
                         FT_PATTERN_CONTIGUOUS) != NULL;
    int n = ft__input_numbers(c->in, c->p[2], window, 2), s = ft__input_numbers(c->in, c->p[2] + 1, stride, 2);
    double taps = n > 1 ? (double)window[0] * (double)window[1] : n == 1 ? pow((double)window[0], 2) : 9;
    double step = s > 1 ? (double)stride[0] * (double)stride[1] : s == 1 ? pow((double)stride[0], 2) : taps;
    double out = x->numel / fmax(1, step), e = ft_dtype_bytes(d);
    if (c->p[1] == 0) {
        ft_called_part *part = pass_over(c, "pool", out, x->numel * e + out * (e + 8), d, FT_PATTERN_CONTIGUOUS);
        if (!part) return false;
        part->op.u.elementwise.ops_per_element = taps;
        part->walk = FT_WALK_POOL;
        part->trips = taps;
        part->blocks = out / 256;
        return true;
    }
    ft_called_part *part = pass_over(c, "pool", x->numel, x->numel * e + out * (e + 8), d, FT_PATTERN_CONTIGUOUS);
    if (!part) return false;
    part->op.u.elementwise.ops_per_element = taps;
    part->walk = FT_WALK_POOL_BACKWARD;
    part->trips = 1;
    part->blocks = x->numel / 256;
    return true;
}

/* p: the scores. One number per row, by a single block. */
bool ft__call_loss(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, c->p[0]);
    double n = x->rank > 1 ? x->numel / (double)ft__input_last(x) : 1;
    if (!(n >= 1)) return false;
    return ft__call_add(c, ft__bytes_kernel("nll_loss", ft__call_dtype(c, x), n * 64, n)) != NULL;
}
