/* slices.c: parts of tensors that are views: slices and splits. */
#include <string.h>

#include "import/onnx/run.h"

/* Elements of x along `axis` from `start`, `count` of them, each `step` further; into contents that are known. */
static void slice_known(ft_onnx_run *r, const ft_onnx_item *x, int axis, int64_t start, int64_t step, ft_onnx_item *y)
{
    ft_onnx_number *out = ft__onnx_room(r, y);
    size_t outer = 1, wide = 1, at = 0;
    for (int i = 0; i < axis; i++) outer *= (size_t)x->dim[i];
    for (int i = axis + 1; i < x->dims; i++) wide *= (size_t)x->dim[i];
    for (size_t o = 0; out && o < outer; o++)
        for (int64_t i = 0; i < y->dim[axis]; i++, at += wide)
            memcpy(out + at, x->known + (o * (size_t)x->dim[axis] + (size_t)(start + i * step)) * wide,
                   wide * sizeof *out);
}

/* Nothing lies between the elements of a part of the outermost axis. */
bool ft__onnx_outermost(const ft_onnx_item *x, int axis)
{
    for (int i = 0; i < x->dims; i++) {
        if (x->order[i] == axis) return true;
        if (x->dim[x->order[i]] != 1) return false;
    }
    return false;
}

/* y, a part of x with the same axes, as a view. */
void ft__onnx_part_of(ft_onnx_run *r, ft_onnx_item *x, ft_onnx_item *y, bool together)
{
    int64_t rows, cols;
    bool strided;
    if (ft__onnx_failed(r) || ft__onnx_count(y) < 1) return;
    memcpy(y->order, x->order, sizeof y->order);
    y->gaps = x->gaps || !together;
    ft_ref from = ft__onnx_ref(r, x);
    ft__onnx_extent(y, &rows, &cols, &strided);
    y->ref = ft__slice(r->b, from, rows, cols);
    if (y->ref == FT_NONE) return;
    ft_tensor *t = &r->b->g->tensors[y->ref];
    t->strided = strided;
    t->gaps = y->gaps;
}

/* -- Slice ----------------------------------------------------------------------------------------- */

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* How many elements start:end:step has, and where the first is. */
static int64_t span(int64_t size, int64_t *start, int64_t end, int64_t step)
{
    if (*start < 0 && *start > -((int64_t)1 << 41)) *start += size;
    if (end < 0 && end > -((int64_t)1 << 41)) end += size;
    if (step > 0) {
        *start = clamp(*start, 0, size);
        end = clamp(end, 0, size);
        return end > *start ? (end - *start - 1) / step + 1 : 0;
    }
    *start = clamp(*start, 0, size - 1);
    end = clamp(end, -1, size - 1);
    return *start > end && size > 0 ? (*start - end - 1) / -step + 1 : 0;
}

static void build_slice(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *from = ft__onnx_operand(r, 1), *to = ft__onnx_operand(r, 2);
    ft_onnx_item *by = ft__onnx_optional(r, 4);
    int64_t start[FT_ONNX_KNOWN], end[FT_ONNX_KNOWN], step[FT_ONNX_KNOWN], dim[FT_ONNX_DIMS];
    int count, ends, steps = 0, axes[FT_ONNX_DIMS], given = x ? ft__onnx_axes(r, 3, x->dims, axes) : -1;
    if (given < 0 || !from || !to || !ft__onnx_numbers(r, from, "where it starts", &count, start) ||
        !ft__onnx_numbers(r, to, "where it ends", &ends, end) ||
        (by && !ft__onnx_numbers(r, by, "its steps", &steps, step)))
        return;
    if (count != ends || count > x->dims || (given && given != count) || (by && steps != count)) {
        ft__onnx_fail(r, FT_E_RANGE, "%d starts, %d ends, %d axes and %d steps do not go together", count, ends, given,
                      steps);
        return;
    }
    ft_onnx_item now = *x, part = now;
    bool together = true, whole = true;
    memcpy(dim, now.dim, sizeof dim);
    for (int i = 0; i < count; i++) {
        int axis = given ? axes[i] : i;
        int64_t jump = by ? step[i] : 1;
        if (jump == 0 || jump == INT64_MIN) {
            ft__onnx_fail(r, FT_E_RANGE, "a step of %lld", (long long)jump);
            return;
        }
        dim[axis] = span(now.dim[axis], &start[i], end[i], jump);
        whole &= dim[axis] == now.dim[axis] && jump > 0;
        together &= dim[axis] == now.dim[axis] || (ft__onnx_outermost(&now, axis) && jump == 1);
        if (jump < 0) together = false;
        if (part.known && part.kind == FT_ONNX_FIXED) {
            ft_onnx_item next = part;
            next.dim[axis] = dim[axis];
            slice_known(r, &part, axis, start[i], jump, &next);
            part = next;
        }
    }
    if (whole && ft__onnx_count(x) > 0) {
        ft__onnx_pass(r, 0, x);
        return;
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, now.type, now.dims, dim);
    if (!y) return;
    if (part.known && part.kind == FT_ONNX_FIXED) {
        y->known = part.known;
        y->kind = FT_ONNX_FIXED;
        return;
    }
    ft__onnx_part_of(r, x, y, together);
}

