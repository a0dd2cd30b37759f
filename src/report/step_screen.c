/* step_screen.c: one step on one GPU.
 *
 * The eye should find, in this order: how long, how sure, how fast, where the time goes, whether it fits, what to look
 * at. Forty lines at most, so that it stays on a screen.
 */
#include "report/step_screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"
#include "report/columns.h"
#include "report/describe.h"
#include "report/lines.h"

enum { TOP_KERNELS = 5 };

static int bar_cells(const ft_style *style) { return style->width >= 100 ? 30 : 20; }

static void add_ms(ft_text *out, double ms)
{
    ft__add_figure(out, ms, 4);
    ft__text_add(out, " ms");
}

/* -- title and times --------------------------------------------------------------------------- */

void ft__screen_step_title(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    static const char *const tasks[FT_TASK_COUNT] = {[FT_TRAIN] = "training step",
                                                     [FT_FORWARD_PASS] = "forward pass",
                                                     [FT_PREFILL] = "prefill",
                                                     [FT_DECODE] = "decode step"};
    const ft_workload *w = v->work;
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add_plain(out, v->model);
    ft__ink_end(out, style);
    ft__text_addf(out, "  %s on ", tasks[w->task]);
    if (v->device)
        ft__text_add_plain(out, v->device->title[0] ? v->device->title : v->device->name);
    else
        ft__text_add(out, "several GPUs");
    ft__text_add(out, "\n");
    ft_text t = {0};
    ft__add_parameters(&t, v->graph->parameters);
    ft__text_add(&t, " parameters");
    if (v->graph->active_parameters > 0 && v->graph->active_parameters < 0.999 * v->graph->parameters) {
        ft__text_add(&t, " (");
        ft__add_parameters(&t, v->graph->active_parameters);
        ft__text_add(&t, " active)");
    }
    ft__text_addf(&t, ", %s, batch %" PRId64, v->dtype_name, w->batch);
    if (!ft__counts_samples(v->arch)) ft__text_addf(&t, " %s %" PRId64 " tokens", ft__times(style), w->seq);
    if (w->accumulate > 1) ft__text_addf(&t, " %s %" PRId64 " micro-batches", ft__times(style), w->accumulate);
    ft__text_addf(&t, ", %s, %s attention", ft__execution_words[w->execution], ft__attention_words[w->attention]);
    if (w->task == FT_TRAIN) {
        ft__text_addf(&t, ", %s%s",
                      w->optimizer == FT_NO_OPTIMIZER ? "no optimizer" : ft__optimizer_words[w->optimizer],
                      w->master_weights ? " with fp32 masters" : "");
        if (w->recompute != FT_RECOMPUTE_NONE) ft__text_addf(&t, ", %s recompute", ft__recompute_words[w->recompute]);
        if (w->lora_rank > 0) ft__text_addf(&t, ", LoRA rank %" PRId64, w->lora_rank);
    }
    if (w->task == FT_DECODE) ft__text_addf(&t, ", %s cache", ft__cache_words[w->cache]);
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__ink_end(out, style);
    out->failed = out->failed || t.failed;
    ft__text_free(&t);
}

static void rate_lines(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    const ft_step *s = v->step;
    ft_text a = {0}, b = {0};
    ft__ink(&a, style, FT_INK_BOLD);
    add_ms(&a, s->step_ms);
    ft__ink_end(&a, style);
    ft__add_figure(&b, s->low_ms, 4);
    ft__text_addf(&b, " %s ", ft__dash(style));
    ft__add_figure(&b, s->high_ms, 4);
    ft__text_add(&b, " ms, ");
    ft__add_confidence(&b, v->quantile);
    ft__line(out, style, "step", &a, b.at);

    ft__text_clear(&a);
    ft__text_clear(&b);
    bool samples = ft__counts_samples(v->arch);
    double micro = (double)(v->work->accumulate > 0 ? v->work->accumulate : 1);
    ft__add_figure(&a, samples ? (double)v->work->batch * micro / s->step_ms * 1e3 : s->tokens_per_s, 4);
    ft__text_add(&a, samples ? " images/s" : " tokens/s");
    ft__text_add(&b, "MFU ");
    ft__add_percent(&b, s->mfu);
    ft__text_add(&b, ", HFU ");
    ft__add_percent(&b, s->hfu);
    ft__text_add(&b, " of ");
    ft__add_figure(&b, ft__peak_tflops(v->device, v->work->dtype), 4);
    ft__text_addf(&b, " TFLOP/s %s", ft_dtype_name(v->work->dtype));
    ft__line(out, style, "rate", &a, b.at);
    ft__text_free(&a);
    ft__text_free(&b);
}

