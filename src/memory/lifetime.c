/* lifetime.c: births, last readers, deaths. */
#include "memory/lifetime.h"

#include <string.h>

/* A moment that happens once in a step: a node in the first or in the last iteration of its block. */
typedef struct moment {
    int32_t block; /* -1: never */
    bool last;
    int32_t node;
} moment;

/* What is known of one storage. `near` are its readers in the iteration that made it, `back` those in the iteration
 * that undoes it, `far` anyone else's: of a block that repeats only the last iteration's copy can have such readers. */
typedef struct life {
    int32_t home;       /* block that makes it; -1: none does */
    int32_t near, back; /* last nodes; -1 for none */
    int32_t back_block;
    moment far;
} life;

typedef struct walk {
    const ft_graph *g;
    ft_ref *root;
    int32_t *birth, *first;
    bool *saved;
    life *life;
    ft_death *deaths;
    int32_t death_count, death_room;
    ft_ref *source; /* block -> what its carry_in is in the first iteration */
} walk;

static bool later(moment a, moment b)
{
    if (a.block != b.block) return a.block > b.block;
    if (a.last != b.last) return a.last;
    return a.node > b.node;
}

static void push_far(life *l, moment m)
{
    if (later(m, l->far)) l->far = m;
}

static bool valid(const ft_graph *g, ft_ref x) { return x >= 0 && x < g->tensor_count; }

static bool repeats(const ft_graph *g, int32_t block) { return block >= 0 && g->blocks[block].repeat > 1; }

/* Owners. The carry_in of a block that runs once is simply the value it stands for. Owners stand before their views. */
static void find_roots(walk *w)
{
    const ft_graph *g = w->g;
    for (ft_ref t = 0; t < g->tensor_count; t++) w->root[t] = g->tensors[t].storage;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_ref in = g->blocks[b].carry_in, from = g->blocks[b].fed_by;
        w->source[b] = valid(g, in) && valid(g, from) && from < in ? from : FT_NONE;
        if (g->blocks[b].repeat <= 1 && w->source[b] != FT_NONE) w->root[in] = w->source[b];
    }
    for (ft_ref t = 0; t < g->tensor_count; t++) {
        const ft_ref r = w->root[t];
        if (r != t) w->root[t] = r >= 0 && r < t ? w->root[r] : t;
    }
}

static void read(walk *w, ft_ref t, int32_t block, int32_t node)
{
    const ft_graph *g = w->g;
    life *l = &w->life[t];
    if (g->nodes[node].phase != FT_FORWARD && w->birth[t] >= 0 && g->nodes[w->birth[t]].phase == FT_FORWARD)
        w->saved[t] = true;
    if (l->home == block) {
        l->near = node;
    } else if (repeats(g, l->home) && g->blocks[block].mirror == l->home &&
               g->blocks[block].repeat == g->blocks[l->home].repeat) {
        l->back = node;
        l->back_block = block;
    } else {
        push_far(l, (moment){block, repeats(g, block), node});
    }
}

static void find_readers(walk *w)
{
    const ft_graph *g = w->g;
    for (ft_ref t = 0; t < g->tensor_count; t++) {
        w->birth[t] = -1;
        w->life[t] = (life){.home = -1, .near = -1, .back = -1, .back_block = -1, .far = {.block = -1}};
    }
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (repeats(g, b) && valid(g, block->carry_in)) w->life[w->root[block->carry_in]].home = b;
        for (int32_t n = block->first; n < block->first + block->count; n++) {
            const ft_node *node = &g->nodes[n];
            for (int i = 0; i < node->in_count; i++)
                if (valid(g, node->in[i])) read(w, w->root[node->in[i]], b, n);
            for (int i = 0; i < node->out_count; i++) {
                if (!valid(g, node->out[i])) continue;
                const ft_ref t = w->root[node->out[i]];
                if (w->life[t].home < 0 && w->life[t].far.block < 0) {
                    w->birth[t] = n;
                    w->life[t].home = b;
                    w->life[t].near = n;
                } else {
                    read(w, t, b, n); /* written again, in place or as a view */
                }
            }
        }
    }
}

/* -- what Python holds ------------------------------------------------------------------------- */

/* The module whose function issues a node; NULL for what the layer calls itself (its norms, sums, dropout) and for the
 * head. */
