/* plan.c: the search for the fastest layout that fits.
 *
 * Candidates are sorted by what they take at least and forecast in that order, some at once on every core. When the
 * next bound is beyond the slowest of the plans that are shown, nothing that is left can be among them: that is the
 * proof. The bounds are those of the forecasts, not of the machine: a proven plan is the best of what is forecast, and
 * how far an order of forecasts is to be trusted is another matter (chance.c). */
#define _POSIX_C_SOURCE 200809L /* clock_gettime under -std=c17 */
#include "search/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parallel.h"
#include "search/space_constants.h"

/* Forecast at once, on however many cores: how many forecasts a proof took is part of the answer. */
enum { WAVE = 16, PROBED_AT_ONCE = 8, USUAL_FORECASTS = 100 };

/* How much of a search the cells are: two stages each, against the layouts that will be forecast, some hundred unless
 * all of them are. */
static double cells_part(const ft_search *s)
{
    double cells = 2 * (double)s->cell_count,
           rest = s->asked->exhaustive ? (double)s->candidate_count : USUAL_FORECASTS;
    return cells / (cells + rest);
}

static void tell(const ft_search *s, const char *what, double done)
{
    if (s->asked->progress) s->asked->progress(s->asked->watcher, what, done);
}

static ft_status probe(void *context, size_t i, ft_worker *worker, ft_error *err)
{
    ft_search *s = context;
    tell(s, "layers", cells_part(s) * (double)i / (double)s->cell_count);
    return s->cells[i].probed || !s->cells[i].wanted ? FT_OK : ft__plan_probe(s, &s->cells[i], worker, err);
}

/* Pipelines first: they say whether the whole model can stand in one stage. */
static ft_status probe_all(ft_search *s, ft_workers *w, ft_error *err)
{
    for (size_t i = 0; i < s->cell_count; i++) s->cells[i].wanted = s->cells[i].parallel.pp > 1;
    FT_TRY(ft__workers_run(w, s->cell_count, PROBED_AT_ONCE, probe, s, err));
    ft__plan_spare(s);
    return ft__workers_run(w, s->cell_count, PROBED_AT_ONCE, probe, s, err);
}

typedef struct wave { /* what is forecast now */
    ft_search *s;
    size_t at[WAVE], count;
} wave;

static ft_status forecast(void *context, size_t i, ft_worker *worker, ft_error *err)
{
    wave *w = context;
    return ft__plan_forecast(w->s, &w->s->candidates[w->at[i]], &w->s->cluster, worker, err);
}

/* -- order ------------------------------------------------------------------------------------- */

/* Degrees decide among equals, so that the order never hangs on the sort. */
static int by_layout(const ft_layout *a, const ft_layout *b)
{
    const int64_t one[] = {a->parallel.tp,       a->parallel.cp,  a->parallel.pp,   a->parallel.vpp,
                           a->parallel.ep,       a->parallel.etp, a->parallel.zero, a->batch,
                           a->parallel.schedule, a->recompute,    a->offload};
    const int64_t two[] = {b->parallel.tp,       b->parallel.cp,  b->parallel.pp,   b->parallel.vpp,
                           b->parallel.ep,       b->parallel.etp, b->parallel.zero, b->batch,
                           b->parallel.schedule, b->recompute,    b->offload};
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        if (one[i] != two[i]) return one[i] < two[i] ? -1 : 1;
    return 0;
}

static int by_bound(const void *a, const void *b)
{
    const ft_candidate *x = a, *y = b;
    if (x->bound_ms != y->bound_ms) return x->bound_ms < y->bound_ms ? -1 : 1;
    return by_layout(&x->layout, &y->layout);
}

static int by_joules(const void *a, const void *b)
{
    const ft_candidate *x = a, *y = b;
    if (x->least_joules != y->least_joules) return x->least_joules < y->least_joules ? -1 : 1;
    return by_layout(&x->layout, &y->layout);
}

static int by_least(const void *a, const void *b)
{
    const ft_candidate *x = a, *y = b;
    if (x->least_bytes != y->least_bytes) return x->least_bytes < y->least_bytes ? -1 : 1;
    return by_layout(&x->layout, &y->layout);
}

