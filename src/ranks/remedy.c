/* remedy.c: the nearest layout in which a step fits.
 *
 * First on as many GPUs as were asked for, from what costs least; then on twice as many, and twice that, the growth on
 * one axis after the other. */
#include <stdio.h>
#include <string.h>

#include "ranks/many_constants.h"
#include "ranks/ranks.h"

typedef struct change {
    int tp, pp;    /* times as many, data ranks fewer */
    int zero;      /* at least; -1: as asked */
    int recompute; /* FT_RECOMPUTE_*; -1: as asked */
    bool smaller;  /* micro-batches of half the size, twice as many */
} change;

/* From what costs least. */
static const change changes[] = {
    {1, 1, 1, -1, false},
    {1, 1, -1, FT_RECOMPUTE_SELECTIVE, false},
    {1, 1, -1, -1, true},
    {2, 1, -1, -1, false},
    {1, 2, -1, -1, false},
    {1, 1, 1, FT_RECOMPUTE_SELECTIVE, false},
    {1, 1, 2, -1, false},
    {1, 1, 3, -1, false},
    {1, 1, -1, FT_RECOMPUTE_FULL, false},
    {2, 1, 1, -1, false},
    {1, 2, 1, -1, false},
    {1, 1, 1, FT_RECOMPUTE_FULL, false},
    {1, 1, 3, FT_RECOMPUTE_FULL, false},
    {2, 2, -1, -1, false},
    {2, 1, -1, FT_RECOMPUTE_FULL, false},
    {2, 2, 1, FT_RECOMPUTE_FULL, false},
    {4, 1, -1, -1, false},
    {1, 4, -1, -1, false},
    {4, 2, 1, -1, false},
    {4, 4, 1, -1, false},
    {4, 4, 1, FT_RECOMPUTE_FULL, false},
    {8, 4, 1, FT_RECOMPUTE_FULL, false},
    {8, 8, 1, FT_RECOMPUTE_FULL, false},
    {8, 16, 1, FT_RECOMPUTE_FULL, false},
};

/* On more GPUs: the axis that grows, and what helps beside. */
typedef struct growth {
    ft_axis axis;
    int zero, recompute;
} growth;

static const growth growths[] = {
    {FT_AXIS_DATA, -1, -1},
    {FT_AXIS_DATA, 1, -1},
    {FT_AXIS_DATA, 2, -1},
    {FT_AXIS_DATA, 3, -1},
    {FT_AXIS_TENSOR, -1, -1},
    {FT_AXIS_TENSOR, 1, -1},
    {FT_AXIS_DATA, -1, FT_RECOMPUTE_FULL},
    {FT_AXIS_DATA, 1, FT_RECOMPUTE_FULL},
    {FT_AXIS_DATA, 3, FT_RECOMPUTE_FULL},
    {FT_AXIS_TENSOR, -1, FT_RECOMPUTE_FULL},
    {FT_AXIS_TENSOR, 1, FT_RECOMPUTE_FULL},
    {FT_AXIS_PIPELINE, -1, -1},
    {FT_AXIS_PIPELINE, 1, -1},
    {FT_AXIS_PIPELINE, -1, FT_RECOMPUTE_FULL},
    {FT_AXIS_PIPELINE, 1, FT_RECOMPUTE_FULL},
};
enum { MOST_TIMES = 1024 };

static int64_t gpus_per_node(const ft_ranks *r)
{
    return r->cluster && r->cluster->gpus_per_node > 0 ? r->cluster->gpus_per_node : 8;
}

/* False: it changes nothing, or cannot be. */
static bool shard_and_recompute(int zero, int recompute, ft_parallel *p, ft_workload *w)
{
    if (zero >= 0 && (p->dp * p->cp < 2 || p->zero >= zero)) return false;
    if (zero >= 0) p->zero = zero;
    if (p->zero > 1 && p->pp > 1 && zero > 1) return false;
    if (recompute >= 0 && (int)w->recompute >= recompute) return false;
    if (recompute >= 0) w->recompute = (ft_recompute)recompute;
    if (p->shard > 0 && (p->dp * p->cp) % p->shard) p->shard = p->dp * p->cp; /* all of them, and it is said */
    return !(p->ep > 1 && ft__expert_room(p) % p->ep);
}

