/* answer_advice.c: advice, verdicts, findings and techniques as JSON. */
#include "memory/verdict.h"
#include "report/json/answer.h"
#include "report/json/answer_step.h"
#include "report/text/advice_words.h"
#include "request/patch.h"

enum { DIGITS = 6 };

/* Savings and changes of memory may be negative, which ft__answer_figure leaves out. */
static void add_signed(ft_text *out, const char *key, double value, int digits)
{
    ft__json_member_number(out, key, value, digits);
}

static void add_text(ft_text *out, const char *key, ft_text *text)
{
    ft__json_member_text(out, key, text->at ? text->at : "");
    out->failed = out->failed || text->failed;
    ft__text_empty(text);
}

/* {"execution":"compile"}: what to merge into the request; keys of "model" are keys of its config. */
static void add_patch(ft_text *out, const ft_change *now, const ft_change *after)
{
    json_t *patch = ft__change_patch(now, after);
    if (patch)
        ft__json_member_tree(out, "request", patch);
    else
        out->failed = true;
    json_decref(patch);
}

static void add_one(ft_text *out, const ft_step_view *v, const ft_advice *a)
{
    ft_text t = {0};
    ft__json_open(out);
    ft__advice_change(&t, a, v->asked);
    add_text(out, "change", &t);
    add_signed(out, "saves_ms", a->saves_ms, DIGITS);
    add_signed(out, "low_ms", a->low_ms, DIGITS);
    add_signed(out, "high_ms", a->high_ms, DIGITS);
    ft__answer_figure(out, "step_ms", a->step_ms);
    add_signed(out, "memory_bytes", (double)(int64_t)a->memory_bytes, 15);
    ft__json_member_flag(out, "fits", a->fits);
    ft__answer_word(out, "verdict", ft__fit_words[a->verdict]);
    if (a->on_top) {
        ft__json_member_flag(out, "on_top", true);
    }
    ft__json_member_flag(out, "exact", a->exact);
    ft__advice_why(&t, a, v->asked, v->advised->part_ms);
    add_text(out, "why", &t);
    add_patch(out, v->asked, &a->after);
    ft__json_close(out);
    ft__text_drop(&t, out);
}

static void add_list(ft_text *out, const ft_step_view *v, const char *key, const ft_advice *list, size_t count)
{
    ft__json_member_list(out, key);
    for (size_t i = 0; i < count; i++) {
        add_one(out, v, &list[i]);
    }
    ft__json_close_list(out);
}

static void add_verdict(ft_text *out, const ft_verdict *x)
{
    ft__json_open(out);
    ft__json_member_number(out, "ms", x->ms, DIGITS);
    ft__answer_word(out, "name", x->name);
    ft__answer_word(out, "bound", ft_bound_name(x->bound));
    for (int i = 0; i < 4; i++) ft__answer_figure(out, ft_bound_name((ft_bound)i), x->share[i]);
    ft__answer_figure(out, "launches", x->launches);
    ft__answer_figure(out, "intensity_flop_per_byte", x->intensity);
    ft__answer_figure(out, "balance_flop_per_byte", x->balance);
    ft__answer_figure(out, "achieved_tflops", x->tflops);
    ft__answer_figure(out, "peak_tflops", x->peak_tflops);
    ft__answer_figure(out, "achieved_gbps", x->gbps);
    ft__answer_figure(out, "peak_gbps", x->peak_gbps);
    if (x->waves > 0) {
        ft__answer_figure(out, "waves", x->waves);
        ft__answer_figure(out, "tail", x->tail);
    }
    ft__json_close(out);
}