double ft__plan_held(const ft_candidate *c) { return c->memory.reserved_bytes + c->memory.context_bytes; }

bool ft__plan_stands(const ft_candidate *c) { return c->fate == FT_FATE_FORECAST && c->fits; }

/* What a plan should have least of. */
static double worth_of(const ft_candidate *c, ft_plan_goal goal)
{
    return goal == FT_GOAL_MEMORY ? ft__plan_held(c) : goal == FT_GOAL_ENERGY ? c->energy.joules : c->step_ms;
}

/* Those that can be plans first, the best of them first. */
static int by_worth(const ft_candidate *x, const ft_candidate *y, ft_plan_goal goal)
{
    if (ft__plan_stands(x) != ft__plan_stands(y)) return ft__plan_stands(x) ? -1 : 1;
    double a = worth_of(x, goal), b = worth_of(y, goal);
    if (ft__plan_stands(x) && a != b) return a < b ? -1 : 1;
    return by_layout(&x->layout, &y->layout);
}

int ft__plan_by_time(const void *a, const void *b) { return by_worth(a, b, FT_GOAL_TIME); }
static int by_memory(const void *a, const void *b) { return by_worth(a, b, FT_GOAL_MEMORY); }
static int by_energy(const void *a, const void *b) { return by_worth(a, b, FT_GOAL_ENERGY); }

ft_plan_order ft__plan_orders(ft_plan_goal goal)
{
    static const ft_plan_order worths[FT_GOAL_COUNT] = {ft__plan_by_time, by_memory, by_energy, ft__plan_by_time};
    return worths[goal];
}

/* -- searching --------------------------------------------------------------------------------- */

static double floor_of(const ft_search *s, const ft_candidate *c)
{
    return s->asked->goal == FT_GOAL_MEMORY   ? c->least_bytes
           : s->asked->goal == FT_GOAL_ENERGY ? c->least_joules
                                              : c->bound_ms;
}

/* What the plans must beat: the last of those shown, so far. */
static void note(const ft_search *s, double *best, size_t top, const ft_candidate *c)
{
    if (!ft__plan_stands(c)) return;
    double worth = worth_of(c, s->asked->goal);
    for (size_t i = 0; i < top; i++)
        if (worth < best[i]) {
            memmove(&best[i + 1], &best[i], (top - 1 - i) * sizeof *best);
            best[i] = worth;
            return;
        }
}

/* Of the layouts that may still be forecast, those whose turn has come. */
static double share_done(const ft_search *s, size_t next, double worst)
{
    size_t end = s->candidate_count;
    while (!s->asked->exhaustive && end > next && floor_of(s, &s->candidates[end - 1]) > worst) end--;
    return end ? (double)next / (double)end : 1;
}

static ft_status search(ft_search *s, ft_workers *workers, ft_plan *out, ft_error *err)
{
    size_t top = (size_t)s->asked->top, count = s->candidate_count, next = 0;
    double best[FT_PLAN_MOST_TOP];
    for (size_t i = 0; i < top; i++) best[i] = INFINITY;
    static const ft_plan_order floors[FT_GOAL_COUNT] = {by_bound, by_least, by_joules, by_bound};
    qsort(s->candidates, count, sizeof *s->candidates, floors[s->asked->goal]);
    for (;;) {
        wave w = {.s = s};
        for (; next < count && w.count < WAVE; next++) {
            const ft_candidate *c = &s->candidates[next];
            if (c->fate != FT_FATE_OPEN) continue;
            if (!s->asked->exhaustive && floor_of(s, c) > best[top - 1]) {
                next = count; /* they only grow from here */
                break;
            }
            w.at[w.count++] = next;
        }
        if (!w.count) break;
        FT_TRY(ft__workers_run(workers, w.count, 1, forecast, &w, err));
        for (size_t i = 0; i < w.count; i++) note(s, best, top, &s->candidates[w.at[i]]);
        out->forecasts += w.count;
        double before = cells_part(s);
        if (s->asked->progress) tell(s, "layouts", before + (1 - before) * share_done(s, next, best[top - 1]));
    }
    out->proven = true;
    return FT_OK;
}

