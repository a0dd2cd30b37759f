/* beside.c: what stands beside the plans: layouts that would be faster and do not fit, time against memory, and what
 * becomes of the plans where the network is not what it was taken for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/plan.h"
#include "search/space_constants.h"

enum { MOST_FASTER = 24 };

/* Of what cannot fit and may be faster the next that holds least by its bound; NULL: nothing that could be nearer. */
static ft_candidate *nearest(ft_search *s, double limit, double most)
{
    ft_candidate *found = NULL;
    for (size_t i = 0; i < s->candidate_count; i++) {
        ft_candidate *c = &s->candidates[i];
        if (c->fate != FT_FATE_TOO_LARGE || c->bound_ms >= limit || c->least_bytes >= most) continue;
        if (!found || c->least_bytes < found->least_bytes) found = c;
    }
    return found;
}

/* Those that would be faster and do not fit: of them the one that lacks least. */
ft_status ft__plan_faster(ft_search *s, ft_bench *bench, ft_plan *out, ft_error *err)
{
    double limit = out->plan_count ? out->plans[0].step_ms : INFINITY, least = 2 * s->capacity;
    ft_candidate *next = NULL;
    for (size_t i = 0; i < s->candidate_count; i++) {
        ft_candidate *c = &s->candidates[i];
        if (c->fate != FT_FATE_FORECAST || c->fits || c->step_ms >= limit || ft__plan_held(c) >= least) continue;
        out->faster = c;
        least = ft__plan_held(c);
    }
    for (int looked = 0; looked < MOST_FASTER && (next = nearest(s, limit, least)); looked++) {
        FT_TRY(ft__plan_forecast(s, next, &s->cluster, bench, err)); /* its fate is another one now */
        if (next->fate != FT_FATE_FORECAST || next->step_ms >= limit || ft__plan_held(next) >= least) continue;
        out->faster = next;
        least = ft__plan_held(next);
    }
    if (!out->faster) return FT_OK;
    ft_model_request r = ft__plan_request_of(s, &out->faster->layout);
    ft_ranks ranks = {.arch = r.arch,
                      .work = &r.work,
                      .parallel = &r.parallel,
                      .cluster = &s->cluster,
                      .device = r.device,
                      .predictor = ft__context_predictor(s->ft),
                      .quantile = s->quantile,
                      .memo = bench->memo,
                      .arena = bench->arena};
    ft_step step;
    ft__arena_reset(bench->arena);
    if (ft__parallel_alone(&r.parallel) || ft__ranks_forecast(&ranks, &step, NULL, NULL, err) != FT_OK) return FT_OK;
    if (step.memory.remedy && *step.memory.remedy)
        out->remedy = ft__arena_copy(out->arena, step.memory.remedy, strlen(step.memory.remedy));
    return out->remedy ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory");
}

static int by_time_there(const void *a, const void *b)
{
    return ft__plan_by_time(*(const ft_candidate *const *)a, *(const ft_candidate *const *)b);
}

/* What a layout holds, without its time: some tenths of what a forecast takes. */
static ft_status weigh(const ft_search *s, ft_candidate *c, ft_bench *bench, ft_error *err)
{
    ft_model_request r = ft__plan_request_of(s, &c->layout);
    ft_ranks ranks = {.arch = r.arch,
                      .work = &r.work,
                      .parallel = &r.parallel,
                      .cluster = &s->cluster,
                      .device = r.device,
                      .predictor = ft__context_predictor(s->ft),
                      .quantile = s->quantile,
                      .memo = bench->memo,
                      .arena = bench->arena,
                      .no_remedy = true};
    ft_memory memory = {0};
    int64_t worst;
    if (ft__parallel_alone(&r.parallel)) return FT_OK; /* its bound is what there is */
    ft__arena_reset(bench->arena);
    ft_status status = ft__ranks_memory(&ranks, &memory, &worst, err);
    if (status == FT_E_MEMORY && !ft__arena_full(bench->arena)) return status;
    double held = memory.reserved_bytes + memory.context_bytes; /* a forecast's to some 1e-4 */
    if (status == FT_OK) c->least_bytes = fmax(c->least_bytes, (1 - FT_K_SPACE_BOUND_SLACK) * held);
    return FT_OK;
}

