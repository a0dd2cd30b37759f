/* A screen on a terminal that is too narrow for it. */
#ifndef FT_REPORT_TEXT_FOLD_H
#define FT_REPORT_TEXT_FOLD_H
#include "report/text/style.h"

/* Lines wider than the terminal are broken between columns, else between words, else anywhere, and go on indented. What
 * fits is left as it is; so is everything that goes to a file or a pipe. */
void ft__fold(ft_text *text, const ft_style *style);
#endif
