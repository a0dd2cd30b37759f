/* Between the files of a step's page: its tables. */
#ifndef FT_REPORT_HTML_PAGE_PARTS_H
#define FT_REPORT_HTML_PAGE_PARTS_H
#include "report/html/page.h"

/* The section of advice; nothing where there is none. */
bool ft__page_advice(ft_text *out, const ft_step_view *v);
/* Weak and strong scaling: a picture and tables, inside a section. */
bool ft__page_curves(ft_text *out, const ft_scale *s);
bool ft__page_kernels(ft_text *out, const ft_step_view *v);
bool ft__page_layers(ft_text *out, const ft_step_view *v);
bool ft__page_stages(ft_text *out, const ft_step_view *v);
void ft__page_memory(ft_text *out, const ft_step_view *v);
#endif