static ft_at module_of(const ft_node *n) { return n->at && !n->at->outer ? n->at->of : NULL; }

/* Nodes [from, to] are one call of a module: what it reads and did not make is held until its last node. */
static void hold_arguments(walk *w, int32_t block, int32_t from, int32_t to)
{
    const ft_graph *g = w->g;
    for (int32_t n = from; n < to; n++)
        for (int i = 0; i < g->nodes[n].in_count; i++) {
            if (!valid(g, g->nodes[n].in[i])) continue;
            const ft_ref t = w->root[g->nodes[n].in[i]];
            if (g->tensors[t].role == FT_ACTIVATION && w->birth[t] < from && w->life[t].home == block)
                read(w, t, block, w->life[t].near > to ? w->life[t].near : to);
        }
}

static void hold_to(walk *w, int32_t block, ft_ref t, int32_t node)
{
    t = w->root[t];
    if (w->g->tensors[t].role == FT_ACTIVATION && w->life[t].home == block && w->life[t].near < node)
        read(w, t, block, node);
}

/* Variables of a function live until it returns. Those that attention reads (queries, keys, values) are never assigned
 * again; scores are, at every step. A copy that a product makes of a strided operand is its own, a cast or a repetition
 * of grouped keys is the function's beside its caller's original. */
static void hold_operands(walk *w, int32_t block, int32_t from, int32_t to)
{
    const ft_graph *g = w->g;
    for (int32_t n = from; n < to; n++) {
        const ft_node *node = &g->nodes[n];
        if (node->verb != FT_DO_MATMUL && node->verb != FT_DO_ATTENTION) continue;
        if (ft__node_site(node) == FT_SITE_MOE_DOWN) continue; /* its result takes its operand's name */
        for (int i = 0; i < node->in_count; i++) {
            if (!valid(g, node->in[i])) continue;
            const ft_ref t = w->root[node->in[i]];
            const ft_node *maker = w->birth[t] >= from ? &g->nodes[w->birth[t]] : NULL;
            const bool copied = maker && maker->verb == FT_DO_COPY && maker->in_count > 0 && valid(g, maker->in[0]);
            const bool cast = maker && maker->op.name && !strncmp(maker->op.name, "cast", 4) && valid(g, maker->in[0]);
            const bool repeats_keys = copied && (ft__node_site(maker) == FT_SITE_ATTN_REPEAT_KV ||
                                                 ft__node_site(maker) == FT_SITE_MOE_REPEAT);
            if (copied || cast) hold_to(w, block, maker->in[0], to);
            if (!copied || repeats_keys) hold_to(w, block, t, to);
        }
    }
}

static void hold_modules(walk *w, int32_t b)
{
    const ft_block *block = &w->g->blocks[b];
    const ft_node *nodes = w->g->nodes;
    const int32_t end = block->first + block->count;
    for (int32_t from = block->first; from < end;) {
        const ft_at module = module_of(&nodes[from]);
        int32_t to = from;
        for (int32_t n = from + 1; n < end && module; n++) {
            if (module_of(&nodes[n]) == module)
                to = n;
            else if (!ft__makes_nothing(&nodes[n]))
                break;
        }
        if (to > from) {
            hold_arguments(w, b, from, to);
            hold_operands(w, b, from, to);
        }
        from = to + 1;
    }
}

/* A loss that copies logits to shift them: its caller holds them as they came, it itself what it made wide. */
static void hold_logits(walk *w, int32_t b)
{
    const ft_graph *g = w->g;
    const int32_t end = g->blocks[b].first + g->blocks[b].count - 1;
    for (int32_t n = g->blocks[b].first; n < end; n++) {
        const ft_node *copy = &g->nodes[n];
        if (copy->verb != FT_DO_COPY || ft__node_site(copy) != FT_SITE_LOSS || !valid(g, copy->in[0])) continue;
        const ft_ref logits = w->root[copy->in[0]];
        const ft_node *maker = w->birth[logits] >= g->blocks[b].first ? &g->nodes[w->birth[logits]] : NULL;
        if (maker && ft__node_site(maker) == FT_SITE_LOSS && valid(g, maker->in[0])) hold_to(w, b, maker->in[0], end);
        hold_to(w, b, logits, end);
    }
}

