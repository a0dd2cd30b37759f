/* pointwise.c: operators that work element by element. */
#include <string.h>

#include "import/onnx/run.h"

static bool raised_by_autocast(const char *op)
{
    static const char *const names[] = {"pow", "powu", "exp", "log", "rsqrt", "softplus"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], op)) return true;
    return false;
}

/* A channel's bias beside images that lie channels-last is a row. */
static ft_ref beside(ft_onnx_run *r, ft_onnx_item *x, const ft_onnx_item *y)
{
    int64_t rows, cols;
    bool strided;
    ft__onnx_extent(y, &rows, &cols, &strided);
    double count = ft__onnx_count(x);
    bool channels = !ft__onnx_plain(y) && !strided && x->dims >= y->dims - 1 && count == (double)cols && cols > 1 &&
                    x->dim[x->dims - (y->dims - 1)] == cols;
    return channels ? ft__onnx_ref_as(r, x, 1, cols) : ft__onnx_ref(r, x);
}

void ft__onnx_pointwise(ft_onnx_run *r, const char *op, int count, ft_onnx_item *const *x, ft_onnx_item *y)
{
    ft_build *b = r->b;
    double bytes;
    int64_t rows, cols;
    bool strided;
    if (ft__onnx_failed(r) || !y || ft__onnx_count(y) < 1) return;
    for (int i = 0; i < count; i++) /* the order of who has the result's shape */
        if (ft__onnx_same(x[i], y->dims, y->dim) && x[i]->kind == FT_ONNX_MADE) {
            memcpy(y->order, x[i]->order, sizeof y->order);
            break;
        }
    ft__onnx_extent(y, &rows, &cols, &strided);
    ft_dtype dtype = ft__onnx_dtype(r, y->type, &bytes);
    bool floats = ft__onnx_type_floats(y->type);
    ft_node n = ft__node_of(FT_DO_POINTWISE, r->label);
    for (int i = 0; i < count; i++) {
        ft_ref ref = beside(r, x[i], y);
        if (b->autocast && floats && raised_by_autocast(op) && ft__onnx_type_floats(x[i]->type))
            ref = ft__cast(b, r->label, ref, FT_FP32);
        const ft_tensor *t = ft__tensor_of(b, ref);
        /* Values flow in the format that they have become, which autocast may have lowered. */
        if (floats && ft__onnx_type_floats(x[i]->type) && x[i]->type == y->type && i == 0) {
            dtype = t->dtype;
            bytes = ft_dtype_bytes(dtype);
        } else if (floats && x[i]->type == y->type && ft_dtype_bytes(t->dtype) > bytes) {
            dtype = t->dtype;
            bytes = ft_dtype_bytes(dtype);
        }
        ft__node_in(&n, ref);
    }
    ft_ref out = ft__node_out(b, &n, rows, cols, dtype, bytes);
    if (out == FT_NONE) return;
    ft_tensor *made = &b->g->tensors[out];
    made->strided = made->permuted = strided;
    if (!floats) made->trained = false;
    n.op = ft__pointwise_kernel(b->g, op, n.in, n.in_count, made);
    ft__emit(b, &n);
    y->ref = out;
}

