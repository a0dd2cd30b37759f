/* One rank's streams: the host issues, the GPU computes, collectives run on lanes of their own.
 *
 * A collective starts when what it sends is computed and its lane is free; who reads its result waits for it, everybody
 * else does not. What is hidden and what is exposed follows. */
#ifndef FT_TIMELINE_LANES_H
#define FT_TIMELINE_LANES_H
#include "timeline/stream.h"

typedef struct ft_lanes {
    const ft_graph *g;
    const ft_beat *beats;    /* by node */
    const double *entry;     /* by block */
    const double *comm;      /* by node: ms of its exchange; 0: none */
    const ft_axis *axis;     /* by node */
    const int32_t *awaits;   /* by node: the exchange whose result it reads; -1 */
    const double *gather;    /* by block: ms to gather one iteration's parameters (sharded ones); 0 */
    const double *scatter;   /* by block: ms to reduce one iteration's gradients while the backward pass goes on; 0 */
    double latency, gap;
    double beside;           /* how much slower kernels run while an exchange runs beside them: 0.1 for a tenth */
} ft_lanes;

typedef struct ft_clocks {
    double host, gpu, lane[FT_AXIS_COUNT];
} ft_clocks;

/* Runs all blocks of a phase once from the given clocks. `scatters`: gradients are exchanged in this pass. */
void ft__lanes_run(const ft_lanes *l, ft_phase phase, bool scatters, ft_clocks *clocks);

/* For every node the exchange whose result it reads, through views; -1. `awaits` has room for every node. */
ft_status ft__lanes_awaits(const ft_graph *g, int32_t *awaits, ft_error *err);
#endif
