/* ranks.c: from a layout to the time of one step on all its GPUs.
 *
 * Ranks of one stage do the same at the same time, so that one of them is forecast per stage, and equal stages once. A
 * stage's micro-batch runs through its streams (lanes.c), the pipeline puts micro-batches in order (pipeline.c), then
 * come what is left of the exchange of gradients and the update. */
#include "ranks/ranks.h"
#include "memory/verdict.h"

#include <math.h>
#include <string.h>

#include "ranks/many_constants.h"

static int64_t micros_of(const ft_ranks *r) { return r->work->accumulate > 0 ? r->work->accumulate : 1; }

static ft_status build_stages(const ft_ranks *r, ft_stage *stages, ft_ranks_width *width, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    ft_workload once = ft__ranks_workload(r);
    once.accumulate = 1;
    once.layers_apart = true;
    ft_graph *whole = NULL;
    if (p->pp > 3) FT_TRY(ft__model_forward(r->arch, &once, r->arena, &whole, err));
    for (int64_t s = 0; s < p->pp; s++) {
        bool twin = false;
        for (int64_t t = s - 1; t > 0 && whole && !twin; t--) {
            FT_TRY(ft__ranks_twins(r, whole, t, s, &twin, err));
            if (twin) stages[s] = stages[t];
        }
        if (!twin) FT_TRY(ft__ranks_stage(r, s, &stages[s], width, err));
    }
    return FT_OK;
}

static ft_status run_pipeline(const ft_ranks *r, const ft_stage *stages, const ft_ranks_width *taken, ft_piped *pipe,
                              double *gathered, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    int64_t parts = ft__parallel_chunks(p), chunks = p->schedule == FT_DUALPIPE && p->pp > 1 ? 2 : parts;
    size_t places = (size_t)(p->pp * chunks);
    double *forward = ft__arena_array(r->arena, places, sizeof *forward);
    double *backward = ft__arena_array(r->arena, places, sizeof *backward), *layers = NULL;
    if (!forward || !backward) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline");
    FT_TRY(ft__ranks_layer_parts(r, &layers, err));
    for (int64_t s = 0; s < p->pp; s++)
        for (int64_t c = 0; c < parts; c++) {
            const int64_t place = ft__schedule_place(p->schedule, p->pp, s, c);
            forward[place] = parts > 1 ? stages[s].chunk_forward_ms[c] : stages[s].forward_ms;
            backward[place] = parts > 1 ? stages[s].chunk_backward_ms[c] : stages[s].backward_ms;
        }
    ft_pipe run = {.schedule = p->pp > 1 ? p->schedule : FT_1F1B,
                   .stages = p->pp,
                   .chunks = chunks,
                   .micros = micros_of(r),
                   .forward = forward,
                   .backward = backward,
                   .held = layers,
                   .all_ahead = ft__ranks_stack(p, r->work)->all_forward_first,
                   .weight_share = ft__weights_share};
    ft_pipe_join join;
    if (ft__ranks_joins(r)) {
        FT_TRY(ft__ranks_join(r, stages, &run, ft__ranks_overlapped(taken), &join, err));
        run.join = &join;
    }
    if (p->pp > 1) {
        ft_group group = {0};
        ft__parallel_group(p, FT_AXIS_PIPELINE, &group.size, &group.stride);
        double bytes = stages[0].boundary_bytes;
        ft_ranks_width width = {0};
        bool cut = p->tp > 1 && !p->sp && ft__ranks_stack(p, r->work)->cuts_sends;
        ft_group tensor = {.size = p->tp, .stride = 1};
        if (cut) FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_ALL_GATHER, &tensor, bytes, gathered, &width, err));
        if (cut) bytes /= (double)p->tp;
        FT_TRY(ft__ranks_exchange(r, FT_EXCHANGE_SEND_RECV, &group, bytes, &run.send_ms, &width, err));
        run.send_ms += *gathered;
        /* Megatron's 1f1b sends and receives before it goes on; the others do it beside the next piece. */
        run.send_share = ft__ranks_waits_for_sends(p, r->work) ? 1 : ft__ranks_overlapped(&width);
    }
    return ft__pipeline_run(&run, r->arena, pipe, err);
}

/* The pipeline begins when the first stage's host has issued its first kernel. */
static void begin_at(ft_piped *pipe, int64_t stages, double ms)
{
    pipe->total_ms += ms;
    for (int64_t s = 0; s < stages; s++) {
        pipe->finish[s] += ms;
        pipe->last_backward[s] += ms;
        for (int32_t i = 0; i < pipe->op_count[s]; i++) {
            pipe->ops[s][i].start += ms;
            pipe->ops[s][i].end += ms;
        }
    }
}

