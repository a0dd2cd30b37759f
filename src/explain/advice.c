/* advice.c: forecasting every move, ranking, and keeping only what goes together. */
#include "explain/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/advice_constants.h"
#include "explain/difference.h"

typedef struct adviser {
    const ft_advice_case *c;
    ft_arena *arena;
    ft_tally asked;
    ft_advised *out;
    ft_error *err;
} adviser;

static void parts_of(const ft_step *s, double wait_ms, double scale, double out[FT_PARTS])
{
    out[FT_PART_CONTRACTION] = s->class_ms[FT_CONTRACTION] * scale;
    out[FT_PART_NORMALISATION] = s->class_ms[FT_NORMALISATION] * scale;
    out[FT_PART_ELEMENTWISE] = s->class_ms[FT_ELEMENTWISE] * scale;
    out[FT_PART_WAITS] = fmax(s->idle_ms - wait_ms, 0) * scale;
    out[FT_PART_EXCHANGE] = s->comm_exposed_ms * scale;
    out[FT_PART_BUBBLE] = s->bubble_ms * scale;
    out[FT_PART_INPUT] = wait_ms * scale;
    double classes = out[FT_PART_CONTRACTION] + out[FT_PART_NORMALISATION] + out[FT_PART_ELEMENTWISE];
    if (classes > 0 && s->micros > 1) /* classes may have been added up over one micro-batch */
        for (int i = FT_PART_CONTRACTION; i <= FT_PART_ELEMENTWISE; i++) out[i] *= s->busy_ms * scale / classes;
}

static bool compiled(const ft_change *c)
{
    return c->work.execution == FT_RUN_COMPILE || c->work.execution == FT_RUN_CUDA_GRAPH;
}

/* *found false: there is no such request. Memory is exhausted: FT_E_MEMORY. */
static ft_status try_change(adviser *a, const ft_move *move, const ft_change *after, ft_advice *out, bool *found)
{
    ft_reforecast_step made = {.graph = NULL};
    ft_error ignored;
    *found = false;
    ft_status status = a->c->again(after, a->c->user, &made, &ignored);
    a->out->forecasts++;
    if (status == FT_E_MEMORY) return ft__no_memory(a->err);
    if (status != FT_OK || !made.graph) return FT_OK;
    const ft_step *step = &made.step;
    double before = ft__change_samples(a->c->now), now = ft__change_samples(after);
    if (!(before > 0) || !(now > 0)) return FT_OK;
    double scale = before / now, below, above;
    ft_tally tally;
    FT_TRY(ft__tally(made.graph, step, compiled(after), made.loading.wait_ms, a->arena, &tally, a->err));
    ft__difference(&a->asked, &tally, scale, move->kind == FT_MOVE_GPU, a->c->quantile, &below, &above);
    *out = (ft_advice){.move = *move,
                       .after = *after,
                       .saves_ms = a->c->step->step_ms - scale * step->step_ms,
                       .step_ms = step->step_ms,
                       .memory_bytes = step->memory.peak_bytes - a->c->step->memory.peak_bytes,
                       .verdict = step->memory.verdict,
                       .fits = step->memory.fits,
                       .exact = ft__move_exact(move, a->c->now)};
    out->low_ms = out->saves_ms - below;
    out->high_ms = out->saves_ms + above;
    parts_of(step, made.loading.wait_ms, scale, out->part_ms);
    *found = true;
    return FT_OK;
}

static ft_status try_move(adviser *a, const ft_move *move, const ft_change *from, ft_advice *out, bool *found)
{
    ft_change after = *from;
    *found = false;
    if (!ft__move_apply(move, &after, a->arena)) return FT_OK;
    return try_change(a, move, &after, out, found);
}

static int by_saving(const void *a, const void *b)
{
    const ft_advice *x = a, *y = b;
    if (x->saves_ms != y->saves_ms) return x->saves_ms < y->saves_ms ? 1 : -1;
    return x->proposed - y->proposed;
}

/* What does not fit is no advice; who does not fit already is helped by everything that takes no more. */
static bool acceptable(const adviser *a, const ft_advice *x)
{
    if (x->saves_ms < FT_K_ADVICE_WORTH_SAYING * a->c->step->step_ms) return false;
    return x->fits || (!a->c->step->memory.fits && x->memory_bytes <= 0);
}

