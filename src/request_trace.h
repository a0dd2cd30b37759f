/* `"task": "trace"`: a profiler trace, and the same run on other GPUs. */
#ifndef FT_REQUEST_TRACE_H
#define FT_REQUEST_TRACE_H
#include <jansson.h>

#include "trace/sight.h"

/* `on`: the GPU that recorded it, NULL: as the trace says. `gpus`: where it is to be forecast. `quantile` 0: the
 * context's. Free the sight with ft__sight_free either way. */
ft_status ft__trace_of(const ft_context *ft, const char *path, const char *on, const char *const *gpus, size_t count,
                       double quantile, ft_sight *out, ft_error *err);

/* {"task":"trace","file":"run.json.gz","on":"h200_sxm","gpu":"a100_sxm_80gb"}; "gpu" may be a list. */
ft_status ft__answer_trace_request(const ft_context *ft, const json_t *object, const json_t *id, ft_text *out,
                                   ft_error *err);
#endif