static void part_line(ft_text *out, const ft_style *style, const char *label, double ms, double step_ms,
                      const char *remark)
{
    ft_text a = {0}, b = {0};
    add_ms(&a, ms);
    ft__add_bar(&b, style, ms / step_ms, bar_cells(style));
    ft__text_add(&b, "  ");
    ft__add_percent(&b, ms / step_ms);
    if (remark) ft__text_addf(&b, "  %s", remark);
    ft__line(out, style, label, &a, b.at);
    ft__text_free(&a);
    ft__text_free(&b);
}

static void phase_lines(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    const ft_step *s = v->step;
    static const struct {
        ft_phase phase;
        const char *label;
    } phases[] = {
        {FT_FORWARD, "forward"}, {FT_RECOMPUTE, "recompute"}, {FT_BACKWARD, "backward"}, {FT_UPDATE, "optimizer"}};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (s->phase_ms[phases[i].phase] > 0)
            part_line(out, style, phases[i].label, s->phase_ms[phases[i].phase], s->step_ms, NULL);
    if (s->idle_ms > 0.0005 * s->step_ms) part_line(out, style, "idle", s->idle_ms, s->step_ms, "GPU waits");
    if (s->host_ms <= 0) return;
    ft_text a = {0}, b = {0};
    add_ms(&a, s->host_ms);
    ft__text_addf(&b, "to issue %.0f launches%s", s->launches,
                  s->idle_ms < 0.1 * s->step_ms ? ", hidden behind the GPU" : ": the host sets the pace");
    ft__line(out, style, "host", &a, b.at);
    ft__text_free(&a);
    ft__text_free(&b);
}

/* -- memory ------------------------------------------------------------------------------------ */

static void memory_line(ft_text *out, const ft_style *style, const char *label, double bytes, double capacity,
                        const char *remark, bool bar)
{
    ft_text a = {0}, b = {0};
    ft__add_gib(&a, bytes);
    ft__text_add(&a, " GiB");
    if (bar) ft__add_bar(&b, style, capacity > 0 ? bytes / capacity : 0, bar_cells(style));
    if (remark && *remark) ft__text_addf(&b, "%s%s", bar ? "  " : "", remark);
    ft__line(out, style, label, &a, b.at);
    ft__text_free(&a);
    ft__text_free(&b);
}

void ft__screen_fits(ft_text *out, const ft_style *style, const ft_memory *m)
{
    ft_text a = {0}, b = {0};
    double need = m->reserved_bytes + m->context_bytes;
    ft__ink(&a, style, m->fits ? FT_INK_GREEN : FT_INK_RED);
    ft__text_add(&a, m->fits ? "yes" : "no");
    ft__ink_end(&a, style);
    ft__add_gib(&b, fabs(m->capacity_bytes - need));
    ft__text_addf(&b, " GiB %s of ", m->fits ? "left" : "short");
    ft__add_gib(&b, m->capacity_bytes);
    ft__line(out, style, "fits", &a, b.at);
    if (!m->fits && m->remedy && *m->remedy) {
        ft__text_clear(&a);
        ft__ink(&a, style, FT_INK_YELLOW);
        ft__text_add_plain(&a, m->remedy);
        ft__ink_end(&a, style);
        ft__line(out, style, "would fit", &a, NULL);
    }
    ft__text_free(&a);
    ft__text_free(&b);
}

