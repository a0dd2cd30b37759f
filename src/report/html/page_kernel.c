/* page_kernel.c: one kernel as a page: on one GPU, on several, or over a range of one size. */
#include <stdio.h>
#include <stdlib.h>

#include "report/html/page.h"
#include "report/text/describe.h"
#include "report/text/lines.h"

static const char *title_of(const ft_device *d) { return d->title[0] ? d->title : d->name; }

/* -- points ------------------------------------------------------------------------------------ */

static bool draw_ranges(ft_text *out, const ft_frame *f, const ft_screen_case *cases, size_t count)
{
    ft_range_row *rows = calloc(count + 1, sizeof *rows);
    if (!rows) return false;
    for (size_t i = 0; i < count; i++)
        rows[i] = (ft_range_row){cases[i].device->name, cases[i].forecast.ms, cases[i].forecast.low_ms,
                                 cases[i].forecast.high_ms};
    bool drawn = ft__svg_ranges(out, f, "intervals", "How sure", rows, count);
    free(rows);
    return drawn;
}

/* One GPU: under its roofs. Several: side by side. */
bool ft__picture_kernel(ft_text *out, const ft_frame *f, const ft_screen_case *cases, size_t count)
{
    ft_text t = {.cap = 4096};
    bool drawn = false;
    ft__describe_op(&t, &cases[0].op);
    if (count == 1) {
        const ft_forecast *k = &cases[0].forecast;
        ft_roof roof = ft__roof_of(cases[0].device, cases[0].op.dtype);
        ft_roof_dot dot = {.name = t.at,
                           .at = -1,
                           .flops = k->flops,
                           .bytes = k->bytes,
                           .ms = k->ms,
                           .total_ms = k->ms,
                           .bound = (unsigned)k->bound < 4 ? k->bound : FT_BOUND_MEMORY};
        drawn = ft__svg_roofline(out, f, "Roofline", &roof, &dot, 1);
    } else {
        ft_bar_row *rows = calloc(count, sizeof *rows);
        char(*remarks)[48] = calloc(count, sizeof *remarks);
        for (size_t i = 0; rows && remarks && i < count; i++) {
            const ft_forecast *k = &cases[i].forecast;
            ft_text figure = {.cap = sizeof remarks[i]};
            ft__add_figure(&figure, k->ms, 4);
            snprintf(remarks[i], sizeof remarks[i], "%s ms", figure.at ? figure.at : "");
            ft__text_drop(&figure, out);
            rows[i] = (ft_bar_row){.label = cases[i].device->name, .remark = remarks[i]};
            rows[i].part[(unsigned)k->bound < 4 ? k->bound : FT_BOUND_MEMORY] = k->ms;
        }
        drawn = rows && remarks &&
                ft__svg_bars(out, f, &(ft_bars){"gpus", "Time by GPU", "ms", ft__bound_keys, 4, rows, count, 0});
        free(rows);
        free(remarks);
    }
    drawn = drawn && !t.failed;
    ft__text_drop(&t, out);
    return drawn;
}

static void kernel_table(ft_text *out, const ft_screen_case *cases, size_t count)
{
    /* Times and their intervals stand above and below, once each. */
    static const char *const head[] = {"GPU", "TFLOP/s", "GB/s", "FLOP/B", "tile", "waves", "bound by", "source"};
    ft_page_table t;
    ft__page_table_open(&t, out, "figures", "lrrrrrll", head);
    for (size_t i = 0; i < count; i++) {
        const ft_forecast *k = &cases[i].forecast;
        ft__page_table_cell(&t, cases[i].device->name);
        ft__page_table_figure(&t, k->flops / k->ms / 1e9, 4);
        ft__page_table_figure(&t, k->bytes / k->ms / 1e6, 4);
        ft__page_table_figure(&t, k->intensity, 4);
        ft__markup_reset(t.out, &t.cell);
        if (k->tile_m > 0 && k->tile_n > 0) ft__text_addf(&t.cell, "%d × %d", k->tile_m, k->tile_n);
        ft__page_table_cell(&t, t.cell.length ? t.cell.at : "");
        ft__page_table_figure(&t, k->waves, 3);
        ft__page_table_cell(&t, ft__bound_at_words(k));
        ft__page_table_cell(&t, ft_source_name(k->source));
    }
    ft__page_table_close(&t);
}

static const ft_text *warnings_at(const void *cases, size_t i, const char **name)
{
    const ft_screen_case *c = (const ft_screen_case *)cases + i;
    *name = c->device->name;
    return &c->warnings;
}

