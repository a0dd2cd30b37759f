/* page_scale.c: scaling as a page: throughput per GPU over the number of GPUs, closed forms beside the timeline. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "memory/verdict.h"
#include "report/html/page.h"
#include "report/html/page_parts.h"
#include "report/text/lines.h"
#include "report/text/step_words.h"

bool ft__picture_scale(ft_text *out, const ft_frame *f, const ft_scale *s)
{
    double at[2][4][FT_SCALE_POINTS];
    bool unfit[2][FT_SCALE_POINTS];
    ft_curves c = {.id = "scaling",
                   .title = s->images ? "Images per second and GPU over GPUs" : "Tokens per second and GPU over GPUs",
                   .x_name = "GPUs",
                   .y_name = s->images ? "images/s per GPU" : "tokens/s per GPU",
                   .log_x = true,
                   .count = 0};
    const ft_scale_point *points[2] = {s->weak, s->strong};
    const size_t counts[2] = {s->weak_count, s->strong_count};
    static const char *const names[2] = {"weak: the batch grows with the GPUs", "strong: the batch stays"};
    for (int k = 0; k < 2; k++) {
        if (counts[k] == 0) continue;
        for (size_t i = 0; i < counts[k]; i++) {
            const ft_scale_point *p = &points[k][i];
            unfit[k][i] = !p->fits;
            at[k][0][i] = (double)p->gpus;
            at[k][1][i] = p->tokens_per_s;
            at[k][2][i] = p->high_ms > 0 ? p->tokens_per_s * p->step_ms / p->high_ms : p->tokens_per_s;
            at[k][3][i] = p->low_ms > 0 ? p->tokens_per_s * p->step_ms / p->low_ms : p->tokens_per_s;
        }
        c.curve[c.count++] = (ft_curve){.name = names[k],
                                        .x = at[k][0],
                                        .y = at[k][1],
                                        .low = at[k][2],
                                        .high = at[k][3],
                                        .count = counts[k],
                                        .unfit = unfit[k]};
    }
    return ft__svg_curves(out, f, &c);
}

static bool parts_picture(ft_text *out, const ft_frame *f, const ft_scale *s)
{
    static const ft_key keys[3] = {
        {"compute", "kernels"}, {"communication", "exposed exchange"}, {"overhead", "pipeline bubble"}};
    ft_bar_row rows[FT_SCALE_POINTS] = {{0}};
    char labels[FT_SCALE_POINTS][32], remarks[FT_SCALE_POINTS][48];
    for (size_t i = 0; i < s->weak_count; i++) {
        const ft_scale_point *p = &s->weak[i];
        double rest = p->step_ms - p->exposed_ms - p->bubble_ms;
        snprintf(labels[i], sizeof labels[i], "%" PRId64 " GPUs", p->gpus);
        snprintf(remarks[i], sizeof remarks[i], "%.0f %% kernels%s", 100 * fmax(rest, 0) / p->step_ms,
                 p->fits ? "" : ", does not fit");
        rows[i] = (ft_bar_row){.label = labels[i],
                               .remark = remarks[i],
                               .part = {rest > 0 ? rest : 0, p->exposed_ms, p->bubble_ms},
                               .unfit = !p->fits};
    }
    return ft__svg_bars(out, f, &(ft_bars){"parts", "A step of the weak curve", "ms", keys, 3, rows, s->weak_count, 0});
}

static void curve_table(ft_text *out, const char *label, const ft_scale *s, const ft_scale_point *points, size_t count)
{
    bool bubbles = false; /* without a pipeline there are none */
    for (size_t i = 0; i < count; i++) bubbles |= points[i].bubble_ms > 0;
    const char *const head[] = {"GPUs",
                                "dp",
                                "batch",
                                "step, ms",
                                "low",
                                "high",
                                s->images ? "images/s/GPU" : "tokens/s/GPU",
                                "efficiency",
                                "MFU",
                                "exposed, ms",
                                bubbles ? "bubble, ms" : "peak, GiB",
                                bubbles ? "peak, GiB" : "fits",
                                "fits"};
    ft_page_table t;
    ft__page_table_open(&t, out, label, bubbles ? "rrrrrrrrrrrrl" : "rrrrrrrrrrrl", head);
    for (size_t i = 0; i < count; i++) {
        const ft_scale_point *p = &points[i];
        const int64_t whole[] = {p->gpus, p->dp, p->global_batch};
        for (int k = 0; k < 3; k++) {
            ft__markup_reset(t.out, &t.cell);
            ft__text_addf(&t.cell, "%" PRId64, whole[k]);
            ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
        }
        ft__page_table_figure(&t, p->step_ms, 4);
        ft__page_table_figure(&t, p->low_ms, 4);
        ft__page_table_figure(&t, p->high_ms, 4);
        ft__page_table_figure(&t, p->tokens_per_s, 4);
        const double shares[] = {p->efficiency, p->mfu};
        for (int k = 0; k < 2; k++) {
            ft__markup_reset(t.out, &t.cell);
            ft__add_percent(&t.cell, shares[k]);
            ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
        }
        ft__page_table_figure(&t, p->exposed_ms, 3);
        if (bubbles) ft__page_table_figure(&t, p->bubble_ms, 3);
        ft__page_table_figure(&t, p->peak_bytes / 1073741824.0, 3);
        ft__page_table_cell(&t, ft__fit_answers[p->verdict]);
    }
    ft__page_table_close(&t);
}