static void memory_lines(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    const ft_memory *m = &v->step->memory;
    const struct {
        const char *label;
        double bytes;
    } parts[] = {{"weights", m->weights_bytes},       {"gradients", m->gradients_bytes},
                 {"optimizer", m->optimizer_bytes},   {"activations", m->activations_bytes},
                 {"temporary", m->temporary_bytes},   {"KV cache", m->kv_cache_bytes},
                 {"exchange", m->communication_bytes}};
    ft_text place = {0};
    ft__text_add(&place, "peak, in ");
    ft__add_peak_place(&place, v);
    memory_line(out, style, "memory", m->peak_bytes, m->capacity_bytes, place.at, false);
    ft__text_free(&place);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].bytes > 0) memory_line(out, style, parts[i].label, parts[i].bytes, m->capacity_bytes, NULL, true);
    memory_line(out, style, "reserved", m->reserved_bytes + m->context_bytes, m->capacity_bytes,
                "with the allocator's reserve and the context", false);
    ft__screen_fits(out, style, m);
}

/* -- where the time goes ----------------------------------------------------------------------- */

static void class_lines(ft_text *out, const ft_style *style, const ft_step *s)
{
    static const char *const labels[FT_CLASS_COUNT] = {
        [FT_CONTRACTION] = "contraction", [FT_NORMALISATION] = "normalising", [FT_ELEMENTWISE] = "elementwise"};
    double flops = 0;
    for (int c = 0; c < FT_CLASS_COUNT; c++) flops += s->class_flops[c];
    for (int c = 0; c < FT_CLASS_COUNT; c++) {
        ft_text a = {0}, b = {0};
        ft__text_addf(&a, "%.1f %% of FLOPs", flops > 0 ? 100 * s->class_flops[c] / flops : 0);
        ft__add_bar(&b, style, s->class_ms[c] / s->busy_ms, bar_cells(style));
        ft__text_add(&b, "  ");
        ft__add_percent(&b, s->class_ms[c] / s->busy_ms);
        ft__text_add(&b, " of time");
        ft__line(out, style, labels[c], &a, b.at);
        ft__text_free(&a);
        ft__text_free(&b);
    }
    ft_text a = {0}, b = {0};
    ft__text_add(&a, ft__bound_words(s->bound));
    for (int i = 0; i < 4; i++) {
        if (s->regime[i] < 0.0005) continue;
        if (b.length) ft__text_add(&b, ", ");
        ft__text_addf(&b, "%s ", ft_bound_name((ft_bound)i));
        ft__add_percent(&b, s->regime[i]);
    }
    ft__line(out, style, "held by", &a, b.at);
    ft__text_clear(&a);
    ft__text_clear(&b);
    ft__ink(&a, style, s->learned + s->calibrated >= 0.5 ? FT_INK_GREEN : FT_INK_YELLOW);
    ft__add_percent(&a, s->learned + s->calibrated);
    ft__text_add(&a, " learned");
    ft__ink_end(&a, style);
    ft__text_add(&b, "share of the time forecast from measurements");
    if (s->roofline > 0.0005) {
        ft__text_add(&b, "; ");
        ft__add_percent(&b, s->roofline);
        ft__text_add(&b, " is a roofline's guess");
    }
    ft__line(out, style, "source", &a, b.at);
    ft__text_free(&a);
    ft__text_free(&b);
}

/* -- kernels ----------------------------------------------------------------------------------- */

static void kernel_head(ft_columns *c, bool wide)
{
    static const char *const head[] = {"kernel",  "phase",    "operator", "launches",
                                       "each ms", "total ms", "share",    "held by"};
    for (int i = 0; i < 8; i++)
        if (wide || i != 2) ft__cell_add(c, head[i]);
}

/* The operator, cut to its column: the sizes that tell kernels apart stand first. */
static void add_operator(ft_text *out, const ft_op *op, size_t most)
{
    ft_text text = {0};
    ft__describe_op(&text, op);
    const char *at = text.at ? text.at : "";
    size_t shown = ft__utf8_cut(at, most);
    ft__text_add_n(out, at, shown);
    if (at[shown]) ft__text_add(out, "..");
    out->failed = out->failed || text.failed;
    ft__text_free(&text);
}

static void kernel_row(ft_columns *c, const ft_merged *m, double busy_ms, int wide)
{
    const char *block = m->block->name ? m->block->name : "";
    ft__cell_addf(c, "%s%s%s", block, *block ? "." : "", m->node->name ? m->node->name : "");
    ft__cell_add(c, ft__phase_name(m->node->phase));
    if (wide > 0) add_operator(ft__cell(c), &m->node->op, (size_t)wide);
    ft__cell_addf(c, "%.0f", m->count);
    ft__add_figure(ft__cell(c), m->forecast->ms, 3);
    ft__add_figure(ft__cell(c), m->total_ms, 4);
    ft__add_percent(ft__cell(c), m->total_ms / busy_ms);
    ft__cell_add(c, ft_bound_name(m->forecast->bound));
}

