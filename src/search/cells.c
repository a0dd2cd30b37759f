/* cells.c: what layouts share, and what follows from it.
 *
 * Two layouts with the same tensor, context and expert ranks, micro-batch and recomputation run the same kernels and
 * the same exchanges in a layer, where both have one stage or both have more (hosts wait for what a stage receives;
 * sharded parameters are gathered in every pass, or once), and both have data ranks or neither has (whose gradients
 * have hooks). One stage is looked at whole, and so are models whose layers differ, whose pipelines wait no less. Of
 * others the first, the second and the last of four say what a layer and the ends take; one of any depth then takes at
 * least
 *     every micro-batch through a stage + one micro-batch's way there and back through those before it
 * (interleaved: the way of a chunk), of its stages the one for which that is most, and a rank of its first stage holds
 * at least its states and the activations of as many micro-batches as there are stages. Exchanges of gradients, waits
 * and buffers come on top: these are bounds, not forecasts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/complete.h"
#include "search/plan.h"
#include "search/space_constants.h"

enum { HALVES = 2, QUARTERS = 4 };

/* -- finding cells ----------------------------------------------------------------------------- */

static bool same_cell(const ft_cell *a, const ft_cell *b)
{
    const ft_parallel *p = &a->parallel, *q = &b->parallel;
    return p->pp == q->pp && p->tp == q->tp && p->cp == q->cp && p->ep == q->ep && p->etp == q->etp && p->sp == q->sp &&
           p->context == q->context && a->batch == b->batch && a->micros == b->micros && a->recompute == b->recompute &&
           a->offload == b->offload && p->zero == q->zero && p->dp == q->dp;
}

ft_status ft__plan_cell(ft_search *s, ft_candidate *c, ft_error *err)
{
    ft_cell wanted = {.parallel = c->layout.parallel,
                      .batch = c->layout.batch,
                      .micros = c->layout.micros > 1 ? 2 : 1,
                      .recompute = c->layout.recompute,
                      .offload = c->layout.offload};
    ft_parallel *p = &wanted.parallel;
    if (p->dp * p->cp > 1) p->dp *= p->pp;                                    /* all of them stand in one stage */
    if (p->pp > 1) p->pp = s->uniform ? QUARTERS : p->zero >= 3 ? HALVES : 1; /* in one stage no host waits longer */
    p->vpp = 1;
    p->schedule = FT_1F1B;
    for (size_t i = s->cell_count; i-- > 0;)
        if (same_cell(&s->cells[i], &wanted)) {
            c->cell = (int32_t)i;
            return FT_OK;
        }
    if (s->cell_count == s->cell_room) {
        size_t room = s->cell_room ? 2 * s->cell_room : 128;
        ft_cell *more = realloc(s->cells, room * sizeof *more);
        if (!more) return ft__fail(err, FT_E_MEMORY, "out of memory for layouts");
        s->cells = more;
        s->cell_room = room;
    }
    c->cell = (int32_t)s->cell_count;
    s->cells[s->cell_count++] = wanted;
    return FT_OK;
}

/* -- probing them ------------------------------------------------------------------------------ */

static ft_ranks ranks_of(const ft_search *s, const ft_model_request *r, const ft_cluster *cluster, ft_worker *worker)
{
    return (ft_ranks){.arch = r->arch,
                      .work = &r->work,
                      .parallel = &r->parallel,
                      .cluster = cluster,
                      .device = r->device,
                      .predictor = ft__context_predictor(s->ft),
                      .quantile = s->quantile,
                      .memo = worker->memo,
                      .exchanges = cluster == &s->cluster ? worker->exchanges : NULL,
                      .arena = worker->arena,
                      .no_remedy = true};
}

ft_model_request ft__plan_request_of(const ft_search *s, const ft_layout *l)
{
    ft_model_request r = s->request;
    r.parallel = l->parallel;
    r.work.batch = l->batch * ft__sequences_each(r.work.trainer);
    r.work.accumulate = l->micros;
    r.work.recompute = l->recompute;
    r.work.offload = l->offload;
    r.global_batch = s->asked->global;
    return r;
}

