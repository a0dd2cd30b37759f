/* A step as a trace-event file, which Perfetto (ui.perfetto.dev) and chrome://tracing show.
 *
 * One process per pipeline stage, or one for a single GPU; in it a track for the host, one for kernels, one for pieces
 * of work (micro-batches) and one for each axis that exchanges. Ranks of a stage do the same and are drawn once. */
#ifndef FT_REPORT_TRACE_PERFETTO_H
#define FT_REPORT_TRACE_PERFETTO_H
#include "study/step_view.h"

/* Kernels are drawn for as many micro-batches as keep the file under this many events. */
enum { FT_TRACE_EVENTS = 60000, FT_TRACE_STAGES = 32 };

/* The whole file. What was left out to keep it small stands in otherData.notes. */
ft_status ft__perfetto(const ft_step_view *v, ft_text *out, ft_error *err);
#endif
