/* trace_screen.c: a trace as text for people. */
#include "report/text/trace_screen.h"

#include <math.h>
#include <string.h>

#include "report/text/lines.h"
#include "report/text/trace_tables.h"

enum { BAR = 24 };
_Static_assert(FT_LINE_LABEL >= 12, "the longest label here has 12 letters");

/* -- names ------------------------------------------------------------------------------------- */

/* "[[8, 1024], [], [768]]" -> " [8,1024] [768]". */
static void add_shapes(ft_text *out, const char *dims)
{
    int shown = 0;
    for (const char *p = dims; *p && shown < 4; p++) {
        if (*p != '[' || p[1] == '[' || p[1] == ']') continue;
        size_t n = strcspn(p, "]");
        ft__text_add(out, " [");
        for (size_t i = 1; i < n && i < 60; i++)
            if (p[i] != ' ' && p[i] != '\n') ft__text_add_n(out, p + i, 1);
        ft__text_add(out, "]");
        p += n > 0 ? n - 1 : 0;
        shown++;
    }
}

void ft__trace_group_words(ft_text *out, const ft_trace_report *s, const ft_trace_group *g)
{
    const char *name = ft__record_name(&s->record, g->name);
    switch (g->kind) {
    case FT_GROUP_UP: ft__text_add(out, "copies from the host"); return;
    case FT_GROUP_DOWN: ft__text_add(out, "copies to the host"); return;
    case FT_GROUP_AROUND: ft__text_add(out, "copies and fills on the GPU"); return;
    case FT_GROUP_OP:
        ft__text_add(out, strncmp(name, "aten::", 6) ? name : name + 6);
        add_shapes(out, s->record.signatures[g->inputs].dims);
        return;
    default: ft__text_add(out, name);
    }
}

/* -- the step ---------------------------------------------------------------------------------- */

static void title(ft_text *out, const ft_style *style, const char *file, const ft_trace_report *s)
{
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add_plain(out, file);
    ft__ink_end(out, style);
    if (s->kernels && !s->record.whole)
        ft__text_addf(out, "  %zu step%s", s->record.step_count, s->record.step_count == 1 ? "" : "s");
    if (s->device_known && s->kernels) {
        ft__text_add(out, " on ");
        ft__text_add_plain(out, s->device.title[0] ? s->device.title : s->device.name);
    } else if (s->record.gpu_name[0]) {
        ft__text_add(out, " on ");
        ft__text_add_plain(out, s->record.gpu_name);
    }
    if (s->record.ranks > 1) ft__text_addf(out, ", one of %lld ranks", (long long)s->record.ranks);
    ft__text_add(out, s->kernels ? "\n\n" : "\n");
}

