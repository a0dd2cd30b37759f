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
    FT_V_ZERO_BUBBLE, /* folded: every stage has a chunk on the way there and one on the way back */
    FT_V_HALF,        /* the same in half of the memory, */
    FT_V_MIN,         /* in a third */
    FT_SCHEDULE_COUNT
} ft_schedule;
extern const char *const ft__schedule_words[FT_SCHEDULE_COUNT];
const char *ft__schedule_name(ft_schedule s);

/* Zero 3: what is gathered at once, and what waits for it. */
typedef enum ft_gather {
    FT_GATHER_AS_STACK, /* as the software does that runs it (ranks/stack.c) */
    FT_GATHER_LAYER,    /* a layer, while the one before it runs: FSDP */
    FT_GATHER_PARAMETER /* one tensor after the other, and the GPU waits for most: DeepSpeed of 2021 */
} ft_gather;

/* What context ranks send each other. */
typedef enum ft_context_kind {
    FT_CONTEXT_RING,    /* keys and values go round while the ones that are there are used: Megatron's p2p */
    FT_CONTEXT_ULYSSES, /* tokens for heads, and back: all-to-all */
    FT_CONTEXT_GATHER,  /* keys and values are gathered before attention begins: Llama 3's, Megatron's all_gather */
    FT_CONTEXT_PYTORCH, /* torch.distributed.tensor.experimental.context_parallel, which torchtitan runs */
    FT_CONTEXT_COUNT
} ft_context_kind;
extern const char *const ft__context_words[FT_CONTEXT_COUNT];
const char *ft__context_name(ft_context_kind kind);

typedef struct ft_parallel {
    int64_t dp, tp, pp, vpp, cp, ep;
    int64_t etp; /* tensor ranks that share an expert: all of tp (0), or 1: experts are whole, and expert
                             * ranks lie across tensor ranks too (Megatron-Core's parallel folding) */
    int zero;    /* 0 plain data parallel, 1 states, 2 and gradients, 3 and parameters sharded */
    bool sp;     /* sequence parallel: norms and residuals split over the tensor ranks */
    ft_schedule schedule;
    bool overlap, no_overlap; /* gradients are exchanged beside the backward pass, or after it; neither: as the stack
                               * does (ranks/stack.c) */
    ft_gather gather;
    bool keep_gathered, drop_gathered; /* zero 3: parameters stay whole from forward to backward (reshard_after_forward
                               * off), or not; neither: as the stack does */
    bool gather_ahead;                 /* zero 1, 2: updated parameters are gathered beside the next forward pass */
    int in_pieces; /* 1: a tensor rank's gathers and scatters run in pieces beside the product that reads or
                             * makes them (user buffers, AsyncTP); 0: the product waits; -1: as the stack does it */
    bool overlap_sends, wait_sends; /* an interleaved pipeline's stages send beside their work, or wait as those of 1f1b
                                     * do; neither: as the stack does */
    bool rest;                      /* layers that do not divide: the last chunk takes what remains */
    ft_context_kind context;
    bool dispatch_once;  /* a token travels once to a rank, and to a node, with several of its experts (DeepEP) */
    int expert_overlap;  /* 1: what goes to experts and back runs beside another micro-batch's kernels; 0: its own
                             * wait; -1: as the schedule does, of which dualpipe is made for it */
    double skew;         /* tokens of the expert rank that gets most over the mean; 0 or 1: even */
    int64_t shard;       /* hybrid sharding: ranks that share one copy of the states; 0: all of dp */
    double bucket_bytes; /* of gradients exchanged at once; 0: the framework's default */
    double reduce_bytes; /* per gradient element on the wire; 0: as the gradients are */
    double gather_bytes; /* per parameter element when parameters are gathered; 0: as they are */
} ft_parallel;

static inline int64_t ft__parallel_ranks(const ft_parallel *p) { return p->dp * p->tp * p->pp * p->cp; }
static inline int64_t ft__expert_tensor(const ft_parallel *p) { return p->etp > 0 ? p->etp : p->tp; }
/* Ranks that experts can be spread over, each this far from the next. */
static inline int64_t ft__expert_room(const ft_parallel *p) { return p->dp * p->cp * (p->tp / ft__expert_tensor(p)); }
static inline int64_t ft__expert_stride(const ft_parallel *p) { return ft__expert_tensor(p); }
/* A forward and a backward pass of two micro-batches run layer by layer beside each other, where there are experts. */
static inline bool ft__expert_overlaps(const ft_parallel *p)
{
    if (p->ep <= 1 || p->expert_overlap == 0) return false;
    return p->expert_overlap > 0 || (p->schedule == FT_DUALPIPE && p->pp > 1);
}
static inline bool ft__parallel_alone(const ft_parallel *p) { return ft__parallel_ranks(p) == 1 && p->ep <= 1; }

