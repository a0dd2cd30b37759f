/* backward.c: the backward pass, derived from the forward graph as autograd derives it.
 *
 * Blocks are undone in reverse, nodes inside them in reverse. A tensor with several readers gets a gradient from each;
 * from the second on they are added up, which costs a kernel each time. What a gradient needs of the forward pass it
 * names as its input: a tensor that somebody names is what frameworks call saved.
 *
 * Recomputation (Chen et al. 2016; selective: Korthikanti et al. 2022): the backward block first runs the forward
 * nodes again into fresh tensors and the gradients name those, so that the originals die in the forward pass. Full
 * recomputation keeps each layer's input alone; selective recomputation drops attention's score matrix. PyTorch's
 * checkpoint stops as soon as it has made again the last tensor that was saved: a Llama's down_proj, whose result no
 * gradient asks for, runs once (our H200's traces count 96 kernels for 128 calls of aten::mm). Megatron's runs all. */
#include <string.h>

#include "graph/gradient.h"

/* -- the books --------------------------------------------------------------------------------- */

static bool widen(ft_tape *t)
{
    int32_t need = t->b.g->tensor_count;
    if (need <= t->room) return true;
    int32_t room = need * 2;
    ft_ref *grad = ft__arena_array(t->b.g->arena, (size_t)room, sizeof *grad);
    ft_ref *again = ft__arena_array(t->b.g->arena, (size_t)room, sizeof *again);
    if (!grad || !again) {
        ft__build_fail(&t->b, FT_E_MEMORY, "out of memory");
        return false;
    }
    for (int32_t i = 0; i < room; i++) {
        grad[i] = i < t->room ? t->grad[i] : FT_NONE;
        again[i] = i < t->room ? t->again[i] : FT_NONE;
    }
    t->grad = grad;
    t->again = again;
    t->room = room;
    return true;
}

ft_ref ft__tape_grad(const ft_tape *t, ft_ref x) { return x >= 0 && x < t->room ? t->grad[x] : FT_NONE; }

ft_ref ft__tape_saved(const ft_tape *t, ft_ref x)
{
    return x >= 0 && x < t->room && t->again[x] != FT_NONE ? t->again[x] : x;
}

static void add_to(ft_tape *t, const char *name, ft_ref x, ft_ref g, double times)
{
    ft_build *b = &t->b;
    ft_ref sum = ft__pointwise_in_place(b, name, "add", g, x);
    if (sum != FT_NONE && b->g->node_count) b->g->nodes[b->g->node_count - 1].count = (float)times;
}

void ft__tape_give(ft_tape *t, ft_ref x, ft_ref g)
{
    ft_build *b = &t->b;
    if (b->status != FT_OK || x == FT_NONE || g == FT_NONE || !widen(t)) return;
    const ft_tensor *to = &b->g->tensors[x];
    if (!to->trained) return;
    bool parameter = to->role == FT_PARAMETER;
    double repeat = (double)b->g->blocks[t->forward].repeat;
    if (parameter && t->grad[x] == FT_NONE) {
        ft_tensor *mine = &b->g->tensors[b->g->tensors[g].storage];
        mine->role = FT_GRADIENT;
        mine->copies = to->copies;
        mine->name = to->name;
        t->grad[x] = g;
        if (t->accumulate > 1) add_to(t, "accumulate", g, g, 1 - 1 / t->accumulate);
        /* One weight for all iterations: their gradients add up. */
        if (repeat > 1 && to->copies == 1) add_to(t, "accumulate", g, g, 1 - 1 / repeat);
    } else if (t->grad[x] == FT_NONE) {
        t->grad[x] = g;
        /* Read by every iteration of this block and made outside it: the iterations' gradients add up. */
        if (repeat > 1 && to->block != t->forward) add_to(t, "accumulate", g, g, 1 - 1 / repeat);
    } else {
        ft_ref sum = ft__pointwise_in_place(b, "accumulate", "add", t->grad[x], g);
        if (sum != FT_NONE) {
            b->g->tensors[sum].strided = b->g->tensors[t->grad[x]].strided && b->g->tensors[g].strided;
            t->grad[x] = sum;
        }
    }
}

/* -- recomputation ----------------------------------------------------------------------------- */

static void run_again(ft_tape *t, const ft_block *block, bool core_only)
{
    ft_build *b = &t->b;
    b->phase = FT_RECOMPUTE;
    for (int32_t i = block->first; i < block->first + block->count && b->status == FT_OK; i++) {
        ft_node n = b->g->nodes[i];
        if (core_only && !n.core) continue;
        for (int k = 0; k < n.in_count; k++) n.in[k] = ft__tape_saved(t, n.in[k]);
        for (int k = 0; k < n.out_count; k++) {
            ft_tensor twin = b->g->tensors[n.out[k]];
            bool view = twin.storage != n.out[k];
            twin.storage = view ? ft__tape_saved(t, twin.storage) : FT_NONE;
            twin.block = b->block;
            ft_ref at = ft__graph_tensor(b->g, &twin);
            if (at == FT_NONE || !widen(t)) {
                ft__build_fail(b, FT_E_MEMORY, "out of memory");
                return;
            }
            t->again[n.out[k]] = at;
            n.out[k] = at;
        }
        ft__emit(b, &n);
    }
    b->phase = FT_BACKWARD;
}

