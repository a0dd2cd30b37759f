/* columns.c: aligned tables.
 *
 * All cells lie in one growing text with a NUL between them; two walks over it suffice, one for the widths and one
 * to print. That keeps a table of a hundred thousand rows to one allocation.
 */
#include "report/text/columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ft__columns_init(ft_columns *c, const char *align)
{
    memset(c, 0, sizeof *c);
    c->align = align;
    c->count = (int)strlen(align);
    if (c->count > FT_MOST_COLUMNS) c->count = FT_MOST_COLUMNS;
}

void ft__columns_free(ft_columns *c) { ft__text_free(&c->text); }

ft_text *ft__cell(ft_columns *c)
{
    if (c->cells++ > 0) ft__text_add_n(&c->text, "", 1);
    return &c->text;
}

void ft__cell_add(ft_columns *c, const char *text) { ft__text_add_plain(ft__cell(c), text); }

void ft__cell_addf(ft_columns *c, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ft__cell_add(c, text);
}

/* Leaves out columns, one after another, until the others stand beside each other. */
static void drop_columns(const ft_columns *c, const ft_style *style, int indent, const int *width, bool *hidden)
{
    int all = indent - 2;
    for (int i = 0; i < c->count; i++) all += 2 + width[i];
    for (const char *at = style->terminal ? c->drop : NULL; at && *at && all > style->width; at++) {
        int column = *at - 'a';
        if (column < 0 || column >= c->count || hidden[column]) continue;
        hidden[column] = true;
        all -= 2 + width[column];
    }
}

bool ft__columns_print(ft_columns *c, ft_text *out, const ft_style *style, int indent, bool heading)
{
    int width[FT_MOST_COLUMNS] = {0};
    bool hidden[FT_MOST_COLUMNS] = {false};
    if (c->text.failed || !c->text.at) return false;
    const char *at = c->text.at;
    for (size_t i = 0; i < c->cells; i++, at += strlen(at) + 1) {
        int w = ft__text_width(at), column = (int)(i % (size_t)c->count);
        if (w > width[column]) width[column] = w;
    }
    drop_columns(c, style, indent, width, hidden);
    int first = 0, final = c->count - 1;
    while (first < final && hidden[first]) first++;
    while (final > first && hidden[final]) final--;
    at = c->text.at;
    for (size_t i = 0; i < c->cells; i++, at += strlen(at) + 1) {
        int column = (int)(i % (size_t)c->count), gap = width[column] - ft__text_width(at);
        bool last = column == final || i + 1 == c->cells, head = heading && i < (size_t)c->count;
        if (hidden[column]) continue;
        ft__text_pad(out, column == first ? indent : 2);
        if (c->align[column] == 'r') ft__text_pad(out, gap);
        if (head) ft__ink(out, style, FT_INK_DIM);
        ft__text_add(out, at);
        if (head) ft__ink_end(out, style);
        if (last)
            ft__text_add_n(out, "\n", 1); /* nothing behind the last cell: no trailing blanks */
        else if (c->align[column] == 'l')
            ft__text_pad(out, gap);
    }
    return !out->failed;
}

void ft__text_add_csv(ft_text *out, const char *value)
{
    if (!strpbrk(value, ",\"\n")) {
        ft__text_add(out, value);
        return;
    }
    ft__text_add_n(out, "\"", 1);
    for (const char *s = value; *s; s++) ft__text_add_n(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    ft__text_add_n(out, "\"", 1);
}
