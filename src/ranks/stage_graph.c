/* stage_graph.c: the graph of one pipeline stage of one rank, cut out of the whole, and what of it is gathered and
 * reduced at once. */
#include <math.h>
#include <string.h>

#include "ranks/many_constants.h"
#include "ranks/ranks.h"

void ft__ranks_unit(const ft_stage *s, int32_t block, bool trained, double element, double *dense, double *expert)
{
    const ft_graph *g = s->g;
    int32_t last = -1;
    *dense = *expert = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        if (g->blocks[b].phase == FT_FORWARD) last = b;
    for (int32_t i = 0; i < s->parameter_count; i++) {
        const ft_tensor *t = &g->tensors[s->parameters[i]];
        bool here = t->block == block || (t->block < 0 && block == last);
        if (!here || (trained && !t->trained)) continue;
        *(ft__is_expert(t) ? expert : dense) += ft__tensor_numel(t) * ft__ranks_travels(t, element) / element;
    }
}

/* Looked up for every block, and few among tensors. */
static ft_status list_parameters(const ft_graph *g, ft_stage *s, ft_error *err)
{
    int32_t *list = ft__arena_bare(g->arena, (size_t)g->tensor_count + 1, sizeof *list);
    if (!list) return ft__fail(err, FT_E_MEMORY, "out of memory for a stage's parameters");
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].role == FT_PARAMETER && g->tensors[i].storage == i) list[s->parameter_count++] = i;
    s->parameters = list;
    return FT_OK;
}

/* States are updated where they live. */
static void shard_update(const ft_ranks *r, const ft_stage *s, ft_graph *g)
{
    if (r->parallel->zero < 1) return;
    double kept = ft__ranks_kept(r->parallel, s->dense, s->expert);
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].verb == FT_DO_OPTIMIZER && g->nodes[i].op.kind == FT_OP_OPTIMIZER) {
            int64_t *params = &g->nodes[i].op.u.optimizer.params;
            *params = (int64_t)ceil((double)*params * kept);
            if (g->nodes[i].op.u.optimizer.tensors > *params) g->nodes[i].op.u.optimizer.tensors = *params;
        }
}

/* What is gathered and reduced at once. FSDP's units are layers, and a root that has everything else: it is gathered
 * from the first forward kernel to the last backward one, since it has both the embedding and the head. */
static void measure_units(const ft_ranks *r, ft_stage *s)
{
    double flowing = fmax(2, ft_dtype_bytes(r->work->dtype));
    for (int32_t b = 0; b < s->g->block_count; b++) {
        const ft_block *block = &s->g->blocks[b];
        double dense, expert;
        if (block->phase != FT_FORWARD) continue;
        bool root = ft__ranks_fsdp(r->parallel, r->work) && !ft__block_is_layer(block);
        const double element = ft__ranks_gather_bytes(r->parallel, r->work);
        ft__ranks_unit(s, b, false, element, &dense, &expert);
        double gathered = (dense + expert) * element;
        s->gathered_bytes += gathered * (double)block->repeat;
        ft__ranks_unit(s, b, true, 1, &dense, &expert);
        double reduced = (dense + expert) * ft__ranks_reduce_bytes(r->parallel, r->work);
        if (root) {
            s->root_bytes += gathered;
            s->root_gradient_bytes += reduced;
            if (block->carry_in != FT_NONE) s->head_gradient_bytes += (dense + expert) * flowing;
        } else {
            s->layer_bytes = fmax(s->layer_bytes, gathered);
            s->layer_gradient_bytes = fmax(s->layer_gradient_bytes, reduced);
            s->layer_flowing_bytes = fmax(s->layer_flowing_bytes, (dense + expert) * flowing);
        }
    }
    /* The layer that runs and the next; of gradients the layer whose are complete and the one whose are being made. */
    s->live_bytes = 2 * s->layer_bytes;
    s->live_gradient_bytes = 2 * s->layer_gradient_bytes;
    if (!ft__ranks_by_parameter(r->parallel, r->work)) return;
    /* Tensor by tensor: the one that is read beside as many as may stay, a gradient beside the bucket before it. */
    double largest = 0;
    for (int32_t i = 0; i < s->parameter_count; i++)
        largest = fmax(largest, ft__tensor_numel(&s->g->tensors[s->parameters[i]]));
    s->live_bytes = fmin(s->live_bytes,
                         (largest + FT_K_MANY_LIVE_ELEMENTS) * ft__ranks_gather_bytes(r->parallel, r->work));
    s->live_gradient_bytes = fmin(s->live_gradient_bytes,
                                  (largest + FT_K_MANY_FILLED_ELEMENTS) * ft__ranks_reduce_bytes(r->parallel, r->work));
}

ft_status ft__ranks_graph(const ft_ranks *r, int64_t index, ft_stage *out, ft_error *err)
{
    ft_workload work = ft__ranks_workload(r), once = work;
    once.accumulate = 1;
    once.layers_apart = r->parallel->pp > 1 || ft__ranks_fsdp(r->parallel, r->work);
    ft_graph *g = NULL;
    memset(out, 0, sizeof *out);
    out->count = 1;
    ft_divisible model = ft__ranks_model(r->arch, r->work);
    const ft_stack *stack = ft__ranks_stack(r->parallel, r->work);
    model.apart = model.training && stack->exchanges_apart;
    model.whole_logits = model.training && stack->parallel_loss == FT_PARALLEL_LOSS_WHOLE;
    FT_TRY(ft__model_forward(r->arch, &once, r->arena, &g, err));
    FT_TRY(ft__layout_stage(g, r->parallel, index, &out->chunks, err));
    FT_TRY(ft__layout_cut(g, r->parallel, &model, &out->replicated, err));
    FT_TRY(ft__model_complete(r->arch, &work, g, err));
    ft__loss_memory(g, ft__ranks_loss(r->parallel, r->work));
    FT_TRY(list_parameters(g, out, err));
    for (int32_t i = 0; i < out->parameter_count; i++) {
        const ft_tensor *t = &g->tensors[out->parameters[i]];
        if (!t->trained) continue;
        double elements = ft__tensor_numel(t) * (double)t->copies;
        *(ft__is_expert(t) ? &out->expert : &out->dense) += elements;
        out->gradient_bytes += elements * fmax(2, t->element_bytes);
    }
    shard_update(r, out, g);
    FT_TRY(ft__ranks_copy_buckets(r, out, g, err));
    out->g = g;
    measure_units(r, out);
    return ft__ranks_chunk_parts(r, index, out, err);
}

ft_status ft__ranks_twins(const ft_ranks *r, const ft_graph *whole, int64_t a, int64_t b, bool *same, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    size_t blocks = (size_t)whole->block_count, parts = blocks * (size_t)ft__parallel_chunks(p);
    *same = false;
    if (a < 1 || b < 1 || a >= p->pp - 1 || b >= p->pp - 1) return FT_OK;
    int64_t *one = ft__arena_array(r->arena, blocks * 2, sizeof *one);
    double *part = ft__arena_array(r->arena, parts * 2, sizeof *part);
    if (!one || !part) return ft__no_memory(err);
    FT_TRY(ft__layout_shares(whole, p, a, one, part, err));
    FT_TRY(ft__layout_shares(whole, p, b, one + blocks, part + parts, err));
    *same = !memcmp(one, one + blocks, blocks * sizeof *one);
    for (size_t i = 0; i < parts; i++) *same = *same && part[i] == part[parts + i];
    return FT_OK;
}
