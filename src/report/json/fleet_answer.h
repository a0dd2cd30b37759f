/* Plans and choices for serving as one JSON object each. */
#ifndef FT_REPORT_JSON_FLEET_ANSWER_H
#define FT_REPORT_JSON_FLEET_ANSWER_H
#include "fleet/choose.h"
#include "report/json/answer.h"

void ft__answer_fleet(ft_text *out, const json_t *id, const ft_fleet *f);
void ft__answer_fleet_chosen(ft_text *out, const json_t *id, const ft_fleet_chosen *c);
#endif
