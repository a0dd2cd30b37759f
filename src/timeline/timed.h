/* Every node of a graph with its forecast, as it runs inside the step. */
#ifndef FT_TIMELINE_TIMED_H
#define FT_TIMELINE_TIMED_H
#include "kernel/host.h"
#include "timeline/memo.h"
#include "timeline/residency.h"
#include "timeline/stream.h"

typedef struct ft_run {
    const ft_graph *g;
    const ft_workload *work;
    const ft_device *device;
    const ft_predictor *predictor;
    double quantile;
    ft_memo *memo;
    ft_issuer host;
    unsigned graphed; /* modules that are replayed from CUDA graphs; the layer's, and whether the last node was */
    ft_captor captor;
    bool replays;
    ft_node_cost *costs; /* one per node, filled here */
    ft_found *found;     /* one per node: what it finds in the cache */
    double *last;        /* one per tensor, to find that out with */
    double host_ms;      /* what the nodes cost the host altogether */
} ft_run;

/* Fills step->kernels (room for every node) and the costs. */
ft_status ft__time_nodes(ft_run *t, ft_step *step, ft_error *err);
#endif