/* -- the whole --------------------------------------------------------------------------------- */

static ft_status open_search(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_search *s,
                             ft_error *err)
{
    s->ft = ft;
    s->asked = r;
    if (r->framework)
        FT_TRY(ft__framework_find(r->framework, &s->framework, err));
    else
        FT_TRY(ft__framework_usual(ft, scratch, r->base, &s->framework, err));
    FT_TRY(ft__framework_agrees(s->framework, r->base, err));
    json_t *base = r->base;
    bool named = ft__key_get(base, FT_KEY_ID_STACK), runs = ft__key_get(base, FT_KEY_ID_EXECUTION);
    if (!named && s->framework->stack && !ft__key_set(base, FT_KEY_ID_STACK, json_string(s->framework->stack)))
        return ft__no_memory(err);
    if (!named && !runs && s->framework->execution &&
        !ft__key_set(base, FT_KEY_ID_EXECUTION, json_string(s->framework->execution)))
        return ft__no_memory(err);
    s->own_stack = named;
    s->own_execution = runs;
    FT_TRY(ft__model_request_of(ft, scratch, base, &s->request, err));
    FT_TRY(ft__framework_holds(s->framework, &s->request, err));
    FT_TRY(ft__cluster_read(s->request.cluster, s->request.device, r->gpus, &s->cluster, err));
    s->quantile = s->request.quantile > 0 ? s->request.quantile : ft__context_quantile(ft);
    s->model = ft__ranks_model(s->request.arch, &s->request.work);
    s->threads = ft__core_count();
    return FT_OK;
}

/* Whether layers are all alike, whether there are any to run again, and what a rank may hold. */
static ft_status look_at_model(ft_search *s, ft_worker *worker, ft_error *err)
{
    ft_workload once = s->request.work;
    ft_graph *whole = NULL;
    ft_memory memory;
    once.layers_apart = true;
    once.accumulate = 1;
    FT_TRY(ft__model_graph(s->request.arch, &s->request.work, worker->arena, &whole, err));
    FT_TRY(ft__step_memory(whole, &s->request.work, s->request.device, &memory, err));
    s->capacity = memory.capacity_bytes * (1 - s->asked->margin);
    s->trained = whole->trained_parameters;
    for (int32_t i = 0; i < whole->block_count; i++) {
        const ft_block *b = &whole->blocks[i];
        s->recomputes |= b->phase == FT_FORWARD && ft__block_is_layer(b) && !b->kept;
    }
    s->recomputes |= s->request.arch->design == FT_UNET; /* whose blocks are apart where they run again (unet.c) */
    if (s->model.layers < 8 || !s->model.in_a_row) return FT_OK;
    ft_layout quarters = {.parallel = s->request.parallel, .batch = once.batch, .micros = 1};
    quarters.parallel.pp = 4;
    quarters.parallel.dp = 1;
    ft_model_request r = ft__plan_request_of(s, &quarters);
    ft_ranks ranks = {.arch = r.arch,
                      .work = &r.work,
                      .parallel = &r.parallel,
                      .cluster = &s->cluster,
                      .device = r.device,
                      .arena = worker->arena};
    whole = NULL;
    FT_TRY(ft__model_forward(r.arch, &once, worker->arena, &whole, err));
    if (s->model.layers % 4 == 0) return ft__ranks_twins(&ranks, whole, 1, 2, &s->uniform, err);
    int kinds = 0; /* dealt out unevenly: alike where one block is all layers */
    for (int32_t b = 0; b < whole->block_count; b++) kinds += ft__block_is_layer(&whole->blocks[b]);
    s->uniform = kinds == 1;
    return FT_OK;
}

static void count_fates(ft_plan *out)
{
    const ft_search *s = &out->search;
    out->candidates = s->candidate_count;
    for (size_t i = 0; i < s->candidate_count; i++) {
        const ft_candidate *c = &s->candidates[i];
        out->refused += c->fate == FT_FATE_REFUSED;
        out->too_large += c->fate == FT_FATE_TOO_LARGE || (c->fate == FT_FATE_FORECAST && !c->fits);
        out->fit += ft__plan_stands(c);
        out->tight += ft__plan_stands(c) && ft__plan_held(c) > (1 - FT_K_SPACE_TIGHT) * c->memory.capacity_bytes;
    }
}

