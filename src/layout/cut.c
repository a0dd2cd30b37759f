/* cut.c: one rank's share of a forward graph.
 *
 * The pass walks the nodes once and keeps for every tensor which part of its rows and columns this rank holds. Products
 * marked by the builder start and end the cut regions, as in Megatron-LM (Shoeybi et al. 2019, fig. 3):
 *
 *     columns: every rank has all of x and some columns of W; the result is split. Going back, the ranks' gradients of
 *              x are summed ("f": nothing forward, all-reduce backward).
 *     rows:    every rank has its columns of x and the matching rows of W; the results are summed ("g").
 *
 * With sequence parallelism (Korthikanti et al. 2022) what lies outside of the regions is split by tokens: f becomes an
 * all-gather (a reduce-scatter backward), g a reduce-scatter (an all-gather backward). Context parallelism holds a part
 * of every sequence: attention first gathers keys and values, or, after Ulysses (Jacobs et al. 2023), trades tokens for
 * heads. Expert parallelism sends tokens to where their experts live and back.
 *
 * Everything between follows from the shapes: a pointwise result is split as its operands are, a view moves the split
 * to the axis where the heads went.
 *
 * Held and computed by every tensor rank: routers, the down projections of latent attention, positions, and (without
 * sequence parallelism) norms and residuals; key-value heads where there are fewer of them than ranks. */
#include <math.h>

#include "layout/cutter.h"

int64_t ft__cut_part(int64_t whole, double share_of)
{
    double local = (double)whole * share_of;
    return local < 1 ? 1 : (int64_t)ceil(local - 1e-6);
}

void ft__cut_give(cutter *c, ft_ref x, share s)
{
    s.gathered = FT_NONE;
    if (!(s.part > 0)) s.part = 1;
    c->of[x] = s;
    cut_tensor(c, x)->rows = ft__cut_part(c->rows[x], s.rows);
    cut_tensor(c, x)->cols = ft__cut_part(c->cols[x], s.cols);
}

void ft__cut_emit(cutter *c, const ft_node *n)
{
    if (c->status == FT_OK && !ft__graph_node(c->g, n)) c->status = ft__no_memory(c->err);
}

bool ft__is_expert(const ft_tensor *t) { return t->expert != FT_NO_EXPERT; }

static void node(cutter *c, ft_node *n)
{
    switch (n->verb) {
    case FT_DO_LINEAR: ft__cut_linear(c, n); break;
    case FT_DO_MATMUL: ft__cut_matmul(c, n); break;
    case FT_DO_ATTENTION: ft__cut_attention(c, n); break;
    case FT_DO_EMBEDDING: ft__cut_embedding(c, n); break;
    case FT_DO_EXPERTS: ft__cut_experts(c, n); break;
    case FT_DO_GATHER:
    case FT_DO_PERMUTE: ft__cut_gather(c, n); break;
    default: ft__cut_follow(c, n); break;
    }
}

static void walk(cutter *c, const ft_node *old)
{
    bool tokens = c->p->sp && c->p->tp > 1;
    for (int32_t b = 0; b < c->g->block_count && c->status == FT_OK; b++) {
        ft_block *block = &c->g->blocks[b];
        int32_t first = block->first, count = block->count;
        c->block = b;
        block->first = c->g->node_count;
        if (block->carry_in != FT_NONE) {
            /* Received from the stage before, as that one had it at its end. */
            share received = whole_share();
            received.rows = 1 / ((double)c->p->cp * (tokens ? (double)c->p->tp : 1));
            received.tokens = tokens;
            ft__cut_give(c, block->carry_in, block->fed_by != FT_NONE ? c->of[block->fed_by] : received);
        }
        for (int32_t i = first; i < first + count && c->status == FT_OK; i++) {
            ft_node n = old[i]; /* shares are asked by the old names; results get their new ones at the end */
            node(c, &n);
        }
        block->count = c->g->node_count - block->first;
        if (block->carry_out != FT_NONE && c->alias[block->carry_out] != FT_NONE)
            block->carry_out = c->alias[block->carry_out];
        if (block->fed_by != FT_NONE && c->alias[block->fed_by] != FT_NONE) block->fed_by = c->alias[block->fed_by];
    }
}

/* What an alias comes from: it makes it, or is the all-to-all to experts behind which it was sorted. */
static bool makes(const ft_node *n, ft_ref alias)
{
    if (!n->out_count) return false;
    bool dispatch = n->verb == FT_DO_COMM && n->exchange.axis == FT_AXIS_EXPERT &&
                    ft__node_site(n) == FT_SITE_MOE_DISPATCH;
    return n->out[0] == alias || dispatch;
}