static void add_kernels(const ft_stage *s, double micros, ft_step *out)
{
    *out = s->step;
    for (int i = 0; i < FT_PHASE_COUNT; i++)
        if (i != FT_UPDATE) out->phase_ms[i] *= micros;
    out->busy_ms = 0;
    for (int i = 0; i < FT_PHASE_COUNT; i++) out->busy_ms += out->phase_ms[i];
    out->host_ms *= micros;
    out->launches = 0;
    memset(out->class_ms, 0, sizeof out->class_ms);
    memset(out->class_flops, 0, sizeof out->class_flops);
    for (int32_t i = 0; i < out->kernel_count; i++) {
        ft_timed *k = &out->kernels[i];
        const ft_node *n = &s->g->nodes[k->node];
        if (n->phase != FT_UPDATE) k->times *= micros;
        out->launches += k->times;
        out->class_ms[ft__node_class(n)] += k->forecast.ms * k->times;
        out->class_flops[ft__node_class(n)] += k->forecast.flops * k->times;
    }
}

/* What a stage still does when the pipeline has run: the part of its gradients' exchange that nothing hid, the update,
 * and the gathering of what was updated, now or beside the next forward pass. */
static double after_pipeline(const ft_stage *s)
{
    return fmax(s->last_backward_ms - s->backward_ms, 0) + s->update_ms + s->gather_ms + s->tail_ms +
           fmax(s->first_forward_ms - s->forward_ms, 0);
}

/* What a stage exchanges with so many micro-batches, and once in a step. */
static void add_exchanges(const ft_ranks *r, const ft_stage *s, double micros, ft_step *out)
{
    double reduced = ft__ranks_reduces_each(r->parallel, r->work) ? micros : 1;
    for (int a = 0; a < FT_AXIS_COUNT; a++) out->axis_ms[a] += s->axis_ms[a] * micros;
    out->axis_ms[FT_AXIS_DATA] += s->gather_ms + s->ahead_ms + s->first_gather_ms + s->gradient_ms * reduced;
    out->axis_ms[FT_AXIS_TENSOR] += s->tail_ms - s->tied_ms;
    out->axis_ms[FT_AXIS_PIPELINE] += s->tied_ms;
}

static const ft_stage *pair_of(const ft_parallel *p, const ft_stage *stages, int64_t s)
{
    return p->schedule == FT_DUALPIPE && p->pp > 1 ? &stages[p->pp - 1 - s] : NULL;
}

/* What a rank of each stage holds. Of equal stages the later ones hold fewer micro-batches: where theirs set the peak,
 * it is the same moment on the earlier ones, with more of them. */
static ft_status hold_memory(const ft_ranks *r, ft_stage *stages, const ft_piped *pipe, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    double fewer = 0; /* of the stage behind */
    for (int64_t s = p->pp - 1; s >= 0; s--) {
        const ft_stage *pair = pair_of(p, stages, s), *next = s + 1 < p->pp ? &stages[s + 1] : NULL;
        double flight = ft__ranks_held(p, pipe, s, &stages[s]), behind = fewer;
        fewer = flight;
        bool alike = next && next->g == stages[s].g && !pair && behind >= 1 && flight >= behind;
        if (!alike || next->held.peak_phase == FT_UPDATE) {
            FT_TRY(ft__ranks_open_gradients(r, pipe, s, &stages[s], err));
            FT_TRY(ft__ranks_share_memory(r, &stages[s], pair, flight, &stages[s].held, err));
            continue;
        }
        double more = (flight - behind) * stages[s].saved_bytes;
        ft_memory *m = &stages[s].held;
        *m = next->held;
        m->activations_bytes += more;
        m->peak_bytes += more;
        m->reserved_bytes += more;
        ft__judge(m, r->work);
    }
    return FT_OK;
}

