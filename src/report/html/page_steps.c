/* page_steps.c: pages of several forecasts: the same step on several GPUs, any command over a range of one number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/verdict.h"
#include "report/html/page.h"
#include "report/text/lines.h"
#include "report/text/step_screen.h"
#include "report/text/step_words.h"

/* -- GPUs -------------------------------------------------------------------------------------- */

bool ft__picture_steps(ft_text *out, const ft_frame *f, const ft_step_case *cases, size_t count)
{
    ft_bar_row *rows = calloc(count + 1, sizeof *rows);
    char(*remarks)[48] = calloc(count + 1, sizeof *remarks);
    for (size_t i = 0; rows && remarks && i < count; i++) {
        const ft_step *s = &cases[i].step;
        ft_text t = {.cap = sizeof remarks[i]};
        ft__add_figure(&t, s->step_ms, 4);
        ft__text_addf(&t, " ms%s", s->memory.fits ? "" : ", does not fit");
        snprintf(remarks[i], sizeof remarks[i], "%s", t.at ? t.at : "");
        ft__text_drop(&t, out);
        rows[i] = (ft_bar_row){.label = cases[i].device.name, .remark = remarks[i], .unfit = !s->memory.fits};
        for (int b = 0; b < 4; b++) rows[i].part[b] = fmax(s->regime[b], 0) * s->step_ms;
    }
    bool drawn = rows && remarks &&
                 ft__svg_bars(out, f, &(ft_bars){"gpus", "Time by GPU", "ms", ft__bound_keys, 4, rows, count, 0});
    free(rows);
    free(remarks);
    return drawn;
}

static bool step_ranges(ft_text *out, const ft_frame *f, const ft_step_case *cases, size_t count)
{
    ft_range_row *rows = calloc(count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < count; i++)
        rows[i] = (ft_range_row){cases[i].device.name, cases[i].step.step_ms, cases[i].step.low_ms,
                                 cases[i].step.high_ms};
    bool drawn = rows && ft__svg_ranges(out, f, "intervals", "How sure", rows, count);
    free(rows);
    return drawn;
}

static void percent_cell(ft_page_table *t, double share)
{
    ft__markup_reset(t->out, &t->cell);
    ft__add_percent(&t->cell, share);
    ft__page_table_cell(t, t->cell.at ? t->cell.at : "");
}

static void steps_table(ft_text *out, const ft_step_case *cases, size_t count)
{
    /* Times stand beside the bars, intervals under them. */
    static const char *const head[] = {"GPU",       "speed", "tokens/s per GPU", "MFU",
                                       "peak, GiB", "fits",  "bound by",         "days to train"};
    const bool trains = count && cases[0].days.tokens > 0;
    ft_page_table t;
    ft__page_table_open(&t, out, "figures", trains ? "lrrrrllr" : "lrrrrll", head);
    for (size_t i = 0; i < count; i++) {
        const ft_step *s = &cases[i].step;
        ft__page_table_cell(&t, cases[i].device.name);
        ft__markup_reset(t.out, &t.cell);
        ft__text_addf(&t.cell, "%.2f×", cases[0].step.step_ms / s->step_ms);
        ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
        ft__page_table_figure(&t, s->tokens_per_s, 4);
        percent_cell(&t, s->mfu);
        ft__page_table_figure(&t, s->memory.peak_bytes / 1073741824.0, 3);
        ft__page_table_cell(&t, ft__fit_answers[s->memory.verdict]);
        ft__page_table_cell(&t, ft__step_bound_words(s));
        if (trains) ft__page_table_figure(&t, cases[i].days.days, 3);
    }
    ft__page_table_close(&t);
}

static const ft_text *warnings_at(const void *cases, size_t i, const char **name)
{
    const ft_step_case *c = (const ft_step_case *)cases + i;
    *name = c->device.name;
    return &c->warnings;
}

bool ft__page_steps(ft_text *out, const char *title, const ft_step_case *cases, size_t count, double quantile)
{
    ft_text a = {.cap = 1024}, b = {.cap = 1024};
    size_t fastest = 0;
    for (size_t i = 1; i < count; i++) {
        const ft_step *s = &cases[i].step, *best = &cases[fastest].step;
        if (s->memory.fits != best->memory.fits ? s->memory.fits : s->step_ms < best->step_ms) fastest = i;
    }
    ft__page_open_as(out, title);
    ft__page_figures(out);
    ft__add_figure(&a, cases[fastest].step.step_ms, 4);
    ft__text_add(&a, " ms");
    ft__add_figure(&b, cases[fastest].step.low_ms, 4);
    ft__text_add(&b, " – ");
    ft__add_figure(&b, cases[fastest].step.high_ms, 4);
    ft__text_add(&b, " ms, ");
    ft__add_confidence(&b, quantile);
    ft__page_figure(out, NULL, cases[fastest].step.memory.fits ? "fastest that fits" : "fastest; none fits", a.at,
                    b.at);
    ft__page_figure(out, NULL, "on", cases[fastest].device.name, cases[fastest].device.title);
    ft__page_figures_end(out);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
    ft__page_warned(out, warnings_at, cases, count);
    ft__page_section(out, "picture", "GPUs side by side", "By what limits the step.");
    bool drawn = ft__picture_steps(out, &ft__frame_wide, cases, count) &&
                 ft__picture_steps(out, &ft__frame_narrow, cases, count);
    steps_table(out, cases, count);
    ft__page_section_end(out);
    ft__page_section(out, "sure", "How sure", "Where the truth should lie.");
    drawn = drawn && step_ranges(out, &ft__frame_wide, cases, count) &&
            step_ranges(out, &ft__frame_narrow, cases, count);
    ft__page_section_end(out);
    ft__page_close(out);
    return drawn && !out->failed;
}

