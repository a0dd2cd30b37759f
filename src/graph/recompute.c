/* recompute.c: what a backward block runs again before its gradients, and what it finds saved.
 *
 * Forward nodes run again into fresh tensors (Chen et al. 2016) and the gradients name those, so that the originals die
 * in the forward pass. Full recomputation keeps each layer's input alone. PyTorch's checkpoint stops as soon as it has
 * made again the last tensor that was saved: a Llama's down_proj, whose result no gradient asks for, runs once (our
 * H200's traces count 96 kernels for 128 calls of aten::mm). Megatron's runs all.
 *
 * `selective` is a word of two meanings. Megatron's (Korthikanti et al. 2022) drops attention's score matrix and
 * nothing else. PyTorch's is a policy per operator (create_selective_checkpoint_contexts in torch.utils.checkpoint)
 * around each layer; the one that people train with is torchtitan's (selective_ac_option "op", its default;
 * _save_list in parallelize_llama.py, December 2024): results of fused attention, of reduce-scatters and of every
 * other product with a weight are saved, the first of a layer, the third and so on; everything else runs again: norms,
 * rotary embeddings, activations, the second product, the fourth. Its list names products without bias; those with one
 * are taken to be meant. Products of two activations are not on it: eager attention's scores run again.
 *
 * JAX's policies are names (jax.checkpoint_policies.save_only_these_names): all of a layer runs again but what was made
 * under one of them. */
#include <string.h>

#include "graph/gradient.h"

/* -- the policy -------------------------------------------------------------------------------- */

typedef struct policy {
    int products;
    ft_at first;  /* product of the layer: with it the count begins anew where a block has several layers */
    ft_at before; /* the last one seen: adapters are at the site of the product that they are beside */
} policy;

/* Whether the result is saved. Asked of a block's nodes one after the other. */
static bool saves(policy *p, const ft_node *n)
{
    switch (n->verb) {
    case FT_DO_ATTENTION: return true;
    case FT_DO_COMM: return n->exchange.kind == FT_EXCHANGE_REDUCE_SCATTER;
    case FT_DO_LINEAR:
        if (n->at && n->at == p->first && n->at != p->before) p->products = 0;
        if (!p->first) p->first = n->at;
        p->before = n->at;
        return ++p->products % 2 == 1;
    default: return false;
    }
}

/* -- the second run ---------------------------------------------------------------------------- */

/* Runs n again, on what there is of its inputs, into twins of its results. */
static void repeat(ft_tape *t, ft_node n)
{
    ft_build *b = &t->b;
    for (int k = 0; k < n.in_count; k++) n.in[k] = ft__tape_saved(t, n.in[k]);
    for (int k = 0; k < n.out_count; k++) {
        ft_tensor twin = b->g->tensors[n.out[k]];
        bool view = twin.storage != n.out[k];
        twin.storage = view ? ft__tape_saved(t, twin.storage) : FT_NONE;
        twin.block = b->block;
        ft_ref at = ft__graph_tensor(b->g, &twin);
        if (at == FT_NONE || !ft__tape_widen(t)) {
            ft__build_fail(b, FT_E_MEMORY, "out of memory");
            return;
        }
        t->again[n.out[k]] = at;
        n.out[k] = at;
    }
    ft__emit(b, &n);
}

/* A view of what was made again. */
static bool views_again(const ft_tape *t, const ft_node *n)
{
    return !ft__node_runs(n) && n->in_count && n->out_count && ft__tape_saved(t, n->in[0]) != n->in[0];
}

void ft__run_recomputed(ft_tape *t, const ft_block *forward, ft_recomputed what)
{
    ft_build *b = &t->b;
    policy p = {0};
    if (what == FT_RECOMPUTED_NOTHING) return;
    b->phase = FT_RECOMPUTE;
    for (int32_t i = forward->first; i < forward->first + forward->count && b->status == FT_OK; i++) {
        const ft_node *n = &b->g->nodes[i];
        if (what == FT_RECOMPUTED_SCORES && !n->core && !views_again(t, n)) continue;
        if (what == FT_RECOMPUTED_CHEAP && saves(&p, n)) continue;
        if (what == FT_RECOMPUTED_LAYER && n->spared) continue;
        repeat(t, *n); /* a copy: appending moves the array */
    }
    b->phase = FT_BACKWARD;
}

/* -- its end ----------------------------------------------------------------------------------- */

/* Marks storages that nodes from `from` on read. */
static void mark_read(const ft_graph *g, int32_t from, bool *read)
{
    for (int32_t i = from; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i].in_count; k++) read[g->tensors[g->nodes[i].in[k]].storage] = true;
}

/* Drops the end of the second run, from behind the last node whose result a gradient reads. */
static void stop_early(ft_graph *g, int32_t first, bool *read)
{
    int32_t end = first, total = g->node_count;
    while (end < total && g->nodes[end].phase == FT_RECOMPUTE) end++;
    mark_read(g, end, read);
    int32_t keep = end;
    for (bool asked = false; keep > first; keep--) {
        const ft_node *n = &g->nodes[keep - 1];
        for (int k = 0; k < n->out_count; k++) asked |= read[g->tensors[n->out[k]].storage];
        if (asked) break;
    }
    memmove(g->nodes + keep, g->nodes + end, (size_t)(total - end) * sizeof *g->nodes);
    g->node_count -= end - keep;
}

/* Eager checkpoints keep what the policy saves whether or not anybody reads it, until the layer's gradients are done:
 * a Llama's down_proj, its seventh product. A compiler sees that nobody does (fusion passes views over). */
static void hold_saved(ft_tape *t, const ft_block *forward, const bool *read, int32_t tensors)
{
    ft_build *b = &t->b;
    policy p = {0};
    for (int32_t i = forward->first; i < forward->first + forward->count && b->status == FT_OK; i++) {
        const ft_node of = b->g->nodes[i];
        if (!saves(&p, &of)) continue;
        ft_node held = ft__node_of(FT_DO_VIEW, of.at);
        for (int k = 0; k < of.out_count; k++) {
            const ft_ref owner = b->g->tensors[of.out[k]].storage;
            if (owner >= 0 && owner < tensors && !read[owner]) ft__node_in(&held, of.out[k]);
        }
        if (held.in_count) ft__emit(b, &held);
    }
}

void ft__checkpoint_end(ft_tape *t, const ft_block *forward, ft_recomputed what)
{
    ft_build *b = &t->b;
    ft_graph *g = b->g;
    if (b->status != FT_OK || (what != FT_RECOMPUTED_LAYER && what != FT_RECOMPUTED_CHEAP)) return;
    const int32_t first = g->blocks[b->block].first, tensors = g->tensor_count;
    bool *read = ft__arena_array(g->arena, (size_t)tensors, sizeof *read); /* by storage */
    if (!read) {
        ft__build_fail(b, FT_E_MEMORY, "out of memory");
        return;
    }
    stop_early(g, first, read);
    if (what != FT_RECOMPUTED_CHEAP) return;
    mark_read(g, first, read);
    hold_saved(t, forward, read, tensors);
}