/* Of the step's time: kernels by what bounds them, the update once. Bubbles are nobody's work. */
static void shares_of_step(double end, double exposed, ft_step *out)
{
    double rest = end;
    for (int i = 0; i < 4; i++) out->regime[i] = 0;
    for (int32_t i = 0; i < out->kernel_count; i++) {
        const ft_forecast *f = &out->kernels[i].forecast;
        if (f->bound == FT_BOUND_COMPUTE || f->bound == FT_BOUND_MEMORY)
            out->regime[f->bound] += fmax(f->ms - f->launch_ms, 0) * out->kernels[i].times / end;
    }
    rest -= (out->regime[FT_BOUND_COMPUTE] + out->regime[FT_BOUND_MEMORY]) * end;
    if (rest < 0) { /* kernels of several streams beside each other */
        double all = out->regime[FT_BOUND_COMPUTE] + out->regime[FT_BOUND_MEMORY];
        out->regime[FT_BOUND_COMPUTE] /= all;
        out->regime[FT_BOUND_MEMORY] /= all;
        rest = 0;
    }
    out->regime[FT_BOUND_COMMUNICATION] = fmin(exposed / end, fmax(rest / end, 0));
    out->regime[FT_BOUND_OVERHEAD] = fmax(rest / end - out->regime[FT_BOUND_COMMUNICATION], 0);
    out->bound = FT_BOUND_COMPUTE;
    for (int i = 0; i < 4; i++)
        if (out->regime[i] > out->regime[out->bound]) out->bound = (ft_bound)i;
}

static void rates(const ft_ranks *r, const ft_stage *stages, const ft_stage *slow, ft_step *out)
{
    const ft_parallel *p = r->parallel;
    double flops = 0, executed = 0, micros = (double)out->micros;
    for (int64_t i = 0; i < p->pp; i++) {
        flops += stages[i].step.model_flops * micros;
        executed += stages[i].step.executed_flops * micros;
    }
    out->model_flops = flops / (double)p->pp; /* per GPU: all ranks of a stage do as much */
    out->executed_flops = executed / (double)p->pp;
    double peak = slow->step.mfu > 0 ? slow->step.model_tflops / slow->step.mfu : 0, s = out->step_ms * 1e-3;
    out->model_tflops = out->model_flops / s * 1e-12;
    out->mfu = peak > 0 ? out->model_tflops / peak : 0;
    out->hfu = peak > 0 ? out->executed_flops / s * 1e-12 / peak : 0;
    double tokens = (double)r->work->batch * micros * (double)p->dp;
    if (r->work->task != FT_DECODE) tokens *= (double)r->work->seq;
    out->tokens_per_s = tokens / s / (double)out->ranks;
}

/* Which stage makes the others wait, which holds most, and when the last of them ends. */
typedef struct extremes {
    int64_t slowest, fullest;
    double end_ms;
    const ft_stage *slow, *pair; /* dualpipe: half of the micro-batches pass either stage; NULL: no pair */
} extremes;

static extremes find_extremes(const ft_ranks *r, const ft_stage *stages, const ft_piped *pipe)
{
    const ft_parallel *p = r->parallel;
    extremes x = {0};
    double most = -1;
    for (int64_t s = 0; s < p->pp; s++) {
        const ft_stage *pair = pair_of(p, stages, s), *slow = &stages[x.slowest];
        double tail = after_pipeline(&stages[s]) + (pair ? after_pipeline(pair) : 0);
        if (pipe->finish[s] + tail > x.end_ms) x.end_ms = pipe->finish[s] + tail;
        if (r->work->task != FT_TRAIN) x.end_ms = stages[s].forward_ms;
        if (stages[s].forward_ms + stages[s].backward_ms > slow->forward_ms + slow->backward_ms) x.slowest = s;
        if (stages[s].held.peak_bytes <= most) continue;
        most = stages[s].held.peak_bytes;
        x.fullest = s;
    }
    x.slow = &stages[x.slowest];
    x.pair = pair_of(p, stages, x.slowest);
    return x;
}

static void add_all_kernels(const extremes *x, double micros, ft_step *out)
{
    const ft_stage *slow = x->slow, *pair = x->pair;
    double own = slow->step.busy_ms - slow->step.phase_ms[FT_UPDATE], passes = micros;
    if (pair && own > 0) passes *= 0.5 * (1 + (pair->step.busy_ms - pair->step.phase_ms[FT_UPDATE]) / own);
    add_kernels(slow, passes, out);
}

static void add_all_exchanges(const ft_ranks *r, const extremes *x, const ft_piped *pipe, double each, ft_step *out)
{
    for (int a = 0; a < FT_AXIS_COUNT; a++) out->axis_ms[a] = 0;
    add_exchanges(r, x->slow, each, out);
    if (x->pair) add_exchanges(r, x->pair, each, out);
    out->axis_ms[FT_AXIS_PIPELINE] += pipe->sent_ms[x->slowest];
    out->comm_ms = 0;
    for (int a = 0; a < FT_AXIS_COUNT; a++) out->comm_ms += out->axis_ms[a];
}

/* What it sends itself is exchange, waited for or not; what it waits for others ends with the step, before which it may
 * have finished. */
