/* svg.c: what every picture is made of. */
#include "report/html/svg.h"

#include <math.h>
#include <string.h>

#include "report/text/style.h"

const ft_frame ft__frame_wide = {.width = 1040}, ft__frame_narrow = {.width = 358, .narrow = true},
               ft__frame_alone = {.width = 1040, .alone = true};

const char *const ft__bound_class[4] = {[FT_BOUND_COMPUTE] = "compute",
                                        [FT_BOUND_MEMORY] = "memory",
                                        [FT_BOUND_OVERHEAD] = "overhead",
                                        [FT_BOUND_COMMUNICATION] = "communication"};
const ft_key ft__bound_keys[4] = {{"compute", "arithmetic"},
                                  {"memory", "memory bandwidth"},
                                  {"overhead", "overhead"},
                                  {"communication", "communication"}};

void ft__markup_reset(ft_text *out, ft_text *part)
{
    out->failed |= part->failed;
    ft__text_empty(part);
}

/* Control characters have no place in XML; bytes that are no UTF-8 would end the document for a strict reader. */
void ft__markup_text(ft_text *out, const char *text)
{
    size_t room = text ? strlen(text) : 0;
    while (room > 0) {
        size_t n = ft__utf8_length(text, room);
        switch (*text) {
        case '&': ft__text_add(out, "&amp;"); break;
        case '<': ft__text_add(out, "&lt;"); break;
        case '>': ft__text_add(out, "&gt;"); break;
        case '"': ft__text_add(out, "&quot;"); break;
        case '\'': ft__text_add(out, "&#39;"); break;
        default:
            if (n == 0 || (unsigned char)*text < 0x20 || *text == 0x7F)
                ft__text_add(out, "?");
            else
                ft__text_add_n(out, text, n);
        }
        if (n == 0) n = 1;
        text += n;
        room -= n;
    }
}

static void attribute(ft_text *out, const char *name, double value)
{
    ft__text_addf(out, " %s=\"", name);
    ft__text_add_number(out, round(value * 100) / 100, 7);
    ft__text_add(out, "\"");
}

double ft__frame_plot(const ft_frame *f, double narrow, double wide)
{
    if (f->height > 0) return f->height;
    return f->narrow ? narrow : round(wide * fmin(fmax(f->width / ft__frame_wide.width, 0.8), 1));
}

void ft__svg_open(ft_text *out, const ft_frame *f, const char *id, double height, const char *title, const char *desc)
{
    const char *size = f->narrow ? "n" : "w";
    if (f->name) id = f->name;
    if (f->live) { /* words in an attribute: the page says at the pointer what is there */
        ft__text_addf(out,
                      "<svg class=\"picture\" role=\"img\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" ",
                      f->width, height, f->width, height);
        ft__text_addf(out, "data-picture=\"%s\" aria-label=\"", id);
        ft__markup_text(out, title);
        ft__text_add(out, ": ");
        ft__markup_text(out, desc);
        ft__text_add(out, "\">\n");
        return;
    }
    ft__text_addf(out,
                  "%s<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture %s\" data-picture=\"%s\" role=\"img\" "
                  "aria-labelledby=\"%s-%s-t %s-%s-d\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">",
                  f->alone ? "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" : "", f->narrow ? "narrow" : "wide", id, id,
                  size, id, size, f->width, height, f->width, height);
    ft__text_addf(out, "<title id=\"%s-%s-t\">", id, size);
    ft__markup_text(out, title);
    ft__text_addf(out, "</title><desc id=\"%s-%s-d\">", id, size);
    ft__markup_text(out, desc);
    ft__text_add(out, "</desc>\n");
    if (!f->alone) return;
    ft__text_addf(out, "<style>svg{%s}@media(prefers-color-scheme:dark){svg{%s}}.paper{fill:var(--paper)}%s</style>\n",
                  ft__colours_light, ft__colours_dark, ft__svg_style);
    ft__svg_box(out, 0, 0, f->width, height, "paper", NULL);
}

