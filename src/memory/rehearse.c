/* rehearse.c: weights are made, then steps run: every tensor is taken from the cache where the walk makes it and given
 * back where it dies.
 *
 * Of an earlier step nothing is left but what the cache holds. Optimizer states are made at the first update, out of
 * blocks that activations left; the second step finds these gone and asks for more, a third one asks for next to
 * nothing. A tensor of a block that repeats is there once for every iteration that made it: one that dies in the block
 * that made it is the oldest, one that dies where that block is undone the youngest.
 *
 * Layers between the second and the last but one are alike. Only what they leave behind is done for each of them, with
 * the larger tensors that come and go: what stays is cut from blocks that these left. */
#include "memory/rehearse.h"

#include <math.h>
#include <string.h>

#include "memory/cache.h"
#include "timeline/states.h"

enum { STEPS = 2, WALKED = 4, MANY = 256, LARGER = 16 };

/* What an iteration did to a tensor, to do it again. */
typedef enum change { TAKEN, OLDEST_GIVEN, YOUNGEST_GIVEN } change;
typedef struct note {
    ft_ref tensor;
    change what;
} note;

typedef struct rehearsal {
    const ft_sweep *s;
    const ft_kept *k;
    ft_cache cache;
    double update;              /* bytes that the optimizer takes while it runs */
    int32_t *oldest, *youngest; /* tensor -> its blocks */
    int32_t *small;             /* tensor -> how many it has that are too small for one */
    int32_t *block_of;          /* node -> block of the graph */
    double handle;              /* bytes of the BLAS's workspace that each thread takes with its first product */
    bool has_handle[2];         /* the forward pass's thread, autograd's */
    bool noting, updated;
    note *notes;
    int32_t note_count, note_room;
    int32_t *net; /* tensor -> how many more there are after the noted iteration */
} rehearsal;

static void write_down(rehearsal *r, ft_ref t, change what)
{
    if (!r->noting || r->cache.failed) return;
    if (r->note_count == r->note_room) {
        const int32_t room = r->note_room ? 2 * r->note_room : 512;
        note *more = ft__arena_bare(r->s->g->arena, (size_t)room, sizeof *more);
        r->cache.failed = !more;
        if (!more) return;
        if (r->note_count) memcpy(more, r->notes, (size_t)r->note_count * sizeof *more);
        r->notes = more;
        r->note_room = room;
    }
    r->notes[r->note_count++] = (note){t, what};
}

static void hold(rehearsal *r, ft_ref t, double bytes)
{
    write_down(r, t, TAKEN);
    const int32_t i = ft__cache_take(&r->cache, bytes);
    if (i == FT_CACHE_SMALL) r->small[t]++;
    if (i < 0) return;
    ft_cache_block *blocks = r->cache.blocks;
    blocks[i].newer = -1;
    blocks[i].older = r->youngest[t];
    if (r->youngest[t] >= 0)
        blocks[r->youngest[t]].newer = i;
    else
        r->oldest[t] = i;
    r->youngest[t] = i;
}

static void let_go(rehearsal *r, ft_ref t, double bytes, bool youngest)
{
    write_down(r, t, youngest ? YOUNGEST_GIVEN : OLDEST_GIVEN);
    const int32_t i = youngest ? r->youngest[t] : r->oldest[t];
    if (i < 0) {
        if (r->small[t] <= 0) return;
        r->small[t]--;
        ft__cache_give(&r->cache, FT_CACHE_SMALL, bytes);
        return;
    }
    const int32_t older = r->cache.blocks[i].older, newer = r->cache.blocks[i].newer;
    if (older >= 0)
        r->cache.blocks[older].newer = newer;
    else
        r->oldest[t] = newer;
    if (newer >= 0)
        r->cache.blocks[newer].older = older;
    else
        r->youngest[t] = older;
    ft__cache_give(&r->cache, i, bytes);
}

/* -- what stays -------------------------------------------------------------------------------- */

