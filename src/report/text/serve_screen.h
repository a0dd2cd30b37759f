/* Serving under load for people. */
#ifndef FT_REPORT_TEXT_SERVE_SCREEN_H
#define FT_REPORT_TEXT_SERVE_SCREEN_H
#include "report/text/style.h"
#include "serving/serve.h"

bool ft__screen_serve(ft_text *out, const ft_style *style, const ft_serving *s);
#endif
