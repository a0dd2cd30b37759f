/* stage.c: one pipeline stage of one rank: its graph, its exchanges, its time. */
#include <math.h>
#include <string.h>

#include "comm/pcie_box.h"
#include "ranks/lanes.h"
#include "ranks/many_constants.h"
#include "ranks/parameters.h"
#include "ranks/wrapper.h"
#include "timeline/overlap_slowdown.h"

/* -- exchanges --------------------------------------------------------------------------------- */

typedef struct stage_lanes {
    ft_lanes lanes;
    double *comm, *gather, *scatter, *again, *spent;
    bool *pieces, *begins;
    double *left;
    ft_axis *axis;
    int32_t *awaits, *sends;
    ft_ranks_width width;
    double last_bucket_ms; /* what waits for the backward pass to end */
    ft_wrapped *wrapped;
} stage_lanes;

/* Bytes of an element: as parameters are gathered, as gradients are reduced. Sharded ones travel in the format of the
 * mathematics (FSDP's mixed precision, ZeRO-3); Megatron sums gradients in fp32 where it keeps them so. */
static double gather_element(const ft_ranks *r) { return ft__ranks_gather_bytes(r->parallel, r->work); }

static double reduce_element(const ft_ranks *r) { return ft__ranks_reduce_bytes(r->parallel, r->work); }

/* Gradients wait for each other until a bucket is full; FSDP's unit is a layer, and so is 0. */
static double bucket_elements(const ft_ranks *r, const ft_stack *stack)
{
    return fmax(stack->bucket_elements,
                stack->bucket_elements_per_rank * (double)ft__ranks_replicas(r->parallel, false).size);
}

static double bucket_of(const ft_ranks *r, double element)
{
    if (r->parallel->bucket_bytes > 0) return r->parallel->bucket_bytes;
    if (r->parallel->zero >= 3) return 0;
    const ft_stack *stack = ft__ranks_stack(r->parallel, r->work);
    return stack->bucket_mib > 0 ? stack->bucket_mib * 1048576 : bucket_elements(r, stack) * element;
}

/* Each rank sends its part to all others, one rank after the other: as many starts as there are ranks. */
static ft_status broadcast_ms(const ft_ranks *r, const ft_group *group, double bytes, double *ms, ft_error *err)
{
    ft_comm one = {0};
    *ms = 0;
    if (group->size < 2 || bytes <= 0) return FT_OK;
    double ranks = (double)group->size;
    FT_TRY(ft__collective_forecast(r->predictor, r->device, r->cluster, FT_COLLECTIVE_BROADCAST, bytes / ranks, group,
                                   r->quantile, &one, err));
    *ms = ranks * one.ms;
    return FT_OK;
}

static ft_status gathered_ms(const ft_ranks *r, const ft_group *group, double bytes, stage_lanes *s, double *ms,
                             ft_error *err)
{
    if (r->parallel->zero == 1 && ft__ranks_stack(r->parallel, r->work)->broadcasts_updates)
        return broadcast_ms(r, group, bytes, ms, err);
    return ft__ranks_exchange(r, FT_EXCHANGE_ALL_GATHER, group, bytes, ms, &s->width, err);
}

static ft_status gather_ms(const ft_ranks *r, double dense, double expert, stage_lanes *s, double *ms, ft_error *err)
{
    double one, element = gather_element(r);
    ft_group group = ft__ranks_sharers(r->parallel, false);
    FT_TRY(gathered_ms(r, &group, dense * element, s, ms, err));
    group = ft__ranks_sharers(r->parallel, true);
    FT_TRY(gathered_ms(r, &group, expert * element, s, &one, err));
    *ms += one;
    return FT_OK;
}

/* Beside the next forward pass: a layer's updated parameters as part of a bucket, the one that its gradients were in
 * (Megatron's --overlap-param-gather; nobody else does this, so that its buckets are meant where the stack has none of
 * so many elements). Small layers share a bucket's latency. */
