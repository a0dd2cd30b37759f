/* step_events.c: walking a rank's streams with somebody listening. */
#include "report/trace/step_events.h"

#include <math.h>
#include <string.h>

enum { MOST_EVENTS = 20000 }; /* of one pass: blocks are walked four times at most */

typedef struct listener {
    ft_arena *arena;
    ft_pass_events *into;
    size_t room;
    double origin;
    bool failed;
} listener;

static void listen(void *user, const ft_seen *what)
{
    listener *l = user;
    if (l->into->count >= MOST_EVENTS) return;
    if (l->into->count == l->room) {
        size_t room = l->room ? 2 * l->room : 256;
        ft_event *more = ft__arena_array(l->arena, room, sizeof *more);
        if (!more) {
            l->failed = true;
            return;
        }
        if (l->into->count) memcpy(more, l->into->events, l->into->count * sizeof *more);
        l->into->events = more;
        l->room = room;
    }
    l->into->events[l->into->count++] = (ft_event){.kind = what->kind,
                                                   .lane = what->lane,
                                                   .at = what->at,
                                                   .start = what->start - l->origin,
                                                   .end = what->end - l->origin,
                                                   .folded = what->folded};
}

typedef struct walker {
    ft_lanes lanes;
    listener hears;
    ft_clocks clocks;
    double *ended;
} walker;

static void walk(walker *w, ft_phase phase, bool gathers, bool scatters, ft_pass_events *into)
{
    ft_pass_events nobody = {0};
    w->hears.into = into ? into : &nobody;
    w->hears.room = 0;
    w->hears.origin = w->clocks.gpu;
    w->lanes.watch = into ? listen : NULL;
    w->lanes.watcher = &w->hears;
    ft__lanes_run(&w->lanes, phase, gathers, scatters, w->ended, &w->clocks);
    if (into) into->ms = w->clocks.gpu - w->hears.origin;
}

/* One GPU has the same streams, and nobody to talk to. */
static ft_status alone_lanes(const ft_step_view *v, ft_lanes *out, ft_error *err)
{
    const ft_graph *g = v->graph;
    size_t nodes = (size_t)g->node_count + 1, blocks = (size_t)g->block_count + 1;
    double *none = ft__arena_array(v->arena, nodes > blocks ? nodes : blocks, sizeof *none);
    ft_axis *axis = ft__arena_array(v->arena, nodes, sizeof *axis);
    int32_t *awaits = ft__arena_array(v->arena, nodes, sizeof *awaits);
    if (!none || !axis || !awaits) return ft__fail(err, FT_E_MEMORY, "out of memory for a trace");
    for (size_t i = 0; i < nodes; i++) awaits[i] = -1;
    *out = (ft_lanes){.g = g,
                      .costs = v->step->pace->costs,
                      .entry = v->step->pace->entry,
                      .pass = v->step->pace->pass,
                      .comm = none,
                      .axis = axis,
                      .awaits = awaits,
                      .sends = awaits,
                      .left = none,
                      .again = none,
                      .gather = none,
                      .scatter = none,
                      .latency = v->step->pace->latency,
                      .gap = v->step->pace->gap,
                      .queue = v->step->pace->queue};
    return FT_OK;
}

ft_status ft__rank_events(const ft_step_view *v, const ft_stage *stage, ft_rank_events *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    out->g = stage ? stage->g : v->graph;
    out->step = stage ? &stage->step : v->step;
    size_t nodes = (size_t)out->g->node_count + 1;
    out->timed = ft__arena_array(v->arena, nodes, sizeof(ft_timed *));
    walker w = {.hears = {.arena = v->arena}};
    w.ended = ft__arena_array(v->arena, nodes, sizeof *w.ended);
    if (!out->timed || !w.ended) return ft__fail(err, FT_E_MEMORY, "out of memory for a trace");
    if (!out->step->pace || (stage && !stage->lanes))
        return ft__fail(err, FT_E_UNSUPPORTED, "this step has no streams to trace");
    for (int32_t i = 0; i < out->step->kernel_count; i++)
        out->timed[out->step->kernels[i].node] = &out->step->kernels[i];
    if (stage)
        w.lanes = *stage->lanes;
    else
        FT_TRY(alone_lanes(v, &w.lanes, err));
    w.lanes.spent = NULL;
    bool sharded = v->parallel && ft__ranks_gathers_each(v->parallel, v->work),
         overlap = v->parallel && ft__ranks_overlaps(v->parallel, v->work),
         always = overlap &&
                  ft__ranks_reduces_each(v->parallel, v->work); /* every micro-batch sends its gradients on */
    walk(&w, FT_FORWARD, sharded, false, &out->first_forward);
    walk(&w, FT_BACKWARD, sharded, always, &out->first_backward);
    walk(&w, FT_FORWARD, sharded, false, &out->forward);
    walk(&w, FT_BACKWARD, sharded, always, &out->backward);
    walk(&w, FT_FORWARD, sharded, false, NULL);
    walk(&w, FT_BACKWARD, sharded, overlap, &out->last_backward);
    w.clocks.gpu = fmax(w.clocks.gpu, w.clocks.lane[FT_AXIS_DATA]);
    walk(&w, FT_UPDATE, false, false, &out->update);
    return w.hears.failed ? ft__fail(err, FT_E_MEMORY, "out of memory for a trace") : FT_OK;
}
