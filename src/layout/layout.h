/* On which ranks what is computed: one rank's share of a forward graph, with the exchanges it needs.
 *
 * A layout is a product of degrees: tp * cp * dp * pp = ranks, laid out in Megatron's order: tensor innermost, then
 * context, then data, then pipeline; experts are spread over ranks of the data and context axes. Passes turn the whole
 * model's forward graph into one rank's, before the backward pass is derived: whatever was inserted going forward has
 * its conjugate going back. */
#ifndef FT_LAYOUT_LAYOUT_H
#define FT_LAYOUT_LAYOUT_H
#include "graph/graph.h"

typedef enum ft_schedule {
    FT_GPIPE,
    FT_1F1B,
    FT_INTERLEAVED,
    FT_ZERO_BUBBLE,
    FT_DUALPIPE,
    FT_SCHEDULE_COUNT
} ft_schedule;
const char *ft__schedule_name(ft_schedule s);

typedef struct ft_parallel {
    int64_t dp, tp, pp, vpp, cp, ep;
    int zero;               /* 0 plain data parallel, 1 states, 2 and gradients, 3 and parameters sharded */
    bool sp;                /* sequence parallel: norms and residuals split over the tensor ranks */
    ft_schedule schedule;
    bool no_overlap;        /* gradients are exchanged after the backward pass instead of beside it */
    bool keep_gathered;     /* zero 3: parameters stay whole from forward to backward (reshard_after_forward off) */
    bool gather_ahead;      /* zero 1, 2: updated parameters are gathered beside the next forward pass */
    bool wait_sends;        /* an interleaved pipeline's stages wait while they send, as those of 1f1b do */
    bool ulysses;           /* context parallel by all-to-all of heads instead of a ring of keys and values */
    double skew;            /* tokens of the expert rank that gets most over the mean; 0 or 1: even */
    int64_t shard;          /* hybrid sharding: ranks that share one copy of the states; 0: all of dp */
    double bucket_bytes;    /* of gradients exchanged at once; 0: the framework's default */
    double reduce_bytes;    /* per gradient element on the wire; 0: as the gradients are */
    double gather_bytes;    /* per parameter element when parameters are gathered; 0: as they are */
} ft_parallel;

static inline int64_t ft__parallel_ranks(const ft_parallel *p) { return p->dp * p->tp * p->pp * p->cp; }
static inline bool ft__parallel_alone(const ft_parallel *p) { return ft__parallel_ranks(p) == 1 && p->ep <= 1; }

/* What a layout needs of a model. */
typedef struct ft_divisible {
    int64_t layers, heads, kv_heads, experts, topk, seq; /* 0 where the model has no such thing */
    bool cuttable;          /* its products are marked: a decoder-only or BERT-like stack */
    bool in_a_row;          /* one row of layers leads from end to end: a pipeline can share it out */
    bool latent;            /* its cache is shared by all heads */
    bool training;
} ft_divisible;
/* Degrees that cannot be, each with the nearest that can. */
ft_status ft__parallel_check(const ft_parallel *p, const ft_divisible *model, ft_error *err);

/* Ranks of each group of an axis: groups of `size`, members `stride` apart. Megatron's order. */
void ft__parallel_group(const ft_parallel *p, ft_axis axis, int64_t *size, int64_t *stride);
/* The n-th group of an axis: its members into `ranks` (room for size); false when there is no such group. */
bool ft__parallel_members(const ft_parallel *p, ft_axis axis, int64_t n, int64_t *ranks);

/* Passes over a forward graph, in this order. */
/* How often each block runs in one pipeline stage, 0: not at all: embedding with the first, head with the last, layers
 * shared out; stages that do not divide get one layer more from the front. `kept` has room for every block. */
ft_status ft__layout_shares(const ft_graph *g, int64_t stage, int64_t stages, int64_t *kept, ft_error *err);
/* Keeps the blocks of one pipeline stage. */
ft_status ft__layout_stage(ft_graph *g, int64_t stage, int64_t stages, ft_error *err);
/* Cuts products over tensor ranks, sequences over context ranks, experts over expert ranks. `replicated` (or NULL):
 * elements of trained parameters that every tensor rank holds whole: norms, biases of products cut by rows, routers. */
ft_status ft__layout_cut(ft_graph *g, const ft_parallel *p, const ft_divisible *model, double *replicated,
                         ft_error *err);

/* Experts' weights: not held by every data rank. */
bool ft__is_expert(const ft_tensor *t);
#endif
