/* ranks.c: from a layout to the time of one step on all its GPUs.
 *
 * Ranks of one stage do the same at the same time, so that one of them is forecast per stage, and equal stages once. A
 * stage's micro-batch runs through its streams (lanes.c), the pipeline puts micro-batches in order (pipeline.c), then
 * come what is left of the exchange of gradients and the update. */
#include "timeline/ranks.h"

#include <math.h>
#include <string.h>

#include "timeline/lanes.h"

/* -- exchanges --------------------------------------------------------------------------------- */

static ft_status group_of(const ft_ranks *r, ft_axis axis, ft_group *out)
{
    *out = (ft_group){0};
    ft__parallel_group(r->parallel, axis, &out->size, &out->stride);
    return FT_OK;
}

static ft_collective collective_of(ft_exchange_kind kind)
{
    switch (kind) {
    case FT_EXCHANGE_ALL_GATHER: return FT_ALL_GATHER;
    case FT_EXCHANGE_REDUCE_SCATTER: return FT_REDUCE_SCATTER;
    case FT_EXCHANGE_ALL_TO_ALL: return FT_ALL_TO_ALL;
    case FT_EXCHANGE_SEND_RECV: return FT_SEND_RECV;
    default: return FT_ALL_REDUCE;
    }
}

static ft_status exchange_ms(const ft_ranks *r, ft_exchange_kind kind, ft_axis axis, double bytes, double *ms,
                             double *spread, ft_error *err)
{
    ft_group group;
    ft_comm comm;
    *ms = 0;
    FT_TRY(group_of(r, axis, &group));
    if (group.size < 2 || bytes <= 0 || kind == FT_EXCHANGE_NONE) return FT_OK;
    FT_TRY(ft__collective_forecast(r->predictor, r->device, r->cluster, collective_of(kind), bytes, &group, r->quantile,
                                   &comm, err));
    *ms = comm.ms;
    if (spread) *spread = fmax(*spread, (comm.high_ms - comm.low_ms) / fmax(comm.ms, 1e-9) / 2);
    return FT_OK;
}

/* -- a stage ----------------------------------------------------------------------------------- */

/* Bytes of one iteration's parameters, and of the gradients that it completes. */
static double parameter_bytes(const ft_graph *g, int32_t block, double element)
{
    double sum = 0;
    for (int32_t i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->role == FT_PARAMETER && t->block == block && t->storage == i)
            sum += ft__tensor_numel(t) * (element > 0 ? element : t->element_bytes);
    }
    return sum;
}

typedef struct stage_lanes {
    ft_lanes lanes;
    double *comm, *gather, *scatter;
    ft_axis *axis;
    int32_t *awaits;
    double spread; /* widest relative half-width among its exchanges */
} stage_lanes;

