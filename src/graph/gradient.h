/* The gradient of one node: see gradient.c. backward.c walks the graph and keeps the books. */
#ifndef FT_GRAPH_GRADIENT_H
#define FT_GRAPH_GRADIENT_H
#include "graph/emit.h"

typedef struct ft_tape {
    ft_build b;    /* emits into the backward block */
    ft_ref *grad;  /* of each tensor, so far; FT_NONE */
    ft_ref *again; /* of a forward tensor: its recomputed twin; FT_NONE: the original */
    int32_t room;
    int32_t forward;      /* the forward block being undone */
    ft_accumulation sums; /* micro-batches */
    bool conv1d;
} ft_tape;

bool ft__tape_widen(ft_tape *t); /* the books, to all tensors that there are by now */
ft_ref ft__tape_grad(const ft_tape *t, ft_ref x);
ft_ref ft__tape_saved(const ft_tape *t, ft_ref x); /* as the backward pass finds it */
/* Adds g to x's gradient; nothing when x is not trained. */
void ft__tape_give(ft_tape *t, ft_ref x, ft_ref g);
void ft__tape_node(ft_tape *t, const ft_node *n); /* every gradient that n owes its inputs */

/* Recomputation (recompute.c): what a backward block runs again before its gradients. */
typedef enum ft_recomputed {
    FT_RECOMPUTED_NOTHING,
    FT_RECOMPUTED_SCORES, /* Megatron's selective: attention's score matrix, or the modules that it is told of */
    FT_RECOMPUTED_CHEAP,  /* PyTorch's selective: all but attention and every other product */
    FT_RECOMPUTED_LAYER
} ft_recomputed;
void ft__run_recomputed(ft_tape *t, const ft_block *forward, ft_recomputed what);
/* PyTorch's way to end it, once the gradients are there. */
void ft__checkpoint_end(ft_tape *t, const ft_block *forward, ft_recomputed what);
#endif
