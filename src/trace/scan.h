/* What busy.c and gaps.c share. */
#ifndef FT_TRACE_SCAN_H
#define FT_TRACE_SCAN_H
#include "trace/report.h"

typedef struct ft_trace_scan {
    const ft_record *r;
    const ft_trace_call **waits; /* calls that wait, by start */
    size_t wait_count;
    ft_busy *out;
} ft_trace_scan;

/* From `from` to `to` the GPU had nothing to do; `next` ended it. */
void ft__trace_scan_gap(ft_trace_scan *l, int64_t from, int64_t to, const ft_trace_work *next);
#endif