/* Of two ways to turn a knob the one proposed first is the simpler one, and taken where it does nearly as much. */
static const ft_advice *easiest(const ft_advice *tried, size_t count, size_t i)
{
    const ft_advice *x = &tried[i];
    for (size_t k = i + 1; k < count && tried[k].saves_ms >= FT_K_ADVICE_NEARLY * tried[i].saves_ms; k++)
        if (ft__move_knob(&tried[k].move) == ft__move_knob(&x->move) && tried[k].proposed < x->proposed) x = &tried[k];
    return x;
}

typedef struct taken {
    ft_change all; /* with every move that was taken */
    bool turned[FT_MOVE_KINDS];
} taken;

/* Puts a move on top of those already taken; it stays only where that is still faster and still fits, and where both
 * are what one gets by merging their keys into the request: what cancels what another one saves, or excludes it, is no
 * advice beside it. */
static ft_status take(adviser *a, taken *t, const ft_advice *x, bool alone)
{
    ft_advised *out = a->out;
    int knob = ft__move_knob(&x->move);
    ft_change next = t->all;
    ft_advice sum = *x;
    bool found = true;
    double best = out->count > 0 ? out->together.saves_ms : 0;
    if (t->turned[knob] || !ft__move_apply(&x->move, &next, a->arena)) return FT_OK;
    if (!ft__change_merges(a->c->now, &x->after, &t->all, &next)) return FT_OK;
    if (out->count > 0) FT_TRY(try_change(a, &x->move, &next, &sum, &found));
    if (!found || sum.saves_ms < best + FT_K_ADVICE_WORTH_ADDING * a->c->step->step_ms) return FT_OK;
    if (!sum.fits && (a->c->step->memory.fits || out->together.fits)) return FT_OK;
    t->turned[knob] = true;
    t->all = next;
    ft_advice *kept = &out->list[out->count++];
    *kept = *x;
    if (!alone) { /* nothing by itself, as long as something else holds the step */
        double more = sum.saves_ms - best, of = sum.saves_ms > 0 ? more / sum.saves_ms : 0;
        kept->on_top = true;
        kept->saves_ms = more;
        kept->low_ms = more - of * (sum.saves_ms - sum.low_ms);
        kept->high_ms = more + of * (sum.high_ms - sum.saves_ms);
        kept->step_ms = sum.step_ms;
    }
    out->together = sum;
    return FT_OK;
}

/* From the best on. Where samples come too late, what speeds up the GPU shows only after the loader was helped. */
static ft_status keep_compatible(adviser *a, const ft_advice *tried, size_t good, size_t count)
{
    taken t = {.all = *a->c->now};
    for (size_t i = 0; i < good; i++) FT_TRY(take(a, &t, easiest(tried, good, i), true));
    bool waits = a->c->loading.wait_ms > 0;
    for (size_t i = good; waits && i < count; i++)
        if (tried[i].fits || !a->c->step->memory.fits) FT_TRY(take(a, &t, &tried[i], false));
    if (a->out->count < 2) a->out->together = (ft_advice){.saves_ms = 0};
    return FT_OK;
}

/* The overhead test: a step that the host paces takes no longer with twice the work. */
static ft_status double_batch(adviser *a, const ft_advice *tried, size_t count)
{
    ft_verdicts *v = &a->out->verdicts;
    ft_move move = {.kind = FT_MOVE_BATCH, .to = 2 * a->c->now->work.batch};
    v->doubled_batch = move.to;
    for (size_t i = 0; i < count; i++)
        if (tried[i].move.kind == FT_MOVE_BATCH && tried[i].move.to == move.to) {
            v->doubled_ms = tried[i].step_ms;
            return FT_OK;
        }
    ft_advice doubled;
    bool found;
    FT_TRY(try_move(a, &move, a->c->now, &doubled, &found));
    if (found) v->doubled_ms = doubled.step_ms;
    return FT_OK;
}

static double compute_ms(const adviser *a)
{
    return a->c->loading.compute_ms > 0 ? a->c->loading.compute_ms : a->c->step->step_ms;
}