/* Blocks of one function: the model's, up to its head, or those of one of its trunks (an encoder's). */
static bool same_function(const ft_block *first, const ft_block *other)
{
    return other->kind != FT_BLOCK_HEAD && (first->trunk == FT_TRUNK_MODEL || first->trunk == other->trunk);
}

/* The first block's result is what the model's own function feeds to its layers; it holds it until the last of them. */
static void hold_embedding(walk *w)
{
    const ft_graph *g = w->g;
    if (g->block_count < 2 || w->source[1] == FT_NONE || w->life[w->root[w->source[1]]].home != 0) return;
    moment last = {.block = -1};
    for (int32_t b = 1; b < g->block_count && g->blocks[b].phase == FT_FORWARD; b++) {
        if (!same_function(&g->blocks[1], &g->blocks[b])) break;
        last = (moment){b, repeats(g, b), g->blocks[b].first + g->blocks[b].count - 1};
    }
    if (last.block >= 1) push_far(&w->life[w->root[w->source[1]]], last);
}

static void hold(walk *w, ft_holder holder)
{
    const ft_graph *g = w->g;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->phase != FT_FORWARD || block->count < 1) continue;
        if (holder == FT_PYTHON_HOLDS || !ft__block_is_layer(block)) hold_modules(w, b);
        if (block->kind == FT_BLOCK_HEAD) hold_logits(w, b);
        const int32_t end = block->first + block->count - 1;
        /* A head is called with the model's result; a last norm is the model's own, and its input is gone by then. */
        const bool head = block->kind == FT_BLOCK_HEAD && ft__node_site(&g->nodes[block->first]) != FT_SITE_NORM;
        if (head && w->source[b] != FT_NONE) push_far(&w->life[w->root[w->source[b]]], (moment){b, repeats(g, b), end});
        if (!repeats(g, b) || !valid(g, block->carry_in)) continue;
        read(w, w->root[block->carry_in], b, end);
    }
    hold_embedding(w);
}

/* -- deaths ------------------------------------------------------------------------------------ */

static int32_t block_end(const ft_graph *g, int32_t node)
{
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (node >= block->first && node < block->first + block->count) return block->first + block->count;
    }
    return g->node_count;
}

/* The last kernel of the gradient that `node` is part of. Autograd lets go of what an operator saved, and of the
 * gradient that came in, when all it makes of them is issued: both products and the sum for the bias, both sides of a
 * product of elements. What a linear layer gets from recomputation is handed out once, and gone. */
static int32_t gradient_end(const walk *w, ft_ref t, int32_t node)
{
    const ft_graph *g = w->g;
    const ft_node *first = &g->nodes[node];
    const bool product = first->verb == FT_DO_LINEAR || first->verb == FT_DO_MATMUL;
    if (first->phase != FT_BACKWARD || first->in_count < 1) return node;
    if (product && w->birth[t] >= 0 && g->nodes[w->birth[t]].phase == FT_RECOMPUTE) return node;
    const int32_t furthest = node + (product ? 2 : 1), end = block_end(g, node);
    for (int32_t n = node + 1; n < end && n <= furthest; n++) {
        const ft_node *next = &g->nodes[n];
        if (next->at != first->at || next->in_count < 1) break;
        const bool sum = next->verb == FT_DO_ROW && next->op.name && !strcmp(next->op.name, "sum_cols");
        const bool side = first->verb == FT_DO_POINTWISE && next->verb == FT_DO_POINTWISE &&
                          next->in[0] == first->in[0];
        if (!(product && (sum || next->verb == first->verb)) && !side) break;
        node = n;
    }
    return node;
}

static void die(walk *w, ft_ref t, int32_t node, ft_when when)
{
    if (node < 0 || w->death_count == w->death_room) return;
    node = gradient_end(w, t, node);
    w->deaths[w->death_count] = (ft_death){t, when, w->first[node]};
    w->first[node] = w->death_count++;
}

static void die_at(walk *w, ft_ref t, moment m)
{
    const bool once = !repeats(w->g, m.block);
    die(w, t, m.node, once ? FT_EVERY : m.last ? FT_IN_LAST : FT_IN_FIRST);
}