/* -- Split ----------------------------------------------------------------------------------------- */

static void build_split(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *sizes = ft__onnx_optional(r, 1);
    int64_t size[FT_ONNX_KNOWN], dim[FT_ONNX_DIMS], start = 0, cols[FT_NODE_OUTPUTS];
    int count = r->at->out_count, given = 0;
    if (!x) return;
    int axis = ft__onnx_axis(r, ft__onnx_int(r->at, "axis", 0), x->dims);
    if (axis < 0 || (sizes && !ft__onnx_numbers(r, sizes, "the sizes", &given, size))) return;
    if (count < 1 || count > FT_ONNX_KNOWN || (sizes && given != count)) {
        ft__onnx_fail(r, FT_E_RANGE, "%d sizes for %d results", given, count);
        return;
    }
    int64_t each = (x->dim[axis] + count - 1) / count, sum = 0;
    for (int i = 0; i < count; i++) {
        if (!sizes) size[i] = i + 1 < count ? each : x->dim[axis] - each * (count - 1);
        sum += size[i] >= 0 && size[i] <= x->dim[axis] ? size[i] : x->dim[axis] + 1;
    }
    if (sum != x->dim[axis]) {
        ft__onnx_fail(r, FT_E_RANGE, "parts of %lld elements together, of an axis of %lld", (long long)sum,
                      (long long)x->dim[axis]);
        return;
    }
    ft_onnx_item in = *x;
    bool last = axis == in.dims - 1 && in.order[in.dims - 1] == axis && count <= FT_NODE_OUTPUTS && !in.gaps;
    bool fixed = in.known && in.kind == FT_ONNX_FIXED, empty = false;
    ft_ref parts[FT_NODE_OUTPUTS];
    for (int i = 0; i < count; i++) empty |= size[i] < 1;
    last &= !fixed && !empty && ft__onnx_count(&in) > 0;
    for (int i = 0; i < count && i < FT_NODE_OUTPUTS; i++) cols[i] = size[i];
    if (last) ft__split(r->b, ft__onnx_ref(r, x), count, cols, parts);
    memcpy(dim, in.dim, sizeof dim);
    for (int i = 0; i < count; i++) {
        dim[axis] = size[i];
        ft_onnx_item *y = ft__onnx_result(r, i, in.type, in.dims, dim);
        if (!y) return;
        if (fixed) {
            slice_known(r, &in, axis, start, 1, y);
        } else if (last) {
            memcpy(y->order, in.order, sizeof y->order);
            y->gaps = true;
            y->ref = parts[i];
        } else if (ft__onnx_has(r, i)) {
            ft__onnx_part_of(r, x, y, ft__onnx_outermost(&in, axis));
        }
        start += size[i];
    }
}

const ft_onnx_rule ft__onnx_slice_rules[] = {
    {"Slice", 3, build_slice, ""},
    {"Split", 1, build_split, ""},
    {0},
};
