/* sweep.c: the walk over a step's nodes that counts live bytes and keeps the moment of their peak.
 *
 * A node takes the memory of its results, holds its workspace while it runs, and gives back what is read for the last
 * time; after each the bytes are noted, by what they are. Equal layers are walked four times, two at either end: what
 * lies between is linear. What the sizes are is measured before (memory.c); who takes and gives what is listed once,
 * for every walk, and for who puts the step through an allocator. */
#include "memory/sweep.h"

#include <math.h>
#include <string.h>

/* What is on its way while a node of this block runs. */
static double moving(const ft_sweep *s, int32_t block, ft_phase phase)
{
    const int32_t of = s->g->blocks[block].mirror;
    if ((phase != FT_BACKWARD && phase != FT_RECOMPUTE) || of < 0 || ft__block_is_layer(&s->g->blocks[of]))
        return s->share->moving_bytes[phase];
    return s->g->blocks[of].carry_in == FT_NONE ? s->share->embed_moving_bytes : s->share->head_moving_bytes;
}

double ft__sweep_waiting(const ft_sweep *s, ft_phase phase) { return phase == FT_UPDATE ? 0 : s->share->waiting_bytes; }

/* fmax without its rules for what is no number: every node of every walk asks. */
static inline double more(double a, double b) { return a > b ? a : b; }

static double total(const ft_live *l) { return l->gradients + l->saved + l->passing + l->cache; }

static double *account(ft_sweep *s, ft_ref t)
{
    switch (s->g->tensors[t].role) {
    case FT_GRADIENT: return s->kept_gradients ? &s->now.passing : &s->now.gradients;
    case FT_CACHE: return &s->now.cache;
    default: return s->lives.saved[t] || s->work->task != FT_TRAIN ? &s->now.saved : &s->now.passing;
    }
}

static void record(ft_sweep *s, const ft_memory_point *p)
{
    ft_memory_curve *c = s->curve;
    if (c->count == c->room) {
        const size_t room = c->room ? 2 * c->room : 512;
        ft_memory_point *more = ft__arena_array(s->g->arena, room, sizeof *more);
        if (!more) {
            c->failed = true;
            return;
        }
        if (c->count) memcpy(more, c->points, c->count * sizeof *more);
        c->points = more;
        c->room = room;
    }
    c->points[c->count++] = *p;
}

/* Of a pass whose peak was counted while its own code ran: what was counted at this node, or what the operators say. */
static double counted(const ft_sweep *s, int32_t node)
{
    const ft_node *n = &s->g->nodes[node];
    double inside =
        0; /* a recurrent layer's gates are part of what its library holds: no code of the model's sees them */
    if (n->verb == FT_DO_RECUR && n->workspace > 0)
        for (int i = 0; i < n->in_count && n->in[i] >= 0 && s->g->tensors[n->in[i]].role == FT_ACTIVATION; i++)
            inside += ft__tensor_bytes(&s->g->tensors[n->in[i]]);
    if (n->held_bytes > 0) return n->held_bytes * s->held / s->g->held_bytes + inside;
    return fmin(total(&s->now), s->held + inside);
}

static void note(ft_sweep *s, int32_t block, int32_t node, int64_t iteration, double workspace)
{
    if (s->curve)
        record(s, &(ft_memory_point){.block = block,
                                     .node = node,
                                     .iteration = iteration,
                                     .gradients_bytes = s->now.gradients,
                                     .activations_bytes = s->now.saved,
                                     .temporary_bytes = s->now.passing + workspace,
                                     .kv_cache_bytes = s->now.cache});
    const ft_phase phase = s->g->nodes[node].phase;
    const double beside = ft__sweep_waiting(s, phase) + moving(s, block, phase);
    const double tensors = s->held > 0 ? counted(s, node) : total(&s->now);
    const double bytes = tensors + workspace + beside;
    s->most_saved = more(s->most_saved, s->now.saved);
    s->most_gradients = more(s->most_gradients, s->now.gradients);
    s->most_beside = more(s->most_beside, beside);
    if (bytes <= s->peak_total) return;
    s->peak_total = bytes;
    s->peak_beside = beside;
    s->peak = s->now;
    if (s->held > 0) s->peak = (ft_live){.saved = tensors};
    s->peak_workspace = workspace;
    s->peak_block = block;
    s->peak_node = node;
    s->peak_iteration = iteration;
}

bool ft__sweep_apart(const ft_sweep *s, ft_ref t)
{
    return s->share->fsdp && !s->kept_gradients && s->g->tensors[t].role == FT_GRADIENT;
}

