/* A choice of GPUs as one JSON object. */
#ifndef FT_REPORT_JSON_CHOOSE_ANSWER_H
#define FT_REPORT_JSON_CHOOSE_ANSWER_H
#include "report/json/answer.h"
#include "search/choose.h"

void ft__answer_choose(ft_text *out, const json_t *id, const ft_chosen *c);
#endif
