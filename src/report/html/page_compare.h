/* Answers side by side, and the largest model of a family, as pages. */
#ifndef FT_REPORT_HTML_PAGE_COMPARE_H
#define FT_REPORT_HTML_PAGE_COMPARE_H
#include "report/html/svg.h"
#include "report/text/compare_screen.h"
#include "report/text/largest_screen.h"

/* False: out of memory. */
bool ft__page_compared(ft_text *out, const ft_comparison *all);
/* Between its files. */
typedef struct ft_compared_page {
    ft_text *out;
    const ft_compared *c;
    size_t count;
    ft_pair *pairs; /* of every answer but the first with the first; pairs[0] is of none */
    const char *heads[FT_MOST_COMPARED + 4];
    char letters[FT_MOST_COMPARED][4], labels[FT_MOST_COMPARED][64];
} ft_compared_page;
bool ft__svg_compared_times(const ft_compared_page *p, const ft_frame *f);
bool ft__svg_compared_kernels(const ft_compared_page *p, const ft_frame *f);
bool ft__svg_compared_memory(const ft_compared_page *p, const ft_frame *f);

/* `v`: its step on one GPU; NULL where nothing fits. */
bool ft__page_largest(ft_text *out, const ft_largest *r);
#endif
