/* fold.c: arithmetic on small tensors that are known before the step runs: shapes, axes, scalars. Exporters write
 * Shape, Gather, Concat, Reshape where PyTorch computed with Python numbers; none of it is a kernel. */
#include <math.h>
#include <string.h>

#include "import/onnx/run.h"

/* Every operand, and none is a weight. */
static bool all_known(ft_onnx_run *r)
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
    return (ft_onnx_number){isnan(f) ? 0 : f >= 0x1p63 ? INT64_MAX : f < -0x1p63 ? INT64_MIN : (int64_t)f, f};
}

static ft_onnx_number of(bool floats, double f, uint64_t i) { return floats ? real(f) : whole((int64_t)i); }

static int64_t divided(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; }

static int64_t modulo(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    int64_t m = a % b;
    return m && (m < 0) != (b < 0) ? m + b : m; /* Python's, as the standard says */
}

/* One element of each operator, of its operands' elements. Whole numbers wrap, as they do in the standard; `floats`:
 * the first operand has a floating type. */
typedef ft_onnx_number number;
#define ELEMENT(name, value)                                      \
    static number name(number a, number b, number c, bool floats) \
    {                                                             \
        (void)a, (void)b, (void)c, (void)floats;                  \
        return value;                                             \
    }
#define BITS(k) ((uint64_t)(k).i)
#define COMPARED(op) whole(floats ? a.f op b.f : a.i op b.i)
ELEMENT(add, of(floats, a.f + b.f, BITS(a) + BITS(b)))
ELEMENT(sub, of(floats, a.f - b.f, BITS(a) - BITS(b)))
/* clang-format off: it takes the product for a declaration */
ELEMENT(mul, of(floats, a.f *b.f, BITS(a) * BITS(b)))
/* clang-format on */
ELEMENT(quotient, floats ? real(a.f / b.f) : whole(divided(a.i, b.i)))
ELEMENT(rest, floats ? real(fmod(a.f, b.f)) : whole(modulo(a.i, b.i)))
ELEMENT(power, real(pow(a.f, b.f)))
ELEMENT(equal, whole(floats ? fabs(a.f - b.f) <= 0 : a.i == b.i))
ELEMENT(less, COMPARED(<))
ELEMENT(less_or_equal, COMPARED(<=))
ELEMENT(greater, COMPARED(>))
ELEMENT(greater_or_equal, COMPARED(>=))
ELEMENT(both, whole(a.i != 0 && b.i != 0))
ELEMENT(either, whole(a.i != 0 || b.i != 0))
ELEMENT(one_of, whole(!a.i != !b.i))
ELEMENT(where, a.i ? b : c)
ELEMENT(least, floats ? real(fmin(a.f, b.f)) : whole(a.i < b.i ? a.i : b.i))
ELEMENT(most, floats ? real(fmax(a.f, b.f)) : whole(a.i > b.i ? a.i : b.i))
ELEMENT(negated, whole(!a.i))
ELEMENT(negative, of(floats, -a.f, 0 - BITS(a)))
ELEMENT(absolute, of(floats, fabs(a.f), a.i < 0 ? 0 - BITS(a) : BITS(a)))
ELEMENT(root, real(sqrt(a.f)))
ELEMENT(reciprocal, real(1 / a.f))
ELEMENT(exponential, real(exp(a.f)))
ELEMENT(logarithm, real(log(a.f)))
ELEMENT(lower, real(floor(a.f)))
ELEMENT(upper, real(ceil(a.f)))
ELEMENT(rounded, real(nearbyint(a.f)))
ELEMENT(same, a)
ELEMENT(sign, floats ? real((a.f > 0) - (a.f < 0)) : whole((a.i > 0) - (a.i < 0)))
#undef COMPARED
#undef BITS
#undef ELEMENT

typedef struct element_op {
    const char *name;
    int fewest; /* operands; Min and Max of one are that one */
    int most;
    number (*of)(number a, number b, number c, bool floats);
} element_op;

static const element_op ELEMENT_OPS[] = {
    {"Add", 2, 2, add},
    {"Sub", 2, 2, sub},
    {"Mul", 2, 2, mul},
    {"Div", 2, 2, quotient},
    {"Mod", 2, 2, rest},
    {"Pow", 2, 2, power},
    {"Equal", 2, 2, equal},
    {"Less", 2, 2, less},
    {"LessOrEqual", 2, 2, less_or_equal},
    {"Greater", 2, 2, greater},
    {"GreaterOrEqual", 2, 2, greater_or_equal},
    {"And", 2, 2, both},
    {"Or", 2, 2, either},
    {"Xor", 2, 2, one_of},
    {"Where", 3, 3, where},
    {"Min", 1, 2, least},
    {"Max", 1, 2, most},
    {"Not", 1, 1, negated},
    {"Neg", 1, 1, negative},
    {"Abs", 1, 1, absolute},
    {"Sqrt", 1, 1, root},
    {"Reciprocal", 1, 1, reciprocal},
    {"Exp", 1, 1, exponential},
    {"Log", 1, 1, logarithm},
    {"Floor", 1, 1, lower},
    {"Ceil", 1, 1, upper},
    {"Round", 1, 1, rounded},
    {"Identity", 1, 1, same},
    {"Sign", 1, 1, sign},
};

/* NULL for an operator that is not computed with. */
static const element_op *element_op_of(const char *name, int count)
{
    for (size_t i = 0; i < sizeof ELEMENT_OPS / sizeof *ELEMENT_OPS; i++)
        if (!strcmp(ELEMENT_OPS[i].name, name))
            return count >= ELEMENT_OPS[i].fewest && count <= ELEMENT_OPS[i].most ? &ELEMENT_OPS[i] : NULL;
    return NULL;
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
    int count = r->at->in_count;
    if (!y || ft__onnx_failed(r) || count < 1 || count > 3 || !all_known(r)) return false;
    const ft_onnx_item *in[3] = {0};
    for (int k = 0; k < count; k++)
        if (!(in[k] = ft__onnx_optional(r, k))) return false;
    const element_op *op = *r->at->domain ? NULL : element_op_of(r->at->op, count);
    ft_onnx_number *out = op ? ft__onnx_room(r, y) : NULL;
    if (!out) return false;
    bool floats = ft__onnx_type_floats(in[0]->type), whole_result = !ft__onnx_type_floats(y->type);
    for (size_t i = 0; i < (size_t)ft__onnx_count(y); i++) {
        ft_onnx_number x[3];
        for (int k = 0; k < 3; k++) x[k] = k < count ? in[k]->known[ft__onnx_met(in[k], y, i)] : x[0];
        out[i] = op->of(x[0], x[1], x[2], floats);
        if (whole_result) out[i].f = (double)out[i].i;
    }
    return true;
}
