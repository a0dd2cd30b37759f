/* What busy.c and gaps.c share. */
#ifndef FT_TRACE_LOOKING_H
#define FT_TRACE_LOOKING_H
#include "trace/sight.h"

typedef struct ft_looking {
    const ft_record *r;
    const ft_trace_call **waits; /* calls that wait, by start */
    size_t wait_count;
    ft_busy *out;
} ft_looking;

/* From `from` to `to` the GPU had nothing to do; `next` ended it. */
void ft__looking_gap(ft_looking *l, int64_t from, int64_t to, const ft_trace_work *next);
#endif