ft_ref ft__sweep_made_by(const ft_sweep *s, int32_t n, int i)
{
    const ft_node *node = &s->g->nodes[n];
    const ft_ref t = node->out[i] < 0 ? FT_NONE : s->lives.root[node->out[i]];
    if (t == FT_NONE || s->lives.birth[t] != n || s->size[t] <= 0) return FT_NONE;
    for (int k = 0; k < i; k++)
        if (node->out[k] >= 0 && s->lives.root[node->out[k]] == t) return FT_NONE;
    return t;
}

/* FSDP's first wrapper gives a frozen layer's parameters back when the gradients of its inputs are there
 * (torch/distributed/fsdp/_runtime_utils.py, _register_post_backward_reshard_only_hook). Where a checkpoint that
 * re-enters autograd calls the wrapped layer, those inputs are leaves: the hook has the nodes that accumulate into
 * them, these have the checkpoint and its gradient, and hooks go when all went back (_finalize_params). */
static bool undoes_kept(const ft_sweep *s, int32_t b)
{
    const int32_t of = s->g->blocks[b].mirror;
    return s->share->keeps_checkpoints && of >= 0 && ft__block_is_layer(&s->g->blocks[of]);
}

static bool hooked(const ft_sweep *s, int32_t b, ft_ref t)
{
    if (!undoes_kept(s, b)) return false;
    const ft_block *back = &s->g->blocks[b], *of = &s->g->blocks[back->mirror];
    const ft_ref ends[] = {of->carry_in, of->carry_out, of->fed_by, back->carry_out};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i] >= 0 && s->lives.root[ends[i]] == t) return true;
    return false;
}

static ft_move move_of(ft_sweep *s, ft_ref t, ft_when when, bool added)
{
    return (ft_move){.bytes = s->size[t],
                     .account = account(s, t),
                     .tensor = t,
                     .pool = s->pool_of[t],
                     .when = (uint8_t)when,
                     .pooled = !ft__sweep_apart(s, t),
                     .added = added};
}

bool ft__sweep_moves(ft_sweep *s)
{
    const ft_graph *g = s->g;
    size_t room = 1;
    for (int32_t n = 0; n < g->node_count; n++) {
        room += 2 * (size_t)g->nodes[n].out_count;
        for (int32_t d = s->lives.first[n]; d >= 0; d = s->lives.deaths[d].next) room++;
    }
    ft_move *moves = ft__arena_bare(g->arena, room, sizeof *moves);
    int32_t *made = ft__arena_bare(g->arena, (size_t)g->node_count + 1, sizeof *made), count = 0;
    int32_t *going = ft__arena_bare(g->arena, (size_t)g->node_count + 1, sizeof *going);
    if (!moves || !made || !going) return false;
    int32_t b = 0;
    for (int32_t n = 0; n < g->node_count; n++) {
        while (b + 1 < g->block_count && n >= g->blocks[b].first + g->blocks[b].count) b++;
        made[n] = count;
        for (int i = 0; i < g->nodes[n].out_count; i++) {
            const ft_ref t = ft__sweep_made_by(s, n, i);
            if (t != FT_NONE) moves[count++] = move_of(s, t, FT_EVERY, false);
        }
        going[n] = count;
        for (int32_t d = s->lives.first[n]; d >= 0; d = s->lives.deaths[d].next) {
            moves[count] = move_of(s, s->lives.deaths[d].tensor, s->lives.deaths[d].when, false);
            moves[count].stays = hooked(s, b, s->lives.deaths[d].tensor);
            count++;
        }
        for (int32_t m = made[n]; m < going[n] && s->kept_gradients; m++)
            if (g->tensors[moves[m].tensor].role == FT_GRADIENT)
                moves[count++] = move_of(s, moves[m].tensor, FT_EVERY, true);
    }
    made[g->node_count] = going[g->node_count] = count;
    s->moves = moves;
    s->made = made;
    s->going = going;
    return true;
}

/* Inductor writes a chain of elementwise work over its one operand when nobody reads that any more (a soft cap over
 * logits; seen in inference). With several operands it was seen to take fresh memory. */
static double reused(const ft_sweep *s, int32_t b, int32_t n, int64_t iteration)
{
    const ft_node *node = &s->g->nodes[n];
    if (!s->compiled || node->verb != FT_DO_POINTWISE || node->in_count != 1 || node->in[0] < 0) return 0;
    const ft_ref result = ft__sweep_made_by(s, n, 0), operand = s->lives.root[node->in[0]];
    if (result == FT_NONE || s->size[result] != s->size[operand]) return 0;
    for (int32_t d = s->lives.first[n]; d >= 0; d = s->lives.deaths[d].next)
        if (s->lives.deaths[d].tensor == operand &&
            ft__happens(s->lives.deaths[d].when, iteration, s->g->blocks[b].repeat))
            return s->size[result];
    return 0;
}

