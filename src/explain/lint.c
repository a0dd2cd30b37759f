/* lint.c: scan through the products and convolutions of a step. */
#include "explain/lint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/advice_constants.h"
#include "kernel/gemm_tiles.h"

typedef struct linter {
    const ft_graph *g;
    const ft_step *step;
    const ft_device *device;
    const ft_probe *probe;
    ft_lint *found;
    size_t count;
} linter;

static int32_t home_of(const ft_graph *g, int32_t block)
{
    return g->blocks[block].mirror >= 0 ? g->blocks[block].mirror : block;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

/* Forecasts made for a lint are of the kernel alone; what fusion and power did to it in the step stays as a ratio. */
static ft_status probe_ms(const linter *l, const ft_op *op, double *ms)
{
    ft_forecast f;
    ft_error ignored;
    *ms = 0;
    ft_status status = l->probe->forecast(op, l->probe->user, &f, &ignored);
    if (status == FT_E_MEMORY) return status;
    if (status == FT_OK) *ms = f.ms;
    return FT_OK;
}

static bool resize(ft_op *op, int64_t from, int64_t to)
{
    int64_t *sizes[3];
    int count = 0;
    bool any = false;
    if (op->kind == FT_OP_GEMM) {
        sizes[count++] = &op->u.gemm.m;
        sizes[count++] = &op->u.gemm.n;
        sizes[count++] = &op->u.gemm.k;
    } else if (op->kind == FT_OP_CONV2D) {
        sizes[count++] = &op->u.conv.c;
        sizes[count++] = &op->u.conv.k;
    }
    for (int i = 0; i < count; i++)
        if (*sizes[i] == from) *sizes[i] = to, any = true;
    return any;
}

/* What a module's products, forward and back, save when one of its sizes changes. */
static ft_status saving(const linter *l, const ft_timed *k, int64_t from, int64_t to, double *saves, double *ms)
{
    const ft_node *n = &l->g->nodes[k->node];
    *saves = *ms = 0;
    for (int32_t i = 0; i < l->step->kernel_count; i++) {
        const ft_timed *other = &l->step->kernels[i];
        const ft_node *o = &l->g->nodes[other->node];
        if (home_of(l->g, other->block) != home_of(l->g, k->block) || o->op.kind != n->op.kind) continue;
        if (o->at != n->at) continue;
        ft_op fixed = o->op;
        double before, after, all = other->forecast.ms * other->times;
        *ms += all;
        if (!resize(&fixed, from, to)) continue;
        FT_TRY(probe_ms(l, &o->op, &before));
        FT_TRY(probe_ms(l, &fixed, &after));
        if (before > 0 && after > 0) *saves += all * (1 - after / before);
    }
    return FT_OK;
}

/* Adds what was found about a kernel's module: `what` has its kind, sizes and times, the rest is filled in here. */
static ft_lint *note(linter *l, const ft_timed *k, ft_lint what)
{
    const ft_node *n = &l->g->nodes[k->node];
    what.block = l->g->blocks[home_of(l->g, k->block)].name;
    what.name = n->name;
    what.phase = n->phase;
    what.op = what.fixed = n->op;
    resize(&what.fixed, what.from, what.to);
    ft_lint *found = &l->found[l->count++];
    *found = what;
    return found;
}

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* The smallest multiple that does nearly as much as the wide one. */
static ft_status fix_alignment(linter *l, ft_lint_kind kind, const ft_timed *k, char dimension, int64_t size,
                               double element)
{
    int64_t narrow = (int64_t)(16 / element), wide = (int64_t)(128 / element);
    if (narrow < 1 || size % narrow == 0) return FT_OK;
    for (size_t i = 0; i < l->count; i++) /* told already, by the other pass */
        if (l->found[i].kind == kind && same_text(l->found[i].name, l->g->nodes[k->node].name) &&
            l->found[i].from == size && same_text(l->found[i].block, l->g->blocks[home_of(l->g, k->block)].name))
            return FT_OK;
    double ms, little, much;
    int64_t near = round_up(size, narrow), far = round_up(size, wide);
    FT_TRY(saving(l, k, size, near, &little, &ms));
    FT_TRY(saving(l, k, size, far, &much, &ms));
    bool enough = little >= FT_K_ADVICE_ENOUGH * much;
    if (dimension == 'm' && !(fmax(little, much) > 0)) return FT_OK; /* a batch of one is no fault of the layer's */
    note(l, k,
         (ft_lint){.kind = kind,
                   .dimension = dimension,
                   .from = size,
                   .to = enough ? near : far,
                   .ms = ms,
                   .saves_ms = fmax(enough ? little : much, 0)});
    return FT_OK;
}

/* A larger size that costs the same time does more with it. */
static ft_status fix_quantum(linter *l, ft_lint_kind kind, const ft_timed *k, char dimension, int64_t size, int64_t to,
                             double waste)
{
    const ft_op *op = &l->g->nodes[k->node].op;
    ft_op fixed = *op;
    double before, after, all = k->forecast.ms * k->times;
    if (to <= size || !resize(&fixed, size, to)) return FT_OK;
    FT_TRY(probe_ms(l, op, &before));
    FT_TRY(probe_ms(l, &fixed, &after));
    if (!(before > 0) || !(after > 0)) return FT_OK;
    double saves = all * (1 - after / before * (double)size / (double)to);
    if (saves > FT_K_ADVICE_WORTH_A_LOOK * l->step->step_ms)
        note(l, k,
             (ft_lint){.kind = kind,
                       .dimension = dimension,
                       .from = size,
                       .to = to,
                       .ms = all,
                       .saves_ms = saves,
                       .waste = waste});
    return FT_OK;
}

static ft_status look_at_product(linter *l, const ft_timed *k)
{
    const ft_op *op = &l->g->nodes[k->node].op;
    const ft_forecast *f = &k->forecast;
    double element = ft_dtype_bytes(op->dtype);
    int each[3];
    if (element <= 2 && l->device->peak_tflops[op->dtype] > 0 && ft__gemm_op_alignment(op, each) < 16) {
        FT_TRY(fix_alignment(l, FT_LINT_ALIGNMENT, k, 'n', op->u.gemm.n, element));
        FT_TRY(fix_alignment(l, FT_LINT_ALIGNMENT, k, 'k', op->u.gemm.k, element));
        return fix_alignment(l, FT_LINT_ALIGNMENT, k, 'm', op->u.gemm.m, element);
    }
    if (f->tile_m < 1 || f->tile_n < 1 || !(f->waves > 0)) return FT_OK;
    double m = (double)op->u.gemm.m, n = (double)op->u.gemm.n;
    double rows = ceil(m / f->tile_m) * f->tile_m, columns = ceil(n / f->tile_n) * f->tile_n;
    if (f->tiles < l->device->sms && f->split_k <= 1)
        return fix_quantum(l, FT_LINT_FEW_TILES, k, 'm', op->u.gemm.m, 2 * op->u.gemm.m, 1 - f->tiles / l->device->sms);
    if (1 - n / columns > FT_K_ADVICE_USUAL_WASTE)
        return fix_quantum(l, FT_LINT_TILE, k, 'n', op->u.gemm.n, (int64_t)columns, 1 - n / columns);
    if (1 - m / rows > FT_K_ADVICE_USUAL_WASTE)
        return fix_quantum(l, FT_LINT_TILE, k, 'm', op->u.gemm.m, (int64_t)rows, 1 - m / rows);
    double empty = 1 - f->waves / ceil(f->waves - 1e-9);
    if (empty <= FT_K_ADVICE_USUAL_WASTE || f->waves > 16) return FT_OK;
    return fix_quantum(l, FT_LINT_WAVE, k, 'm', op->u.gemm.m, (int64_t)floor(m * ceil(f->waves) / f->waves), empty);
}

/* Channels of a group: with fewer, matrix units have nothing to multiply. */
enum { FEWEST_CHANNELS = 8 };

static ft_status look_at_convolution(linter *l, const ft_timed *k)
{
    const ft_op *op = &l->g->nodes[k->node].op;
    double element = ft_dtype_bytes(op->dtype), ms = k->forecast.ms * k->times, before, after;
    bool deep = op->u.conv.groups <= 1;
    if (!op->u.conv.nhwc && element <= 2) {
        ft_op fixed = *op;
        fixed.u.conv.nhwc = true;
        FT_TRY(probe_ms(l, op, &before));
        FT_TRY(probe_ms(l, &fixed, &after));
        if (before > after && after > 0) {
            for (size_t i = 0; i < l->count; i++) /* one finding for all of them: the fix is one */
                if (l->found[i].kind == FT_LINT_LAYOUT) {
                    l->found[i].ms += ms;
                    l->found[i].saves_ms += ms * (1 - after / before);
                    return FT_OK;
                }
            double saves = ms * (1 - after / before);
            note(l, k, (ft_lint){.kind = FT_LINT_LAYOUT, .ms = ms, .saves_ms = saves})->fixed = fixed;
            return FT_OK;
        }
    }
    const int64_t group = op->u.conv.c / op->u.conv.groups;
    if (!deep && group < FEWEST_CHANNELS) {
        note(l, k, (ft_lint){.kind = FT_LINT_GROUPS, .dimension = 'c', .from = group, .to = FEWEST_CHANNELS, .ms = ms});
        return FT_OK;
    }
    if (element > 2 || !deep) return FT_OK;
    FT_TRY(fix_alignment(l, FT_LINT_CHANNELS, k, 'c', op->u.conv.c, element));
    return fix_alignment(l, FT_LINT_CHANNELS, k, 'k', op->u.conv.k, element);
}

static int by_saving(const void *a, const void *b)
{
    const ft_lint *x = a, *y = b;
    if (x->saves_ms != y->saves_ms) return x->saves_ms < y->saves_ms ? 1 : -1;
    if (x->ms != y->ms) return x->ms < y->ms ? 1 : -1;
    return x->found - y->found;
}

ft_status ft__lint(const ft_graph *g, const ft_step *step, const ft_device *device, const ft_probe *probe,
                   ft_arena *arena, ft_lint **out, size_t *count, ft_error *err)
{
    linter l = {.g = g, .step = step, .device = device, .probe = probe};
    *out = NULL;
    *count = 0;
    l.found = ft__arena_array(arena, 3 * (size_t)step->kernel_count + 1, sizeof *l.found);
    if (!l.found) return ft__fail(err, FT_E_MEMORY, "out of memory for the checklist");
    for (int32_t i = 0; i < step->kernel_count; i++) {
        const ft_timed *k = &step->kernels[i];
        ft_op_kind kind = g->nodes[k->node].op.kind;
        ft_status status = FT_OK;
        if (k->forecast.ms * k->times < FT_K_ADVICE_WORTH_A_LOOK * step->step_ms) continue;
        if (kind == FT_OP_GEMM) status = look_at_product(&l, k);
        if (kind == FT_OP_CONV2D) status = look_at_convolution(&l, k);
        if (status != FT_OK) return ft__fail(err, status, "out of memory for the checklist");
    }
    for (size_t i = 0; i < l.count; i++) l.found[i].found = (int)i;
    qsort(l.found, l.count, sizeof *l.found, by_saving);
    *out = l.found;
    *count = l.count;
    return FT_OK;
}
