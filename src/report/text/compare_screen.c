/* compare_screen.c: answers side by side, for people.
 *
 * Answers are called A, B, C ... in the order given, so that columns stay narrow whatever the files are called. On a
 * terminal too narrow for columns every figure has a line of its own.
 */
#include "report/text/compare_screen.h"

#include <stdlib.h>
#include <string.h>

#include "report/text/columns.h"
#include "report/text/lines.h"

typedef ft_compared_row row;

static char letter(size_t i) { return (char)('A' + i); }

static bool stacked(const ft_style *style, size_t count) { return style->width < 24 + 13 * (int)count; }

/* `changes`: with a last column for them. */
static bool print_rows(ft_text *out, const ft_style *style, const row *rows, size_t row_count, size_t count,
                       bool changes)
{
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].failed) return false;
    if (stacked(style, count)) {
        for (size_t i = 0; i < row_count; i++) {
            ft__text_addf(out, "%s\n", rows[i].label);
            for (size_t k = 0; k < count; k++) ft__text_addf(out, "  %c %s\n", letter(k), rows[i].cell[k]);
        }
        return !out->failed;
    }
    char align[FT_MOST_COMPARED + 3] = "l";
    for (size_t i = 0; i < count; i++) strcat(align, "r");
    if (changes) strcat(align, "l");
    ft_columns t;
    ft__columns_init(&t, align);
    ft__cell_add(&t, "");
    for (size_t i = 0; i < count; i++) ft__text_addf(ft__cell(&t), "%c", letter(i));
    if (changes) ft__cell_add(&t, "B - A");
    for (size_t i = 0; i < row_count; i++) {
        ft__cell_add(&t, rows[i].label);
        for (size_t k = 0; k < count; k++) ft__text_add(ft__cell(&t), rows[i].cell[k]);
        if (changes) ft__cell_add(&t, rows[i].change);
    }
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}
static bool print_cells(ft_text *out, const ft_style *style, const ft_compared *c, size_t count)
{
    ft_compared_cell *cells = calloc(FT_COMPARED_CELLS, sizeof *cells);
    if (!cells) return false;
    size_t found = ft__compared_cells(c, count, cells, FT_COMPARED_CELLS);
    char align[FT_MOST_COMPARED + 6] = "lrr";
    for (size_t i = 0; i < count; i++) strcat(align, "r");
    if (count == 2) strcat(align, "l");
    ft_columns t;
    ft__columns_init(&t, align);
    static const char *const head[] = {"ms of", "batch", "context"};
    for (int i = 0; i < 3; i++) ft__cell_add(&t, head[i]);
    for (size_t i = 0; i < count; i++) ft__text_addf(ft__cell(&t), "%c", letter(i));
    if (count == 2) ft__cell_add(&t, "B - A");
    for (size_t k = 0; k < found; k++) {
        ft__cell_add(&t, cells[k].task);
        ft__text_addf(ft__cell(&t), "%.0f", cells[k].batch);
        ft__text_addf(ft__cell(&t), "%.0f", cells[k].seq);
        for (size_t i = 0; i < count; i++) ft__add_figure(ft__cell(&t), cells[k].ms[i], 4);
        char change[FT_COMPARED_CELL];
        if (!ft__compared_change(change, cells[k].ms[0], cells[k].ms[1])) out->failed = true;
        if (count == 2) ft__cell_add(&t, change);
    }
    if (!found) ft__text_add(out, "  no batch and context that all of them have\n");
    bool printed = !found || ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    free(cells);
    return printed;
}

static bool print_asked(ft_text *out, const ft_style *style, const ft_compared *c, size_t count)
{
    ft_asked *asked = calloc(FT_COMPARED_ROWS + 1, sizeof *asked);
    row *rows = calloc(FT_COMPARED_ROWS, sizeof *rows);
    bool printed = asked && rows;
    size_t found = printed ? ft__compared_asked_rows(c, count, style, asked, rows) : 0;
    if (found == SIZE_MAX)
        ft__add_wrapped(
            out, style,
            "These answers do not say what was asked; a request file does, and what a command prints with --json.");
    else if (found == 0)
        ft__add_wrapped(out, style, "The same was asked.");
    else
        printed = printed && print_rows(out, style, rows, found, count, false);
    ft__text_add(out, "\n");
    free(asked);
    free(rows);
    return printed;
}

bool ft__screen_compared(ft_text *out, const ft_style *style, const ft_compared *c, size_t count, bool all)
{
    row *rows = calloc(FT_COMPARED_ROWS, sizeof *rows);
    if (!rows) return false;
    for (size_t i = 0; i < count; i++) {
        ft__text_addf(out, "%c  ", letter(i));
        ft__text_add_plain(out, c[i].name);
        if (i == 0) ft__text_addf(out, "  (%.40s)", c[0].task);
        ft__text_add(out, "\n");
    }
    ft__text_add(out, "\n");
    bool printed = print_asked(out, style, c, count);
    if (c[0].kind == FT_COMPARE_GRID) {
        printed = printed && print_cells(out, style, c, count);
        ft__text_add(out, "\n");
    }
    size_t at = ft__compared_rows(c, count, style, rows);
    if (at > 0) printed = printed && print_rows(out, style, rows, at, count, count == 2);
    bool timed = c[0].kind == FT_COMPARE_STEP || c[0].kind == FT_COMPARE_KERNEL;
    for (size_t i = 1; timed && i < count; i++) printed = printed && ft__screen_pair(out, style, c, i, all);
    free(rows);
    return printed && !out->failed;
}