void ft__svg_close(ft_text *out) { ft__text_add(out, "</svg>\n"); }

void ft__svg_label(ft_text *out, double x, double y, ft_anchor anchor, const char *class, const char *text)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    ft__text_add(out, "<text");
    attribute(out, "x", x);
    attribute(out, "y", y);
    ft__text_addf(out, "%s", anchors[anchor]);
    if (class) ft__text_addf(out, " class=\"%s\"", class);
    ft__text_add(out, ">");
    ft__markup_text(out, text);
    ft__text_add(out, "</text>\n");
}

/* Digits of the widest of the usual sans serifs (DejaVu) at 12 pixels; others are a tenth narrower. */
static const double letter = 7.6;

double ft__svg_label_width(const char *text) { return letter * ft__text_width(text); }

void ft__svg_label_within(ft_text *out, double x, double y, ft_anchor anchor, const char *class, const char *text,
                          double room)
{
    if (ft__svg_label_width(text) <= room) {
        ft__svg_label(out, x, y, anchor, class, text);
        return;
    }
    int letters = (int)(room / letter) - 1;
    if (letters < 5) return;
    ft_text cut = {.cap = 4096};
    ft__text_add_n(&cut, text, ft__utf8_cut(text, (size_t)letters));
    ft__text_add(&cut, "…");
    if (cut.at) ft__svg_label(out, x, y, anchor, class, cut.at);
    ft__text_drop(&cut, out);
}

void ft__svg_line(ft_text *out, double x1, double y1, double x2, double y2, const char *class)
{
    ft__text_addf(out, "<line class=\"%s\"", class);
    attribute(out, "x1", x1);
    attribute(out, "y1", y1);
    attribute(out, "x2", x2);
    attribute(out, "y2", y2);
    ft__text_add(out, "/>\n");
}

void ft__svg_box(ft_text *out, double x, double y, double width, double height, const char *class, const char *title)
{
    if (!(width > 0) || !(height > 0)) return;
    ft__text_addf(out, "<rect class=\"%s\"", class);
    attribute(out, "x", x);
    attribute(out, "y", y);
    attribute(out, "width", width);
    attribute(out, "height", height);
    if (!title) {
        ft__text_add(out, "/>\n");
        return;
    }
    ft__text_add(out, "><title>");
    ft__markup_text(out, title);
    ft__text_add(out, "</title></rect>\n");
}

void ft__svg_at(ft_text *out, double value) { ft__text_add_number(out, round(value * 10) / 10, 7); }

/* -- rulers ------------------------------------------------------------------------------------ */

double ft__ruler_at(const ft_ruler *r, double value)
{
    double share;
    if (r->log)
        share = value > 0 && r->high > r->low ? log(value / r->low) / log(r->high / r->low) : 0;
    else
        share = r->high > r->low ? (value - r->low) / (r->high - r->low) : 0.5;
    share = fmin(fmax(share, -0.02), 1.02); /* what leaves the plot stays at its edge */
    return r->from + share * (r->to - r->from);
}

/* Ticks of every decade at these factors, `most` of them and one more at the utmost: that they do not fit is seen by
 * it. */
static int decade_ticks(const ft_ruler *r, const double *factors, int factor_count, int most, double *ticks)
{
    int first = (int)floor(log10(r->low)), last = (int)floor(log10(r->high) + 1e-9), count = 0;
    for (int d = first; d <= last && count <= most; d++)
        for (int i = 0; i < factor_count && count <= most; i++) {
            double value = factors[i] * pow(10, d);
            if (value < r->low * (1 - 1e-9) || value > r->high * (1 + 1e-9)) continue;
            if (count < most) ticks[count] = value;
            count++;
        }
    return count;
}

