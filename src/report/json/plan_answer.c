/* plan_answer.c: plans, runners-up and what stands in their way, as one JSON object. */
#include "report/json/plan_answer.h"

#include "report/json/answer_energy.h"
#include "report/launch/unsaid.h"
#include "report/plan_causes.h"

void ft__answer_offloaded(ft_text *out, const ft_layout *l)
{
    if (!l->offload) return;
    ft__json_member_list(out, "offload");
    for (int i = 0; i < FT_OFFLOAD_COUNT; i++)
        if (l->offload & 1u << i) ft__json_add_text(out, ft__offload_words[i]);
    ft__json_close_list(out);
}

/* Opens an object: its owner closes it. */
static void layout(ft_text *out, const ft_layout *l)
{
    const ft_parallel *p = &l->parallel;
    ft__json_open(out);
    ft__json_member_open(out, "parallel");
    ft__json_member_whole(out, "dp", p->dp);
    ft__json_member_whole(out, "tp", p->tp);
    ft__json_member_whole(out, "pp", p->pp);
    ft__json_member_whole(out, "vpp", p->vpp);
    ft__json_member_whole(out, "cp", p->cp);
    if (ft__layout_says_context(p)) ft__json_member_text(out, "cp_kind", ft__context_name(p->context));
    ft__json_member_whole(out, "ep", p->ep);
    if (p->etp > 0) ft__json_member_whole(out, "etp", p->etp);
    ft__json_member_whole(out, "zero", p->zero);
    ft__json_member_flag(out, "sp", p->sp);
    ft__json_member_text(out, "schedule", ft__schedule_name(p->schedule));
    ft__json_close(out);
    ft__json_member_whole(out, "batch", l->batch);
    ft__json_member_whole(out, "micro_batches", l->micros);
    ft__json_member_text(out, "recompute", ft__recompute_words[l->recompute]);
    ft__answer_offloaded(out, l);
}

static void memory(ft_text *out, const ft_memory *m)
{
    ft__json_member_open(out, "memory");
    ft__answer_bytes(out, "peak_bytes", m->peak_bytes);
    ft__answer_bytes(out, "reserved_bytes", m->reserved_bytes);
    ft__answer_bytes(out, "context_bytes", m->context_bytes);
    ft__answer_bytes(out, "capacity_bytes", m->capacity_bytes);
    ft__json_member_flag(out, "fits", m->fits);
    ft__json_close(out);
}

static void times(ft_text *out, const ft_candidate *c)
{
    ft__answer_figure(out, "step_ms", c->step_ms);
    ft__answer_figure(out, "low_ms", c->low_ms);
    ft__answer_figure(out, "high_ms", c->high_ms);
    if (c->rollout_ms > 0) ft__answer_figure(out, "rollout_ms", c->rollout_ms);
    ft__answer_figure(out, "tokens_per_s_per_gpu", c->tokens_per_s);
    ft__answer_figure(out, "mfu", c->mfu);
}

static void requested(ft_text *out, const ft_plan *p, const ft_candidate *c)
{
    json_t *request = ft__plan_json(p, &c->layout);
    if (request)
        ft__json_member_tree(out, "request", request);
    else
        out->failed = true;
    json_decref(request);
}

/* What starts it, by name. */
static void launched(ft_text *out, const ft_plan *p, const ft_candidate *c)
{
    const ft_launcher *by[FT_PLAN_MOST_EMITTED];
    const size_t count = ft__launch_files(p, by);
    ft_launch launch = ft__launch_of(p, c);
    if (!count) return;
    ft__json_member_open(out, "launch");
    for (size_t i = 0; i < count; i++) {
        ft_text file = {0};
        by[i]->write(&file, &launch);
        ft__json_member_text(out, by[i]->name, file.failed ? "" : file.at);
        ft__text_drop(&file, out);
    }
    ft__json_close(out);
}