/* The carries. In the first iteration carry_in is the source's memory, later the previous iteration's carry_out: its
 * readers are handed on to whoever owns that memory. */
static void settle_carries(walk *w)
{
    const ft_graph *g = w->g;
    for (int32_t b = g->block_count - 1; b >= 0; b--) { /* later blocks first: sources are chains */
        const ft_block *block = &g->blocks[b];
        if (!repeats(g, b) || !valid(g, block->carry_in)) continue;
        const ft_ref in = w->root[block->carry_in];
        const ft_ref out = valid(g, block->carry_out) ? w->root[block->carry_out] : FT_NONE;
        life *l = &w->life[in];
        if (l->home != b) continue;
        const bool in_place = out == in; /* the value walks through all iterations in the same memory */
        if (w->source[b] != FT_NONE) {
            const ft_ref from = w->root[w->source[b]];
            life *s = &w->life[from];
            if (l->near >= 0) push_far(s, (moment){b, in_place, l->near});
            if (l->back >= 0) push_far(s, (moment){l->back_block, true, l->back});
            if (in_place && l->far.block >= 0) push_far(s, l->far);
            if (l->back >= 0) w->saved[from] = true;
        }
        if (in_place || out == FT_NONE || w->life[out].home != b || w->birth[out] < 0) continue;
        const life *o = &w->life[out];
        if (l->back >= 0) w->saved[out] = true;
        if (o->back >= 0) continue; /* read by its own gradient, after the next iteration's: dies there */
        if (l->back >= 0)
            die(w, out, l->back, FT_BUT_LAST);
        else
            die(w, out, l->near >= 0 ? l->near : block->first, FT_BUT_FIRST);
    }
}

static bool mortal(ft_role role) { return role == FT_ACTIVATION; }

static void settle_deaths(walk *w)
{
    const ft_graph *g = w->g;
    for (ft_ref t = 0; t < g->tensor_count; t++) {
        const life *l = &w->life[t];
        if (w->birth[t] < 0 || !mortal(g->tensors[t].role)) continue;
        if (!repeats(g, l->home)) {
            const moment near = {l->home, false, l->near};
            die_at(w, t, later(l->far, near) ? l->far : near);
            continue;
        }
        if (l->back >= 0) {
            die(w, t, l->back, FT_EVERY);
            continue;
        }
        const ft_ref out = g->blocks[l->home].carry_out;
        const bool carried = valid(g, out) && w->root[out] == t && valid(g, g->blocks[l->home].carry_in);
        if (l->far.block >= 0) {
            die_at(w, t, l->far);
            if (!carried) die(w, t, l->near, FT_BUT_LAST);
        } else {
            die(w, t, l->near, carried ? FT_IN_LAST : FT_EVERY);
        }
    }
}

ft_status ft__lifetimes(const ft_graph *g, ft_holder holder, ft_lifetimes *out, ft_error *err)
{
    const size_t tensors = (size_t)g->tensor_count, nodes = (size_t)g->node_count;
    walk w = {.g = g, .death_room = 2 * g->tensor_count + g->block_count};
    w.root = ft__arena_array(g->arena, tensors + 1, sizeof *w.root);
    w.birth = ft__arena_array(g->arena, tensors + 1, sizeof *w.birth);
    w.saved = ft__arena_array(g->arena, tensors + 1, sizeof *w.saved);
    w.life = ft__arena_array(g->arena, tensors + 1, sizeof *w.life);
    w.first = ft__arena_array(g->arena, nodes + 1, sizeof *w.first);
    w.deaths = ft__arena_array(g->arena, (size_t)w.death_room + 1, sizeof *w.deaths);
    w.source = ft__arena_array(g->arena, (size_t)g->block_count + 1, sizeof *w.source);
    if (!w.root || !w.birth || !w.saved || !w.life || !w.first || !w.deaths || !w.source)
        return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d tensors", g->tensor_count);
    for (size_t n = 0; n < nodes; n++) w.first[n] = -1;
    find_roots(&w);
    find_readers(&w);
    if (holder != FT_NOBODY_HOLDS) hold(&w, holder);
    settle_carries(&w);
    settle_deaths(&w);
    *out = (ft_lifetimes){w.root, w.birth, w.saved, w.first, w.deaths};
    return FT_OK;
}