static ft_status run(ft_search *s, ft_scratch *scratch, ft_workers *w, ft_plan *out, ft_error *err)
{
    FT_TRY(ft__workers_start(s->threads, w, err));
    FT_TRY(look_at_model(s, &w->worker[0], err));
    FT_TRY(ft__plan_space(s, err));
    FT_TRY(ft__plan_idle(s, out, err));
    FT_TRY(ft__plan_rollout(s, scratch, err));
    for (size_t i = 0; i < s->candidate_count; i++) FT_TRY(ft__plan_cell(s, &s->candidates[i], err));
    FT_TRY(probe_all(s, w, err));
    for (size_t i = 0; i < s->candidate_count; i++) ft__plan_bound(s, &s->candidates[i]);
    FT_TRY(search(s, w, out, err));
    if (!out->trial) FT_TRY(ft__plan_fastest(s, w, out, err));
    if (!out->trial) FT_TRY(ft__plan_smaller(s, w, out, err));
    count_fates(out);
    qsort(s->candidates, s->candidate_count, sizeof *s->candidates, ft__plan_orders(s->asked->goal));
    return FT_OK;
}

static void take_plans(ft_search *s, ft_plan *out)
{
    double ms[FT_PLAN_MOST_TOP], chance[FT_PLAN_MOST_TOP];
    out->plans = s->candidates;
    for (size_t i = 0; i < s->candidate_count && i < (size_t)s->asked->top && ft__plan_stands(&s->candidates[i]); i++)
        ms[out->plan_count++] = s->candidates[i].step_ms - s->rollout.ms; /* which is the same for all */
    ft__plan_chances(ms, out->plan_count, FT_K_SPACE_ORDER_SPREAD, chance);
    for (size_t i = 0; i < out->plan_count; i++) out->plans[i].chance = chance[i];
}

ft_status ft__plan_in_format(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, bool trial,
                             ft_plan *out, ft_error *err)
{
    ft_workers w = {0};
    memset(out, 0, sizeof *out);
    out->trial = trial;
    out->remedy = out->remark = "";
    out->arena = ft__arena_new(0);
    if (!out->arena) return ft__no_memory(err);
    ft_search *s = &out->search;
    FT_TRY(open_search(ft, scratch, r, s, err));
    ft_status status = run(s, scratch, &w, out, err);
    if (status == FT_OK) take_plans(s, out);
    if (status == FT_OK && !trial) status = ft__plan_pareto(s, out, err);
    if (status == FT_OK && !trial) status = ft__plan_faster(s, &w, out, err);
    if (status == FT_OK && !trial) status = ft__plan_changes(s, &w, out, err);
    ft__workers_stop(&w);
    return status;
}

static ft_status plan(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, bool trial, ft_plan *out,
                      ft_error *err)
{
    FT_TRY(ft__plan_in_format(ft, scratch, r, trial, out, err));
    return r->formats ? ft__plan_formats(ft, scratch, r, trial, out, err) : FT_OK;
}

ft_status ft__plan_best(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_plan *out,
                        ft_error *err)
{
    return plan(ft, scratch, r, true, out, err);
}

ft_status ft__plan_of(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_plan *out, ft_error *err)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    FT_TRY(plan(ft, scratch, r, false, out, err));
    if (!out->plan_count) out->least_gpus = ft__plan_least(ft, scratch, r);
    if (r->by_gpus) FT_TRY(ft__plan_by_gpus(ft, scratch, r, out, err));
    clock_gettime(CLOCK_MONOTONIC, &to);
    out->search_ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) * 1e-6;
    return FT_OK;
}

void ft__plan_free(ft_plan *p)
{
    free(p->search.candidates);
    free(p->search.cells);
    ft__arena_free(p->arena);
    memset(p, 0, sizeof *p);
}
