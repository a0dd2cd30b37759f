/* rehearse.c: weights are made, then steps run: every tensor is taken from the cache where the walk makes it and given
 * back where it dies.
 *
 * Of an earlier step nothing is left but what the cache holds. Optimizer states are made at the first update, out of
 * blocks that activations left; the second step finds these gone and asks for more, a third one asks for next to
 * nothing. What the step's nodes ask for is a script (script.h), which both steps run. */
#include "memory/rehearse.h"

#include <string.h>

#include "memory/cache.h"
#include "memory/flat.h"
#include "memory/script.h"
#include "timeline/states.h"

enum { STEPS = 2, MANY = 256 };

/* A tensor that the step makes: its blocks, or how many it has that are too small for one. */
typedef struct holder {
    int32_t oldest, youngest;
    ft_cache_hint hint;
    int32_t small;
} holder;

typedef struct rehearsal {
    const ft_sweep *s;
    const ft_kept *k;
    ft_cache cache;
    double update;          /* bytes that the optimizer takes while it runs */
    holder *held;           /* tensor -> what it holds */
    ft_cache_hint *touched; /* node -> the shelf of its workspace */
    int64_t handle;         /* grains of the BLAS's workspace that each thread takes with its first product */
    bool has_handle[2];     /* the forward pass's thread, autograd's */
    bool updated;
    bool flattens; /* DeepSpeed's stages */
    ft_flat flat;
} rehearsal;

static void hold(rehearsal *r, ft_ref t, int64_t grains)
{
    holder *h = &r->held[t];
    const int32_t i = ft__cache_take(&r->cache, grains, &h->hint);
    if (i == FT_CACHE_SMALL) h->small++;
    if (i < 0) return;
    ft_cache_block *blocks = r->cache.blocks;
    blocks[i].newer = -1;
    blocks[i].older = h->youngest;
    if (h->youngest >= 0)
        blocks[h->youngest].newer = i;
    else
        h->oldest = i;
    h->youngest = i;
}

static void let_go_small(rehearsal *r, ft_ref t, int64_t grains)
{
    if (r->held[t].small <= 0) return;
    r->held[t].small--;
    ft__cache_give_small(&r->cache, grains);
}

static void let_go(rehearsal *r, ft_ref t, bool youngest)
{
    holder *h = &r->held[t];
    const int32_t i = youngest ? h->youngest : h->oldest;
    if (i < 0) return;
    ft_cache_block *blocks = r->cache.blocks;
    const int32_t older = blocks[i].older, newer = blocks[i].newer;
    if (older >= 0)
        blocks[older].newer = newer;
    else
        h->oldest = newer;
    if (newer >= 0)
        blocks[newer].older = older;
    else
        h->youngest = older;
    ft__cache_give(&r->cache, i, 0);
}

/* -- what stays -------------------------------------------------------------------------------- */

/* Of very many the rest is one piece: where each of them lies tells nothing more. */
static void keep(rehearsal *r, double bytes, int64_t copies)
{
    ft__cache_keep(&r->cache, ft__cache_grains(bytes), copies < MANY ? copies : MANY);
    if (copies > MANY) ft__cache_keep(&r->cache, ft__cache_grains(bytes * (double)(copies - MANY)), 1);
}

/* States of one parameter; fp32 copies are there from the start, moments from the first update on. */
static void keep_states(rehearsal *r, const ft_tensor *t, bool copies_too, bool moments)
{
    if (ft__updates_on_host(r->s->work)) return;
    double parts[FT_STATE_PARTS] = {0};
    const int count = ft__optimizer_states(r->s->work, t, parts);
    const int copies = r->s->work->master_weights && t->element_bytes < 4 ? 1 : 0;
    const double share = r->s->share->optimizer[ft__is_expert(t)];
    for (int p = 0; p < count; p++)
        if (p < copies ? copies_too : moments) keep(r, parts[p] * share, t->copies);
}

static bool is_trained(const rehearsal *r, ft_ref i)
{
    const ft_tensor *t = &r->s->g->tensors[i];
    return t->role == FT_PARAMETER && t->trained && r->s->lives.root[i] == i;
}

/* One block for a tensor, or the youngest that it has given back. */
static void hold_or_give(rehearsal *r, ft_ref i, int64_t grains, bool giving)
{
    if (!giving)
        hold(r, i, grains);
    else if (r->held[i].youngest >= 0)
        let_go(r, i, true);
    else
        let_go_small(r, i, grains);
}

