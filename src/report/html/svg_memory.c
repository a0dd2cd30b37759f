/* svg_memory.c: live bytes over the step, stacked by what they are (report/trace/memory_course.c says how many). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/html/svg_pictures.h"
#include "report/text/lines.h"
#include "report/text/step_words.h"
#include "report/text/style.h"
#include "report/trace/course.h"
#include "study/lengths.h"

#define GIB 1073741824.0

enum { KINDS = FT_COURSE_KINDS };
const ft_key ft__memory_keys[KINDS] = {{"f0", "weights"},     {"f1", "optimizer"}, {"f2", "gradients"},
                                       {"f3", "activations"}, {"f4", "KV cache"},  {"f5", "communication"},
                                       {"f6", "temporary"}};

/* Up or down, then along; what does not move by a tenth of a pixel is not written. */
typedef struct pen {
    ft_text *out;
    double x, y; /* where it is */
    double seen; /* the x that was written last */
} pen;

static void along(pen *p)
{
    if (p->x == p->seen) return;
    ft__text_add(p->out, "H");
    ft__svg_at(p->out, p->x);
    p->seen = p->x;
}

static void step(pen *p, double y, double x)
{
    y = round(10 * y) / 10;
    if (y != p->y) {
        along(p);
        ft__text_add(p->out, "V");
        ft__svg_at(p->out, y);
        p->y = y;
    }
    p->x = round(10 * x) / 10;
}

static void add_point(ft_text *out, double x, double y)
{
    ft__svg_at(out, x);
    ft__text_add(out, ",");
    ft__svg_at(out, y);
    ft__text_add(out, " ");
}

static void add_layer(ft_text *out, const ft_frame *f, const ft_memory_course *c, int kind, const ft_ruler *x,
                      const ft_ruler *y)
{
    double any = 0;
    for (size_t i = 0; i < c->count; i++) any = fmax(any, c->at[i].bytes[kind]);
    if (any <= 0 || c->count == 0) return;
    ft__text_addf(out, "<path class=\"area edge %s\" d=\"M", ft__memory_keys[kind].class);
    pen p = {.out = out, .y = -1e9};
    for (int side = 0; side < 2; side++)
        for (size_t n = 0; n < c->count; n++) {
            size_t i = side ? c->count - 1 - n : n;
            double sum = 0, next = i + 1 < c->count ? c->at[i + 1].ms : c->end;
            for (int k = 0; k < kind + (side ? 0 : 1); k++) sum += c->at[i].bytes[k];
            double px = ft__ruler_at(x, c->at[i].ms), py = ft__ruler_at(y, sum / GIB);
            if (c->slanted || (!side && !n)) add_point(out, px, py);
            if (c->slanted) continue;
            if (!side && !n) p = (pen){out, round(10 * px) / 10, round(10 * py) / 10, round(10 * px) / 10};
            step(&p, py, side ? px : ft__ruler_at(x, next));
        }
    if (!c->slanted) along(&p);
    if (f->plain)
        ft__text_add(out, "Z\"/>\n");
    else
        ft__text_addf(out, "Z\"><title>%s</title></path>\n", ft__memory_keys[kind].name);
}

/* Where the words of the peak stand: over it, or under it where the line of the GPU's memory would run through them. */
static double peak_words_y(double peak, double limit)
{
    bool crossed = limit > peak - 24 && limit < peak - 3;
    return crossed ? peak + 19 : peak - 9;
}

static void mark_peak(ft_text *out, const ft_frame *f, const ft_step_view *v, const ft_memory_course *c,
                      const ft_ruler *x, const ft_ruler *y, double limit)
{
    size_t most = 0;
    for (size_t i = 0; i < c->count; i++)
        if (ft__course_total(&c->at[i]) > ft__course_total(&c->at[most])) most = i;
    ft_text t = {.cap = 1024};
    ft__text_add(&t, "peak ");
    ft__add_gib(&t, v->lengths ? ft__course_total(&c->at[most]) : v->step->memory.peak_bytes);
    ft__text_add(&t, " GiB");
    if (v->lengths) ft__text_addf(&t, " of a batch of %" PRId64 " tokens", v->lengths->typical);
    if (!v->lengths && !v->ranked && !f->narrow) {
        ft__text_add(&t, ": ");
        ft__add_peak_place(&t, v);
    }
    double px = ft__ruler_at(x, c->at[most].ms), py = ft__ruler_at(y, ft__course_total(&c->at[most]) / GIB);
    double half = ft__svg_label_width(t.at ? t.at : "") / 2, at = fmin(fmax(px, x->from + half), x->to - half);
    ft__text_addf(out, "<circle class=\"mark peak\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", px, py);
    if (t.at) ft__svg_label(out, at, peak_words_y(py, limit), FT_MIDDLE, "strong halo", t.at);
    ft__text_drop(&t, out);
}

/* The step that is drawn takes as long as the mean; memory is that of the longest batch. */
static void add_longest(ft_text *out, const ft_ruler *x, const ft_ruler *y, const ft_step_view *v)
{
    ft_text t = {.cap = 256};
    double py = ft__ruler_at(y, v->step->memory.peak_bytes / GIB);
    ft__svg_line(out, x->from, py, x->to, py, "under");
    ft__svg_line(out, x->from, py, x->to, py, "limit");
    ft__text_addf(&t, "the longest, of %" PRId64 " tokens, has ", v->lengths->longest);
    ft__add_gib(&t, v->step->memory.peak_bytes);
    ft__text_add(&t, " GiB");
    if (t.at) ft__svg_label(out, x->to - 6, py - 6, FT_END, "halo", t.at);
    ft__text_drop(&t, out);
}