static ft_status stage_of(const ft_search *s, const ft_layout *l, int64_t index, ft_worker *worker, ft_stage *out,
                          ft_error *err)
{
    ft_model_request r = ft__plan_request_of(s, l);
    ft_ranks ranks = ranks_of(s, &r, &s->cluster, worker);
    ft_ranks_width ignored = {0};
    ranks.passes_alone = true;
    return ft__ranks_stage(&ranks, index, out, &ignored, err);
}

/* Of a micro-batch's kernels: the update comes once in a step, and is shared out otherwise. */
static double joules_of(const ft_stage *stage, const ft_device *device)
{
    double sum = 0;
    for (int32_t i = 0; i < stage->step.kernel_count; i++) {
        const ft_timed *k = &stage->step.kernels[i];
        const ft_node *n = &stage->g->nodes[k->node];
        const ft_forecast *f = &k->forecast;
        if (n->phase != FT_UPDATE)
            sum += k->times * ft__kernel_joules(device, &n->op, f->flops, f->bytes, f->ms, f->launch_ms);
    }
    return sum;
}

/* What a stage adds to its cell, as often as others are like it. */
static void gather(const ft_search *s, const ft_stage *stage, double times, ft_cell *cell, double *dense,
                   double *expert)
{
    const ft_memory *m = &stage->step.memory;
    cell->whole_ms += times * (stage->forward_ms + stage->backward_ms);
    cell->joules += times * joules_of(stage, s->request.device);
    cell->weights += times * m->weights_bytes;
    cell->gradients += times * m->gradients_bytes;
    cell->optimizer += times * m->optimizer_bytes;
    *dense += times * stage->dense;
    *expert += times * stage->expert;
}

ft_status ft__plan_probe(const ft_search *s, ft_cell *cell, ft_worker *worker, ft_error *err)
{
    ft_layout l = {.parallel = cell->parallel,
                   .batch = cell->batch,
                   .micros = cell->micros,
                   .recompute = cell->recompute,
                   .offload = cell->offload};
    double dense = 0, expert = 0, first_share = 1, last_ms = 0, last_layers = 0;
    const int64_t stages = cell->parallel.pp;
    cell->probed = true;
    for (int64_t i = 0; i < stages; i++) {
        ft_stage stage;
        int64_t from, to, first, second;
        if (stages == QUARTERS && i == 2) continue; /* as the second */
        ft__arena_reset(worker->arena);
        ft_status status = stage_of(s, &l, i, worker, &stage, err);
        if (status != FT_OK) {
            cell->failed = true; /* its layouts are forecast one by one, and say why */
            return status == FT_E_MEMORY && !ft__arena_full(worker->arena) ? status : FT_OK;
        }
        ft__layout_range(s->model.layers, stages, false, i, &from, &to);
        bool middle = stages == QUARTERS && i == 1;
        double layers = (double)(to - from), times = 1;
        if (middle) {
            ft__layout_range(s->model.layers, stages, false, 0, &first, &second);
            ft__layout_range(s->model.layers, stages, false, QUARTERS - 1, &from, &to);
            times = (double)(s->model.layers - (second - first) - (to - from)) / layers;
            cell->layer_ms = (stage.forward_ms + stage.backward_ms) / layers;
            if (!(cell->offload & 1u << FT_OFFLOAD_ACTIVATIONS)) cell->layer_saved = stage.saved_bytes / layers;
        }
        gather(s, &stage, times, cell, &dense, &expert);
        if (i == 0) first_share = (stage.dense + stage.expert) / layers;
        last_ms = stage.forward_ms + stage.backward_ms;
        last_layers = layers;
    }
    cell->expert_share = expert / fmax(expert + dense, 1);
    cell->first_share = fmin(first_share * (double)s->model.layers / fmax(expert + dense, 1), 1);
    cell->end_ms = fmax(last_ms - cell->layer_ms * last_layers, 0);
    return FT_OK;
}

/* -- bounds ------------------------------------------------------------------------------------ */

/* What a pipeline takes at least: a stage has every micro-batch to do, begins when the first has come through those
 * before it, and ends before the last has gone back through them. Where passes come in halves none of that is sure. */
typedef struct dealt {
    double ms;     /* through stages in turn, each in one piece */
    int64_t first; /* layers of the first stage */
} dealt;