static void share_line(ft_text *out, const ft_style *style, const char *label, double share, double ms,
                       const char *what)
{
    ft_text a = {0}, b = {0};
    ft__add_percent(&a, share);
    ft__add_bar(&b, style, share, BAR);
    ft__text_add(&b, "  ");
    ft__add_figure(&b, ms, 4);
    ft__text_addf(&b, " ms %s", what);
    ft__line(out, style, label, &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

/* How long a step took, and what holds it. */
static void time_lines(ft_text *out, const ft_style *style, const ft_trace_report *s)
{
    const ft_busy *b = &s->busy;
    ft_text a = {0}, c = {0};
    ft__ink(&a, style, FT_INK_BOLD);
    ft__add_figure(&a, b->step_ms, 4);
    ft__text_add(&a, " ms");
    ft__ink_end(&a, style);
    if (s->record.step_count > 1) {
        ft__add_figure(&c, b->low_ms, 4);
        ft__text_addf(&c, " %s ", ft__dash(style));
        ft__add_figure(&c, b->high_ms, 4);
        ft__text_add(&c, " ms, under the profiler");
    } else {
        ft__text_add(&c, s->record.whole ? "all of the trace, under the profiler" : "under the profiler");
    }
    if (s->bare_ms > 0 && s->bare_ms < 0.98 * b->step_ms) {
        ft__text_add(&c, ", about ");
        ft__add_figure(&c, s->bare_ms, 3);
        ft__text_add(&c, " without it");
    }
    ft__line(out, style, "step", &a, c.at);
    ft__text_empty(&a);
    ft__text_empty(&c);
    ft__text_add(&a, ft__bound_words(b->bound));
    if (b->bound == FT_BOUND_OVERHEAD) ft__text_add(&c, "the GPU waits for the host");
    ft__line(out, style, "bound by", &a, c.at);
    ft__text_add(out, "\n");
    ft__text_drop(&a, out);
    ft__text_drop(&c, out);
}

/* What went on beside kernels, and how well products used the GPU. */
static void beside_lines(ft_text *out, const ft_style *style, const ft_trace_report *s)
{
    const ft_busy *b = &s->busy;
    ft_text a = {0}, c = {0};
    if (b->exchange_ms > 0) {
        ft__text_empty(&a);
        ft__text_empty(&c);
        ft__add_figure(&a, b->exchange_ms, 4);
        ft__text_add(&a, " ms");
        ft__add_percent(&c, 1 - b->exposed_ms / b->exchange_ms);
        ft__text_add(&c, " of it hidden behind kernels");
        ft__line(out, style, "exchanges", &a, c.at);
    }
    if (b->copy_ms > 0.001 * b->step_ms) {
        ft__text_empty(&a);
        ft__text_empty(&c);
        ft__add_figure(&a, b->copy_ms, 4);
        ft__text_add(&a, " ms");
        ft__text_add(&c, "between host and GPU, ");
        ft__add_figure(&c, b->copy_exposed_ms, 3);
        ft__text_add(&c, " ms of it with no kernel beside");
        ft__line(out, style, "copies", &a, c.at);
    }
    if (s->product_ms > 0) {
        double share = fmin(1, s->tensor_ms / s->product_ms);
        ft__text_empty(&a);
        ft__text_empty(&c);
        ft__ink(&a, style, share > 0.9 ? FT_INK_GREEN : FT_INK_YELLOW);
        ft__add_percent(&a, share);
        ft__ink_end(&a, style);
        ft__text_add(&c, "of ");
        ft__add_figure(&c, s->product_ms, 4);
        ft__text_add(&c, " ms of products run on tensor cores");
        ft__line(out, style, "tensor use", &a, c.at);
    }
    ft__text_drop(&a, out);
    ft__text_drop(&c, out);
}

static void step_lines(ft_text *out, const ft_style *style, const ft_trace_report *s)
{
    const ft_busy *b = &s->busy;
    ft_text a = {0}, c = {0};
    double mean = b->busy_ms + b->idle_ms;
    time_lines(out, style, s);
    share_line(out, style, "compute", b->share[FT_BOUND_COMPUTE], b->share[FT_BOUND_COMPUTE] * mean,
               "in kernels bound by arithmetic");
    share_line(out, style, "memory", b->share[FT_BOUND_MEMORY], b->share[FT_BOUND_MEMORY] * mean,
               "in kernels and copies bound by memory");
    if (b->exchange_ms > 0)
        share_line(out, style, "exchange", b->share[FT_BOUND_COMMUNICATION], b->exposed_ms,
                   "of exchanges that nothing hides");
    share_line(out, style, "overhead", b->share[FT_BOUND_OVERHEAD], b->share[FT_BOUND_OVERHEAD] * mean,
               "launches, and no kernel at all");
    ft__text_add(out, "\n");
    share_line(out, style, "GPU busy", mean > 0 ? b->busy_ms / mean : 0, b->busy_ms, "");
    ft__text_addf(&a, "%.0f kernels", b->kernels);
    if (b->streams > 1) ft__text_addf(&c, "on %.0f streams", b->streams);
    ft__line(out, style, "launched", &a, c.at);
    beside_lines(out, style, s);
    ft__text_drop(&a, out);
    ft__text_drop(&c, out);
}

bool ft__screen_trace(ft_text *out, const ft_style *style, const char *file, const ft_trace_report *s, size_t most)
{
    bool printed = true;
    title(out, style, file, s);
    if (s->kernels) {
        step_lines(out, style, s);
        printed &= ft__trace_gap_tables(out, style, s);
        printed &= ft__trace_against_table(out, style, s, most, false);
        if (s->device_known) printed &= ft__trace_against_table(out, style, s, most, true);
        printed &= ft__trace_tensor_table(out, style, s, most);
    }
    printed &= ft__trace_elsewhere_table(out, style, s);
    return printed && !out->failed;
}