/* Its words stand over the line, or under it where those of the peak would lie over them. */
static void add_capacity(ft_text *out, const ft_ruler *x, const ft_ruler *y, double gib, double peak_gib)
{
    ft_text t = {.cap = 256};
    double py = ft__ruler_at(y, gib), words = peak_words_y(ft__ruler_at(y, peak_gib), py);
    bool under = fabs(words - (py - 6)) < 16;
    ft__svg_line(out, x->from, py, x->to, py, "under"); /* it may cross any colour */
    ft__svg_line(out, x->from, py, x->to, py, "limit");
    ft__text_add(&t, "the GPU has ");
    ft__add_figure(&t, gib, 3);
    ft__text_add(&t, " GiB");
    if (t.at) ft__svg_label(out, x->from + 6, under ? py + 16 : py - 6, FT_START, "halo", t.at);
    ft__text_drop(&t, out);
}

bool ft__svg_memory(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    ft_memory_course c;
    if (!ft__memory_course(v, &c)) {
        free(c.at);
        return false;
    }
    ft_key keys[KINDS];
    size_t key_count = 0;
    double most = 0;
    for (int k = 0; k < KINDS; k++)
        for (size_t i = 0; i < c.count; i++)
            if (c.at[i].bytes[k] > 0) {
                keys[key_count++] = ft__memory_keys[k];
                break;
            }
    for (size_t i = 0; i < c.count; i++) most = fmax(most, ft__course_total(&c.at[i]) / GIB);
    double capacity = v->step->memory.capacity_bytes / GIB;
    if (v->lengths) most = fmax(most, v->step->memory.peak_bytes / GIB);
    bool near = capacity > 0 && capacity < 2.2 * most;
    double top = ft__svg_keys_height(f, 0, keys, key_count) + 32, bottom = top + ft__frame_plot(f, 200, 260);
    ft_ruler x = {.low = 0, .high = c.end > 0 ? c.end : 1, .from = f->narrow ? 40 : 60, .to = f->width - 12};
    ft_ruler y = {.low = 0, .high = fmax(most, near ? capacity : 0) * 1.12, .from = bottom, .to = top};
    if (!(y.high > 0)) y.high = 1;
    ft__memory_course_thin(&c, (x.to - x.from) / 1.5);
    ft__svg_open(out, f, "memory", bottom + 44, "Memory over the step",
                 "Live bytes on one GPU while the step runs, stacked by what they are. The table of memory has the "
                 "figures of the peak.");
    ft__svg_keys(out, f, 0, 0, keys, key_count);
    if (c.untimed)
        ft__svg_ruler_x_at(out, &x, top, bottom, "kernels, in order", NULL, 0);
    else
        ft__svg_ruler_time(out, &x, top, bottom);
    ft__svg_ruler_y(out, &y, x.from, x.to, "GiB");
    for (int k = 0; k < KINDS; k++) add_layer(out, f, &c, k, &x, &y);
    if (near) add_capacity(out, &x, &y, capacity, v->step->memory.peak_bytes / GIB);
    if (v->lengths) add_longest(out, &x, &y, v);
    if (c.count) mark_peak(out, f, v, &c, &x, &y, near ? ft__ruler_at(&y, capacity) : -1e9);
    ft__svg_plot(out, f, &x, &y);
    ft__svg_close(out);
    free(c.at);
    return !out->failed;
}

bool ft__svg_peak(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    static const ft_key unnamed = {"f0", NULL};
    const ft_memory *m = &v->step->memory;
    const double bytes[KINDS] = {m->weights_bytes,  m->optimizer_bytes,     m->gradients_bytes, m->activations_bytes,
                                 m->kv_cache_bytes, m->communication_bytes, m->temporary_bytes};
    ft_bar_row rows[KINDS] = {{0}};
    char remarks[KINDS][48];
    size_t count = 0;
    for (int k = 0; k < KINDS; k++) {
        if (!(bytes[k] > 0.0005 * m->peak_bytes)) continue; /* "0.0 %" says nothing */
        ft_text t = {.cap = sizeof remarks[0]};
        ft__add_figure(&t, bytes[k] / GIB, 3);
        ft__text_add(&t, " GiB, ");
        ft__add_percent(&t, m->peak_bytes > 0 ? bytes[k] / m->peak_bytes : 0);
        snprintf(remarks[count], sizeof remarks[0], "%s", t.at ? t.at : "");
        out->failed |= t.failed;
        ft__text_free(&t);
        rows[count] = (ft_bar_row){.label = ft__memory_keys[k].name,
                                   .remark = remarks[count],
                                   .part = {bytes[k] / GIB},
                                   .look = ft__memory_keys[k].class};
        count++;
    }
    return ft__svg_bars(out, f,
                        &(ft_bars){"peak", "Memory at its peak", "GiB", &unnamed, 1, rows, count, m->peak_bytes / GIB});
}
