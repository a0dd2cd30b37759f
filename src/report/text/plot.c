/* plot.c: a curve in the terminal.
 *
 * With Unicode a character cell holds 2 x 4 dots (Braille patterns, U+2800 plus one bit per dot), without it one
 * star. Points are joined by steps, up first and then along: tiles are whole, so a size between two points costs
 * what the larger one costs. The y axis begins at zero; drawn from its own minimum, a staircase would lie about
 * its height.
 */
#include <math.h>
#include <stdint.h>
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

void ft__plot(ft_text *out, const ft_style *style, const double *x, const double *y, size_t count, int columns,
              int rows, const char *x_name, const char *y_name)
{
    canvas c = {calloc((size_t)columns * (size_t)rows, 1), columns, rows, style->unicode ? 2 : 1,
                style->unicode ? 4 : 1};
    if (!c.dots || count == 0) {
        if (!c.dots) out->failed = true;
        free(c.dots);
        return;
    }
    double left = x[0], right = x[0], top = 0;
    for (size_t i = 0; i < count; i++) {
        left = fmin(left, x[i]);
        right = fmax(right, x[i]);
        top = fmax(top, y[i]);
    }
    int from_x = 0, from_y = 0;
    for (size_t i = 0; i < count; i++) {
        int to_x = place(x[i], left, right, columns * c.per_x), to_y = place(y[i], 0, top, rows * c.per_y);
        if (i == 0) from_x = to_x, from_y = to_y;
        for (int at = from_y; at != to_y; at += from_y < to_y ? 1 : -1) dot(&c, from_x, at);
        for (int at = from_x; at != to_x; at += from_x < to_x ? 1 : -1) dot(&c, at, to_y);
        dot(&c, to_x, to_y);
        from_x = to_x, from_y = to_y;
    }
    for (int row = 0; row < rows; row++) {
        bool labelled = row == 0 || row == rows - 1 || row == (rows - 1) / 2;
        ft_text label = {0};
        if (labelled) ft__add_figure(&label, top * (double)(rows - 1 - row) / (rows - 1), 3);
        if (row == 0) ft__text_addf(&label, " %s", y_name);
        ft__text_pad(out, 10 - ft__text_width(label.at ? label.at : ""));
        if (label.at) ft__text_add(out, label.at);
        ft__text_drop(&label, out);
        ft__ink(out, style, FT_INK_DIM);
        ft__text_add(out, style->unicode ? (labelled ? " ┤" : " │") : (labelled ? " +" : " |"));
        ft__ink_end(out, style);
        int last = columns - 1;
        while (last >= 0 && !c.dots[row * columns + last]) last--;
        for (int column = 0; column <= last; column++) add_cell(out, &c, column, row);
        ft__text_add(out, "\n");
    }
    ft__text_pad(out, 11);
    ft__ink(out, style, FT_INK_DIM);
    ft__text_add(out, style->unicode ? "└" : "+");
    for (int i = 0; i < columns; i++) ft__text_add(out, style->unicode ? "─" : "-");
    ft__ink_end(out, style);
    ft__text_add(out, "\n");
    ft_text ends = {0};
    bool plain = ft__points_plain(x, count);
    ft__add_point(&ends, left, plain);
    int used = ft__text_width(ends.at ? ends.at : "");
    ft__text_pad(out, 12);
    if (ends.at) ft__text_add(out, ends.at);
    ft__text_empty(&ends);
    ft__text_addf(&ends, "%s ", x_name);
    ft__add_point(&ends, right, plain);
    ft__text_pad(out, columns - used - ft__text_width(ends.at ? ends.at : ""));
    if (ends.at) ft__text_add(out, ends.at);
    ft__text_add(out, "\n");
    ft__text_drop(&ends, out);
    free(c.dots);
}
