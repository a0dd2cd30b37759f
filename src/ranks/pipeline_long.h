/* Very many micro-batches: a few are run, the rest repeat what those in the middle do. */
#ifndef FT_RANKS_PIPELINE_LONG_H
#define FT_RANKS_PIPELINE_LONG_H
#include "ranks/pipeline.h"

int64_t ft__pipeline_listed(const ft_pipe *p); /* micro-batches that are run and listed piece by piece */
/* After a run of the others: `skipped` more in its middle. `busy`: by stage, of those that ran, then of all. */
ft_status ft__pipeline_lengthen(const ft_pipe *p, int64_t skipped, double *busy, ft_arena *arena, ft_piped *out,
                                ft_error *err);
#endif
