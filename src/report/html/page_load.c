/* page_load.c: a serving engine over its load: first tokens with the objective that they must keep, and what each GPU
 * makes against what each client gets. Further tokens are the curve of every sweep (page_steps.c). */
#include <stdio.h>
#include <stdlib.h>

#include "report/html/page.h"
#include "request/serve.h"

ft_page_loads ft__loads_of(json_t *const *answers, size_t rows, double *room)
{
    static const char *const keys[] = {"ttft_ms", "tokens_per_s_per_user", "tokens_per_s_per_gpu"};
    ft_serve_request asked;
    ft_error none;
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < rows; i++) room[k * rows + i] = json_number_value(json_object_get(answers[i], keys[k]));
    ft_page_loads loads = {.ttft_ms = room, .per_user = room + rows, .per_gpu = room + 2 * rows};
    if (ft__serve_request_read(json_object_get(answers[0], "request"), &asked, &none) == FT_OK) {
        loads.slo_ttft_ms = asked.slo_ttft_ms;
        loads.slo_tpot_ms = asked.slo_tpot_ms;
    }
    ft__serve_request_free(&asked);
    return loads;
}

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

/* No exponent in the range people read: 10000 ms. */
void ft__page_objective(double ms, char out[48])
{
    snprintf(out, 48, ms < 1000 ? "objective %.4g ms" : "objective %.0f ms", ms);
}

static bool draw_first_tokens(ft_text *out, const ft_frame *f, const ft_page_range *r)
{
    const ft_page_loads *l = r->loads;
    size_t gpus = r->gpu_count < FT_CURVES ? r->gpu_count : FT_CURVES;
    double *at = calloc(2 * gpus * r->count + 1, sizeof *at);
    char objective[48];
    if (!at) return false;
    ft__page_objective(l->slo_ttft_ms, objective);
    ft_curves c = {.id = "ttft",
                   .title = "Time to the first token",
                   .x_name = r->key,
                   .y_name = "TTFT, ms",
                   .log_x = r->count > 2 && r->x[0] > 0,
                   .log_y = true,
                   .limit = l->slo_ttft_ms,
                   .limit_name = objective};
    for (size_t g = 0; g < gpus; g++) {
        double *x = at + 2 * g * r->count, *y = x + r->count;
        size_t n = pick(r, g, NULL, l->ttft_ms, x, y);
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
    ft__page_section(out, "load", "Time to the first token", "");
    for (int i = 0; i < 2; i++) drawn = drawn && draw_first_tokens(out, frames[i], r);
    ft__page_section_end(out);
    ft__page_section(out, "pareto", "GPUs against clients",
                     "More clients make more of a GPU and less for each; up and to the right is better.");
    for (int i = 0; i < 2; i++) drawn = drawn && draw_pareto(out, frames[i], r);
    ft__page_section_end(out);
    return drawn;
}
