/* Plans and choices for serving, for people. */
#ifndef FT_REPORT_TEXT_FLEET_SCREEN_H
#define FT_REPORT_TEXT_FLEET_SCREEN_H
#include "fleet/choose.h"
#include "report/text/style.h"

bool ft__screen_fleet(ft_text *out, const ft_style *style, const ft_fleet *f);
bool ft__screen_fleet_chosen(ft_text *out, const ft_style *style, const char *model, const ft_fleet_chosen *c);
#endif
