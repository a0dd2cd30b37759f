/* What is there before the step begins and after it ended: weights, states, gradients that wait, inputs, the cache. */
#ifndef FT_MEMORY_KEPT_H
#define FT_MEMORY_KEPT_H
#include "memory/allocator.h"
#include "memory/lifetime.h"
#include "timeline/step.h"

typedef struct ft_kept {
    bool growing_cache;  /* given: the step makes the cache; otherwise it is there before */
    bool kept_gradients; /* given: they wait from micro-batch to micro-batch, or as fp32 copies */
    bool streams;        /* found: weights lie on the host and are copied in */
    bool fp32_shards;    /* found: parameters are kept in fp32 and cast as they are gathered; no copies beside them */
    double weights, gradients, optimizer, inputs, cache;
    double on_host;        /* optimizer states that are not here */
    double streamed;       /* weights that are not, but for two layers' */
    double main_gradients; /* fp32 copies of gradients of 16 bits, and what they are joined in: the update's own */
    double main_elements;  /* of how many gradients */
    double trained;        /* bytes of trained parameters that are updated here */
    const ft_tensor *widest;
    ft_packer packer;
} ft_kept;

void ft__keep(const ft_graph *g, const ft_workload *work, const ft_memory_share *share, const ft_lifetimes *lives,
              ft_kept *k);
/* Bytes of one copy of a tensor that is there before the step; 0: it is not. Copies of it that are here. */
double ft__kept_bytes(const ft_graph *g, const ft_memory_share *share, const ft_lifetimes *lives, const ft_kept *k,
                      ft_ref t);
int64_t ft__kept_copies(const ft_tensor *t, const ft_memory_share *share, const ft_kept *k);
/* Bytes of one copy of a gradient that waits from micro-batch to micro-batch. */
double ft__waiting_gradient(const ft_workload *work, const ft_memory_share *share, const ft_tensor *t);
/* Bytes that a GPU alone holds at least when this workload's step is over, read off the graph of another one that has
 * the same parameters: weights, states, gradients. 0 where some of them are elsewhere. */
double ft__least_kept(const ft_graph *g, const ft_workload *work);
#endif
