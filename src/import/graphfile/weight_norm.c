/* weight_norm.c: a weight's direction times its length, as torch.nn.utils.weight_norm makes it anew in every pass
 * (aten/src/ATen/native/cuda/WeightNorm.cu). Along the first axis a block takes a row: as fast as memory. Along the
 * last one a block takes sixteen columns and goes through all rows twice. */
#include <math.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"

enum { COLUMNS = 16, ROWS = 64 }; /* of a thread block at a time */

void ft__read_weight_norm(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named v, g;
    if (!ft__graphfile_operand(r, 0, &v) || !ft__graphfile_operand(r, 1, &g)) return;
    bool last = ft__graphfile_truth(r, "last", false);
    if (ft__graphfile_failed(r)) return;
    int64_t rows = ft__graphfile_rows(v.dims, v.dim), cols = v.dim[v.dims - 1];
    ft_tensor t = *ft__tensor_of(b, v.ref);
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft__node_in(&n, v.ref);
    ft__node_in(&n, g.ref);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return;
    n.op = ft__bytes_kernel("weight_norm", t.dtype, 2 * ft__tensor_bytes(&t), 3 * ft__tensor_numel(&t));
    if (last) {
        n.walk = FT_WALK_WEIGHT_NORM;
        n.trips = (float)ceil((double)rows / ROWS);
        n.blocks = (float)ceil((double)cols / COLUMNS);
    }
    ft__emit(b, &n);
    ft__graphfile_result(r, out, v.dims, v.dim);
}