/* -- a range ----------------------------------------------------------------------------------- */

static bool doubles(const ft_page_range *r)
{
    return r->count >= 3 && r->x[0] >= 1 && r->x[r->count - 1] > 1.5 * r->x[r->count - 2];
}

bool ft__picture_range(ft_text *out, const ft_frame *f, const ft_page_range *r)
{
    size_t gpus = r->gpu_count < FT_CURVES ? r->gpu_count : FT_CURVES;
    double *at = calloc(4 * gpus * r->count + 1, sizeof *at);
    if (!at) return false;
    bool band = gpus == 1 && r->low && r->high, *unfit = calloc(gpus * r->count + 1, sizeof *unfit);
    size_t fits = 0; /* which column says it */
    while (fits < r->columns && strcmp(r->head[fits], "fits") != 0) fits++;
    if (!unfit) {
        free(at);
        return false;
    }
    ft_curves c = {.id = "sweep",
                   .title = r->title,
                   .x_name = r->key,
                   .y_name = r->figure,
                   .log_x = doubles(r),
                   .log_y = doubles(r)};
    char objective[48];
    if (r->loads && !strncmp(r->figure, "TPOT", 4)) {
        ft__page_objective(r->loads->slo_tpot_ms, objective);
        c.limit = r->loads->slo_tpot_ms, c.limit_name = objective;
    }
    for (size_t g = 0; g < gpus; g++) {
        double *x = at + 4 * g * r->count, *y = x + r->count, *low = y + r->count, *high = low + r->count;
        size_t n = 0;
        for (size_t i = 0; i < r->count; i++) {
            size_t k = g * r->count + i;
            if (!isfinite(r->y[k])) continue; /* where the answer was no, there is nothing to draw */
            x[n] = r->x[i];
            y[n] = r->y[k];
            low[n] = band && isfinite(r->low[k]) ? r->low[k] : r->y[k];
            high[n] = band && isfinite(r->high[k]) ? r->high[k] : r->y[k];
            const char *said = fits < r->columns ? r->cells[k * r->columns + fits] : NULL;
            unfit[g * r->count + n] = said && !strcmp(said, "no");
            n++;
        }
        c.curve[c.count++] = (ft_curve){.name = r->gpus[g],
                                        .x = x,
                                        .y = y,
                                        .low = band ? low : NULL,
                                        .high = band ? high : NULL,
                                        .count = n,
                                        .unfit = unfit + g * r->count};
    }
    bool drawn = ft__svg_curves(out, f, &c);
    free(at);
    free(unfit);
    return drawn;
}

bool ft__page_range(ft_text *out, const ft_page_range *r)
{
    enum { MOST = 24 };
    char columns[MOST + 1] = "lr";
    const char *head[MOST] = {"GPU", r->key};
    size_t shown = r->columns < MOST - 2 ? r->columns : MOST - 2;
    for (size_t i = 0; i < shown; i++) head[i + 2] = r->head[i], columns[i + 2] = r->align[i];
    ft_text words = {.cap = 65536};
    for (size_t g = 0; g < r->gpu_count; g++) ft__text_addf(&words, "%s%s", g ? ", " : "on ", r->gpus[g]);
    if (r->fixed && *r->fixed) ft__text_addf(&words, "; %s", r->fixed);
    ft__page_open(out, r->title, words.at ? words.at : "");
    ft__text_drop(&words, out);
    ft__page_warnings(out, r->warnings);
    bool band = r->gpu_count == 1 && r->low;
    ft__page_section(out, "curve", r->heading, band ? "The band is where the truth should lie." : "");
    bool drawn = ft__picture_range(out, &ft__frame_wide, r) && ft__picture_range(out, &ft__frame_narrow, r);
    ft__page_section_end(out);
    if (r->loads) drawn = ft__page_loads(out, r) && drawn;
    ft__page_section(out, "figures", "Figures", "");
    ft_page_table t;
    bool plain = ft__points_plain(r->x, r->count);
    ft__page_table_open(&t, out, "figures", columns, head);
    for (size_t k = 0; k < r->gpu_count * r->count; k++) {
        ft__page_table_cell(&t, r->gpus[k / r->count]);
        ft__markup_reset(t.out, &t.cell);
        ft__add_point(&t.cell, r->x[k % r->count], plain);
        ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
        for (size_t i = 0; i < shown; i++) {
            const char *cell = r->cells[k * r->columns + i];
            ft__page_table_cell(&t, cell ? cell : "");
        }
    }
    ft__page_table_close(&t);
    ft__page_section_end(out);
    ft__page_close(out);
    return drawn && !out->failed;
}
