/* moves.c: operators that change shapes and places. Most cost nothing; a copy is made where PyTorch would make
 * one: when axes are merged that do not lie behind each other in memory. */
#include <string.h>

#include "import/onnx/run.h"

/* -- views ----------------------------------------------------------------------------------------- */

/* Whether x can be seen as `dim` without a copy, and how its axes lie then. */
static bool regroup(const ft_onnx_item *x, int dims, const int64_t *dim, uint8_t *order)
{
    int place[FT_ONNX_DIMS] = {0}, first[FT_ONNX_DIMS], groups = 0, from[FT_ONNX_DIMS], to[FT_ONNX_DIMS], o = 0, n = 0;
    for (int i = 0, at = 0; i < x->dims; i++)
        if (x->dim[x->order[i]] != 1) place[x->order[i]] = at++;
    while (o < x->dims || n < dims) {
        while (o < x->dims && x->dim[o] == 1) o++;
        while (n < dims && dim[n] == 1) n++;
        if (o == x->dims || n == dims) break;
        double have = (double)x->dim[o], want = (double)dim[n];
        int last = o;
        first[groups] = place[o];
        from[groups] = n;
        o++;
        n++;
        while (have < want || want < have) {
            if (have < want) {
                while (o < x->dims && x->dim[o] == 1) o++;
                if (o == x->dims || x->gaps || place[o] != place[last] + 1) return false;
                last = o;
                have *= (double)x->dim[o++];
            } else {
                if (n == dims) return false;
                want *= (double)dim[n++];
            }
        }
        to[groups++] = n;
    }
    int count = 0;
    bool taken[FT_ONNX_DIMS] = {0};
    for (int place_at = 0; place_at < x->dims; place_at++)
        for (int g = 0; g < groups; g++)
            if (first[g] == place_at)
                for (int i = from[g]; i < to[g]; i++) {
                    order[count++] = (uint8_t)i;
                    taken[i] = true;
                }
    for (int i = 0; i < dims; i++)
        if (!taken[i]) order[count++] = (uint8_t)i;
    return true;
}

void ft__onnx_reshaped(ft_onnx_run *r, ft_onnx_item *x, int dims, const int64_t *dim)
{
    ft_onnx_item in = *x;
    uint8_t order[FT_ONNX_DIMS];
    ft_onnx_item *y = ft__onnx_result(r, 0, in.type, dims, dim);
    if (!y) return;
    if (ft__onnx_count(y) != ft__onnx_count(&in)) {
        ft__onnx_fail(r, FT_E_RANGE, "%.0f elements cannot be seen as %.0f", ft__onnx_count(&in), ft__onnx_count(y));
        return;
    }
    y->kind = in.kind;
    y->source = in.source;
    y->known = in.known;
    if (in.kind != FT_ONNX_MADE || ft__onnx_count(y) < 1) return;
    if (!regroup(&in, dims, dim, order)) {
        ft__onnx_dense(r, x);
        in = *x;
        for (int i = 0; i < dims; i++) order[i] = (uint8_t)i;
    }
    memcpy(y->order, order, (size_t)dims);
    y->gaps = in.gaps;
    ft__onnx_set(r, y, ft__onnx_ref(r, x));
}

static void build_reshape(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *shape = ft__onnx_operand(r, 1);
    int64_t dim[FT_ONNX_KNOWN];
    int dims, open = -1;
    if (!x || !shape || !ft__onnx_numbers(r, shape, "the shape", &dims, dim)) return;
    bool zeros = ft__onnx_int(r->at, "allowzero", 0) != 0;
    double known = 1, all = ft__onnx_count(x);
    for (int i = 0; i < dims && i < FT_ONNX_DIMS; i++) {
        if (dim[i] == 0 && !zeros && i < x->dims) dim[i] = x->dim[i];
        if (dim[i] == -1 && open < 0)
            open = i;
        else
            known *= (double)dim[i];
    }
    if (open >= 0) dim[open] = known > 0 ? (int64_t)(all / known) : 0;
    ft__onnx_reshaped(r, x, dims, dim);
}

static void build_flatten(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    if (!x) return;
    int64_t given = ft__onnx_int(r->at, "axis", 1), dim[2] = {1, 1};
    int axis = given == x->dims ? x->dims : ft__onnx_axis(r, given, x->dims);
    if (axis < 0) return;
    for (int i = 0; i < x->dims; i++) dim[i >= axis] *= x->dim[i];
    ft__onnx_reshaped(r, x, 2, dim);
}

