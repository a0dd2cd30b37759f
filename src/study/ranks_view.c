/* ranks_view.c: a step on many GPUs, added up for people. */
#include <math.h>

#include "ranks/lanes.h"
#include "study/lengths.h"
#include "study/step_view.h"

const char *const ft__axis_words[FT_AXIS_COUNT] = {[FT_AXIS_TENSOR] = "tensor",
                                                   [FT_AXIS_CONTEXT] = "context",
                                                   [FT_AXIS_EXPERT] = "expert",
                                                   [FT_AXIS_DATA] = "data",
                                                   [FT_AXIS_PIPELINE] = "pipeline"};

int64_t ft__view_gpus(const ft_step_view *v) { return v->ranked && v->step->ranks > 0 ? v->step->ranks : 1; }

/* Counted on a forward pass of a few tokens, lest one whole sequence be more than an operator may have: context
 * ranks share it. A graph or ONNX file may have one batch and one length alone; nothing cuts them, so the step's own
 * serve. */
bool ft__view_parameters(const ft_step_view *v, double *all, double *active)
{
    *all = v->graph->parameters;
    *active = v->graph->active_parameters;
    if (!v->ranked) return true;
    ft_workload few = *v->work;
    ft_graph *g = NULL;
    few.accumulate = 1;
    if (v->arch->design != FT_CUSTOM) few.batch = 1;
    if (few.seq > 16 && v->arch->design != FT_CLIP && v->arch->design != FT_CUSTOM) few.seq = 16;
    if (ft__model_forward(v->arch, &few, v->arena, &g, NULL) != FT_OK) return false;
    *all = g->parameters;
    *active = g->active_parameters;
    return true;
}

int64_t ft__slowest_stage(const ft_step_view *v)
{
    for (int64_t s = 0; v->ranked && s < v->ranked->stage_count; s++)
        if (v->ranked->stages[s].g == v->graph) return s;
    return 0;
}

double ft__in_flight(const ft_step_view *v, int64_t stage) { return v->ranked->pipe.in_flight[stage]; }

void ft__chunk_span(const ft_stage *stage, bool forward, int64_t chunk, double *from, double *to)
{
    const double *ms = forward ? stage->chunk_forward_ms : stage->chunk_backward_ms;
    int64_t count = stage->chunks.count;
    double before = 0, all = 0;
    *from = 0;
    *to = 1;
    if (!ms || count < 2 || chunk < 0 || chunk >= count) return;
    for (int64_t c = 0; c < count; c++) {
        all += ms[c];
        if (forward ? c < chunk : c > chunk) before += ms[c];
    }
    if (!(all > 0)) return;
    *from = before / all;
    *to = fmin((before + ms[chunk]) / all, 1);
    if (chunk == (forward ? count - 1 : 0)) *to = 1; /* the pass ends there, whatever the sums round to */
}

double ft__between_ms(const ft_step *s)
{
    double left = s->step_ms - s->busy_ms - s->idle_ms - s->comm_exposed_ms - s->bubble_ms;
    return left > 1e-9 * s->step_ms ? left : 0; /* below that, rounding */
}

double ft__bubble_share(const ft_step *s)
{
    return s->step_ms > 0 ? fmin(s->bubble_ms / s->step_ms, s->regime[FT_BOUND_OVERHEAD]) : 0;
}

bool ft__bound_by_bubble(const ft_step *s)
{
    return s->bound == FT_BOUND_OVERHEAD && ft__bubble_share(s) > 0.5 * s->regime[FT_BOUND_OVERHEAD];
}

/* One micro-batch through the stage's streams, in the rhythm of a row of them, with one axis's exchanges left out. */
static bool walk_without(const ft_step_view *v, const ft_lanes *of, int axis, double *ms)
{
    const ft_graph *g = of->g;
    size_t nodes = (size_t)g->node_count + 1, blocks = (size_t)g->block_count + 1;
    double *comm = ft__arena_array(v->arena, nodes, sizeof *comm),
           *none = ft__arena_array(v->arena, nodes, sizeof *none);
    double *nothing = ft__arena_array(v->arena, blocks, sizeof *nothing);
    double *ended = ft__arena_array(v->arena, nodes, sizeof *ended);
    if (!comm || !none || !nothing || !ended) return false;
    ft_lanes l = *of;
    bool sharded = ft__ranks_gathers_each(v->parallel, v->work),
         sends_on = ft__ranks_reduces_each(v->parallel, v->work) && ft__ranks_overlaps(v->parallel, v->work);
    for (int32_t i = 0; i < g->node_count; i++) comm[i] = (int)of->axis[i] == axis ? 0 : of->comm[i];
    l.comm = comm;
    if (axis == FT_AXIS_TENSOR) l.again = none;
    if (axis == FT_AXIS_DATA) l.gather = l.scatter = nothing;
    l.spent = NULL;
    l.watch = NULL;
    ft_clocks c = {0};
    double before = 0;
    for (int round = 0; round < 2; round++) {
        before = c.gpu;
        ft__lanes_run(&l, FT_FORWARD, sharded, false, ended, &c);
        ft__lanes_run(&l, FT_BACKWARD, sharded, sends_on, ended, &c);
    }
    *ms = c.gpu - before;
    return true;
}

