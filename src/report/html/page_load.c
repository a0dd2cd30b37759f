/* page_load.c: a serving engine over its load: first tokens and further ones with the objectives that they must keep, and
 * what each GPU makes against what each client gets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/html/page.h"

/* The points of one GPU that have both figures. */
static size_t pick(const ft_page_range *r, size_t gpu, const double *from, const double *to, double *x, double *y)
{
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        size_t k = gpu * r->count + i;
        double at = from ? from[k] : r->x[i];
        if (!(at > 0) || !(to[k] > 0)) continue;
        x[n] = at;
        y[n++] = to[k];
    }
    return n;
}

static bool draw_times(ft_text *out, const ft_frame *f, const ft_page_range *r, bool first)
{
    const ft_page_loads *l = r->loads;
    size_t gpus = r->gpu_count < FT_CURVES ? r->gpu_count : FT_CURVES;
    double *at = calloc(2 * gpus * r->count + 1, sizeof *at), limit = first ? l->slo_ttft_ms : l->slo_tpot_ms;
    char objective[48];
    if (!at) return false;
    snprintf(objective, sizeof objective, "objective %.4g ms", limit);
    ft_curves c = {.id = first ? "ttft" : "tpot",
                   .title = first ? "Time to the first token" : "Time per output token",
                   .x_name = r->key,
                   .y_name = first ? "TTFT, ms" : "TPOT, ms",
                   .log_x = r->count > 2 && r->x[0] > 0,
                   .log_y = first,
                   .limit = limit,
                   .limit_name = objective};
    for (size_t g = 0; g < gpus; g++) {
        double *x = at + 2 * g * r->count, *y = x + r->count;
        size_t n = pick(r, g, NULL, first ? l->ttft_ms : l->tpot_ms, x, y);
        if (n) c.curve[c.count++] = (ft_curve){.name = r->gpus[g], .x = x, .y = y, .count = n};
    }
    bool drawn = !c.count || ft__svg_curves(out, f, &c);
    free(at);
    return drawn;
}

static bool draw_pareto(ft_text *out, const ft_frame *f, const ft_page_range *r)
{
    const ft_page_loads *l = r->loads;
    size_t gpus = r->gpu_count < FT_CURVES ? r->gpu_count : FT_CURVES;
    double *at = calloc(2 * gpus * r->count + 1, sizeof *at);
    if (!at) return false;
    ft_curves c = {.id = "pareto",
                   .title = "What a GPU makes against what a client gets",
                   .x_name = "tokens/s of a client",
                   .y_name = "tokens/s of a GPU"};
    for (size_t g = 0; g < gpus; g++) {
        double *x = at + 2 * g * r->count, *y = x + r->count;
        size_t n = pick(r, g, l->per_user, l->per_gpu, x, y);
        if (n) c.curve[c.count++] = (ft_curve){.name = r->gpus[g], .x = x, .y = y, .count = n};
    }
    bool drawn = !c.count || ft__svg_curves(out, f, &c);
    free(at);
    return drawn;
}

bool ft__page_loads(ft_text *out, const ft_page_range *r)
{
    const ft_frame *frames[] = {&ft__frame_wide, &ft__frame_narrow};
    bool drawn = true;
    ft__page_section(out, "load", "Times over the load",
                     r->loads->slo_ttft_ms > 0 ? "Objectives are drawn across." : "");
    for (int i = 0; i < 2; i++) drawn = drawn && draw_times(out, frames[i], r, true);
    for (int i = 0; i < 2; i++) drawn = drawn && draw_times(out, frames[i], r, false);
    ft__page_section_end(out);
    ft__page_section(out, "pareto", "GPUs against clients",
                     "More clients make more of a GPU and less for each; up and to the right is better.");
    for (int i = 0; i < 2; i++) drawn = drawn && draw_pareto(out, frames[i], r);
    ft__page_section_end(out);
    return drawn;
}
