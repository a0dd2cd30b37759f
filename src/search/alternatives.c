/* alternatives.c: what stands beside the plans: layouts that would be faster and do not fit, time against memory, and
 * what becomes of the plans where the network is not what it was taken for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/plan.h"
#include "search/space_constants.h"

/* How many are looked at; at once; weighed at once; and forecast ahead. */
enum { MOST_FASTER = 24, WAVE = 8, WEIGHED = 32, AHEAD = 2 };

/* Layouts that fit and hold less than all that are faster, the fastest first: what any other has to be held against. */
typedef struct smallest {
    struct {
        double ms, held;
    } * at;
    size_t count;
    double beyond; /* what forecasts are of their bounds, at least: no other is taken to come closer */
} smallest;

typedef struct wave {
    ft_search *s;
    ft_candidate *at[WEIGHED];
    size_t count;
    const smallest *smallest; /* so far, for who is weighed */
} wave;

static ft_status forecast(void *context, size_t i, ft_worker *worker, ft_error *err)
{
    wave *w = context;
    return ft__plan_forecast(w->s, w->at[i], &w->s->cluster, worker, err);
}

static ft_ranks ranks_of(const ft_search *s, const ft_model_request *r, const ft_worker *worker)
{
    return (ft_ranks){.arch = r->arch,
                      .work = &r->work,
                      .parallel = &r->parallel,
                      .cluster = &s->cluster,
                      .device = r->device,
                      .predictor = ft__context_predictor(s->ft),
                      .quantile = s->quantile,
                      .memo = worker->memo,
                      .arena = worker->arena};
}

static bool taken(const wave *w, const ft_candidate *c)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->at[i] == c) return true;
    return false;
}

