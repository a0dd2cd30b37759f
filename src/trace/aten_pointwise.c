/* aten_pointwise.c: what every element goes through alone. The patterns are those of graph/build_pointwise.c. */
#include <math.h>
#include <string.h>

#include "graph/pointwise.h"
#include "trace/aten_entry.h"

/* The tensors that an element of the result looks up. */
typedef struct gathered {
    double numel;  /* of the result */
    double bytes;  /* read */
    double widest; /* bytes of an element */
    int full;      /* operands as large as the result */
    bool mixed, spread, turned, gaps;
    const ft_input *first;
    ft_dtype dtype;
} gathered;

static bool same_order(const ft_input *x, const ft_input *y)
{
    if (x->rank != y->rank || !x->strides_known || !y->strides_known) return x->contiguous && y->contiguous;
    for (int i = 0; i < x->rank; i++)
        if (x->dim[i] != y->dim[i] || (x->dim[i] > 1 && x->stride[i] != y->stride[i])) return false;
    return true;
}

/* The size of what operands of these shapes make together. */
static double broadcast(const ft_calling *c, int from, int to)
{
    int64_t dim[FT_INPUT_RANK] = {0};
    int rank = 0;
    for (int i = from; i < to; i++) {
        const ft_input *x = ft__call_input(c, i);
        if (x->rank > rank) rank = x->rank;
    }
    if (rank == 0) return 1;
    for (int i = from; i < to; i++) {
        const ft_input *x = ft__call_input(c, i);
        if (x->list) continue;
        for (int k = 0; k < x->rank; k++) {
            int64_t *d = &dim[rank - x->rank + k];
            if (x->dim[k] > *d) *d = x->dim[k];
        }
    }
    double n = 1;
    for (int k = 0; k < rank; k++) n *= (double)(dim[k] > 0 ? dim[k] : 1);
    return n <= 1e15 ? n : 0;
}

static bool gather(const ft_calling *c, int from, int to, double numel, gathered *g)
{
    memset(g, 0, sizeof *g);
    g->numel = numel;
    g->dtype = c->usual;
    double format = 0;
    for (int i = from; i < to; i++) {
        const ft_input *x = ft__call_input(c, i);
        if (x->numel < 1 || x->list) continue;
        g->bytes += ft__call_bytes(c, x);
        double e = x->element_bytes > 0 ? x->element_bytes : ft_dtype_bytes(c->usual);
        if (x->numel > 1 && x->floating && (format == 0 || ft_dtype_bytes(x->dtype) > ft_dtype_bytes(g->dtype))) {
            g->dtype = x->dtype;
            format = 1;
        }
        if (x->numel > 1) {
            if (g->widest > 0 && e != g->widest && fmin(e, g->widest) >= 2 && fmax(e, g->widest) <= 4) g->mixed = true;
            g->widest = fmax(g->widest, e);
        }
        if (x->stored >= numel && numel > 1) {
            if (g->first && !same_order(g->first, x)) g->turned = true;
            if (!g->first) g->first = x;
            g->gaps |= !x->dense;
            g->full++;
        } else if (x->stored > 1) {
            g->spread = true;
        }
    }
    return g->numel >= 1;
}

static int pattern_of(const gathered *g)
{
    int p = g->gaps || g->turned ? FT_PATTERN_STRIDED : g->spread ? FT_PATTERN_SPREAD : FT_PATTERN_CONTIGUOUS;
    if (p == FT_PATTERN_SPREAD && g->first && !g->first->contiguous) p = FT_PATTERN_STRIDED;
    return p | (g->mixed ? FT_PATTERN_MIXED : 0);
}

static bool add(const ft_calling *c, const char *name, const gathered *g, double written, int pattern)
{
    ft_op op = {.kind = FT_OP_ELEMENTWISE, .name = name, .dtype = g->dtype, .kv_dtype = g->dtype};
    op.u.elementwise.numel = (int64_t)g->numel;
    op.u.elementwise.inputs = g->full > 0 ? g->full : 1;
    op.u.elementwise.bytes = fmax(1, g->bytes + written);
    op.u.elementwise.pattern = pattern;
    return ft__call_add(c, op) != NULL;
}

/* p: first and last operand (0, 0: all tensors); p[2]: bytes of an element of the result where it is no number of the
 * operands' format (1: a truth); p[3]: 1: `word` with a scalar in place of the second operand has a 'u' behind it. */
bool ft__call_pointwise(const ft_calling *c)
{
    gathered g;
    int from = (int)c->p[0], last = (int)c->p[1], to = last > 0 ? last + 1 : c->in->count;
    if (to > c->in->count) to = c->in->count;
    if (!gather(c, from, to, broadcast(c, from, to), &g)) return false;
    double e = c->p[2] > 0 ? c->p[2] : ft_dtype_bytes(g.dtype);
    const char *name = c->word;
    const ft_input *second = ft__call_input(c, from + 1);
    if (c->p[3] == 1 && second->numel <= 1) {
        static const char *const with[] = {"add", "mul", "div", "pow"}, *const scalar[] = {"addu", "mulu", "divu",
                                                                                           "powu"};
        for (int i = 0; i < 4; i++)
            if (!strcmp(name, with[i])) name = scalar[i];
    }
    int pattern = pattern_of(&g);
    if (!strcmp(name, "where") && pattern == FT_PATTERN_CONTIGUOUS) pattern = FT_PATTERN_SPREAD;
    return add(c, name, &g, g.numel * e, pattern);
}

