/* reduce.c: reductions, softmax and the best of rows, along any axes.
 *
 * The row family knows sums along rows of memory, down columns and over everything. Axes at the end are rows, axes at
 * the front columns; axes in the middle are as many column sums as there is before them, which is one of as many
 * columns. */
#include <string.h>

#include "graph/across.h"
#include "graph/emit.h"
#include "import/graphfile/reader.h"

static const struct {
    const char *op, *what;
    ft_values values;
} reductions[] = {
    {"sum", "sum", FT_FLOATS},         {"mean", "mean", FT_FLOATS}, {"amax", "amax", FT_FLOATS},
    {"amin", "amax", FT_FLOATS},       {"prod", "prod", FT_FLOATS}, {"norm", "norm", FT_FLOATS},
    {"var", "var", FT_FLOATS},         {"std", "var", FT_FLOATS},   {"logsumexp", "logsumexp", FT_FLOATS},
    {"any", "any", FT_BOOLS},          {"all", "any", FT_BOOLS},    {"argmax", "argmax", FT_INTEGERS},
    {"argmin", "argmax", FT_INTEGERS},
};

/* How a kernel that walks over `set` of x's axes sees it. */
static ft_walking walk_of(const ft_named *x, unsigned set, ft_reduction *how)
{
    double reduced = 1, all = ft__graphfile_elements(x);
    int lowest = x->dims, highest = -1;
    unsigned whole = 0;
    for (int i = 0; i < x->dims; i++) {
        if (x->dim[i] > 1) whole |= 1u << (unsigned)i;
        if (!(set & 1u << (unsigned)i)) continue;
        reduced *= (double)x->dim[i];
        if (x->dim[i] == 1) continue;
        if (i < lowest) lowest = i;
        highest = i;
    }
    bool inside = true; /* the innermost axis that is more than one is reduced */
    for (int i = x->dims - 1; i > highest; i--) inside &= x->dim[i] == 1;
    bool turned = !x->unordered && inside && highest >= 0 && x->stride[highest] != 1, apart = false;
    for (int i = lowest; i < highest; i++) apart |= !(set & 1u << (unsigned)i) && x->dim[i] > 1;
    if ((whole & ~set) == 0) {
        how->kernel = "mean_all";
        how->kernel_rows = ft__graphfile_rows(x->dims, x->dim);
        how->kernel_cols = x->dim[x->dims - 1];
    } else if (inside && !turned) {
        how->kernel = "sum_rows";
        how->kernel_rows = (int64_t)(all / reduced);
        how->kernel_cols = (int64_t)reduced;
        if (apart) return ft__sum_apart(all / reduced, reduced);
    } else {
        how->kernel = "sum_cols";
        how->kernel_rows = (int64_t)reduced;
        how->kernel_cols = (int64_t)(all / reduced);
    }
    return (ft_walking){FT_WALK_NONE, 0, 0};
}

static void walks(ft_build *b, ft_walking walk)
{
    if (b->status != FT_OK || walk.walk == FT_WALK_NONE) return;
    ft_node *n = &b->g->nodes[b->g->node_count - 1];
    n->walk = walk.walk;
    n->trips = (float)walk.trips;
    n->blocks = (float)walk.blocks;
}

