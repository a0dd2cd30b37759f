/* A plan as one JSON object. */
#ifndef FT_REPORT_JSON_PLAN_ANSWER_H
#define FT_REPORT_JSON_PLAN_ANSWER_H
#include "report/json/answer.h"
#include "search/plan.h"

void ft__answer_plan(ft_text *out, const json_t *id, const ft_plan *p);
#endif