static ft_status lanes_of(const ft_ranks *r, const ft_graph *g, const ft_step *step, ft_stage *stage, stage_lanes *out,
                          ft_error *err)
{
    size_t nodes = (size_t)g->node_count + 1, blocks = (size_t)g->block_count + 1;
    out->comm = ft__arena_array(r->arena, nodes, sizeof *out->comm);
    out->axis = ft__arena_array(r->arena, nodes, sizeof *out->axis);
    out->awaits = ft__arena_array(r->arena, nodes, sizeof *out->awaits);
    out->gather = ft__arena_array(r->arena, blocks, sizeof *out->gather);
    out->scatter = ft__arena_array(r->arena, blocks, sizeof *out->scatter);
    if (!out->comm || !out->axis || !out->awaits || !out->gather || !out->scatter)
        return ft__fail(err, FT_E_MEMORY, "out of memory for a stage's streams");
    FT_TRY(ft__lanes_awaits(g, out->awaits, err));
    const ft_parallel *p = r->parallel;
    bool sharded = p->zero >= 3 && p->dp * p->cp > 1, exchanged = p->dp * p->cp > 1;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_node *n = &g->nodes[i];
            if (n->verb != FT_DO_COMM) continue;
            out->axis[i] = n->exchange.axis;
            FT_TRY(exchange_ms(r, n->exchange.kind, n->exchange.axis, n->exchange.bytes, &out->comm[i], &out->spread,
                               err));
            stage->axis_ms[n->exchange.axis] += out->comm[i] * (double)n->count * (double)block->repeat;
        }
        int32_t forward = block->phase == FT_BACKWARD ? block->mirror : b;
        if (block->phase == FT_UPDATE || !exchanged) continue;
        double gathered = parameter_bytes(g, forward, p->gather_bytes);
        if (sharded) {
            FT_TRY(exchange_ms(r, FT_EXCHANGE_ALL_GATHER, FT_AXIS_DATA, gathered, &out->gather[b], &out->spread, err));
            stage->axis_ms[FT_AXIS_DATA] += out->gather[b] * (double)block->repeat;
        }
        if (block->phase != FT_BACKWARD) continue;
        double element = p->reduce_bytes > 0 ? p->reduce_bytes : r->work->master_weights ? 4 : 0;
        double reduced = parameter_bytes(g, forward, element);
        ft_exchange_kind kind = p->zero >= 1 ? FT_EXCHANGE_REDUCE_SCATTER : FT_EXCHANGE_ALL_REDUCE;
        /* Small layers wait for each other until a bucket is full; large ones are several buckets in a row. */
        double bucket = p->bucket_bytes > 0 ? p->bucket_bytes : 25.0 * 1048576, filled = fmax(bucket, reduced), ms;
        FT_TRY(exchange_ms(r, kind, FT_AXIS_DATA, filled, &ms, &out->spread, err));
        out->scatter[b] = ms * reduced / filled;
        stage->gradient_ms += out->scatter[b] * (double)block->repeat;
    }
    out->lanes = (ft_lanes){.g = g,
                            .beats = step->pace->beats,
                            .entry = step->pace->entry,
                            .comm = out->comm,
                            .axis = out->axis,
                            .awaits = out->awaits,
                            .gather = out->gather,
                            .scatter = out->scatter,
                            .latency = step->pace->latency,
                            .gap = step->pace->gap,
                            .beside = 0.06};
    return FT_OK;
}

/* One micro-batch forward and back, in the rhythm of a long row of them. */
static void time_stage(const ft_ranks *r, const stage_lanes *s, ft_stage *stage)
{
    bool always = r->parallel->zero >= 3; /* sharded: every micro-batch sends its gradients on */
    ft_clocks c = {0};
    for (int round = 0; round < 2; round++) {
        double before = c.gpu;
        ft__lanes_run(&s->lanes, FT_FORWARD, false, &c);
        stage->forward_ms = c.gpu - before;
        before = c.gpu;
        ft__lanes_run(&s->lanes, FT_BACKWARD, always, &c);
        stage->backward_ms = c.gpu - before;
    }
    double before = c.gpu;
    ft__lanes_run(&s->lanes, FT_FORWARD, false, &c);
    double forward = c.gpu - before;
    before = c.gpu;
    bool beside = !r->parallel->no_overlap;
    ft__lanes_run(&s->lanes, FT_BACKWARD, beside, &c);
    c.gpu = fmax(c.gpu, c.lane[FT_AXIS_DATA]);
    stage->last_backward_ms = c.gpu - before + (beside ? 0 : stage->gradient_ms) + fmax(forward - stage->forward_ms, 0);
    before = c.gpu;
    ft__lanes_run(&s->lanes, FT_UPDATE, false, &c);
    stage->update_ms = c.gpu - before;
}

static double busy_of(const ft_graph *g, const ft_pace *pace, ft_phase phase)
{
    double sum = 0;
    for (int32_t b = 0; b < g->block_count; b++) {
        if (g->blocks[b].phase != phase) continue;
        double once = 0;
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++)
            if (pace->beats[i].gpu > 0) once += (pace->beats[i].gpu + pace->gap) * pace->beats[i].count;
        sum += once * (double)g->blocks[b].repeat;
    }
    return sum;
}

