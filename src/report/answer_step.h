/* A whole-model forecast as JSON: one object, one line, the keys of docs/interface.md. */
#ifndef FT_REPORT_ANSWER_STEP_H
#define FT_REPORT_ANSWER_STEP_H
#include <jansson.h>

#include "report/step_view.h"

void ft__answer_step(ft_text *out, const json_t *id, const ft_step_view *v);
#endif
