/* page_serve.c: distributions of TTFT, TPOT and whole requests, the engine's course, and every figure in a table. */
#include "report/html/page_serve.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/html/page.h"
#include "report/text/serve_screen.h"

enum { POINTS = 60 };

typedef struct distribution {
    const char *name;
    const ft_tally *t;
    double x[POINTS], y[POINTS];
} distribution;

static void fill(distribution *d)
{
    for (int i = 0; i < POINTS; i++) {
        double share = (i + 0.5) / POINTS;
        d->x[i] = ft__tally_quantile(d->t, share);
        d->y[i] = 100 * share;
    }
}

/* `limit`: an objective of the first; 0: none. */
static bool draw_shares(ft_text *out, const ft_frame *f, const char *id, const char *title, distribution *of,
                        size_t count, double limit)
{
    char objective[48];
    ft__page_objective(limit, objective);
    ft_curves c = {.id = id,
                   .title = title,
                   .x_name = "ms",
                   .y_name = "% of requests",
                   .log_x = true,
                   .at = limit > 0 ? &limit : NULL,
                   .at_name = objective};
    for (size_t i = 0; i < count; i++) {
        if (of[i].t->count <= 0) continue;
        fill(&of[i]);
        c.curve[c.count++] = (ft_curve){.name = of[i].name, .x = of[i].x, .y = of[i].y, .count = POINTS};
    }
    return c.count == 0 || ft__svg_curves(out, f, &c);
}

static bool draw_times(ft_text *out, const ft_frame *f, const ft_serving *s, bool tokens)
{
    const ft_outcome *o = s->out;
    distribution whole[] = {{.name = "first token", .t = &o->ttft}, {.name = "whole request", .t = &o->e2e}};
    distribution each[] = {{.name = "mean of a request", .t = &o->tpot}, {.name = "every gap", .t = &o->itl}};
    return tokens ? draw_shares(out, f, "tokens", "Time per output token", each, 2, s->scene.slo_tpot_ms)
                  : draw_shares(out, f, "waits", "Time to the first token and to the last", whole, 2,
                                s->scene.slo_ttft_ms);
}

static bool draw_course(ft_text *out, const ft_frame *f, const ft_serving *s, bool cache)
{
    const ft_course *k = &s->out->course;
    double x[FT_COURSE], a[FT_COURSE], b[FT_COURSE];
    if (k->count < 2) return true;
    for (int i = 0; i < k->count; i++) {
        x[i] = k->at[i].ms / 1e3;
        a[i] = cache ? 100 * k->at[i].cache_share : k->at[i].waiting;
        b[i] = k->at[i].running;
    }
    size_t count = (size_t)k->count;
    ft_curves c = {.id = cache ? "cache" : "queue",
                   .title = cache ? "The cache over time" : "Requests over time",
                   .x_name = "s",
                   .y_name = cache ? "% of the cache" : "requests",
                   .curve = {{.name = cache ? "used" : "waiting", .x = x, .y = a, .count = count, .no_dots = true},
                             {.name = "running", .x = x, .y = b, .count = count, .no_dots = true}},
                   .count = cache ? 1 : 2};
    return ft__svg_curves(out, f, &c);
}

bool ft__serving_has(const ft_serving *s, ft_serving_picture what)
{
    if (what == FT_SERVING_WAITS) return s->stable && s->out->e2e.count > 0;
    if (what == FT_SERVING_TOKENS) return s->out->tpot.count > 0 || s->out->itl.count > 0;
    return s->out->course.count >= 2;
}

bool ft__svg_serving(ft_text *out, const ft_frame *f, const ft_serving *s, ft_serving_picture what)
{
    if (what == FT_SERVING_WAITS || what == FT_SERVING_TOKENS) return draw_times(out, f, s, what == FT_SERVING_TOKENS);
    return draw_course(out, f, s, what == FT_SERVING_CACHE);
}

bool ft__picture_serve(ft_text *out, const ft_frame *f, const ft_serving *s)
{
    return ft__svg_serving(out, f, s, s->stable ? FT_SERVING_WAITS : FT_SERVING_TOKENS);
}

static void time_row(ft_page_table *t, const char *name, const ft_tally *of, const ft_bounds_ms *b)
{
    static const double shares[] = {0.5, 0.9, 0.95, 0.99};
    if (of->count <= 0) return;
    ft__page_table_cell(t, name);
    ft__page_table_figure(t, ft__tally_mean(of), 4);
    ft__page_table_figure(t, b->low, 4);
    ft__page_table_figure(t, b->high, 4);
    for (size_t i = 0; i < 4; i++) ft__page_table_figure(t, ft__tally_quantile(of, shares[i]), 4);
}