/* Drops the end of the block's second forward run, from behind the last node whose result a gradient reads. */
static void stop_early(ft_build *b, const ft_block *block)
{
    ft_graph *g = b->g;
    int32_t end = block->first, total = g->node_count;
    while (end < total && g->nodes[end].phase == FT_RECOMPUTE) end++;
    bool *read = ft__arena_array(g->arena, (size_t)g->tensor_count, sizeof *read); /* by storage */
    if (!read) {
        ft__build_fail(b, FT_E_MEMORY, "out of memory");
        return;
    }
    for (int32_t i = end; i < total; i++)
        for (int k = 0; k < g->nodes[i].in_count; k++) read[g->tensors[g->nodes[i].in[k]].storage] = true;
    int32_t keep = end;
    for (bool asked = false; keep > block->first; keep--) {
        const ft_node *n = &g->nodes[keep - 1];
        for (int k = 0; k < n->out_count; k++) asked |= read[g->tensors[n->out[k]].storage];
        if (asked) break;
    }
    memmove(g->nodes + keep, g->nodes + end, (size_t)(total - end) * sizeof *g->nodes);
    g->node_count -= end - keep;
}

/* -- the walk ---------------------------------------------------------------------------------- */

/* A tensor like `like`, in the books of the backward block: the gradient that walks in. */
static ft_ref walk_in(ft_tape *t, ft_ref like)
{
    ft_tensor g = t->b.g->tensors[like];
    g.role = FT_ACTIVATION;
    g.trained = false;
    g.strided = g.permuted = false;
    g.storage = FT_NONE;
    g.block = t->b.block;
    g.copies = 1;
    g.name = "";
    ft_ref at = ft__graph_tensor(t->b.g, &g);
    if (at == FT_NONE) ft__build_fail(&t->b, FT_E_MEMORY, "out of memory");
    return at;
}

/* Whether a later block sent a gradient to something that this one made beside its result. */
static bool reached(const ft_tape *t, const ft_block *forward)
{
    for (int32_t i = forward->first; i < forward->first + forward->count; i++) {
        const ft_node *n = &t->b.g->nodes[i];
        for (int k = 0; k < n->out_count; k++)
            if (ft__tape_grad(t, n->out[k]) != FT_NONE) return true;
    }
    return false;
}

static void undo(ft_tape *t, int32_t index, ft_recompute recompute, bool early, bool last)
{
    ft_build *b = &t->b;
    ft_block forward = b->g->blocks[index];
    if (!widen(t)) return;
    bool out_trained = forward.carry_out != FT_NONE && b->g->tensors[forward.carry_out].trained;
    bool walks = out_trained && (last || t->grad[forward.carry_out] != FT_NONE);
    if (!walks && !reached(t, &forward)) return; /* nothing flows back from here */
    ft_block block = {.name = forward.name,
                      .phase = FT_BACKWARD,
                      .first = b->g->node_count,
                      .repeat = forward.repeat,
                      .carry_in = FT_NONE,
                      .carry_out = FT_NONE,
                      .fed_by = walks ? t->grad[forward.carry_out] : FT_NONE,
                      .mirror = index};
    if (!ft__graph_block(b->g, &block)) {
        ft__build_fail(b, FT_E_MEMORY, "out of memory");
        return;
    }
    int32_t mine = b->g->block_count - 1;
    b->block = mine;
    b->repeat = forward.repeat;
    t->forward = index;
    ft_ref g = walks ? walk_in(t, forward.carry_out) : FT_NONE;
    if (b->status != FT_OK || !widen(t)) return;
    b->g->blocks[mine].carry_in = g;
    bool layer = forward.carry_in != FT_NONE && strcmp(forward.name, "head");
    if (layer && recompute == FT_RECOMPUTE_FULL) run_again(t, &forward, false);
    if (recompute == FT_RECOMPUTE_SELECTIVE) run_again(t, &forward, true);
    if (walks) t->grad[forward.carry_out] = g;
    for (int32_t i = forward.first + forward.count - 1; i >= forward.first && b->status == FT_OK; i--) {
        ft_node n = b->g->nodes[i]; /* a copy: appending moves the array */
        ft__tape_node(t, &n);
    }
    if (b->status != FT_OK) return;
    if (layer && recompute == FT_RECOMPUTE_FULL && early) stop_early(b, &b->g->blocks[mine]);
    b->g->blocks[mine].count = b->g->node_count - b->g->blocks[mine].first;
    if (forward.carry_in == FT_NONE) return;
    ft_ref back = ft__tape_grad(t, forward.carry_in);
    b->g->blocks[mine].carry_out = back;
    if (forward.fed_by != FT_NONE && back != FT_NONE) {
        if (!widen(t)) return;
        ft_ref there = t->grad[forward.fed_by];
        const ft_tensor *source = &b->g->tensors[forward.fed_by];
        if (there == FT_NONE && source->trained && source->role != FT_PARAMETER)
            t->grad[forward.fed_by] = back;
        else
            ft__tape_give(t, forward.fed_by, back);
        b->g->blocks[mine].count = b->g->node_count - b->g->blocks[mine].first;
    }
}

ft_status ft__graph_backward(ft_graph *g, ft_recompute recompute, bool early, double accumulate, ft_error *err)
{
    ft_tape t = {.b = ft__build_begin(g, g->dtype, false, false, err), .accumulate = accumulate};
    t.b.phase = FT_BACKWARD;
    int32_t last = g->block_count - 1;
    for (int32_t i = last; i >= 0 && t.b.status == FT_OK; i--) undo(&t, i, recompute, early, i == last);
    return t.b.status;
}
