/* build_rotary.c: rotary embeddings of latent attention by kernels of their own.
 *
 * Megatron-Core has one for queries, which rotates the last columns of every head in place, and one for keys and
 * values, which takes the expanded latent apart, rotates the key that all heads share and writes keys and values as
 * attention reads them (core/fusions/fused_mla_yarn_rope_apply.py: apply_rope_fusion, whose gradients are the same
 * kernels the other way round and read nothing that was saved). */
#include "graph/emit.h"

/* Reads and writes so many bytes in order; the tables of sines are small. */
static ft_op moving(const ft_build *b, const ft_tensor *like, double bytes)
{
    ft_op op = ft__pointwise_kernel(b->g, "copy", NULL, 0, like);
    op.u.elementwise.bytes = bytes;
    op.u.elementwise.numel = (int64_t)(bytes / 2 / like->element_bytes);
    return op;
}

ft_ref ft__rotate_tail(ft_build *b, ft_at at, ft_ref x, int64_t cols)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_ROTATE, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    n.in_place = true;
    ft_ref out = ft__node_view(b, &n, x, t.rows, t.cols, t.strided);
    if (out == FT_NONE) return out;
    n.op = moving(b, &t, 2 * (double)t.rows * (double)cols * t.element_bytes);
    ft__emit(b, &n);
    return out;
}

void ft__rotate_split(ft_build *b, ft_at at, ft_ref kv, ft_ref shared, int64_t v_cols, ft_ref *k, ft_ref *v)
{
    *k = *v = FT_NONE;
    if (b->status != FT_OK) return;
    ft_node n = ft__node_of(FT_DO_ROTATE, at);
    ft__node_in(&n, kv);
    ft__node_in(&n, shared);
    ft_tensor t = *ft__tensor_of(b, kv), s = *ft__tensor_of(b, shared);
    *k = ft__node_out(b, &n, t.rows, t.cols - v_cols + s.cols, t.dtype, t.element_bytes);
    *v = ft__node_out(b, &n, t.rows, v_cols, t.dtype, t.element_bytes);
    if (*k == FT_NONE || *v == FT_NONE) return;
    double written = (double)t.rows * (double)(t.cols + s.cols) * t.element_bytes;
    n.op = moving(b, &t, ft__tensor_bytes(&t) + ft__tensor_bytes(&s) + written);
    ft__emit(b, &n);
}
