/* join.c: concatenations and splits of a graph file. */
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"

enum { MOST_PARTS = 4096 };

/* The shape of all parts side by side along "axis"; false after an error. */
static bool side_by_side(ft_graph_reader *r, size_t count, int *dims, int64_t *dim)
{
    ft_named first, x;
    if (!ft__graphfile_operand(r, 0, &first)) return false;
    int axis = ft__graphfile_axis(r, first.dims, -1);
    if (axis < 0) return false;
    *dims = first.dims;
    memcpy(dim, first.dim, sizeof first.dim);
    for (size_t i = 1; i < count; i++) {
        if (!ft__graphfile_operand(r, i, &x)) return false;
        bool fits = x.dims == first.dims;
        for (int k = 0; fits && k < x.dims; k++) fits = k == axis || x.dim[k] == first.dim[k];
        if (!fits) {
            ft__graphfile_fail(r, FT_E_RANGE, "operand %d has other sizes than the first beside axis %d", (int)i + 1,
                               axis);
            return false;
        }
        dim[axis] += x.dim[axis];
        if (dim[axis] > (int64_t)1 << 40) break;
    }
    return ft__graphfile_possible(r, *dims, dim);
}

/* Elements that follow each other in the result before its parts begin again: from the axis along which they are
 * joined. */
static double run_of(const ft_named *part, int dims, const int64_t *dim)
{
    int axis = 0;
    while (part->dims == dims && axis < dims - 1 && part->dim[axis] == dim[axis]) axis++;
    if (part->dims != dims) axis = dims - 1;
    double run = 1;
    for (int i = axis; i < dims; i++) run *= (double)dim[i];
    return run;
}

void ft__read_cat(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    size_t count = ft__graphfile_operands(r);
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
    double sum = 0, run = 1;
    bool last = true; /* images that all lie channels last are joined so */
    ft_values values = FT_FLOATS;
    if (json_object_get(r->at, "axis") ? !side_by_side(r, count, &dims, dim)
                                       : !ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim))
        return;
    ft_ref *in = ft__arena_array(b->g->arena, count, sizeof *in);
    if (!in) {
        ft__build_fail(b, FT_E_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ft_named x;
        if (!ft__graphfile_operand(r, i, &x)) return;
        in[i] = x.ref;
        sum += ft__graphfile_elements(&x);
        if (i == 0) values = x.values;
        last = last && x.dims == dims && (ft__graphfile_channels_last(&x) || ft__graphfile_cut_channels(&x));
        if (i == 0) run = run_of(&x, dims, dim);
    }
    int64_t rows = ft__graphfile_rows(dims, dim);
    if (sum != (double)rows * (double)dim[dims - 1]) {
        ft__graphfile_fail(r, FT_E_RANGE, "%d tensors of %.0f elements together cannot give %.0f", (int)count, sum,
                           (double)rows * (double)dim[dims - 1]);
        return;
    }
    int64_t wide = last ? dim[1] : dim[dims - 1], high = last ? rows / dim[1] * dim[dims - 1] : rows;
    ft_ref all = count > 1 ? ft__cat_runs(b, at, (int)count, in, high, wide, last ? (double)wide : run)
                           : ft__copy(b, at, in[0], high, wide);
    if (ft__graphfile_failed(r)) return;
    /* Joined with nothing it is copied all the same, by the kernel that joins. */
    if (count == 1) b->g->nodes[b->g->node_count - 1].op.name = "append";
    ft_named out = ft__graphfile_fresh(all, dims, dim);
    out.values = values;
    if (last) ft__graphfile_set_channels_last(&out);
    ft__graphfile_give(r, 0, &out);
}

/* -- split, unbind ----------------------------------------------------------------------------- */

