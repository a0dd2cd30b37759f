/* Two streams: the host issues, the GPU runs. */
#ifndef FT_TIMELINE_STREAM_H
#define FT_TIMELINE_STREAM_H
#include "graph/graph.h"

/* One node as the streams see it. All in ms. */
typedef struct ft_node_cost {
    double host, gpu; /* of one launch; gpu 0: nothing runs */
    double count;
    bool waits;    /* the host goes on when the GPU has finished */
    double calls;  /* that a launch's time is spread over, the host's and the GPU's: a list's; 0 as 1 */
    double spared; /* of the gap behind it: replayed from a graph */
    bool blocks;   /* the host waits for every launch, not for the last one alone */
} ft_node_cost;

typedef struct ft_pace {
    const ft_node_cost *costs;   /* one per node of the graph */
    const double *entry;         /* one per block: host time before each iteration (Python modules) */
    double pass[FT_PHASE_COUNT]; /* host time before a phase's first block */
    double latency, gap;
    double queue;       /* kernels that may wait */
    int64_t accumulate; /* forward and backward run this often, the update once */
    bool reads_loss;    /* behind each of them the host waits for the GPU */
    double slowest;     /* what the host's times are multiplied by: the slowest of the processes that meet */
    double host_scale, gpu_scale;
} ft_pace;

typedef struct ft_walked {
    double total;   /* both have finished */
    double host;    /* the host's own work */
    double running; /* the GPU's, gaps between kernels included */
} ft_walked;

ft_walked ft__stream_walk(const ft_graph *g, const ft_pace *pace);
#endif
