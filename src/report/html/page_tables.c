/* page_tables.c: the figures behind a step's pictures, as tables. */
#include <inttypes.h>
#include <stdio.h>

#include "report/html/page_parts.h"
#include "report/text/advice_words.h"
#include "report/text/describe.h"
#include "report/text/lines.h"

enum { MOST_ROWS = 400 };

static void percent_cell(ft_page_table *t, double share)
{
    ft__markup_reset(t->out, &t->cell);
    if (share > 0) ft__add_percent(&t->cell, share);
    ft__page_table_cell(t, t->cell.length ? t->cell.at : "");
}

static void range_cell(ft_page_table *t, double low, double high)
{
    ft__markup_reset(t->out, &t->cell);
    ft__add_figure(&t->cell, low, 3);
    ft__text_add(&t->cell, " – ");
    ft__add_figure(&t->cell, high, 3);
    ft__page_table_cell(t, t->cell.at ? t->cell.at : "");
}

static void gib_cell(ft_page_table *t, double bytes)
{
    ft__markup_reset(t->out, &t->cell);
    ft__add_gib(&t->cell, bytes);
    ft__page_table_cell(t, t->cell.at ? t->cell.at : "");
}

bool ft__page_kernels(ft_text *out, const ft_step_view *v)
{
    static const char *const head[] = {"kernel",  "operator", "launches", "ms in all", "one, ms", "low – high, ms",
                                       "TFLOP/s", "GB/s",     "FLOP/B",   "bound by",  "source"};
    size_t count = 0;
    const ft_merged *kernels = ft__merge_kernels(v, &count);
    if (!kernels) return false;
    char words[96];
    snprintf(words, sizeof words, "All %zu kernels%s", count, count > MOST_ROWS ? ", the first 400 of them" : "");
    ft__page_details(out, words);
    ft_page_table t;
    ft__page_table_open(&t, out, "kernels", "llrrrrrrrll", head);
    for (size_t i = 0; i < count && i < MOST_ROWS; i++) {
        const ft_forecast *f = kernels[i].forecast;
        ft__markup_reset(t.out, &t.cell);
        ft__add_kernel_name(&t.cell, &kernels[i]);
        ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
        ft__markup_reset(t.out, &t.cell);
        ft__describe_op(&t.cell, &kernels[i].node->op);
        ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
        ft__markup_reset(t.out, &t.cell);
        ft__text_addf(&t.cell, "%.0f", kernels[i].count);
        ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
        ft__page_table_figure(&t, kernels[i].total_ms, 4);
        ft__page_table_figure(&t, f->ms, 4);
        range_cell(&t, f->low_ms, f->high_ms);
        ft__page_table_figure(&t, f->ms > 0 ? f->flops / f->ms / 1e9 : 0, 3);
        ft__page_table_figure(&t, f->ms > 0 ? f->bytes / f->ms / 1e6 : 0, 3);
        ft__page_table_figure(&t, f->bytes > 0 ? f->flops / f->bytes : 0, 3);
        ft__page_table_cell(&t, ft__bound_at_words(f));
        ft__page_table_cell(&t, ft_source_name(f->source));
    }
    ft__page_table_close(&t);
    ft__page_details_end(out);
    return !out->failed;
}

bool ft__page_layers(ft_text *out, const ft_step_view *v)
{
    static const char *const head[] = {"layer",    "arithmetic", "memory", "overhead", "communication",
                                       "bound by", "TFLOP/s",    "GB/s",   "FLOP/B"};
    const ft_verdicts *verdicts = ft__view_verdicts(v);
    if (!verdicts) return false;
    ft__page_details(out, "Layers: shares and rates");
    ft_page_table t;
    ft__page_table_open(&t, out, "layers", "lrrrrlrrr", head);
    for (size_t i = 0; i < verdicts->layer_count && i < MOST_ROWS; i++) {
        const ft_verdict *l = &verdicts->layers[i];
        ft__page_table_cell(&t, l->name ? l->name : "");
        for (int b = 0; b < 4; b++) percent_cell(&t, l->share[b]);
        ft__page_table_cell(&t, ft__bound_words(l->bound));
        ft__page_table_figure(&t, l->tflops, 3);
        ft__page_table_figure(&t, l->gbps, 3);
        ft__page_table_figure(&t, l->intensity, 3);
    }
    ft__page_table_close(&t);
    ft__page_details_end(out);
    return !out->failed;
}

bool ft__page_stages(ft_text *out, const ft_step_view *v)
{
    static const char *const head[] = {"stage",       "forward, ms", "backward, ms", "update, ms",
                                       "exposed, ms", "in flight",   "peak, GiB"};
    ft__page_details(out, "Stages in figures");
    ft_page_table t;
    ft__page_table_open(&t, out, "stages", "rrrrrrr", head);
    for (int64_t s = 0; s < v->ranked->stage_count && s < MOST_ROWS; s++) {
        const ft_stage *g = &v->ranked->stages[s];
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, s + 1);
        ft__page_table_cell(&t, number);
        ft__page_table_figure(&t, g->forward_ms, 4);
        ft__page_table_figure(&t, g->backward_ms, 4);
        ft__page_table_figure(&t, g->update_ms, 4);
        ft__page_table_figure(&t, g->exposed_ms, 3);
        ft__page_table_figure(&t, ft__in_flight(v, s), 3);
        gib_cell(&t, g->held.peak_bytes);
    }
    ft__page_table_close(&t);
    ft__page_details_end(out);
    return !out->failed;
}