static dealt deal(const ft_search *s, const ft_candidate *c, const ft_cell *cell, bool together)
{
    const ft_parallel *p = &c->layout.parallel;
    int64_t chunks = ft__parallel_chunks(p), places = p->pp * chunks;
    double first_ms = fmax(cell->whole_ms - cell->end_ms - cell->layer_ms * (double)s->model.layers, 0), before = 0;
    dealt out = {0};
    for (int64_t stage = 0; stage < p->pp; stage++) {
        int64_t layers = 0, leading = 0; /* of its first chunk */
        for (int64_t k = 0; k < chunks; k++) {
            int64_t from, to;
            ft__layout_range(s->model.layers, places, p->rest, k * p->pp + stage, &from, &to);
            layers += to - from;
            if (k == 0) leading = layers;
        }
        double ms = cell->layer_ms * (double)layers + (stage == p->pp - 1 ? cell->end_ms : 0);
        if (stage == 0) out.first = layers;
        out.ms = fmax(out.ms, ms * (double)c->layout.micros + (together ? 0 : before));
        before += cell->layer_ms * (double)leading + (stage == 0 ? first_ms : 0);
    }
    return out;
}

static double time_bound(const ft_search *s, const ft_candidate *c, const ft_cell *cell, int64_t *first)
{
    const ft_parallel *p = &c->layout.parallel;
    double stage = cell->whole_ms / (double)p->pp, least = stage * (double)c->layout.micros;
    bool halves = p->schedule == FT_ZERO_BUBBLE || p->schedule == FT_DUALPIPE || ft__schedule_folds(p->schedule);
    if (cell->layer_ms > 0) {
        dealt d = deal(s, c, cell, halves);
        *first = d.first;
        least = fmax(least, d.ms);
    } else if (!halves) {
        least += stage * (double)(p->pp - 1) / (double)ft__parallel_chunks(p);
    }
    if (ft__expert_overlaps(p)) return 0.5 * least; /* exchanges hide behind another micro-batch */
    return (1 - FT_K_SPACE_BOUND_SLACK) * least;
}

static double memory_bound(const ft_search *s, const ft_candidate *c, const ft_cell *cell, int64_t first)
{
    const ft_parallel *p = &c->layout.parallel;
    double share = s->model.layers > 0 ? 1 / (double)p->pp : 1, kept = 1, kept_experts = 1;
    if (p->dp * p->cp > 1) {
        kept = 1 / (double)ft__ranks_sharers(p, false).size;
        kept_experts = 1 / (double)ft__ranks_sharers(p, true).size;
    }
    double sharded = (1 - cell->expert_share) * kept + cell->expert_share * kept_experts;
    double states = cell->weights * (p->zero >= 3 ? sharded : 1) + cell->optimizer * (p->zero >= 1 ? sharded : 1) +
                    cell->gradients * (p->zero >= 2 ? sharded : 1) * (c->layout.micros > 1 ? 1 : 0);
    double flying = (double)p->pp, chunks = (double)ft__parallel_chunks(p);
    if (p->schedule == FT_INTERLEAVED) flying = ((chunks - 1) * flying + 2 * (flying - 1) + 1) / chunks;
    flying = fmin((double)c->layout.micros, flying);
    if (p->schedule == FT_ZERO_BUBBLE || p->schedule == FT_DUALPIPE || ft__schedule_folds(p->schedule)) flying = 1;
    return states * share * cell->first_share + cell->layer_saved * (double)first * flying;
}

/* A GPU that waits while its bound lasts, and a stage's share of every micro-batch's kernels; the update comes on top.
 * A board at its limit draws that at least as long. */
static double joules_bound(const ft_search *s, const ft_candidate *c, const ft_cell *cell)
{
    const ft_device *d = s->request.device;
    double waits = ft__watts_awake(d) * c->bound_ms * 1e-3, most = ft__watts_most(d) * c->bound_ms * 1e-3,
           kernels = cell->joules * (double)c->layout.micros / (double)c->layout.parallel.pp;
    return (1 - FT_K_SPACE_BOUND_SLACK) * fmin(waits + FT_K_SPACE_JOULES_SHARE * kernels, most);
}

