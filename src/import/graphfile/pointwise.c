/* pointwise.c: operators element by element, casts, dropout. */
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"

/* Names that outlive the file. What the result is: as its operands, true or false, or a step without gradient. */
enum { SAME, TRUTH, STEP };
static const struct {
    const char *op;
    int least, most, kind;
} points[] = {
    {"add", 2, 2, SAME},          {"sub", 2, 2, SAME},          {"mul", 2, 2, SAME},
    {"div", 2, 2, SAME},          {"pow", 1, 2, SAME},          {"maximum", 2, 2, SAME},
    {"minimum", 2, 2, SAME},      {"fmod", 2, 2, SAME},         {"remainder", 2, 2, SAME},
    {"floor_divide", 2, 2, STEP}, {"atan2", 2, 2, SAME},        {"where", 2, 3, SAME},
    {"masked_fill", 2, 2, SAME},  {"addcmul", 3, 3, SAME},      {"addcdiv", 3, 3, SAME},
    {"lerp", 3, 3, SAME},         {"eq", 1, 2, TRUTH},          {"ne", 1, 2, TRUTH},
    {"lt", 1, 2, TRUTH},          {"le", 1, 2, TRUTH},          {"gt", 1, 2, TRUTH},
    {"ge", 1, 2, TRUTH},          {"logical_and", 2, 2, TRUTH}, {"logical_or", 2, 2, TRUTH},
    {"logical_xor", 2, 2, TRUTH}, {"logical_not", 1, 1, TRUTH}, {"bitwise_and", 2, 2, SAME},
    {"bitwise_or", 2, 2, SAME},   {"bitwise_xor", 2, 2, SAME},  {"bitwise_not", 1, 1, SAME},
    {"isnan", 1, 1, TRUTH},       {"isinf", 1, 1, TRUTH},       {"isfinite", 1, 1, TRUTH},
    {"relu", 1, 1, SAME},         {"gelu", 1, 1, SAME},         {"silu", 1, 1, SAME},
    {"tanh", 1, 1, SAME},         {"sigmoid", 1, 1, SAME},      {"exp", 1, 1, SAME},
    {"expm1", 1, 1, SAME},        {"log", 1, 1, SAME},          {"log2", 1, 1, SAME},
    {"log1p", 1, 1, SAME},        {"cos", 1, 1, SAME},          {"sin", 1, 1, SAME},
    {"tan", 1, 1, SAME},          {"rsqrt", 1, 1, SAME},        {"sqrt", 1, 1, SAME},
    {"neg", 1, 1, SAME},          {"abs", 1, 1, SAME},          {"sign", 1, 1, STEP},
    {"square", 1, 1, SAME},       {"reciprocal", 1, 1, SAME},   {"erf", 1, 1, SAME},
    {"floor", 1, 1, STEP},        {"ceil", 1, 1, STEP},         {"round", 1, 1, STEP},
    {"trunc", 1, 1, STEP},        {"softplus", 1, 1, SAME},     {"leaky_relu", 1, 1, SAME},
    {"relu6", 1, 1, SAME},        {"elu", 1, 1, SAME},          {"selu", 1, 1, SAME},
    {"mish", 1, 1, SAME},         {"hardswish", 1, 1, SAME},    {"hardsigmoid", 1, 1, SAME},
    {"hardtanh", 1, 1, SAME},     {"log_sigmoid", 1, 1, SAME},  {"clamp", 1, 1, SAME},
    {"clamp_min", 1, 1, SAME},    {"clamp_max", 1, 1, SAME},    {"tril", 1, 1, SAME},
    {"triu", 1, 1, SAME},         {"addu", 1, 1, SAME},         {"mulu", 1, 1, SAME},
    {"divu", 1, 1, SAME},         {"powu", 1, 1, SAME},         {"subu", 1, 1, SAME},
    {"scalar_mul", 1, 1, SAME},   {"gelu_again", 2, 2, SAME},
};
enum { POINTS = sizeof points / sizeof *points };

static int find(const char *op)
{
    for (int i = 0; i < POINTS; i++)
        if (*points[i].op == *op && !strcmp(points[i].op, op)) return i;
    return -1;
}

int ft__graphfile_pointwise(const char *op, int *least)
{
    int at = find(op);
    if (at >= 0) {
        *least = points[at].least;
        return points[at].most;
    }
    int known = ft__pointwise_op_find(op); /* others that the kernel room knows: gradients, fused activations */
    if (known < 0 || !strcmp(op, "dropout") || !strncmp(op, "cast_", 5)) return 0;
    *least = ft__pointwise_ops[known].inputs > 1 ? 2 : 1;
    return *least;
}

/* -- shapes ------------------------------------------------------------------------------------ */

