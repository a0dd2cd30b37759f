/* Wrappers around a model: DDP, FSDP. */
#ifndef FT_RANKS_WRAPPER_H
#define FT_RANKS_WRAPPER_H
#include "ranks/ranks.h"

/* A rank's pace with its wrapper's hooks: by block, and before a phase's first. */
typedef struct ft_wrapped {
    const double *entry;
    double pass[FT_PHASE_COUNT];
} ft_wrapped;

/* The stage has its step; what the hooks cost is added to its host's time. */
ft_status ft__ranks_wrapped(const ft_ranks *r, ft_stage *s, ft_wrapped *out, ft_error *err);
#endif
