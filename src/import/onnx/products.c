/* products.c: matrix products. A product with an initialiser is a linear layer; transpositions of weights, written
 * out or asked for by an attribute, are how it is stored and cost nothing. */
#include <string.h>

#include "base/text.h"
#include "import/onnx/run.h"

/* [..., m, k] of a vector is [1, k]; as a second operand [k, 1]. */
typedef struct sides {
    int64_t batch, m, n, k;
} sides;

static double leading(const ft_onnx_item *x)
{
    double count = 1;
    for (int i = 0; i + 2 < x->dims; i++) count *= (double)x->dim[i];
    return count;
}

/* -- operands of batched products ------------------------------------------------------------------ */

/* As it lies, its transpose as it lies, or a copy. */
static ft_ref matrix(ft_onnx_run *r, ft_onnx_item *x, int64_t rows, bool *across)
{
    uint8_t swapped[FT_ONNX_DIMS];
    for (int i = 0; i < x->dims; i++) swapped[i] = (uint8_t)i;
    *across = false;
    if (x->dims >= 2) {
        swapped[x->dims - 1] = (uint8_t)(x->dims - 2);
        swapped[x->dims - 2] = (uint8_t)(x->dims - 1);
        *across = x->kind == FT_ONNX_MADE && !x->gaps && !ft__onnx_plain(x) && ft__onnx_lies(x, swapped);
    }
    if (!*across) return ft__onnx_dense(r, x);
    ft_ref ref = ft__onnx_ref(r, x);
    double all = ft__onnx_count(x);
    int64_t high = (int64_t)(all / (double)rows);
    return ft__view(r->b, ref, high, rows, false); /* back to how it was before somebody turned it */
}

static void batched(ft_onnx_run *r, ft_onnx_item *a, ft_onnx_item *c, const sides *s, ft_onnx_item *y)
{
    bool a_across, c_across;
    ft_ref x = matrix(r, a, s->m, &a_across), w = matrix(r, c, s->k, &c_across);
    const char *layout = a_across ? (c_across ? "tt" : "tn") : c_across ? "nt" : "nn";
    if (ft__onnx_failed(r)) return;
    ft_ref out = ft__matmul(r->b, r->label, x, w, s->batch, s->m, s->n, s->k, layout);
    ft__onnx_set(r, y, out);
}

/* -- linear layers --------------------------------------------------------------------------------- */

static ft_ref bias_of(ft_onnx_run *r, ft_onnx_item *bias, int64_t features)
{
    if (!bias || bias->kind != FT_ONNX_WEIGHT || ft__onnx_count(bias) != (double)features) return FT_NONE;
    return ft__onnx_ref_as(r, bias, 1, features);
}

/* `stored_across`: the weight lies as [in, out]. */
static void linear(ft_onnx_run *r, ft_onnx_item *x, ft_onnx_item *weight, ft_onnx_item *bias, int64_t in, int64_t out,
                   bool stored_across, ft_onnx_item *y)
{
    ft_build *b = r->b;
    ft__onnx_dense(r, x); /* a copy where x is strided */
    int64_t rows = (int64_t)(ft__onnx_count(x) / (double)in);
    ft_ref from = ft__onnx_failed(r) ? FT_NONE : ft__onnx_ref_as(r, x, rows, in);
    ft_ref w = ft__onnx_product_weight(r, weight, out, in), offset = bias_of(r, bias, out);
    bool before = b->conv1d;
    b->conv1d = stored_across;
    ft_ref made = ft__linear_with(b, r->label, from, w, out, offset, FT_WHOLE);
    b->conv1d = before;
    ft__module(b, 1);
    ft__onnx_set(r, y, made);
    y->biased = offset != FT_NONE;
}

static bool is_matrix(const ft_onnx_item *x) { return x->kind == FT_ONNX_WEIGHT && x->dims >= 2 && leading(x) <= 1; }

/* -- MatMul ---------------------------------------------------------------------------------------- */