/* The shape of both, axes counted from the last; false when they do not broadcast. */
static bool broadcast(ft_named *out, const ft_named *x)
{
    ft_named both = *out;
    if (x->dims > out->dims) both.dims = x->dims;
    for (int i = 1; i <= both.dims; i++) {
        int64_t one = i <= out->dims ? out->dim[out->dims - i] : 1, two = i <= x->dims ? x->dim[x->dims - i] : 1;
        if (one != two && one != 1 && two != 1) return false;
        both.dim[both.dims - i] = one == 1 ? two : one;
    }
    *out = both;
    return true;
}

static bool same_shape(const ft_named *x, const ft_named *y)
{
    return x->dims == y->dims && !memcmp(x->dim, y->dim, (size_t)x->dims * sizeof *x->dim);
}

/* -- the operators ----------------------------------------------------------------------------- */

typedef struct point {
    const char *op;
    ft_named x[3];
    int count, kind;
    bool in_place, across;
} point;

static bool operands(ft_graph_reader *r, point *p, ft_named *out)
{
    p->count = (int)ft__graphfile_operands(r);
    for (int i = 0; i < p->count; i++)
        if (!ft__graphfile_operand(r, (size_t)i, &p->x[i])) return false;
    if (!strcmp(p->op, "where") && p->count == 3) { /* the condition comes first in the file */
        ft_named condition = p->x[0];
        p->x[0] = p->x[1];
        p->x[1] = condition;
    }
    *out = p->x[0];
    for (int i = 1; i < p->count; i++) {
        double before = ft__graphfile_elements(out);
        if (broadcast(out, &p->x[i])) continue;
        ft__graphfile_fail(r, FT_E_RANGE,
                           "operands of %.0f and %.0f elements: sizes must be equal or 1 in each of their last axes",
                           before, ft__graphfile_elements(&p->x[i]));
        return false;
    }
    if (!ft__graphfile_possible(r, out->dims, out->dim)) return false;
    if (p->in_place && !same_shape(out, &p->x[0])) {
        ft__graphfile_fail(r, FT_E_RANGE, "in place its result has the first operand's shape");
        return false;
    }
    return true;
}

/* Floats before integers before truths, the longer integer. */
static ft_format promoted(ft_graph_reader *r, const point *p, ft_ref made)
{
    ft_build *b = ft__graphfile_build(r);
    const ft_tensor *t = ft__tensor_of(b, made);
    ft_format out = {FT_BOOLS, t->dtype, 1};
    for (int i = 0; i < p->count; i++) {
        if (i == 1 && (!strcmp(p->op, "where") || !strcmp(p->op, "masked_fill"))) continue;
        if (p->x[i].values == FT_FLOATS) return (ft_format){FT_FLOATS, t->dtype, t->element_bytes};
        double bytes = ft__tensor_of(b, p->x[i].ref)->element_bytes;
        if (p->x[i].values == FT_INTEGERS && (out.values == FT_BOOLS || bytes > out.bytes)) {
            out.values = FT_INTEGERS;
            out.bytes = bytes;
        }
    }
    return out;
}

/* Whether one operand has the result's shape and lies as PyTorch would lay the result out: the builder's own rule. */
static int leader(const point *p, const ft_named *out)
{
    for (int i = 0; i < p->count; i++)
        if (same_shape(&p->x[i], out)) return i;
    return -1;
}

static ft_ref made(ft_graph_reader *r, ft_at at, const point *p, ft_named *out)
{
    ft_build *b = ft__graphfile_build(r);
    ft_ref in[3] = {p->x[0].ref, p->count > 1 ? p->x[1].ref : FT_NONE, p->count > 2 ? p->x[2].ref : FT_NONE};
    int first = leader(p, out);
    ft_named shape = *out;
    const ft_named *as = first >= 0 ? &p->x[first] : &shape;
    *out = ft__graphfile_fresh(FT_NONE, out->dims, out->dim);
    if (first >= 0) {
        bool permuted = ft__tensor_of(b, as->ref)->permuted || !ft__tensor_of(b, as->ref)->strided;
        if (p->in_place) {
            memcpy(out->stride, as->stride, sizeof out->stride);
            out->unordered = as->unordered;
        } else if (permuted) {
            ft__graphfile_dense_like(out, as);
        }
    }
    if (p->in_place && p->count < 3) return ft__pointwise_in_place(b, at, p->op, in[0], in[1]);
    if (p->count < 3 && first >= 0) {
        if (first == 0 || ft__graphfile_elements(&p->x[0]) < ft__graphfile_elements(&p->x[1]))
            return ft__pointwise2(b, at, p->op, in[0], in[1]);
    }
    /* Neither operand has the whole shape, or there are three. */
    const ft_tensor *t = ft__tensor_of(b, as->ref);
    int64_t rows = ft__graphfile_rows(out->dims, out->dim), cols = out->dim[out->dims - 1];
    bool follows = first >= 0 && (!t->strided || t->permuted);
    if (follows) {
        rows = t->rows;
        cols = t->cols;
    }
    bool permuted = follows && t->permuted;
    ft_ref y = ft__pointwise_over(b, at, p->op, p->count, in, rows, cols);
    if (ft__graphfile_failed(r)) return y;
    b->g->tensors[y].strided = b->g->tensors[y].permuted = permuted;
    /* An operand that lies across the order in which neighbouring threads walk: each fetches a sector of 32 bytes of it
     * for one element, and again for the next. */
    if (p->across) b->g->nodes[b->g->node_count - 1].manner |= FT_MANNER_ACROSS;
    return y;
}

