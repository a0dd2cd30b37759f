/* time.c: how long one stage takes for a micro-batch, for the first and for the last one. */
#include <math.h>

#include "ranks/lanes.h"
#include "ranks/ranks.h"

/* A step of one micro-batch on one stage: nothing before it has given the host a lead. Passes that are looked at for
 * all numbers of stages and micro-batches stand in a row, which is never slower. */
static bool only_one(const ft_ranks *r) { return r->parallel->pp < 2 && r->work->accumulate < 2 && !r->passes_alone; }

/* Before a pass: a host that reads what its stage received has no lead over its kernels then. */
static void receive(const ft_ranks *r, ft_clocks *c)
{
    const ft_parallel *p = r->parallel;
    if (p->tp > 1 && p->pp > 1 && ft__ranks_stack(p, r->work)->reads_received) c->host = c->gpu = fmax(c->host, c->gpu);
}

/* One micro-batch forward and back: the only one of its step, from when the host begins, or in the rhythm of a long row
 * of them; then *start is what the first of the row takes beyond it, below 0 where it has nobody's exchanges before
 * it. */
static ft_clocks time_passes(const ft_ranks *r, const ft_lanes *l, double *ended, double *forward, double *backward,
                             double *start)
{
    const ft_parallel *p = r->parallel;
    bool always = ft__ranks_reduces_each(p, r->work); /* sharded gradients: every micro-batch sends its own on */
    bool gathers = ft__ranks_gathers_each(p, r->work), beside = ft__ranks_overlaps(p, r->work);
    ft_clocks c = {0};
    double first = 0;
    for (int round = 0, rounds = only_one(r) ? 1 : 2; round < rounds; round++) {
        double before = c.gpu;
        receive(r, &c);
        ft__lanes_run(l, FT_FORWARD, gathers, false, ended, &c);
        *forward = c.gpu - before;
        before = c.gpu;
        receive(r, &c);
        /* A pass that waits for the one before lets its host run ahead: the next one's rhythm is that of the row. */
        if (round == 1 && always && beside && c.lane[FT_AXIS_DATA] > c.gpu) rounds = 3;
        ft__lanes_run(l, FT_BACKWARD, gathers, always && beside, ended, &c);
        *backward = c.gpu - before;
        if (round == 0) first = c.gpu;
    }
    *start = first - *forward - *backward;
    if (r->work->task != FT_TRAIN) *forward = fmax(c.host, c.gpu); /* the answer is there when both are done */
    return c;
}

/* Gradients that every micro-batch exchanges by itself, behind its backward pass and not beside it. */
static double gradients_behind(const ft_ranks *r, const ft_stage *stage)
{
    bool each = ft__ranks_reduces_each(r->parallel, r->work), beside = ft__ranks_overlaps(r->parallel, r->work);
    return each && !beside && !only_one(r) ? stage->gradient_ms : 0;
}

/* Of the gradients all but the last bucket are exchanged beside the last backward pass; that one is full when the pass
 * has ended. (What is exchanged tensor by tensor has lists of its own.) */
static ft_status before_last_bucket(const ft_ranks *r, const ft_lanes *l, double last_bucket_ms, const ft_stage *stage,
                                    ft_lanes *out, ft_error *err)
{
    *out = *l;
    if (l->sharded || !(last_bucket_ms > 0) || !(stage->gradient_ms > 0)) return FT_OK;
    double *scatter = ft__arena_array(r->arena, (size_t)l->g->block_count + 1, sizeof *scatter);
    if (!scatter) return ft__fail(err, FT_E_MEMORY, "out of memory for a stage's streams");
    double share = fmax(1 - last_bucket_ms / stage->gradient_ms, 0);
    for (int32_t b = 0; b < l->g->block_count; b++) scatter[b] = l->scatter[b] * share;
    out->scatter = scatter;
    return FT_OK;
}

