/* A serving run for other programs: its iterations as a trace for Perfetto, its requests as comma-separated values. */
#ifndef FT_REPORT_TRACE_SERVE_TRACE_H
#define FT_REPORT_TRACE_SERVE_TRACE_H
#include "base/text.h"
#include "serving/roll.h"

void ft__perfetto_serve(ft_text *out, const ft_roll *r);
void ft__csv_serve(ft_text *out, const ft_roll *r);
#endif