/* What was not forecast because something is faster is, where it may hold clearly less than everything that was. */
ft_status ft__plan_smaller(ft_search *s, ft_bench *bench, ft_plan *out, ft_error *err)
{
    double least = INFINITY, fastest = INFINITY;
    for (size_t i = 0; i < s->candidate_count; i++) {
        if (!ft__plan_stands(&s->candidates[i])) continue;
        least = fmin(least, ft__plan_held(&s->candidates[i]));
        fastest = fmin(fastest, s->candidates[i].step_ms);
    }
    for (size_t i = 0; i < s->candidate_count && isfinite(least); i++) {
        ft_candidate *c = &s->candidates[i];
        bool slow = c->bound_ms > FT_K_SPACE_SLOWEST_SHOWN * fastest;
        if (c->fate != FT_FATE_OPEN || c->least_bytes >= (1 - FT_K_SPACE_WORTH_LESS) * least || slow) continue;
        FT_TRY(weigh(s, c, bench, err));
        if (c->least_bytes >= (1 - FT_K_SPACE_WORTH_LESS) * least) continue;
        FT_TRY(ft__plan_forecast(s, c, &s->cluster, bench, err));
        out->forecasts++;
        if (ft__plan_stands(c)) least = fmin(least, ft__plan_held(c));
    }
    return FT_OK;
}

/* Time against memory: whoever holds less than everything faster. */
ft_status ft__plan_pareto(ft_search *s, ft_plan *out, ft_error *err)
{
    size_t count = 0;
    ft_candidate **all = ft__arena_array(out->arena, s->candidate_count + 1, sizeof *all);
    out->pareto = all;
    if (!all) return ft__fail(err, FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < s->candidate_count; i++)
        if (ft__plan_stands(&s->candidates[i])) all[count++] = &s->candidates[i];
    qsort(all, count, sizeof *all, by_time_there);
    double holds = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (ft__plan_held(all[i]) < holds) {
            holds = ft__plan_held(all[i]);
            all[out->pareto_count++] = all[i];
        }
    return FT_OK;
}

static ft_status change(ft_search *s, ft_bench *bench, ft_plan *out, const char *what, const ft_cluster *cluster,
                        ft_error *err)
{
    ft_plan_changed *now = &out->changed[out->changed_count];
    now->what = what;
    for (size_t i = 0; i < out->plan_count; i++) {
        ft_candidate again = out->plans[i];
        FT_TRY(ft__plan_forecast(s, &again, cluster, bench, err));
        now->step_ms[i] = again.fate == FT_FATE_FORECAST ? again.step_ms : INFINITY;
        if (now->step_ms[i] < now->step_ms[now->best]) now->best = i;
    }
    out->changed_count++;
    return FT_OK;
}

/* What becomes of the plans where the network is not what it was taken for. */
ft_status ft__plan_changes(ft_search *s, ft_bench *bench, ft_plan *out, ft_error *err)
{
    ft_cluster between = s->cluster, inside = s->cluster;
    bool nodes = false, links = false;
    for (int i = 0; i < s->cluster.tiers; i++) {
        bool outer = s->cluster.tier[i].fabric >= FT_INFINIBAND;
        *(outer ? &between.tier[i].gbps : &inside.tier[i].gbps) /= 2;
        nodes = nodes || outer;
        links = links || !outer;
    }
    if (s->asked->gpus == 1 || !out->plan_count) return FT_OK;
    if (nodes) FT_TRY(change(s, bench, out, "the network between nodes at half its rate", &between, err));
    if (links) FT_TRY(change(s, bench, out, "the links inside a node at half their rate", &inside, err));
    return FT_OK;
}
