/* Aligned tables: cells are added in reading order, widths follow from what is in them. */
#ifndef FT_REPORT_TEXT_COLUMNS_H
#define FT_REPORT_TEXT_COLUMNS_H
#include "report/text/style.h"

enum { FT_MOST_COLUMNS = 16 };

typedef struct ft_columns {
    const char *align; /* one letter per column: l or r */
    const char *drop;  /* columns to do without on a narrow terminal, first the first: "ca" is the third, then the
                            first; NULL: none */
    int count;
    ft_text text; /* every cell, NUL between them */
    size_t cells;
} ft_columns;

void ft__columns_init(ft_columns *c, const char *align);
void ft__columns_free(ft_columns *c);
/* The next cell is what is added to the returned text until the next call. */
ft_text *ft__cell(ft_columns *c);
void ft__cell_add(ft_columns *c, const char *text); /* a whole cell of plain text */
void ft__cell_addf(ft_columns *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Two blanks between columns, `indent` before the first; the first row dim where `heading`. False: out of memory. */
bool ft__columns_print(ft_columns *c, ft_text *out, const ft_style *style, int indent, bool heading);
/* A value between commas, quoted where it must be. */
void ft__text_add_csv(ft_text *out, const char *value);
#endif
