/* Live bytes, node by node: the state of the walk that memory.c prepares and reads off. */
#ifndef FT_MEMORY_SWEEP_H
#define FT_MEMORY_SWEEP_H
#include "layout/layout.h"
#include "memory/allocator.h"
#include "memory/lifetime.h"
#include "timeline/step.h"

/* What is live, by what it is. */
typedef struct ft_live {
    double gradients, saved, passing, cache;
} ft_live;

/* A storage that a node makes, or that goes when the node is done. */
typedef struct ft_move {
    double bytes;
    double *account; /* the part of `now` that it counts in */
    ft_ref tensor;
    uint8_t pool, when; /* its class of blocks; ft_when, by the block's iteration */
    bool pooled;        /* its blocks are of the stream that computes */
    bool added;         /* a gradient that is added to those that wait, then gone */
    bool stays;         /* nobody reads it any more, but a hook has it until the backward pass is over */
} ft_move;

typedef struct ft_sweep {
    const ft_graph *g;
    const ft_workload *work;
    const ft_memory_share *share;
    ft_lifetimes lives;
    double *size; /* storage -> bytes; 0 for what is not made by the step */
    bool compiled;
    bool growing_cache; /* the step makes the cache; otherwise it is there before */
    double
        stand_ins; /* bytes autograd gets for weights' gradients that are added up where they wait; 0: it gets them */
    bool kept_gradients; /* they are there before the backward pass: accumulated over micro-batches, or fp32 copies */
    bool away;           /* what layers leave for the backward pass goes to the host, but for a few */
    double away_bytes;   /* of one micro-batch */
    ft_live now, peak, hooked;   /* hooked: of `now`, what hooks alone hold */
    const ft_move *moves;        /* node by node: what it makes, then what goes */
    const int32_t *made, *going; /* node -> the first of either; there is one node more */
    double held;                 /* most that tensors hold, where it is known; 0: as they live here */
    double *workspace;           /* node -> bytes it holds while it runs */
    uint8_t *pool_of, *pool_at;  /* storage, node -> class of its blocks in the pool */
    ft_pool pool;
    double peak_total, peak_workspace;
    double peak_beside, most_beside; /* bytes that other micro-batches and exchanges hold: at the peak, at most */
    double most_saved, most_gradients;
    int32_t peak_block, peak_node;
    int64_t peak_iteration;
    ft_memory_curve *curve; /* NULL: nobody draws it */
} ft_sweep;

void ft__sweep_block(ft_sweep *s, int32_t b);                /* all its iterations */
double ft__sweep_waiting(const ft_sweep *s, ft_phase phase); /* bytes of other micro-batches */
/* FSDP's shards of gradients come from the stream that reduces them, whose blocks nobody else gets. */
bool ft__sweep_apart(const ft_sweep *s, ft_ref t);
/* Once sizes are known: fills `moves`, from the graph's arena. False: out of memory. */
bool ft__sweep_moves(ft_sweep *s);
/* The i-th result of a node, where the node makes its memory; FT_NONE for views and for what was counted already. */
ft_ref ft__sweep_made_by(const ft_sweep *s, int32_t n, int i);
#endif
