/* Answering a line of a stream without copying. */
#ifndef FT_API_ANSWER_H
#define FT_API_ANSWER_H
#include "study/context.h"

/* Appends one answer without a line break: never nothing, unless memory ran out (out->failed). `line` numbers the
 * request in a stream, 0 for a single one. */
void ft__answer(const ft_context *ft, ft_scratch *scratch, const char *request, size_t length, int64_t line,
                ft_text *out);
#endif
