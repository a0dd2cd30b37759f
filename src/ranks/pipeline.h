/* Pipeline schedules: who runs which micro-batch when. Nothing in here is a formula for bubbles: they are what is left
 * when every stage runs its list in order and waits for what others send. */
#ifndef FT_RANKS_PIPELINE_H
#define FT_RANKS_PIPELINE_H
#include "base/arena.h"
#include "layout/layout.h"

typedef enum ft_pipe_kind {
    FT_PIPE_FORWARD,
    FT_PIPE_BACKWARD, /* of inputs and weights */
    FT_PIPE_INPUTS,   /* the inputs' gradient alone: the weights' comes later */
    FT_PIPE_WEIGHTS
} ft_pipe_kind;

typedef struct ft_pipe_op { /* one piece of work of one stage */
    ft_pipe_kind kind;
    int32_t chunk;
    int64_t micro;
    bool waits;  /* its stage waits for what it sends, whatever send_share says */
    bool joined; /* a forward that runs beside the backward after it: both begin and end together */
    double start, end;
} ft_pipe_op;

/* Of a stage's backward pass, what a schedule that halves it takes for the weights' gradients. */
extern const double ft__weights_share;

/* One micro-batch's pass through layers with experts, forward or backward, in ms. */
typedef struct ft_pipe_parts {
    double alone;              /* layers without experts, embedding, head */
    double attention, experts; /* kernels outside and inside of the experts */
    double first, second;      /* exchanges: to the experts and back; going back first their results' gradients */
} ft_pipe_parts;

/* Exchanges with experts that run beside another micro-batch's kernels, where a forward and a backward are joined:
 * [place], as in ft_pipe. */
typedef struct ft_pipe_join {
    const ft_pipe_parts *forward, *backward;
    double slowdown; /* how much slower kernels run beside exchanges: 0.1 for a tenth */
} ft_pipe_join;

typedef struct ft_pipe {
    ft_schedule schedule;
    int64_t stages, chunks, micros;
    /* ms of one micro-batch through one chunk, [place]: where the chunk stands in the model, stages * chunks of them
     * (dualpipe: stages); chunk c of stage s stands at c * stages + s */
    const double *forward, *backward;
    const double *held;       /* [place]: what a micro-batch's activations there count in in_flight; NULL: 1 each */
    bool all_ahead;           /* interleaved, as many micro-batches as stages: all go forward before any goes back */
    double weight_share;      /* of backward that is the weights' gradient: split off by zero-bubble schedules */
    const ft_pipe_join *join; /* 1f1b and interleaved join what follows each other in the full pipeline, and run one
                               * micro-batch more ahead so that they can; NULL: pieces run one after the other */
    double send_ms;           /* of a boundary's activations */
    double send_share;        /* of it that a stage loses: 1, it waits; less, it is slower meanwhile; 0, it is free */
} ft_pipe;

typedef struct ft_piped {
    double total_ms;       /* first forward to last backward, over all stages */
    double busy_ms;        /* of the busiest stage */
    double bubble_ms;      /* of that stage: it waits for others */
    double *in_flight;     /* by stage: micro-batches whose activations live at once */
    double *last_backward; /* by stage: when its last backward begins: gradients are complete after it */
    double *finish;        /* by stage */
    double *sent_ms;       /* by stage: what its own transfers take, added up */
    double *hidden_ms;     /* by stage: what joined pieces take less than one after the other */
    double *lost_ms;       /* by stage: of them, what it waits or is slower meanwhile */
    ft_pipe_op **ops;      /* by stage: its list with times; the list's length in op_count */
    int32_t *op_count;
    int64_t skipped; /* micro-batches in the middle that the lists leave out; times and numbers count them */
    int32_t *gap;    /* by stage: the piece before which they would stand; NULL where none are left out */
} ft_piped;

/* The most that is alive at once in a stage's list when each chunk counts so much (NULL: 1). */
double ft__pipeline_alive(const ft_pipe_op *ops, int32_t count, const double *of_chunk);
/* Micro-batches that a schedule cannot take, with those that it can. */
ft_status ft__pipeline_check(ft_schedule schedule, int64_t stages, int64_t chunks, int64_t micros, ft_error *err);
ft_status ft__pipeline_run(const ft_pipe *p, ft_arena *arena, ft_piped *out, ft_error *err);
#endif