/* The most expensive first; a few of many, so that selection is cheap. */
static void pick_dearest(ft_merged *merged, size_t count, size_t most)
{
    for (size_t i = 0; i < most; i++) {
        size_t top = i;
        for (size_t k = i + 1; k < count; k++)
            if (merged[k].total_ms > merged[top].total_ms) top = k;
        ft_merged swap = merged[i];
        merged[i] = merged[top];
        merged[top] = swap;
    }
}

/* What the other columns leave to the operator's description; 0 where that says nothing. */
static int operator_width(const ft_style *style, const ft_merged *merged, size_t count)
{
    enum { OTHERS = 68, LEAST = 24 };
    int longest = 0;
    for (size_t i = 0; i < count; i++) {
        int width = ft__text_width(merged[i].block->name ? merged[i].block->name : "") + 1 +
                    ft__text_width(merged[i].node->name ? merged[i].node->name : "");
        if (width > longest) longest = width;
    }
    int left = style->width - OTHERS - longest;
    return left >= LEAST ? left : 0;
}

static bool print_kernels(ft_text *out, const ft_style *style, const ft_step_view *v, size_t most)
{
    size_t count;
    ft_merged *merged = ft__merge_kernels(v, &count);
    if (!merged) return false;
    if (most < count) {
        pick_dearest(merged, count, most);
        count = most;
    }
    ft_columns c;
    int wide = operator_width(style, merged, count);
    ft__columns_init(&c, wide > 0 ? "lllrrrrl" : "llrrrrl");
    kernel_head(&c, wide > 0);
    for (size_t i = 0; i < count; i++) kernel_row(&c, &merged[i], v->step->busy_ms, wide);
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed && !out->failed;
}

bool ft__screen_kernels(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    return print_kernels(out, style, v, SIZE_MAX);
}

bool ft__screen_layers(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    size_t count;
    const ft_layer *layers = ft__layers(v, &count);
    if (!layers) return false;
    static const char *const head[] = {"block", "times",      "forward ms", "recompute", "backward",
                                       "share", "parameters", "saved GiB",  "arithmetic"};
    bool recomputes = v->work->recompute != FT_RECOMPUTE_NONE,
         wide = style->width >= 90; /* a narrow one does without */
    char align[10] = "lrrrrrrrr";
    align[(recomputes ? 8 : 7) + (wide ? 1 : 0)] = '\0';
    ft_columns c;
    ft__columns_init(&c, align);
    for (int i = 0; i < 9; i++)
        if ((recomputes || i != 3) && (wide || i != 8)) ft__cell_add(&c, head[i]);
    for (size_t i = 0; i < count; i++) {
        const ft_layer *l = &layers[i];
        ft__cell_add(&c, l->name ? l->name : "");
        ft__cell_addf(&c, "%.0f", l->repeat);
        ft__add_figure(ft__cell(&c), l->forward_ms, 4);
        if (recomputes) ft__add_figure(ft__cell(&c), l->recompute_ms, 4);
        ft__add_figure(ft__cell(&c), l->backward_ms, 4);
        ft__add_percent(ft__cell(&c), (l->forward_ms + l->recompute_ms + l->backward_ms) / v->step->busy_ms);
        ft__add_parameters(ft__cell(&c), l->parameters);
        ft__add_gib(ft__cell(&c), l->saved_bytes);
        if (wide) ft__add_si(ft__cell(&c), l->flops, "FLOP");
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed && !out->failed;
}

bool ft__screen_step(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    ft__screen_step_title(out, style, v);
    ft__text_add(out, "\n");
    rate_lines(out, style, v);
    ft__text_add(out, "\n");
    phase_lines(out, style, v);
    ft__text_add(out, "\n");
    memory_lines(out, style, v);
    ft__text_add(out, "\n");
    class_lines(out, style, v->step);
    ft__text_add(out, "\n");
    return print_kernels(out, style, v, TOP_KERNELS);
}
