/* The largest model of a family as JSON. */
#ifndef FT_REPORT_JSON_LARGEST_ANSWER_H
#define FT_REPORT_JSON_LARGEST_ANSWER_H
#include "study/largest.h"

void ft__answer_largest(ft_text *out, const json_t *id, const ft_largest *r);
#endif
