/* svg_bars.c: rows of stacked bars, and rows of intervals. */
#include <math.h>
#include <string.h>

#include "report/html/svg_pictures.h"
#include "report/text/style.h"

enum { SPOKEN = 12 }; /* rows that are read out */
enum { ROW = 26, BAR = 16, NARROW_ROW = 42 };
enum { WIDEST = 4 }; /* intervals are drawn up to so many times the forecast; the figures stand beside them */

static double label_column(const ft_frame *f, double widest)
{
    return f->narrow ? 0 : fmin(fmin(fmax(widest + 14, 90), 300), 0.45 * f->width);
}

static void part_title(ft_text *out, ft_text *t, const char *label, const char *part, double value, const char *unit,
                       double sum)
{
    ft__markup_reset(out, t);
    ft__text_addf(t, part ? "%s, %s: " : "%s: ", label, part);
    if (!strcmp(unit, "ms"))
        ft__add_ms(t, value, 3);
    else {
        ft__add_figure(t, value, 3);
        ft__text_addf(t, " %s", unit);
    }
    if (!(sum > 0)) return;
    ft__text_add(t, " (");
    ft__add_percent(t, value / sum);
    ft__text_add(t, ")");
}

bool ft__svg_bars(ft_text *out, const ft_frame *f, const ft_bars *b)
{
    const ft_key *keys = b->keys;
    const ft_bar_row *rows = b->rows;
    const size_t key_count = b->key_count, count = b->count;
    const double whole = b->whole;
    double widest = 0, remark = 0, longest = whole;
    bool seen[FT_BAR_PARTS] = {false};
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (size_t k = 0; k < key_count; k++) {
            sum += fmax(rows[i].part[k], 0);
            seen[k] |= rows[i].part[k] > 0;
        }
        if (whole <= 0) longest = fmax(longest, sum);
        widest = fmax(widest, ft__svg_label_width(rows[i].label));
        remark = fmax(remark, ft__svg_label_width(rows[i].remark ? rows[i].remark : ""));
    }
    ft_key used[FT_BAR_PARTS];
    size_t used_count = 0;
    for (size_t k = 0; k < key_count; k++)
        if (seen[k] && keys[k].name) used[used_count++] = keys[k];
    double row = f->narrow ? NARROW_ROW : ROW, left = label_column(f, widest), right = f->width;
    double top = used_count ? ft__svg_keys_height(f, 0, used, used_count) + 10 : 2;
    if (!f->narrow) right -= remark + 10;
    ft_text t = {.cap = 4096};
    for (size_t i = 0; i < count && i < SPOKEN; i++) {
        const char *note = rows[i].remark ? rows[i].remark : "";
        ft__text_addf(&t, "%s%.60s%s%.60s", i ? "; " : "", rows[i].label, *note ? " " : "", note);
    }
    if (count > SPOKEN) ft__text_addf(&t, "; and %zu more rows", count - SPOKEN);
    ft__svg_open(out, f, b->id, top + row * (double)count, b->title, t.at ? t.at : "");
    ft__svg_keys(out, f, 0, 0, used, used_count);
    for (size_t i = 0; i < count; i++) {
        double y = top + row * (double)i, bar = f->narrow ? y + 18 : y, x = left, sum = 0;
        const char *note = rows[i].remark ? rows[i].remark : "";
        for (size_t k = 0; k < key_count; k++) sum += fmax(rows[i].part[k], 0);
        double taken = f->narrow ? ft__svg_label_width(note) + 8 : 0;
        ft__svg_label_within(out, 0, y + 12.5, FT_START, NULL, rows[i].label, f->narrow ? f->width - taken : left - 8);
        ft__svg_box(out, left, bar, right - left, BAR, "track", NULL);
        for (size_t k = 0; k < key_count; k++) {
            double wide = longest > 0 ? fmax(rows[i].part[k], 0) / longest * (right - left) : 0;
            if (wide <= 0) continue;
            if (!f->plain)
                part_title(out, &t, rows[i].label, keys[k].name, rows[i].part[k], b->unit, keys[k].name ? sum : whole);
            ft__svg_box(out, x, bar, fmin(wide, right - x), BAR, rows[i].look ? rows[i].look : keys[k].class,
                        f->plain ? NULL : t.at);
            x += wide;
        }
        ft__svg_label(out, f->narrow ? f->width : right + 10, y + 12.5, f->narrow ? FT_END : FT_START,
                      rows[i].unfit ? "bad" : "dim", note);
    }
    ft__svg_close(out);
    ft__text_drop(&t, out);
    return !out->failed;
}

bool ft__svg_ranges(ft_text *out, const ft_frame *f, const char *id, const char *title, const ft_range_row *rows,
                    size_t count)
{
    double widest = 0, low = 0.9, high = 1.1;
    for (size_t i = 0; i < count; i++) {
        widest = fmax(widest, ft__svg_label_width(rows[i].label));
        if (!(rows[i].value > 0)) continue;
        low = fmin(low, rows[i].low / rows[i].value);
        high = fmax(high, rows[i].high / rows[i].value);
    }
    double row = f->narrow ? 34 : ROW, left = label_column(f, widest), bottom = 8 + row * (double)count;
    double note = f->narrow ? 0 : 190;
    ft_ruler x = {.low = 100 * (fmax(low, 0.05) - 0.03),
                  .high = 100 * (fmin(high, WIDEST) + 0.03),
                  .from = left + 6,
                  .to = f->width - note - 16};
    ft_text t = {.cap = 1024};
    ft__svg_open(out, f, id, bottom + 44, title,
                 "Intervals that should hold the truth, as a share of each forecast; the table has the same figures.");
    ft__svg_ruler_x(out, &x, 4, bottom, "% of the forecast");
    double one = ft__ruler_at(&x, 100);
    ft__svg_line(out, one, 4, one, bottom, "axis");
    for (size_t i = 0; i < count; i++) {
        if (!(rows[i].value > 0)) continue;
        double y = 8 + row * (double)i, middle = f->narrow ? y + 23 : y + 10;
        double a = ft__ruler_at(&x, 100 * rows[i].low / rows[i].value);
        double b = ft__ruler_at(&x, 100 * rows[i].high / rows[i].value);
        ft__markup_reset(out, &t);
        ft__add_figure(&t, rows[i].low, 3);
        ft__text_add(&t, " – ");
        ft__add_figure(&t, rows[i].high, 3);
        ft__text_add(&t, " ms");
        double room = f->narrow ? f->width - ft__svg_label_width(t.at ? t.at : "") - 8 : left - 8;
        ft__svg_label_within(out, 0, y + 13, FT_START, "halo", rows[i].label, room);
        if (t.at)
            ft__svg_label(out, f->narrow ? f->width : f->width - note + 10, y + 13, f->narrow ? FT_END : FT_START,
                          "dim halo", t.at);
        ft__svg_line(out, a, middle, b, middle, "whisker");
        ft__svg_line(out, a, middle - 4, a, middle + 4, "whisker");
        ft__svg_line(out, b, middle - 4, b, middle + 4, "whisker");
        ft__text_addf(out, "<circle class=\"mark range\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", one, middle);
    }
    ft__svg_close(out);
    ft__text_drop(&t, out);
    return !out->failed;
}