/* The figures at the head of the page, of the first GPU. */
static void add_figures(ft_text *out, const ft_screen_case *first, double quantile)
{
    const ft_forecast *k = &first->forecast;
    const double tflops = k->flops / k->ms / 1e9, gbps = k->bytes / k->ms / 1e6;
    ft_text figure = {.cap = 4096}, below = {.cap = 4096};
    ft__page_figures(out);
    ft__add_figure(&figure, k->ms, 4);
    ft__text_add(&figure, " ms");
    ft__add_figure(&below, k->low_ms, 4);
    ft__text_add(&below, " – ");
    ft__add_figure(&below, k->high_ms, 4);
    ft__text_add(&below, " ms, ");
    ft__add_confidence(&below, quantile);
    ft__page_figure(out, NULL, first->device->name, figure.at, below.at);
    ft__markup_reset(out, &below);
    ft__text_add(&below, "roofline ");
    ft__add_figure(&below, k->roofline_ms, 4);
    ft__text_add(&below, " ms");
    ft__page_figure(out, NULL, "bound by", ft__bound_at_words(k), below.at);
    if (k->flops > 0) {
        ft__markup_reset(out, &figure);
        ft__markup_reset(out, &below);
        ft__add_figure(&figure, tflops, 4);
        ft__text_add(&figure, " TFLOP/s");
        ft__add_percent(&below, tflops / ft__roof_of(first->device, first->op.dtype).tflops);
        ft__text_add(&below, " of the peak");
        ft__page_figure(out, NULL, "arithmetic", figure.at, below.at);
    }
    ft__markup_reset(out, &figure);
    ft__markup_reset(out, &below);
    ft__add_figure(&figure, gbps, 4);
    ft__text_add(&figure, " GB/s");
    ft__add_percent(&below, gbps / first->device->memory_gbps);
    ft__text_add(&below, " of the peak");
    ft__page_figure(out, NULL, "memory", figure.at, below.at);
    ft__page_figures_end(out);
    ft__text_drop(&figure, out);
    ft__text_drop(&below, out);
}

bool ft__page_kernel(ft_text *out, const ft_screen_case *cases, size_t count, double quantile)
{
    ft_text title = {.cap = 4096}, where = {.cap = 4096};
    ft__describe_op(&title, &cases[0].op);
    if (count == 1)
        ft__text_addf(&where, "on %s", title_of(cases[0].device));
    else
        ft__text_addf(&where, "on %zu GPUs", count);
    ft__page_open(out, title.at ? title.at : "kernel", where.at);
    ft__text_drop(&title, out);
    ft__text_drop(&where, out);
    add_figures(out, &cases[0], quantile);
    ft__page_warned(out, warnings_at, cases, count);
    ft__page_section(out, "picture", count == 1 ? "Roofline" : "GPUs side by side", "");
    bool drawn = ft__picture_kernel(out, &ft__frame_wide, cases, count) &&
                 ft__picture_kernel(out, &ft__frame_narrow, cases, count);
    kernel_table(out, cases, count);
    ft__page_section_end(out);
    ft__page_section(out, "sure", "How sure", "");
    drawn = drawn && draw_ranges(out, &ft__frame_wide, cases, count) &&
            draw_ranges(out, &ft__frame_narrow, cases, count);
    ft__page_section_end(out);
    ft__page_close(out);
    return drawn && !out->failed;
}

/* -- a range ----------------------------------------------------------------------------------- */

typedef double figure_of(const ft_forecast *f);
static double ms_of(const ft_forecast *f) { return f->ms; }
static double low_of(const ft_forecast *f) { return f->low_ms; }
static double high_of(const ft_forecast *f) { return f->high_ms; }
static double tflops_of(const ft_forecast *f) { return f->flops / f->ms / 1e9; }
static double gbps_of(const ft_forecast *f) { return f->bytes / f->ms / 1e6; }

static bool doubles(const ft_page_sweep_case *s)
{
    if (s->count < 3 || s->points[0].x < 1) return false;
    return s->points[s->count - 1].x > 1.5 * s->points[s->count - 2].x;
}

