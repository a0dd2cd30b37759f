/* Exchanges of one tensor as a list of pieces, one for every rank: torch.distributed's all_gather and reduce_scatter,
 * as DeepSpeed of 2021 called them. */
#ifndef FT_RANKS_LISTS_H
#define FT_RANKS_LISTS_H
#include "ranks/lanes.h"
#include "ranks/ranks.h"

/* A gather: until it has ended, and until the host goes on that asked for it. 0: nobody has another piece. */
typedef struct ft_listed {
    double whole, issue;
} ft_listed;
ft_status ft__list_gather(const ft_ranks *r, const ft_pace *pace, const ft_tensor *t, ft_ranks_width *width,
                          ft_listed *out, ft_error *err);
/* Adds what the gradient takes to be reduced. */
ft_status ft__list_reduce(const ft_ranks *r, const ft_tensor *gradient, ft_ranks_width *width, ft_reducing *out,
                          ft_error *err);
/* Many small tensors gathered at once, then copied out tensor by tensor and rank by rank. */
ft_status ft__list_spread(const ft_ranks *r, double tensors, double elements, ft_ranks_width *width, double *ms,
                          ft_error *err);
#endif