/* copy_(to, from): also a cast, also a transpose. */
bool ft__call_copy(const ft_calling *c)
{
    const ft_input *to = ft__call_input(c, 0), *from = ft__call_input(c, 1);
    gathered g;
    if (!gather(c, 1, 2, to->numel, &g)) return false;
    bool cast = to->floating && from->floating && to->element_bytes != from->element_bytes && from->element_bytes > 0 &&
                to->element_bytes > 0;
    bool straight = to->dense && from->dense && same_order(to, from);
    if (from->contiguous && to->contiguous && from->numel == to->numel) straight = true;
    int pattern = straight ? FT_PATTERN_CONTIGUOUS : from->stored < to->numel ? FT_PATTERN_SPREAD : FT_PATTERN_STRIDED;
    if (pattern == FT_PATTERN_SPREAD && !to->contiguous) pattern = FT_PATTERN_STRIDED;
    if (cast && pattern != FT_PATTERN_CONTIGUOUS) pattern |= FT_PATTERN_MIXED;
    g.dtype = from->floating ? from->dtype : ft__call_dtype(c, to);
    return add(c, cast ? ft__cast_name(to->dtype) : "copy", &g, ft__call_bytes(c, to), pattern);
}

/* clone(x), and with p[0] 1 _to_copy(x, dtype): the format is a number of PyTorch's ScalarType. */
bool ft__call_clone(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, 0);
    gathered g;
    double code = -1;
    ft_dtype to = ft__call_dtype(c, x);
    if (!(x->numel >= 1) || !gather(c, 0, 1, x->numel, &g)) return false;
    if (c->p[0] == 1 && ft__input_number(c->in, 1, &code)) {
        static const struct {
            int code;
            ft_dtype dtype;
        } formats[] = {{5, FT_FP16}, {6, FT_FP32}, {7, FT_FP64}, {15, FT_BF16}, {23, FT_FP8}, {24, FT_FP8}};
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
            if ((int)code == formats[i].code) to = formats[i].dtype;
    }
    bool cast = x->floating && ft_dtype_bytes(to) != x->element_bytes;
    /* A tensor in another order is copied into its own. */
    int pattern = x->contiguous ? FT_PATTERN_CONTIGUOUS : x->stored < x->numel ? FT_PATTERN_SPREAD : FT_PATTERN_STRIDED;
    if (cast && pattern != FT_PATTERN_CONTIGUOUS) pattern |= FT_PATTERN_MIXED;
    g.dtype = x->floating ? x->dtype : to;
    g.numel = x->numel;
    double written = x->floating ? ft_dtype_bytes(to) : x->element_bytes;
    return add(c, cast ? ft__cast_name(to) : "copy", &g, x->numel * written, pattern);
}

/* The gradient of a slice: zeros of the whole size, and the slice's gradient copied into them. p[0]: the sizes. */
bool ft__call_padded(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, 0);
    int64_t size[FT_INPUT_RANK];
    int n = ft__input_numbers(c->in, c->p[0], size, FT_INPUT_RANK);
    double all = n > 0 ? 1 : 0;
    for (int i = 0; i < n; i++) all *= (double)(size[i] > 0 ? size[i] : 1);
    ft_dtype d = ft__call_dtype(c, x);
    gathered zeros = {.numel = all, .full = 1, .dtype = d}, part = {.numel = x->numel, .full = 1, .dtype = d};
    if (!(all >= 1 && all < 1e15) || !(x->numel >= 1)) return false;
    part.bytes = ft__call_bytes(c, x);
    return add(c, "fill", &zeros, all * ft_dtype_bytes(d), FT_PATTERN_CONTIGUOUS) &&
           add(c, "copy", &part, part.bytes, FT_PATTERN_STRIDED);
}

/* Of one tensor, to a number. */
bool ft__call_fill(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, c->p[0]);
    gathered g = {.numel = x->numel, .full = 1, .dtype = ft__call_dtype(c, x)};
    return x->numel >= 1 &&
           add(c, "fill", &g, ft__call_bytes(c, x), x->dense ? FT_PATTERN_CONTIGUOUS : FT_PATTERN_STRIDED);
}

/* p[0] 0: with the mask that it writes; 1: the gradient, which reads it. */
bool ft__call_dropout(const ft_calling *c)
{
    const ft_input *x = ft__call_input(c, 0);
    gathered g = {.numel = x->numel, .bytes = ft__call_bytes(c, x), .full = 1, .dtype = ft__call_dtype(c, x)};
    if (!(x->numel >= 1)) return false;
    double e = ft_dtype_bytes(g.dtype);
    if (c->p[0] == 1)
        return add(c, "mulu", &g, x->numel * (e + 1), x->dense ? FT_PATTERN_CONTIGUOUS : FT_PATTERN_STRIDED);
    return add(c, "dropout", &g, x->numel * (e + 1), x->dense ? FT_PATTERN_CONTIGUOUS : FT_PATTERN_STRIDED);
}

/* p[0]: how often all tensors are read, p[1]: how often the largest is written, in tenths. For sorts and what else has
 * no model of its own. */
bool ft__call_passes(const ft_calling *c)
{
    gathered g;
    double most = 0, each = 0;
    for (int i = 0; i < c->in->count; i++) {
        const ft_input *x = ft__call_input(c, i);
        if (x->numel > most) most = x->numel, each = ft__call_bytes(c, x);
    }
    if (!gather(c, 0, c->in->count, most, &g)) return false;
    for (int i = 0; i < c->in->count; i++)
        if (ft__call_input(c, i)->list) g.bytes += ft__call_bytes(c, ft__call_input(c, i));
    g.bytes *= c->p[0] / 10.0;
    return add(c, c->word, &g, each * c->p[1] / 10.0, FT_PATTERN_CONTIGUOUS);
}
