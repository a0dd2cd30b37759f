/* fusion_member.c: what an operator is inside a generated kernel, and what it costs there.
 *
 * Instructions are in the unit of kernel/elementwise.c: what a lane issues per element beyond loads, stores and
 * addresses. */
#include <math.h>
#include <string.h>

#include "graph/batchnorm.h"
#include "graph/fusion.h"
#include "graph/fusion_constants.h"

/* Most names differ in their first letter. */
static bool named(const ft_node *n, const char *name) { return *n->op.name == *name && !strcmp(n->op.name, name); }

/* A border is a condition on where an element lies (torch/_inductor/lowering.py, constant_pad_nd). */
static bool is_border(const ft_node *n) { return n->verb == FT_DO_POOL && named(n, "pad"); }

/* Inductor writes windows of so many elements out (torch/_inductor/lowering.py, should_fallback_max_pool_with_indices);
 * larger ones stay the framework's kernels, and so does whatever adds pixels up. */
static bool small_window(const ft_node *n)
{
    if (n->op.kind != FT_OP_ELEMENTWISE) return false;
    if (is_border(n)) return true;
    if (n->op.u.elementwise.ops_per_element > FT_K_FUSION_WINDOW) return false;
    return named(n, "pool") || (named(n, "upsample") && n->phase == FT_FORWARD);
}

/* Sums of a handful (the query heads that share a key) are written out: every result on its own. */
static bool unrolled(const ft_node *n)
{
    if (n->op.kind != FT_OP_ROW || n->op.pass != FT_PASS_FWD) return false;
    return (named(n, "sum_cols") && n->op.u.row.rows <= 8) || (named(n, "sum_rows") && n->op.u.row.cols <= 8);
}

static ft_part row_part(const ft_node *n)
{
    if (n->op.kind != FT_OP_ROW) return n->op.kind == FT_OP_ELEMENTWISE ? FT_POINT : FT_LIBRARY;
    if (unrolled(n)) return FT_POINT;
    if (named(n, "sum_cols")) return FT_DOWN;
    if (named(n, "transpose_copy") || named(n, "bias_add") || named(n, "cat_halves")) return FT_POINT;
    if (named(n, "embedding")) return n->op.pass == FT_PASS_FWD ? FT_POINT : FT_LIBRARY;
    /* Selecting the largest few and sorting stay the framework's own kernels: an argmax that takes longer. */
    return n->manner & FT_MANNER_SELECT ? FT_LIBRARY : FT_ALONG;
}

/* Sorted rows that share an index are added up by the framework's own kernels. */
static bool rows_meet(ft_walk walk) { return walk >= FT_WALK_MEET && walk <= FT_WALK_MEET_SINGLE; }

ft_part ft__fusion_part(const ft_node *n)
{
    if (n->synced || (n->streams && n->verb == FT_DO_CAT)) return FT_LIBRARY;
    if (n->inside && n->verb == FT_DO_COPY) return FT_LIBRARY; /* a product that is added to makes it itself */
    if (ft__fusion_puts_back(n)) return FT_LIBRARY;
    switch (n->verb) {
    case FT_DO_VIEW:
    case FT_DO_SLICE:
    case FT_DO_SPLIT:
    case FT_DO_EXPAND: return ft__node_runs(n) ? FT_LIBRARY : FT_GLUE;
    case FT_DO_COPY: return n->manner & FT_MANNER_ACROSS || rows_meet(n->walk) ? FT_LIBRARY : FT_POINT;
    case FT_DO_POINTWISE:
    case FT_DO_CAT:
    case FT_DO_FILL:
    case FT_DO_BATCHNORM: return FT_POINT;
    case FT_DO_EMBEDDING:
    case FT_DO_GATHER: return n->op.kind == FT_OP_ROW && n->op.pass == FT_PASS_FWD ? row_part(n) : FT_LIBRARY;
    case FT_DO_POOL: return small_window(n) ? FT_POINT : FT_LIBRARY;
    case FT_DO_LOSS: return n->in_place ? FT_POINT : FT_ALONG;
    case FT_DO_ROW: return row_part(n);
    default: return FT_LIBRARY;
    }
}

double ft__fusion_space(const ft_graph *g, const ft_node *n)
{
    double most = 1;
    bool along = n->op.kind == FT_OP_ROW && !unrolled(n);
    if (along) most = (double)n->op.u.row.rows * (double)n->op.u.row.cols;
    for (int i = 0; i < n->out_count; i++) {
        double numel = ft__tensor_numel(&g->tensors[n->out[i]]);
        if (numel > most && !(n->verb == FT_DO_ROW && along)) most = numel;
    }
    if (n->verb == FT_DO_LOSS && n->in_count) most = ft__tensor_numel(&g->tensors[n->in[0]]);
    return most;
}

/* A maximum looks at every pixel of its window; its gradient, at every pixel, at the windows that lie over it. */
static double window_work(const ft_graph *g, const ft_node *n)
{
    const double window = n->op.u.elementwise.ops_per_element;
    if (n->phase == FT_FORWARD || n->in_count < 2) return window * FT_K_FUSION_WINDOW_WORK;
    const double stride = sqrt(ft__tensor_numel(&g->tensors[n->out[0]]) / ft__tensor_numel(&g->tensors[n->in[1]]));
    const double over = ceil(sqrt(window) / fmax(stride, 1));
    return FT_K_FUSION_WINDOW_BACK + over * over * FT_K_FUSION_WINDOW_BACK_EACH;
}

/* Of a batch norm that does not train the moments are there: for every element their kernel makes a root of one. */
static bool moments_given(const ft_fusion *f, const ft_node *n)
{
    return f->inference && n->verb == FT_DO_BATCHNORM && !ft__is_groupnorm(n);
}

/* An image of a few channels that is turned to channels-last: its elements lie far apart where it is read. */
static bool turns_picture(const ft_graph *g, const ft_node *n)
{
    return n->verb == FT_DO_COPY && n->transposes && n->out_count && g->tensors[n->out[0]].cols < FT_K_FUSION_FEW;
}

double ft__fusion_work(const ft_fusion *f, const ft_node *n)
{
    if (n->verb == FT_DO_POOL && !is_border(n)) return window_work(f->g, n);
    if (moments_given(f, n)) return FT_K_FUSION_WORK_GIVEN;
    if (turns_picture(f->g, n)) return FT_K_FUSION_WORK_TURNED;
    for (int i = 0; i < FT_K_FUSION_WORK_COUNT; i++) {
        const struct ft__k_fusion_work *w = &ft__k_fusion_work[i];
        if (named(n, w->name)) return n->op.pass == FT_PASS_FWD ? w->forward : w->backward;
    }
    return FT_K_FUSION_WORK_USUAL;
}
