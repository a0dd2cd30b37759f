/* The lists of a schedule's stages, before anybody runs them. */
#ifndef FT_RANKS_PIPELINE_LISTS_H
#define FT_RANKS_PIPELINE_LISTS_H
#include "ranks/pipeline.h"

/* Where chunk c of stage s stands in the model. */
int64_t ft__pipeline_place(const ft_pipe *p, int64_t stage, int64_t chunk);
/* Makes ops, op_count and in_flight: all that is known before anybody runs them. */
ft_status ft__pipeline_lists(const ft_pipe *p, ft_arena *arena, ft_piped *out, ft_error *err);
/* One stage's list of a V (pipeline_folded.c). `late` has room for two pieces of every micro-batch, `ops` for six. */
void ft__pipeline_folded(const ft_pipe *p, int64_t stage, int32_t *late, ft_pipe_op *ops, int32_t *count);
#endif