static void add_waits(const extremes *x, const ft_piped *pipe, double start_ms, double each, ft_step *out)
{
    const ft_stage *slow = x->slow, *pair = x->pair;
    double lost = pipe->lost_ms[x->slowest], after = after_pipeline(slow) + (pair ? after_pipeline(pair) : 0);
    double alone = fmax(x->end_ms - start_ms - pipe->busy_ms - lost - after, 0);
    out->bubble_ms = fmin(fmax(pipe->bubble_ms - lost, 0), alone);
    double updates = slow->update_ms + (pair ? pair->update_ms : 0);
    double exposed_ms = (slow->exposed_ms + (pair ? pair->exposed_ms : 0)) * each + after - updates + lost;
    exposed_ms -= pipe->hidden_ms[x->slowest];
    out->comm_exposed_ms = fmin(fmax(exposed_ms, 0), out->comm_ms);
    out->idle_ms = fmax(x->end_ms - out->busy_ms - out->bubble_ms - out->comm_exposed_ms, 0);
}

/* Kernels move as they do on one GPU; exchanges have their own spread, and so has what many GPUs add that one does not
 * show; they do not know of each other. */
static void add_interval(const extremes *x, const ft_ranks_width *width, double quantile, ft_step *out)
{
    const ft_step *one = &x->slow->step;
    double low = one->low_ms / one->step_ms, high = one->high_ms / one->step_ms, end = x->end_ms;
    double many = FT_K_MANY_AMONG_MANY * atanh(quantile) / atanh(0.9), exposed = out->comm_exposed_ms / fmax(end, 1e-9);
    out->low_ms = end * (1 - ft__interval_below(hypot(1 - low, hypot(width->below * exposed, many))));
    out->high_ms = end * (1 + hypot(high - 1, hypot(width->above * exposed, many)));
}

static ft_status check_micros(const ft_ranks *r, int64_t micros, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    FT_TRY(ft__pipeline_check(p->schedule, p->pp, ft__parallel_chunks(p), micros, err));
    if (p->expert_overlap > 0 && p->ep > 1 && r->work->task == FT_TRAIN && micros < 2)
        return ft__fail_at(err, FT_E_RANGE, "parallel.expert_overlap", 0, 0,
                           "\"expert_overlap\" hides exchanges behind another micro-batch: \"global_batch\" must be "
                           "at least 2 * batch * dp = %lld",
                           2 * (long long)r->work->batch * (long long)p->dp);
    return FT_OK;
}

ft_status ft__ranks_forecast(const ft_ranks *r, ft_step *out, ft_ranked *details, ft_graph **shown, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    int64_t micros = micros_of(r);
    FT_TRY(check_micros(r, micros, err));
    ft_stage *stages = ft__arena_array(r->arena, (size_t)p->pp, sizeof *stages);
    if (!stages) return ft__no_memory(err);
    ft_ranks_width width = {0};
    FT_TRY(build_stages(r, stages, &width, err));
    ft_piped pipe;
    double gathered = 0; /* of a transfer, what puts it together again */
    FT_TRY(run_pipeline(r, stages, &width, &pipe, &gathered, err));
    begin_at(&pipe, p->pp, stages[0].start_ms);
    if (!r->no_memory) FT_TRY(hold_memory(r, stages, &pipe, err));
    const extremes x = find_extremes(r, stages, &pipe);
    double each = (x.pair ? 0.5 : 1) * (double)micros;
    add_all_kernels(&x, (double)micros, out);
    out->memory = stages[x.fullest].held;
    add_all_exchanges(r, &x, &pipe, each, out);
    out->step_ms = x.end_ms;
    add_waits(&x, &pipe, stages[0].start_ms, each, out);
    add_interval(&x, &width, r->quantile, out);
    out->ranks = ft__parallel_ranks(p);
    out->micros = micros;
    out->worst_stage = x.fullest;
    shares_of_step(x.end_ms, out->comm_exposed_ms, out);
    rates(r, stages, x.slow, out);
    out->memory.remedy = "";
    if (out->memory.verdict != FT_FIT_YES && !r->no_remedy && !r->work->verdict_alone)
        FT_TRY(ft__ranks_remedy(r, &stages[x.fullest], &out->memory.remedy, err));
    if (details)
        *details = (ft_ranked){.stages = stages, .stage_count = p->pp, .gather_received_ms = gathered, .pipe = pipe};
    if (shown) *shown = (ft_graph *)(uintptr_t)x.slow->g;
    return FT_OK;
}
