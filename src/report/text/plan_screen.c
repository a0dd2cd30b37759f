/* plan_screen.c: a plan for people: the best layouts side by side, why each is behind the first, what would be faster
 * and does not fit, and what another network would change. */
#include "report/text/plan_screen.h"

#include <inttypes.h>
#include <math.h>

#include "report/launch/launch.h"
#include "report/plan_causes.h"
#include "report/text/columns.h"
#include "report/text/lines.h"
#include "search/space_constants.h"

enum { MOST_PARETO = 8 };

void ft__add_layout(ft_text *out, const ft_style *style, const ft_layout *l)
{
    const ft_parallel *p = &l->parallel;
    const struct {
        const char *name;
        int64_t degree;
    } degrees[] = {{"tp", p->tp}, {"cp", p->cp}, {"ep", p->ep}, {"pp", p->pp}, {"dp", p->dp}};
    bool any = false;
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        if (degrees[i].degree <= 1) continue;
        ft__text_addf(out, "%s%s %" PRId64, any ? ", " : "", degrees[i].name, degrees[i].degree);
        if (degrees[i].degree == p->pp && degrees[i].name[0] == 'p' && p->vpp > 1)
            ft__text_addf(out, " %s %" PRId64, ft__times(style), p->vpp);
        if (degrees[i].name[0] == 'c' && ft__layout_says_context(p))
            ft__text_addf(out, " %s", ft__context_name(p->context));
        any = true;
    }
    if (!any) ft__text_add(out, "one GPU");
    if (p->etp == 1 && p->tp > 1) ft__text_add(out, ", etp 1");
    if (p->zero) ft__text_addf(out, ", zero %d", p->zero);
    for (int i = 0; i < FT_OFFLOAD_COUNT; i++)
        if (l->offload & 1u << i) ft__text_addf(out, ", %s on host", ft__offload_words[i]);
}

/* What an objective is called in sentences about it. */
typedef struct goal_words {
    const char *better; /* "none of the others can ..." */
    const char *best;   /* "plan 2 is the ..." where something else changes, which changes times */
    const char *behind; /* the heading of what the others lose */
} goal_words;

static const goal_words *words_of(const ft_plan *p)
{
    static const goal_words words[FT_GOAL_COUNT] = {
        [FT_GOAL_TIME] = {"be faster", "best", "why the others are behind the first"},
        [FT_GOAL_MEMORY] = {"hold less", "fastest", "what the others hold beyond the first, and where their time goes"},
        [FT_GOAL_ENERGY] = {"draw less", "fastest", "what the others draw beyond the first, and where their time goes"},
        [FT_GOAL_COST] = {"be faster", "best", "why the others are behind the first"},
    };
    return &words[p->search.asked->goal];
}

static void title(ft_text *out, const ft_style *style, const ft_plan *p)
{
    const ft_search *s = &p->search;
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, "plan ");
    ft__text_add_plain(out, s->request.model);
    ft__ink_end(out, style);
    ft__text_addf(out, "  on %" PRId64 " %s ", s->asked->gpus, ft__times(style));
    ft__text_add_plain(out, s->request.device->title[0] ? s->request.device->title : s->request.device->name);
    ft__text_addf(out, ", %s\n", s->framework->title);
    ft_text t = {0};
    ft__text_addf(&t, "%s, global batch %" PRId64, s->request.dtype_name, s->asked->global);
    if (!ft__counts_samples(s->request.arch))
        ft__text_addf(&t, " %s %" PRId64 " tokens%s", ft__times(style), s->request.work.seq,
                      ft__sequences_each(s->request.work.trainer) > 1 ? " in pairs" : "");
    ft__text_addf(&t, "; %zu layouts, %zu too large, %zu forecast in ", p->candidates, p->too_large, p->forecasts);
    ft__add_figure(&t, p->search_ms * 1e-3, 2);
    ft__text_add(&t, " s");
    if (p->plan_count && p->proven)
        ft__text_addf(&t, "; none of the others can %s than those shown", words_of(p)->better);
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__ink_end(out, style);
    ft__text_drop(&t, out);
}

static void memory_cell(ft_columns *t, const ft_candidate *c)
{
    const ft_memory *m = &c->memory;
    const double held = m->reserved_bytes + m->context_bytes;
    ft_text *cell = ft__cell(t);
    ft__add_gib(cell, held);
    if (held <= (1 - FT_K_SPACE_TIGHT) * m->capacity_bytes) return;
    ft__text_add(cell, ", ");
    ft__add_gib(cell, m->capacity_bytes - held);
    ft__text_add(cell, " left");
}

