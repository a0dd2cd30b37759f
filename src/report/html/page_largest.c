/* page_largest.c: the largest model of a family as a page: its shape, what fills the memory, its step. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "report/html/page.h"
#include "report/html/page_compare.h"
#include "report/html/page_parts.h"
#include "report/text/lines.h"

static const double gib = 1073741824.0;

/* This one, and the same with one layer more, against what a GPU has. */
static bool memory_picture(ft_text *out, const ft_frame *f, const ft_largest *r)
{
    static const ft_key keys[3] = {
        {"f0", "weights, gradients, optimizer"}, {"f3", "the rest"}, {"overhead", "too much"}};
    static const ft_key serving[3] = {{"f0", "weights"}, {"f3", "cache and the rest"}, {"overhead", "too much"}};
    char remarks[2][64];
    double capacity = r->view.step->memory.capacity_bytes, rest = r->need_bytes - r->state_bytes;
    double more = fmax(r->next_parameters / r->parameters, 1) * r->state_bytes, next = capacity + r->next_short_bytes;
    snprintf(remarks[0], sizeof remarks[0], "%.4g of %.4g GiB", r->need_bytes / gib, capacity / gib);
    snprintf(remarks[1], sizeof remarks[1], "%.4g GiB, %.3g short", next / gib, r->next_short_bytes / gib);
    const ft_bar_row rows[2] = {
        {.label = "this model", .remark = remarks[0], .part = {r->state_bytes / gib, rest / gib, 0}},
        {.label = "one layer more",
         .remark = remarks[1],
         .part = {fmin(more, capacity) / gib, fmax(capacity - more, 0) / gib, r->next_short_bytes / gib}},
    };
    return ft__svg_bars(out, f,
                        &(ft_bars){"fits", "What fills the memory", "GiB", r->training ? keys : serving, 3, rows, 2,
                                   fmax(next, capacity) / gib});
}

static void shape_table(ft_text *out, const ft_largest *r)
{
    static const char *const head[] = {"layers", "hidden", "heads", "ffn", "vocabulary", "parameters"};
    const int64_t whole[] = {r->layers, r->hidden, r->heads, r->ffn, r->vocab};
    ft_page_table t;
    ft__page_table_open(&t, out, "shape", "rrrrrr", head);
    for (int i = 0; i < 5; i++) {
        ft__markup_reset(t.out, &t.cell);
        ft__text_addf(&t.cell, "%" PRId64, whole[i]);
        ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
    }
    ft__markup_reset(t.out, &t.cell);
    ft__add_parameters(&t.cell, r->parameters);
    ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
    ft__page_table_close(&t);
}

/* A figure of the top row: both texts are taken and emptied. */
static void figure(ft_text *out, const char *label, ft_text *a, ft_text *b)
{
    ft__page_figure(out, NULL, label, a->at ? a->at : "", b->at ? b->at : "");
    out->failed |= a->failed || b->failed;
    ft__text_empty(a);
    ft__text_empty(b);
}

static void top_figures(ft_text *out, const ft_step_view *v, const ft_largest *r)
{
    ft_text a = {.cap = 512}, b = {.cap = 512};
    ft__page_figures(out);
    ft__add_parameters(&a, r->parameters);
    ft__text_addf(&b, "%" PRId64 " layers of %" PRId64, r->layers, r->hidden);
    figure(out, "parameters", &a, &b);
    ft__add_gib(&a, r->need_bytes);
    ft__text_add(&a, " GiB");
    ft__text_add(&b, "of ");
    ft__add_gib(&b, v->step->memory.capacity_bytes);
    ft__text_addf(&b, " GiB%s", r->gpus > 1 ? " on each GPU" : "");
    figure(out, "memory", &a, &b);
    ft__add_figure(&a, v->step->step_ms, 4);
    ft__text_add(&a, " ms");
    ft__add_figure(&b, v->step->low_ms, 4);
    ft__text_add(&b, " – ");
    ft__add_figure(&b, v->step->high_ms, 4);
    ft__text_add(&b, " ms");
    figure(out, r->training ? "step" : "time per output token", &a, &b);
    ft__add_figure(&a, ft__view_tokens_per_s(v) / (double)ft__view_gpus(v), 4);
    ft__text_add(&b, "MFU ");
    ft__add_percent(&b, v->step->mfu);
    figure(out, "tokens/s per GPU", &a, &b);
    if (r->training && r->days.days > 0) {
        ft__add_figure(&a, r->days.days, 3);
        ft__text_add(&a, " days");
        ft__text_add(&b, "for ");
        ft__add_parameters(&b, r->days.tokens);
        ft__text_add(&b, " tokens");
        figure(out, "training", &a, &b);
    }
    ft__page_figures_end(out);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

bool ft__page_largest(ft_text *out, const ft_largest *r)
{
    const ft_step_view *v = &r->view;
    static const ft_style plain = {.unicode = true, .width = 100000};
    ft_text title = {0};
    ft__largest_title(&title, &plain, r);
    bool drawn = title.at != NULL;
    ft__page_open_as(out, title.at ? title.at : "");
    if (!r->layers) {
        ft__page_section(out, "none", "None", "Not even the smallest of the family fits.");
        ft__page_section_end(out);
    } else {
        top_figures(out, v, r);
        ft__page_warnings(out, v->warnings);
        ft__page_section(out, "shape", "Shape", "Between published models of the family layers follow the width.");
        shape_table(out, r);
        ft__page_section_end(out);
        ft__page_section(out, "memory", "What fills the memory",
                         r->gpus == 1  ? ""
                         : r->training ? "On each GPU, states and parameters sharded over all of them (ZeRO-3)."
                                       : "On each GPU, layers cut by tensor over all of them.");
        drawn = drawn && memory_picture(out, &ft__frame_wide, r) && memory_picture(out, &ft__frame_narrow, r);
        ft__page_section_end(out);
        ft__page_section(out, "time", "Where the time goes", "");
        drawn = drawn && ft__svg_phases(out, &ft__frame_wide, v) && ft__svg_phases(out, &ft__frame_narrow, v);
        ft__page_section_end(out);
        ft__page_section(out, "layers", "Layers and classes", "By what limits them.");
        drawn = drawn && ft__svg_classes(out, &ft__frame_wide, v) && ft__svg_classes(out, &ft__frame_narrow, v);
        ft__page_section_end(out);
    }
    ft__page_close(out);
    ft__text_drop(&title, out);
    return drawn && !out->failed;
}
