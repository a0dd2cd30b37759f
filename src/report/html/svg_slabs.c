/* svg_slabs.c: events of the timeline as coloured slabs on their tracks.
 *
 * Kernels are coloured by what holds them. Those too short for a pixel share one, each colour as high as its part of
 * the time. Neighbouring events of one block share a span with its name. */
#include "report/html/svg_slabs.h"

#include <math.h>
#include <stdio.h>

void ft__timeline_box(ft_timeline *t, double x, double y, double width, double height, int bound, const char *title)
{
    const double of[] = {x, y, width, height, -width};
    static const char *const before[] = {"M", ",", "h", "v", "h"};
    if (!t->plain) {
        ft__svg_box(t->out, x, y, width, height, ft__bound_class[bound], title);
        return;
    }
    for (int i = 0; i < 5; i++) {
        ft__text_add(&t->path[bound], before[i]);
        ft__text_add_number(&t->path[bound], round(of[i] * 100) / 100, 7);
    }
    ft__text_add(&t->path[bound], "z");
}

void ft__timeline_paths(ft_timeline *t)
{
    for (int b = 0; b < 4; b++) {
        if (t->path[b].length) {
            ft__text_addf(t->out, "<path class=\"%s\" d=\"", ft__bound_class[b]);
            ft__text_add_n(t->out, t->path[b].at, t->path[b].length);
            ft__text_add(t->out, "\"/>\n");
        }
        ft__text_drop(&t->path[b], t->out);
    }
}

static void stack(ft_timeline *t, const ft_band *r, double x, double width, const double ms[4], const char *title)
{
    double sum = ms[0] + ms[1] + ms[2] + ms[3], y = r->y;
    if (!(sum > 0)) return;
    for (int b = 0; b < 4; b++) {
        double high = ms[b] / sum * r->height;
        if (high < 0.4) continue;
        ft__timeline_box(t, x, y, width, high, b, title);
        y += high;
    }
}

bool ft__timeline_clip(const ft_timeline *t, double *start, double *end)
{
    *start = fmax(*start, t->x.low);
    *end = fmin(*end, t->x.high);
    return *end > *start;
}

void ft__timeline_flush(ft_timeline *t, int row)
{
    ft_band *r = &t->row[row];
    if (r->pending.events > 0) {
        char title[64];
        snprintf(title, sizeof title, "%.0f short ones", r->pending.events);
        double a = ft__ruler_at(&t->x, r->pending.from), b = ft__ruler_at(&t->x, r->pending.to);
        stack(t, r, a, fmax(b - a, 0.5), r->pending.ms, r->pending.events > 1 ? title : NULL);
    }
    r->pending = (ft_band_bin){0};
}

void ft__timeline_slab(ft_timeline *t, int row, double start, double end, const double ms[4], const char *title)
{
    ft_band *r = &t->row[row];
    r->used = true;
    if (t->dry || end <= start || !ft__timeline_clip(t, &start, &end)) return;
    double a = ft__ruler_at(&t->x, start), b = ft__ruler_at(&t->x, end);
    if (b - a >= 1.5) {
        ft__timeline_flush(t, row);
        stack(t, r, a, b - a, ms, title);
        return;
    }
    ft_band_bin *p = &r->pending;
    /* A gap of half a pixel between two is worth seeing. */
    if (p->events > 0 && a - ft__ruler_at(&t->x, p->to) > 0.5) ft__timeline_flush(t, row);
    if (p->events == 0) p->from = start;
    p->to = fmax(p->to, end);
    p->events++;
    double sum = ms[0] + ms[1] + ms[2] + ms[3];
    for (int i = 0; i < 4; i++) p->ms[i] += sum > 0 ? ms[i] / sum * (end - start) : 0;
    if (ft__ruler_at(&t->x, p->to) - ft__ruler_at(&t->x, p->from) >= 1.5) ft__timeline_flush(t, row);
}

void ft__timeline_close_span(ft_timeline *t)
{
    if (t->span_block < 0) return;
    const ft_block *b = &t->rank.g->blocks[t->span_block];
    const ft_band *r = &t->row[FT_ROW_BLOCKS];
    bool seen = t->dry || ft__timeline_clip(t, &t->span_from, &t->span_to);
    double x0 = ft__ruler_at(&t->x, t->span_from), x1 = ft__ruler_at(&t->x, t->span_to);
    char name[96];
    if (b->repeat > 1)
        snprintf(name, sizeof name, "%.60s × %lld", b->name ? b->name : "", (long long)b->repeat);
    else
        snprintf(name, sizeof name, "%.60s", b->name ? b->name : "");
    t->span_block = -1;
    if (t->dry || !seen || x1 - x0 < 0.75) return;
    ft__svg_box(t->out, x0, r->y, x1 - x0 - 0.5, r->height, "track", t->plain ? NULL : name);
    ft__svg_label_within(t->out, (x0 + x1) / 2, r->y + 12.5, FT_MIDDLE, "dim", name, x1 - x0 - 6);
}

void ft__timeline_extend_span(ft_timeline *t, int32_t block, double start, double end)
{
    t->row[FT_ROW_BLOCKS].used = true;
    if (block != t->span_block) {
        ft__timeline_close_span(t);
        t->span_block = block;
        t->span_from = start;
    }
    t->span_to = end;
}
