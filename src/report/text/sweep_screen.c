/* sweep_screen.c: a kernel over a range of one size. */
#include <stdlib.h>

#include "report/text/columns.h"
#include "report/text/screen.h"

enum { MOST_PLOT_WIDTH = 100, PLOT_HEIGHT = 14, NARROWEST_PLOT = 20, PLOT_MARGIN = 14 /* the figures beside it */ };

static void add_tile(ft_text *cell, const ft_forecast *f)
{
    if (f->tile_m > 0 && f->tile_n > 0) ft__text_addf(cell, "%dx%d", f->tile_m, f->tile_n);
}

/* What a sweep of these points has to show beyond times. */
typedef struct {
    bool tiles, flops;
    bool same; /* every point takes as long as the first: there is nothing to draw */
} traits;

static traits traits_of(const ft_screen_point *points, size_t count)
{
    traits has = {.same = count > 1};
    for (size_t i = 0; i < count; i++) {
        const ft_forecast *f = &points[i].forecast;
        has.tiles = has.tiles || f->tile_m > 0;
        has.flops = has.flops || f->flops > 0;
        has.same = has.same && f->ms == points[0].forecast.ms && f->high_ms == points[0].forecast.high_ms;
    }
    return has;
}

static bool add_table(ft_text *out, const ft_style *style, const char *key, const ft_screen_point *points, size_t count,
                      traits has, bool plain)
{
    ft_columns c;
    ft__columns_init(&c, has.tiles ? "rrrrrrlrrl" : "rrrrrrl");
    c.drop = has.tiles ? "ihgjfedc" : "gfedc"; /* the time and its interval last */
    ft__cell_add(&c, key);
    static const char *const head[] = {"ms", "low", "high", "TFLOP/s", "GB/s"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&c, head[i]);
    if (has.tiles) {
        ft__cell_add(&c, "tile");
        ft__cell_add(&c, "waves");
        ft__cell_add(&c, "split-K");
    }
    ft__cell_add(&c, "bound by");
    for (size_t i = 0; i < count; i++) {
        const ft_forecast *f = &points[i].forecast;
        ft__add_point(ft__cell(&c), points[i].x, plain);
        ft__add_figure(ft__cell(&c), f->ms, 4);
        ft__add_figure(ft__cell(&c), f->low_ms, 4);
        ft__add_figure(ft__cell(&c), f->high_ms, 4);
        ft_text *cell = ft__cell(&c);
        if (has.flops) ft__add_figure(cell, f->flops / f->ms / 1e9, 4);
        ft__add_figure(ft__cell(&c), f->bytes / f->ms / 1e6, 4);
        if (has.tiles) {
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
    return printed;
}

bool ft__screen_sweep(ft_text *out, const ft_style *style, const char *key, const ft_screen_point *points, size_t count)
{
    double *x = calloc(2 * count + 1, sizeof *x); /* and the times behind it */
    if (!x) return false;
    double *ms = x + count;
    for (size_t i = 0; i < count; i++) {
        x[i] = points[i].x;
        ms[i] = points[i].forecast.ms;
    }
    const traits has = traits_of(points, count);
    bool printed = add_table(out, style, key, points, count, has, ft__points_plain(x, count));
    if (has.same) ft__text_addf(out, "\n  %s changes nothing here.\n", key);
    int width = style->width - PLOT_MARGIN;
    if (width > MOST_PLOT_WIDTH) width = MOST_PLOT_WIDTH;
    if (count > 1 && !has.same && width >= NARROWEST_PLOT) {
        ft__text_add(out, "\n");
        ft__plot(out, style, &(ft_plot){x, ms, count, width, PLOT_HEIGHT, key, "ms"});
    }
    free(x);
    return printed && !out->failed;
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