/* Trained weights as they were loaded, then flattened beside those; what was loaded goes. */
static void flatten(rehearsal *r)
{
    const ft_graph *g = r->s->g;
    double all = 0;
    for (int giving = 0; giving < 2; giving++) {
        for (ft_ref i = 0; i < g->tensor_count; i++) {
            if (!is_trained(r, i)) continue;
            const ft_tensor *t = &g->tensors[i];
            const double bytes = ft__kept_bytes(g, r->s->share, &r->s->lives, r->k, i);
            const int64_t grains = ft__cache_grains(bytes), copies = ft__kept_copies(t, r->s->share, r->k);
            if (!giving) all += bytes * (double)copies;
            for (int64_t n = 0; n < copies && !r->flat.third; n++) hold_or_give(r, i, grains, giving);
        }
        if (!giving) keep(r, all, 1);
    }
    ft__flat_begin(&r->flat, &r->cache);
}

static void keep_weights(rehearsal *r)
{
    const ft_graph *g = r->s->g;
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (r->flattens && is_trained(r, i)) continue;
        const double bytes = ft__kept_bytes(g, r->s->share, &r->s->lives, r->k, i);
        if (bytes > 0) keep(r, bytes, ft__kept_copies(t, r->s->share, r->k));
    }
    if (r->flattens) {
        flatten(r);
        return;
    }
    for (ft_ref i = 0; i < g->tensor_count && r->s->work->task == FT_TRAIN; i++) {
        if (!is_trained(r, i)) continue;
        const ft_tensor *t = &g->tensors[i];
        keep_states(r, t, true, false);
        if (r->k->kept_gradients) keep(r, ft__waiting_gradient(r->s->work, r->s->share, t), t->copies);
    }
}

/* What an update takes for all parameters at once is a piece for each of them. */
static void update(rehearsal *r)
{
    if (r->flattens) {
        ft__flat_update(&r->flat, &r->cache);
        return;
    }
    const ft_graph *g = r->s->g;
    const double each = r->k->trained > 0 ? r->update / r->k->trained : 0;
    for (ft_ref i = 0; i < g->tensor_count && !r->updated; i++)
        if (is_trained(r, i)) keep_states(r, &g->tensors[i], false, true);
    r->updated = true;
    for (int giving = 0; giving < 2 && each > 0; giving++)
        for (ft_ref i = 0; i < g->tensor_count; i++) {
            if (!is_trained(r, i)) continue;
            const ft_tensor *t = &g->tensors[i];
            const int64_t grains =
                ft__cache_grains(each * ft__tensor_bytes(t) * r->s->share->optimizer[ft__is_expert(t)]);
            for (int64_t n = 0; n < t->copies && n < MANY; n++) hold_or_give(r, i, grains, giving);
        }
}

/* Autograd's thread takes its workspace of whatever is free while the head's gradient is made: of a vocabulary's fp32
 * logits, most often, which the next step then needs anew. */
static void take_handle(rehearsal *r, int32_t thread)
{
    if (r->has_handle[thread]) return;
    r->has_handle[thread] = true;
    ft__cache_keep(&r->cache, r->handle, 1);
}

/* -- the step ---------------------------------------------------------------------------------- */

static void run(rehearsal *r, const ft_line *lines, int32_t count, int64_t iteration, int64_t repeat)
{
    ft_cache *c = &r->cache;
    for (const ft_line *l = lines; l < lines + count; l++) {
        if (l->when != FT_EVERY && !ft__happens((ft_when)l->when, iteration, repeat)) continue;
        switch ((ft_line_kind)l->kind) {
        case FT_LINE_TAKE: hold(r, l->tensor, l->grains); break;
        case FT_LINE_GIVE_OLDEST: let_go(r, l->tensor, false); break;
        case FT_LINE_GIVE_YOUNGEST: let_go(r, l->tensor, true); break;
        case FT_LINE_TAKE_SMALL:
            ft__cache_take_small(c, l->grains);
            r->held[l->tensor].small++;
            break;
        case FT_LINE_GIVE_SMALL: let_go_small(r, l->tensor, l->grains); break;
        case FT_LINE_TOUCH: ft__cache_touch(c, l->grains, &r->touched[l->tensor]); break;
        case FT_LINE_TOUCH_SMALL:
            ft__cache_take_small(c, l->grains);
            ft__cache_give_small(c, l->grains);
            break;
        case FT_LINE_HANDLE: take_handle(r, l->tensor); break;
        case FT_LINE_UPDATE: update(r); break;
        }
    }
}

