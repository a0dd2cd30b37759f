/* One rank's streams: the host issues, the GPU computes, collectives run on lanes of their own.
 *
 * A collective starts when what it sends is computed and its lane is free; who reads its result waits for it, everybody
 * else does not. What is hidden and what is exposed follows. */
#ifndef FT_RANKS_LANES_H
#define FT_RANKS_LANES_H
#include "timeline/stream.h"

/* Lanes by number: an axis of the layout, or one of these. */
enum { FT_LANE_GPU = FT_AXIS_COUNT, FT_LANE_HOST, FT_LANE_COUNT };

/* What a walk tells who listens to it. */
typedef enum ft_seen_kind {
    FT_SEEN_KERNEL,   /* at: node */
    FT_SEEN_EXCHANGE, /* node */
    FT_SEEN_AGAIN,    /* node: what it reads is gathered again */
    FT_SEEN_GATHER,   /* block: an iteration's parameters */
    FT_SEEN_SCATTER,  /* block: its gradients */
    FT_SEEN_ISSUE,    /* block: the host launches an iteration */
    FT_SEEN_FOLDED    /* block: more iterations like the last one, on any lane */
} ft_seen_kind;
typedef struct ft_seen {
    ft_seen_kind kind;
    int lane;
    int32_t at;
    double start, end, folded; /* folded: iterations */
} ft_seen;

/* Gradients that are reduced one tensor after the other: what the host needs to ask for it, what it takes then. */
typedef struct ft_reducing {
    double list, exchange;
    bool fresh; /* the node before has made one of them */
} ft_reducing;

/* What sharded parameters, gathered tensor by tensor, do at a node. */
typedef struct ft_sharded {
    ft_reducing before, behind;
    bool stops;          /* it waits until host, kernels and gathers have come to rest */
    double fetch;        /* and then while what it reads is gathered */
    double issue, ahead; /* the host asks for the next one, which goes on beside kernels: until both have ended */
    bool releases;       /* what it read is dropped behind it, for which the host waits */
} ft_sharded;

typedef struct ft_lanes {
    const ft_graph *g;
    const ft_node_cost *costs; /* by node */
    const double *entry;       /* by block */
    const double *pass;        /* by phase: host time before its first block; NULL: none */
    const double *comm;        /* by node: ms of its exchange; 0: none */
    const ft_axis *axis;       /* by node */
    const int32_t *awaits;     /* by node: the exchange whose result it reads; -1 */
    const int32_t *sends;  /* by node: an exchange's, the node that made what it sends; -1: unknown, all before it */
    const double *left;    /* by node: an exchange that goes on beside the kernel that uses what it brings: the share
                              * of that kernel that is left when the last of it has come. 0: the kernel waits for it;
                              * below 0: every kernel behind it does */
    const double *again;   /* by node: ms of gathering again what this node reads, begun with the kernel before it */
    const bool *begins;    /* by node: exchanges may begin with it that come after it (ft__lanes_begins); NULL: look */
    const double *gather;  /* by block: ms to gather one iteration's parameters (sharded ones); 0 */
    const double *scatter; /* by block: ms to reduce one iteration's gradients while the backward pass goes on; 0 */
    const ft_sharded *sharded; /* by node; NULL: parameters are whole, or gathered by the block */
    double latency, gap;
    double holds;       /* share of a gather during which kernels stand still */
    double queue;       /* kernels that may wait for the GPU; 0: any number */
    const bool *pieces; /* by node: an exchange in pieces beside the product that reads or makes what it moves;
                              * NULL: none does */
    double piece_count; /* so many */
    bool reads_loss;    /* behind a backward pass the host waits for the GPU */
    bool async;         /* exchanges start when their operand is there; otherwise after all kernels before */
    bool stands;        /* kernels stand still while an exchange runs: through slots of PCIe (docs/models/layout.md) */
    double slowdown;    /* how much slower kernels run while an exchange runs beside them: 0.1 for a tenth */
    double sms;         /* where products are persistent kernels (overlap_slowdown.h); 0: a block is a tile */
    bool copies;        /* tensor ranks' exchanges go by copy engines or by SMs that products leave to them */
    double *spent;      /* by block: ms of its iterations, added up; NULL */
    void (*watch)(void *watcher, const ft_seen *what); /* NULL: nobody listens */
    void *watcher;
} ft_lanes;

typedef struct ft_clocks {
    double host, gpu, lane[FT_AXIS_COUNT];
    double began; /* when the last kernel did */
} ft_clocks;

/* Runs all blocks of a phase once from the given clocks. `gathers`: parameters are sharded when this pass begins;
 * `scatters`: gradients are exchanged in this pass. `ended` has room for every node. */
void ft__lanes_run(const ft_lanes *l, ft_phase phase, bool gathers, bool scatters, double *ended, ft_clocks *clocks);

/* For every node whether begins_beside of lanes.c would find something: asked once, not for every iteration. */
void ft__lanes_begins(const ft_lanes *l, bool *begins);

/* For every node the exchange whose result it reads, through views; -1. For every exchange the node in the same block
 * that made what it sends. Both have room for every node. */
ft_status ft__lanes_awaits(const ft_graph *g, int32_t *awaits, int32_t *sends, ft_error *err);
#endif