/* Parts of x as views whose gradients are joined; more than a node has results in groups of groups. */
static void split_up(ft_build *b, const ft_named *x, ft_ref ref, int count, ft_named *part)
{
    if (b->status != FT_OK || count < 1) return;
    if (count == 1) {
        part->ref = ref;
        return;
    }
    int groups = count < FT_NODE_OUTPUTS ? count : FT_NODE_OUTPUTS, at = 0;
    ft_node n = ft__node_of(FT_DO_SPLIT, FT_AT(SPLIT));
    ft__node_in(&n, ref);
    ft_ref made[FT_NODE_OUTPUTS];
    int first[FT_NODE_OUTPUTS + 1];
    for (int i = 0; i < groups; i++) {
        int mine = (count - at) / (groups - i), end = at + mine;
        double all = 0;
        first[i] = at;
        for (int k = at; k < end; k++) all += ft__graphfile_elements(&part[k]);
        const ft_named *one = &part[at];
        int64_t cols = one->dim[one->dims - 1], rows = (int64_t)(all / (double)cols);
        if (mine > 1 && rows < 1) rows = 1;
        made[i] = ft__node_view(b, &n, ref, rows, cols, true);
        if (made[i] == FT_NONE) return;
        ft_order order = mine > 1 ? FT_GAPS : ft__graphfile_order(one);
        b->g->tensors[made[i]].strided = order != FT_IN_ORDER;
        b->g->tensors[made[i]].permuted = order == FT_PERMUTED || order == FT_PERMUTED_GAPS;
        b->g->tensors[made[i]].gaps = true;
        at = end;
    }
    first[groups] = count;
    ft__emit(b, &n);
    for (int i = 0; i < groups; i++) split_up(b, x, made[i], first[i + 1] - first[i], part + first[i]);
}

/* Sizes along the axis; false after an error. */
static bool part_sizes(ft_graph_reader *r, const ft_named *x, int axis, size_t count, ft_named *part)
{
    const json_t *sizes = json_object_get(r->at, "sizes");
    int64_t sum = 0;
    bool good = json_is_array(sizes) && json_array_size(sizes) == count;
    for (size_t i = 0; good && i < count; i++) {
        good = ft__graphfile_size_read(r, json_array_get(sizes, i), &part[i].dim[axis]);
        sum += good ? part[i].dim[axis] : 0;
        good = good && sum <= x->dim[axis];
    }
    if (good && sum == x->dim[axis]) return true;
    ft__graphfile_fail(r, sizes ? FT_E_RANGE : FT_E_MISSING,
                       "\"sizes\" must be a list of %d, one for each name in \"out\", and give %lld together",
                       (int)count, (long long)x->dim[axis]);
    return false;
}

void ft__read_split(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x;
    bool unbind = !strcmp(ft__graphfile_op(r), "unbind");
    size_t count = ft__graphfile_outs(r);
    (void)at;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    int axis = ft__graphfile_axis(r, x.dims, unbind ? 0 : -1);
    if (axis < 0) return;
    if (count < 1 || count > MOST_PARTS || (unbind && ((int64_t)count != x.dim[axis] || x.dims < 2))) {
        if (unbind)
            ft__graphfile_fail(r, FT_E_RANGE, "\"out\" must name %lld results of two axes or more, got %d",
                               (long long)x.dim[axis], (int)count);
        else
            ft__graphfile_fail(r, FT_E_RANGE, "\"out\" must be a list of 1 to %d names", MOST_PARTS);
        return;
    }
    ft_named *part = ft__arena_array(b->g->arena, count, sizeof *part);
    if (!part) {
        ft__build_fail(b, FT_E_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        part[i] = x;
        part[i].repeats = FT_NONE;
    }
    if (!unbind && !part_sizes(r, &x, axis, count, part)) return;
    for (size_t i = 0; i < count && unbind; i++) {
        part[i].dims--;
        for (int k = axis; k < part[i].dims; k++) {
            part[i].dim[k] = x.dim[k + 1];
            part[i].stride[k] = x.stride[k + 1];
        }
    }
    split_up(b, &x, x.ref, (int)count, part);
    for (size_t i = 0; i < count && !ft__graphfile_failed(r); i++) ft__graphfile_give(r, i, &part[i]);
}