static void add_verdicts(ft_text *out, const ft_step_view *v)
{
    const ft_verdicts *x = &v->advised->verdicts;
    ft__json_member_open(out, "verdict");
    ft__json_key(out, "whole");
    add_verdict(out, &x->whole);
    ft__json_member_list(out, "phases");
    for (int p = 0; p < FT_PHASE_COUNT; p++) {
        if (!(x->phase[p].ms > 0)) continue;
        add_verdict(out, &x->phase[p]);
    }
    ft__json_close_list(out);
    ft__json_member_list(out, "layers");
    for (size_t i = 0; i < x->layer_count; i++) {
        add_verdict(out, &x->layers[i]);
    }
    ft__json_close_list(out);
    ft__answer_figure(out, "idle_ms", x->idle_ms);
    ft__answer_figure(out, "exposed_ms", x->exposed_ms);
    ft__answer_figure(out, "exposed_bytes", x->exposed_bytes);
    if (x->doubled_ms > 0) {
        ft__json_member_open(out, "doubled");
        ft__json_member_whole(out, "batch", x->doubled_batch);
        ft__answer_figure(out, "step_ms", x->doubled_ms);
        ft__answer_figure(out, "ratio", ft__doubling(x, v->step));
        ft__json_close(out);
    }
    ft__json_close(out);
}

static void add_lints(ft_text *out, const ft_step_view *v)
{
    ft_text t = {0};
    ft__json_member_list(out, "lint");
    for (size_t i = 0; i < v->advised->lint_count; i++) {
        const ft_lint *l = &v->advised->lints[i];
        ft__json_open(out);
        ft__json_member_text(out, "kind", ft__lint_words[l->kind]);
        ft__answer_word(out, "block", l->block);
        ft__answer_word(out, "name", l->name);
        ft__answer_word(out, "phase", ft__phase_name(l->phase));
        ft__lint_finding(&t, l);
        add_text(out, "finding", &t);
        ft__lint_fix(&t, l);
        add_text(out, "fix", &t);
        ft__answer_figure(out, "ms", l->ms);
        ft__answer_figure(out, "saves_ms", l->saves_ms);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__text_drop(&t, out);
}

static void add_loading(ft_text *out, const ft_loading *l)
{
    ft__json_member_open(out, "loading");
    ft__json_member_text(out, "bound", l->wait_ms > 0 ? ft__loading_words[l->stage] : "compute");
    ft__answer_figure(out, "compute_ms", l->compute_ms);
    ft__answer_figure(out, "read_ms", l->read_ms);
    ft__answer_figure(out, "prepare_ms", l->prepare_ms);
    ft__answer_figure(out, "copy_ms", l->copy_ms);
    ft__answer_figure(out, "wait_ms", l->wait_ms);
    ft__json_close(out);
}

void ft__answer_evidence(ft_text *out, const ft_step_view *v, const ft_merged *m)
{
    ft_timed once = {.node = (int32_t)(m->node - v->graph->nodes), .times = 1, .forecast = *m->forecast};
    ft_verdict x = ft__verdict_kernel(v->graph, &once, v->device);
    ft__answer_figure(out, "intensity_flop_per_byte", x.intensity);
    ft__answer_figure(out, "balance_flop_per_byte", x.balance);
    ft__answer_figure(out, "achieved_tflops", x.tflops);
    ft__answer_figure(out, "achieved_gbps", x.gbps);
    if (!(x.waves > 0)) return;
    ft__answer_figure(out, "waves", x.waves);
    ft__answer_figure(out, "tail", x.tail);
}

void ft__answer_advice(ft_text *out, const ft_step_view *v)
{
    if (v->asked && v->asked->loader.given) add_loading(out, &v->loading);
    const ft_advised *a = v->advised;
    if (!a) return;
    add_list(out, v, "advice", a->list, a->count);
    if (a->closed_forms) ft__answer_word(out, "advice_note", ft__closed_remark);
    if (a->together.saves_ms > 0) {
        ft__json_member_open(out, "advice_together");
        ft__json_member_number(out, "saves_ms", a->together.saves_ms, DIGITS);
        add_signed(out, "low_ms", a->together.low_ms, DIGITS);
        add_signed(out, "high_ms", a->together.high_ms, DIGITS);
        ft__answer_figure(out, "step_ms", a->together.step_ms);
        add_signed(out, "memory_bytes", (double)(int64_t)a->together.memory_bytes, 15);
        add_patch(out, v->asked, &a->together.after);
        ft__json_close(out);
    }
    add_list(out, v, "other_gpus", a->gpus, a->gpu_count);
    add_verdicts(out, v);
    add_lints(out, v);
    if (a->table) add_list(out, v, "techniques", a->table, a->table_count);
}