/* The kernel for a binary operator whose other operand is one number. */
static const char *with_number(const char *op)
{
    static const char *const names[][2] = {
        {"add", "addu"}, {"sub", "addu"}, {"mul", "mulu"}, {"div", "divu"}, {"pow", "powu"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(op, names[i][0])) return names[i][1];
    return op;
}

static bool one_number(const ft_onnx_item *x)
{
    return x->kind == FT_ONNX_FIXED && x->ref == FT_NONE && ft__onnx_count(x) == 1;
}

static int result_type(const ft_onnx_run *r, const ft_onnx_item *x)
{
    static const char *const truths[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And",
                                         "Or",    "Xor",  "Not",         "IsNaN",   "IsInf"};
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
        if (!strcmp(r->at->op, truths[i])) return FT_ONNX_BOOL;
    return x->type;
}

/* Any number of operands that are broadcast against each other. */
static void build_broadcast(ft_onnx_run *r)
{
    ft_onnx_item *x[FT_NODE_INPUTS] = {NULL};
    int64_t dim[FT_ONNX_DIMS];
    int count = 0;
    if (r->at->in_count < 1 || r->at->in_count > FT_NODE_INPUTS) {
        ft__onnx_fail(r, FT_E_UNSUPPORTED, "%d operands: 1 to %d are read", (int)r->at->in_count, FT_NODE_INPUTS);
        return;
    }
    for (int k = 0; k < r->at->in_count; k++)
        if (!(x[count++] = ft__onnx_operand(r, k))) return;
    int dims = ft__onnx_broadcast(r, count, x, dim);
    const ft_onnx_item *typed = !strcmp(r->at->op, "Where") && count > 1 ? x[1] : x[0];
    /* Behind a product that has added it already. */
    if (r->at->absorbed && count == 2 && (x[0]->biased || x[1]->biased)) {
        ft__onnx_pass(r, 0, x[0]->biased ? x[0] : x[1]);
        return;
    }
    if (dims < 0) return;
    ft_onnx_item *y = ft__onnx_result(r, 0, result_type(r, typed), dims, dim);
    if (!y || ft__onnx_fold(r, y)) return;
    const char *op = r->at->rule->word;
    int kept = 0;
    for (int k = 0; k < count; k++)
        if (!one_number(x[k])) x[kept++] = x[k];
    if (kept == 1 && count == 2) op = with_number(op);
    if (!kept) kept = 1;
    /* The chosen values first, then the choice: that is how its gradient reads them. */
    if (!strcmp(r->at->op, "Where") && kept > 1 && x[0]->type == FT_ONNX_BOOL) {
        ft_onnx_item *choice = x[0];
        memmove(x, x + 1, (size_t)(kept - 1) * sizeof *x);
        x[kept - 1] = choice;
    }
    if (kept == 2 && !strcmp(r->at->op, "Mul") && (x[0]->half || x[1]->half)) { /* x * sigmoid(x) */
        ft__onnx_pointwise(r, "silu", 1, x, y);
        return;
    }
    ft_onnx_item store[2];
    ft__onnx_raise(r, kept, x, store);
    ft__onnx_pointwise(r, op, kept, x, y);
    ft__onnx_lower(r, kept, x, store, y);
}

static void build_unary(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    ft_onnx_item *y = x ? ft__onnx_like(r, 0, x, result_type(r, x)) : NULL;
    if (y && r->at->in_count == 1 && ft__onnx_fold(r, y)) return;
    if (!y || ft__onnx_half_of_two(r, x)) return;
    bool root = x->half && !strcmp(r->at->op, "Reciprocal");
    ft__onnx_pointwise(r, root ? "rsqrt" : r->at->rule->word, 1, &x, y);
}

static void build_clip(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    ft_onnx_item *y = x ? ft__onnx_like(r, 0, x, x->type) : NULL;
    bool both = ft__onnx_optional(r, 1) && ft__onnx_optional(r, 2);
    if (y) ft__onnx_pointwise(r, both ? "clamp" : "clamp_max", 1, &x, y);
}

static void build_cast(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *like = ft__onnx_optional(r, 1);
    if (!x) return;
    int to = like ? like->type : (int)ft__onnx_int(r->at, "to", 0);
    double from_bytes, to_bytes;
    if (to <= 0 || to >= FT_ONNX_TYPES || to == FT_ONNX_STRING) {
        ft__onnx_fail(r, FT_E_UNSUPPORTED, "a cast to type %d, which has no size", to);
        return;
    }
    if (x->kind == FT_ONNX_WEIGHT) { /* done once, before the step */
        ft__onnx_pass(r, 0, x);
        return;
    }
    ft_onnx_item *y = ft__onnx_like(r, 0, x, to);
    if (!y) return;
    if (x->known) {
        ft_onnx_number *out = ft__onnx_room(r, y);
        for (size_t i = 0; out && i < (size_t)ft__onnx_count(y); i++) {
            out[i] = x->known[i];
            if (to == FT_ONNX_BOOL) out[i].i = x->known[i].i || x->known[i].f < 0 || x->known[i].f > 0;
            if (!ft__onnx_type_floats(to)) out[i].f = (double)out[i].i;
        }
        if (out || ft__onnx_failed(r)) return;
    }
    ft_dtype from = ft__onnx_dtype(r, x->type, &from_bytes), into = ft__onnx_dtype(r, to, &to_bytes);
    bool floats = ft__onnx_type_floats(x->type) && ft__onnx_type_floats(to);
    if ((floats && from == into) || (!floats && x->type == to)) { /* the request's dtype makes them one */
        ft_onnx_item same = *x;
        same.type = to;
        ft__onnx_pass(r, 0, &same);
        return;
    }
    if (!floats) {
        ft__onnx_pointwise(r, "copy", 1, &x, y);
        return;
    }
    memcpy(y->order, x->order, sizeof y->order);
    y->gaps = false;
    if (ft__onnx_count(y) < 1) return;
    ft__onnx_set(r, y, ft__cast(r->b, r->label, ft__onnx_ref(r, x), into));
}

static void build_identity(ft_onnx_run *r)
{
    const ft_onnx_item *x = ft__onnx_operand(r, 0);
    if (x) ft__onnx_pass(r, 0, x);
}

static void build_dropout(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    const ft_onnx_item *p = ft__onnx_optional(r, 1);
    double ratio = p && p->known && ft__onnx_count(p) == 1 ? p->known[0].f : 0.5;
    if (!x) return;
    ft_onnx_item in = *x;
    if (ft__onnx_has(r, 1)) {
        ft_onnx_item *mask = ft__onnx_result(r, 1, FT_ONNX_BOOL, in.dims, in.dim);
        if (mask) mask->kind = FT_ONNX_FIXED;
    }
    if (!(ratio > 0 && ratio < 1) || !ft__onnx_type_floats(in.type) || in.kind != FT_ONNX_MADE || in.ref == FT_NONE) {
        ft__onnx_pass(r, 0, &in);
        return;
    }
    ft_onnx_item *y = ft__onnx_like(r, 0, &in, in.type);
    if (y) ft__onnx_set(r, y, ft__dropout(r->b, r->label, in.ref, ratio));
}

const ft_onnx_rule ft__onnx_pointwise_rules[] = {
    {"Add", 2, build_broadcast, "add"},
    {"Sub", 2, build_broadcast, "sub"},
    {"Mul", 2, build_broadcast, "mul"},
    {"Div", 2, build_broadcast, "div"},
    {"Pow", 2, build_broadcast, "pow"},
    {"Mod", 2, build_broadcast, "mod"},
    {"Min", 1, build_broadcast, "minimum"},
    {"Max", 1, build_broadcast, "maximum"},
    {"Sum", 1, build_broadcast, "add"},
    {"Mean", 1, build_broadcast, "add"},
    {"Where", 3, build_broadcast, "where"},
    {"PRelu", 2, build_broadcast, "prelu"},
    {"Equal", 2, build_broadcast, "compare"},
    {"Less", 2, build_broadcast, "compare"},
    {"LessOrEqual", 2, build_broadcast, "compare"},
    {"Greater", 2, build_broadcast, "compare"},
    {"GreaterOrEqual", 2, build_broadcast, "compare"},
    {"And", 2, build_broadcast, "logical"},
    {"Or", 2, build_broadcast, "logical"},
    {"Xor", 2, build_broadcast, "logical"},
    {"BitwiseAnd", 2, build_broadcast, "logical"},
    {"BitwiseOr", 2, build_broadcast, "logical"},
    {"BitwiseXor", 2, build_broadcast, "logical"},
    {"BitShift", 2, build_broadcast, "logical"},
    {"Not", 1, build_unary, "logical"},
    {"BitwiseNot", 1, build_unary, "logical"},
    {"IsNaN", 1, build_unary, "compare"},
    {"IsInf", 1, build_unary, "compare"},
    {"Abs", 1, build_unary, "abs"},
    {"Acos", 1, build_unary, "cos"},
    {"Acosh", 1, build_unary, "cos"},
    {"Asin", 1, build_unary, "sin"},
    {"Asinh", 1, build_unary, "sin"},
    {"Atan", 1, build_unary, "sin"},
    {"Atanh", 1, build_unary, "sin"},
    {"Ceil", 1, build_unary, "ceil"},
    {"Celu", 1, build_unary, "exp"},
    {"Cos", 1, build_unary, "cos"},
    {"Cosh", 1, build_unary, "exp"},
    {"Elu", 1, build_unary, "exp"},
    {"Erf", 1, build_unary, "tanh"},
    {"Exp", 1, build_unary, "exp"},
    {"Floor", 1, build_unary, "floor"},
    {"Gelu", 1, build_unary, "gelu"},
    {"HardSigmoid", 1, build_unary, "hardsigmoid"},
    {"HardSwish", 1, build_unary, "hardswish"},
    {"LeakyRelu", 1, build_unary, "relu"},
    {"Log", 1, build_unary, "log"},
    {"Mish", 1, build_unary, "silu"},
    {"Neg", 1, build_unary, "neg"},
    {"Reciprocal", 1, build_unary, "reciprocal"},
    {"Relu", 1, build_unary, "relu"},
    {"Round", 1, build_unary, "round"},
    {"Selu", 1, build_unary, "exp"},
    {"Shrink", 1, build_unary, "relu"},
    {"Sigmoid", 1, build_unary, "sigmoid"},
    {"Sign", 1, build_unary, "sign"},
    {"Sin", 1, build_unary, "sin"},
    {"Sinh", 1, build_unary, "exp"},
    {"Softplus", 1, build_unary, "softplus"},
    {"Softsign", 1, build_unary, "sigmoid"},
    {"Sqrt", 1, build_unary, "sqrt"},
    {"Swish", 1, build_unary, "silu"},
    {"Tan", 1, build_unary, "sin"},
    {"Tanh", 1, build_unary, "tanh"},
    {"ThresholdedRelu", 1, build_unary, "relu"},
    {"Clip", 1, build_clip, ""},
    {"Cast", 1, build_cast, ""},
    {"CastLike", 2, build_cast, ""},
    {"Identity", 1, build_identity, ""},
    {"Dropout", 1, build_dropout, ""},
    {0},
};
