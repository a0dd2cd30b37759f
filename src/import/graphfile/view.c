/* view.c: views and copies of a graph file. What comes out is said by its shape; the number of elements
 * decides whether that can be, and x's strides whether it costs anything. */
#include <string.h>

#include "graph/emit.h"
#include "graph/windows.h"
#include "import/graphfile/reader.h"

/* "shape" into a result that begins like x; false after an error. */
static bool shaped(ft_graph_reader *r, const ft_named *x, ft_named *out)
{
    *out = *x;
    out->repeats = FT_NONE;
    return ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &out->dims, out->dim);
}

static bool counted(ft_graph_reader *r, const ft_named *x, const ft_named *out, bool good)
{
    if (!good)
        ft__graphfile_fail(r, FT_E_RANGE, "%s of %.0f elements cannot give %.0f", ft__graphfile_op(r),
                           ft__graphfile_elements(x), ft__graphfile_elements(out));
    return good;
}

static ft_ref copied(ft_graph_reader *r, ft_at at, const ft_named *x, ft_named *as)
{
    ft_build *b = ft__graphfile_build(r);
    int64_t rows = ft__graphfile_rows(as->dims, as->dim), cols = as->dim[as->dims - 1];
    ft_ref copy = ft__graphfile_copied(r, at, x);
    ft__graphfile_contiguous(as);
    const ft_tensor *t = ft__tensor_of(b, copy);
    return t->rows == rows && t->cols == cols ? copy : ft__view_as(b, copy, rows, cols, FT_IN_ORDER);
}

/* view, reshape: where strides allow no view, "reshape" copies. A "view" is taken at its word: whoever wrote it knows
 * that it is one. */
void ft__read_view(ft_graph_reader *r, ft_at at)
{
    ft_named x, out;
    if (!ft__graphfile_operand(r, 0, &x) || !shaped(r, &x, &out)) return;
    if (!counted(r, &x, &out, ft__graphfile_elements(&x) == ft__graphfile_elements(&out))) return;
    bool view = !strcmp(ft__graphfile_op(r), "view");
    const json_t *said = view ? json_object_get(r->at, "strided") : NULL;
    bool strided = ft__graphfile_truth(r, "strided", false);
    if (ft__graphfile_failed(r)) return;
    if (said) {
        ft__graphfile_contiguous(&out);
        out.unordered = strided;
        out.ref = ft__graphfile_seen(r, x.ref, &out);
    } else if (ft__graphfile_restride(&x, &out)) {
        out.ref = ft__graphfile_seen(r, x.ref, &out);
        if (x.repeats != FT_NONE && !ft__graphfile_in_order(&out)) out.repeats = x.repeats;
    } else if (view) {
        ft__graphfile_contiguous(&out);
        out.unordered = ft__tensor_of(ft__graphfile_build(r), x.ref)->strided;
        out.ref = ft__graphfile_seen(r, x.ref, &out);
    } else {
        out.ref = copied(r, at, &x, &out);
    }
    ft__graphfile_give(r, 0, &out);
}

/* The new order of axes; false after an error. */
static bool permuted(ft_graph_reader *r, const ft_named *x, const json_t *axes, ft_named *out)
{
    unsigned seen_axes = 0;
    bool good = json_is_array(axes) && json_array_size(axes) == (size_t)x->dims;
    for (int i = 0; good && i < x->dims; i++) {
        const json_t *value = json_array_get(axes, (size_t)i);
        json_int_t axis = json_integer_value(value);
        good = json_is_integer(value) && axis >= -x->dims && axis < x->dims;
        if (!good) break;
        int from = (int)(axis < 0 ? axis + x->dims : axis);
        good = !(seen_axes & 1u << (unsigned)from);
        seen_axes |= 1u << (unsigned)from;
        out->dim[i] = x->dim[from];
        out->stride[i] = x->stride[from];
    }
    if (!good)
        ft__graphfile_fail(r, FT_E_RANGE, "\"axes\" must be the numbers 0 to %d in their new order", x->dims - 1);
    return good;
}

void ft__read_transpose(ft_graph_reader *r, ft_at at)
{
    ft_named x, out;
    const json_t *axes = json_object_get(r->at, "axes");
    (void)at;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    out = x;
    out.repeats = FT_NONE;
    if (axes) {
        if (!permuted(r, &x, axes, &out)) return;
        if (json_object_get(r->at, "shape")) {
            ft_named said;
            if (!shaped(r, &x, &said)) return;
            if (said.dims != out.dims || memcmp(said.dim, out.dim, (size_t)out.dims * sizeof *out.dim)) {
                ft__graphfile_fail(r, FT_E_RANGE, "\"shape\" is not that of x with its axes in the order of \"axes\"");
                return;
            }
        }
    } else {
        if (!shaped(r, &x, &out)) return;
        if (!counted(r, &x, &out, ft__graphfile_elements(&x) == ft__graphfile_elements(&out))) return;
        ft__graphfile_contiguous(&out);
        out.unordered = true;
    }
    out.ref = ft__graphfile_seen(r, x.ref, &out);
    ft__graphfile_give(r, 0, &out);
}

