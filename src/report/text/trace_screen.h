/* A profiler trace as text and as JSON. */
#ifndef FT_REPORT_TEXT_TRACE_SCREEN_H
#define FT_REPORT_TEXT_TRACE_SCREEN_H
#include <jansson.h>

#include "report/text/style.h"
#include "trace/report.h"

/* `most`: rows of each table. False: out of memory. */
bool ft__screen_trace(ft_text *out, const ft_style *style, const char *file, const ft_trace_report *s, size_t most);
void ft__answer_trace(ft_text *out, const json_t *id, const ft_trace_report *s);

/* What a group is called: "addmm [768] [24576,768] [768,30522]". */
void ft__trace_group_words(ft_text *out, const ft_trace_report *s, const ft_trace_group *g);
#endif