/* Both with two axes at least, for who comes with one. */
static bool sides_of(ft_onnx_run *r, const ft_onnx_item *a, const ft_onnx_item *c, sides *s)
{
    s->m = a->dims > 1 ? a->dim[a->dims - 2] : 1;
    s->k = a->dim[a->dims - 1];
    s->n = c->dims > 1 ? c->dim[c->dims - 1] : 1;
    int64_t inner = c->dim[c->dims - (c->dims > 1 ? 2 : 1)];
    if (inner == s->k) return true;
    ft__onnx_fail(r, FT_E_RANGE, "the operands' inner sizes differ: %lld and %lld", (long long)s->k, (long long)inner);
    return false;
}

static void build_matmul(ft_onnx_run *r)
{
    ft_onnx_item *a = ft__onnx_operand(r, 0), *c = ft__onnx_operand(r, 1), head[2], *both[2] = {&head[0], &head[1]};
    sides s = {0};
    int64_t dim[FT_ONNX_DIMS + 2];
    if (!a || !c) return;
    if (!a->dims || !c->dims) {
        ft__onnx_fail(r, FT_E_RANGE, "a product of a single number");
        return;
    }
    if (!sides_of(r, a, c, &s)) return;
    head[0] = *a;
    head[1] = *c;
    head[0].dims = a->dims > 2 ? a->dims - 2 : 0;
    head[1].dims = c->dims > 2 ? c->dims - 2 : 0;
    int dims = ft__onnx_broadcast(r, 2, both, dim);
    if (dims < 0) return;
    double batch = 1;
    for (int i = 0; i < dims; i++) batch *= (double)dim[i];
    if (a->dims > 1) dim[dims++] = s.m;
    if (c->dims > 1) dim[dims++] = s.n;
    int type = ft__onnx_type_floats(a->type) ? a->type : FT_ONNX_INT32;
    ft_onnx_item *y = ft__onnx_result(r, 0, type, dims, dim);
    if (!y || batch * (double)s.m * (double)s.n * (double)s.k < 1) return;
    s.batch = (int64_t)batch;
    if (is_matrix(c) && a->kind != FT_ONNX_WEIGHT) {
        ft_onnx_item *bias = r->at->bias >= 0 ? &r->items[r->at->bias] : NULL;
        linear(r, a, c, bias, s.k, s.n, false, y);
        return;
    }
    if (leading(c) <= 1) { /* one matrix for all */
        s.m *= s.batch;
        s.batch = 1;
    }
    batched(r, a, c, &s, y);
}

/* -- Gemm ------------------------------------------------------------------------------------------ */

static void build_gemm(ft_onnx_run *r)
{
    ft_onnx_item *a = ft__onnx_operand(r, 0), *c = ft__onnx_operand(r, 1), *add = ft__onnx_optional(r, 2);
    bool a_turned = ft__onnx_int(r->at, "transA", 0) != 0, c_turned = ft__onnx_int(r->at, "transB", 0) != 0;
    if (!a || !c) return;
    if (a->dims != 2 || c->dims != 2) {
        ft__onnx_fail(r, FT_E_RANGE, "it takes two matrices, got tensors of %d and %d axes", a->dims, c->dims);
        return;
    }
    sides s = {1, a->dim[a_turned], c->dim[!c_turned], a->dim[!a_turned]};
    if (c->dim[c_turned] != s.k) {
        ft__onnx_fail(r, FT_E_RANGE, "the operands' inner sizes differ: %lld and %lld", (long long)s.k,
                      (long long)c->dim[c_turned]);
        return;
    }
    int64_t dim[2] = {s.m, s.n};
    ft_onnx_item *y = ft__onnx_result(r, 0, a->type, 2, dim);
    if (!y || (double)s.m * (double)s.n * (double)s.k < 1) return;
    if (c->kind == FT_ONNX_WEIGHT && !a_turned && a->kind != FT_ONNX_WEIGHT) {
        linear(r, a, c, add, s.k, s.n, !c_turned, y);
    } else {
        ft_ref x = ft__onnx_dense(r, a), w = ft__onnx_dense(r, c);
        if (ft__onnx_failed(r)) return;
        const char *layout = a_turned ? (c_turned ? "tt" : "tn") : c_turned ? "nt" : "nn";
        ft__onnx_set(r, y, ft__matmul(r->b, r->label, x, w, 1, s.m, s.n, s.k, layout));
    }
    bool done = y->biased;
    y->biased = false;
    if (!add || done || (add->known && ft__onnx_count(add) == 1 && add->kind == FT_ONNX_FIXED)) return;
    ft_onnx_item product = *y, *both[2] = {&product, add};
    ft__onnx_pointwise(r, "add", 2, both, y);
}

