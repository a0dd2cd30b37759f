/* plot.c: a curve in the terminal.
 *
 * With Unicode a character cell holds 2 x 4 dots (Braille patterns, U+2800 plus one bit per dot), without it one
 * star. Points are joined by steps, up first and then along: tiles are whole, so a size between two points costs
 * what the larger one costs. The y axis begins at zero; drawn from its own minimum, a staircase would lie about
 * its height.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/screen.h"

typedef struct canvas {
    unsigned char *dots; /* one byte per cell: its eight dots */
    int columns, rows;   /* cells */
    int per_x, per_y;    /* dots per cell */
} canvas;

static void dot(canvas *c, int x, int y)
{
    static const unsigned char bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int width = c->columns * c->per_x, height = c->rows * c->per_y;
    if (x < 0 || y < 0 || x >= width || y >= height) return;
    int from_top = height - 1 - y;
    unsigned char bit = c->per_x == 2 ? bits[from_top % 4][x % 2] : 1;
    c->dots[(from_top / c->per_y) * c->columns + x / c->per_x] |= bit;
}

static void add_cell(ft_text *out, const canvas *c, int column, int row)
{
    unsigned char dots = c->dots[row * c->columns + column];
    if (!dots) {
        ft__text_add(out, " ");
    } else if (c->per_x == 1) {
        ft__text_add(out, "*");
    } else { /* U+2800 + dots in UTF-8 */
        const char utf8[] = {(char)0xE2, (char)(0xA0 | dots >> 6), (char)(0x80 | (dots & 0x3F)), 0};
        ft__text_add(out, utf8);
    }
}

static int place(double value, double low, double high, int dots)
{
    if (!(high > low)) return dots / 2;
    return (int)lround((value - low) / (high - low) * (dots - 1));
}

typedef struct extent {
    double left, right, top;
} extent;

static extent extent_of(const double *x, const double *y, size_t count)
{
    extent e = {x[0], x[0], 0};
    for (size_t i = 0; i < count; i++) {
        e.left = fmin(e.left, x[i]);
        e.right = fmax(e.right, x[i]);
        e.top = fmax(e.top, y[i]);
    }
    return e;
}

static void draw(canvas *c, const extent *e, const double *x, const double *y, size_t count)
{
    int from_x = 0, from_y = 0;
    for (size_t i = 0; i < count; i++) {
        int to_x = place(x[i], e->left, e->right, c->columns * c->per_x);
        int to_y = place(y[i], 0, e->top, c->rows * c->per_y);
        if (i == 0) from_x = to_x, from_y = to_y;
        for (int at = from_y; at != to_y; at += from_y < to_y ? 1 : -1) dot(c, from_x, at);
        for (int at = from_x; at != to_x; at += from_x < to_x ? 1 : -1) dot(c, at, to_y);
        dot(c, to_x, to_y);
        from_x = to_x, from_y = to_y;
    }
}

static void add_row(ft_text *out, const ft_style *style, const canvas *c, int row, double top, const char *y_name)
{
    bool labelled = row == 0 || row == c->rows - 1 || row == (c->rows - 1) / 2;
    ft_text label = {0};
    if (labelled) ft__add_figure(&label, top * (double)(c->rows - 1 - row) / (c->rows - 1), 3);
    if (row == 0) ft__text_addf(&label, " %s", y_name);
    ft__text_pad(out, 10 - ft__text_width(label.at ? label.at : ""));
    if (label.at) ft__text_add(out, label.at);
    ft__text_drop(&label, out);
    ft__ink(out, style, FT_INK_DIM);
    ft__text_add(out, style->unicode ? (labelled ? " ┤" : " │") : (labelled ? " +" : " |"));
    ft__ink_end(out, style);
    int last = c->columns - 1;
    while (last >= 0 && !c->dots[row * c->columns + last]) last--;
    for (int column = 0; column <= last; column++) add_cell(out, c, column, row);
    ft__text_add(out, "\n");
}

/* The x axis, and its two ends. */
static void add_axis(ft_text *out, const ft_style *style, int columns, const extent *e, bool plain, const char *x_name)
{
    ft__text_pad(out, 11);
    ft__ink(out, style, FT_INK_DIM);
    ft__text_add(out, style->unicode ? "└" : "+");
    for (int i = 0; i < columns; i++) ft__text_add(out, style->unicode ? "─" : "-");
    ft__ink_end(out, style);
    ft__text_add(out, "\n");
    ft_text ends = {0};
    ft__add_point(&ends, e->left, plain);
    int used = ft__text_width(ends.at ? ends.at : "");
    ft__text_pad(out, 12);
    if (ends.at) ft__text_add(out, ends.at);
    ft__text_empty(&ends);
    ft__text_addf(&ends, "%s ", x_name);
    ft__add_point(&ends, e->right, plain);
    ft__text_pad(out, columns - used - ft__text_width(ends.at ? ends.at : ""));
    if (ends.at) ft__text_add(out, ends.at);
    ft__text_add(out, "\n");
    ft__text_drop(&ends, out);
}

void ft__plot(ft_text *out, const ft_style *style, const ft_plot *p)
{
    if (p->count == 0) return;
    canvas c = {calloc((size_t)p->columns * (size_t)p->rows, 1), p->columns, p->rows, style->unicode ? 2 : 1,
                style->unicode ? 4 : 1};
    if (!c.dots) {
        out->failed = true;
        return;
    }
    const extent e = extent_of(p->x, p->y, p->count);
    draw(&c, &e, p->x, p->y, p->count);
    for (int row = 0; row < p->rows; row++) add_row(out, style, &c, row, e.top, p->y_name);
    add_axis(out, style, p->columns, &e, ft__points_plain(p->x, p->count), p->x_name);
    free(c.dots);
}
