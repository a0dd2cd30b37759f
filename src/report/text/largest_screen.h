/* The largest model of a family, as text. */
#ifndef FT_REPORT_TEXT_LARGEST_SCREEN_H
#define FT_REPORT_TEXT_LARGEST_SCREEN_H
#include "report/text/style.h"
#include "study/largest.h"

bool ft__screen_largest(ft_text *out, const ft_style *style, const ft_largest *r);
/* Its first lines: what was looked for, and how. */
void ft__largest_title(ft_text *out, const ft_style *style, const ft_largest *r);
#endif
