/* svg_curve.c: curves over one size, with their intervals behind them. */
#include <math.h>
#include <stdio.h>

#include "report/html/svg_pictures.h"
#include "report/text/style.h"

enum { MOST_DOTS = 48 };       /* of one curve: more would run into each other */
enum { NEAR = 3, FAR = 1000 }; /* how many times beyond the curves a limit is still drawn; on a logarithmic ruler */

static void find_ends(const ft_curves *c, ft_ruler *x, ft_ruler *y)
{
    bool open = c->log_y || c->near; /* it begins near its values */
    *x = (ft_ruler){.low = 1e300, .high = -1e300, .log = c->log_x};
    *y = (ft_ruler){.low = open ? 1e300 : 0, .high = 0, .log = c->log_y};
    for (size_t k = 0; k < c->count; k++)
        for (size_t i = 0; i < c->curve[k].count; i++) {
            const ft_curve *v = &c->curve[k];
            double low = v->low ? v->low[i] : v->y[i];
            if (!c->log_x || v->x[i] > 0) x->low = fmin(x->low, v->x[i]);
            x->high = fmax(x->high, v->x[i]);
            y->high = fmax(y->high, v->high ? v->high[i] : v->y[i]);
            if (open && (c->near || low > 0)) y->low = fmin(y->low, low);
        }
    bool loose = true; /* points without lines: none lies on the edge */
    for (size_t k = 0; k < c->count; k++) loose &= c->curve[k].no_line;
    if (loose && x->high > x->low) {
        double apart = c->log_x ? pow(x->high / x->low, 0.04) : 0.04 * (x->high - x->low);
        x->low = c->log_x ? x->low / apart : x->low - apart;
        x->high = c->log_x ? x->high * apart : x->high + apart;
    }
    /* A limit is worth seeing unless it would press the curves into a corner. */
    double far_x = c->log_x ? FAR : NEAR, far_y = c->log_y ? FAR : NEAR;
    if (c->at_name && c->at && *c->at > x->low / far_x && *c->at < far_x * x->high) {
        x->low = fmin(x->low, *c->at);
        x->high = fmax(x->high, *c->at);
    }
    if (c->limit > 0 && c->limit < far_y * y->high) y->high = fmax(y->high, c->limit);
    if (c->log_y && c->limit > y->low / far_y) y->low = fmin(y->low, c->limit);
    if (!(x->high >= x->low)) x->low = 1, x->high = 2;
    if (x->high == x->low) { /* one point stands in the middle */
        double apart = x->low > 0 ? 0.5 * x->low : 1;
        x->low -= apart;
        x->high += apart;
    }
    if (!(y->high > 0)) y->high = 1;
    if (c->near && !c->log_y) {
        double apart = y->high > y->low ? 0.08 * (y->high - y->low) : 0.5 * y->high;
        y->low = fmax(y->low - apart, 0);
        y->high += apart;
        return;
    }
    y->high *= c->log_y ? 1.3 : 1.06;
    if (c->log_y) y->low = fmin(y->low, y->high / 2) / 1.3;
}

static void add_path(ft_text *out, const ft_curve *v, const ft_ruler *x, const ft_ruler *y, size_t number)
{
    double last = 0;
    if (v->no_line) return;
    ft__text_addf(out, "<polyline class=\"curve l%zu%s\" points=\"", number, v->thin ? " thin" : "");
    for (size_t i = 0; i < v->count; i++) {
        double px = ft__ruler_at(x, v->x[i]), py = ft__ruler_at(y, v->y[i]);
        if (v->steps && i) ft__text_addf(out, " %.1f,%.1f", last, py);
        ft__text_addf(out, "%s%.1f,%.1f", i ? " " : "", px, py);
        last = px;
    }
    ft__text_add(out, "\"/>\n");
}

static void add_band(ft_text *out, const ft_curve *v, const ft_ruler *x, const ft_ruler *y, size_t number)
{
    if (!v->low || !v->high || v->count < 2) return;
    ft__text_addf(out, "<polygon class=\"band p%zu\" points=\"", number);
    for (size_t i = 0; i < v->count; i++) { /* stairs have the interval of each step over its whole width */
        double high = ft__ruler_at(y, v->high[i]);
        if (v->steps && i) ft__text_addf(out, "%.1f,%.1f ", ft__ruler_at(x, v->x[i - 1]), high);
        ft__text_addf(out, "%.1f,%.1f ", ft__ruler_at(x, v->x[i]), high);
    }
    for (size_t i = v->count; i-- > 0;) {
        double low = ft__ruler_at(y, v->low[i]);
        ft__text_addf(out, "%.1f,%.1f ", ft__ruler_at(x, v->x[i]), low);
        if (v->steps && i) ft__text_addf(out, "%.1f,%.1f ", ft__ruler_at(x, v->x[i - 1]), low);
    }
    ft__text_add(out, "\"/>\n");
}