static void run_block(rehearsal *r, const ft_script_block *b)
{
    for (int64_t i = 0; i < b->repeat; i++) {
        run(r, b->lines, b->count, i, b->repeat);
        if (i != 1 || !b->alike) continue;
        for (; i < b->repeat - 3; i++) run(r, b->alike, b->alike_count, i, b->repeat);
    }
}

/* Gradients, and what nobody reads. */
static void end_step(rehearsal *r)
{
    for (ft_ref t = 0; t < r->s->g->tensor_count; t++) {
        while (r->held[t].youngest >= 0) let_go(r, t, true);
        while (r->held[t].small > 0) let_go_small(r, t, ft__cache_grains(r->s->size[t]));
    }
}

static bool prepare(rehearsal *r, bool expandable)
{
    const ft_graph *g = r->s->g;
    ft__cache_init(&r->cache, g->arena, expandable);
    r->held = ft__arena_bare(g->arena, (size_t)g->tensor_count + 1, sizeof *r->held);
    r->touched = ft__arena_array(g->arena, (size_t)g->node_count + 1, sizeof *r->touched);
    if (!r->held || !r->touched) return false;
    for (ft_ref t = 0; t < g->tensor_count; t++) r->held[t] = (holder){.oldest = -1, .youngest = -1};
    return true;
}

static void run_step(rehearsal *r, const ft_script *script)
{
    for (int32_t b = 0; b < script->count; b++) {
        if (r->flattens && r->s->g->blocks[b].phase == FT_BACKWARD) ft__flat_backward(&r->flat, &r->cache);
        run_block(r, &script->blocks[b]);
    }
    end_step(r);
}

bool ft__rehearse(const ft_sweep *s, const ft_kept *k, double update_bytes, double handle, bool expandable,
                  double *beyond)
{
    rehearsal r = {.s = s, .k = k, .update = update_bytes, .handle = ft__cache_grains(handle)};
    ft_script script;
    if (!prepare(&r, expandable) || !ft__script(s, s->g->arena, &script)) return false;
    r.flattens = ft__flat_of(s->work, s->share, k, &r.flat);
    keep_weights(&r);
    for (int step = 0; step < STEPS; step++) run_step(&r, &script);
    *beyond = ft__cache_reserved(&r.cache) - ft__cache_peak(&r.cache);
    if (r.flattens) *beyond += ft__flat_apart(&r.flat);
    return !r.cache.failed;
}

/* -- steps of many sizes ----------------------------------------------------------------------- */

/* Of other sizes than the last step's: what was remembered of shelves is not theirs. */
static void forget(rehearsal *r)
{
    for (ft_ref t = 0; t < r->s->g->tensor_count; t++) r->held[t].hint = (ft_cache_hint){0};
    memset(r->touched, 0, ((size_t)r->s->g->node_count + 1) * sizeof *r->touched);
    ft__cache_tidy(&r->cache);
}

bool ft__rehearse_varied(const ft_sweep *s, const ft_kept *k, const ft_course *course, double *beyond)
{
    rehearsal r = {.s = s, .k = k, .update = course->update, .handle = ft__cache_grains(course->handle)};
    ft_arena *lines = ft__arena_new(0);
    ft_script script;
    bool well = lines && prepare(&r, course->expandable);
    if (well) {
        r.flattens = ft__flat_of(s->work, s->share, k, &r.flat);
        ft__cache_limit(&r.cache, course->room);
        keep_weights(&r);
    }
    for (int step = 0; well && step < course->steps; step++) {
        course->resize(course->user, step);
        forget(&r);
        ft__arena_reset(lines);
        well = ft__script(s, lines, &script);
        if (well) run_step(&r, &script);
    }
    ft__arena_free(lines);
    if (!well) return false;
    *beyond = ft__cache_reserved(&r.cache) - ft__cache_peak(&r.cache);
    if (r.flattens) *beyond += ft__flat_apart(&r.flat);
    return !r.cache.failed;
}
