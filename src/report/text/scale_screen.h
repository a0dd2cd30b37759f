/* Scaling: closed forms beside the timeline, and curves over the number of GPUs, as text, JSON and CSV. */
#ifndef FT_REPORT_TEXT_SCALE_SCREEN_H
#define FT_REPORT_TEXT_SCALE_SCREEN_H
#include "report/text/style.h"
#include "study/scale.h"

bool ft__screen_scale(ft_text *out, const ft_style *style, const ft_scale *s);
void ft__answer_scale(ft_text *out, const json_t *id, const ft_scale *s);
bool ft__csv_scale(ft_text *out, const ft_scale *s);
#endif