static ft_status gather_ahead_ms(const ft_ranks *r, double dense, double expert, const ft_stage *stage, stage_lanes *s,
                                 double *ms, ft_error *err)
{
    double said = r->parallel->bucket_bytes / reduce_element(r), one;
    double own = bucket_elements(r, ft__ranks_stack(r->parallel, r->work));
    double bucket = said > 0 ? said : own > 0 ? own : bucket_elements(r, ft__default_stacks[FT_STACK_FOR_FUSED]);
    double filled = fmax(fmin(bucket, stage->dense), dense), experts = fmax(fmin(bucket, stage->expert), expert);
    FT_TRY(gather_ms(r, filled, 0, s, ms, err));
    FT_TRY(gather_ms(r, 0, experts, s, &one, err));
    *ms = (filled > 0 ? *ms * dense / filled : 0) + (experts > 0 ? one * expert / experts : 0);
    return FT_OK;
}

/* Sums gradients of `bytes` over a group: to all ranks, to their shards, or to shards and then over the copies. */
static ft_status sum_ms(const ft_ranks *r, double bytes, bool expert, stage_lanes *s, double *ms, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    ft_group all = ft__ranks_replicas(p, expert), sharers = ft__ranks_sharers(p, expert);
    *ms = 0;
    if (p->zero < 1 || ft__ranks_sums_whole(p, r->work))
        return ft__ranks_exchange(r, FT_EXCHANGE_ALL_REDUCE, &all, bytes, ms, &s->width, err);
    FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_REDUCE_SCATTER, &sharers, bytes, ms, &s->width, err));
    if (sharers.size >= all.size) return FT_OK;
    double over;
    ft_group copies = {.size = all.size / sharers.size, .stride = all.stride * sharers.size};
    FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_ALL_REDUCE, &copies, bytes / (double)sharers.size, &over, &s->width, err));
    *ms += over;
    return FT_OK;
}

/* As part of a bucket: small layers share its latency, large ones are several in a row. */
static ft_status bucketed_ms(const ft_ranks *r, double bytes, double bucket, bool expert, stage_lanes *s, double *ms,
                             ft_error *err)
{
    double filled = fmax(bucket, bytes);
    *ms = 0;
    if (bytes <= 0) return FT_OK;
    FT_TRY(sum_ms(r, filled, expert, s, ms, err));
    *ms *= bytes / filled;
    return FT_OK;
}

