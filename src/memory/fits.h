/* When a step does not fit: the smallest change that makes it fit.
 *
 * Changes are tried from the least to the most invasive: first what leaves the numbers as they are (flash attention,
 * smaller micro-batches, recomputation), then another optimizer, other formats, adapters, at last more GPUs. One change
 * alone goes before two, and of several the fewest are kept. */
#ifndef FT_MEMORY_FITS_H
#define FT_MEMORY_FITS_H
#include "timeline/step.h"

/* The memory of another workload on the same model and GPU. */
typedef ft_status (*ft_memory_of)(const ft_workload *work, void *user, ft_memory *out, ft_error *err);

typedef struct ft_remedy {
    ft_workload work;      /* that fits; the given one when nothing but more GPUs helps */
    ft_memory memory;      /* of it */
    int64_t largest_batch; /* that fits with nothing else changed; 0: not even one sequence */
    int64_t gpus;          /* 1; more when no change is enough */
    char text[200];        /* "recompute: full, batch 4 accumulated 2 times"; "" when it fits as it is */
} ft_remedy;

ft_status ft__memory_remedy(const ft_workload *work, ft_memory_of memory_of, void *user, ft_remedy *out, ft_error *err);
#endif
