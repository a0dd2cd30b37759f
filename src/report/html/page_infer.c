/* page_infer.c: inference as a page: one step and throughput over batches, for every length. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/html/page.h"
#include "report/html/page_parts.h"
#include "report/text/lines.h"
#include "report/text/step_screen.h"

typedef ft_infer_cell grid[FT_INFER_SIDE][FT_INFER_SIDE];

static bool draw_grid(ft_text *out, const ft_frame *f, const ft_infer *r, const grid cells, const char *id,
                      const char *title, bool rate)
{
    double at[FT_INFER_SIDE][4][FT_INFER_SIDE];
    char names[FT_INFER_SIDE][40];
    ft_curves c = {.id = id,
                   .title = title,
                   .x_name = "batch",
                   .log_x = true,
                   .log_y = true,
                   .y_name = !rate            ? "ms"
                             : r->has_context ? "tokens/s"
                                              : "images/s"};
    for (size_t s = 0; s < r->seq_count && c.count < FT_CURVES; s++) {
        size_t n = 0;
        for (size_t b = 0; b < r->batch_count; b++) {
            const ft_infer_cell *cell = &cells[s][b];
            if (!(cell->ms > 0) || !cell->fits) continue; /* what does not fit has no speed */
            at[s][0][n] = (double)r->batches[b];
            at[s][1][n] = rate ? cell->tokens_per_s : cell->ms;
            at[s][2][n] = rate ? cell->tokens_per_s * cell->ms / cell->high_ms : cell->low_ms;
            at[s][3][n++] = rate ? cell->tokens_per_s * cell->ms / cell->low_ms : cell->high_ms;
        }
        if (!n) continue;
        if (r->has_context)
            snprintf(names[s], sizeof names[s], "%" PRId64 " tokens", r->seqs[s]);
        else
            snprintf(names[s], sizeof names[s], "images");
        c.curve[c.count++] =
            (ft_curve){.name = names[s], .x = at[s][0], .y = at[s][1], .low = at[s][2], .high = at[s][3], .count = n};
    }
    return ft__svg_curves(out, f, &c);
}

bool ft__picture_infer(ft_text *out, const ft_frame *f, const ft_infer *r, bool rate)
{
    return draw_grid(out, f, r, r->generates ? r->decode : r->prefill, rate ? "rates" : "steps",
                     r->generates ? rate ? "Generated tokens per second" : "Time per output token"
                     : rate       ? "Rate of forward passes"
                                  : "Time of a forward pass",
                     rate);
}

static void grid_table(ft_text *out, const ft_infer *r, const grid cells, const char *label)
{
    static const char *const head[] = {"tokens", "batch", "ms", "low", "high", "per second", "fits"};
    ft_page_table t;
    ft__page_table_open(&t, out, label, "rrrrrrl", head);
    for (size_t s = 0; s < r->seq_count; s++)
        for (size_t b = 0; b < r->batch_count; b++) {
            const ft_infer_cell *c = &cells[s][b];
            const int64_t whole[] = {r->seqs[s], r->batches[b]};
            for (int k = 0; k < 2; k++) {
                ft__markup_reset(t.out, &t.cell);
                if (k || r->has_context) ft__text_addf(&t.cell, "%" PRId64, whole[k]);
                ft__page_table_cell(&t, t.cell.length ? t.cell.at : "");
            }
            ft__page_table_figure(&t, c->ms, 4);
            ft__page_table_figure(&t, c->low_ms, 4);
            ft__page_table_figure(&t, c->high_ms, 4);
            ft__page_table_figure(&t, c->tokens_per_s, 4);
            ft__page_table_cell(&t, c->fits ? "yes" : "no");
        }
    ft__page_table_close(&t);
}