static int log_ticks(const ft_ruler *r, int most, double *ticks)
{
    int first = (int)ceil(log10(r->low) - 1e-9), last = (int)floor(log10(r->high) + 1e-9), count = 0, stride = 1;
    if (last - first < 2) { /* hardly a decade: in between too, as densely as there is room for */
        static const double sets[][6] = {{1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}};
        static const int sizes[] = {6, 3, 2, 1};
        for (int i = r->high < 8 * r->low ? 0 : 1; i < 4; i++) {
            count = decade_ticks(r, sets[i], sizes[i], most, ticks);
            if (count <= most) return count;
        }
        return most;
    }
    while ((last - first) / stride + 1 > most) stride++;
    for (int d = first; d <= last && count < FT_TICKS; d += stride) ticks[count++] = pow(10, d);
    return count;
}

int ft__ruler_ticks(const ft_ruler *r, int most, double ticks[FT_TICKS])
{
    if (!(r->high > r->low) || !isfinite(r->high) || !isfinite(r->low)) return 0;
    if (most > FT_TICKS) most = FT_TICKS;
    if (most < 2) most = 2;
    if (r->log) return r->low > 0 ? log_ticks(r, most, ticks) : 0;
    double raw = (r->high - r->low) / most, unit = pow(10, floor(log10(raw)));
    double step = raw <= unit ? unit : raw <= 2 * unit ? 2 * unit : raw <= 5 * unit ? 5 * unit : 10 * unit;
    int count = 0;
    if (floor(r->high / step) - ceil(r->low / step) < 1)
        step = step > 9 * unit || step < 4 * unit ? step / 2 : 2 * unit;
    for (double i = ceil(r->low / step - 1e-9); i * step <= r->high * (1 + 1e-12) && count < FT_TICKS; i++)
        ticks[count++] = i * step;
    return count;
}