/* `left` over the axes in proportion to `cost`, none above what it exchanges at all; what one cannot take goes to those
 * that can. */
static void share_out(const double most[FT_AXIS_COUNT], const double cost[FT_AXIS_COUNT], double left,
                      double out[FT_AXIS_COUNT])
{
    for (int round = 0; round < FT_AXIS_COUNT && left > 1e-9; round++) {
        double weight[FT_AXIS_COUNT], all = 0, costs = 0, given = 0;
        for (int a = 0; a < FT_AXIS_COUNT; a++)
            if (out[a] < most[a]) costs += cost[a];
        for (int a = 0; a < FT_AXIS_COUNT; a++) {
            double room = fmax(most[a] - out[a], 0);
            weight[a] = room <= 0 ? 0 : costs > 0 ? cost[a] : room;
            all += weight[a];
        }
        if (!(all > 0)) return;
        for (int a = 0; a < FT_AXIS_COUNT; a++) {
            double more = fmin(left * weight[a] / all, fmax(most[a] - out[a], 0));
            out[a] += more;
            given += more;
        }
        left -= given;
    }
}

/* What sticks out at the end of the step belongs to the gradients and the parameters gathered, or to the tensor ranks'
 * last sums. What sticks out of the layers is shared out by what each axis costs there: the time of a micro-batch less
 * its time without that axis's exchanges. */
bool ft__axes_exposed(const ft_step_view *v, double out[FT_AXIS_COUNT])
{
    const ft_step *s = v->step;
    const ft_stage *slow = &v->ranked->stages[ft__slowest_stage(v)];
    double left = s->comm_exposed_ms, cost[FT_AXIS_COUNT] = {0};
    for (int a = 0; a < FT_AXIS_COUNT; a++) out[a] = 0;
    if (v->work->task == FT_TRAIN) {
        double end = slow->gather_ms + fmax(slow->last_backward_ms - slow->backward_ms, 0) +
                     fmax(slow->first_forward_ms - slow->forward_ms, 0);
        out[FT_AXIS_DATA] = fmin(fmin(end, s->axis_ms[FT_AXIS_DATA]), left);
        left -= out[FT_AXIS_DATA];
        out[FT_AXIS_TENSOR] = fmin(fmin(slow->tail_ms - slow->tied_ms, s->axis_ms[FT_AXIS_TENSOR]), left);
        left -= out[FT_AXIS_TENSOR];
        double sent = slow->tied_ms + v->ranked->pipe.lost_ms[ft__slowest_stage(v)];
        out[FT_AXIS_PIPELINE] = fmin(fmin(sent, s->axis_ms[FT_AXIS_PIPELINE]), left);
        left -= out[FT_AXIS_PIPELINE];
    }
    double whole = 0, without = 0;
    if (slow->lanes && !walk_without(v, slow->lanes, -1, &whole)) return false;
    for (int a = 0; a < FT_AXIS_COUNT; a++) {
        if (slow->axis_ms[a] <= 0 && !(a == FT_AXIS_DATA && v->parallel->zero >= 2)) continue;
        if (slow->lanes && !walk_without(v, slow->lanes, a, &without)) return false;
        cost[a] = slow->lanes ? fmax(whole - without, 0) : slow->axis_ms[a];
    }
    share_out(s->axis_ms, cost, left, out);
    return true;
}

static double samples_of(const ft_step_view *v)
{
    const ft_workload *w = v->work;
    double micros = w->task == FT_TRAIN && w->accumulate > 0 ? (double)w->accumulate : 1;
    return (double)w->batch * micros * (double)(v->ranked ? v->parallel->dp : 1);
}

double ft__view_samples_per_s(const ft_step_view *v) { return samples_of(v) / v->step->step_ms * 1e3; }

double ft__view_tokens_per_s(const ft_step_view *v)
{
    double each = v->work->task == FT_DECODE || v->work->seq < 1 ? 1 : (double)v->work->seq;
    if (v->lengths) each = v->lengths->padded;
    return ft__view_samples_per_s(v) * each;
}