/* Strides of a part of x: those of x, without the axis that went; unknown where shapes do not say. */
static void part_strides(ft_graph_reader *r, const ft_named *x, ft_named *out)
{
    int gone = -1, at = 0;
    if (out->dims == x->dims - 1 && json_object_get(r->at, "axis")) gone = ft__graphfile_axis(r, x->dims, 0);
    bool follows = !x->unordered && (out->dims == x->dims || gone >= 0);
    for (int i = 0; follows && i < x->dims; i++) {
        if (i == gone) continue;
        follows = out->dim[at] <= x->dim[i];
        out->stride[at++] = x->stride[i];
    }
    if (follows) return;
    ft__graphfile_contiguous(out);
    out->unordered = true;
}

/* Windows that share elements, and how their gradient finds them. */
static bool overlapping(ft_graph_reader *r, bool *overlaps, bool *indexed)
{
    const json_t *said = json_object_get(r->at, "overlap");
    const char *how = json_string_value(said);
    *overlaps = said != NULL;
    *indexed = how && !strcmp(how, "index");
    if (!said || *indexed || (how && !strcmp(how, "count"))) return true;
    ft__graphfile_fail(r, FT_E_NAME, "\"overlap\" must be \"count\" or \"index\"");
    return false;
}

/* slice, expand, detach. */
void ft__read_part(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    const char *op = ft__graphfile_op(r);
    ft_named x, out;
    (void)at;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    if (!strcmp(op, "detach")) {
        out = x;
        out.ref = ft__detach(b, x.ref);
        ft__graphfile_give(r, 0, &out);
        return;
    }
    bool slice = !strcmp(op, "slice");
    if (!shaped(r, &x, &out)) return;
    double had = ft__graphfile_elements(&x), has = ft__graphfile_elements(&out);
    if (!counted(r, &x, &out, slice ? has <= had : has >= had)) return;
    int64_t rows = ft__graphfile_rows(out.dims, out.dim), cols = out.dim[out.dims - 1];
    if (slice) {
        part_strides(r, &x, &out);
        out.ref = ft__slice(b, x.ref, rows, cols);
        if (!ft__graphfile_failed(r) && !out.unordered) {
            ft_order order = ft__graphfile_order(&out);
            b->g->tensors[out.ref].strided = order != FT_IN_ORDER;
            b->g->tensors[out.ref].permuted = order == FT_PERMUTED || order == FT_PERMUTED_GAPS;
        }
    } else {
        int more = out.dims - x.dims;
        bool follows = !x.unordered && more >= 0;
        for (int i = 0; follows && i < out.dims; i++) {
            follows = i < more || x.dim[i - more] == 1 || x.dim[i - more] == out.dim[i];
            out.stride[i] = i < more || x.dim[i - more] != out.dim[i] ? 0 : x.stride[i - more];
        }
        if (!follows) {
            ft__graphfile_contiguous(&out);
            out.unordered = true;
        }
        bool indexed, overlaps;
        if (!overlapping(r, &overlaps, &indexed)) return;
        if (!overlaps) out.repeats = x.ref;
        out.ref = overlaps ? ft__overlap(b, x.ref, rows, cols, indexed) : ft__expand(b, x.ref, rows, cols);
    }
    ft__graphfile_give(r, 0, &out);
}

/* contiguous, copy. */
void ft__read_copy(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x, out;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    bool same = !strcmp(ft__graphfile_op(r), "contiguous");
    out = x;
    out.repeats = FT_NONE;
    if ((!same || json_object_get(r->at, "shape")) && !shaped(r, &x, &out)) return;
    double had = ft__graphfile_elements(&x), has = ft__graphfile_elements(&out);
    if (!counted(r, &x, &out, same ? had == has : has >= had)) return;
    if (same && ft__graphfile_in_order(&x)) { /* nothing to do but, perhaps, another shape */
        ft__graphfile_contiguous(&out);
        out.ref = ft__graphfile_seen(r, x.ref, &out);
    } else if (same) {
        out.ref = copied(r, at, &x, &out);
    } else {
        ft__graphfile_contiguous(&out);
        out.ref = ft__copy(b, at, x.ref, ft__graphfile_rows(out.dims, out.dim), out.dim[out.dims - 1]);
    }
    if (ft__graphfile_truth(r, "across", false) && out.ref != x.ref) ft__graphfile_walks_across(r, has);
    ft__graphfile_give(r, 0, &out);
}
