/* Tables of a trace's screen; each false where memory ran out. */
#ifndef FT_REPORT_TEXT_TRACE_TABLES_H
#define FT_REPORT_TEXT_TRACE_TABLES_H
#include "report/text/trace_screen.h"

bool ft__trace_gap_tables(ft_text *out, const ft_style *style, const ft_trace_report *s);
/* `accused`: those above their interval; otherwise those that take most. */
bool ft__trace_against_table(ft_text *out, const ft_style *style, const ft_trace_report *s, size_t most, bool accused);
bool ft__trace_tensor_table(ft_text *out, const ft_style *style, const ft_trace_report *s, size_t most);
bool ft__trace_elsewhere_table(ft_text *out, const ft_style *style, const ft_trace_report *s);
#endif
