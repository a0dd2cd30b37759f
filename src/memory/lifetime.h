/* When the step's tensors die: for every node, whose memory is given back after it ran.
 *
 * A framework frees a tensor when its last reader is done: nobody holds it any more. In training the last reader of
 * many forward tensors is a backward node; that is what "saved activations" are, and nothing else in here knows them.
 *
 * Python holds more: who calls a layer or a module holds its arguments until it returns, and a model holds what it fed
 * its layers with until the last of them returned. A compiler knows better and holds nothing of what it compiled.
 *
 * A block that repeats is walked a few times, not `repeat` times, so that a death says in which iterations of the
 * block that it stands in it happens. Iteration j of a backward block undoes iteration repeat-1-j of its mirror. */
#ifndef FT_MEMORY_LIFETIME_H
#define FT_MEMORY_LIFETIME_H
#include "graph/graph.h"

/* Whose variables hold tensors beyond their last reader. */
typedef enum ft_holder { FT_NOBODY_HOLDS, FT_PYTHON_HOLDS, FT_PYTHON_HOLDS_AROUND_LAYERS } ft_holder;

typedef enum ft_when { FT_EVERY, FT_IN_FIRST, FT_IN_LAST, FT_BUT_FIRST, FT_BUT_LAST } ft_when;

typedef struct ft_death {
    ft_ref tensor; /* a storage's owner */
    ft_when when;
    int32_t next; /* in the same node; -1 ends the list */
} ft_death;

typedef struct ft_lifetimes {
    const ft_ref *root;   /* tensor -> the tensor that owns its memory */
    const int32_t *birth; /* storage -> the node that makes it; -1: it is there before the step */
    const bool *saved;    /* storage: made in forward, read in backward */
    const int32_t *first; /* node -> its first death; -1 for none */
    const ft_death *deaths;
} ft_lifetimes;

/* Gradients of parameters, caches, parameters, buffers and inputs have no deaths: the caller knows when they go.
 * Everything is taken from the graph's arena. Linear in nodes and tensors. */
ft_status ft__lifetimes(const ft_graph *g, ft_holder holder, ft_lifetimes *out, ft_error *err);

/* Its result is another view of what it reads. */
static inline bool ft__makes_nothing(const ft_node *n)
{
    return n->verb == FT_DO_VIEW || n->verb == FT_DO_SLICE || n->verb == FT_DO_SPLIT || n->verb == FT_DO_EXPAND;
}

static inline bool ft__happens(ft_when when, int64_t iteration, int64_t repeat)
{
    switch (when) {
    case FT_EVERY: return true;
    case FT_IN_FIRST: return iteration == 0;
    case FT_IN_LAST: return iteration == repeat - 1;
    case FT_BUT_FIRST: return iteration > 0;
    case FT_BUT_LAST: return iteration < repeat - 1;
    }
    return false;
}
#endif
