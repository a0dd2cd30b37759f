/* A step on many GPUs: the ranks that differ are forecast, the others follow from them. */
#ifndef FT_RANKS_RANKS_H
#define FT_RANKS_RANKS_H
#include "comm/collective.h"
#include "layout/layout.h"
#include "model/stack.h"
#include "ranks/pipeline.h"
#include "timeline/step.h"

/* What a remedy may turn to: bits of sharding and of ft_recompute, more than data ranks. */
typedef struct ft_may {
    unsigned zero, recompute;
    bool only_data;
    bool more_gpus; /* and nothing else: what as many have was looked at already */
} ft_may;

typedef struct ft_ranks {
    const ft_arch *arch;
    const ft_workload *work; /* accumulate: micro-batches of one rank's pipeline */
    const ft_parallel *parallel;
    const ft_cluster *cluster;
    const ft_device *device;
    const ft_predictor *predictor;
    double quantile;
    ft_memo *memo;
    struct ft_exchanges
        *exchanges; /* those that were forecast, for this predictor, device, cluster and quantile; or NULL */
    ft_arena *arena;
    const ft_may *may; /* what its framework has; NULL: nobody knows */
    bool no_remedy;    /* of a layout that does not fit nobody asks what would */
    bool no_memory;    /* what ranks hold is known: their time is asked */
    bool passes_alone; /* of a stage: its kernels, its memory and a micro-batch's two passes, nothing that comes once */
} ft_ranks;

/* What one pipeline stage does with one micro-batch. */
typedef struct ft_stage {
    const ft_graph *g;
    const int32_t *parameters; /* of its tensors, those that hold parameters, in their order */
    int32_t parameter_count;
    const struct ft_lanes *lanes; /* its streams, for whoever walks them again */
    ft_step step;                 /* its kernels, as if it ran alone */
    int64_t count;                /* how many equal stages it stands for */
    ft_chunks chunks;             /* what of it each of its chunks runs */
    double forward_ms, backward_ms, update_ms;
    double *chunk_forward_ms, *chunk_backward_ms; /* by chunk: of these, what it takes */
    double *chunk_saved;                          /* by chunk: the part of saved_bytes that it leaves */
    double *chunk_trained;                        /* by chunk: the part of the stage's trained parameters that it has */
    double open_gradients;         /* the most of them whose gradients some micro-batches have made, not yet all */
    double boundary_bytes;         /* what a chunk hands on */
    int64_t receives, hands_on;    /* chunks that get it from another, and that give it to one */
    double last_backward_ms;       /* with the exchange of gradients beside it */
    double first_forward_ms;       /* with the gathering of updated parameters beside it */
    double axis_ms[FT_AXIS_COUNT]; /* exchanges of one micro-batch */
    double exposed_ms;             /* of them, in one micro-batch */
    ft_pipe_parts there, back;     /* one micro-batch's passes, where exchanges with experts are hidden; else 0 */
    double start_ms;               /* once per step: until the host's first kernel runs, in a row of micro-batches */
    double gather_ms, gradient_ms; /* once per step: parameters after the update, gradients as a whole */
    double ahead_ms;               /* parameters that are gathered beside the next forward pass */
    double first_gather_ms;        /* once per step: parameters gathered beside the first forward pass */
    double tail_ms;                /* once per step, after all: norms' gradients, tied tables */
    double tied_ms;                /* of it, the tied table's: between the first stage and the last */
    double saved_bytes;            /* activations one micro-batch leaves for its backward */
    double dense, expert;          /* elements of trained parameters, expert: of experts */
    double replicated;             /* of them, held whole by every tensor rank */
    double layer_bytes;            /* parameters of the largest unit that is gathered at once, as gathered */
    double layer_gradient_bytes;   /* its gradients, as they are reduced */
    double live_bytes, live_gradient_bytes; /* what of both is there at a time, outside of PyTorch's units */
    double layer_flowing_bytes;             /* as the backward pass makes them */
    double gathered_bytes;                  /* all of the stage's parameters, as gathered */
    double root_bytes, root_gradient_bytes; /* of FSDP's root, which holds what is no layer */
    double head_gradient_bytes;             /* of it, what the head's backward pass makes */
    double gradient_bytes;                  /* all of them, as the backward pass makes them */
    ft_memory held;                         /* by one of its ranks */
} ft_stage;

typedef struct ft_ranked {
    ft_stage *stages;
    int64_t stage_count;       /* pp */
    double gather_received_ms; /* of a boundary's transfer, what gathers it over tensor ranks; 0: it is sent whole */
    ft_piped pipe;
} ft_ranked;