void ft__read_pointwise(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    point p = {.in_place = ft__graphfile_truth(r, "in_place", false),
               .across = ft__graphfile_truth(r, "across", false)};
    int which = find(ft__graphfile_op(r));
    p.op = which >= 0 ? points[which].op : ft__pointwise_ops[ft__pointwise_op_find(ft__graphfile_op(r))].name;
    p.kind = which >= 0 ? points[which].kind : SAME;
    ft_named out;
    if (ft__graphfile_failed(r) || !operands(r, &p, &out)) return;
    if (p.in_place && p.kind == TRUTH) {
        ft__graphfile_fail(r, FT_E_RANGE, "what is true or false cannot be written over numbers");
        return;
    }
    out.ref = made(r, at, &p, &out);
    if (ft__graphfile_failed(r)) return;
    ft_format format = promoted(r, &p, out.ref);
    const ft_tensor *t = ft__tensor_of(b, out.ref);
    if (p.kind == TRUTH) format = (ft_format){FT_BOOLS, t->dtype, 1};
    if (!p.in_place && (format.values != FT_FLOATS || p.kind == STEP))
        ft__retype(b, out.ref, format.dtype, format.bytes, false);
    out.values = format.values;
    ft__graphfile_give(r, 0, &out);
}

/* -- dropout, casts ---------------------------------------------------------------------------- */

void ft__read_dropout(ft_graph_reader *r, ft_at at)
{
    ft_named x, out;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    double share = ft__graphfile_number(r, "p", -1, 0, 1);
    if (ft__graphfile_failed(r)) return;
    out = x;
    out.ref = ft__dropout(ft__graphfile_build(r), at, x.ref, share);
    if (out.ref != x.ref && ft__tensor_of(ft__graphfile_build(r), x.ref)->strided) ft__graphfile_contiguous(&out);
    if (out.ref != x.ref) out.repeats = FT_NONE;
    ft__graphfile_give(r, 0, &out);
}

void ft__read_cast(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x, out;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    const ft_tensor *t = ft__tensor_of(b, x.ref);
    ft_format own = {x.values, t->dtype, t->element_bytes}, to = own;
    if (json_object_get(r->at, "like")) {
        const ft_named *like = ft__graphfile_named_weight(r, "like");
        if (!like) {
            ft__graphfile_fail(r, FT_E_TYPE, "\"like\" must name a tensor");
            return;
        }
        const ft_tensor *l = ft__tensor_of(b, like->ref);
        to = (ft_format){like->values, l->dtype, l->element_bytes};
    } else if (!json_object_get(r->at, "to")) {
        ft__graphfile_fail(r, FT_E_MISSING, "\"to\" must name a dtype, or \"like\" a tensor");
        return;
    } else if (!ft__graphfile_format_key(r, "to", own, &to)) {
        return;
    }
    out = x;
    out.values = to.values;
    bool same = own.values == to.values && own.bytes == to.bytes && (to.values != FT_FLOATS || own.dtype == to.dtype);
    if (!same) {
        out.repeats = FT_NONE;
        if (own.values == FT_FLOATS && to.values == FT_FLOATS)
            out.ref = ft__cast(b, at, x.ref, to.dtype);
        else
            out.ref = ft__pointwise(b, at, "copy", x.ref);
        if (!ft__graphfile_failed(r) && (own.values != FT_FLOATS || to.values != FT_FLOATS))
            ft__retype(b, out.ref, to.dtype, to.bytes, false);
        if (out.ref != x.ref) {
            const ft_tensor *from = ft__tensor_of(b, x.ref);
            if (from->permuted || !from->strided)
                ft__graphfile_dense_like(&out, &x);
            else
                ft__graphfile_contiguous(&out);
        }
    }
    ft__graphfile_give(r, 0, &out);
}