static void walk_iteration(ft_sweep *s, int32_t b, int64_t iteration)
{
    const ft_block *block = &s->g->blocks[b];
    for (int32_t n = block->first; n < block->first + block->count; n++) {
        const ft_move *gone = s->moves + s->going[n], *next = s->moves + s->made[n + 1];
        for (const ft_move *m = s->moves + s->made[n]; m < gone; m++) {
            *m->account += m->bytes;
            if (m->pooled) ft__pool_take(&s->pool, m->pool, m->bytes);
        }
        const double workspace = s->workspace[n] - reused(s, b, n, iteration);
        ft__pool_take(&s->pool, s->pool_at[n], s->workspace[n]);
        note(s, b, n, iteration, workspace);
        ft__pool_give_back(&s->pool, s->pool_at[n], s->workspace[n]);
        for (const ft_move *m = gone; m < next; m++) {
            if (m->when != FT_EVERY && !ft__happens((ft_when)m->when, iteration, block->repeat)) continue;
            if (m->stays) {
                *(m->account == &s->now.saved ? &s->hooked.saved : &s->hooked.passing) += m->bytes;
                continue;
            }
            *m->account -= m->bytes;
            if (m->pooled) ft__pool_give_back(&s->pool, m->pool, m->bytes);
        }
    }
}

/* A gradient that walks through the layers in one place does not where each is kept: every layer leaves its own. */
static void leave_gradient(ft_sweep *s, int32_t b)
{
    const ft_block *block = &s->g->blocks[b];
    if (!undoes_kept(s, b) || block->carry_in < 0 || block->carry_out < 0) return;
    const ft_ref t = s->lives.root[block->carry_in];
    if (s->lives.root[block->carry_out] != t) return;
    const double bytes = ft__allocated(ft__tensor_held(&s->g->tensors[t]));
    s->now.passing += bytes;
    s->hooked.passing += bytes;
    ft__pool_take(&s->pool, ft__pool_class(&s->pool, bytes), bytes);
}

/* The backward pass is over: hooks go. Their blocks stay cached, and what the pool's classes hold at most is behind. */
static void let_go(ft_sweep *s, int32_t b)
{
    const ft_block *block = &s->g->blocks[b];
    if (block->count < 1 || s->g->nodes[block->first].phase != FT_UPDATE) return;
    s->now.saved -= s->hooked.saved;
    s->now.passing -= s->hooked.passing;
    s->hooked = (ft_live){0};
}

/* From the second iteration to the last but one every iteration adds the same: bytes are linear in between, and the
 * peak over them is at one of their ends. */
void ft__sweep_block(ft_sweep *s, int32_t b)
{
    const int64_t repeat = s->g->blocks[b].repeat;
    let_go(s, b);
    for (int64_t i = 0; i < repeat; i++) {
        const ft_live before = s->now, hooked_before = s->hooked;
        double pooled[FT_POOL_CLASSES];
        if (i == 1) memcpy(pooled, s->pool.live, sizeof pooled);
        walk_iteration(s, b, i);
        leave_gradient(s, b);
        if (i != 1 || repeat <= 4) continue;
        const double skipped = (double)(repeat - 4);
        s->now.gradients += skipped * (s->now.gradients - before.gradients);
        const double saved = s->now.saved - before.saved;
        const double named = (double)s->work->offload_layers, all = (double)repeat;
        const double gone = !s->away ? 0 : named > 0 ? fmin(named, skipped) : skipped; /* two at either end stay */
        if (s->away) s->away_bytes = fmax(s->away_bytes, (named > 0 ? fmin(named, all) : all) * saved);
        s->now.saved += (skipped - gone) * saved;
        s->now.passing += skipped * (s->now.passing - before.passing);
        s->now.cache += skipped * (s->now.cache - before.cache);
        s->hooked.saved += skipped * (s->hooked.saved - hooked_before.saved);
        s->hooked.passing += skipped * (s->hooked.passing - hooked_before.passing);
        for (int k = 0; k < s->pool.count && gone < skipped; k++)
            ft__pool_take(&s->pool, k, (skipped - gone) * (s->pool.live[k] - pooled[k]));
        i = repeat - 3;
    }
}