static void times(ft_text *out, const ft_serving *s)
{
    static const char *const head[] = {"ms", "mean", "low", "high", "p50", "p90", "p95", "p99"};
    const ft_outcome *o = s->out;
    ft_page_table t;
    ft__page_table_open(&t, out, "times", "lrrrrrrr", head);
    if (s->stable) time_row(&t, "TTFT", &o->ttft, &s->ttft);
    time_row(&t, "TPOT", &o->tpot, &s->tpot);
    time_row(&t, "ITL", &o->itl, &s->itl);
    if (s->stable) time_row(&t, "E2E", &o->e2e, &s->e2e);
    ft__page_table_close(&t);
}

static void figures(ft_text *out, const ft_serving *s)
{
    const ft_outcome *o = s->out;
    ft_text a = {.cap = 256}, b = {.cap = 256};
    ft__page_figures(out);
    ft__add_figure(&a, ft__serving_requests_per_s(s), 4);
    ft__text_add(&a, " requests/s");
    ft__text_add(&b, s->stable ? "" : "the most that is served: more come");
    ft__page_figure(out, s->stable ? NULL : "bad", "throughput", a.at, b.at ? b.at : "");
    ft__markup_reset(out, &a);
    ft__markup_reset(out, &b);
    ft__add_figure(&a, ft__serving_tokens_per_s_per_gpu(s), 4);
    ft__text_add(&a, " tokens/s");
    ft__text_addf(&b, "on each of %" PRId64 " GPU%s", s->gpus, s->gpus == 1 ? "" : "s");
    ft__page_figure(out, NULL, "generated", a.at, b.at);
    ft__page_figure(out, NULL, "bound by", ft__serving_bound_words[s->bound], "");
    ft__markup_reset(out, &a);
    ft__markup_reset(out, &b);
    ft__add_percent(&a, o->peak_tokens / s->policy.capacity);
    ft__text_addf(&b, "of %.0f tokens; %" PRId64 " preemptions", s->policy.capacity, o->preemptions);
    ft__page_figure(out, NULL, "cache at most", a.at, b.at);
    if (s->energy.joules > 0) {
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__add_figure(&a, ft__serving_joules_per_token(s), 3);
        ft__text_add(&a, " J/token");
        ft__add_figure(&b, s->energy.watts, 3);
        ft__text_add(&b, " W for each GPU");
        ft__page_figure(out, NULL, "energy", a.at, b.at);
    }
    if (s->device->price_usd_per_hour > 0) {
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__text_add(&a, "$");
        ft__add_figure(&a, ft__serving_usd_per_million(s), 3);
        ft__text_addf(&b, "for a million tokens, at $%g an hour of a GPU", s->device->price_usd_per_hour);
        ft__page_figure(out, NULL, "cost", a.at, b.at);
    }
    if (s->slo_share > 0) {
        ft__markup_reset(out, &a);
        ft__markup_reset(out, &b);
        ft__add_percent(&a, o->requests > 0 ? o->good / o->requests : 0);
        ft__text_addf(&b, "of the requests meet the objectives, of %g %%", 100 * s->slo_share);
        ft__page_figure(out, s->slo_met ? NULL : "bad", "good", a.at, b.at);
    }
    ft__page_figures_end(out);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static bool twice(ft_text *out, const ft_serving *s, ft_serving_picture what)
{
    if (!ft__serving_has(s, what)) return true;
    return ft__svg_serving(out, &ft__frame_wide, s, what) && ft__svg_serving(out, &ft__frame_narrow, s, what);
}

bool ft__page_serve(ft_text *out, const ft_serving *s)
{
    static const ft_style plain = {.unicode = true, .width = 100000};
    ft_text title = {.cap = 65536};
    ft__screen_serve_title(&title, &plain, s);
    ft__page_open_as(out, title.at ? title.at : "");
    ft__text_drop(&title, out);
    figures(out, s);
    ft__page_warnings(out, s->warnings.at);
    ft__page_section(out, "times", "What clients see",
                     s->stable ? "" : "Requests come faster than they are served: TTFT and E2E have no mean.");
    times(out, s);
    bool drawn = twice(out, s, FT_SERVING_WAITS) && twice(out, s, FT_SERVING_TOKENS);
    ft__page_section_end(out);
    ft__page_section(out, "course", "What the engine does", "");
    drawn = drawn && twice(out, s, FT_SERVING_QUEUE) && twice(out, s, FT_SERVING_CACHE);
    ft__page_section_end(out);
    ft__page_close(out);
    return drawn && !out->failed;
}
