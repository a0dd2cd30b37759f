/* Serving under load for people. */
#ifndef FT_REPORT_TEXT_SERVE_SCREEN_H
#define FT_REPORT_TEXT_SERVE_SCREEN_H
#include "report/text/style.h"
#include "serving/advise.h"

/* Model, engine and GPUs on a line, the load and the layout on the next. */
void ft__screen_serve_title(ft_text *out, const ft_style *style, const ft_serving *s);
bool ft__screen_serve(ft_text *out, const ft_style *style, const ft_serving *s);
#endif
