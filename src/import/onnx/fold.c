/* fold.c: arithmetic on small tensors that are known before the step runs: shapes, axes, scalars. Exporters write
 * Shape, Gather, Concat, Reshape where PyTorch computed with Python numbers; none of it is a kernel. */
#include <math.h>
#include <string.h>

#include "import/onnx/run.h"

bool ft__onnx_all_known(ft_onnx_run *r)
{
    for (int k = 0; k < r->at->in_count; k++) {
        const ft_onnx_item *x = ft__onnx_optional(r, k);
        if (x && (!x->known || x->kind == FT_ONNX_WEIGHT)) return false;
    }
    return true;
}

ft_onnx_number *ft__onnx_room(ft_onnx_run *r, ft_onnx_item *y)
{
    double count = ft__onnx_count(y);
    if (ft__onnx_failed(r) || count > FT_ONNX_KNOWN) return NULL;
    ft_onnx_number *known = ft__arena_array(r->b->g->arena, (size_t)count + 1, sizeof *known);
    if (!known) {
        ft__build_fail(r->b, FT_E_MEMORY, "out of memory");
        return NULL;
    }
    y->known = known;
    y->kind = FT_ONNX_FIXED;
    return known;
}

static ft_onnx_number whole(int64_t i) { return (ft_onnx_number){i, (double)i}; }

static ft_onnx_number real(double f)
{
    return (ft_onnx_number){isnan(f) ? 0 : f > 9e18 ? INT64_MAX : f < -9e18 ? INT64_MIN : (int64_t)f, f};
}

static ft_onnx_number of(bool floats, double f, uint64_t i) { return floats ? real(f) : whole((int64_t)i); }

static int64_t divided(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; }

static int64_t modulo(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    int64_t m = a % b;
    return m && (m < 0) != (b < 0) ? m + b : m; /* Python's, as the standard says */
}

/* One element; false for an operator that is not computed with. Whole numbers wrap, as they do in the standard. */
static bool compute(const char *op, bool floats, const ft_onnx_number *x, int count, ft_onnx_number *y)
{
    ft_onnx_number a = x[0], b = count > 1 ? x[1] : x[0];
    uint64_t ai = (uint64_t)a.i, bi = (uint64_t)b.i;
#define IF(name) if (!strcmp(op, name))
    IF("Add")
    {
        *y = of(floats, a.f + b.f, ai + bi);
        return count > 1;
    }
    IF("Sub")
    {
        *y = of(floats, a.f - b.f, ai - bi);
        return count > 1;
    }
    IF("Mul")
    {
        *y = of(floats, a.f * b.f, ai * bi);
        return count > 1;
    }
    IF("Div")
    {
        *y = floats ? real(a.f / b.f) : whole(divided(a.i, b.i));
        return count > 1;
    }
    IF("Mod")
    {
        *y = floats ? real(fmod(a.f, b.f)) : whole(modulo(a.i, b.i));
        return count > 1;
    }
    IF("Pow")
    {
        *y = real(pow(a.f, b.f));
        return count > 1;
    }
    IF("Equal")
    {
        *y = whole(floats ? fabs(a.f - b.f) <= 0 : a.i == b.i);
        return count > 1;
    }
    IF("Less")
    {
        *y = whole(floats ? a.f < b.f : a.i < b.i);
        return count > 1;
    }
    IF("LessOrEqual")
    {
        *y = whole(floats ? a.f <= b.f : a.i <= b.i);
        return count > 1;
    }
    IF("Greater")
    {
        *y = whole(floats ? a.f > b.f : a.i > b.i);
        return count > 1;
    }
    IF("GreaterOrEqual")
    {
        *y = whole(floats ? a.f >= b.f : a.i >= b.i);
        return count > 1;
    }
    IF("And")
    {
        *y = whole(a.i && b.i);
        return count > 1;
    }
    IF("Or")
    {
        *y = whole(a.i || b.i);
        return count > 1;
    }
    IF("Xor")
    {
        *y = whole(!a.i != !b.i);
        return count > 1;
    }
    IF("Where")
    {
        *y = count > 2 ? (a.i ? x[1] : x[2]) : a;
        return count > 2;
    }
    IF("Min")
    {
        *y = floats ? real(fmin(a.f, b.f)) : whole(a.i < b.i ? a.i : b.i);
        return count <= 2;
    }
    IF("Max")
    {
        *y = floats ? real(fmax(a.f, b.f)) : whole(a.i > b.i ? a.i : b.i);
        return count <= 2;
    }
    if (count != 1) return false;
    IF("Not")
    {
        *y = whole(!a.i);
        return true;
    }
    IF("Neg")
    {
        *y = of(floats, -a.f, 0 - ai);
        return true;
    }
    IF("Abs")
    {
        *y = of(floats, fabs(a.f), a.i < 0 ? 0 - ai : ai);
        return true;
    }
    IF("Sqrt")
    {
        *y = real(sqrt(a.f));
        return true;
    }
    IF("Reciprocal")
    {
        *y = real(1 / a.f);
        return true;
    }
    IF("Exp")
    {
        *y = real(exp(a.f));
        return true;
    }
    IF("Log")
    {
        *y = real(log(a.f));
        return true;
    }
    IF("Floor")
    {
        *y = real(floor(a.f));
        return true;
    }
    IF("Ceil")
    {
        *y = real(ceil(a.f));
        return true;
    }
    IF("Round")
    {
        *y = real(nearbyint(a.f));
        return true;
    }
    IF("Identity")
    {
        *y = a;
        return true;
    }
    IF("Sign")
    {
        *y = floats ? real((a.f > 0) - (a.f < 0)) : whole((a.i > 0) - (a.i < 0));
        return true;
    }
#undef IF
    return false;
}

size_t ft__onnx_met(const ft_onnx_item *x, const ft_onnx_item *y, size_t index)
{
    size_t at = 0, step = 1;
    for (int i = 1; i <= y->dims; i++) {
        size_t size = (size_t)y->dim[y->dims - i], here = size ? index % size : 0;
        index = size ? index / size : 0;
        if (i > x->dims) continue;
        size_t mine = (size_t)x->dim[x->dims - i];
        if (mine != 1) at += here * step;
        step *= mine;
    }
    return at;
}

bool ft__onnx_fold(ft_onnx_run *r, ft_onnx_item *y)
{
    ft_onnx_number x[3], probe;
    int count = r->at->in_count;
    if (!y || ft__onnx_failed(r) || count < 1 || count > 3 || !ft__onnx_all_known(r)) return false;
    const ft_onnx_item *in[3] = {0};
    for (int k = 0; k < count; k++)
        if (!(in[k] = ft__onnx_optional(r, k))) return false;
    bool floats = ft__onnx_type_floats(in[0]->type);
    memset(x, 0, sizeof x);
    if (*r->at->domain || !compute(r->at->op, floats, x, count, &probe)) return false;
    ft_onnx_number *out = ft__onnx_room(r, y);
    if (!out) return false;
    bool whole_result = !ft__onnx_type_floats(y->type);
    for (size_t i = 0; i < (size_t)ft__onnx_count(y); i++) {
        for (int k = 0; k < count; k++) x[k] = in[k]->known[ft__onnx_met(in[k], y, i)];
        compute(r->at->op, floats, x, count, &out[i]);
        if (whole_result) out[i].f = (double)out[i].i;
    }
    return true;
}
