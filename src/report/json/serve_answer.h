/* Serving under load as one JSON object. */
#ifndef FT_REPORT_JSON_SERVE_ANSWER_H
#define FT_REPORT_JSON_SERVE_ANSWER_H
#include "serving/roll.h"
#include "serving/serve.h"

/* `record`: every request is listed; NULL: none is. */
void ft__answer_serve(ft_text *out, const json_t *id, const ft_serving *s, const ft_roll *record, bool course);
#endif
