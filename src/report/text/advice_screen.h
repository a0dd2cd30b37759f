/* Advice for people: what to change, what it saves, what it costs; findings; techniques. */
#ifndef FT_REPORT_TEXT_ADVICE_SCREEN_H
#define FT_REPORT_TEXT_ADVICE_SCREEN_H
#include "report/text/style.h"
#include "study/step_view.h"

/* At most `most` lines of advice; nothing where there is none. */
bool ft__screen_advice(ft_text *out, const ft_style *style, const ft_step_view *v, size_t most);
/* All of it: verdicts by phase and layer with their evidence, reasons, findings, other GPUs. */
bool ft__screen_advice_all(ft_text *out, const ft_style *style, const ft_step_view *v);
/* Every technique's effect on time and memory. */
bool ft__screen_techniques(ft_text *out, const ft_style *style, const ft_step_view *v);
#endif