/* Another GPU is a purchase: not for two percent, nor where it may as well cost time as save it. */
static bool worth_moving(const adviser *a, const ft_advice *x)
{
    return x->saves_ms >= FT_K_ADVICE_ANOTHER_GPU * a->c->step->step_ms && x->low_ms > -0.5 * x->saves_ms;
}

/* Of a step that does not fit, what makes it fit comes before what makes it faster; otherwise the order stays. */
static void fitting_first(ft_advice *list, size_t count)
{
    size_t fitting = 0;
    for (size_t i = 0; i < count; i++) {
        if (!list[i].fits) continue;
        ft_advice found = list[i];
        memmove(&list[fitting + 1], &list[fitting], (i - fitting) * sizeof *list);
        list[fitting++] = found;
    }
}

static ft_status advise_speed(adviser *a)
{
    ft_advised *out = a->out;
    ft_move moves[FT_MOST_MOVES];
    size_t count = ft__moves_for_speed(a->c->now, a->c->graph, a->c->step, compute_ms(a), a->c->gpus, a->c->gpu_count,
                                       moves);
    ft_advice *tried = ft__arena_array(a->arena, count + 1, sizeof *tried);
    out->list = ft__arena_array(a->arena, count + 1, sizeof *out->list);
    out->gpus = ft__arena_array(a->arena, a->c->gpu_count + 1, sizeof *out->gpus);
    if (!tried || !out->list || !out->gpus) return ft__fail(a->err, FT_E_MEMORY, "out of memory for advice");
    size_t all = 0, good = 0;
    for (size_t i = 0; i < count; i++) {
        bool found;
        FT_TRY(try_move(a, &moves[i], a->c->now, &tried[all], &found));
        if (found) tried[all++].proposed = (int)i;
    }
    FT_TRY(double_batch(a, tried, all));
    size_t programs = 0;
    for (size_t i = 0; i < all; i++) {
        if (tried[i].move.kind != FT_MOVE_GPU)
            tried[programs++] = tried[i];
        else if (acceptable(a, &tried[i]) && worth_moving(a, &tried[i]))
            out->gpus[out->gpu_count++] = tried[i];
    }
    for (size_t i = 0; i < programs; i++)
        if (acceptable(a, &tried[i])) {
            ft_advice swap = tried[good];
            tried[good++] = tried[i];
            tried[i] = swap;
        }
    qsort(tried, good, sizeof *tried, by_saving);
    if (!a->c->step->memory.fits) fitting_first(tried, good);
    qsort(out->gpus, out->gpu_count, sizeof *out->gpus, by_saving);
    return keep_compatible(a, tried, good, programs);
}

static ft_status advise_table(adviser *a)
{
    ft_move moves[FT_MOST_MOVES];
    size_t count = ft__moves_for_table(a->c->now, compute_ms(a), moves);
    a->out->table = ft__arena_array(a->arena, count + 1, sizeof *a->out->table);
    if (!a->out->table) return ft__fail(a->err, FT_E_MEMORY, "out of memory for techniques");
    for (size_t i = 0; i < count; i++) {
        bool found;
        FT_TRY(try_move(a, &moves[i], a->c->now, &a->out->table[a->out->table_count], &found));
        a->out->table_count += found;
    }
    return FT_OK;
}

ft_status ft__advise(const ft_advice_case *c, ft_arena *arena, ft_advised *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    adviser a = {.c = c, .arena = arena, .out = out, .err = err};
    out->loading = c->loading;
    parts_of(c->step, c->loading.wait_ms, 1, out->part_ms);
    FT_TRY(ft__verdicts_of(c->now, c->graph, c->step, arena, &out->verdicts, err));
    FT_TRY(ft__tally(c->graph, c->step, compiled(c->now), c->loading.wait_ms, arena, &a.asked, err));
    if (c->probe.forecast)
        FT_TRY(ft__lint(c->graph, c->step, c->now->device, &c->probe, arena, &out->lints, &out->lint_count, err));
    FT_TRY(advise_speed(&a));
    return c->techniques ? advise_table(&a) : FT_OK;
}
