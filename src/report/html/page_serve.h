/* Serving under load as a page: what share of requests is how fast, queue and cache over time. */
#ifndef FT_REPORT_HTML_PAGE_SERVE_H
#define FT_REPORT_HTML_PAGE_SERVE_H
#include "report/html/svg.h"
#include "serving/serve.h"

/* What there is to be seen of an engine under load; in reports one after the other, in requests one by one. */
typedef enum ft_serving_picture {
    FT_SERVING_WAITS,  /* how long requests take; of a load that is served */
    FT_SERVING_TOKENS, /* how fast tokens come */
    FT_SERVING_QUEUE,
    FT_SERVING_CACHE
} ft_serving_picture;
bool ft__serving_has(const ft_serving *s, ft_serving_picture what);
/* False: out of memory. */
bool ft__svg_serving(ft_text *out, const ft_frame *f, const ft_serving *s, ft_serving_picture what);
bool ft__page_serve(ft_text *out, const ft_serving *s);
bool ft__picture_serve(ft_text *out, const ft_frame *f, const ft_serving *s);
#endif
