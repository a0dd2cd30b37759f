/* layout.c: how the elements of a tensor lie in memory, by PyTorch's strides. Axes of one element have none
 * that matter. */
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"

void ft__graphfile_contiguous(ft_named *n)
{
    int64_t stride = 1;
    for (int i = n->dims - 1; i >= 0; i--) {
        n->stride[i] = stride;
        stride *= n->dim[i];
    }
    n->unordered = false;
}

bool ft__graphfile_in_order(const ft_named *n)
{
    int64_t stride = 1;
    if (n->unordered) return false;
    for (int i = n->dims - 1; i >= 0; i--) {
        if (n->dim[i] == 1) continue;
        if (n->stride[i] != stride) return false;
        stride *= n->dim[i];
    }
    return true;
}

/* Axes from the innermost to the outermost, as memory has them. */
static void by_stride(const ft_named *n, int *axis)
{
    for (int i = 0; i < n->dims; i++) {
        int at = i, mine = n->dims - 1 - i; /* equal strides keep the order of the shape */
        while (at > 0 && n->stride[axis[at - 1]] > n->stride[mine]) {
            axis[at] = axis[at - 1];
            at--;
        }
        axis[at] = mine;
    }
}

void ft__graphfile_dense_like(ft_named *n, const ft_named *like)
{
    int axis[FT_GRAPHFILE_DIMS];
    int64_t stride = 1;
    if (like->unordered || like->dims != n->dims) {
        ft__graphfile_contiguous(n);
        n->unordered = like->unordered;
        return;
    }
    by_stride(like, axis);
    for (int i = 0; i < n->dims; i++) {
        n->stride[axis[i]] = stride;
        stride *= n->dim[axis[i]];
    }
    n->unordered = false;
}

static bool dense(const ft_named *n)
{
    int axis[FT_GRAPHFILE_DIMS];
    int64_t stride = 1;
    by_stride(n, axis);
    for (int i = 0; i < n->dims; i++) {
        if (n->dim[axis[i]] == 1) continue;
        if (n->stride[axis[i]] != stride) return false;
        stride *= n->dim[axis[i]];
    }
    return true;
}

ft_order ft__graphfile_order(const ft_named *n)
{
    if (n->unordered) return FT_PERMUTED;
    if (ft__graphfile_in_order(n)) return FT_IN_ORDER;
    if (dense(n)) return FT_PERMUTED;
    int64_t outer = INT64_MAX;
    for (int i = 0; i < n->dims; i++) {
        if (n->dim[i] == 1 || n->stride[i] == 0) continue;
        if (n->stride[i] > outer) return FT_PERMUTED_GAPS;
        outer = n->stride[i];
    }
    return FT_GAPS;
}

bool ft__graphfile_channels_last(const ft_named *n)
{
    if (n->unordered || n->dims < 4 || n->dim[1] == 1 || n->stride[1] != 1) return false;
    ft_named like = *n;
    ft__graphfile_set_channels_last(&like);
    for (int i = 0; i < n->dims; i++)
        if (n->dim[i] > 1 && n->stride[i] != like.stride[i]) return false;
    return true;
}

bool ft__graphfile_cut_channels(const ft_named *n)
{
    if (n->unordered || n->dims < 4 || n->dim[1] == 1 || n->stride[1] != 1) return false;
    int64_t stride = n->stride[n->dims - 1];
    if (stride < n->dim[1]) return false;
    const bool some = stride > n->dim[1];
    for (int i = n->dims - 1; i >= 2; i--) {
        if (n->dim[i] > 1 && n->stride[i] != stride) return false;
        stride *= n->dim[i];
    }
    return n->dim[0] == 1 ? some : some ? n->stride[0] == stride : n->stride[0] > stride;
}

void ft__graphfile_set_channels_last(ft_named *n)
{
    int64_t stride = n->dim[1];
    n->stride[1] = 1;
    for (int i = n->dims - 1; i >= 2; i--) {
        n->stride[i] = stride;
        stride *= n->dim[i];
    }
    n->stride[0] = stride;
    n->unordered = false;
}

/* Runs of axes that memory has next to each other are cut anew; as torch.Tensor.view does. */
bool ft__graphfile_restride(const ft_named *x, ft_named *to)
{
    if (x->unordered) return false;
    int at = to->dims - 1;
    int64_t base = 1, had = 1, has = 1;
    bool begun = false;
    for (int i = x->dims - 1; i >= 0; i--) {
        if (!begun) {
            base = x->stride[i];
            begun = true;
        }
        had *= x->dim[i];
        bool ends = i == 0 || (x->dim[i - 1] != 1 && x->stride[i - 1] != had * base);
        if (!ends) continue;
        while (at >= 0 && (has < had || to->dim[at] == 1)) {
            to->stride[at] = has * base;
            has *= to->dim[at];
            at--;
        }
        if (has != had) return false;
        had = has = 1;
        begun = false;
    }
    to->unordered = false;
    return at < 0;
}

