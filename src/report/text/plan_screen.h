/* A plan for people. */
#ifndef FT_REPORT_TEXT_PLAN_SCREEN_H
#define FT_REPORT_TEXT_PLAN_SCREEN_H
#include "report/text/style.h"
#include "search/first.h"
#include "search/plan.h"

bool ft__screen_plan(ft_text *out, const ft_style *style, const ft_plan *p);
/* "tp 4, pp 8 x 5, dp 2": degrees that are not 1. */
void ft__add_layout(ft_text *out, const ft_style *style, const ft_layout *l);
/* One line of a training step's screen: its layout was planned. */
void ft__screen_planned(ft_text *out, const ft_style *style, const ft_planned *p);
#endif
