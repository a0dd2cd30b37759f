/* backward.c: the backward pass, derived from the forward graph as autograd derives it.
 *
 * Blocks are undone in reverse, nodes inside them in reverse. A tensor with several readers gets a gradient from each;
 * from the second on they are added up, which costs a kernel each time. What a gradient needs of the forward pass it
 * names as its input: a tensor that somebody names is what frameworks call saved. What is dropped instead and run again
 * before the gradients is recompute.c's. */
#include <string.h>

#include "graph/gradient.h"

/* -- the books --------------------------------------------------------------------------------- */

bool ft__tape_widen(ft_tape *t)
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

static void add_to(ft_tape *t, ft_at at, ft_ref x, ft_ref g, double times)
{
    ft_build *b = &t->b;
    ft_ref sum = ft__pointwise_in_place(b, at, "add", g, x);
    if (sum != FT_NONE && b->g->node_count) b->g->nodes[b->g->node_count - 1].count = (float)times;
}

/* A micro-batch's gradient to those before it. */
static void accumulate(ft_tape *t, ft_ref g)
{
    const ft_accumulation *s = &t->sums;
    if (s->micros <= 1 && !s->kept) return;
    if (s->wide && s->widened && ft__tensor_of(&t->b, g)->element_bytes == 2) {
        g = ft__cast(&t->b, FT_AT(ACCUMULATE), g, FT_FP32);
        if (g != FT_NONE) add_to(t, FT_AT(ACCUMULATE), g, g, 1);
        return;
    }
    add_to(t, FT_AT(ACCUMULATE), g, g, s->buffer || s->kept ? 1 : 1 - 1 / s->micros);
    const ft_tensor *mine = ft__tensor_of(&t->b, g);
    if (t->b.status != FT_OK || !s->wide || mine->element_bytes != 2) return;
    ft_op *op = &t->b.g->nodes[t->b.g->node_count - 1].op; /* reads both formats, writes the wider one */
    op->dtype = FT_FP32;
    op->u.elementwise.pattern |= FT_PATTERN_MIXED;
    op->u.elementwise.bytes = ft__tensor_numel(mine) * (2 + 4 + 4);
}

void ft__tape_give(ft_tape *t, ft_ref x, ft_ref g)
{
    ft_build *b = &t->b;
    if (b->status != FT_OK || x == FT_NONE || g == FT_NONE || !ft__tape_widen(t)) return;
    const ft_tensor *to = &b->g->tensors[x];
    if (!to->trained) return;
    bool parameter = to->role == FT_PARAMETER;
    double repeat = (double)b->g->blocks[t->forward].repeat;
    if (parameter && t->grad[x] == FT_NONE) {
        ft_tensor *mine = &b->g->tensors[b->g->tensors[g].storage];
        mine->role = FT_GRADIENT;
        mine->copies = to->copies;
        mine->name = to->name;
        mine->expert = to->expert;
        t->grad[x] = g;
        accumulate(t, g);
        /* One weight for all iterations: their gradients add up. */
        if (repeat > 1 && to->copies == 1) add_to(t, FT_AT(ACCUMULATE), g, g, 1 - 1 / repeat);
    } else if (t->grad[x] == FT_NONE) {
        t->grad[x] = g;
        /* Read by every iteration of this block and made outside it: the iterations' gradients add up. */
        if (repeat > 1 && to->block != t->forward) add_to(t, FT_AT(ACCUMULATE), g, g, 1 - 1 / repeat);
    } else {
        ft_ref sum = ft__pointwise_in_place(b, FT_AT(ACCUMULATE), "add", t->grad[x], g);
        if (sum != FT_NONE) {
            b->g->tensors[sum].strided = b->g->tensors[t->grad[x]].strided && b->g->tensors[g].strided;
            t->grad[x] = sum;
        }
    }
}

/* -- the walk ---------------------------------------------------------------------------------- */

