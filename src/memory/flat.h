/* DeepSpeed's stretches: what its stages ask of the allocator beside the step's own tensors, each in one piece.
 *
 * Stages 1 and 2 (runtime/zero/stage_1_and_2.py, 0.18.9) flatten the weights beside those that were loaded, copy this
 * rank's part before it is widened, and make fp32 gradients of zeros that nobody reads; what is left of all these stays
 * cached. While gradients are made there are a bucket and a stretch for them. The update joins these, widens them and
 * lets both go before moments are made: the first step's find the place that the next one's gradients need.
 *
 * Stage 3 (stage3.py) widens a part at a time and copies that, has its bucket and the gradients' stretch from the
 * start, and averages a bucket's worth on a stream of its own, whose blocks no other takes. */
#ifndef FT_MEMORY_FLAT_H
#define FT_MEMORY_FLAT_H
#include "memory/cache.h"
#include "memory/kept.h"

typedef struct ft_flat {
    bool third;              /* stage */
    double elements;         /* that this rank updates */
    double at_a_time;        /* in one part of an update */
    int parts;               /* of which the last may be smaller */
    double narrow;           /* bytes of an element as it is computed with */
    double bucket;           /* bytes */
    double largest;          /* elements of the largest gradient */
    double moments[8];       /* bytes of an element of each state but the fp32 copy */
    int moment_count;        /* of them */
    int32_t buckets, joined; /* blocks that gradients hold while they are made; -1 */
    bool stepped;
} ft_flat;

/* False: the stack has none, or the update runs elsewhere. */
bool ft__flat_of(const ft_workload *work, const ft_memory_share *share, const ft_kept *k, ft_flat *out);
void ft__flat_begin(const ft_flat *f, ft_cache *c); /* when weights are flat */
void ft__flat_backward(ft_flat *f, ft_cache *c);
void ft__flat_update(ft_flat *f, ft_cache *c);
double ft__flat_apart(const ft_flat *f); /* bytes that another stream caches */
#endif
