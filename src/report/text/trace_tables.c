/* trace_tables.c: the tables of a trace's screen. */
#include "report/text/trace_tables.h"

#include <math.h>

#include "report/text/columns.h"
#include "report/text/lines.h"

static void group_cell(ft_columns *c, const ft_trace_report *s, const ft_trace_group *g, int most)
{
    ft_text words = {0}, clean = {0};
    ft__trace_group_words(&words, s, g);
    ft__text_add_plain(&clean, words.at ? words.at : "");
    ft__add_cut(ft__cell(c), &clean, most);
    ft__text_free(&words);
    ft__text_free(&clean);
}

static int name_width(const ft_style *style, int others)
{
    int room = style->width - others;
    return room < 24 ? 24 : room > 74 ? 74 : room;
}

static void heading(ft_text *out, const ft_style *style, const char *text)
{
    ft__text_add(out, "\n");
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, text);
    ft__ink_end(out, style);
    ft__text_add(out, "\n\n");
}

bool ft__trace_gap_tables(ft_text *out, const ft_style *style, const ft_trace_report *s)
{
    const ft_busy *b = &s->busy;
    bool printed = true;
    ft_columns c;
    if (b->idle_ms > 0.02 * b->step_ms && b->idle_ms > 0.01) {
        heading(out, style, "When the GPU had nothing to do (ms per step)");
        ft__columns_init(&c, "rrl");
        for (int i = 0; i < FT_GAP_CAUSES; i++) {
            if (!(b->cause_ms[i] > 0.005 * b->idle_ms)) continue;
            ft__add_figure(ft__cell(&c), b->cause_ms[i], 4);
            ft__add_percent(ft__cell(&c), b->cause_ms[i] / fmax(b->idle_ms, 1e-9));
            ft__cell_add(&c, ft__gap_cause_words((ft_gap_cause)i));
        }
        printed &= ft__columns_print(&c, out, style, 2, false);
        ft__columns_free(&c);
    }
    if (b->gap_count > 0 && b->gaps[0].ms > 0.002 * b->step_ms) {
        heading(out, style, "The longest gaps");
        ft__columns_init(&c, "rrll");
        ft__cell_add(&c, "ms");
        ft__cell_add(&c, "at ms");
        ft__cell_add(&c, "the host");
        ft__cell_add(&c, "then");
        for (int i = 0; i < b->gap_count && i < 5; i++) {
            ft_text host = {0}, next = {0};
            ft__text_add_plain(&host, b->gaps[i].host);
            ft__text_add_plain(&next, b->gaps[i].next);
            ft__add_figure(ft__cell(&c), b->gaps[i].ms, 3);
            ft__text_addf(ft__cell(&c), "%.1f", b->gaps[i].at_ms);
            ft__add_cut(ft__cell(&c), &host, 56);
            ft__add_cut(ft__cell(&c), &next, 30);
            ft__text_drop(&host, out);
            ft__text_drop(&next, out);
        }
        printed &= ft__columns_print(&c, out, style, 2, true);
        ft__columns_free(&c);
    }
    if (b->sync_count > 0 && b->sync_ms > 0.005 * b->step_ms) {
        heading(out, style, "Where the host waits for the GPU (per step)");
        ft__columns_init(&c, "rrll");
        ft__cell_add(&c, "ms");
        ft__cell_add(&c, "calls");
        ft__cell_add(&c, "call");
        ft__cell_add(&c, "by");
        for (int i = 0; i < b->sync_count; i++) {
            ft__add_figure(ft__cell(&c), b->syncs[i].ms, 3);
            ft__add_figure(ft__cell(&c), b->syncs[i].count, 2);
            ft__text_add_plain(ft__cell(&c), b->syncs[i].call);
            ft__text_add_plain(ft__cell(&c), b->syncs[i].op[0] ? b->syncs[i].op : "the program");
        }
        printed &= ft__columns_print(&c, out, style, 2, true);
        ft__columns_free(&c);
    }
    return printed;
}