static ft_status block_exchanges(const ft_ranks *r, const ft_graph *g, int32_t b, ft_stage *stage, stage_lanes *s,
                                 ft_error *err)
{
    const ft_block *block = &g->blocks[b];
    const ft_parallel *p = r->parallel;
    /* Serving engines sum small buffers by kernels of their own. */
    bool engine = ft__by_engine(r->work);
    for (int32_t i = block->first; i < block->first + block->count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->verb != FT_DO_COMM) continue;
        ft_group group = {0};
        ft__parallel_group(p, n->exchange.axis, &group.size, &group.stride);
        double bytes = n->exchange.bytes;
        if (n->exchange.axis == FT_AXIS_EXPERT) {
            group.skew = p->skew;
            bytes *= ft__ranks_dispatched(r, &group);
        }
        if (engine && n->exchange.bytes <= FT_K_MANY_ENGINE_SUM_BYTES) group.engine = FT_ENGINE_VLLM;
        s->axis[i] = n->exchange.axis;
        s->left[i] = n->exchange.axis == FT_AXIS_CONTEXT ? ft__ranks_attention_left(p, r->work) : 0;
        s->pieces[i] = n->exchange.axis == FT_AXIS_TENSOR && ft__ranks_in_pieces(p, r->work);
        FT_TRY(ft__ranks_exchange(r, n->exchange.kind, &group, bytes, &s->comm[i], &s->width, err));
        stage->axis_ms[n->exchange.axis] += s->comm[i] * (double)n->count * (double)block->repeat;
    }
    if (block->phase == FT_UPDATE || p->dp * p->cp < 2 || r->work->task != FT_TRAIN) return FT_OK;
    if (ft__ranks_by_parameter(p, r->work)) return FT_OK; /* those have no blocks */
    double dense, expert, repeat = (double)block->repeat;
    int32_t forward = block->phase == FT_BACKWARD ? block->mirror : b;
    ft__ranks_unit(stage, forward, false, gather_element(r), &dense, &expert);
    bool sharded = p->zero >= 3, ahead = p->zero >= 1 && p->gather_ahead && block->phase == FT_FORWARD;
    if (sharded && block->phase == FT_BACKWARD && ft__ranks_keeps_gathered(p, r->work)) sharded = false;
    if (sharded) FT_TRY(gather_ms(r, dense, expert, s, &s->gather[b], err));
    if (ahead && !sharded) {
        ft__ranks_unit(stage, forward, true, 1, &dense, &expert); /* what was updated */
        FT_TRY(gather_ahead_ms(r, dense, expert, stage, s, &s->gather[b], err));
    }
    if (sharded)
        *(ft__ranks_gathers_each(p, r->work) ? &stage->axis_ms[FT_AXIS_DATA]
                                             : &stage->first_gather_ms) += s->gather[b] * repeat;
    if (ahead && !sharded) stage->ahead_ms += s->gather[b] * repeat;
    if (block->phase != FT_BACKWARD) return FT_OK;
    double element = reduce_element(r), bucket = bucket_of(r, element), one;
    ft__ranks_unit(stage, forward, true, 1, &dense, &expert);
    /* No bucket holds more than there is, and experts have buckets of their own. */
    FT_TRY(bucketed_ms(r, dense * element, fmin(bucket, stage->dense * element), false, s, &s->scatter[b], err));
    FT_TRY(bucketed_ms(r, expert * element, fmin(bucket, stage->expert * element), true, s, &one, err));
    s->scatter[b] += one;
    stage->gradient_ms += s->scatter[b] * repeat;
    return FT_OK;
}

/* Weights' gradients of products cut by columns read what was gathered going forward, of which only this rank's tokens
 * were kept: the first of its readers waits until it is gathered again. */
static ft_status gather_again(const ft_ranks *r, const ft_graph *g, stage_lanes *s, ft_error *err)
{
    if (!r->parallel->sp || r->parallel->tp < 2) return FT_OK;
    double *bytes = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *bytes);
    if (!bytes) return ft__no_memory(err);
    ft_group group = {0};
    ft__parallel_group(r->parallel, FT_AXIS_TENSOR, &group.size, &group.stride);
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        bool gathers = n->verb == FT_DO_COMM && n->exchange.axis == FT_AXIS_TENSOR &&
                       n->exchange.kind == FT_EXCHANGE_ALL_GATHER && n->workspace > 0;
        if (gathers) bytes[n->out[0]] = n->exchange.bytes;
        bool product = n->verb == FT_DO_LINEAR || n->verb == FT_DO_MATMUL;
        for (int k = 0; k < n->in_count && n->phase == FT_BACKWARD && product; k++) {
            if (n->in[k] < 0 || !(bytes[n->in[k]] > 0)) continue;
            FT_TRY(
                ft__ranks_exchange(r, FT_EXCHANGE_ALL_GATHER, &group, bytes[n->in[k]], &s->again[i], &s->width, err));
            bytes[n->in[k]] = 0;
        }
    }
    return FT_OK;
}

/* Parameters are gathered from others. */
static bool shards(const ft_parallel *p) { return p->zero >= 3 && p->dp * p->cp > 1; }