static void summary(ft_text *out, const ft_step_view *v, const ft_infer *r)
{
    ft_text a = {.cap = 1024}, b = {.cap = 1024};
    ft__page_figures(out);
    ft__add_figure(&a, v->step->step_ms, 4);
    ft__text_add(&a, " ms");
    ft__add_figure(&b, v->step->low_ms, 4);
    ft__text_add(&b, " – ");
    ft__add_figure(&b, v->step->high_ms, 4);
    ft__text_add(&b, " ms, ");
    ft__add_confidence(&b, v->quantile);
    char what[64];
    snprintf(what, sizeof what, "%s, batch %" PRId64, r->generates ? "one token" : "forward pass", r->batches[0]);
    ft__page_figure(out, NULL, what, a.at, b.at);
    ft__page_figure(out, NULL, "bound by", ft__bound_words(v->step->bound), "");
    ft__markup_reset(out, &a);
    ft__markup_reset(out, &b);
    ft__add_gib(&a, r->weights_bytes);
    ft__text_add(&a, " GiB");
    ft__add_gib(&b, v->step->memory.capacity_bytes);
    ft__text_add(&b, " GiB on the GPU");
    ft__page_figure(out, v->step->memory.fits ? NULL : "bad", "weights", a.at, b.at);
    if (r->cache_tokens > 0) {
        ft__markup_reset(out, &a);
        ft__markup_reset(out, &b);
        ft__text_addf(&a, "%.0f tokens", r->cache_tokens);
        ft__add_figure(&b, r->kv_bytes_per_token / 1024, 4);
        ft__text_addf(&b, " KiB each in %s", ft_dtype_name(v->work->kv_dtype));
        ft__page_figure(out, NULL, "the cache holds", a.at, b.at);
    }
    if (r->offline.batch > 0) {
        ft__markup_reset(out, &a);
        ft__markup_reset(out, &b);
        ft__add_figure(&a, r->offline.tokens_per_s, 4);
        ft__text_add(&a, " tokens/s");
        ft__text_addf(&b, "prompts of %" PRId64 ", answers of %" PRId64 ", batch %" PRId64, r->offline.isl,
                      r->offline.osl, r->offline.batch);
        ft__page_figure(out, NULL, "offline", a.at, b.at);
    }
    ft__page_figures_end(out);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

bool ft__page_infer(ft_text *out, const ft_infer *r)
{
    const ft_step_view *v = &r->title;
    static const ft_style plain = {.unicode = true, .width = 100000};
    ft_text t = {.cap = 65536}, words = {.cap = 65536};
    bool drawn = true;
    ft__screen_step_title(&t, &plain, v);
    char *end = t.at ? strchr(t.at, '\n') : NULL;
    if (end) *end = '\0';
    ft__add_infer_words(&words, r);
    ft__text_add(&words, r->has_context ? "; over batches and lengths" : "; over batches");
    ft__page_open(out, t.at ? t.at : v->model, words.at ? words.at : "");
    ft__text_drop(&t, out);
    ft__text_drop(&words, out);
    summary(out, v, r);
    ft__page_warnings(out, v->warnings);
    drawn = ft__page_advice(out, v);
    ft__page_section(out, "step", r->generates ? "Time per output token" : "Forward pass",
                     "Bands are where the truth should lie; what does not fit is left out.");
    for (int i = 0; i < 2; i++)
        drawn = drawn && ft__picture_infer(out, i ? &ft__frame_narrow : &ft__frame_wide, r, false);
    ft__page_section_end(out);
    ft__page_section(out, "rate", r->generates ? "Generated tokens per second" : "Rate", "");
    for (int i = 0; i < 2; i++)
        drawn = drawn && ft__picture_infer(out, i ? &ft__frame_narrow : &ft__frame_wide, r, true);
    ft__page_details(out, "Figures");
    grid_table(out, r, r->generates ? r->decode : r->prefill, "steps");
    ft__page_details_end(out);
    ft__page_section_end(out);
    if (r->generates) {
        ft__page_section(out, "prefill", "Time to the first token", "");
        for (int i = 0; i < 2; i++)
            drawn = drawn && draw_grid(out, i ? &ft__frame_narrow : &ft__frame_wide, r, r->prefill, "prefills",
                                       "Time to the first token", false);
        ft__page_details(out, "Figures of prefill");
        grid_table(out, r, r->prefill, "prefill");
        ft__page_details_end(out);
        ft__page_section_end(out);
    }
    ft__page_section(out, "roofline", "Roofline",
                     r->generates ? "Every kernel of one decoding step, first batch and length." : "");
    drawn = drawn && ft__svg_step_roofline(out, &ft__frame_wide, v) && ft__svg_step_roofline(out, &ft__frame_narrow, v);
    ft__page_section_end(out);
    ft__page_close(out);
    return drawn && !out->failed;
}