void ft__plan_bound(const ft_search *s, ft_candidate *c)
{
    const ft_cell *cell = &s->cells[c->cell];
    int64_t first = 0;
    if (cell->failed) return; /* 0: it is looked at first */
    c->bound_ms = time_bound(s, c, cell, &first) + s->rollout.ms;
    c->least_bytes = (1 - FT_K_SPACE_BOUND_SLACK) * memory_bound(s, c, cell, first);
    c->least_joules = joules_bound(s, c, cell);
    if (c->least_bytes > s->capacity) c->fate = FT_FATE_TOO_LARGE;
}

/* A model that is too large for one stage, by what its pipelines say, is not looked at whole. */
void ft__plan_spare(ft_search *s)
{
    for (size_t i = 0; i < s->cell_count; i++) s->cells[i].wanted = s->cells[i].probed;
    for (size_t i = 0; i < s->candidate_count; i++) {
        ft_candidate *c = &s->candidates[i], in_one = *c;
        const ft_cell *own = &s->cells[c->cell];
        if (own->probed) continue;
        ft_cell pipeline = *own;
        pipeline.parallel.pp = s->uniform ? QUARTERS : HALVES;
        for (size_t k = 0; k < s->cell_count && in_one.cell == c->cell; k++)
            if (s->cells[k].probed && !s->cells[k].failed && same_cell(&s->cells[k], &pipeline))
                in_one.cell = (int32_t)k;
        if (in_one.cell != c->cell) ft__plan_bound(s, &in_one);
        if (in_one.fate == FT_FATE_TOO_LARGE)
            c->cell = in_one.cell;
        else
            s->cells[c->cell].wanted = true;
    }
}

/* -- whole steps ------------------------------------------------------------------------------- */

ft_status ft__plan_forecast(const ft_search *s, ft_candidate *c, const ft_cluster *cluster, ft_worker *worker,
                            ft_error *err)
{
    ft_model_request r = ft__plan_request_of(s, &c->layout);
    ft_ranks ranks = ranks_of(s, &r, cluster, worker);
    /* What a plan holds is known; of what lies on the host, copies take time by their bytes. */
    ranks.no_memory = cluster != &s->cluster && !r.work.offload;
    ft_step step;
    ft_graph *g = NULL;
    ft__arena_reset(worker->arena);
    ft_status status = FT_OK;
    if (ft__parallel_alone(&r.parallel)) {
        status = ft__model_graph(r.arch, &r.work, worker->arena, &g, err);
        if (status == FT_OK)
            status = ft__step_forecast(g, &r.work, r.device, ranks.predictor, s->quantile, worker->memo, worker->arena,
                                       &step, err);
    } else {
        status = ft__ranks_forecast(&ranks, &step, NULL, &g, err);
    }
    if (status == FT_E_MEMORY && !ft__arena_full(worker->arena)) return status;
    c->fate = status == FT_OK ? FT_FATE_FORECAST : FT_FATE_REFUSED;
    if (status != FT_OK) return FT_OK;
    ft__step_complete(&r.work, r.device, &step);
    ft__rollout_apply(&s->rollout, &step);
    c->step_ms = step.step_ms;
    c->low_ms = step.low_ms;
    c->high_ms = step.high_ms;
    c->rollout_ms = step.rollout_ms;
    c->busy_ms = step.busy_ms - step.phase_ms[FT_UPDATE] - c->rollout_ms;
    c->host_ms = step.offload.exposed_ms;
    c->update_ms = step.phase_ms[FT_UPDATE];
    c->exposed_ms = step.comm_exposed_ms;
    c->bubble_ms = step.bubble_ms;
    c->idle_ms = step.step_ms - step.busy_ms - step.comm_exposed_ms - step.bubble_ms - c->host_ms;
    c->mfu = step.mfu;
    c->tokens_per_s = step.tokens_per_s;
    memcpy(c->axis_ms, step.axis_ms, sizeof c->axis_ms);
    c->memory = step.memory;
    c->memory.remedy = "";
    c->energy = ft__step_energy(g, &step, r.device, s->quantile);
    c->fits = step.memory.reserved_bytes + step.memory.context_bytes <= s->capacity;
    return FT_OK;
}