static ft_status room_for_lanes(ft_arena *arena, const ft_graph *g, stage_lanes *out, ft_error *err)
{
    size_t nodes = (size_t)g->node_count + 1, blocks = (size_t)g->block_count + 1;
    out->comm = ft__arena_array(arena, nodes, sizeof *out->comm);
    out->again = ft__arena_array(arena, nodes, sizeof *out->again);
    out->left = ft__arena_array(arena, nodes, sizeof *out->left);
    out->pieces = ft__arena_array(arena, nodes, sizeof *out->pieces);
    out->begins = ft__arena_array(arena, nodes, sizeof *out->begins);
    out->axis = ft__arena_array(arena, nodes, sizeof *out->axis);
    out->awaits = ft__arena_array(arena, nodes, sizeof *out->awaits);
    out->sends = ft__arena_array(arena, nodes, sizeof *out->sends);
    out->gather = ft__arena_array(arena, blocks, sizeof *out->gather);
    out->scatter = ft__arena_array(arena, blocks, sizeof *out->scatter);
    out->spent = ft__arena_array(arena, blocks, sizeof *out->spent);
    out->wrapped = ft__arena_alloc(arena, sizeof *out->wrapped);
    bool room = out->comm && out->again && out->left && out->pieces && out->begins && out->axis && out->awaits &&
                out->sends && out->gather && out->scatter && out->spent && out->wrapped;
    return room ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory for a stage's streams");
}

static ft_status lanes_of(const ft_ranks *r, const ft_graph *g, const ft_step *step, ft_stage *stage, stage_lanes *out,
                          ft_error *err)
{
    FT_TRY(room_for_lanes(r->arena, g, out, err));
    FT_TRY(ft__ranks_wrapped(r, stage, out->wrapped, err));
    FT_TRY(ft__lanes_awaits(g, out->awaits, out->sends, err));
    for (int32_t b = 0; b < g->block_count; b++) FT_TRY(block_exchanges(r, g, b, stage, out, err));
    FT_TRY(gather_again(r, g, out, err));
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++)
            stage->axis_ms[FT_AXIS_TENSOR] += out->again[i] * (double)g->blocks[b].repeat;
    const ft_sharded *sharded = NULL;
    if (ft__ranks_by_parameter(r->parallel, r->work) && r->parallel->dp * r->parallel->cp > 1)
        FT_TRY(ft__ranks_parameters(r, stage, &out->width, &sharded, err));
    /* The embedding's gradient is the last one. */
    double bucket = fmin(bucket_of(r, reduce_element(r)), stage->dense * reduce_element(r));
    if (bucket > 0 && r->parallel->dp * r->parallel->cp > 1)
        FT_TRY(sum_ms(r, bucket, false, out, &out->last_bucket_ms, err));
    bool overlapping = ft__ranks_stack(r->parallel, r->work)->tensor_sums_beside;
    out->lanes = (ft_lanes){.g = g,
                            .costs = step->pace->costs,
                            .entry = out->wrapped->entry,
                            .pass = out->wrapped->pass,
                            .comm = out->comm,
                            .axis = out->axis,
                            .awaits = out->awaits,
                            .sends = out->sends,
                            .left = out->left,
                            .pieces = out->pieces,
                            .again = out->again,
                            .gather = out->gather,
                            .scatter = out->scatter,
                            .sharded = sharded,
                            .latency = step->pace->latency,
                            .gap = step->pace->gap,
                            .queue = step->pace->queue,
                            .reads_loss = step->pace->reads_loss,
                            .holds = ft__ranks_holds(r->parallel, r->work),
                            .piece_count = (double)r->parallel->tp,
                            .async = overlapping,
                            .slowdown = ft__ranks_overlapped(&out->width),
                            .stands = out->width.slots && !(shards(r->parallel) && ft__pcie_by_host(r->device)),
                            .sms = ft__overlap_whole_waves(r->device) ? r->device->sms : 0,
                            .copies = ft__ranks_in_pieces(r->parallel, r->work),
                            .spent = out->spent};
    ft__lanes_begins(&out->lanes, out->begins);
    out->lanes.begins = out->begins;
    return FT_OK;
}

/* -- the stage --------------------------------------------------------------------------------- */

/* After the last backward pass: gradients of what every tensor rank holds whole but has seen some tokens of, and of a
 * table that the first and the last stage both hold (Megatron's finalize_model_grads). */
