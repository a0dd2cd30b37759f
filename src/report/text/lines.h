/* Lines of a screen: a word, a figure, a remark. */
#ifndef FT_REPORT_TEXT_LINES_H
#define FT_REPORT_TEXT_LINES_H
#include "foretell.h"
#include "report/text/style.h"

enum { FT_LINE_LABEL = 12, FT_LINE_FIGURE = 18 };

/* A blank line, then `text` in bold on one of its own. */
void ft__heading(ft_text *out, const ft_style *style, const char *text);
/* A label, a figure, and a remark in its column; an empty or absent remark is left out. */
void ft__line(ft_text *out, const ft_style *style, const char *label, const ft_text *figure, const char *remark);
/* Words of `text` on as many lines as the terminal's width asks for. */
void ft__add_wrapped(ft_text *out, const ft_style *style, const char *text);
/* `text` in at most `most` columns; what is cut off ends in two dots. */
void ft__add_cut(ft_text *out, const ft_text *text, int most);
/* "nine times in ten" is what 0.9 means; other shares are said as they are. */
void ft__add_confidence(ft_text *out, double quantile);
/* What holds a kernel or a step back: "memory bandwidth". */
const char *ft__bound_words(ft_bound bound);
/* Of one kernel: overhead that is not its launch is latency. */
const char *ft__bound_at_words(const ft_forecast *f);
/* "15.0": GiB with three digits. "8.03 B": parameters. */
void ft__add_gib(ft_text *out, double bytes);
void ft__add_parameters(ft_text *out, double count);
#endif