/* What a layout needs of a model. */
typedef struct ft_divisible {
    int64_t layers, heads, kv_heads, experts, topk, seq; /* 0 where the model has no such thing */
    int64_t groups, picked_groups;                       /* of experts; 1 of 1 where a token may pick any */
    double routing_spared; /* kernels before an exchange of tokens that one which sends a token once does without */
    bool cuttable;         /* its products are marked: a decoder-only or BERT-like stack */
    bool in_a_row;         /* one row of layers leads from end to end: a pipeline can share it out */
    bool latent;           /* its cache is shared by all heads */
    bool uneven;           /* its stack deals any number of layers out to chunks */
    bool training;
    bool apart;        /* over tensor ranks: every product exchanges its own input */
    bool whole_logits; /* the loss reads the whole vocabulary on every tensor rank */
} ft_divisible;
/* Degrees that cannot be, each with the nearest that can. */
ft_status ft__parallel_check(const ft_parallel *p, const ft_divisible *model, ft_error *err);

/* Ranks of each group of an axis: groups of `size`, members `stride` apart. Megatron's order. */
void ft__parallel_group(const ft_parallel *p, ft_axis axis, int64_t *size, int64_t *stride);
/* The n-th group of an axis: its members into `ranks` (room for size); false when there is no such group. */
bool ft__parallel_members(const ft_parallel *p, ft_axis axis, int64_t n, int64_t *ranks);

/* How layers are dealt out to the places of a pipeline (deal.c): chunk c of stage s stands at c * stages + s. */
typedef enum ft_deal {
    FT_DEAL_EVEN, /* as many to each */
    FT_DEAL_ENDS, /* embedding and loss count as a layer each: the first and the last place have one less */
    FT_DEAL_LOSS, /* the loss counts as one: the last place has one less */
    FT_DEAL_REST, /* as many to each as the most need, to the last what remains */
    FT_DEAL_FRONT /* one more to the first ones */
} ft_deal;
ft_deal ft__layout_deal(int64_t layers, int64_t places, bool rest);
void ft__layout_range(int64_t layers, int64_t places, bool rest, int64_t place, int64_t *from, int64_t *to);
int64_t ft__parallel_chunks(const ft_parallel *p); /* of a stage: vpp where the schedule interleaves, 2 of a V */
/* The model's way goes down the stages and back up, so that the first stage has both ends. */
static inline bool ft__schedule_folds(ft_schedule s) { return s >= FT_V_ZERO_BUBBLE && s < FT_SCHEDULE_COUNT; }
/* Where a chunk stands in the model, and the stage that has its end. */
static inline int64_t ft__schedule_place(ft_schedule s, int64_t stages, int64_t stage, int64_t chunk)
{
    return chunk && ft__schedule_folds(s) ? 2 * stages - 1 - stage : chunk * stages + stage;
}
static inline int64_t ft__parallel_end(const ft_parallel *p) { return ft__schedule_folds(p->schedule) ? 0 : p->pp - 1; }

/* Which part of a stage's iterations of a block each of its chunks runs: [chunk * blocks + block], 0 to 1. */
typedef struct ft_chunks {
    int64_t count;
    int32_t blocks; /* forward ones, by their numbers in the stage's graph */
    double *parts;
} ft_chunks;
/* Of any block of the stage's graph; a backward one has its forward block's. */
double ft__chunk_part(const ft_chunks *chunks, const ft_graph *g, int64_t chunk, int32_t block);

/* Passes over a forward graph, in this order. */
/* How often each block runs in one pipeline stage, 0: not at all: embedding with the first, head with the last, layers
 * as they are dealt out. `kept` has room for every block; `parts` (or NULL) for every block of every chunk. */
ft_status ft__layout_shares(const ft_graph *g, const ft_parallel *p, int64_t stage, int64_t *kept, double *parts,
                            ft_error *err);
/* Keeps the blocks of one pipeline stage. `chunks` (or NULL): what of it its chunks run. */
ft_status ft__layout_stage(ft_graph *g, const ft_parallel *p, int64_t stage, ft_chunks *chunks, ft_error *err);
/* Cuts products over tensor ranks, sequences over context ranks, experts over expert ranks. `replicated` (or NULL):
 * elements of trained parameters that every tensor rank holds whole: norms, biases of products cut by rows, routers. */
ft_status ft__layout_cut(ft_graph *g, const ft_parallel *p, const ft_divisible *model, double *replicated,
                         ft_error *err);

/* Experts' weights: not held by every data rank. */
bool ft__is_expert(const ft_tensor *t);
#endif
