/* Serving under load as a page: what share of requests is how fast, queue and cache over time. */
#ifndef FT_REPORT_HTML_PAGE_SERVE_H
#define FT_REPORT_HTML_PAGE_SERVE_H
#include "report/html/svg.h"
#include "serving/serve.h"

/* False: out of memory. */
bool ft__page_serve(ft_text *out, const ft_serving *s);
bool ft__picture_serve(ft_text *out, const ft_frame *f, const ft_serving *s);
#endif
