/* step_screen.c: one step on one GPU, or as the slowest of many GPUs lives it.
 *
 * The eye should find, in this order: how long, how sure, how fast, where the time goes, whether it fits, what to look
 * at. Forty lines at most, fifty where a layout has its own, so that it stays on a screen.
 */
#include "report/text/step_screen.h"
#include "memory/verdict.h"
#include "model/stack.h"
#include "report/text/step_words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernel/kernel.h"
#include "report/text/lines.h"
#include "request/keys.h"
#include "study/lengths.h"

enum { TOP_KERNELS = 5 };

static int bar_cells(const ft_style *style) { return style->width >= 100 ? 30 : 20; }

static void add_time(ft_text *out, double ms, double step_ms)
{
    ft_time_unit unit = ft__time_unit(step_ms);
    ft__add_figure(out, ms / unit.ms, 4);
    ft__text_addf(out, " %s", unit.name);
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
    ft__add_model_name(out, v->model);
    ft__ink_end(out, style);
    ft__text_addf(out, "  %s on ", tasks[w->task]);
    if (v->device && ft__view_gpus(v) > 1) ft__text_addf(out, "%" PRId64 " %s ", ft__view_gpus(v), ft__times(style));
    if (v->device)
        ft__text_add_plain(out, v->device->title[0] ? v->device->title : v->device->name);
    else
        ft__text_add(out, "several GPUs");
    ft__text_add(out, "\n");
    ft_text t = {0};
    double parameters, active;
    if (!ft__view_parameters(v, &parameters, &active)) out->failed = true;
    ft__add_parameters(&t, parameters);
    ft__text_add(&t, " parameters");
    if (active > 0 && active < 0.999 * parameters) {
        ft__text_add(&t, " (");
        ft__add_parameters(&t, active);
        ft__text_add(&t, " active)");
    }
    ft__text_addf(&t, ", %s, batch %" PRId64, v->dtype_name, w->batch);
    if (!ft__counts_samples(v->arch)) ft__text_addf(&t, " %s %" PRId64 " tokens", ft__times(style), w->seq);
    if (w->task == FT_TRAIN && w->accumulate > 1 && !v->ranked)
        ft__text_addf(&t, " %s %" PRId64 " micro-batches", ft__times(style), w->accumulate);
    ft__text_addf(&t, ", %s%s", ft__execution_words[w->execution],
                  v->graph && v->graph->layers_compiled ? " layer by layer" : "");
    if (w->task == FT_TRAIN && (w->stack || w->execution == FT_RUN_FUSED)) ft__text_addf(&t, ", %s", v->stack->name);
    if (ft__view_attends(v)) ft__text_addf(&t, ", %s attention", ft__attention_words[w->attention]);
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
    ft__text_drop(&t, out);
    if (v->ranked) ft__screen_layout(out, style, v);
}

