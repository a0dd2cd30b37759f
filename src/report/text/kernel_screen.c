/* kernel_screen.c: one kernel on one GPU, or on several.
 *
 * A line has a word, a figure and a remark. The eye should find, in this order: how long, how sure, what holds it
 * back, how far from the roof. Everything else explains these four.
 */
#include <math.h>

#include "kernel/kernel.h"
#include "report/text/columns.h"
#include "report/text/describe.h"
#include "report/text/lines.h"
#include "report/text/screen.h"

enum { BAR = 24 };

static void add_source(ft_text *out, const ft_forecast *f)
{
    bool kin = f->kin && *f->kin;
    switch (f->source) {
    case FT_SOURCE_LEARNED: ft__text_add(out, "fitted to measurements of this GPU"); break;
    case FT_SOURCE_CALIBRATED: ft__text_add(out, "calibrated to this GPU"); break;
    case FT_SOURCE_SIBLING:
        ft__text_addf(out, "from %s, of the same generation or one alike", kin ? f->kin : "a GPU");
        break;
    case FT_SOURCE_PHYSICS:
        ft__text_add(out, "no GPU of this generation was measured");
        if (kin) ft__text_addf(out, "; closest is %s", f->kin);
        break;
    case FT_SOURCE_ROOFLINE: ft__text_add(out, "no model of this operator: a wide guess"); break;
    }
    if (f->family && *f->family) ft__text_addf(out, " (%s)", f->family);
}

