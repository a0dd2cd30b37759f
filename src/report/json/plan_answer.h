/* A plan as one JSON object. */
#ifndef FT_REPORT_JSON_PLAN_ANSWER_H
#define FT_REPORT_JSON_PLAN_ANSWER_H
#include "report/json/answer.h"
#include "search/first.h"
#include "search/plan.h"

void ft__answer_plan(ft_text *out, const json_t *id, const ft_plan *p);
/* What of a layout lies on the host; nothing where nothing does. */
void ft__answer_offloaded(ft_text *out, const ft_layout *l);
/* Adds `planned` to the answer of a training step: which layouts its own was the best of. */
void ft__answer_planned(ft_text *out, const ft_planned *p);
#endif