static int by_bound_there(const void *a, const void *b)
{
    const ft_candidate *x = *(const ft_candidate *const *)a, *y = *(const ft_candidate *const *)b;
    if (x->bound_ms != y->bound_ms) return x->bound_ms < y->bound_ms ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* A search by time beside the one that was asked for: the fastest that fits, and with it all that is faster. Where time
 * is the goal, nothing is left that could be. */
ft_status ft__plan_fastest(ft_search *s, ft_workers *workers, ft_plan *out, ft_error *err)
{
    double fastest = INFINITY;
    size_t count = 0;
    if (s->asked->goal != FT_GOAL_MEMORY && s->asked->goal != FT_GOAL_ENERGY) return FT_OK;
    ft_candidate **open = ft__arena_array(out->arena, s->candidate_count + 1, sizeof *open);
    if (!open) return ft__no_memory(err);
    for (size_t i = 0; i < s->candidate_count; i++) {
        ft_candidate *c = &s->candidates[i];
        if (ft__plan_stands(c)) fastest = fmin(fastest, c->step_ms);
        if (c->fate == FT_FATE_OPEN) open[count++] = c;
    }
    qsort(open, count, sizeof *open, by_bound_there);
    for (size_t next = 0; next < count && open[next]->bound_ms < fastest;) {
        wave w = {.s = s};
        for (; next < count && w.count < WAVE && open[next]->bound_ms < fastest; next++) w.at[w.count++] = open[next];
        FT_TRY(ft__workers_run(workers, w.count, 1, forecast, &w, err));
        out->forecasts += w.count;
        for (size_t i = 0; i < w.count; i++)
            if (ft__plan_stands(w.at[i])) fastest = fmin(fastest, w.at[i]->step_ms);
    }
    return FT_OK;
}

/* Of what cannot fit and may be faster the next that holds least by its bound; NULL: nothing that could be nearer. */
static ft_candidate *nearest(ft_search *s, double limit, double most, const wave *but)
{
    ft_candidate *found = NULL;
    for (size_t i = 0; i < s->candidate_count; i++) {
        ft_candidate *c = &s->candidates[i];
        if (c->fate != FT_FATE_TOO_LARGE || c->bound_ms >= limit || c->least_bytes >= most) continue;
        if ((!found || c->least_bytes < found->least_bytes) && !taken(but, c)) found = c;
    }
    return found;
}

/* Whether layouts that a remedy may turn to on as many GPUs were candidates too: those that fit are the plans then, or
 * slower than they are. */
static bool looked_at(const ft_plan_request *r)
{
    return !r->tp.count && !r->pp.count && !r->zero.count && !r->batch.count && !r->recompute;
}

/* Those that would be faster than all that fit: of them the one that lacks least. */
ft_status ft__plan_faster(ft_search *s, ft_workers *workers, ft_plan *out, ft_error *err)
{
    ft_worker *worker = &workers->worker[0];
    double limit = out->pareto_count ? out->pareto[0]->step_ms : INFINITY, least = 2 * s->capacity;
    for (size_t i = 0; i < s->candidate_count; i++) {
        ft_candidate *c = &s->candidates[i];
        if (c->fate != FT_FATE_FORECAST || c->fits || c->step_ms >= limit || ft__plan_held(c) >= least) continue;
        out->faster = c;
        least = ft__plan_held(c);
    }
    bool nearer = true;
    for (size_t looked = 0; looked < MOST_FASTER && nearer; looked += WAVE) {
        wave w = {.s = s};
        for (ft_candidate *next; w.count < WAVE && (next = nearest(s, limit, least, &w));) w.at[w.count++] = next;
        FT_TRY(ft__workers_run(workers, w.count, 1, forecast, &w, err)); /* their fate is another one now */
        nearer = w.count == WAVE;
        for (size_t i = 0; i < w.count; i++) {
            ft_candidate *c = w.at[i];
            nearer = nearer && c->least_bytes < least;
            if (c->fate != FT_FATE_FORECAST || c->step_ms >= limit || ft__plan_held(c) >= least) continue;
            out->faster = c;
            least = ft__plan_held(c);
        }
    }
    if (!out->faster) return FT_OK;
    ft_model_request r = ft__plan_request_of(s, &out->faster->layout);
    const ft_framework *f = s->framework;
    const ft_may may = {.zero = f->zero_allowed,
                        .recompute = f->recompute,
                        .only_data = f->only_data,
                        .more_gpus = out->plan_count > 0 && looked_at(s->asked)};
    ft_ranks ranks = ranks_of(s, &r, worker);
    ranks.may = &may;
    ft_step step;
    ft__arena_reset(worker->arena);
    if (ft__parallel_alone(&r.parallel) || ft__ranks_forecast(&ranks, &step, NULL, NULL, err) != FT_OK) return FT_OK;
    if (step.memory.remedy && *step.memory.remedy)
        out->remedy = ft__arena_copy(out->arena, step.memory.remedy, strlen(step.memory.remedy));
    return out->remedy ? FT_OK : ft__no_memory(err);
}

static int by_time_there(const void *a, const void *b)
{
    return ft__plan_by_time(*(const ft_candidate *const *)a, *(const ft_candidate *const *)b);
}

static void add(smallest *s, double ms, double held)
{
    size_t at = 0, beaten;
    while (at < s->count && s->at[at].ms <= ms) at++;
    if (at && s->at[at - 1].held <= held) return;
    for (beaten = at; beaten < s->count && s->at[beaten].held >= held;) beaten++;
    memmove(&s->at[at + 1], &s->at[beaten], (s->count - beaten) * sizeof *s->at);
    s->count += 1 + at - beaten;
    s->at[at].ms = ms;
    s->at[at].held = held;
}

/* Whether it may hold clearly less than everything that is surely faster. */
static bool worth_it(const ft_candidate *c, const smallest *s)
{
    double held = INFINITY;
    for (size_t i = 0; i < s->count && s->at[i].ms <= (1 + FT_K_SPACE_WORTH_LESS) * s->beyond * c->bound_ms; i++)
        held = s->at[i].held;
    return c->least_bytes < (1 - FT_K_SPACE_WORTH_LESS) * held;
}

/* What a layout holds, without its time: some tenths of what a forecast takes. No allocator reserves less than the
 * peak: where that is too much already, nothing is put through one. */
static ft_status weigh(void *context, size_t i, ft_worker *worker, ft_error *err)
{
    const wave *w = context;
    const ft_search *s = w->s;
    ft_candidate *c = w->at[i];
    ft_model_request r = ft__plan_request_of(s, &c->layout);
    ft_ranks ranks = ranks_of(s, &r, worker);
    ranks.no_remedy = true;
    if (ft__parallel_alone(&r.parallel)) return FT_OK; /* its bound is what there is */
    ft__arena_reset(worker->arena);
    ft_heavy stages;
    bool built = false;
    for (int whole = 0; whole < 2 && worth_it(c, w->smallest); whole++) {
        ft_memory memory = {0};
        int64_t worst;
        r.work.peak_alone = !whole;
        ft_status status = built ? FT_OK : ft__ranks_heavy(&ranks, &stages, err);
        if (status == FT_OK) status = ft__ranks_heaviest(&ranks, &stages, &memory, &worst, err);
        built = true;
        if (status == FT_E_MEMORY && !ft__arena_full(worker->arena)) return status;
        if (status != FT_OK) return FT_OK;
        double held = (whole ? memory.reserved_bytes : memory.peak_bytes) + memory.context_bytes;
        c->least_bytes = fmax(c->least_bytes, (1 - FT_K_SPACE_BOUND_SLACK) * held); /* a forecast's to some 1e-4 */
    }
    return FT_OK;
}

/* One after the other, each against the smallest so far; a few are forecast ahead, on all threads, and some of them in
 * vain. */
static ft_status take_smaller(ft_search *s, ft_workers *workers, const wave *w, smallest *known, ft_plan *out,
                              ft_error *err)
{
    for (size_t next = 0; next < w->count;) {
        ft_candidate ahead[AHEAD], *of[AHEAD];
        wave few = {.s = s};
        for (; next < w->count && few.count < AHEAD; next++) {
            if (!worth_it(w->at[next], known)) continue;
            of[few.count] = w->at[next];
            ahead[few.count] = *w->at[next];
            few.at[few.count] = &ahead[few.count];
            few.count++;
        }
        FT_TRY(ft__workers_run(workers, few.count, 1, forecast, &few, err));
        for (size_t i = 0; i < few.count; i++) {
            if (!worth_it(of[i], known)) continue;
            *of[i] = ahead[i];
            out->forecasts++;
            if (ft__plan_stands(of[i])) add(known, of[i]->step_ms, ft__plan_held(of[i]));
        }
    }
    return FT_OK;
}

/* What was not forecast because something is faster is, where it may hold clearly less than everything that is faster
 * than it can be. Where memory is the goal, what holds more was not forecast, and may be faster. */
ft_status ft__plan_smaller(ft_search *s, ft_workers *workers, ft_plan *out, ft_error *err)
{
    double fastest = INFINITY;
    bool any = s->asked->goal == FT_GOAL_MEMORY;
    smallest known = {.at = ft__arena_array(out->arena, s->candidate_count + 1, sizeof *known.at)};
    if (!known.at) return ft__no_memory(err);
    known.beyond = INFINITY;
    for (size_t i = 0; i < s->candidate_count; i++) {
        const ft_candidate *c = &s->candidates[i];
        if (!ft__plan_stands(c)) continue;
        add(&known, c->step_ms, ft__plan_held(c));
        if (c->bound_ms > 0) known.beyond = fmin(known.beyond, fmax(c->step_ms / c->bound_ms, 1));
        fastest = fmin(fastest, c->step_ms);
    }
    if (!isfinite(known.beyond)) known.beyond = 1;
    for (size_t next = 0; next < s->candidate_count && known.count;) {
        wave w = {.s = s, .smallest = &known};
        for (; next < s->candidate_count && w.count < WEIGHED; next++) {
            ft_candidate *c = &s->candidates[next];
            bool slow = !any && c->bound_ms > FT_K_SPACE_SLOWEST_SHOWN * fastest;
            if (c->fate != FT_FATE_OPEN || !worth_it(c, &known) || slow) continue;
            w.at[w.count++] = c;
        }
        FT_TRY(ft__workers_run(workers, w.count, 1, weigh, &w, err));
        FT_TRY(take_smaller(s, workers, &w, &known, out, err));
    }
    return FT_OK;
}

/* Time against memory: whoever holds clearly less than everything faster. Where time is what counts, nobody takes
 * something much slower for it. */
ft_status ft__plan_pareto(ft_search *s, ft_plan *out, ft_error *err)
{
    size_t count = 0;
    ft_candidate **all = ft__arena_array(out->arena, s->candidate_count + 1, sizeof *all);
    out->pareto = all;
    if (!all) return ft__no_memory(err);
    for (size_t i = 0; i < s->candidate_count; i++)
        if (ft__plan_stands(&s->candidates[i])) all[count++] = &s->candidates[i];
    qsort(all, count, sizeof *all, by_time_there);
    double holds = INFINITY,
           slowest = s->asked->goal == FT_GOAL_MEMORY || !count ? INFINITY : FT_K_SPACE_SLOWEST_SHOWN * all[0]->step_ms;
    for (size_t i = 0; i < count && all[i]->step_ms <= slowest; i++)
        if (ft__plan_held(all[i]) <= (1 - FT_K_SPACE_WORTH_LESS) * holds) {
            holds = ft__plan_held(all[i]);
            all[out->pareto_count++] = all[i];
        }
    return FT_OK;
}

typedef struct again { /* a plan over other networks */
    const ft_search *s;
    const ft_plan *plan;
    const ft_cluster *cluster[2];
    double *ms[2];
} again;

static ft_status forecast_again(void *context, size_t i, ft_worker *worker, ft_error *err)
{
    const again *a = context;
    size_t which = i / a->plan->plan_count, at = i % a->plan->plan_count;
    ft_candidate c = a->plan->plans[at];
    FT_TRY(ft__plan_forecast(a->s, &c, a->cluster[which], worker, err));
    a->ms[which][at] = c.fate == FT_FATE_FORECAST ? c.step_ms : INFINITY;
    return FT_OK;
}

static void change(ft_plan *out, again *a, const char *what, const ft_cluster *cluster)
{
    ft_plan_changed *now = &out->changed[out->changed_count];
    now->what = what;
    a->cluster[out->changed_count] = cluster;
    a->ms[out->changed_count++] = now->step_ms;
}

/* Steps as short, and as long, as their intervals have them. */
static void ends(ft_plan *out)
{
    ft_plan_changed *low = &out->changed[out->changed_count++], *high = &out->changed[out->changed_count++];
    low->what = "every step at the low end of its interval";
    high->what = "every step at the high end of its interval";
    for (size_t i = 0; i < out->plan_count; i++) {
        low->step_ms[i] = out->plans[i].low_ms;
        high->step_ms[i] = out->plans[i].high_ms;
    }
}

/* What becomes of the plans where the network is not what it was taken for, and at the ends of their intervals. */
ft_status ft__plan_changes(ft_search *s, ft_workers *workers, ft_plan *out, ft_error *err)
{
    ft_cluster between = s->cluster, inside = s->cluster;
    bool nodes = false, links = false;
    for (int i = 0; i < s->cluster.tiers; i++) {
        bool outer = s->cluster.tier[i].fabric >= FT_INFINIBAND;
        *(outer ? &between.tier[i].gbps : &inside.tier[i].gbps) /= 2;
        nodes = nodes || outer;
        links = links || !outer;
    }
    if (!out->plan_count) return FT_OK;
    nodes = nodes && s->asked->gpus > 1;
    links = links && s->asked->gpus > 1;
    again a = {.s = s, .plan = out};
    if (nodes) change(out, &a, "the network between nodes at half its rate", &between);
    if (links) change(out, &a, "the links inside a node at half their rate", &inside);
    FT_TRY(ft__workers_run(workers, out->changed_count * out->plan_count, 1, forecast_again, &a, err));
    ends(out);
    for (size_t k = 0; k < out->changed_count; k++)
        for (size_t i = 0; i < out->plan_count; i++)
            if (out->changed[k].step_ms[i] < out->changed[k].step_ms[out->changed[k].best]) out->changed[k].best = i;
    return FT_OK;
}