static void time_lines(ft_text *out, const ft_style *style, const ft_forecast *f, double quantile)
{
    ft_text a = {0}, b = {0};
    ft__ink(&a, style, FT_INK_BOLD);
    ft__add_figure(&a, f->ms, 4);
    ft__text_add(&a, " ms");
    ft__ink_end(&a, style);
    ft__add_figure(&b, f->low_ms, 4);
    ft__text_addf(&b, " %s ", ft__dash(style));
    ft__add_figure(&b, f->high_ms, 4);
    ft__text_add(&b, " ms, ");
    ft__add_confidence(&b, quantile);
    ft__line(out, style, "time", &a, b.at);

    ft__text_empty(&a);
    ft__text_empty(&b);
    ft__text_add(&a, ft__bound_at_words(f));
    ft__text_add(&b, "roofline ");
    ft__add_figure(&b, f->roofline_ms, 4);
    ft__text_add(&b, " ms");
    if (f->launch_ms > 0) {
        ft__text_add(&b, ", launch ");
        ft__add_figure(&b, f->launch_ms * 1e3, 3);
        ft__text_add(&b, style->unicode ? " µs" : " us");
        if (f->launch_ms >= 0.001 * f->ms) {
            ft__text_add(&b, " (");
            ft__add_percent(&b, f->launch_ms / f->ms);
            ft__text_add(&b, ")");
        }
    }
    ft__line(out, style, "bound by", &a, b.at);
    if (f->sustained_ms > 1.005 * f->ms) {
        ft__text_empty(&a);
        ft__add_figure(&a, f->sustained_ms, 4);
        ft__text_add(&a, " ms");
        ft__line(out, style, "sustained", &a, "each, back to back for seconds: power lowers the clock");
    }
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void rate_line(ft_text *out, const ft_style *style, const char *label, double rate, double peak,
                      const char *unit, bool holds)
{
    ft_text a = {0}, b = {0};
    ft__add_figure(&a, rate, 4);
    ft__text_addf(&a, " %s", unit);
    double share = peak > 0 ? rate / peak : 0;
    if (holds) ft__ink(&b, style, FT_INK_GREEN);
    ft__add_bar(&b, style, share, BAR);
    if (holds) ft__ink_end(&b, style);
    ft__text_add(&b, "  ");
    ft__add_percent(&b, share);
    ft__text_add(&b, " of ");
    ft__add_figure(&b, peak, 4);
    ft__line(out, style, label, &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void work_lines(ft_text *out, const ft_style *style, const ft_op *op, const ft_device *device,
                       const ft_forecast *f)
{
    ft_text a = {0}, b = {0};
    ft__add_si(&a, f->flops, "FLOP");
    ft__add_si(&b, f->bytes, "B");
    ft__text_add(&b, " to and from memory at least");
    ft__line(out, style, "work", &a, b.at);

    double balance = ft__peak_tflops(device, op->dtype) * 1e3 / device->memory_gbps;
    if (f->intensity > 0 && isfinite(balance)) {
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__add_figure(&a, f->intensity, 4);
        ft__text_add(&a, " FLOP/B");
        ft__text_add(&b, f->intensity >= balance ? "above" : "below");
        ft__text_add(&b, " the machine balance, ");
        ft__add_figure(&b, balance, 3);
        ft__text_addf(&b, " in %s", ft_dtype_name(op->dtype));
        ft__line(out, style, "intensity", &a, b.at);
    }
    if (f->tile_m > 0 && f->tile_n > 0) {
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__text_addf(&a, "%d %s %d", f->tile_m, ft__times(style), f->tile_n);
        if (f->split_k > 1) ft__text_addf(&a, ", split %d", f->split_k);
        ft__text_addf(&b, "%.0f tile%s", f->tiles, f->tiles == 1 ? "" : "s");
        if (f->waves > 0) {
            ft__text_add(&b, ", ");
            ft__add_figure(&b, f->waves, 3);
            ft__text_addf(&b, " waves over %d %s", device->sms,
                          device->vendor == FT_VENDOR_AMD     ? "CUs"
                          : device->vendor == FT_VENDOR_INTEL ? "Xe cores"
                                                              : "SMs");
        }
        ft__line(out, style, "tile", &a, b.at);
    }
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

void ft__screen_kernel(ft_text *out, const ft_style *style, const ft_op *op, const ft_device *device,
                       const ft_forecast *f, double quantile)
{
    ft_text a = {0}, b = {0};
    ft__ink(out, style, FT_INK_BOLD);
    ft__describe_op(out, op);
    ft__ink_end(out, style);
    ft__text_add(out, "  on ");
    ft__text_add_plain(out, device->title[0] ? device->title : device->name);
    if (op->timing == FT_TIMING_OP) ft__text_add(out, ", one eager call");
    ft__text_add(out, "\n\n");

    time_lines(out, style, f, quantile);
    ft__text_add(out, "\n");
    if (f->flops > 0)
        rate_line(out, style, "arithmetic", f->flops / f->ms / 1e9, ft__peak_tflops(device, op->dtype), "TFLOP/s",
                  f->bound == FT_BOUND_COMPUTE);
    rate_line(out, style, "memory", f->bytes / f->ms / 1e6, device->memory_gbps, "GB/s", f->bound == FT_BOUND_MEMORY);
    ft__text_add(out, "\n");
    work_lines(out, style, op, device, f);

    ft__ink(&a, style,
            f->source == FT_SOURCE_LEARNED || f->source == FT_SOURCE_CALIBRATED ? FT_INK_GREEN : FT_INK_YELLOW);
    ft__text_add(&a, ft_source_name(f->source));
    ft__ink_end(&a, style);
    add_source(&b, f);
    ft__line(out, style, "source", &a, b.at);
    if (f->note[0]) {
        ft__text_empty(&a);
        ft__ink(&a, style, FT_INK_YELLOW);
        ft__text_add_plain(&a, f->note);
        ft__ink_end(&a, style);
        ft__line(out, style, "note", &a, NULL);
    }
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

/* -- several GPUs ------------------------------------------------------------------------------ */

bool ft__screen_compare(ft_text *out, const ft_style *style, const ft_screen_case *cases, size_t count, double quantile)
{
    enum { SMALL_BAR = 16 };
    bool bar = style->width >= 110, rates = style->width >= 90; /* what a narrow terminal does without */
    double slowest = 0;
    for (size_t i = 0; i < count; i++) slowest = fmax(slowest, cases[i].forecast.ms);
    ft__ink(out, style, FT_INK_BOLD);
    ft__describe_op(out, &cases[0].op);
    ft__ink_end(out, style);
    ft__text_add(out, "\n\n");

    ft_columns c;
    static const char *const head[] = {"gpu",     "ms",      "low",  "high",     "",      "speed",
                                       "TFLOP/s", "of peak", "GB/s", "bound by", "source"};
    ft__columns_init(&c, bar ? "lrrrlrrrrll" : rates ? "lrrrrrrrll" : "lrrrrll");
    c.drop = bar ? "ehkijg" : rates ? "gjhfi" : "gfe";
    for (int i = 0; i < 11; i++)
        if ((bar || i != 4) && (rates || i < 6 || i > 8)) ft__cell_add(&c, head[i]);
    for (size_t i = 0; i < count; i++) {
        const ft_screen_case *s = &cases[i];
        const ft_forecast *f = &s->forecast;
        double tflops = f->flops / f->ms / 1e9;
        ft__cell_add(&c, s->device->name);
        ft__add_figure(ft__cell(&c), f->ms, 4);
        ft__add_figure(ft__cell(&c), f->low_ms, 4);
        ft__add_figure(ft__cell(&c), f->high_ms, 4);
        if (bar) ft__add_bar(ft__cell(&c), style, f->ms / slowest, SMALL_BAR);
        ft__text_addf(ft__cell(&c), "%.2f%s", cases[0].forecast.ms / f->ms, ft__times(style));
        if (rates) {
            ft__add_figure(ft__cell(&c), tflops, 4);
            ft__add_percent(ft__cell(&c), tflops / ft__peak_tflops(s->device, s->op.dtype));
            ft__add_figure(ft__cell(&c), f->bytes / f->ms / 1e6, 4);
        }
        ft__cell_add(&c, ft_bound_name(f->bound));
        ft__cell_addf(&c, "%s%s%s", ft_source_name(f->source), f->source == FT_SOURCE_SIBLING ? " " : "",
                      f->source == FT_SOURCE_SIBLING ? f->kin : "");
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    ft__text_add(out, "\n  The truth should lie in low to high ");
    ft__add_confidence(out, quantile);
    ft__text_addf(out, "; speed relative to %s.\n", cases[0].device->name);
    return printed && !out->failed;
}
