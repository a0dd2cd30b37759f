/* page.c: the frame of a page, and its tables. */
#include "report/html/page.h"

#include <string.h>

void ft__page_open(ft_text *out, const char *title, const char *subtitle)
{
    ft__text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src "
                      "'unsafe-inline';img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n<title>");
    ft__markup_text(out, title);
    ft__text_addf(out,
                  " – foretell</title>\n<style>:root{color-scheme:light dark;%s}"
                  "@media(prefers-color-scheme:dark){:root{%s}}@media "
                  "print{:root{%s}}%s%s%s</style>\n</head>\n<body>\n<header>\n<h1>",
                  ft__colours_light, ft__colours_dark, ft__colours_light, ft__svg_style, ft__page_style,
                  ft__page_media);
    ft__markup_text(out, title);
    ft__text_add(out, "</h1>\n<p class=\"quiet\">");
    ft__markup_text(out, subtitle);
    ft__text_add(out, "</p>\n</header>\n<main>\n");
}

void ft__page_close(ft_text *out)
{
    ft__text_add(out, "</main>\n<footer>A forecast by foretell " FT_VERSION
                      ": nothing was run. Point at a mark to see its figures.</footer>\n"
                      "</body>\n</html>\n");
}

void ft__page_section(ft_text *out, const char *id, const char *title, const char *words)
{
    ft__text_addf(out, "<section id=\"%s\" aria-labelledby=\"%s-h\">\n<h2 id=\"%s-h\">", id, id, id);
    ft__markup_text(out, title);
    ft__text_add(out, "</h2>\n");
    if (!words || !*words) return;
    ft__text_add(out, "<p class=\"quiet\">");
    ft__markup_text(out, words);
    ft__text_add(out, "</p>\n");
}

void ft__page_section_end(ft_text *out) { ft__text_add(out, "</section>\n"); }

void ft__page_figures(ft_text *out) { ft__text_add(out, "<dl class=\"figures\">\n"); }

void ft__page_figure(ft_text *out, const char *class, const char *label, const char *figure, const char *remark)
{
    ft__text_add(out, "<div><dt>");
    ft__markup_text(out, label);
    ft__text_addf(out, "</dt><dd class=\"big%s%s\">", class ? " " : "", class ? class : "");
    ft__markup_text(out, figure);
    ft__text_add(out, "</dd>");
    if (remark && *remark) {
        ft__text_add(out, "<dd class=\"small\">");
        ft__markup_text(out, remark);
        ft__text_add(out, "</dd>");
    }
    ft__text_add(out, "</div>\n");
}

void ft__page_figures_end(ft_text *out) { ft__text_add(out, "</dl>\n"); }

void ft__page_warnings(ft_text *out, const char *lines)
{
    if (!lines || !*lines) return;
    ft_text line = {.cap = 65536};
    ft__text_add(out, "<ul class=\"warn\">");
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        ft__markup_reset(out, &line);
        ft__text_add_n(&line, lines, n);
        ft__text_add(out, "<li>");
        ft__markup_text(out, line.at ? line.at : "");
        ft__text_add(out, "</li>");
        lines += n + (lines[n] == '\n');
    }
    ft__text_add(out, "</ul>\n");
    ft__text_drop(&line, out);
}

void ft__page_warned(ft_text *out, ft_warned_at *at, const void *cases, size_t count)
{
    ft_text found = {0};
    ft__warned_among(at, cases, count, &found);
    ft__page_warnings(out, found.at);
    ft__text_drop(&found, out);
}

void ft__page_details(ft_text *out, const char *summary)
{
    ft__text_add(out, "<details>\n<summary>");
    ft__markup_text(out, summary);
    ft__text_add(out, "</summary>\n");
}

void ft__page_details_end(ft_text *out) { ft__text_add(out, "</details>\n"); }

/* -- tables ------------------------------------------------------------------------------------ */

void ft__page_table_open(ft_page_table *t, ft_text *out, const char *label, const char *columns,
                         const char *const *head)
{
    *t = (ft_page_table){.out = out, .columns = columns, .head = head, .cell = {.cap = 65536}};
    t->stacked = strchr(columns, 'w') && strchr(columns, 'r');
    ft__text_add(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    ft__markup_text(out, label);
    ft__text_addf(out, "\"><table%s><thead><tr>", t->stacked ? " class=\"stack\"" : "");
    for (size_t i = 0; columns[i]; i++) {
        ft__text_addf(out, "<th scope=\"col\"%s>", columns[i] == 'r' ? " class=\"n\"" : "");
        ft__markup_text(out, head[i]);
        ft__text_add(out, "</th>");
    }
    ft__text_add(out, "</tr></thead><tbody>\n");
}

void ft__page_table_cell(ft_page_table *t, const char *text)
{
    size_t columns = strlen(t->columns);
    char kind = t->columns[t->at];
    if (t->at == 0) ft__text_add(t->out, "<tr>");
    bool unfit = !strcmp(t->head[t->at], "fits") && !strcmp(text, "no"); /* not to be read over */
    ft__text_add(t->out, unfit         ? "<td class=\"bad\""
                         : kind == 'r' ? "<td class=\"n\""
                         : kind == 'w' ? "<td class=\"wrap\""
                                       : "<td");
    if (t->stacked && kind == 'r' && *text) {
        ft__text_add(t->out, " data-name=\"");
        ft__markup_text(t->out, t->head[t->at]);
        ft__text_add(t->out, "\"");
    }
    ft__text_add(t->out, ">");
    ft__markup_text(t->out, unfit ? "does not fit" : text);
    ft__text_add(t->out, "</td>");
    if (++t->at == columns) {
        ft__text_add(t->out, "</tr>\n");
        t->at = 0;
    }
}

void ft__page_table_figure(ft_page_table *t, double value, int digits)
{
    ft__markup_reset(t->out, &t->cell);
    if (value != 0) ft__add_figure(&t->cell, value, digits);
    ft__page_table_cell(t, t->cell.length ? t->cell.at : "");
}

void ft__page_table_close(ft_page_table *t)
{
    while (t->at) ft__page_table_cell(t, "");
    ft__text_add(t->out, "</tbody></table></div>\n");
    t->out->failed |= t->cell.failed;
    ft__text_free(&t->cell);
}