/* `accused`: those above their interval; otherwise those that take most. */
bool ft__trace_against_table(ft_text *out, const ft_style *style, const ft_trace_report *s, size_t most, bool accused)
{
    ft_columns c;
    size_t shown = 0;
    ft__columns_init(&c, "rrrrrl");
    static const char *const head[] = {"ms", "should", "low", "high", "calls", "operator"};
    for (int i = 0; i < 6; i++) ft__cell_add(&c, head[i]);
    double last = INFINITY;
    for (size_t i = 0; i < s->groups.count && shown < most; i++) {
        const ft_against *a = NULL;
        if (accused) {
            a = &s->against[i];
            if (!(a->above_ms > 0.002 * s->busy.step_ms)) break;
        } else { /* the next longest; tables are short */
            for (size_t k = 0; k < s->groups.count; k++)
                if (s->against[k].ms < last && (!a || s->against[k].ms > a->ms)) a = &s->against[k];
            if (!a) break;
            last = a->ms;
        }
        ft__add_figure(ft__cell(&c), a->ms, 4);
        if (a->forecast_ms > 0) {
            ft__add_figure(ft__cell(&c), a->forecast_ms, 4);
            ft__add_figure(ft__cell(&c), a->low_ms, 3);
            ft__add_figure(ft__cell(&c), a->high_ms, 3);
        } else {
            for (int k = 0; k < 3; k++) ft__cell_add(&c, "?");
        }
        ft__add_figure(ft__cell(&c), a->calls, 3);
        group_cell(&c, s, a->group, name_width(style, 46));
        shown++;
    }
    bool printed = true;
    if (shown > 0) {
        heading(out, style, accused ? "Slower than they should be (ms per step)" : "The most time (ms per step)");
        printed = ft__columns_print(&c, out, style, 2, true);
    } else if (accused) {
        ft__text_add(out, "\nNo operator is slower than its forecast's interval allows.\n");
    }
    ft__columns_free(&c);
    return printed;
}

bool ft__trace_tensor_table(ft_text *out, const ft_style *style, const ft_trace_report *s, size_t most)
{
    ft_columns c;
    size_t shown = 0;
    double last = INFINITY;
    ft__columns_init(&c, "rrlll");
    static const char *const head[] = {"ms", "could", "", "operator", "why"};
    for (int i = 0; i < 5; i++) ft__cell_add(&c, head[i]);
    for (;;) {
        const ft_against *a = NULL;
        for (size_t k = 0; k < s->groups.count; k++) {
            const ft_against *b = &s->against[k];
            if (b->why && b->ms < last && (!a || b->ms > a->ms)) a = b;
        }
        if (!a || shown == most || a->ms < 0.005 * s->busy.step_ms) break;
        last = a->ms;
        ft__add_figure(ft__cell(&c), a->ms, 4);
        if (a->could_ms > 0)
            ft__add_figure(ft__cell(&c), a->could_ms, 4);
        else
            ft__cell_add(&c, "");
        ft__cell_add(&c, a->on_tensor_cores ? "slow" : "none");
        group_cell(&c, s, a->group, name_width(style, 84));
        ft__cell_add(&c, a->why);
        shown++;
    }
    bool printed = true;
    if (shown > 0) {
        heading(out, style, "Products that do not use the tensor cores, or badly (ms per step)");
        printed = ft__columns_print(&c, out, style, 2, true);
    }
    ft__columns_free(&c);
    return printed;
}

bool ft__trace_elsewhere_table(ft_text *out, const ft_style *style, const ft_trace_report *s)
{
    if (s->elsewhere_count == 0) return true;
    ft_columns c;
    heading(out, style, s->kernels ? "The same run by forecast" : "Forecast from the operators alone");
    ft__columns_init(&c, "lrrrrrrrl");
    static const char *const head[] = {"gpu", "step ms", "low", "high", "bare", "busy", "speed", "guessed", ""};
    for (int i = 0; i < 9; i++) ft__cell_add(&c, head[i]);
    for (int i = 0; i < s->elsewhere_count; i++) {
        const ft_elsewhere *e = &s->elsewhere[i];
        ft__cell_add(&c, e->device.name);
        ft__add_figure(ft__cell(&c), e->step_ms, 4);
        ft__add_figure(ft__cell(&c), e->low_ms, 4);
        ft__add_figure(ft__cell(&c), e->high_ms, 4);
        if (e->bare_ms > 0)
            ft__add_figure(ft__cell(&c), e->bare_ms, 4);
        else
            ft__cell_add(&c, "");
        ft__add_figure(ft__cell(&c), e->busy_ms, 4);
        if (s->kernels && e->step_ms > 0)
            ft__text_addf(ft__cell(&c), "%.2f%s", s->busy.step_ms / e->step_ms, ft__times(style));
        else
            ft__cell_add(&c, "");
        ft__add_percent(ft__cell(&c), e->guessed);
        ft__cell_add(&c, !s->kernels  ? ""
                         : e->here    ? "kernels from their shapes alone"
                         : e->instead ? "measured times scaled; formats it lacks run as others"
                                      : "measured times scaled, operator by operator");
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    ft__text_add(out, "\n  The truth should lie in low to high ");
    ft__add_confidence(out, s->quantile);
    ft__text_add(out,
                 s->kernels ? "; the host is taken to be as fast as it was, bare: without the profiler.\n" : ".\n");
    return printed;
}
