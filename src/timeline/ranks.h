/* A step on many GPUs: the ranks that differ are forecast, the others follow from them. */
#ifndef FT_TIMELINE_RANKS_H
#define FT_TIMELINE_RANKS_H
#include "comm/collective.h"
#include "layout/layout.h"
#include "timeline/pipeline.h"
#include "timeline/step.h"

typedef struct ft_ranks {
    const ft_arch *arch;
    const ft_workload *work;      /* accumulate: micro-batches of one rank's pipeline */
    const ft_parallel *parallel;
    const ft_cluster *cluster;
    const ft_device *device;
    const ft_predictor *predictor;
    double quantile;
    ft_memo *memo;
    ft_arena *arena;
} ft_ranks;

/* What one pipeline stage does with one micro-batch. */
typedef struct ft_stage {
    const ft_graph *g;
    ft_step step;                 /* its kernels, as if it ran alone */
    int64_t layers_from, count;   /* how many equal stages it stands for */
    double forward_ms, backward_ms, update_ms;
    double last_backward_ms;      /* with the exchange of gradients beside it */
    double axis_ms[FT_AXIS_COUNT];/* exchanges of one micro-batch */
    double exposed_ms;            /* of them, in one micro-batch */
    double gather_ms, gradient_ms;/* once per step: parameters after the update, gradients as a whole */
    double saved_bytes;           /* activations one micro-batch leaves for its backward */
} ft_stage;

typedef struct ft_ranked {
    ft_stage *stages;
    int64_t stage_count;          /* pp */
    ft_piped pipe;
} ft_ranked;

/* Fills `out` with the step as its slowest rank sees it; `details` may be NULL. */
ft_status ft__ranks_forecast(const ft_ranks *r, ft_step *out, ft_ranked *details, ft_graph **shown, ft_error *err);
#endif
