/* What an image or a video of its prompt takes, as text. */
#ifndef FT_REPORT_TEXT_PICTURE_SCREEN_H
#define FT_REPORT_TEXT_PICTURE_SCREEN_H
#include "report/text/style.h"
#include "study/generate.h"

/* Nothing where none was forecast. False: out of memory. */
bool ft__screen_picture(ft_text *out, const ft_style *style, const ft_generated *made);
#endif
