/* An image or a video of its prompt as JSON. */
#ifndef FT_REPORT_JSON_PICTURE_ANSWER_H
#define FT_REPORT_JSON_PICTURE_ANSWER_H
#include "base/text.h"
#include "study/generate.h"

/* `"generation":{...}`; nothing where none was forecast. */
void ft__answer_picture(ft_text *out, const ft_generated *made);
#endif