static void tick_text(ft_text *out, ft_text *t, double value)
{
    static const struct {
        double size;
        const char *letter;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    int u = 0;
    ft__markup_reset(out, t);
    if (fabs(value) < 9999) {
        ft__text_add_number(t, value, 4);
        return;
    }
    if (fabs(value) < 1e8 && fmod(value, 100) != 0 && value == floor(value)) { /* 16384 is not 16.38k */
        ft__text_addf(t, "%.0f", value);
        return;
    }
    while (u < 3 && fabs(value) < units[u].size) u++;
    ft__text_add_number(t, value / units[u].size, 4);
    ft__text_add(t, units[u].letter);
}

/* Equal distances that are equal factors are not to be taken for equal steps. */
static void name_ruler(ft_text *t, const ft_ruler *r, const char *name)
{
    ft__text_empty(t);
    ft__text_addf(t, "%s%s", name, r->log ? " (logarithmic)" : "");
}

enum { RIGHT_MARGIN = 14 }; /* what plots leave between their ruler and the frame */

void ft__svg_ruler_x_at(ft_text *out, const ft_ruler *r, double top, double bottom, const char *name,
                        const double *ticks, size_t count)
{
    ft_text t = {.cap = 256};
    double free_from = -1e9, edge = fmax(r->from, r->to) + RIGHT_MARGIN;
    for (size_t i = 0; i < count; i++) {
        double x = ft__ruler_at(r, ticks[i]);
        tick_text(out, &t, ticks[i]);
        double half = ft__svg_label_width(t.at ? t.at : "") / 2, middle = fmin(x, edge - half);
        if (!t.at || middle - half < free_from) continue; /* no label over another */
        ft__svg_line(out, x, top, x, bottom, "gridline");
        if (middle < x)
            ft__svg_label(out, edge, bottom + 17, FT_END, "dim", t.at); /* nor over the edge */
        else
            ft__svg_label(out, x, bottom + 17, FT_MIDDLE, "dim", t.at);
        free_from = middle + half + 8;
    }
    ft__svg_line(out, fmin(r->from, r->to), bottom, fmax(r->from, r->to), bottom, "axis");
    name_ruler(&t, r, name);
    if (t.at) ft__svg_label(out, fmax(r->from, r->to), bottom + 35, FT_END, "dim", t.at);
    ft__text_drop(&t, out);
}

void ft__svg_ruler_x(ft_text *out, const ft_ruler *r, double top, double bottom, const char *name)
{
    double ticks[FT_TICKS];
    int count = ft__ruler_ticks(r, (int)(fabs(r->to - r->from) / 62), ticks);
    ft__svg_ruler_x_at(out, r, top, bottom, name, ticks, (size_t)count);
}

void ft__svg_ruler_time(ft_text *out, const ft_ruler *r, double top, double bottom)
{
    double unit = r->high >= 1e4 ? 1e3 : r->high < 1 ? 1e-3 : 1;
    ft_ruler in = *r;
    in.low /= unit;
    in.high /= unit;
    ft__svg_ruler_x(out, &in, top, bottom, unit > 1 ? "s" : unit < 1 ? "µs" : "ms");
}

void ft__svg_ruler_y(ft_text *out, const ft_ruler *r, double left, double right, const char *name)
{
    double ticks[FT_TICKS], high = fabs(r->to - r->from), top = fmin(r->from, r->to);
    int count = ft__ruler_ticks(r, (int)(high / 40), ticks);
    ft_text t = {.cap = 256};
    for (int i = 0; i < count; i++) {
        double y = ft__ruler_at(r, ticks[i]);
        ft__svg_line(out, left, y, right, y, "gridline");
        tick_text(out, &t, ticks[i]);
        if (t.at) ft__svg_label(out, left - 8, y + 4, FT_END, "dim", t.at);
    }
    name_ruler(&t, r, name);
    if (t.at) ft__svg_label(out, 0, top - 12, FT_START, "dim", t.at);
    ft__text_drop(&t, out);
}

static void add_ruler(ft_text *out, const char *name, const ft_ruler *r)
{
    const double of[] = {r->low, r->high, r->from, r->to};
    ft__text_addf(out, " data-%s=\"", name);
    for (int i = 0; i < 4; i++) {
        ft__text_add_number(out, of[i], 9);
        ft__text_add(out, " ");
    }
    ft__text_addf(out, "%s\"", r->log ? "log" : "linear");
}

void ft__svg_plot(ft_text *out, const ft_frame *f, const ft_ruler *x, const ft_ruler *y)
{
    if (!f->live) return;
    ft__text_add(out, "<g class=\"plot\"");
    if (x) add_ruler(out, "x", x);
    if (y) add_ruler(out, "y", y);
    ft__text_add(out, "/>\n");
}

/* -- keys -------------------------------------------------------------------------------------- */

enum { KEY_MARK = 12, KEY_GAP = 18, KEY_LINE = 20 };

static double place_keys(ft_text *out, const ft_frame *f, double x, double y, const ft_key *keys, size_t count)
{
    double at = x, line = y;
    for (size_t i = 0; i < count; i++) {
        double wide = KEY_MARK + 6 + ft__svg_label_width(keys[i].name) + KEY_GAP;
        if (at > x && at + wide - KEY_GAP > f->width) {
            at = x;
            line += KEY_LINE;
        }
        if (out) {
            ft__svg_box(out, at, line, KEY_MARK, KEY_MARK, keys[i].class, NULL);
            ft__svg_label(out, at + KEY_MARK + 6, line + 10.5, FT_START, NULL, keys[i].name);
        }
        at += wide;
    }
    return line + KEY_LINE - y;
}

double ft__svg_keys(ft_text *out, const ft_frame *f, double x, double y, const ft_key *keys, size_t count)
{
    return place_keys(out, f, x, y, keys, count);
}

double ft__svg_keys_height(const ft_frame *f, double x, const ft_key *keys, size_t count)
{
    return place_keys(NULL, f, x, 0, keys, count);
}
