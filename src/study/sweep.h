/* A request asked over a range of one of its numbers: which requests those are. */
#ifndef FT_STUDY_SWEEP_H
#define FT_STUDY_SWEEP_H
#include "request/sweep.h"
#include "study/context.h"

/* What every point has in common beyond what the request says: of "infer" one batch, not the usual grid. */
ft_status ft__sweep_prepare(ft_scratch *scratch, ft_sweep_request *r, ft_error *err);
size_t ft__sweep_gpus(const ft_sweep_request *r);
/* The key that the number stands under; FT_KEY_COUNT: the task has none of that name. */
ft_key_id ft__sweep_key(const ft_sweep_request *r);
/* The request of one point, with an id: "h100_sxm seq=512". The caller's to release. */
ft_status ft__sweep_point(const ft_sweep_request *r, size_t gpu, size_t point, json_t **out, ft_error *err);
/* What went wrong, and at which point. Returns `status`. */
ft_status ft__sweep_explain(const ft_sweep_request *r, size_t point, ft_status status, ft_error *err);
#endif