/* States are updated where they live. */
static void shard_update(const ft_ranks *r, ft_graph *g)
{
    int64_t ranks = r->parallel->shard > 0 ? r->parallel->shard : r->parallel->dp * r->parallel->cp;
    if (r->parallel->zero < 1 || ranks < 2) return;
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].verb == FT_DO_OPTIMIZER && g->nodes[i].op.kind == FT_OP_OPTIMIZER) {
            int64_t *params = &g->nodes[i].op.u.optimizer.params;
            *params = (*params + ranks - 1) / ranks;
            if (g->nodes[i].op.u.optimizer.tensors > *params) g->nodes[i].op.u.optimizer.tensors = *params;
        }
}

static ft_status build_stage(const ft_ranks *r, int64_t index, ft_stage *out, double *spread, ft_error *err)
{
    ft_workload once = *r->work;
    once.accumulate = 1;
    ft_graph *g = NULL;
    memset(out, 0, sizeof *out);
    out->count = 1;
    FT_TRY(ft__model_forward(r->arch, &once, r->arena, &g, err));
    FT_TRY(ft__layout_stage(g, index, r->parallel->pp, err));
    FT_TRY(ft__layout_cut(g, r->parallel, err));
    ft_workload passes = *r->work;
    FT_TRY(ft__model_complete(r->arch, &passes, g, err));
    shard_update(r, g);
    out->g = g;
    FT_TRY(ft__step_forecast(g, &once, r->device, r->predictor, r->quantile, r->memo, r->arena, &out->step, err));
    stage_lanes lanes = {0};
    FT_TRY(lanes_of(r, g, &out->step, out, &lanes, err));
    time_stage(r, &lanes, out);
    *spread = fmax(*spread, lanes.spread);
    double busy = busy_of(g, out->step.pace, FT_FORWARD) + busy_of(g, out->step.pace, FT_BACKWARD);
    out->exposed_ms = fmax(out->forward_ms + out->backward_ms - busy, 0);
    out->saved_bytes = out->step.memory.activations_bytes;
    if (r->parallel->zero >= 1 && r->parallel->zero < 3) { /* updated shards are gathered again */
        double bytes = g->trained_parameters * (r->parallel->gather_bytes > 0 ? r->parallel->gather_bytes
                                                : r->work->autocast           ? 4
                                                                              : ft_dtype_bytes(g->dtype));
        FT_TRY(exchange_ms(r, FT_EXCHANGE_ALL_GATHER, FT_AXIS_DATA, bytes, &out->gather_ms, spread, err));
    }
    return FT_OK;
}

/* -- memory ------------------------------------------------------------------------------------ */

static void share_memory(const ft_ranks *r, const ft_stage *s, double in_flight, ft_memory *out)
{
    const ft_parallel *p = r->parallel;
    double ranks = (double)(p->shard > 0 ? p->shard : p->dp * p->cp), before = s->step.memory.peak_bytes;
    *out = s->step.memory;
    double states = p->zero >= 1 ? out->optimizer_bytes * (1 - 1 / ranks) : 0;
    double gradients = p->zero >= 2 ? out->gradients_bytes * (1 - 1 / ranks) : 0;
    double weights = 0, gathered = 0;
    if (p->zero >= 3 && ranks > 1) {
        weights = out->weights_bytes * (1 - 1 / ranks);
        for (int32_t b = 0; b < s->g->block_count; b++) /* two layers are whole at a time: this one and the next */
            if (s->g->blocks[b].phase == FT_FORWARD)
                gathered = fmax(gathered, 2 * parameter_bytes(s->g, b, p->gather_bytes));
    }
    double more = s->saved_bytes * fmax(in_flight - 1, 0);
    out->optimizer_bytes -= states;
    out->gradients_bytes -= gradients;
    out->weights_bytes -= weights;
    out->activations_bytes += more;
    out->communication_bytes += gathered;
    if (p->dp * p->cp > 1 && p->zero < 3) /* buckets being exchanged */
        out->communication_bytes += fmin(2 * (p->bucket_bytes > 0 ? p->bucket_bytes : 25.0 * 1048576),
                                         fmax(out->gradients_bytes, 1));
    double change = more + gathered + out->communication_bytes - gathered - states - gradients - weights;
    out->peak_bytes = before + change;
    out->reserved_bytes = out->reserved_bytes * out->peak_bytes / fmax(before, 1);
    /* Communicators keep buffers beside the allocator: some hundreds of MiB per group size that is in use. */
    int groups = (p->tp > 1) + (p->cp > 1) + (p->ep > 1) + (p->dp > 1) + (p->pp > 1);
    out->context_bytes += groups * 0.25 * 1073741824.0;
    out->fits = out->reserved_bytes + out->context_bytes <= out->capacity_bytes;
}