bool ft__graphfile_merges(const ft_named *n, int kept)
{
    int64_t want = -1;
    if (n->unordered) return true; /* nobody knows: as it was written */
    for (int i = n->dims - 1 - kept; i >= 0; i--) {
        if (n->dim[i] == 1) continue;
        if (want >= 0 && n->stride[i] != want) return false;
        want = n->stride[i] * n->dim[i];
    }
    return true;
}

/* Images whose channels lie next to each other are kept as rows of channels, whatever the order of their axes. */
static bool as_pixels(const ft_graph_reader *r, const ft_named *n)
{
    return r->pictures && (n->dim[0] > 1 || r->m->work->batch == 1) && ft__graphfile_channels_last(n);
}

/* Neighbours of the result lie far apart in x: a sector of memory is fetched for each. Along an axis shorter than a
 * warp (heads, pixels that are shuffled) the same threads come back to the sector for what lies next in it. */
static bool lies_across(const ft_named *x)
{
    static const int64_t SECTOR = 8, WARP = 32; /* elements: 32 bytes of fp32; threads */
    int last = x->dims - 1;
    while (last > 0 && x->dim[last] == 1) last--;
    return !x->unordered && x->repeats == FT_NONE && x->dims > 1 && x->stride[last] >= SECTOR && x->dim[last] >= WARP;
}

ft_ref ft__graphfile_seen(ft_graph_reader *r, ft_ref x, const ft_named *as)
{
    ft_build *b = ft__graphfile_build(r);
    if (as_pixels(r, as))
        return ft__view_as(b, x, as->dim[0] * ft__graphfile_span(as, 2, as->dims), as->dim[1], FT_IN_ORDER);
    const ft_tensor *t = ft__tensor_of(b, x);
    bool gaps = as->unordered && t->strided && t->gaps; /* a slice stays one however it is turned */
    ft_ref out = ft__view_as(b, x, ft__graphfile_rows(as->dims, as->dim), as->dim[as->dims - 1],
                             gaps ? FT_PERMUTED_GAPS : ft__graphfile_order(as));
    if (out != FT_NONE) b->g->tensors[out].across = b->g->tensors[out].permuted && lies_across(as);
    return out;
}

void ft__graphfile_walks_across(ft_graph_reader *r, double elements)
{
    if (!ft__graphfile_failed(r)) ft__walks_across(ft__graphfile_build(r), elements);
}

static ft_ref in_order(ft_graph_reader *r, ft_at at, const ft_named *x)
{
    ft_build *b = ft__graphfile_build(r);
    /* An image whose memory has another order: the copy turns it round. */
    if (!ft__tensor_of(b, x->ref)->strided && !ft__graphfile_in_order(x))
        return ft__transpose(b, at, x->ref, ft__graphfile_rows(x->dims, x->dim), x->dim[x->dims - 1]);
    /* An expansion is copied from what it repeats: that is what memory delivers. */
    return ft__copy(b, at, x->repeats != FT_NONE ? x->repeats : x->ref, ft__graphfile_rows(x->dims, x->dim),
                    x->dim[x->dims - 1]);
}

ft_ref ft__graphfile_copied(ft_graph_reader *r, ft_at at, const ft_named *x)
{
    ft_ref copy = in_order(r, at, x);
    if (copy != FT_NONE && lies_across(x)) ft__graphfile_walks_across(r, ft__graphfile_elements(x));
    return copy;
}

ft_ref ft__graphfile_matrix(ft_graph_reader *r, ft_at at, const ft_named *x, int64_t rows, int64_t cols)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named to = {.dims = 2, .dim = {rows, cols}};
    if (ft__graphfile_failed(r)) return FT_NONE;
    const ft_tensor *t = ft__tensor_of(b, x->ref);
    if (x->unordered) {
        if (t->rows == rows && t->cols == cols) return x->ref;
        return ft__view_as(b, x->ref, rows, cols, FT_PERMUTED);
    }
    if (!ft__graphfile_restride(x, &to)) {
        ft_ref copy = ft__graphfile_copied(r, at, x);
        const ft_tensor *c = ft__tensor_of(b, copy);
        return c->rows == rows && c->cols == cols ? copy : ft__view_as(b, copy, rows, cols, FT_IN_ORDER);
    }
    ft_order order = ft__graphfile_order(&to);
    if (t->rows == rows && t->cols == cols && t->strided == (order != FT_IN_ORDER)) return x->ref;
    return ft__view_as(b, x->ref, rows, cols, order);
}

ft_ref ft__graphfile_by_rows(ft_graph_reader *r, ft_at at, const ft_named *x)
{
    return ft__graphfile_matrix(r, at, x, ft__graphfile_rows(x->dims, x->dim), x->dim[x->dims - 1]);
}
