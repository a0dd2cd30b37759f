/* A choice of GPUs for people. */
#ifndef FT_REPORT_TEXT_CHOOSE_SCREEN_H
#define FT_REPORT_TEXT_CHOOSE_SCREEN_H
#include "report/text/style.h"
#include "search/choose.h"

bool ft__screen_choose(ft_text *out, const ft_style *style, const char *model, const ft_chosen *c);
#endif