/* Of very many the rest is one piece: where each of them lies tells nothing more. */
static void keep(rehearsal *r, double bytes, int64_t copies)
{
    for (int64_t n = 0; n < copies && n < MANY; n++) ft__cache_take(&r->cache, bytes);
    if (copies > MANY) ft__cache_take(&r->cache, bytes * (double)(copies - MANY));
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

static void keep_weights(rehearsal *r)
{
    const ft_graph *g = r->s->g;
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        const double bytes = ft__kept_bytes(g, r->s->share, &r->s->lives, r->k, i);
        if (bytes > 0) keep(r, bytes, ft__kept_copies(t, r->s->share, r->k));
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
    const ft_graph *g = r->s->g;
    const double each = r->k->trained > 0 ? r->update / r->k->trained : 0;
    for (ft_ref i = 0; i < g->tensor_count && !r->updated; i++)
        if (is_trained(r, i)) keep_states(r, &g->tensors[i], false, true);
    r->updated = true;
    for (int giving = 0; giving < 2 && each > 0; giving++)
        for (ft_ref i = 0; i < g->tensor_count; i++) {
            if (!is_trained(r, i)) continue;
            const ft_tensor *t = &g->tensors[i];
            const double bytes = each * ft__tensor_bytes(t) * r->s->share->optimizer[ft__is_expert(t)];
            for (int64_t n = 0; n < t->copies && n < MANY; n++)
                if (giving)
                    let_go(r, i, bytes, true);
                else
                    hold(r, i, bytes);
        }
}

/* Autograd's thread takes its workspace of whatever is free while the head's gradient is made: of a vocabulary's fp32
 * logits, most often, which the next step then needs anew. */
static void take_handle(rehearsal *r, const ft_node *n)
{
    bool *has = &r->has_handle[n->phase == FT_BACKWARD];
    if (*has || (n->verb != FT_DO_LINEAR && n->verb != FT_DO_MATMUL)) return;
    *has = true;
    keep(r, r->handle, 1);
}

/* -- the step ---------------------------------------------------------------------------------- */

static void run(rehearsal *r, int32_t b, int64_t iteration)
{
    const ft_sweep *s = r->s;
    const ft_graph *g = s->g;
    const ft_block *block = &g->blocks[b];
    for (int32_t n = block->first; n < block->first + block->count; n++) {
        const int results = g->nodes[n].out_count;
        ft_ref t;
        for (int i = 0; i < results; i++)
            if ((t = ft__sweep_made_by(s, n, i)) != FT_NONE && !ft__sweep_apart(s, t)) hold(r, t, s->size[t]);
        take_handle(r, &g->nodes[n]);
        if (g->nodes[n].verb == FT_DO_OPTIMIZER)
            update(r);
        else
            ft__cache_touch(&r->cache, s->workspace[n]);
        for (int32_t d = s->lives.first[n]; d >= 0; d = s->lives.deaths[d].next) {
            t = s->lives.deaths[d].tensor;
            if (ft__happens(s->lives.deaths[d].when, iteration, block->repeat))
                let_go(r, t, s->size[t], s->lives.birth[t] >= 0 && r->block_of[s->lives.birth[t]] != b);
        }
        if (!s->kept_gradients) continue;
        for (int i = 0; i < results; i++) /* added to the waiting gradient, then gone */
            if ((t = ft__sweep_made_by(s, n, i)) != FT_NONE && g->tensors[t].role == FT_GRADIENT)
                let_go(r, t, s->size[t], true);
    }
}

/* Of the notes of an iteration those that count for all like it, in their order. */
static void settle_notes(rehearsal *r)
{
    int32_t kept = 0;
    double most = 0;
    for (int32_t i = 0; i < r->note_count; i++) {
        const note one = r->notes[i];
        r->net[one.tensor] += one.what == TAKEN ? 1 : -1;
        most = fmax(most, r->s->size[one.tensor]);
    }
    for (int32_t i = r->note_count - 1; i >= 0; i--) { /* the last ones stand */
        const note one = r->notes[i];
        int32_t *net = &r->net[one.tensor];
        const bool stands = one.what == TAKEN ? *net > 0 : *net < 0;
        if (stands) *net -= one.what == TAKEN ? 1 : -1;
        if (stands || r->s->size[one.tensor] >= most / LARGER) r->notes[r->note_count - ++kept] = one;
    }
    if (kept) memmove(r->notes, r->notes + r->note_count - kept, (size_t)kept * sizeof *r->notes);
    r->note_count = kept;
}

static void run_block(rehearsal *r, int32_t b)
{
    const int64_t repeat = r->s->g->blocks[b].repeat;
    for (int64_t i = 0; i < repeat; i++) {
        r->noting = i == 1 && repeat > WALKED;
        r->note_count = 0;
        run(r, b, i);
        if (!r->noting) continue;
        r->noting = false;
        settle_notes(r);
        for (; i < repeat - 3; i++)
            for (int32_t n = 0; n < r->note_count; n++) {
                const note one = r->notes[n];
                if (one.what == TAKEN)
                    hold(r, one.tensor, r->s->size[one.tensor]);
                else
                    let_go(r, one.tensor, r->s->size[one.tensor], one.what == YOUNGEST_GIVEN);
            }
    }
}

/* Gradients, and what nobody reads. */
static void end_step(rehearsal *r)
{
    for (ft_ref t = 0; t < r->s->g->tensor_count; t++)
        while (r->youngest[t] >= 0 || r->small[t] > 0) let_go(r, t, r->s->size[t], true);
}

static bool prepare(rehearsal *r, bool expandable)
{
    const ft_graph *g = r->s->g;
    const size_t tensors = (size_t)g->tensor_count + 1;
    ft__cache_init(&r->cache, g->arena, expandable);
    r->oldest = ft__arena_bare(g->arena, tensors, sizeof *r->oldest);
    r->youngest = ft__arena_bare(g->arena, tensors, sizeof *r->youngest);
    r->small = ft__arena_array(g->arena, tensors, sizeof *r->small);
    r->net = ft__arena_array(g->arena, tensors, sizeof *r->net);
    r->block_of = ft__arena_array(g->arena, (size_t)g->node_count + 1, sizeof *r->block_of);
    if (!r->oldest || !r->youngest || !r->small || !r->net || !r->block_of) return false;
    for (ft_ref t = 0; t < g->tensor_count; t++) r->oldest[t] = r->youngest[t] = -1;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t n = 0; n < g->blocks[b].count; n++) r->block_of[g->blocks[b].first + n] = b;
    return true;
}

bool ft__rehearse(const ft_sweep *s, const ft_kept *k, double update_bytes, double handle, bool expandable,
                  double *beyond)
{
    rehearsal r = {.s = s, .k = k, .update = update_bytes, .handle = handle};
    if (!prepare(&r, expandable)) return false;
    keep_weights(&r);
    for (int step = 0; step < STEPS; step++) {
        for (int32_t b = 0; b < s->g->block_count; b++) run_block(&r, b);
        end_step(&r);
    }
    *beyond = ft__cache_reserved(&r.cache) - ft__cache_peak(&r.cache);
    return !r.cache.failed;
}
