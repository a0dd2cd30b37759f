/* A choice of GPUs as one JSON object. */
#ifndef FT_REPORT_JSON_CHOOSE_ANSWER_H
#define FT_REPORT_JSON_CHOOSE_ANSWER_H
#include "report/json/answer.h"
#include "search/choose.h"

/* What runs: degrees, micro-batch, recomputation. */
void ft__answer_layout(ft_text *out, const ft_layout *l);
/* `options`, `pareto` and `knee` (choose_options.c). */
void ft__answer_options(ft_text *out, const ft_chosen *c);
void ft__answer_choose(ft_text *out, const json_t *id, const ft_chosen *c);
/* What an offer costs, of so many GPUs whose instances hold `joined` of them each at least; 0: any. */
void ft__answer_offer(ft_text *out, const char *key, const ft_offer *o, int64_t gpus, int64_t joined);
#endif
