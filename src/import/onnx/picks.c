/* picks.c: what indices pick out of tensors or put into them. */
#include <string.h>

#include "import/onnx/run.h"

/* -- Gather ---------------------------------------------------------------------------------------- */

static void gather_known(ft_onnx_run *r, const ft_onnx_item *x, const ft_onnx_item *index, int axis, ft_onnx_item *y)
{
    ft_onnx_number *out = ft__onnx_room(r, y);
    size_t outer = 1, wide = 1, at = 0, picks = (size_t)ft__onnx_count(index);
    for (int i = 0; i < axis; i++) outer *= (size_t)x->dim[i];
    for (int i = axis + 1; i < x->dims; i++) wide *= (size_t)x->dim[i];
    for (size_t o = 0; out && o < outer; o++)
        for (size_t i = 0; i < picks; i++, at += wide) {
            int64_t pick = index->known[i].i;
            if (pick < 0) pick += x->dim[axis];
            if (pick < 0 || pick >= x->dim[axis]) {
                ft__onnx_fail(r, FT_E_RANGE, "index %lld of an axis of %lld", (long long)index->known[i].i,
                              (long long)x->dim[axis]);
                return;
            }
            memcpy(out + at, x->known + (o * (size_t)x->dim[axis] + (size_t)pick) * wide, wide * sizeof *out);
        }
}

/* By an index: whole rows of the last axis, or single elements. */
static void picked(ft_onnx_run *r, ft_onnx_item *x, ft_onnx_item *y, bool by_rows)
{
    int64_t rows, cols;
    bool strided;
    if (ft__onnx_failed(r) || ft__onnx_count(y) < 1 || ft__onnx_count(x) < 1) return;
    ft_ref from = ft__onnx_ref(r, x);
    ft__onnx_extent(y, &rows, &cols, &strided);
    y->ref = ft__pick(r->b, r->label, from, rows, cols, by_rows && ft__tensor_of(r->b, from)->cols == cols);
}

static void build_gather(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *index = ft__onnx_operand(r, 1);
    int64_t dim[2 * FT_ONNX_DIMS];
    int dims = 0;
    if (!x || !index) return;
    int axis = ft__onnx_axis(r, ft__onnx_int(r->at, "axis", 0), x->dims);
    if (axis < 0) return;
    for (int i = 0; i < axis; i++) dim[dims++] = x->dim[i];
    for (int i = 0; i < index->dims; i++) dim[dims++] = index->dim[i];
    for (int i = axis + 1; i < x->dims; i++) dim[dims++] = x->dim[i];
    ft_onnx_item in = *x, at = *index, *y = ft__onnx_result(r, 0, in.type, dims, dim);
    if (!y || ft__onnx_count(y) < 1) return;
    if (in.known && at.known && in.kind == FT_ONNX_FIXED && ft__onnx_count(y) <= FT_ONNX_KNOWN) {
        gather_known(r, &in, &at, axis, y);
        return;
    }
    if (in.kind == FT_ONNX_WEIGHT && in.dims == 2 && axis == 0 && at.kind == FT_ONNX_MADE) {
        ft_ref indices = ft__onnx_ref(r, index), table = ft__onnx_ref(r, x);
        if (ft__onnx_failed(r)) return;
        ft__onnx_set(r, y, ft__embedding(r->b, r->label, indices, in.dim[0], in.dim[1], &table));
        return;
    }
    if (at.known && ft__onnx_count(&at) == 1 && in.kind == FT_ONNX_MADE) { /* one of them: a view */
        bool together = ft__onnx_outermost(&in, axis);
        int places = 0;
        ft_onnx_item kept = in;
        kept.dim[axis] = 1;
        ft__onnx_part_of(r, x, &kept, together);
        if (ft__onnx_failed(r)) return;
        if (at.dims == 0) { /* and the axis goes */
            for (int i = 0; i < in.dims; i++)
                if (in.order[i] != axis) y->order[places++] = (uint8_t)(in.order[i] - (in.order[i] > axis));
            y->gaps = kept.gaps;
            ft__onnx_set(r, y, kept.ref);
        } else {
            y->gaps = kept.gaps;
            if (at.dims == 1) memcpy(y->order, kept.order, sizeof y->order);
            ft__onnx_set(r, y, kept.ref);
        }
        return;
    }
    picked(r, x, y, axis + 1 < in.dims);
}

/* GatherElements, GatherND: the shape of the indices, and what lies behind them. */
static void build_gather_elements(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *index = ft__onnx_operand(r, 1);
    if (!x || !index) return;
    if (x->dims != index->dims) {
        ft__onnx_fail(r, FT_E_RANGE, "indices of %d axes into a tensor of %d", index->dims, x->dims);
        return;
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, index->dims, index->dim);
    if (y) picked(r, x, y, false);
}

static void build_gather_nd(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *index = ft__onnx_operand(r, 1);
    int64_t shared = ft__onnx_int(r->at, "batch_dims", 0), dim[2 * FT_ONNX_DIMS];
    int dims = 0;
    if (!x || !index) return;
    int64_t deep = index->dims ? index->dim[index->dims - 1] : 0;
    if (shared < 0 || index->dims < 1 || shared >= index->dims || deep < 0 || shared + deep > x->dims) {
        ft__onnx_fail(r, FT_E_RANGE, "indices of %lld axes into a tensor of %d", (long long)deep, x->dims);
        return;
    }
    for (int i = 0; i + 1 < index->dims; i++) dim[dims++] = index->dim[i];
    for (int64_t i = shared + deep; i < x->dims; i++) dim[dims++] = x->dim[i];
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, dims, dim);
    if (y) picked(r, x, y, shared + deep < x->dims);
}

/* -- Scatter --------------------------------------------------------------------------------------- */