void ft__page_memory(ft_text *out, const ft_step_view *v)
{
    static const char *const head[] = {"at the peak", "GiB"};
    const ft_memory *m = &v->step->memory;
    const double bytes[7] = {m->weights_bytes,  m->optimizer_bytes,     m->gradients_bytes, m->activations_bytes,
                             m->kv_cache_bytes, m->communication_bytes, m->temporary_bytes};
    ft__page_details(out, "Memory in figures");
    ft_page_table t;
    ft__page_table_open(&t, out, "memory", "lr", head);
    for (int i = 0; i < 7; i++) {
        if (bytes[i] <= 0) continue;
        ft__page_table_cell(&t, ft__memory_keys[i].name);
        gib_cell(&t, bytes[i]);
    }
    const struct {
        const char *name;
        double bytes;
    } sums[] = {{"peak, as the allocator reports it", m->peak_bytes},
                {"reserved, with caching and fragmentation", m->reserved_bytes},
                {"driver and communicators", m->context_bytes},
                {"the GPU has", m->capacity_bytes}};
    for (int i = 0; i < 4; i++) {
        ft__page_table_cell(&t, sums[i].name);
        gib_cell(&t, sums[i].bytes);
    }
    ft__page_table_close(&t);
    ft__page_details_end(out);
}

/* -- advice ------------------------------------------------------------------------------------ */

static void advice_row(ft_page_table *t, const ft_step_view *v, const ft_advice *a)
{
    ft__markup_reset(t->out, &t->cell);
    ft__advice_change(&t->cell, a, v->asked);
    if (a->on_top) ft__text_add(&t->cell, " (on top)");
    if (!a->exact) ft__text_add(&t->cell, " *");
    ft__page_table_cell(t, t->cell.at ? t->cell.at : "");
    ft__page_table_figure(t, a->saves_ms, 3);
    range_cell(t, a->low_ms, a->high_ms);
    ft__markup_reset(t->out, &t->cell);
    double gib = a->memory_bytes / 1073741824.0;
    if (gib > 0.005 || gib < -0.005) ft__text_addf(&t->cell, "%+.2f", gib);
    if (a->verdict == FT_FIT_NO) ft__text_add(&t->cell, " does not fit");
    if (a->verdict == FT_FIT_TIGHT) ft__text_add(&t->cell, " tight");
    ft__page_table_cell(t, t->cell.length ? t->cell.at : "");
    ft__markup_reset(t->out, &t->cell);
    ft__advice_why(&t->cell, a, v->asked, v->advised->part_ms);
    ft__page_table_cell(t, t->cell.at ? t->cell.at : "");
}

bool ft__page_advice(ft_text *out, const ft_step_view *v)
{
    static const char *const head[] = {"change", "saves, ms", "low – high, ms", "memory, GiB", "why"};
    static const char *const lint_head[] = {"finding", "cheapest fix", "saves, ms"};
    const ft_advised *a = v->advised;
    if (!a || !v->asked || (a->count == 0 && a->gpu_count == 0 && a->lint_count == 0)) return true;
    const ft_memory *m = &v->step->memory;
    ft_text words = {.cap = 4096};
    if (!m->fits && m->remedy && *m->remedy) ft__text_addf(&words, "It does not fit; this would: %s. ", m->remedy);
    ft__text_add(&words, a->closed_forms ? ft__closed_remark : "Each change was forecast as a request of its own.");
    ft__page_section(out, "advice", "What to change", words.at);
    ft__text_drop(&words, out);
    ft_page_table t;
    if (a->count > 0) {
        ft__page_table_open(&t, out, "advice", "lrrrw", head);
        for (size_t i = 0; i < a->count; i++) advice_row(&t, v, &a->list[i]);
        ft__page_table_close(&t);
        if (ft__advice_inexact(a->list, a->count))
            ft__text_addf(out, "<p class=\"quiet\">%s</p>\n", ft__inexact_remark);
    }
    if (a->gpu_count > 0) {
        ft__page_details(out, "Other GPUs");
        ft__page_table_open(&t, out, "other GPUs", "lrrrw", head);
        for (size_t i = 0; i < a->gpu_count; i++) advice_row(&t, v, &a->gpus[i]);
        ft__page_table_close(&t);
        ft__page_details_end(out);
    }
    if (a->lint_count > 0) {
        ft__page_details(out, "Findings in linear and convolution layers");
        ft__page_table_open(&t, out, "findings", "wlr", lint_head);
        for (size_t i = 0; i < a->lint_count && i < MOST_ROWS; i++) {
            ft__markup_reset(t.out, &t.cell);
            ft__lint_finding(&t.cell, &a->lints[i]);
            ft__page_table_cell(&t, t.cell.at ? t.cell.at : "");
            ft__markup_reset(t.out, &t.cell);
            ft__lint_fix(&t.cell, &a->lints[i]);
            ft__page_table_cell(&t, t.cell.length ? t.cell.at : "");
            ft__page_table_figure(&t, a->lints[i].saves_ms, 3);
        }
        ft__page_table_close(&t);
        ft__page_details_end(out);
    }
    ft__page_section_end(out);
    return !out->failed;
}