static void build_squeeze(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    int axes[FT_ONNX_DIMS], dims = 0, count = x ? ft__onnx_axes(r, 1, x->dims, axes) : -1;
    int64_t dim[FT_ONNX_DIMS];
    bool gone[FT_ONNX_DIMS] = {0};
    if (count < 0) return;
    for (int i = 0; i < x->dims; i++) gone[i] = !count && x->dim[i] == 1;
    for (int i = 0; i < count; i++) {
        gone[axes[i]] = true;
        if (x->dim[axes[i]] == 1) continue;
        ft__onnx_fail(r, FT_E_RANGE, "axis %d has %lld elements and cannot go", axes[i], (long long)x->dim[axes[i]]);
        return;
    }
    for (int i = 0; i < x->dims; i++)
        if (!gone[i]) dim[dims++] = x->dim[i];
    ft__onnx_reshaped(r, x, dims, dim);
}

static void build_unsqueeze(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *given = ft__onnx_optional(r, 1);
    int64_t raw[FT_ONNX_KNOWN], dim[FT_ONNX_DIMS];
    int extra = given ? (int)ft__onnx_count(given) : ft__onnx_ints(r->at, "axes", FT_ONNX_DIMS, raw),
        axes[FT_ONNX_DIMS];
    bool fresh[FT_ONNX_DIMS] = {0};
    if (!x) return;
    int dims = x->dims + extra;
    if (dims > FT_ONNX_DIMS) {
        ft__onnx_fail(r, FT_E_UNSUPPORTED, "a result of %d axes: at most %d are read", dims, FT_ONNX_DIMS);
        return;
    }
    int count = ft__onnx_axes(r, 1, dims, axes);
    if (count < 0) return;
    for (int i = 0; i < count; i++) fresh[axes[i]] = true;
    for (int i = 0, from = 0; i < dims; i++) dim[i] = fresh[i] ? 1 : x->dim[from++];
    ft__onnx_reshaped(r, x, dims, dim);
}

static void permute_known(ft_onnx_run *r, const ft_onnx_item *x, const int *perm, ft_onnx_item *y)
{
    ft_onnx_number *out = ft__onnx_room(r, y);
    size_t count = (size_t)ft__onnx_count(y), step[FT_ONNX_DIMS], width = 1;
    for (int i = x->dims - 1; i >= 0; i--) {
        step[i] = width;
        width *= (size_t)x->dim[i];
    }
    for (size_t i = 0; out && i < count; i++) {
        size_t rest = i, at = 0;
        for (int axis = y->dims - 1; axis >= 0; axis--) {
            at += rest % (size_t)y->dim[axis] * step[perm[axis]];
            rest /= (size_t)y->dim[axis];
        }
        out[i] = x->known[at];
    }
}

static void build_transpose(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    int64_t raw[FT_ONNX_DIMS], dim[FT_ONNX_DIMS];
    int perm[FT_ONNX_DIMS], count = ft__onnx_ints(r->at, "perm", FT_ONNX_DIMS, raw);
    bool seen[FT_ONNX_DIMS] = {0};
    if (!x) return;
    if (count && count != x->dims) {
        ft__onnx_fail(r, FT_E_RANGE, "\"perm\" has %d axes, the tensor %d", count, x->dims);
        return;
    }
    for (int i = 0; i < x->dims; i++) {
        perm[i] = count ? ft__onnx_axis(r, raw[i], x->dims) : x->dims - 1 - i;
        if (perm[i] < 0) return;
        if (seen[perm[i]]) {
            ft__onnx_fail(r, FT_E_RANGE, "\"perm\" names axis %d twice", perm[i]);
            return;
        }
        seen[perm[i]] = true;
        dim[i] = x->dim[perm[i]];
    }
    ft_onnx_item in = *x, *y = ft__onnx_result(r, 0, in.type, in.dims, dim);
    if (!y) return;
    y->kind = in.kind;
    y->source = in.source;
    if (in.known && ft__onnx_count(y) > 0) permute_known(r, &in, perm, y);
    y->kind = in.kind;
    if (in.kind != FT_ONNX_MADE || ft__onnx_count(y) < 1) return;
    for (int at = 0; at < in.dims; at++)
        for (int i = 0; i < in.dims; i++)
            if (perm[i] == in.order[at]) y->order[at] = (uint8_t)i;
    y->gaps = in.gaps;
    ft__onnx_set(r, y, ft__onnx_ref(r, x));
}

const ft_onnx_rule ft__onnx_move_rules[] = {
    {"Reshape", 2, build_reshape, ""},     {"Flatten", 1, build_flatten, ""},     {"Squeeze", 1, build_squeeze, ""},
    {"Unsqueeze", 1, build_unsqueeze, ""}, {"Transpose", 1, build_transpose, ""}, {0},
};
