/* A step as events: what a rank's streams did, micro-batch by micro-batch. Traces are written from it.
 *
 * Kernels are recorded once per pass, by walking the streams again as the forecast did; the pipeline says where a pass
 * stands in time. Iterations that the walk folds (equal layers after the fourth) are one event, with their number. */
#ifndef FT_REPORT_TRACE_STEP_EVENTS_H
#define FT_REPORT_TRACE_STEP_EVENTS_H
#include "ranks/lanes.h"
#include "study/step_view.h"

typedef struct ft_event {
    ft_seen_kind kind;
    int lane;          /* an ft_axis, FT_LANE_GPU or FT_LANE_HOST */
    int32_t at;        /* node or block, by kind */
    double start, end; /* ms since the pass began on the GPU; the host may be earlier */
    double folded;     /* iterations that one event stands for */
} ft_event;

/* One pass of one micro-batch (or the update) of one rank. */
typedef struct ft_pass_events {
    ft_event *events;
    size_t count;
    double ms; /* on the GPU */
} ft_pass_events;

/* A rank's passes: the first micro-batch differs where the host has yet to get ahead, the last where gradients go. */
typedef struct ft_rank_events {
    const ft_graph *g;
    const ft_step *step;
    ft_pass_events forward, backward; /* in the rhythm of many micro-batches */
    ft_pass_events first_forward, first_backward;
    ft_pass_events last_backward, update;
    const ft_timed **timed; /* by node; NULL: nothing runs */
} ft_rank_events;

/* Of a stage, or with stage NULL of the view's one GPU. In the view's arena. */
ft_status ft__rank_events(const ft_step_view *v, const ft_stage *stage, ft_rank_events *out, ft_error *err);
#endif
