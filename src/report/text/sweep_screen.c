/* sweep_screen.c: a kernel over a range of one size. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/columns.h"
#include "report/text/screen.h"

enum { MOST_PLOT_WIDTH = 100, PLOT_HEIGHT = 14, NARROWEST_PLOT = 20 };

static void add_tile(ft_text *cell, const ft_forecast *f)
{
    if (f->tile_m > 0 && f->tile_n > 0) ft__text_addf(cell, "%dx%d", f->tile_m, f->tile_n);
}

bool ft__screen_sweep(ft_text *out, const ft_style *style, const char *key, const ft_screen_point *points, size_t count)
{
    bool tiles = false, flops = false;
    for (size_t i = 0; i < count; i++) {
        tiles = tiles || points[i].forecast.tile_m > 0;
        flops = flops || points[i].forecast.flops > 0;
    }
    ft_columns c;
    double *x = calloc(count, sizeof *x), *y = calloc(count, sizeof *y);
    bool same = count > 1;
    for (size_t i = 0; x && y && i < count; i++) {
        x[i] = points[i].x;
        y[i] = points[i].forecast.ms;
        same = same && y[i] == y[0] && points[i].forecast.high_ms == points[0].forecast.high_ms;
    }
    bool plain = x && ft__points_plain(x, count);
    ft__columns_init(&c, tiles ? "rrrrrrlrrl" : "rrrrrrl");
    c.drop = tiles ? "ihgjfedc" : "gfedc"; /* the time and its interval last */
    ft__cell_add(&c, key);
    static const char *const head[] = {"ms", "low", "high", "TFLOP/s", "GB/s"};
    for (int i = 0; i < 5; i++) ft__cell_add(&c, head[i]);
    if (tiles) {
        ft__cell_add(&c, "tile");
        ft__cell_add(&c, "waves");
        ft__cell_add(&c, "split-K");
    }
    ft__cell_add(&c, "held by");
    for (size_t i = 0; i < count; i++) {
        const ft_forecast *f = &points[i].forecast;
        ft__add_point(ft__cell(&c), points[i].x, plain);
        ft__add_figure(ft__cell(&c), f->ms, 4);
        ft__add_figure(ft__cell(&c), f->low_ms, 4);
        ft__add_figure(ft__cell(&c), f->high_ms, 4);
        ft_text *cell = ft__cell(&c);
        if (flops) ft__add_figure(cell, f->flops / f->ms / 1e9, 4);
        ft__add_figure(ft__cell(&c), f->bytes / f->ms / 1e6, 4);
        if (tiles) {
            add_tile(ft__cell(&c), f);
            cell = ft__cell(&c);
            if (f->waves > 0) ft__add_figure(cell, f->waves, 3);
            cell = ft__cell(&c);
            if (f->split_k > 0) ft__text_addf(cell, "%d", f->split_k);
        }
        ft__cell_add(&c, ft_bound_name(f->bound));
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);

    if (same) ft__text_addf(out, "\n  %s changes nothing here.\n", key);
    int width = style->width - 14;
    if (width > MOST_PLOT_WIDTH) width = MOST_PLOT_WIDTH;
    if (x && y && count > 1 && !same && width >= NARROWEST_PLOT) {
        ft__text_add(out, "\n");
        ft__plot(out, style, x, y, count, width, PLOT_HEIGHT, key, "ms");
    }
    printed = printed && x && y && !out->failed;
    free(x);
    free(y);
    return printed;
}

bool ft__csv_sweep(ft_text *out, const char *key, bool header, const ft_device *device, const ft_screen_point *points,
                   size_t count)
{
    if (header)
        ft__text_addf(out, "gpu,%s,ms,low_ms,high_ms,bound,source,tile,waves,split_k,flops,bytes,roofline_ms\n", key);
    for (size_t i = 0; i < count; i++) {
        const ft_forecast *f = &points[i].forecast;
        ft__text_addf(out, "%s,%.10g", device->name, points[i].x);
        const double times[] = {f->ms, f->low_ms, f->high_ms};
        for (int k = 0; k < 3; k++) {
            ft__text_add(out, ",");
            ft__text_add_number(out, times[k], 6);
        }
        ft__text_addf(out, ",%s,%s,", ft_bound_name(f->bound), ft_source_name(f->source));
        add_tile(out, f);
        ft__text_add(out, ",");
        if (f->waves > 0) ft__text_add_number(out, f->waves, 6);
        ft__text_add(out, ",");
        if (f->split_k > 0) ft__text_addf(out, "%d", f->split_k);
        const double work[] = {f->flops, f->bytes, f->roofline_ms};
        for (int k = 0; k < 3; k++) {
            ft__text_add(out, ",");
            ft__text_add_number(out, work[k], 6);
        }
        ft__text_add(out, "\n");
    }
    return !out->failed;
}