/* Then the last micro-batch, with what comes once. */
static ft_status time_stage(const ft_ranks *r, const ft_lanes *l, double last_bucket_ms, double *ended, ft_stage *stage,
                            ft_error *err)
{
    const ft_parallel *p = r->parallel;
    bool gathers = ft__ranks_gathers_each(p, r->work), beside = ft__ranks_overlaps(p, r->work);
    ft_clocks c = time_passes(r, l, ended, &stage->forward_ms, &stage->backward_ms, &stage->start_ms);
    double less = fmax(-stage->start_ms, 0);
    stage->start_ms = fmax(stage->start_ms, 0);
    if (r->work->task != FT_TRAIN) return FT_OK;
    stage->backward_ms += gradients_behind(r, stage);
    FT_TRY(ft__ranks_chunk_times(r, l->spent, stage, err));
    if (r->passes_alone) return FT_OK;
    if (only_one(r)) c = (ft_clocks){0}; /* it is the last one itself */
    double before = c.gpu;
    receive(r, &c);
    ft__lanes_run(l, FT_FORWARD, gathers, false, ended, &c);
    double forward = c.gpu - before;
    before = c.gpu;
    receive(r, &c);
    ft_lanes last;
    FT_TRY(before_last_bucket(r, l, last_bucket_ms, stage, &last, err));
    ft__lanes_run(&last, FT_BACKWARD, gathers, beside, ended, &c);
    if (beside && l->sharded)
        c.lane[FT_AXIS_DATA] = fmax(c.lane[FT_AXIS_DATA], c.gpu + last_bucket_ms);
    else if (beside && p->dp * p->cp > 1)
        c.lane[FT_AXIS_DATA] = fmax(c.lane[FT_AXIS_DATA], c.gpu) + last_bucket_ms;
    c.gpu = fmax(c.gpu, c.lane[FT_AXIS_DATA]);
    stage->last_backward_ms = c.gpu - before + (beside ? 0 : stage->gradient_ms) + fmax(forward - stage->forward_ms, 0);
    stage->last_backward_ms -= less; /* m - 1 of them wait for the one before */
    before = c.gpu;
    ft__lanes_run(l, FT_UPDATE, false, false, ended, &c);
    c.gpu = fmax(c.gpu, c.host);
    stage->update_ms = c.gpu - before;
    stage->first_forward_ms = stage->forward_ms;
    bool first_gathers = p->zero >= 3 ? !gathers : p->zero >= 1 && p->gather_ahead;
    if (!first_gathers) return FT_OK;
    before = c.gpu;
    ft__lanes_run(l, FT_FORWARD, true, false, ended, &c);
    stage->first_forward_ms = fmax(c.gpu - before, stage->forward_ms);
    return FT_OK;
}

/* What exchanges add to a micro-batch: its time less its time without them. What it waits for its host is no part of
 * it. */
static ft_status time_exposed(const ft_ranks *r, const ft_lanes *l, double *ended, ft_stage *stage, ft_error *err)
{
    const ft_graph *g = l->g;
    size_t nodes = (size_t)g->node_count + 1, blocks = (size_t)g->block_count + 1;
    double *none = ft__arena_array(r->arena, nodes > blocks ? nodes : blocks, sizeof *none);
    bool *nothing = ft__arena_array(r->arena, nodes, sizeof *nothing);
    if (!none || !nothing) return ft__fail(err, FT_E_MEMORY, "out of memory for a stage's streams");
    ft_lanes silent = *l;
    silent.comm = silent.again = silent.gather = silent.scatter = none;
    silent.begins = nothing;
    silent.sharded = NULL;
    silent.spent = NULL;
    double forward, backward, start;
    time_passes(r, &silent, ended, &forward, &backward, &start);
    stage->exposed_ms = fmax(stage->forward_ms + stage->backward_ms - forward - backward, 0);
    return FT_OK;
}

/* Where another micro-batch's kernels hide exchanges with experts: the time without them, by what there is to hide. */
static ft_status time_quiet(const ft_ranks *r, const ft_lanes *l, double *ended, ft_stage *stage, ft_error *err)
{
    if (!ft__ranks_joins(r)) return FT_OK;
    double *comm = ft__arena_array(r->arena, (size_t)l->g->node_count + 1, sizeof *comm), forward, backward, start;
    if (!comm) return ft__fail(err, FT_E_MEMORY, "out of memory for a stage's streams");
    for (int32_t i = 0; i < l->g->node_count; i++)
        comm[i] = l->g->nodes[i].verb == FT_DO_COMM && l->axis[i] == FT_AXIS_EXPERT ? 0 : l->comm[i];
    ft_lanes quiet = *l;
    quiet.comm = comm;
    quiet.spent = NULL;
    time_passes(r, &quiet, ended, &forward, &backward, &start);
    stage->there = ft__ranks_parts(l, FT_FORWARD, forward);
    stage->back = ft__ranks_parts(l, FT_BACKWARD, backward);
    stage->back.alone += gradients_behind(r, stage);
    return FT_OK;
}

ft_status ft__ranks_time(const ft_ranks *r, const ft_lanes *l, double last_bucket_ms, ft_stage *stage, ft_error *err)
{
    double *ended = ft__arena_array(r->arena, (size_t)l->g->node_count + 1, sizeof *ended);
    if (!ended) return ft__fail(err, FT_E_MEMORY, "out of memory for a stage's streams");
    FT_TRY(time_stage(r, l, last_bucket_ms, ended, stage, err));
    if (r->passes_alone) return FT_OK;
    FT_TRY(time_quiet(r, l, ended, stage, err));
    return time_exposed(r, l, ended, stage, err);
}