/* Fills `out` with the step as its slowest rank sees it; `details` may be NULL. A layout that does not fit gets the
 * nearest one that does in out->memory.remedy. */
ft_status ft__ranks_forecast(const ft_ranks *r, ft_step *out, ft_ranked *details, ft_graph **shown, ft_error *err);

/* What the layout asks of the model. */
ft_divisible ft__ranks_model(const ft_arch *arch, const ft_workload *work);

/* Between the files of this pass. */

/* Ranks that hold the same parameters, experts' or others; and those of them that share one copy of the states. */
ft_group ft__ranks_replicas(const ft_parallel *p, bool expert);
ft_group ft__ranks_sharers(const ft_parallel *p, bool expert);
/* The part of states (or gradients, parameters) that one rank keeps when they are sharded. */
double ft__ranks_kept(const ft_parallel *p, double dense, double expert);
/* The workload with what it leaves open decided: FSDP's hooks stand between layers, so that a compiler sees each of
 * them by itself (PyTorch: fully_shard and torch.compile are applied layer by layer). */
ft_workload ft__ranks_workload(const ft_ranks *r);

/* A pass that takes so long without its exchanges with experts, by what they can hide behind, and these
 * (join.c). */
ft_pipe_parts ft__ranks_parts(const struct ft_lanes *l, ft_phase phase, double quiet_ms);
/* Whether a forward and a backward pass run beside each other for that. */
bool ft__ranks_joins(const ft_ranks *r);
/* What joined pieces take, place by place. `run` has the times of the pieces. */
ft_status ft__ranks_join(const ft_ranks *r, const ft_stage *stages, const ft_pipe *run, double slowdown,
                         ft_pipe_join *out, ft_error *err);

/* Of the copies of tokens that experts ask for, the part that travels (dispatch.c). */
double ft__ranks_dispatched(const ft_ranks *r, const ft_group *group);

/* What a stack does where the request leaves it open (stack.c): the one that it names or that follows from the layout;
 * gradients exchanged beside the backward pass; stages that wait while they send; bytes of a gradient's element on the
 * wire. Parameters are sharded by PyTorch's fully_shard; Megatron's kernels come with a sharding of their own. */
const ft_stack *ft__ranks_stack(const ft_parallel *p, const ft_workload *work);
bool ft__ranks_fsdp(const ft_parallel *p, const ft_workload *work);
/* Sharded parameters stay whole from forward to backward; are gathered for every micro-batch, not once for all of them;
 * gradients are reduced after every micro-batch, not after the last. */
bool ft__ranks_keeps_gathered(const ft_parallel *p, const ft_workload *work);
bool ft__ranks_gathers_each(const ft_parallel *p, const ft_workload *work);
bool ft__ranks_reduces_each(const ft_parallel *p, const ft_workload *work);
/* Whose loss over tensor ranks it is, where the graph does not have it already. */
ft_loss_by ft__ranks_loss(const ft_parallel *p, const ft_workload *work);
bool ft__ranks_overlaps(const ft_parallel *p, const ft_workload *work);
double ft__ranks_holds(const ft_parallel *p, const ft_workload *work); /* share of a gather that kernels wait for */
bool ft__ranks_by_parameter(const ft_parallel *p, const ft_workload *work); /* zero 3 of DeepSpeed of 2021 */
/* Zero 1, gradients are summed to all ranks all the same. */
bool ft__ranks_sums_whole(const ft_parallel *p, const ft_workload *work);
bool ft__ranks_waits_for_sends(const ft_parallel *p, const ft_workload *work);
/* Bytes of an element on the wire: of a parameter that is gathered, of a gradient that is reduced. */
double ft__ranks_gather_bytes(const ft_parallel *p, const ft_workload *work);
/* The same of one tensor, `element` those of others. */
double ft__ranks_travels(const ft_tensor *t, double element);
double ft__ranks_reduce_bytes(const ft_parallel *p, const ft_workload *work);
/* Whether a tensor rank's gathers and scatters run in pieces beside the products that read and make them. */
bool ft__ranks_in_pieces(const ft_parallel *p, const ft_workload *work);
/* How much of attention is left when the last keys of context ranks have come (`left` in lanes.h). */
double ft__ranks_attention_left(const ft_parallel *p, const ft_workload *work);

