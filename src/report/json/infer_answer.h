/* Inference over batches and lengths as JSON. */
#ifndef FT_REPORT_JSON_INFER_ANSWER_H
#define FT_REPORT_JSON_INFER_ANSWER_H
#include "study/infer.h"

void ft__answer_infer(ft_text *out, const json_t *id, const ft_infer *r);
#endif