/* What the GPUs draw: watts of one, and what a joule buys. */
static void energy_line(ft_text *out, const ft_style *style, const ft_step_view *v, double rate)
{
    ft_energy e = ft__view_energy(v);
    if (!(e.joules > 0)) return;
    double gpus = (double)ft__view_gpus(v);
    ft_text a = {0}, b = {0};
    ft__add_figure(&a, e.watts, 3);
    ft__text_addf(&a, " W%s", v->ranked ? " per GPU" : "");
    ft__add_si(&b, e.joules * gpus, "J");
    ft__text_add(&b, " a step, ");
    ft__add_figure(&b, rate / (e.watts * gpus), 3);
    ft__text_addf(&b, " %s per joule", ft__counts_samples(v->arch) ? "samples" : "tokens");
    ft__line(out, style, "power", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

/* Sequences of many lengths: what is no padding, and how steps differ. */
static void length_lines(ft_text *out, const ft_style *style, const ft_step_view *v, double rate)
{
    const ft_lengths_view *l = v->lengths;
    ft_text a = {0}, b = {0};
    if (!l) return;
    ft__add_figure(&a, rate * l->useful, 4);
    ft__text_add(&a, " tokens/s");
    ft__add_percent(&b, 1 - l->useful);
    ft__text_addf(&b, " padding: sequences of %.0f tokens, batches of %.0f, at most %lld", l->mean, l->padded,
                  (long long)l->longest);
    ft__line(out, style, "useful", &a, b.at);
    ft__text_empty(&a);
    ft__text_empty(&b);
    add_time(&a, l->sd_ms, v->step->step_ms);
    ft__text_add(&b, "from step to step: ");
    ft__add_figure(&b, l->p10_ms / ft__time_unit(v->step->step_ms).ms, 4);
    ft__text_addf(&b, " %s ", ft__dash(style));
    add_time(&b, l->p90_ms, v->step->step_ms);
    ft__text_add(&b, " in eight of ten");
    ft__line(out, style, "varies", &a, b.at);
    if (l->fresh.ms > 0) {
        ft__text_empty(&a);
        ft__text_empty(&b);
        add_time(&a, l->fresh.ms, l->fresh.ms);
        ft__text_addf(&b, "more for the first batch of a length: some %.0f of a run's %.0f; pad_multiple leaves fewer",
                      l->fresh.count, l->fresh.batches);
        ft__line(out, style, "new lengths", &a, b.at);
    }
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void rate_lines(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    const ft_step *s = v->step;
    ft_text a = {0}, b = {0};
    ft__ink(&a, style, FT_INK_BOLD);
    add_time(&a, s->step_ms, s->step_ms);
    ft__ink_end(&a, style);
    ft__add_figure(&b, s->low_ms / ft__time_unit(s->step_ms).ms, 4);
    ft__text_addf(&b, " %s ", ft__dash(style));
    add_time(&b, s->high_ms, s->step_ms);
    ft__text_add(&b, ", ");
    ft__add_confidence(&b, v->quantile);
    ft__line(out, style, "step", &a, b.at);

    ft__text_empty(&a);
    ft__text_empty(&b);
    bool samples = ft__counts_samples(v->arch);
    double rate = samples ? ft__view_samples_per_s(v) : ft__view_tokens_per_s(v), gpus = (double)ft__view_gpus(v);
    ft__add_figure(&a, rate, 4);
    ft__text_addf(&a, " %s", ft__rate_unit(v->arch));
    if (v->ranked) { /* of all, and of one */
        ft__add_figure(&b, rate / gpus, 4);
        ft__text_add(&b, " per GPU");
        ft__line(out, style, "rate", &a, b.at);
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__add_figure(&a, v->step->model_tflops, 4);
        ft__text_add(&a, " TFLOP/s");
    }
    ft__text_add(&b, "MFU ");
    ft__add_percent(&b, s->mfu);
    ft__text_add(&b, ", HFU ");
    ft__add_percent(&b, s->hfu);
    ft__text_add(&b, " of ");
    ft_dtype of;
    ft__add_figure(&b, ft__step_peak(v->device, v->work->dtype, &of), 4);
    ft__text_addf(&b, " TFLOP/s %s", ft_dtype_name(of));
    ft__line(out, style, v->ranked ? "per GPU" : "rate", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
    length_lines(out, style, v, rate);
    energy_line(out, style, v, rate);
}

void ft__screen_part(ft_text *out, const ft_style *style, const char *label, double ms, double step_ms,
                     const char *remark)
{
    ft_text a = {0}, b = {0};
    add_time(&a, ms, step_ms);
    ft__add_bar(&b, style, ms / step_ms, bar_cells(style));
    ft__text_add(&b, "  ");
    ft__add_percent(&b, ms / step_ms);
    if (remark) ft__text_addf(&b, "  %s", remark);
    ft__line(out, style, label, &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void phase_lines(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    const ft_step *s = v->step;
    static const struct {
        ft_phase phase;
        const char *label;
    } phases[] = {
        {FT_FORWARD, "forward"}, {FT_RECOMPUTE, "recompute"}, {FT_BACKWARD, "backward"}, {FT_UPDATE, "optimizer"}};
    if (v->ranked) ft__screen_slowest(out, style, v);
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (s->phase_ms[phases[i].phase] > 0)
            ft__screen_part(out, style, phases[i].label, s->phase_ms[phases[i].phase], s->step_ms, NULL);
    if (v->ranked) ft__screen_waits(out, style, v);
    static const char *const starved[4] = {"", "GPU waits for the disk", "GPU waits for the loader's workers",
                                           "GPU waits for copies of samples"};
    double input = v->loading.wait_ms, idle = fmax(s->idle_ms - input - s->offload.exposed_ms - s->onload_ms, 0);
    if (s->reference_ms > 0)
        ft__screen_part(out, style, "reference", s->reference_ms, s->step_ms, "forward passes of other models");
    if (s->critic_ms > 0) ft__screen_part(out, style, "critic", s->critic_ms, s->step_ms, "trains the value model");
    if (s->rollout_ms > 0)
        ft__screen_part(out, style, "rollout", s->rollout_ms - s->refit_ms, s->step_ms, "generates what it trains on");
    if (s->refit_ms > 0.0005 * s->step_ms)
        ft__screen_part(out, style, "refit", s->refit_ms, s->step_ms, "new weights for what generates");
    if (s->onload_ms > 0.0005 * s->step_ms)
        ft__screen_part(out, style, "onload", s->onload_ms, s->step_ms, "comes back from the host");
    if (s->offload.exposed_ms > 0.0005 * s->step_ms)
        ft__screen_part(out, style, "offload", s->offload.exposed_ms, s->step_ms, "GPU waits for the host");
    if (input > 0.0005 * s->step_ms) ft__screen_part(out, style, "input", input, s->step_ms, starved[v->loading.stage]);
    if (idle > 0.0005 * s->step_ms) ft__screen_part(out, style, "idle", idle, s->step_ms, "GPU waits");
    double between = ft__between_ms(s);
    if (between > 0.0005 * s->step_ms) ft__screen_part(out, style, "between", between, s->step_ms, "kernels");
    if (s->host_ms <= 0) return;
    ft_text a = {0}, how = {0};
    add_time(&a, s->host_ms, s->step_ms);
    ft__text_addf(&how, "to issue %.0f launches%s", s->launches,
                  idle < 0.1 * (s->step_ms - input) ? ", hidden behind the GPU" : ": the host sets the pace");
    ft__line(out, style, "host", &a, how.at);
    ft__text_drop(&a, out);
    ft__text_drop(&how, out);
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
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

void ft__screen_fits(ft_text *out, const ft_style *style, const ft_memory *m)
{
    ft_text a = {0}, b = {0};
    double need = m->reserved_bytes + m->context_bytes;
    static const ft_ink inks[] = {FT_INK_GREEN, FT_INK_YELLOW, FT_INK_RED};
    bool roomy = m->verdict == FT_FIT_YES;
    ft__ink(&a, style, inks[m->verdict]);
    ft__text_add(&a, ft__fit_answers[m->verdict]);
    ft__ink_end(&a, style);
    ft__add_gib(&b, fabs(m->capacity_bytes - need));
    ft__text_addf(&b, " GiB %s of ", roomy ? "left" : "short");
    ft__add_gib(&b, m->capacity_bytes);
    const bool unsure = roomy && m->chance_fits < ft__keys[FT_KEY_ID_QUANTILE].standard; /* than intervals are */
    if (m->verdict == FT_FIT_TIGHT || unsure) ft__text_addf(&b, ", %.0f %% likely", 100 * m->chance_fits);
    ft__line(out, style, "fits", &a, b.at);
    if (!roomy && m->remedy && *m->remedy) {
        ft__text_empty(&a);
        ft__ink(&a, style, FT_INK_YELLOW);
        ft__text_add_plain(&a, m->remedy);
        ft__ink_end(&a, style);
        ft__line(out, style, "would fit", &a, NULL);
    }
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
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
    ft_text place = {0}, cut = {0};
    ft__text_add(&place, "peak, in ");
    ft__add_peak_place(&place, v);
    ft__add_cut(&cut, &place, style->width - 2 - FT_LINE_LABEL - FT_LINE_FIGURE);
    memory_line(out, style, "memory", m->peak_bytes, m->capacity_bytes, cut.at, false);
    ft__text_drop(&place, out);
    ft__text_drop(&cut, out);
    if (v->ranked) ft__screen_fullest(out, style, v);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].bytes >= 1) memory_line(out, style, parts[i].label, parts[i].bytes, m->capacity_bytes, NULL, true);
    const double elsewhere = m->host_bytes + m->streamed_bytes + m->away_bytes + m->paged_bytes;
    if (elsewhere >= 1) memory_line(out, style, "on the host", elsewhere, m->capacity_bytes, "not counted here", false);
    ft_text context = {0};
    ft__text_add(&context, "by the allocator; context ");
    ft__add_gib(&context, m->context_bytes);
    ft__text_add(&context, " GiB more");
    memory_line(out, style, "reserved", m->reserved_bytes, m->capacity_bytes, context.at, false);
    ft__text_drop(&context, out);
    ft__screen_fits(out, style, m);
}

/* -- where the time goes ----------------------------------------------------------------------- */

/* ", 39 % of a sibling": a share of the time whose kernels were measured on no GPU of this name. */
static void add_source(ft_text *out, double share, const char *whose)
{
    if (share < 0.005) return;
    if (out->length) ft__text_add(out, ", ");
    ft__add_percent(out, share);
    ft__text_addf(out, " %s", whose);
}

/* Shares of the step by what holds it, the pipeline's bubble apart. A narrow screen has room for few: the
 * largest. */
static void add_held_shares(ft_text *out, const ft_style *style, const ft_step *s)
{
    enum { BUBBLE = 4, SHARES };
    double share[SHARES];
    int left = 0, room = style->width >= 106 ? 5 : style->width >= 90 ? 4 : 3;
    for (int i = 0; i < 4; i++) share[i] = s->regime[i];
    share[BUBBLE] = ft__bubble_share(s);
    share[FT_BOUND_OVERHEAD] -= share[BUBBLE];
    for (int i = 0; i < SHARES; i++) left += share[i] >= 0.0005;
    for (; left > room; left--) { /* the smallest has to go */
        int gone = 0;
        for (int i = 1; i < SHARES; i++)
            if (share[i] >= 0.0005 && (share[gone] < 0.0005 || share[i] < share[gone])) gone = i;
        share[gone] = 0;
    }
    for (int i = 0; i < SHARES; i++) {
        if (share[i] < 0.0005) continue;
        const char *name = i == BUBBLE                   ? "bubble"
                           : i == FT_BOUND_COMMUNICATION ? "exchange"
                                                         : ft_bound_name((ft_bound)i);
        ft__text_addf(out, "%s%s ", out->length ? ", " : "", name);
        ft__add_percent(out, share[i]);
    }
}

static void class_lines(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    const ft_step *s = v->step;
    static const char *const labels[FT_CLASS_COUNT] = {
        [FT_CONTRACTION] = "contraction", [FT_NORMALISATION] = "normalising", [FT_ELEMENTWISE] = "elementwise"};
    double flops = 0, busy = 0;
    for (int c = 0; c < FT_CLASS_COUNT; c++) flops += s->class_flops[c], busy += s->class_ms[c];
    for (int c = 0; c < FT_CLASS_COUNT; c++) {
        ft_text a = {0}, b = {0};
        ft__text_addf(&a, "%.1f %% of FLOPs", flops > 0 ? 100 * s->class_flops[c] / flops : 0);
        ft__add_bar(&b, style, s->class_ms[c] / fmax(busy, 1e-12), bar_cells(style));
        ft__text_add(&b, "  ");
        ft__add_percent(&b, s->class_ms[c] / fmax(busy, 1e-12));
        ft__text_add(&b, " of time");
        ft__line(out, style, labels[c], &a, b.at);
        ft__text_drop(&a, out);
        ft__text_drop(&b, out);
    }
    ft_text a = {0}, b = {0};
    ft__text_add(&a, ft__view_bound_words(v));
    add_held_shares(&b, style, s);
    ft__line(out, style, "bound by", &a, b.at);
    ft__text_empty(&a);
    ft__text_empty(&b);
    ft__ink(&a, style, s->learned + s->calibrated >= 0.5 ? FT_INK_GREEN : FT_INK_YELLOW);
    bool brief = style->width < 100, here = s->learned + s->calibrated >= 0.005;
    if (here) ft__add_percent(&a, s->learned + s->calibrated);
    ft__text_add(&a, here ? " learned" : "not measured");
    ft__ink_end(&a, style);
    if (here) ft__text_add(&b, brief ? "here" : "measured on this GPU");
    add_source(&b, s->sibling, brief ? "kin" : "of a sibling");
    add_source(&b, s->physics, "physics");
    if (s->roofline > 0.0005) {
        ft__text_add(&b, "; ");
        ft__add_percent(&b, s->roofline);
        ft__text_add(&b, " guessed");
    }
    ft__line(out, style, "source", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
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
    class_lines(out, style, v);
    ft__text_add(out, "\n");
    return ft__screen_kernels(out, style, v, TOP_KERNELS);
}