static bool plans(ft_text *out, const ft_style *style, const ft_plan *p)
{
    static const char *const head[] = {"",         "layout", "micro-batch", "recompute", "step",
                                       "interval", "MFU",    "GiB",         "best",      "energy"};
    bool joules = p->search.asked->goal == FT_GOAL_ENERGY;
    ft_columns t;
    ft__columns_init(&t, joules ? "rlrlrrrrrr" : "rlrlrrrrr");
    t.drop = "fg";
    for (size_t i = 0; i < sizeof head / sizeof *head - !joules; i++) ft__cell_add(&t, head[i]);
    for (size_t i = 0; i < p->plan_count; i++) {
        const ft_candidate *c = &p->plans[i];
        ft__cell_addf(&t, "%zu", i + 1);
        ft__add_layout(ft__cell(&t), style, &c->layout);
        ft__cell_addf(&t, "%" PRId64 " %s %" PRId64, c->layout.batch, ft__times(style), c->layout.micros);
        ft__cell_add(&t, ft__recompute_words[c->layout.recompute]);
        ft_text *cell = ft__cell(&t);
        ft__add_figure(cell, c->step_ms * 1e-3, 4);
        ft__text_add(cell, " s");
        cell = ft__cell(&t);
        ft__add_figure(cell, c->low_ms * 1e-3, 3);
        ft__text_add(cell, ft__dash(style));
        ft__add_figure(cell, c->high_ms * 1e-3, 3);
        ft__add_percent(ft__cell(&t), c->mfu);
        memory_cell(&t, c);
        ft__add_percent(ft__cell(&t), c->chance);
        if (joules) ft__add_si(ft__cell(&t), c->energy.joules * (double)p->search.asked->gpus, "J");
    }
    ft__text_add(out, "\n");
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

/* Whoever is so near that forecasts cannot tell. */
static void ties(ft_text *out, const ft_style *style, const ft_plan *p)
{
    size_t near = 1;
    bool timed = p->search.asked->goal != FT_GOAL_MEMORY; /* what a layout holds is no matter of chance */
    while (timed && near < p->plan_count && p->plans[near].step_ms < 1.01 * p->plans[0].step_ms) near++;
    ft_text t = {0};
    if (near > 1)
        ft__text_addf(&t,
                      "The first %zu are within 1 %%: a tie. Rankings this close are right half the time; try these "
                      "first. \"best\" is the chance that a plan is the fastest of those shown.",
                      near);
    else
        ft__text_add(&t, "\"best\" is the chance that a plan is the fastest of those shown.");
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__ink_end(out, style);
    ft__text_drop(&t, out);
}

/* What stands before every step, however it is laid out. */
static void generated(ft_text *out, const ft_style *style, const ft_rollout *first)
{
    ft_text t = {0};
    if (!(first->ms > 0)) return;
    ft__text_add(&t, "Of every step ");
    ft__add_figure(&t, first->ms * 1e-3, 4);
    ft__text_addf(&t, " s (");
    ft__add_figure(&t, first->low_ms * 1e-3, 3);
    ft__text_add(&t, ft__dash(style));
    ft__add_figure(&t, first->high_ms * 1e-3, 3);
    ft__text_addf(&t, ") are answers that are generated first, by engines of %" PRId64 " GPU%s each.", first->tp,
                  first->tp > 1 ? "s" : "");
    if (!first->fits) ft__text_add(&t, " No engine holds the model and what it decodes at once.");
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__text_drop(&t, out);
}

/* By what the objective counts. */
static void behind(ft_text *cell, const ft_plan *p, const ft_candidate *c)
{
    const ft_candidate *first = &p->plans[0];
    switch (p->search.asked->goal) {
    case FT_GOAL_MEMORY:
        ft__add_gib(cell, ft__plan_held(c) - ft__plan_held(first));
        ft__text_add(cell, " GiB");
        break;
    case FT_GOAL_ENERGY:
        ft__add_si(cell, (c->energy.joules - first->energy.joules) * (double)p->search.asked->gpus, "J");
        break;
    default: ft__add_figure(cell, c->step_ms - first->step_ms, 3); ft__text_add(cell, " ms");
    }
}

static bool why_not(ft_text *out, const ft_style *style, const ft_plan *p)
{
    if (p->plan_count < 2) return true;
    bool timed = p->search.asked->goal == FT_GOAL_TIME || p->search.asked->goal == FT_GOAL_COST;
    ft__heading(out, style, words_of(p)->behind);
    ft_columns t;
    ft__columns_init(&t, "rrl");
    ft__cell_add(&t, "");
    ft__cell_add(&t, timed ? "behind" : "beyond");
    ft__cell_add(&t, timed ? "where" : "step, ms");
    for (size_t i = 1; i < p->plan_count; i++) {
        ft_plan_cause causes[FT_PLAN_CAUSES];
        size_t count = ft__plan_causes(&p->plans[0], &p->plans[i], causes);
        ft__cell_addf(&t, "%zu", i + 1);
        behind(ft__cell(&t), p, &p->plans[i]);
        ft_text *cell = ft__cell(&t);
        for (size_t k = 0; k < count; k++) {
            ft__text_addf(cell, "%s%s %s", k ? ", " : "", causes[k].part, causes[k].change_ms > 0 ? "+" : "-");
            ft__add_figure(cell, fabs(causes[k].change_ms), 3);
        }
        if (!count) ft__text_add(cell, "nowhere in particular");
    }
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

static void faster(ft_text *out, const ft_style *style, const ft_plan *p)
{
    if (!p->faster) return;
    const ft_memory *m = &p->faster->memory;
    bool hardly = m->verdict == FT_FIT_TIGHT, likely = hardly && m->chance_fits > 1 - m->chance_fits;
    ft_text head = {0}; /* where nothing fits there is nothing that it is faster than */
    ft__text_addf(&head, "%s, and %s", p->plan_count ? "faster" : "the nearest",
                  likely   ? "fits tightly"
                  : hardly ? "hardly fits"
                           : "does not fit");
    ft__heading(out, style, head.at ? head.at : "");
    ft__text_drop(&head, out);
    ft_text t = {0};
    ft__add_layout(&t, style, &p->faster->layout);
    ft__text_addf(&t, ", micro-batch %" PRId64 ", recompute %s: ", p->faster->layout.batch,
                  ft__recompute_words[p->faster->layout.recompute]);
    ft__add_figure(&t, p->faster->step_ms * 1e-3, 4);
    ft__text_add(&t, " s, short of ");
    ft__add_gib(&t, m->reserved_bytes + m->context_bytes - p->search.capacity);
    ft__text_add(&t, " GiB");
    if (hardly)
        ft__text_addf(&t, ", %.0f %% likely to fit all the same: train calls it tight, plans have to fit",
                      100 * m->chance_fits);
    ft__text_addf(&t, "%s%s", *p->remedy ? "; it fits with " : "", p->remedy);
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__text_drop(&t, out);
}

static bool trade(ft_text *out, const ft_style *style, const ft_plan *p)
{
    if (p->pareto_count < 2) return true;
    ft__heading(out, style, "time against memory");
    ft_columns t;
    ft__columns_init(&t, "rrlrl");
    static const char *const head[] = {"GiB", "step", "layout", "micro-batch", "recompute"};
    for (size_t i = 0; i < 5; i++) ft__cell_add(&t, head[i]);
    size_t shown = p->pareto_count < MOST_PARETO ? p->pareto_count : MOST_PARETO;
    for (size_t i = 0; i < shown; i++) {
        const ft_candidate *c = p->pareto[i * (p->pareto_count - 1) / (shown - 1)];
        ft__add_gib(ft__cell(&t), c->memory.reserved_bytes + c->memory.context_bytes);
        ft_text *cell = ft__cell(&t);
        ft__add_figure(cell, c->step_ms * 1e-3, 4);
        ft__text_add(cell, " s");
        ft__add_layout(ft__cell(&t), style, &c->layout);
        ft__cell_addf(&t, "%" PRId64, c->layout.batch);
        ft__cell_add(&t, ft__recompute_words[c->layout.recompute]);
    }
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

static bool against_gpus(ft_text *out, const ft_style *style, const ft_plan *p)
{
    if (!p->by_gpus_count) return true;
    ft__heading(out, style, "time against GPUs");
    ft_columns t;
    ft__columns_init(&t, "rrrl");
    static const char *const head[] = {"GPUs", "step", "tokens/s a GPU", "layout"};
    for (size_t i = 0; i < 4; i++) ft__cell_add(&t, head[i]);
    for (size_t i = 0; i < p->by_gpus_count; i++) {
        const ft_plan_of_gpus *at = &p->by_gpus[i];
        ft__cell_addf(&t, "%" PRId64, at->gpus);
        ft_text *cell = ft__cell(&t);
        if (at->fits) ft__add_figure(cell, at->best.step_ms * 1e-3, 4);
        ft__text_add(cell, at->fits ? " s" : "-");
        cell = ft__cell(&t);
        if (at->fits)
            ft__add_figure(cell, at->best.tokens_per_s, 4);
        else
            ft__text_add(cell, "-");
        cell = ft__cell(&t);
        if (at->fits)
            ft__add_layout(cell, style, &at->best.layout);
        else
            ft__text_add(cell, "none fits");
        if (at->fits && !at->front) ft__text_add(cell, "; fewer are as fast");
    }
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

static void in_formats(ft_text *out, const ft_style *style, const ft_plan *p)
{
    if (!p->format_count) return;
    ft__heading(out, style, "in other number formats");
    for (size_t i = 0; i < p->format_count; i++) {
        const ft_plan_of_format *at = &p->formats[i];
        ft_text t = {0};
        ft__text_addf(&t, "%s: ", ft_dtype_name(at->dtype));
        if (at->fits) {
            ft__add_figure(&t, at->best.step_ms * 1e-3, 4);
            ft__text_add(&t, " s, ");
            ft__add_layout(&t, style, &at->best.layout);
        } else {
            ft__text_add(&t, *at->why ? at->why : "none fits");
        }
        ft__add_wrapped(out, style, t.at ? t.at : "");
        ft__text_drop(&t, out);
    }
}

static void changes(ft_text *out, const ft_style *style, const ft_plan *p)
{
    if (!p->changed_count) return;
    ft__heading(out, style, "if it is not as forecast");
    for (size_t i = 0; i < p->changed_count; i++) {
        const ft_plan_changed *c = &p->changed[i];
        ft_text t = {0};
        ft__text_addf(&t, "%s: plan 1 takes ", c->what);
        ft__add_figure(&t, c->step_ms[0] * 1e-3, 4);
        ft__text_add(&t, " s");
        if (c->best) {
            ft__text_addf(&t, ", and plan %zu is the %s with ", c->best + 1, words_of(p)->best);
            ft__add_figure(&t, c->step_ms[c->best] * 1e-3, 4);
            ft__text_add(&t, " s");
        } else if (p->plan_count > 1) {
            ft__text_addf(&t, " and stays the %s of these", words_of(p)->best);
        }
        ft__add_wrapped(out, style, t.at ? t.at : "");
        ft__text_drop(&t, out);
    }
}

/* Files as they are, to be cut out and used. */
static void launch(ft_text *out, const ft_style *style, const ft_plan *p)
{
    ft_launch best = ft__launch_of(p, &p->plans[0]);
    const ft_launcher *by[FT_PLAN_MOST_EMITTED];
    const size_t count = ft__launch_files(p, by);
    for (size_t i = 0; i < count; i++) {
        ft__heading(out, style, by[i]->title);
        by[i]->write(out, &best);
    }
}

bool ft__screen_plan(ft_text *out, const ft_style *style, const ft_plan *p)
{
    title(out, style, p);
    if (!p->plan_count) {
        ft__text_add(out, "\n  None fits.");
        if (p->least_gpus)
            ft__text_addf(out, " %" PRId64 " GPUs would do.", p->least_gpus);
        else
            ft__text_add(out, " Nor does any on a larger cluster.");
        ft__text_add(out, "\n");
        faster(out, style, p);
        bool printed = against_gpus(out, style, p);
        return printed && !out->failed;
    }
    bool printed = plans(out, style, p);
    generated(out, style, &p->search.rollout);
    ties(out, style, p);
    printed = why_not(out, style, p) && printed;
    faster(out, style, p);
    printed = trade(out, style, p) && printed;
    printed = against_gpus(out, style, p) && printed;
    in_formats(out, style, p);
    changes(out, style, p);
    launch(out, style, p);
    return printed && !out->failed;
}

void ft__screen_planned(ft_text *out, const ft_style *style, const ft_planned *p)
{
    ft_text a = {0}, b = {0};
    ft__text_addf(&a, "%zu layouts", p->candidates);
    ft__text_addf(&b, "of %s were looked at; ", p->framework->title);
    if (p->request)
        ft__text_add(&b, "this one is the fastest that fits. --tp, --pp, ... say another");
    else
        ft__text_addf(&b, "none fits, and this is what was asked: %s", p->shown);
    if (p->least_gpus) ft__text_addf(&b, "; %" PRId64 " GPUs would do", p->least_gpus);
    ft__line(out, style, "planned", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}