static void plans(ft_text *out, const ft_plan *p)
{
    ft__json_member_list(out, "plans");
    for (size_t i = 0; i < p->plan_count; i++) {
        const ft_candidate *c = &p->plans[i];
        layout(out, &c->layout);
        times(out, c);
        memory(out, &c->memory);
        ft__answer_energy(out, &c->energy, (double)p->search.asked->gpus, "tokens_per_joule",
                          c->tokens_per_s * (double)p->search.asked->gpus * c->step_ms * 1e-3);
        ft__answer_figure(out, "chance_best", c->chance);
        requested(out, p, c);
        launched(out, p, c);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void runners_up(ft_text *out, const ft_plan *p)
{
    ft__json_member_list(out, "runners_up");
    for (size_t i = 1; i < p->plan_count; i++) {
        ft_plan_cause causes[FT_PLAN_CAUSES];
        size_t count = ft__plan_causes(&p->plans[0], &p->plans[i], causes);
        layout(out, &p->plans[i].layout);
        ft__answer_figure(out, "step_ms", p->plans[i].step_ms);
        ft__json_member_number(out, "behind_ms", p->plans[i].step_ms - p->plans[0].step_ms, 6);
        ft__json_member_list(out, "causes");
        for (size_t k = 0; k < count; k++) {
            ft__json_open(out);
            ft__json_member_text(out, "part", causes[k].part);
            ft__json_member_number(out, "change_ms", causes[k].change_ms, 6);
            ft__json_close(out);
        }
        ft__json_close_list(out);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void would_fit(ft_text *out, const ft_plan *p)
{
    ft__json_member_list(out, "would_fit");
    if (p->faster) {
        const ft_memory *m = &p->faster->memory;
        layout(out, &p->faster->layout);
        ft__answer_figure(out, "step_ms", p->faster->step_ms);
        ft__answer_bytes(out, "short_bytes", m->reserved_bytes + m->context_bytes - p->search.capacity);
        ft__answer_figure(out, "chance_fits", m->chance_fits);
        ft__answer_word(out, "remedy", p->remedy);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void pareto(ft_text *out, const ft_plan *p)
{
    ft__json_member_list(out, "pareto");
    for (size_t i = 0; i < p->pareto_count; i++) {
        layout(out, &p->pareto[i]->layout);
        ft__answer_figure(out, "step_ms", p->pareto[i]->step_ms);
        memory(out, &p->pareto[i]->memory);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void by_gpus(ft_text *out, const ft_plan *p)
{
    if (!p->by_gpus_count) return;
    ft__json_member_list(out, "by_gpus");
    for (size_t i = 0; i < p->by_gpus_count; i++) {
        const ft_plan_of_gpus *at = &p->by_gpus[i];
        if (at->fits)
            layout(out, &at->best.layout);
        else
            ft__json_open(out);
        ft__json_member_whole(out, "gpus", at->gpus);
        ft__json_member_flag(out, "fits", at->fits);
        if (at->fits) {
            ft__answer_figure(out, "step_ms", at->best.step_ms);
            ft__answer_figure(out, "tokens_per_s_per_gpu", at->best.tokens_per_s);
            ft__json_member_flag(out, "front", at->front);
        }
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void formats(ft_text *out, const ft_plan *p)
{
    if (!p->format_count) return;
    ft__json_member_list(out, "formats");
    for (size_t i = 0; i < p->format_count; i++) {
        const ft_plan_of_format *at = &p->formats[i];
        if (at->fits)
            layout(out, &at->best.layout);
        else
            ft__json_open(out);
        ft__answer_word(out, "dtype", ft_dtype_name(at->dtype));
        ft__json_member_flag(out, "fits", at->fits);
        if (at->fits) ft__answer_figure(out, "step_ms", at->best.step_ms);
        if (*at->why) ft__json_member_text(out, "why", at->why);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

static void sensitivity(ft_text *out, const ft_plan *p)
{
    ft__json_member_list(out, "sensitivity");
    for (size_t i = 0; i < p->changed_count; i++) {
        const ft_plan_changed *c = &p->changed[i];
        ft__json_open(out);
        ft__json_member_text(out, "what", c->what);
        ft__json_member_whole(out, "best_plan", (int64_t)c->best);
        ft__json_member_list(out, "step_ms");
        for (size_t k = 0; k < p->plan_count; k++) ft__json_add_number(out, c->step_ms[k], 6);
        ft__json_close_list(out);
        ft__json_close(out);
    }
    ft__json_close_list(out);
}

void ft__answer_plan(ft_text *out, const json_t *id, const ft_plan *p)
{
    ft__answer_begin(out, id);
    ft__answer_word(out, "framework", p->search.framework->name);
    ft__json_member_whole(out, "gpus", p->search.asked->gpus);
    ft__json_member_whole(out, "candidates", (int64_t)p->candidates);
    ft__json_member_whole(out, "fit", (int64_t)p->fit);
    ft__json_member_whole(out, "tight", (int64_t)p->tight);
    ft__json_member_whole(out, "too_large", (int64_t)p->too_large);
    ft__json_member_whole(out, "forecast", (int64_t)p->forecasts);
    ft__answer_word(out, "proof", p->proven ? "optimal" : "none");
    ft__answer_figure(out, "search_ms", p->search_ms);
    ft__json_member_flag(out, "fits", p->plan_count > 0);
    if (!p->plan_count && p->least_gpus) ft__json_member_whole(out, "least_gpus", p->least_gpus);
    plans(out, p);
    runners_up(out, p);
    would_fit(out, p);
    pareto(out, p);
    by_gpus(out, p);
    formats(out, p);
    sensitivity(out, p);
    ft_text lines = {0};
    ft__plan_say(p, &lines);
    ft__launch_warnings(&lines, p);
    if (lines.length) ft__answer_lines(out, "warnings", lines.at);
    ft__text_drop(&lines, out);
    ft__json_close(out);
}

void ft__answer_planned(ft_text *out, const ft_planned *p)
{
    ft__json_reopen(out);
    ft__json_member_open(out, "planned");
    ft__json_member_text(out, "framework", p->framework->name);
    ft__json_member_whole(out, "candidates", (int64_t)p->candidates);
    ft__json_member_whole(out, "forecast", (int64_t)p->forecasts);
    ft__json_member_flag(out, "fits", p->request != NULL);
    if (p->least_gpus) ft__json_member_whole(out, "least_gpus", p->least_gpus);
    if (*p->shown) ft__json_member_text(out, "shown", p->shown);
    ft__json_close(out);
    ft__json_close(out);
}