/* A copy of x into which updates are written. */
static void build_scatter(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *updates = ft__onnx_operand(r, 2);
    ft_onnx_item *y = x && updates ? ft__onnx_like(r, 0, x, x->type) : NULL;
    if (!y || ft__onnx_count(y) < 1) return;
    ft_ref from = ft__onnx_count(updates) < 1 ? FT_NONE : ft__onnx_ref(r, updates), to = ft__onnx_dense(r, x);
    memcpy(y->order, x->order, sizeof y->order);
    if (!ft__onnx_failed(r)) y->ref = ft__scatter(r->b, r->label, to, from, ft__onnx_count(updates), false, false);
}

/* -- by value -------------------------------------------------------------------------------------- */

static void build_one_hot(ft_onnx_run *r)
{
    ft_onnx_item *index = ft__onnx_operand(r, 0), *depth = ft__onnx_operand(r, 1), *values = ft__onnx_operand(r, 2);
    int64_t dim[FT_ONNX_DIMS + 1], wide[FT_ONNX_KNOWN];
    int count, dims = 0;
    if (!index || !depth || !values || !ft__onnx_numbers(r, depth, "the depth", &count, wide)) return;
    int axis = ft__onnx_axis(r, ft__onnx_int(r->at, "axis", -1), index->dims + 1);
    if (axis < 0 || count < 1) return;
    for (int i = 0; i <= index->dims; i++) dim[i] = i == axis ? wide[0] : index->dim[dims++];
    ft__onnx_filled(r, "fill", ft__onnx_result(r, 0, values->type, dims + 1, dim));
}

static void build_topk(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *many = ft__onnx_operand(r, 1);
    int64_t k[FT_ONNX_KNOWN];
    int count;
    if (!x || !many || !ft__onnx_numbers(r, many, "how many", &count, k)) return;
    int axis = ft__onnx_axis(r, ft__onnx_int(r->at, "axis", -1), x->dims);
    if (axis < 0 || count < 1) return;
    ft_onnx_item in = *x;
    double all = ft__onnx_count(&in), wide = (double)(in.dim[axis] > 0 ? in.dim[axis] : 1);
    in.dim[axis] = k[0];
    ft_onnx_item *y = ft__onnx_result(r, 0, in.type, in.dims, in.dim);
    ft_onnx_item *which = y ? ft__onnx_result(r, 1, FT_ONNX_INT64, in.dims, in.dim) : NULL;
    if (!which || all < 1 || ft__onnx_count(y) < 1) return;
    int64_t rows, cols;
    bool strided;
    ft__onnx_extent(y, &rows, &cols, &strided);
    ft_ref from = ft__onnx_ref(r, x);
    ft_node n = ft__node_of(FT_DO_GATHER, r->label);
    ft__node_in(&n, from);
    ft_tensor t = *ft__tensor_of(r->b, from);
    y->ref = ft__node_out(r->b, &n, rows, cols, t.dtype, t.element_bytes);
    which->ref = ft__node_out(r->b, &n, rows, cols, t.dtype, 8);
    if (ft__onnx_failed(r)) return;
    r->b->g->tensors[which->ref].trained = false;
    n.op = ft__row_kernel("argmax", FT_PASS_FWD, (int64_t)(all / wide), (int64_t)wide, t.dtype);
    ft__emit(r->b, &n);
}

static void nonzero_known(ft_onnx_run *r, const ft_onnx_item *x)
{
    size_t all = (size_t)ft__onnx_count(x);
    int64_t dim[2] = {x->dims, 0};
    for (size_t i = 0; i < all; i++) dim[1] += x->known[i].i != 0 || x->known[i].f < 0 || x->known[i].f > 0;
    ft_onnx_item in = *x, *y = ft__onnx_result(r, 0, FT_ONNX_INT64, 2, dim);
    ft_onnx_number *out = y ? ft__onnx_room(r, y) : NULL;
    if (!out && y) ft__onnx_filled(r, "fill", y);
    int64_t at = 0;
    for (size_t i = 0; out && i < all; i++) {
        if (!(in.known[i].i != 0 || in.known[i].f < 0 || in.known[i].f > 0)) continue;
        size_t rest = i;
        for (int axis = in.dims - 1; axis >= 0; axis--) {
            int64_t here = (int64_t)(rest % (size_t)in.dim[axis]);
            out[axis * dim[1] + at] = (ft_onnx_number){here, (double)here};
            rest /= (size_t)in.dim[axis];
        }
        at++;
    }
}

/* Results whose sizes depend on what is computed: as the file declares them, if it does. */
static void build_by_value(ft_onnx_run *r)
{
    const ft_onnx_item *x = ft__onnx_operand(r, 0);
    if (!x) return;
    if (!strcmp(r->at->op, "NonZero") && x->known && x->kind == FT_ONNX_FIXED)
        nonzero_known(r, x);
    else
        ft__onnx_other(r, "select", ft__onnx_count(x));
}

const ft_onnx_rule ft__onnx_pick_rules[] = {
    {"Gather", 2, build_gather, ""},
    {"GatherElements", 2, build_gather_elements, ""},
    {"GatherND", 2, build_gather_nd, ""},
    {"Scatter", 3, build_scatter, ""},
    {"ScatterElements", 3, build_scatter, ""},
    {"ScatterND", 3, build_scatter, ""},
    {"TensorScatter", 2, build_scatter, ""},
    {"OneHot", 3, build_one_hot, ""},
    {"TopK", 2, build_topk, ""},
    {"NonZero", 1, build_by_value, ""},
    {"Compress", 2, build_by_value, ""},
    {"Unique", 1, build_by_value, ""},
    {"NonMaxSuppression", 2, build_by_value, ""},
    {0},
};
