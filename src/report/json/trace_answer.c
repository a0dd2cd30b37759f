/* trace_answer.c: a trace as JSON. */
#include <stdio.h>

#include "report/json/answer.h"
#include "report/text/trace_screen.h"

enum { MOST_KERNELS = 200 };

static void add_groups(ft_text *out, const ft_trace_report *s)
{
    ft__json_member_list(out, "operators");
    size_t count = s->groups.count < MOST_KERNELS ? s->groups.count : MOST_KERNELS;
    for (size_t i = 0; i < count; i++) {
        const ft_against *a = &s->against[i];
        ft_text words = {0};
        ft__trace_group_words(&words, s, a->group);
        ft__json_open(out);
        ft__json_member_text(out, "name", words.at ? words.at : "");
        ft__text_drop(&words, out);
        ft__answer_word(out, "class", ft__called_class_name(a->group->called.class));
        ft__answer_word(out, "kernel", ft__record_name(&s->record, a->group->kernel));
        ft__answer_figure(out, "calls", a->calls);
        ft__answer_figure(out, "ms", a->ms);
        if (a->forecast_ms > 0) {
            ft__answer_figure(out, "forecast_ms", a->forecast_ms);
            ft__answer_figure(out, "low_ms", a->low_ms);
            ft__answer_figure(out, "high_ms", a->high_ms);
            ft__answer_figure(out, "above_ms", a->above_ms);
            ft__answer_word(out, "bound", ft_bound_name(a->price.bound));
            ft__answer_word(out, "source", ft_source_name(a->price.source));
            ft__answer_figure(out, "roofline_ms", a->price.roofline_ms * a->calls);
        }
        if (a->product) ft__json_member_flag(out, "tensor_cores", a->on_tensor_cores);
        if (a->why) ft__answer_word(out, "why", a->why);
        if (a->why && a->could_ms > 0) ft__answer_figure(out, "could_take_ms", a->could_ms);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void add_gaps(ft_text *out, const ft_busy *b)
{
    ft__json_member_open(out, "idle");
    ft__json_member_number(out, "total_ms", b->idle_ms, 6);
    for (int i = 0; i < FT_GAP_CAUSES; i++) {
        char key[48];
        snprintf(key, sizeof key, "%s_ms", ft__gap_cause_name((ft_gap_cause)i));
        ft__answer_figure(out, key, b->cause_ms[i]);
    }
    ft__json_close(out);
    ft__json_member_list(out, "gaps");
    for (int i = 0; i < b->gap_count; i++) {
        ft__json_open(out);
        ft__json_member_number(out, "ms", b->gaps[i].ms, 6);
        ft__answer_figure(out, "at_ms", b->gaps[i].at_ms);
        ft__answer_figure(out, "step", b->gaps[i].step);
        ft__answer_word(out, "cause", ft__gap_cause_name(b->gaps[i].cause));
        ft__answer_word(out, "host", b->gaps[i].host);
        ft__answer_word(out, "next", b->gaps[i].next);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__json_member_list(out, "waits");
    for (int i = 0; i < b->sync_count; i++) {
        ft__json_open(out);
        ft__json_member_text(out, "call", b->syncs[i].call);
        ft__answer_word(out, "operator", b->syncs[i].op);
        ft__answer_figure(out, "count", b->syncs[i].count);
        ft__answer_figure(out, "ms", b->syncs[i].ms);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void add_busy(ft_text *out, const ft_trace_report *s)
{
    const ft_busy *b = &s->busy;
    ft__answer_figure(out, "steps", (double)s->record.step_count);
    ft__answer_figure(out, "step_ms", b->step_ms);
    ft__answer_figure(out, "shortest_ms", b->low_ms);
    ft__answer_figure(out, "longest_ms", b->high_ms);
    if (s->bare_ms > 0) ft__answer_figure(out, "bare_step_ms", s->bare_ms);
    ft__answer_figure(out, "busy_ms", b->busy_ms);
    ft__answer_figure(out, "kernels", b->kernels);
    ft__answer_figure(out, "streams", b->streams);
    ft__answer_figure(out, "comm_ms", b->exchange_ms);
    ft__answer_figure(out, "comm_exposed_ms", b->exposed_ms);
    ft__answer_figure(out, "copy_ms", b->copy_ms);
    ft__answer_figure(out, "copy_exposed_ms", b->copy_exposed_ms);
    ft__answer_figure(out, "wait_ms", b->sync_ms);
    ft__json_member_open(out, "regime");
    ft__json_member_number(out, "compute", b->share[FT_BOUND_COMPUTE], 4);
    ft__answer_figure(out, "memory", b->share[FT_BOUND_MEMORY]);
    ft__answer_figure(out, "overhead", b->share[FT_BOUND_OVERHEAD]);
    ft__answer_figure(out, "communication", b->share[FT_BOUND_COMMUNICATION]);
    ft__answer_word(out, "bound", ft_bound_name(b->bound));
    ft__json_close(out);
    ft__json_member_open(out, "tensor_cores");
    ft__json_member_number(out, "products_ms", s->product_ms, 6);
    ft__answer_figure(out, "on_them_ms", s->tensor_ms);
    ft__answer_figure(out, "unaligned_ms", s->unaligned_ms);
    if (s->product_ms > 0) ft__answer_figure(out, "share", s->tensor_ms / s->product_ms);
    ft__json_close(out);
    if (s->priced_ms > 0) {
        ft__answer_figure(out, "forecast_busy_ms", s->forecast_ms);
        ft__answer_figure(out, "forecast_of_ms", s->priced_ms);
    }
    add_gaps(out, b);
}

static void add_elsewhere(ft_text *out, const ft_trace_report *s)
{
    ft__json_member_list(out, "forecasts");
    for (int i = 0; i < s->elsewhere_count; i++) {
        const ft_elsewhere *e = &s->elsewhere[i];
        ft__json_open(out);
        ft__json_member_text(out, "gpu", e->device.name);
        ft__answer_word(out, "how", !s->kernels ? "operators" : e->here ? "shapes" : "ratio");
        ft__answer_figure(out, "step_ms", e->step_ms);
        ft__answer_figure(out, "low_ms", e->low_ms);
        ft__answer_figure(out, "high_ms", e->high_ms);
        if (e->bare_ms > 0) ft__answer_figure(out, "bare_step_ms", e->bare_ms);
        ft__answer_figure(out, "busy_ms", e->busy_ms);
        ft__answer_figure(out, "idle_ms", e->idle_ms);
        if (e->host_ms > 0) ft__answer_figure(out, "host_ms", e->host_ms);
        if (s->kernels && e->step_ms > 0) ft__answer_figure(out, "speedup", s->busy.step_ms / e->step_ms);
        ft__answer_figure(out, "guessed", e->guessed);
        if (e->instead) ft__json_member_flag(out, "other_formats", true);
        ft__json_member_open(out, "classes");
        for (int c = 0; c < FT_CALLED_CLASSES; c++) {
            if (!(e->class_ms[c] > 0)) continue;
            char key[48];
            snprintf(key, sizeof key, "%s_ms", ft__called_class_name((ft_called_class)c));
            ft__json_member_number(out, key, e->class_ms[c], 6);
        }
        ft__json_close(out);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

void ft__answer_trace(ft_text *out, const json_t *id, const ft_trace_report *s)
{
    const ft_record *r = &s->record;
    ft__answer_begin(out, id);
    ft__answer_word(out, "gpu", s->device_known ? s->device.name : "");
    ft__answer_word(out, "recorded_on", r->gpu_name);
    ft__answer_figure(out, "events", (double)r->events);
    ft__answer_figure(out, "operators_seen", (double)r->op_count);
    ft__answer_figure(out, "ranks", r->ranks > 0 ? (double)r->ranks : -1);
    if (r->broken[0]) ft__json_member_flag(out, "partial", true);
    if (s->host && !s->kernels) ft__answer_word(out, "host", s->host->name);
    if (s->kernels)
        add_busy(out, s);
    else if (s->elsewhere_count > 0) { /* a forecast from operators alone answers as a step does */
        ft__answer_figure(out, "step_ms", s->elsewhere[0].step_ms);
        ft__answer_figure(out, "low_ms", s->elsewhere[0].low_ms);
        ft__answer_figure(out, "high_ms", s->elsewhere[0].high_ms);
        ft__answer_figure(out, "busy_ms", s->elsewhere[0].busy_ms);
    }
    if (s->elsewhere_count > 0) add_elsewhere(out, s);
    if (s->kernels) add_groups(out, s);
    ft__answer_lines(out, "warnings", s->warnings.length ? s->warnings.at : "");
    ft__json_close(out);
}