/* -- the step ---------------------------------------------------------------------------------- */

static ft_status run_pipeline(const ft_ranks *r, ft_stage *stages, ft_piped *pipe, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    double *forward = ft__arena_array(r->arena, (size_t)p->pp, sizeof *forward);
    double *backward = ft__arena_array(r->arena, (size_t)p->pp, sizeof *backward);
    if (!forward || !backward) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline");
    for (int64_t s = 0; s < p->pp; s++) {
        forward[s] = stages[s].forward_ms / (double)p->vpp;
        backward[s] = stages[s].backward_ms / (double)p->vpp;
    }
    ft_pipe run = {.schedule = p->schedule,
                   .stages = p->pp,
                   .chunks = p->schedule == FT_INTERLEAVED ? p->vpp : p->schedule == FT_DUALPIPE ? 2 : 1,
                   .micros = r->work->accumulate > 0 ? r->work->accumulate : 1,
                   .forward = forward,
                   .backward = backward,
                   .weight_share = 0.45};
    if (p->schedule != FT_INTERLEAVED && p->vpp > 1)
        for (int64_t s = 0; s < p->pp; s++) {
            forward[s] *= (double)p->vpp;
            backward[s] *= (double)p->vpp;
        }
    if (p->pp > 1) {
        double bytes = (double)r->work->batch * (double)r->work->seq * (double)r->arch->hidden * 2 /
                       (double)(p->cp * (p->sp ? p->tp : 1));
        FT_TRY(exchange_ms(r, FT_EXCHANGE_SEND_RECV, FT_AXIS_PIPELINE, bytes, &run.send_ms, NULL, err));
    }
    return ft__pipeline_run(&run, r->arena, pipe, err);
}

static void add_kernels(const ft_stage *s, double micros, ft_step *out)
{
    *out = s->step;
    for (int i = 0; i < FT_PHASE_COUNT; i++)
        if (i != FT_UPDATE) out->phase_ms[i] *= micros;
    out->busy_ms = 0;
    for (int i = 0; i < FT_PHASE_COUNT; i++) out->busy_ms += out->phase_ms[i];
    out->launches *= micros;
    out->host_ms *= micros;
    for (int32_t i = 0; i < out->kernel_count; i++)
        if (s->g->nodes[out->kernels[i].node].phase != FT_UPDATE) out->kernels[i].times *= micros;
}

