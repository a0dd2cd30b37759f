/* `"task": "trace"`: a profiler trace, and the same run on other GPUs. */
#ifndef FT_REQUEST_TRACE_H
#define FT_REQUEST_TRACE_H
#include <jansson.h>

#include "trace/report.h"

/* Names point into the document. */
typedef struct ft_trace_request {
    const char *path;
    const char *on;                     /* the GPU that recorded it; NULL: as the trace says */
    const char *gpus[FT_TRACE_TARGETS]; /* where it is to be forecast */
    size_t gpu_count;
    double quantile;    /* 0: the context's */
    const json_t *host; /* a name, a path or an object; NULL: the usual one */
} ft_trace_request;

/* {"task":"trace","file":"run.json.gz","on":"h200_sxm","gpu":"a100_sxm_80gb"}; "gpu" may be a list. */
ft_status ft__trace_request_read(const json_t *object, ft_trace_request *out, ft_error *err);
#endif
