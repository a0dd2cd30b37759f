/* What a calibration gained: errors of points held out, before and after. */
#ifndef FT_REPORT_TEXT_CALIBRATION_SCREEN_H
#define FT_REPORT_TEXT_CALIBRATION_SCREEN_H
#include "fit/calibrate.h"
#include "report/text/style.h"

/* A line per family and, where it has several, per variant. False: out of memory. */
bool ft__screen_calibration(ft_text *out, const ft_style *style, const ft_calibration_table *table);
void ft__answer_calibration(ft_text *out, const ft_calibration_table *table); /* a JSON array */
#endif