static void add_dots(ft_text *out, const ft_curves *c, const ft_curve *v, const ft_ruler *x, const ft_ruler *y,
                     size_t number)
{
    if (v->no_dots || (v->count > MOST_DOTS && !v->unfit && !v->no_line)) return;
    ft_text t = {.cap = 1024};
    for (size_t i = 0; i < v->count; i++) {
        if (v->count > MOST_DOTS && !v->no_line && !v->unfit[i]) continue;
        ft__markup_reset(out, &t);
        ft__text_addf(&t, "%s, %s %.10g: ", v->name, c->x_name, v->x[i]);
        ft__add_figure(&t, v->y[i], 4);
        bool unfit = v->unfit && v->unfit[i];
        ft__text_addf(&t, " %s%s", c->y_name, unfit ? ", does not fit" : "");
        ft__text_addf(out, "<circle class=\"point %s%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>",
                      unfit ? "ring unfit l" : "p", number, ft__ruler_at(x, v->x[i]), ft__ruler_at(y, v->y[i]));
        ft__markup_text(out, t.at);
        ft__text_add(out, "</title></circle>\n");
    }
    ft__text_drop(&t, out);
}

static bool any_unfit(const ft_curves *c)
{
    for (size_t k = 0; k < c->count; k++)
        for (size_t i = 0; c->curve[k].unfit && i < c->curve[k].count; i++)
            if (c->curve[k].unfit[i]) return true;
    return false;
}

/* Where the request stands, and what must not be passed, with its name. */
static void add_marks(ft_text *out, const ft_curves *c, const ft_ruler *x, const ft_ruler *y)
{
    if (c->at && *c->at >= x->low && *c->at <= x->high) {
        double px = ft__ruler_at(x, *c->at), wide = c->at_name ? ft__svg_label_width(c->at_name) : 0;
        bool left = px + 6 + wide > x->to; /* no words over the edge */
        ft__svg_line(out, px, y->to, px, y->from, c->at_name ? "limit" : "cursor");
        if (c->at_name)
            ft__svg_label(out, left ? px - 6 : px + 6, y->from - 8, left ? FT_END : FT_START, "halo", c->at_name);
    }
    if (!(c->limit > 0) || c->limit > y->high || c->limit < y->low) return;
    double py = ft__ruler_at(y, c->limit);
    ft__svg_line(out, x->from, py, x->to, py, "limit");
    if (c->limit_name) ft__svg_label(out, x->from + 6, py - 6, FT_START, "halo", c->limit_name);
}

/* Few, and numbers of things: their values are the best marks of a ruler. */
static bool counted(const ft_curve *v)
{
    bool whole = v->count <= MOST_DOTS;
    for (size_t i = 0; whole && i < v->count; i++) whole = v->x[i] == floor(v->x[i]);
    return whole;
}

bool ft__svg_curves(ft_text *out, const ft_frame *f, const ft_curves *c)
{
    char classes[FT_CURVES][8]; /* p0, p1, ... of data/style */
    ft_key keys[FT_CURVES];
    for (size_t i = 0; i < c->count; i++) {
        snprintf(classes[i], sizeof classes[i], "p%u", (unsigned)(i % FT_CURVE_COLOURS));
        keys[i] = (ft_key){classes[i], c->curve[i].name};
    }
    size_t shown = c->count > 1 ? c->count : 0; /* one curve is what the title says */
    double top = (shown ? ft__svg_keys_height(f, 0, keys, shown) : 0) + 28, bottom = top + ft__frame_plot(f, 220, 280);
    char desc[160];
    snprintf(desc, sizeof desc, "%zu curves of %.40s over %.40s; the table has the same figures.", c->count, c->y_name,
             c->x_name);
    ft__svg_open(out, f, c->id, bottom + 44, c->title, c->desc ? c->desc : desc);
    ft__svg_keys(out, f, 0, 0, keys, shown);
    if (any_unfit(c) && (!c->rings || *c->rings))
        ft__svg_label(out, f->width, top - 12, FT_END, c->rings ? "dim" : "bad",
                      c->rings ? c->rings : "rings: does not fit");
    ft_ruler x, y;
    find_ends(c, &x, &y);
    x.from = f->narrow ? 52 : 70;
    x.to = f->width - 14;
    y.from = bottom;
    y.to = top;
    const ft_curve *longest = c->count ? &c->curve[0] : NULL;
    for (size_t i = 1; i < c->count; i++)
        if (c->curve[i].count > longest->count) longest = &c->curve[i];
    if (c->log_x && longest && counted(longest)) /* powers of two: where the points are */
        ft__svg_ruler_x_at(out, &x, top, bottom, c->x_name, longest->x, longest->count);
    else
        ft__svg_ruler_x(out, &x, top, bottom, c->x_name);
    ft__svg_ruler_y(out, &y, x.from, x.to, c->y_name);
    for (size_t i = 0; i < c->count; i++) add_band(out, &c->curve[i], &x, &y, i % FT_CURVE_COLOURS);
    for (size_t i = 0; i < c->count; i++) {
        add_path(out, &c->curve[i], &x, &y, i % FT_CURVE_COLOURS);
        add_dots(out, c, &c->curve[i], &x, &y, i % FT_CURVE_COLOURS);
    }
    add_marks(out, c, &x, &y);
    ft__svg_plot(out, f, &x, &y);
    ft__svg_close(out);
    return !out->failed;
}