/* -- Einsum ---------------------------------------------------------------------------------------- */

enum { LETTERS = 128 };

/* Sizes by letter; false after an error. "..." is not read. */
static bool letters(ft_onnx_run *r, const char *text, size_t length, const ft_onnx_item *x, int64_t *size, bool *here)
{
    int axis = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == ' ') continue;
        if (c >= LETTERS || c == '.') {
            ft__onnx_fail(r, FT_E_UNSUPPORTED, "the equation \"%.*s\" is not read", (int)ft__utf8_cut(text, 60), text);
            return false;
        }
        if (axis >= x->dims || (size[c] > 0 && size[c] != x->dim[axis] && x->dim[axis] != 1 && size[c] != 1)) {
            ft__onnx_fail(r, FT_E_RANGE, "the equation does not fit its operands' shapes");
            return false;
        }
        if (x->dim[axis] > size[c]) size[c] = x->dim[axis];
        here[c] = true;
        axis++;
    }
    if (axis == x->dims) return true;
    ft__onnx_fail(r, FT_E_RANGE, "the equation names %d axes of an operand that has %d", axis, x->dims);
    return false;
}

static void build_einsum(ft_onnx_run *r)
{
    const char *equation = ft__onnx_string(r->at, "equation", ""), *arrow = strstr(equation, "->"), *at = equation;
    int64_t size[LETTERS] = {0}, dim[FT_ONNX_DIMS];
    bool in[2][LETTERS] = {{0}}, wanted[LETTERS] = {0};
    int count = r->at->in_count, dims = 0;
    ft_onnx_item *x[2] = {NULL, NULL};
    if (!arrow || count < 1 || count > 2) {
        ft__onnx_fail(r, FT_E_UNSUPPORTED, "an equation of one or two operands with an arrow is expected");
        return;
    }
    for (int k = 0; k < count; k++) {
        size_t length = strcspn(at, ",-");
        if (!(x[k] = ft__onnx_operand(r, k)) || !letters(r, at, length, x[k], size, in[k])) return;
        at += length + (at[length] == ',');
    }
    for (const char *c = arrow + 2; *c; c++) {
        if (*c == ' ') continue;
        if ((unsigned char)*c >= LETTERS || dims >= FT_ONNX_DIMS || (!in[0][(int)*c] && !in[1][(int)*c])) {
            ft__onnx_fail(r, FT_E_RANGE, "the equation \"%.*s\" asks for an axis that no operand has",
                          (int)ft__utf8_cut(equation, 60), equation);
            return;
        }
        wanted[(int)*c] = true;
        dim[dims++] = size[(int)*c];
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, x[0]->type, dims, dim);
    if (!y || ft__onnx_count(y) < 1) return;
    double batch = 1, m = 1, n = 1, k = 1;
    for (int c = 0; c < LETTERS; c++) {
        bool a = in[0][c], b = in[1][c];
        if (a && b) *(wanted[c] ? &batch : &k) *= (double)size[c];
        if (a && !b && wanted[c]) m *= (double)size[c];
        if (b && !a && wanted[c]) n *= (double)size[c];
    }
    if (count == 1 || batch * m * n * k > 1e18) {
        ft__onnx_other(r, "einsum", ft__onnx_count(x[0]));
        return;
    }
    ft_ref a = ft__onnx_dense(r, x[0]), c = ft__onnx_dense(r, x[1]);
    if (ft__onnx_failed(r)) return;
    ft__onnx_set(
        r, y, ft__matmul(r->b, r->label, a, c, (int64_t)batch, (int64_t)m, (int64_t)n, (int64_t)(k > 1 ? k : 1), "nn"));
}

const ft_onnx_rule ft__onnx_product_rules[] = {
    {"MatMul", 2, build_matmul, ""},
    {"Gemm", 2, build_gemm, ""},
    {"Einsum", 1, build_einsum, ""},
    {0},
};
