/* source.c: parameters, buffers and constants; and operators that nobody knows. */
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"
#include "import/site.h"

void ft__read_parameter(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS], repeat = b->repeat;
    bool trained = ft__graphfile_truth(r, "trained", true), shared = ft__graphfile_truth(r, "shared", false);
    bool frozen = b->frozen;
    ft_format own = ft__graphfile_floats(r), format;
    if (!ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    if (!ft__graphfile_format_key(r, "dtype", own, &format)) return;
    if (format.values != FT_FLOATS || !trained) b->frozen = true;
    if (shared) b->repeat = 1;
    ft_ref w = ft__parameter(b, at->name, ft__graphfile_rows(dims, dim), dim[dims - 1]);
    ft__of_experts(b, w, ft__import_expert(at->name));
    b->repeat = repeat;
    b->frozen = frozen;
    if (ft__graphfile_failed(r)) return;
    ft_tensor *t = &b->g->tensors[w];
    b->g->parameter_bytes += (format.bytes - t->element_bytes) * ft__tensor_numel(t) * (double)t->copies;
    t->dtype = format.dtype;
    t->element_bytes = format.bytes;
    ft_named n = ft__graphfile_fresh(w, dims, dim);
    n.values = format.values;
    ft__graphfile_give(r, 0, &n);
}

void ft__read_buffer(ft_graph_reader *r, ft_at at)
{
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
    ft_format format;
    (void)at;
    if (!ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    if (!ft__graphfile_format_key(r, "dtype", ft__graphfile_floats(r), &format)) return;
    ft_build *b = ft__graphfile_build(r);
    ft_ref x = ft__buffer(b, ft__graphfile_rows(dims, dim), dim[dims - 1], format.bytes);
    if (ft__graphfile_failed(r)) return;
    b->g->tensors[x].dtype = format.dtype;
    ft_named n = ft__graphfile_fresh(x, dims, dim);
    n.values = format.values;
    ft__graphfile_give(r, 0, &n);
}

void ft__read_fill(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
    ft_format own = ft__graphfile_floats(r), format;
    if (!strcmp(ft__graphfile_op(r), "arange")) {
        own.values = FT_INTEGERS;
        own.bytes = 8;
    }
    if (!ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    if (!ft__graphfile_format_key(r, "dtype", own, &format)) return;
    ft_ref x = ft__fill(b, at, ft__graphfile_rows(dims, dim), dim[dims - 1], format.dtype, format.bytes);
    if (ft__graphfile_failed(r)) return;
    if (!strcmp(ft__graphfile_op(r), "empty")) { /* memory alone: no kernel */
        ft_node *last = &b->g->nodes[b->g->node_count - 1];
        last->op = ft__bytes_kernel("view", format.dtype, 0, 0);
    }
    ft_named n = ft__graphfile_fresh(x, dims, dim);
    n.values = format.values;
    ft__graphfile_give(r, 0, &n);
}

void ft__read_sync(ft_graph_reader *r, ft_at at) { ft__sync(ft__graphfile_build(r), at); }

void ft__read_other(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    const json_t *bytes = json_object_get(r->at, "bytes"), *flops = json_object_get(r->at, "flops");
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
    if (!ft__graphfile_shape(r, json_object_get(r->at, "shape"), "shape", &dims, dim)) return;
    double moved = json_number_value(bytes), done = json_number_value(flops);
    if (!(moved > 0 && moved < 1e18) || (flops && !json_is_number(flops)) || !(done >= 0 && done < 1e24)) {
        ft__graphfile_fail(r, FT_E_RANGE,
                           "an operator of another kind needs \"bytes\", from 1 to 1e18, and \"flops\" if it "
                           "has any");
        return;
    }
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft_format format = ft__graphfile_floats(r);
    for (size_t i = 0; i < ft__graphfile_operands(r); i++) {
        ft_named x;
        if (!ft__graphfile_operand(r, i, &x)) return;
        ft__node_in(&n, x.ref);
        const ft_tensor *t = ft__tensor_of(b, x.ref);
        if (i == 0 && x.values == FT_FLOATS) format = (ft_format){FT_FLOATS, t->dtype, ft_dtype_bytes(t->dtype)};
    }
    ft_ref y = ft__node_out(b, &n, ft__graphfile_rows(dims, dim), dim[dims - 1], format.dtype, format.bytes);
    const char *op = ft__graphfile_op(r);
    n.op = ft__bytes_kernel(ft__graphfile_text(r, op), format.dtype, moved, done);
    ft__emit(b, &n);
    ft__graphfile_result(r, y, dims, dim);
}