/* A tensor like `like`, in the books of the backward block: the gradient that walks in. */
static ft_ref walk_in(ft_tape *t, ft_ref like)
{
    ft_tensor g = t->b.g->tensors[like];
    g.role = FT_ACTIVATION;
    g.trained = false;
    g.strided = g.permuted = g.across = false;
    g.storage = FT_NONE;
    g.block = t->b.block;
    g.copies = 1;
    g.name = "";
    g.expert = FT_NO_EXPERT;
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

/* What a layer was given, as its result less what it added: two differences, as large as the gradient. */
static void take_back(ft_tape *t, ft_ref carry, ft_ref g)
{
    ft_build *b = &t->b;
    ft_phase was = b->phase;
    b->phase = FT_RECOMPUTE;
    ft_ref twin = ft__pointwise2(b, FT_AT(RESIDUAL), "sub", g, g);
    b->phase = was;
    if (b->status == FT_OK && ft__tape_widen(t)) t->again[carry] = twin;
}

static void undo(ft_tape *t, int32_t index, ft_recompute recompute, bool pytorch, bool last)
{
    ft_build *b = &t->b;
    ft_block forward = b->g->blocks[index];
    if (!ft__tape_widen(t)) return;
    bool out_trained = forward.carry_out != FT_NONE && b->g->tensors[forward.carry_out].trained;
    bool walks = out_trained && (last || t->grad[forward.carry_out] != FT_NONE);
    if (!walks && !reached(t, &forward)) return; /* nothing flows back from here */
    ft_block block = {.name = forward.name,
                      .kind = forward.kind,
                      .trunk = forward.trunk,
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
    if (b->status != FT_OK || !ft__tape_widen(t)) return;
    b->g->blocks[mine].carry_in = g;
    bool layer = ft__block_is_layer(&forward);
    const ft_recomputed again = recompute == FT_RECOMPUTE_NONE || forward.kept    ? FT_RECOMPUTED_NOTHING
                                : recompute == FT_RECOMPUTE_SELECTIVE && !pytorch ? FT_RECOMPUTED_SCORES
                                : !layer                                          ? FT_RECOMPUTED_NOTHING
                                : recompute == FT_RECOMPUTE_SELECTIVE             ? FT_RECOMPUTED_CHEAP
                                                                                  : FT_RECOMPUTED_LAYER;
    if (forward.reversible && walks && forward.carry_in != FT_NONE) take_back(t, forward.carry_in, g);
    ft__run_recomputed(t, &forward, again);
    if (walks) t->grad[forward.carry_out] = g;
    for (int32_t i = forward.first + forward.count - 1; i >= forward.first && b->status == FT_OK; i--) {
        ft_node n = b->g->nodes[i]; /* a copy: appending moves the array */
        ft__tape_node(t, &n);
    }
    if (b->status != FT_OK) return;
    if (pytorch && !forward.reversible) ft__checkpoint_end(t, &forward, again);
    b->g->blocks[mine].count = b->g->node_count - b->g->blocks[mine].first;
    if (forward.carry_in == FT_NONE) return;
    ft_ref back = ft__tape_grad(t, forward.carry_in);
    b->g->blocks[mine].carry_out = back;
    if (forward.fed_by != FT_NONE && back != FT_NONE) {
        if (!ft__tape_widen(t)) return;
        ft_ref there = t->grad[forward.fed_by];
        const ft_tensor *source = &b->g->tensors[forward.fed_by];
        if (there == FT_NONE && source->trained && source->role != FT_PARAMETER)
            t->grad[forward.fed_by] = back;
        else
            ft__tape_give(t, forward.fed_by, back);
        b->g->blocks[mine].count = b->g->node_count - b->g->blocks[mine].first;
    }
}

ft_status ft__graph_backward(ft_graph *g, ft_recompute recompute, bool pytorch, ft_accumulation sums, ft_error *err)
{
    ft_tape t = {.b = ft__build_begin(g, g->dtype, false, false, err), .sums = sums};
    t.b.phase = FT_BACKWARD;
    int32_t last = g->block_count - 1;
    for (int32_t i = last; i >= 0 && t.b.status == FT_OK; i--) undo(&t, i, recompute, pytorch, i == last);
    return t.b.status;
}