void ft__read_reduced(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x, out;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    unsigned set = ft__graphfile_axes(r, x.dims, -1);
    bool keep = ft__graphfile_truth(r, "keepdim", true);
    if (ft__graphfile_failed(r)) return;
    size_t which = 0;
    while (which + 1 < sizeof reductions / sizeof *reductions && strcmp(reductions[which].op, ft__graphfile_op(r)))
        which++;
    int64_t dim[FT_GRAPHFILE_DIMS];
    int dims = 0;
    for (int i = 0; i < x.dims; i++) {
        bool gone = set & 1u << (unsigned)i;
        if (!gone || keep) dim[dims++] = gone ? 1 : x.dim[i];
    }
    if (dims == 0) dim[dims++] = 1;
    out = ft__graphfile_fresh(FT_NONE, dims, dim);
    ft_reduction how = {.what = reductions[which].what, .rows = ft__graphfile_rows(dims, dim), .cols = dim[dims - 1]};
    ft_walking walk = walk_of(&x, set, &how);
    if (reductions[which].values == FT_INTEGERS && !strcmp(how.kernel, "sum_rows")) how.kernel = "argmax";
    out.ref = ft__reduce_over(b, at, x.ref, &how);
    walks(b, walk);
    if (ft__graphfile_failed(r)) return;
    out.values = x.values != FT_FLOATS && reductions[which].values == FT_FLOATS ? x.values : reductions[which].values;
    const ft_tensor *t = ft__tensor_of(b, x.ref);
    if (out.values == FT_BOOLS)
        ft__retype(b, out.ref, t->dtype, 1, false);
    else if (out.values == FT_INTEGERS)
        ft__retype(b, out.ref, t->dtype, 8, false);
    if (!strcmp(ft__graphfile_op(r), "std")) { /* the root of the variance, one kernel with it */
        ft_node *n = &b->g->nodes[b->g->node_count - 1];
        n->rule = "sum:x sub:x1 div:gy mul:32";
    }
    ft__graphfile_give(r, 0, &out);
}

static ft_walking softmax_walk(const ft_named *x, int axis, double element_bytes)
{
    double outer = 1, inner = 1;
    for (int i = 0; i < axis; i++) outer *= (double)x->dim[i];
    for (int i = axis + 1; i < x->dims; i++) inner *= (double)x->dim[i];
    return ft__softmax_across(outer, (double)x->dim[axis], inner, element_bytes);
}

/* softmax, log_softmax, cumsum. Along another axis than memory's innermost the kernel reads across. */
void ft__read_row(ft_graph_reader *r, ft_at at)
{
    static const char *const rows[] = {"softmax", "log_softmax", "cumsum"}; /* names that outlive the file */
    ft_build *b = ft__graphfile_build(r);
    ft_named x;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    int axis = ft__graphfile_axis(r, x.dims, -1);
    if (axis < 0) return;
    const char *op = rows[0];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(ft__graphfile_op(r), rows[i])) op = rows[i];
    ft_ref in = ft__graphfile_by_rows(r, at, &x);
    /* Autocast asks a softmax for fp32 and does not raise what it reads: of fp16 that is one kernel. */
    bool whole = op == rows[0] && axis == x.dims - 1;
    ft_ref y = whole ? ft__softmax(b, at, in, false) : ft__row(b, at, op, in);
    if (!ft__graphfile_failed(r) && axis != x.dims - 1) {
        ft_op *row = &b->g->nodes[b->g->node_count - 1].op;
        row->u.row.cols = x.dim[axis];
        row->u.row.rows = (int64_t)(ft__graphfile_elements(&x) / (double)x.dim[axis]);
        if (!strcmp(op, "cumsum"))
            ft__walks_steps(b, x.dim[axis], row->u.row.rows);
        else
            walks(b, softmax_walk(&x, axis, ft__tensor_of(b, in)->element_bytes));
    }
    ft__graphfile_result(r, y, x.dims, x.dim);
}

/* topk, sort: values and indices. */
void ft__read_best(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    int axis = ft__graphfile_axis(r, x.dims, -1);
    if (axis < 0) return;
    int64_t all = x.dim[axis], k = all;
    if (!strcmp(ft__graphfile_op(r), "topk")) k = ft__graphfile_whole(r, "k", 0, 1, all);
    if (ft__graphfile_failed(r)) return;
    int64_t rows = (int64_t)(ft__graphfile_elements(&x) / (double)all);
    ft_ref in = axis == x.dims - 1 ? ft__graphfile_by_rows(r, at, &x)
                                   : ft__transpose(b, at, x.ref, rows, all); /* rows are brought together first */
    ft_ref indices = FT_NONE, values = ft__topk(b, at, in, rows, all, k, &indices);
    if (ft__graphfile_failed(r)) return;
    x.dim[axis] = k;
    ft_named out = ft__graphfile_fresh(values, x.dims, x.dim), where = ft__graphfile_fresh(indices, x.dims, x.dim);
    out.values = x.values;
    where.values = FT_INTEGERS;
    ft__graphfile_give(r, 0, &out);
    ft__graphfile_give(r, 1, &where);
}