static bool draw_sweep(ft_text *out, const ft_frame *f, const ft_page_sweep_case *s, const char *id, const char *title,
                       const char *unit, figure_of *figure)
{
    size_t gpus = s->gpus < FT_CURVES ? s->gpus : FT_CURVES;
    double *at = calloc(4 * gpus * s->count + 1, sizeof *at);
    if (!at) return false;
    bool band = figure == ms_of && gpus == 1;
    ft_curves c = {.id = id,
                   .title = title,
                   .x_name = s->key,
                   .y_name = unit,
                   .count = gpus,
                   .log_x = doubles(s),
                   .log_y = doubles(s) && figure == ms_of};
    for (size_t g = 0; g < gpus; g++) {
        double *x = at + 4 * g * s->count, *y = x + s->count, *low = y + s->count, *high = low + s->count;
        for (size_t i = 0; i < s->count; i++) {
            const ft_screen_point *p = &s->points[g * s->count + i];
            x[i] = (double)p->x;
            y[i] = figure(&p->forecast);
            low[i] = low_of(&p->forecast);
            high[i] = high_of(&p->forecast);
        }
        c.curve[g] = (ft_curve){.name = s->devices[g].name,
                                .x = x,
                                .y = y,
                                .low = band ? low : NULL,
                                .high = band ? high : NULL,
                                .count = s->count,
                                .steps = figure == ms_of && !doubles(s)};
    }
    bool drawn = ft__svg_curves(out, f, &c);
    free(at);
    return drawn;
}

bool ft__picture_sweep(ft_text *out, const ft_frame *f, const ft_page_sweep_case *s)
{
    return draw_sweep(out, f, s, "sweep", "Time over the range", "ms", ms_of);
}

bool ft__page_sweep(ft_text *out, const ft_page_sweep_case *s)
{
    static const char *const head[] = {"GPU", "", "ms", "low", "high", "TFLOP/s", "GB/s", "tile", "waves", "bound by"};
    const char *names[10];
    ft_text a = {.cap = 1024}, b = {.cap = 4096};
    double ends[2] = {s->points[0].x, s->points[s->count - 1].x};
    ft__text_addf(&a, "%s over %s ", s->op, s->key);
    ft__add_point(&a, ends[0], ft__points_plain(ends, 2));
    ft__text_add(&a, " – ");
    ft__add_point(&a, ends[1], ft__points_plain(ends, 2));
    for (size_t g = 0; g < s->gpus; g++) ft__text_addf(&b, "%s%s", g ? ", " : "on ", title_of(&s->devices[g]));
    if (s->fixed && *s->fixed) ft__text_addf(&b, "; %s", s->fixed);
    ft__page_open(out, a.at ? a.at : s->op, b.at ? b.at : "");
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
    ft__page_warnings(out, s->warnings);
    bool flops = false, drawn = true;
    for (size_t i = 0; i < s->count; i++) flops |= s->points[i].forecast.flops > 0;
    ft__page_section(out, "time", "Time", s->gpus == 1 ? "The band is where the truth should lie." : "");
    drawn = ft__picture_sweep(out, &ft__frame_wide, s) && ft__picture_sweep(out, &ft__frame_narrow, s);
    ft__page_section_end(out);
    ft__page_section(out, "rate", flops ? "Achieved arithmetic" : "Achieved bandwidth", "");
    for (int i = 0; i < 2; i++)
        drawn = drawn && draw_sweep(out, i ? &ft__frame_narrow : &ft__frame_wide, s, "rates",
                                    flops ? "Achieved arithmetic" : "Achieved bandwidth", flops ? "TFLOP/s" : "GB/s",
                                    flops ? tflops_of : gbps_of);
    ft__page_section_end(out);
    ft__page_section(out, "figures", "Figures", "");
    ft__page_details(out, "Every size");
    for (int i = 0; i < 10; i++) names[i] = i == 1 ? s->key : head[i];
    ft_page_table t;
    ft__page_table_open(&t, out, "figures", "lrrrrrrrrl", names);
    for (size_t i = 0; i < s->gpus * s->count; i++) {
        const ft_forecast *k = &s->points[i].forecast;
        ft__page_table_cell(&t, s->devices[i / s->count].name);
        ft__markup_reset(t.out, &t.cell);
        ft__text_addf(&t.cell, "%.10g", s->points[i].x);
        ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
        ft__page_table_figure(&t, k->ms, 4);
        ft__page_table_figure(&t, k->low_ms, 4);
        ft__page_table_figure(&t, k->high_ms, 4);
        ft__page_table_figure(&t, tflops_of(k), 4);
        ft__page_table_figure(&t, gbps_of(k), 4);
        ft__markup_reset(t.out, &t.cell);
        if (k->tile_m > 0 && k->tile_n > 0) ft__text_addf(&t.cell, "%d × %d", k->tile_m, k->tile_n);
        ft__page_table_cell(&t, t.cell.length ? t.cell.at : "");
        ft__page_table_figure(&t, k->waves, 3);
        ft__page_table_cell(&t, ft__bound_at_words(k));
    }
    ft__page_table_close(&t);
    ft__page_details_end(out);
    ft__page_section_end(out);
    ft__page_close(out);
    return drawn && !out->failed;
}
