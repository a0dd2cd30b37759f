/* Serving under load for people. */
#ifndef FT_REPORT_TEXT_SERVE_SCREEN_H
#define FT_REPORT_TEXT_SERVE_SCREEN_H
#include "report/text/style.h"
#include "serving/advise.h"

/* Model, engine and GPUs on a line, the load and the layout on the next. */
void ft__screen_serve_title(ft_text *out, const ft_style *style, const ft_serving *s);
bool ft__screen_serve(ft_text *out, const ft_style *style, const ft_serving *s);
/* Requests by the time to their first token and by the time of a further one. */
bool ft__screen_serve_histogram(ft_text *out, const ft_style *style, const ft_serving *s);
/* The model and the load, where several engines or GPUs follow. */
void ft__screen_serve_load(ft_text *out, const ft_style *style, const ft_serving *s);
/* The same load on several GPUs or engines, a row each; those without an outcome are passed over. */
bool ft__screen_serve_side(ft_text *out, const ft_style *style, const ft_serving *of, size_t count);
#endif
