/* buckets.c: gradients on their way into the buckets that travel between replicas, and back.
 *
 * PyTorch's DistributedDataParallel copies every gradient into its bucket when it is there, scaled, and the sum back
 * when all buckets have arrived (torch/csrc/distributed/c10d/reducer.cpp, mark_variable_ready_dense and
 * finalize_bucket_dense), unless gradients are views of the buckets (gradient_as_bucket_view, off by default); apex
 * flattens and unflattens them. Once a step, with the last micro-batch. */
#include "ranks/ranks.h"

/* The update's own block, where a step has one. */
static int32_t update_of(const ft_graph *g)
{
    for (int32_t b = 0; b < g->block_count; b++)
        if (g->blocks[b].phase == FT_UPDATE && g->blocks[b].count > 0) return b;
    return -1;
}

ft_status ft__ranks_copy_buckets(const ft_ranks *r, const ft_stage *s, ft_graph *g, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    const int32_t block = update_of(g);
    const double elements = s->dense + s->expert, bytes = ft__ranks_reduce_bytes(p, r->work);
    const bool replicas = r->work->task == FT_TRAIN && p->dp * p->cp > 1 && p->zero < 2;
    if (!replicas || !ft__ranks_stack(p, r->work)->copies_buckets || block < 0 || elements < 1) return FT_OK;
    ft_node n = {.verb = FT_DO_COPY,
                 .phase = FT_UPDATE,
                 .at = FT_AT(BUCKETS),
                 .count = 2,
                 .traffic = 1,
                 .effort = 1,
                 .members = 1};
    n.name = n.at->name;
    n.op = (ft_op){.kind = FT_OP_ELEMENTWISE, .name = "copy", .dtype = bytes > 2 ? FT_FP32 : FT_BF16};
    n.op.kv_dtype = n.op.dtype;
    n.op.u.elementwise.numel = (int64_t)elements;
    n.op.u.elementwise.inputs = 1;
    n.op.u.elementwise.bytes = 2 * elements * bytes;
    if (!ft__graph_insert(g, block, g->blocks[block].first, &n, 1)) return ft__no_memory(err);
    return FT_OK;
}