ft_status ft__ranks_forecast(const ft_ranks *r, ft_step *out, ft_ranked *details, ft_graph **shown, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    int64_t micros = r->work->accumulate > 0 ? r->work->accumulate : 1;
    if (p->schedule == FT_INTERLEAVED && p->vpp > 1 && micros % p->pp)
        return ft__fail_at(err, FT_E_RANGE, "global_batch", 0, 0,
                           "an interleaved schedule needs micro-batches in groups of \"pp\" %lld; there are %lld",
                           (long long)p->pp, (long long)micros);
    ft_stage *stages = ft__arena_array(r->arena, (size_t)p->pp, sizeof *stages);
    if (!stages) return ft__fail(err, FT_E_MEMORY, "out of memory");
    double spread = 0;
    for (int64_t s = 0; s < p->pp; s++) {
        /* Stages in the middle with as many layers are one and the same. */
        bool twin = s > 1 && s < p->pp - 1 && r->arch->layers % p->pp == 0;
        if (twin)
            stages[s] = stages[s - 1];
        else
            FT_TRY(build_stage(r, s, &stages[s], &spread, err));
    }
    ft_piped pipe;
    FT_TRY(run_pipeline(r, stages, &pipe, err));

    int64_t slowest = 0, worst = 0;
    double end = 0, most = -1;
    for (int64_t s = 0; s < p->pp; s++) {
        /* The last backward also sends the gradients; what the others do not hide comes on top. */
        double tail = fmax(stages[s].last_backward_ms - stages[s].backward_ms, 0) + stages[s].update_ms +
                      stages[s].gather_ms;
        if (pipe.finish[s] + tail > end) end = pipe.finish[s] + tail;
        if (stages[s].forward_ms + stages[s].backward_ms > stages[slowest].forward_ms + stages[slowest].backward_ms)
            slowest = s;
        ft_memory m;
        double flight = (double)pipe.in_flight[s] / (double)(p->schedule == FT_INTERLEAVED ? p->vpp : 1);
        share_memory(r, &stages[s], flight, &m);
        if (m.peak_bytes > most) {
            most = m.peak_bytes;
            worst = s;
        }
    }
    const ft_stage *slow = &stages[slowest];
    add_kernels(slow, (double)micros, out);
    share_memory(r, &stages[worst],
                 (double)pipe.in_flight[worst] / (double)(p->schedule == FT_INTERLEAVED ? p->vpp : 1), &out->memory);
    for (int a = 0; a < FT_AXIS_COUNT; a++) out->axis_ms[a] = slow->axis_ms[a] * (double)micros;
    out->axis_ms[FT_AXIS_DATA] += slow->gather_ms + slow->gradient_ms * (p->zero >= 3 ? (double)micros : 1);
    out->comm_ms = 0;
    for (int a = 0; a < FT_AXIS_COUNT; a++) out->comm_ms += out->axis_ms[a];
    double relative_low = slow->step.low_ms / slow->step.step_ms, relative_high = slow->step.high_ms / slow->step.step_ms;
    out->step_ms = end;
    out->bubble_ms = pipe.bubble_ms;
    out->comm_exposed_ms = fmin(slow->exposed_ms * (double)micros + slow->gather_ms +
                                    fmax(slow->last_backward_ms - slow->backward_ms, 0),
                                out->comm_ms);
    out->idle_ms = fmax(end - out->busy_ms - out->bubble_ms - out->comm_exposed_ms, 0);
    /* Kernels move as they do on one GPU; exchanges have their own spread; they do not know of each other. */
    double share = out->comm_exposed_ms / fmax(end, 1e-9), comm = spread * share;
    out->low_ms = end * (1 - fmin(hypot(1 - relative_low, comm), 0.9));
    out->high_ms = end * (1 + hypot(relative_high - 1, comm));
    out->ranks = ft__parallel_ranks(p);
    out->micros = micros;
    out->worst_stage = worst;
    /* Shares of the step as this rank lives it. */
    double rest = end;
    for (int i = 0; i < 4; i++) {
        if (i == FT_OVERHEAD || i == FT_COMMUNICATION) continue;
        out->regime[i] *= slow->step.step_ms * (double)micros / end;
        rest -= out->regime[i] * end;
    }
    out->regime[FT_COMMUNICATION] = share;
    out->regime[FT_OVERHEAD] = fmax(rest / end - share, 0);
    double flops = 0, executed = 0;
    for (int64_t s = 0; s < p->pp; s++) {
        flops += stages[s].step.model_flops * (double)micros;
        executed += stages[s].step.executed_flops * (double)micros;
    }
    out->model_flops = flops / (double)p->pp; /* per GPU: all ranks of a stage do as much */
    out->executed_flops = executed / (double)p->pp;
    double peak = slow->step.mfu > 0 ? slow->step.model_tflops / slow->step.mfu : 0, s = end * 1e-3;
    out->model_tflops = out->model_flops / s * 1e-12;
    out->mfu = peak > 0 ? out->model_tflops / peak : 0;
    out->hfu = peak > 0 ? out->executed_flops / s * 1e-12 / peak : 0;
    double tokens = (double)r->work->batch * (double)r->work->seq * (double)micros * (double)p->dp;
    out->tokens_per_s = tokens / s / (double)out->ranks;
    if (details) *details = (ft_ranked){.stages = stages, .stage_count = p->pp, .pipe = pipe};
    if (shown) *shown = (ft_graph *)(uintptr_t)slow->g;
    return FT_OK;
}