static bool apply(const change *c, const ft_ranks *r, ft_parallel *p, ft_workload *w)
{
    *p = *r->parallel;
    *w = *r->work;
    int64_t times = c->tp * c->pp;
    p->tp *= c->tp;
    p->pp *= c->pp;
    if (p->dp % times || (c->tp > 1 && p->tp > gpus_per_node(r))) return false;
    p->dp /= times;
    w->accumulate *= times; /* the same batch over fewer data ranks */
    if (c->smaller && (w->batch < 2 || w->batch % 2)) return false;
    if (c->smaller) {
        w->batch /= 2;
        w->accumulate *= 2;
    }
    return shard_and_recompute(c->zero, c->recompute, p, w);
}

static bool grow(const growth *c, int64_t times, const ft_ranks *r, ft_parallel *p, ft_workload *w)
{
    *p = *r->parallel;
    *w = *r->work;
    bool generates = w->task != FT_TRAIN, sharded = p->zero >= 1 || c->zero >= 1;
    if (generates && (c->axis != FT_AXIS_TENSOR || c->zero >= 0 || c->recompute >= 0)) return false;
    /* Tensor ranks fill a node; serving lets them span two. */
    int64_t most = gpus_per_node(r) * (generates ? 2 : 1);
    for (; c->axis == FT_AXIS_TENSOR && times > 1 && 2 * p->tp <= most; times /= 2) p->tp *= 2;
    if (c->axis == FT_AXIS_TENSOR && p->tp == r->parallel->tp) return false;
    if (c->axis == FT_AXIS_PIPELINE || !sharded) {
        p->pp *= times;
        if (times > 1 && (generates || p->pp > w->accumulate)) return false; /* nothing but bubbles */
    } else { /* data ranks hold less each where something is sharded */
        p->dp *= times;
        if (w->accumulate % times == 0) w->accumulate /= times; /* the same batch where it can be shared out */
    }
    if (c->axis == FT_AXIS_DATA && !sharded) return false;
    return shard_and_recompute(c->zero, c->recompute, p, w);
}

static void describe(const ft_ranks *r, const ft_parallel *p, const ft_workload *w, char *out, size_t room)
{
    size_t at = 0;
    const struct {
        const char *name;
        int64_t was, is;
    } whole[] = {{"tp", r->parallel->tp, p->tp},          {"pp", r->parallel->pp, p->pp},
                 {"dp", r->parallel->dp, p->dp},          {"zero", r->parallel->zero, p->zero},
                 {"shard", r->parallel->shard, p->shard}, {"batch", r->work->batch, w->batch}};
    out[0] = 0;
    const char *between = "";
    if (ft__parallel_ranks(p) != ft__parallel_ranks(r->parallel))
        at += (size_t)snprintf(out, room, "%lld GPUs: ", (long long)ft__parallel_ranks(p));
    for (size_t i = 0; i < sizeof whole / sizeof *whole && at < room; i++) {
        if (whole[i].was == whole[i].is) continue;
        at += (size_t)snprintf(out + at, room - at, "%s%s %lld", between, whole[i].name, (long long)whole[i].is);
        between = ", ";
    }
    if (w->recompute != r->work->recompute && at < room)
        snprintf(out + at, room - at, "%srecompute %s", between,
                 w->recompute == FT_RECOMPUTE_FULL ? "full" : "selective");
}

/* Weights, gradients and states of a rank are there in any case: what they exceed cannot hold the rest either, and no
 * graph need be built to see it. `of`: a stage of the layout asked for, whose elements are the model's over tp * pp. */