static void knees_table(ft_text *out, const ft_scale *s)
{
    static const char *const head[] = {"layout", "closed form, tokens per GPU", "timeline, tokens per GPU",
                                       "arithmetic reaches", "links reach"};
    ft_page_table t;
    ft__page_table_open(&t, out, "critical batches", "lrrrr", head);
    for (size_t i = 0; i < s->knee_count; i++) {
        ft__page_table_cell(&t, s->knees[i].name);
        ft__page_table_figure(&t, s->knees[i].closed, 4);
        ft__page_table_figure(&t, s->knees[i].timeline, 4);
        const double shares[] = {s->knees[i].math, s->knees[i].wire};
        for (int k = 0; k < 2; k++) {
            ft__markup_reset(t.out, &t.cell);
            if (shares[k] > 0) ft__add_percent(&t.cell, shares[k]);
            ft__page_table_cell(&t, t.cell.length ? t.cell.at : "");
        }
    }
    ft__page_table_close(&t);
}

bool ft__page_curves(ft_text *out, const ft_scale *s)
{
    bool drawn = ft__picture_scale(out, &ft__frame_wide, s) && ft__picture_scale(out, &ft__frame_narrow, s);
    ft__text_add(out, "<h3>Weak scaling</h3>\n");
    curve_table(out, "weak scaling", s, s->weak, s->weak_count);
    if (s->strong_count > 0) {
        ft__text_add(out, "<h3>Strong scaling</h3>\n");
        curve_table(out, "strong scaling", s, s->strong, s->strong_count);
    }
    return drawn;
}

bool ft__page_scale(ft_text *out, const ft_scale *s)
{
    ft_text a = {.cap = 4096}, b = {.cap = 4096};
    ft__add_model_name(&a, s->model);
    ft__text_addf(&a, ": scaling on %s", s->device.title[0] ? s->device.title : s->device.name);
    ft__add_parameters(&b, s->parameters);
    ft__text_addf(
        &b, " parameters, %s, up to %" PRId64 " GPUs: tp %" PRId64 ", pp %" PRId64 ", cp %" PRId64 ", ZeRO %d; %s",
        s->dtype_name, s->gpus, s->parallel.tp, s->parallel.pp, s->parallel.cp, (int)s->parallel.zero, s->understood);
    ft__page_open(out, a.at ? a.at : s->model, b.at ? b.at : "");
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
    ft__page_warnings(out, s->warnings.at);
    ft__page_section(out, "curve", "Throughput over GPUs", "Bands are where the truth should lie.");
    bool drawn = ft__page_curves(out, s);
    ft__page_section_end(out);
    ft__page_section(out, "parts", "Where the time goes", "Of a step of the weak curve.");
    drawn = drawn && parts_picture(out, &ft__frame_wide, s) && parts_picture(out, &ft__frame_narrow, s);
    ft__page_section_end(out);
    if (s->knee_count) {
        ft__page_section(out, "knees", "Critical batch",
                         "Tokens per GPU below which exchanges take longer than the arithmetic that hides them.");
        knees_table(out, s);
        ft__page_section_end(out);
    }
    ft__page_close(out);
    return drawn && !out->failed;
}
