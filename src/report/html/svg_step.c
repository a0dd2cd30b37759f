/* svg_step.c: a step by what it does, by layer, by class of kernel, and how sure its times are. */
#include <stdlib.h>
#include <string.h>

#include "report/html/svg_pictures.h"
#include "report/text/style.h"

enum { SURE_KERNELS = 8, SHOWN_LAYERS = 24 };

const ft_verdicts *ft__view_verdicts(const ft_step_view *v)
{
    if (v->advised) return &v->advised->verdicts;
    ft_verdicts *made = ft__arena_alloc(v->arena, sizeof *made);
    ft_change now = {.arch = v->arch, .work = *v->work, .device = v->device};
    ft_error ignored;
    if (v->parallel)
        now.parallel = *v->parallel;
    else
        now.parallel = (ft_parallel){.dp = 1, .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1};
    if (!made || ft__verdicts_of(&now, v->graph, v->step, v->arena, made, &ignored) != FT_OK) return NULL;
    return made;
}

/* "12.3 ms, 45 %", and its rate where it has arithmetic, in the arena. */
static const char *remark(const ft_step_view *v, double ms, double flops)
{
    ft_text t = {.cap = 256};
    ft__add_ms(&t, ms, 3);
    ft__text_add(&t, ", ");
    ft__add_percent(&t, v->step->step_ms > 0 ? ms / v->step->step_ms : 0);
    if (flops > 0 && ms > 0) {
        ft__text_add(&t, ", ");
        ft__add_figure(&t, flops / ms / 1e9, 3);
        ft__text_add(&t, " TFLOP/s");
    }
    const char *kept = t.at && !t.failed ? ft__arena_copy(v->arena, t.at, t.length) : NULL;
    ft__text_free(&t);
    return kept;
}

/* Colours are those of the passes in the timeline. */
bool ft__svg_phases(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    static const ft_key unnamed = {"overhead", NULL};
    const ft_step *s = v->step;
    const struct {
        const char *name, *look;
        double ms;
    } all[] = {{"forward", "forward", s->phase_ms[FT_FORWARD]},
               {"forward again", "again", s->phase_ms[FT_RECOMPUTE]},
               {"backward", "backward", s->phase_ms[FT_BACKWARD]},
               {"optimizer", "update", s->phase_ms[FT_UPDATE]},
               {"exposed exchanges", "communication", s->comm_exposed_ms},
               {"pipeline bubble", "f3", s->bubble_ms},
               {"GPU waits for the host", "overhead", s->idle_ms},
               {"between kernels", "overhead", ft__between_ms(s)}};
    enum { PARTS = sizeof all / sizeof *all };
    ft_bar_row rows[PARTS] = {{0}};
    size_t count = 0;
    for (int i = 0; i < PARTS; i++) {
        if (!(all[i].ms > 0.0005 * s->step_ms)) continue;
        rows[count] = (ft_bar_row){.label = all[i].name, .look = all[i].look, .part = {all[i].ms}};
        rows[count].remark = remark(v, all[i].ms, 0);
        if (!rows[count++].remark) return false;
    }
    return ft__svg_bars(out, f,
                        &(ft_bars){"phases", "Where the time goes", "ms", &unnamed, 1, rows, count, s->step_ms});
}

bool ft__svg_layers(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    const ft_verdicts *verdicts = ft__view_verdicts(v);
    if (!verdicts) return false;
    size_t count = verdicts->layer_count < SHOWN_LAYERS ? verdicts->layer_count : SHOWN_LAYERS;
    ft_bar_row *rows = calloc(count + 1, sizeof *rows);
    if (!rows) return false;
    for (size_t i = 0; i < count; i++) {
        const ft_verdict *l = &verdicts->layers[i];
        rows[i].label = l->name && *l->name ? l->name : "other";
        rows[i].remark = remark(v, l->ms, 0);
        if (!rows[i].remark) out->failed = true;
        for (int b = 0; b < 4; b++) rows[i].part[b] = l->ms * l->share[b];
    }
    bool drawn = !out->failed &&
                 ft__svg_bars(out, f, &(ft_bars){"layers", "Time by layer", "ms", ft__bound_keys, 4, rows, count, 0});
    free(rows);
    return drawn;
}

bool ft__svg_classes(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    static const char *const names[FT_CLASS_COUNT] = {"contractions", "normalisations", "elementwise"};
    ft_bar_row rows[FT_CLASS_COUNT] = {{0}};
    const ft_graph *g = v->graph;
    double busy = 0;
    for (int32_t i = 0; i < v->step->kernel_count; i++) {
        const ft_timed *k = &v->step->kernels[i];
        unsigned bound = (unsigned)k->forecast.bound < 4 ? k->forecast.bound : FT_BOUND_MEMORY;
        rows[ft__node_class(&g->nodes[k->node])].part[bound] += k->times * k->forecast.ms;
        busy += k->times * k->forecast.ms;
    }
    for (int c = 0; c < FT_CLASS_COUNT; c++) {
        double ms = 0;
        for (int b = 0; b < 4; b++) ms += rows[c].part[b];
        rows[c].label = names[c];
        rows[c].remark = remark(v, ms, v->step->class_flops[c]);
        if (!rows[c].remark) return false;
    }
    return ft__svg_bars(
        out, f, &(ft_bars){"classes", "Time by class of kernel", "ms", ft__bound_keys, 4, rows, FT_CLASS_COUNT, busy});
}

static int by_total(const void *a, const void *b)
{
    const ft_merged *x = a, *y = b;
    if (x->total_ms != y->total_ms) return x->total_ms < y->total_ms ? 1 : -1;
    return x->forecast < y->forecast ? -1 : x->forecast > y->forecast; /* as they ran: of one array */
}

bool ft__svg_step_ranges(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    size_t count = 0;
    ft_merged *kernels = ft__merge_kernels(v, &count);
    if (!kernels) return false;
    qsort(kernels, count, sizeof *kernels, by_total);
    if (count > SURE_KERNELS) count = SURE_KERNELS;
    ft_range_row rows[SURE_KERNELS + 1] = {
        {.label = "the step", .value = v->step->step_ms, .low = v->step->low_ms, .high = v->step->high_ms}};
    ft_text t = {.cap = 4096};
    for (size_t i = 0; i < count; i++) {
        const ft_forecast *k = kernels[i].forecast;
        ft__markup_reset(out, &t);
        ft__add_kernel_name(&t, &kernels[i]);
        rows[i + 1] = (ft_range_row){.label = t.at ? ft__arena_copy(v->arena, t.at, t.length) : "",
                                     .value = kernels[i].count * k->ms,
                                     .low = kernels[i].count * k->low_ms,
                                     .high = kernels[i].count * k->high_ms};
        if (!rows[i + 1].label) t.failed = true;
    }
    bool failed = t.failed;
    ft__text_drop(&t, out);
    return !failed &&
           ft__svg_ranges(out, f, "intervals", "How certain: the step and its longest kernels", rows, count + 1);
}
