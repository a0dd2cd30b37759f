/* Zero 3 tensor by tensor: DeepSpeed of 2021. */
#ifndef FT_RANKS_PARAMETERS_H
#define FT_RANKS_PARAMETERS_H
#include "ranks/lanes.h"
#include "ranks/ranks.h"

/* What the parameters of a stage do at its nodes, into `*out`. What all of it takes, hidden or not, goes to the stage:
 * gathers of one micro-batch and reductions by axis_ms and gradient_ms, what is gathered after the update by gather_ms.
 * `width` as ft__ranks_exchange's. */
ft_status ft__ranks_parameters(const ft_ranks *r, ft_stage *stage, ft_ranks_width *width, const ft_sharded **out,
                               ft_error *err);
#endif