/* Whoever read a tensor that was exchanged since reads the exchange's result; its views are views of the result. */
static void rename_all(cutter *c)
{
    for (int32_t i = 0; i < c->g->node_count; i++) {
        ft_node *n = &c->g->nodes[i];
        for (int k = 0; k < n->in_count; k++) {
            ft_ref x = n->in[k];
            if (x < 0 || x >= c->known || c->alias[x] == FT_NONE) continue;
            if (!makes(n, c->alias[x])) n->in[k] = c->alias[x];
        }
    }
    for (int32_t i = 0; i < c->g->tensor_count; i++) {
        ft_tensor *t = cut_tensor(c, i);
        ft_ref from = t->storage;
        if (from == i || from < 0 || from >= c->known || c->alias[from] == FT_NONE || c->alias[from] == i) continue;
        if (cut_tensor(c, c->alias[from])->storage != from) t->storage = c->alias[from]; /* not summed in place */
    }
}

static ft_status begin(cutter *c, ft_graph *g)
{
    size_t known = (size_t)g->tensor_count + 1;
    c->of = ft__arena_array(g->arena, known, sizeof *c->of);
    c->rows = ft__arena_array(g->arena, known, sizeof *c->rows);
    c->cols = ft__arena_array(g->arena, known, sizeof *c->cols);
    c->alias = ft__arena_array(g->arena, known, sizeof *c->alias);
    c->base = ft__arena_array(g->arena, known, sizeof *c->base);
    bool *made = ft__arena_array(g->arena, known, sizeof *made);
    if (!c->of || !c->rows || !c->cols || !c->alias || !c->base || !made) return ft__no_memory(c->err);
    for (int32_t i = 0; i < g->tensor_count; i++) {
        c->rows[i] = g->tensors[i].rows;
        c->cols[i] = g->tensors[i].cols;
        c->alias[i] = FT_NONE;
        c->base[i] = g->tensors[i].role == FT_PARAMETER ? g->tensors[i].storage : FT_NONE;
        c->of[i] = whole_share();
    }
    for (int32_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i].out_count; k++) made[g->nodes[i].out[k]] = true;
    for (int32_t b = 0; b < g->block_count; b++)
        if (g->blocks[b].carry_in != FT_NONE) made[g->blocks[b].carry_in] = true;
    double cp = (double)c->p->cp, kv = (double)c->model->kv_heads, tp = (double)c->p->tp;
    for (int32_t i = 0; i < g->tensor_count; i++) {
        /* What comes from outside is a part of every sequence: tokens stand in columns, masks and tables in rows. */
        share s = whole_share();
        if (g->tensors[i].role == FT_INPUT && c->cols[i] > 1)
            s.cols = 1 / cp;
        else if (g->tensors[i].role == FT_INPUT || (g->tensors[i].role == FT_ACTIVATION && !made[i]))
            s.rows = 1 / cp;
        if (g->tensors[i].role == FT_CACHE && tp > 1 && !c->model->latent) { /* heads stand in the rows */
            s.split = true;
            s.rows = s.part = kv >= 1 && kv < tp ? 1 / kv : 1 / tp;
        }
        if (s.rows < 1 || s.cols < 1) ft__cut_give(c, i, s);
    }
    return FT_OK;
}

ft_status ft__layout_cut(ft_graph *g, const ft_parallel *p, const ft_divisible *model, double *replicated,
                         ft_error *err)
{
    if (replicated) *replicated = 0;
    if (p->tp <= 1 && p->cp <= 1 && p->ep <= 1) return FT_OK;
    cutter c = {.g = g, .p = p, .model = model, .known = g->tensor_count, .err = err, .expert = FT_NONE};
    FT_TRY(begin(&c, g));
    ft_node *old = g->nodes;
    int32_t count = g->node_count;
    ft__cut_weights(&c, old, count);
    g->nodes = NULL;
    g->node_count = g->node_room = 0;
    walk(&c, old);
    if (c.status != FT_OK) return c.status;
    rename_all(&c);
    ft__graph_recount(g);
    for (int32_t i = 0; i < c.known && replicated && p->tp > 1; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->role == FT_PARAMETER && t->trained && t->storage == i && !c.of[i].split)
            *replicated += ft__tensor_numel(t) * (double)t->copies;
    }
    return FT_OK;
}