/* ms of an exchange; `width`, when not NULL, grows to how much it may be shorter and longer, relative to it, and to its
 * share of the GPU. */
typedef struct ft_ranks_width {
    double below, above, taken;
    bool slots; /* some of it goes through slots of PCIe */
} ft_ranks_width;
/* How much slower kernels are beside an exchange that takes so much of the GPU. */
double ft__ranks_overlapped(const ft_ranks_width *width);
/* Equal exchanges are forecast once where somebody keeps them. */
typedef struct ft_exchanges ft_exchanges;
ft_exchanges *ft__exchanges_new(void); /* NULL: out of memory */
void ft__exchanges_free(ft_exchanges *e);
ft_status ft__ranks_exchange(const ft_ranks *r, ft_exchange_kind kind, const ft_group *group, double bytes, double *ms,
                             ft_ranks_width *width, ft_error *err);

/* One stage's graph; with its time, or (memory alone) without. */
/* Gradients into the buckets that replicas exchange, and back: a node of the update (buckets.c). */
ft_status ft__ranks_copy_buckets(const ft_ranks *r, const ft_stage *s, ft_graph *g, ft_error *err);
ft_status ft__ranks_graph(const ft_ranks *r, int64_t index, ft_stage *out, ft_error *err);
/* Elements of one iteration's parameters; those of other stages' blocks that this one uses go with its last block.
 * Where others travel in `element` bytes, packed ones count by the share of it that they take; 1: none does. */
void ft__ranks_unit(const ft_stage *s, int32_t block, bool trained, double element, double *dense, double *expert);
ft_status ft__ranks_stage(const ft_ranks *r, int64_t index, ft_stage *out, ft_ranks_width *width, ft_error *err);
/* The times of a stage from its streams. `last_bucket_ms`: of gradients that wait for the backward pass to end. */
ft_status ft__ranks_time(const ft_ranks *r, const struct ft_lanes *lanes, double last_bucket_ms, ft_stage *stage,
                         ft_error *err);
/* What each chunk of a stage takes, when so much was spent on each block of a phase; and which part of what is saved
 * for the backward pass it leaves, of the parameters it has, and what it hands on (chunks.c). */
ft_status ft__ranks_chunk_times(const ft_ranks *r, const double *spent, ft_stage *stage, ft_error *err);
ft_status ft__ranks_chunk_parts(const ft_ranks *r, int64_t index, ft_stage *stage, ft_error *err);
/* The most of a stage's gradients that are open at once: a chunk's from its first backward pass to its last. */
ft_status ft__ranks_open_gradients(const ft_ranks *r, const ft_piped *pipe, int64_t stage, ft_stage *of, ft_error *err);
/* The part of its stage's layers that each place of an interleaved pipeline has; NULL where stages have one chunk. */
ft_status ft__ranks_layer_parts(const ft_ranks *r, double **out, ft_error *err);
/* Micro-batches whose activations a stage holds at once, by their bytes: logits wait in the last chunk alone. */
double ft__ranks_held(const ft_parallel *p, const ft_piped *pipe, int64_t stage, const ft_stage *of);
/* Stages `a` and `b` are one and the same. */
ft_status ft__ranks_twins(const ft_ranks *r, const ft_graph *whole, int64_t a, int64_t b, bool *same, ft_error *err);

/* Memory of one rank of a stage with so many micro-batches in flight. */
ft_status ft__ranks_share_memory(const ft_ranks *r, const ft_stage *s, const ft_stage *paired, double in_flight,
                                 ft_memory *out, ft_error *err);
/* Stages of which one holds most, no time forecast; what the worst of them holds, as often as it is asked; both. */
enum { FT_HEAVY_MOST = 3 };
typedef struct ft_heavy {
    ft_stage stage[FT_HEAVY_MOST];
    int64_t at[FT_HEAVY_MOST]; /* in the pipeline */
    int count;
    ft_piped lists;
} ft_heavy;
ft_status ft__ranks_heavy(const ft_ranks *r, ft_heavy *out, ft_error *err);
ft_status ft__ranks_heaviest(const ft_ranks *r, const ft_heavy *some, ft_memory *out, int64_t *worst, ft_error *err);
ft_status ft__ranks_memory(const ft_ranks *r, ft_memory *out, int64_t *worst, ft_error *err);
/* The nearest layout that fits, in words in the arena; "" when none was found. `of`: a stage of the one asked for. */
ft_status ft__ranks_remedy(const ft_ranks *r, const ft_stage *of, const char **out, ft_error *err);
#endif