static bool cannot_fit(const ft_ranks *r, const ft_stage *of, const ft_parallel *p)
{
    const ft_memory *m = &of->step.memory;
    double part = (double)(r->parallel->tp * r->parallel->pp) / (double)(p->tp * p->pp) * FT_K_MANY_UNEVEN_STAGES;
    double kept = p->dp * p->cp > 1 ? ft__ranks_kept(p, of->dense, of->expert) : 1;
    double bytes = m->weights_bytes * (p->zero >= 3 ? kept : 1) + m->gradients_bytes * (p->zero >= 2 ? kept : 1) +
                   m->optimizer_bytes * (p->zero >= 1 ? kept : 1);
    return part * bytes > m->capacity_bytes;
}

static bool has(const ft_may *may, const ft_parallel *p, const ft_workload *w)
{
    bool cut = p->tp > 1 || p->pp > 1 || p->cp > 1;
    return may->zero & 1u << p->zero && may->recompute & 1u << w->recompute && !(may->only_data && cut);
}

/* Whether a rank of this layout fits. One that cannot be built, or not within `trials`, does not. */
static ft_status fits(const ft_ranks *r, const ft_stage *of, const ft_parallel *p, const ft_workload *w,
                      ft_arena *trials, bool *out, ft_error *err)
{
    ft_error ignored;
    ft_memory m;
    int64_t worst, chunks = p->schedule == FT_INTERLEAVED ? p->vpp : 1;
    *out = false;
    if (r->may && !has(r->may, p, w)) return FT_OK;
    if (ft__parallel_ranks(p) > FT_MOST_RANKS || cannot_fit(r, of, p)) return FT_OK;
    ft_divisible model = ft__ranks_model(r->arch, w);
    if (ft__parallel_check(p, &model, &ignored) != FT_OK || (p->pp > 1 && !model.in_a_row)) return FT_OK;
    if (ft__pipeline_check(p->schedule, p->pp, chunks, w->accumulate, &ignored) != FT_OK) return FT_OK;
    bool cut = p->tp > 1 || p->pp > 1 || p->cp > 1 || p->ep > 1;
    if (ft__stack_check(w, p->zero, cut, p->sp && p->tp > 1, &ignored) != FT_OK) return FT_OK;
    ft_ranks other = *r;
    ft_workload judged = *w;
    judged.verdict_alone = true;
    other.parallel = p;
    other.work = &judged;
    other.arena = trials;
    ft__arena_reset(trials);
    ft_status status = ft__ranks_memory(&other, &m, &worst, &ignored);
    if (status == FT_E_MEMORY && !ft__arena_full(trials)) return ft__no_memory(err);
    *out = status == FT_OK && m.verdict == FT_FIT_YES;
    return FT_OK;
}

static ft_status search(const ft_ranks *r, const ft_stage *of, ft_arena *trials, const char **out, ft_error *err)
{
    ft_parallel p;
    ft_workload w;
    bool found = false, as_many = r->work->task == FT_TRAIN && !(r->may && r->may->more_gpus);
    for (size_t i = 0; i < sizeof changes / sizeof *changes && !found && as_many; i++)
        if (apply(&changes[i], r, &p, &w)) FT_TRY(fits(r, of, &p, &w, trials, &found, err));
    for (int64_t times = 2; times <= MOST_TIMES && !found; times *= 2)
        for (size_t i = 0; i < sizeof growths / sizeof *growths && !found; i++)
            if (grow(&growths[i], times, r, &p, &w)) FT_TRY(fits(r, of, &p, &w, trials, &found, err));
    if (!found) return FT_OK;
    char text[160];
    describe(r, &p, &w, text, sizeof text);
    *out = ft__arena_copy(r->arena, text, strlen(text));
    return *out ? FT_OK : ft__no_memory(err);
}

/* A hundred layouts one after another: in an arena of their own, so that the step that was asked for has its own. */
ft_status ft__ranks_remedy(const ft_ranks *r, const ft_stage *of, const char **out, ft_error *err)
{
    *out = "";
    ft_arena *trials = ft__arena_new((size_t)512 << 20);
    if (!trials) return ft__no_memory(err);
    ft_status status = search(r, of, trials, out, err);
    ft__arena_free(trials);
    return status;
}