static ft_status tail_of(const ft_ranks *r, int64_t index, ft_stage *out, ft_ranks_width *width, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    double element = ft__ranks_reduce_bytes(p, r->work), ms;
    if (!ft__ranks_stack(p, r->work)->one_gradient_buffer)
        element = r->work->master_weights || r->work->autocast ? 4 : ft_dtype_bytes(r->work->dtype);
    if (p->sp && p->tp > 1) {
        ft_group group = {.size = p->tp, .stride = 1};
        FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_ALL_REDUCE, &group, out->replicated * element, &ms, width, err));
        out->tail_ms += ms;
    }
    if (p->pp > 1 && r->arch->tied && !ft__schedule_folds(p->schedule) && (index == 0 || index == p->pp - 1)) {
        ft_group ends = {.size = 2, .stride = (p->pp - 1) * p->tp * p->cp * p->dp};
        double bytes = (double)r->arch->vocab * (double)r->arch->hidden / (double)p->tp * element;
        FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_ALL_REDUCE, &ends, bytes, &ms, width, err));
        out->tail_ms += ms;
        out->tied_ms = ms;
    }
    return FT_OK;
}

/* Processes that wait for each other in every micro-batch of a model whose experts are dealt out: those that exchange
 * tokens, in every stage. Their hosts ask how many tokens came in every layer, and start the next kernels from there,
 * so that a pause of one is not made up for by what it issued before; without experts they run ahead of their GPUs. A
 * search that looks at a stage for all numbers of stages takes one. */
static int64_t company_of(const ft_ranks *r)
{
    const ft_parallel *p = r->parallel;
    if (p->ep < 2 || r->arch->experts < 1) return 1;
    const int64_t tokens = p->ep * ft__expert_tensor(p), rows = p->tp * p->cp;
    return (tokens > rows ? tokens : rows) * (r->passes_alone ? 1 : p->pp);
}

ft_status ft__ranks_stage(const ft_ranks *r, int64_t index, ft_stage *out, ft_ranks_width *width, ft_error *err)
{
    ft_workload once = *r->work;
    once.accumulate = 1;
    once.peak_alone = true;
    once.time_alone = r->passes_alone;
    once.unpaused = r->work->task == FT_TRAIN ? r->work->accumulate : 0;
    once.fleet = once.unpaused ? r->parallel->tp * r->parallel->cp * r->parallel->dp * r->parallel->pp : 0;
    once.company = once.unpaused ? company_of(r) : 0;
    stage_lanes lanes = {0};
    FT_TRY(ft__ranks_graph(r, index, out, err));
    const ft_graph *g = out->g;
    FT_TRY(ft__step_forecast(g, &once, r->device, r->predictor, r->quantile, r->memo, r->arena, &out->step, err));
    once.accumulate = r->work->accumulate;
    if (once.accumulate > 1 && !once.master_weights) /* gradients wait from micro-batch to micro-batch */
        FT_TRY(ft__step_memory_shared(g, &once, r->device, NULL, NULL, &out->step.lives, &out->step.memory, err));
    FT_TRY(lanes_of(r, g, &out->step, out, &lanes, err));
    FT_TRY(ft__ranks_time(r, &lanes.lanes, lanes.last_bucket_ms, out, err));
    ft_lanes *kept = ft__arena_alloc(r->arena, sizeof *kept);
    if (!kept) return ft__no_memory(err);
    *kept = lanes.lanes;
    out->lanes = kept;
    out->saved_bytes = out->step.memory.saved_bytes;
    if (r->work->task == FT_TRAIN && !r->passes_alone) {
        if (r->parallel->zero >= 1 && r->parallel->zero < 3 && !r->parallel->gather_ahead) /* updated shards */
            FT_TRY(gather_ms(r, out->dense, out->expert, &lanes, &out->gather_ms, err));
        FT_TRY(tail_of(r, index, out, &lanes.width, err));
    }
    width->below = fmax(width->below, lanes.width.below);
    width->above = fmax(width->above, lanes.width.above);
    width->taken = fmax(width->taken, lanes.width.taken);
    return FT_OK;
}
