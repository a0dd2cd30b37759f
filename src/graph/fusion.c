/* fusion.c: the step as a compiler runs it: operators between library calls merged into generated kernels, values that
 * nobody outside of a kernel needs never written, cheap values of the forward pass computed again in the backward pass.
 *
 * Modelled on torch.compile's default (AOTAutograd and Inductor): products and attention stay library calls and nothing
 * is fused into them. Blocks are compiled one by one; a block that repeats is compiled as a loop's body whose last and
 * first kernels are one where they can be: the residual sum that ends a layer and the norm that begins the next.
 *
 * A model whose layers were compiled one by one has no such seams, and runs everything around its layers as written. */
#include "graph/fusion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void *array(ft_fusion *f, size_t count, size_t size)
{
    void *p = ft__arena_array(f->g->arena, count + 1, size);
    if (!p) f->failed = true;
    return p;
}

/* A loop's kernel that takes a share of its tensors every time (experts' gradients added up one by one) has no size
 * that follows from them: it stays as it is. */
static bool takes_shares(const ft_graph *g, const ft_node *n)
{
    if (!(n->count > 1) || n->op.kind != FT_OP_ELEMENTWISE || n->out_count < 1 || n->out[0] < 0) return false;
    return (double)n->op.u.elementwise.numel * 1.5 < ft__tensor_numel(&g->tensors[n->out[0]]);
}

/* Who joins pointwise operators alone takes neither reductions nor what only moves elements. */
static ft_part part_of(const ft_fusion *f, const ft_node *n)
{
    ft_part part = ft__fusion_part(n);
    if (n->verb == FT_DO_POOL && f->how & FT_FUSE_REDUCTIONS_END) return FT_LIBRARY; /* XLA has kernels for windows */
    if (!(f->how & FT_FUSE_POINTWISE) || part == FT_GLUE) return part;
    return part == FT_POINT && n->verb == FT_DO_POINTWISE && n->op.kind == FT_OP_ELEMENTWISE ? FT_POINT : FT_LIBRARY;
}

static void open_books(ft_fusion *f)
{
    const ft_graph *g = f->g;
    size_t tensors = (size_t)g->tensor_count, widest = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        if ((size_t)g->blocks[b].count > widest) widest = (size_t)g->blocks[b].count;
    f->tensors = g->tensor_count;
    f->root = array(f, tensors, sizeof *f->root);
    f->maker = array(f, tensors, sizeof *f->maker);
    f->home = array(f, tensors, sizeof *f->home);
    f->uses = array(f, tensors, sizeof *f->uses);
    f->flags = array(f, tensors, sizeof *f->flags);
    f->cost = array(f, tensors, sizeof *f->cost);
    f->stamp = array(f, tensors, sizeof *f->stamp);
    f->slot = array(f, tensors, sizeof *f->slot);
    f->out_stamp = array(f, tensors, sizeof *f->out_stamp);
    f->writer = array(f, tensors, sizeof *f->writer);
    f->reader = array(f, tensors, sizeof *f->reader);
    f->written_in = array(f, tensors, sizeof *f->written_in);
    f->outside = array(f, tensors, sizeof *f->outside);
    f->padded = array(f, tensors, sizeof *f->padded);
    f->group_of = array(f, widest, sizeof *f->group_of);
    f->next = array(f, widest, sizeof *f->next);
    f->from = array(f, widest, sizeof *f->from);
    f->groups = array(f, widest, sizeof *f->groups);
    f->part = array(f, (size_t)g->node_count, sizeof *f->part);
    f->room = g->node_count / 2 + 64;
    f->nodes = array(f, (size_t)f->room, sizeof *f->nodes);
    if (f->failed) return;
    for (ft_ref t = 0; t < g->tensor_count; t++) {
        ft_ref r = g->tensors[t].storage;
        f->root[t] = r == t || r < 0 || r >= g->tensor_count ? t : r < t ? f->root[r] : r;
        f->maker[t] = f->home[t] = f->written_in[t] = -1;
    }
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_node *n = &g->nodes[i];
            bool fused = ft__fusion_compiles(f, b) && !takes_shares(g, n);
            f->part[i] = (uint8_t)(fused && !ft__fusion_joins_many(f, b, i) ? part_of(f, n) : FT_LIBRARY);
            if (f->part[i] == FT_POINT && n->verb == FT_DO_POOL && n->phase == FT_FORWARD && n->out_count > 1)
                f->g->tensors[n->out[1]].element_bytes = 1; /* where in its window: a compiler needs no more */
            if (f->part[i] == FT_POINT && ft__fusion_partial_sums(f, n)) {
                f->part[i] = FT_LIBRARY;
                f->g->tensors[n->out[0]].element_bytes = FT_PARTIAL_SUMS * 4;
            }
            if (f->part[i] == FT_GLUE) continue;
            for (int k = 0; k < n->in_count; k++) f->uses[f->root[n->in[k]]]++;
            for (int k = 0; k < n->out_count; k++) {
                ft_ref r = f->root[n->out[k]];
                if (f->maker[r] >= 0) {
                    f->flags[r] |= FT_REWRITTEN;
                    continue;
                }
                f->maker[r] = i;
                f->home[r] = b;
            }
        }
    }
}

/* Inputs and results are numbers of this graph's tensors. */
static bool sound(const ft_graph *g)
{
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->first < 0 || block->count < 0 || block->first + block->count > g->node_count) return false;
        if (block->carry_in >= g->tensor_count || block->carry_out >= g->tensor_count) return false;
        if (block->fed_by >= g->tensor_count) return false;
    }
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->in_count > FT_NODE_INPUTS || n->out_count > FT_NODE_OUTPUTS || !n->op.name) return false;
        for (int k = 0; k < n->in_count; k++)
            if (n->in[k] < 0 || n->in[k] >= g->tensor_count) return false;
        for (int k = 0; k < n->out_count; k++)
            if (n->out[k] < 0 || n->out[k] >= g->tensor_count) return false;
    }
    return true;
}

/* The kernel that ends an iteration and the one that begins the next. */
typedef struct seam {
    int32_t first, last; /* nodes; -1 */
    ft_fused begins, ends;
    double handed; /* bytes that need not be read */
} seam;

static double reads(const ft_fusion *f, const ft_fused *k, ft_ref root)
{
    for (int32_t i = 0; i < k->in_count; i++)
        if (k->in[i] < f->tensors && f->root[k->in[i]] == root) return k->in_bytes[i];
    return 0;
}

static bool makes(const ft_fusion *f, const ft_fused *k, ft_ref root)
{
    for (int32_t i = 0; i < k->out_count; i++)
        if (k->out[i] < f->tensors && f->root[k->out[i]] == root) return true;
    return false;
}

static void watch(const ft_fusion *f, const ft_block *block, const ft_fused *k, int32_t at, bool closed, seam *s)
{
    if (at < 0 || closed || block->repeat < 2 || block->carry_in == FT_NONE || block->carry_out == FT_NONE) return;
    double handed = reads(f, k, f->root[block->carry_in]);
    if (s->first < 0 && handed > 0 && k->outside_only) {
        s->first = at;
        s->begins = *k;
        s->handed = handed;
    }
    if (makes(f, k, f->root[block->carry_out])) {
        s->last = at;
        s->ends = *k;
    }
}

static void sew(ft_fusion *f, const seam *s)
{
    if (s->first < 0 || s->last < 0 || s->first == s->last || s->begins.space != s->ends.space) return;
    if (s->begins.rows && s->ends.rows && s->begins.rows != s->ends.rows) return;
    ft_node *first = &f->nodes[s->first], *last = &f->nodes[s->last];
    const char *tail = ft__node_site(first) == FT_SITE_FUSED ? first->name + 5 : first->name;
    char name[160];
    snprintf(name, sizeof name, "%s%s", last->name, tail);
    ft_at kept = ft__fusion_site(f, name);
    if (!kept) {
        f->failed = true;
        return;
    }
    first->at = kept;
    first->name = kept->name;
    first->op.u.elementwise.bytes += last->op.u.elementwise.bytes - s->handed;
    if (f->inference && (first->verb == FT_DO_ROW || last->verb == FT_DO_ROW))
        first->op.u.elementwise.bytes +=
            FT_RUNNING_SUM_BYTES(s->handed, s->ends.summand > 0 ? fmin(s->ends.summand, s->handed) : s->handed);
    first->op.u.elementwise.ops_per_element += last->op.u.elementwise.ops_per_element;
    first->members += last->members;
    if (last->verb == FT_DO_ROW) first->verb = FT_DO_ROW;
    last->op = (ft_op){.kind = FT_OP_OTHER, .name = "view", .dtype = last->op.dtype, .kv_dtype = last->op.dtype};
    last->verb = FT_DO_VIEW;
    last->members = 0;
}

/* As it was written: views and all. */
static void copy_block(ft_fusion *f, const ft_block *block)
{
    for (int32_t i = block->first; i < block->first + block->count && !f->failed; i++)
        ft__fusion_emit(f, &f->g->nodes[i]);
}

static void fuse_block(ft_fusion *f, int32_t b, ft_fused *scratch)
{
    ft_block block = f->g->blocks[b];
    ft__fusion_group(f, b);
    seam s = {.first = -1, .last = -1};
    f->held_count = 0;
    const bool written = f->how & FT_FUSE_LONE_AS_WRITTEN;
    for (int32_t i = 0; i < block.count && !f->failed; i++) {
        const ft_node *n = &f->g->nodes[block.first + i];
        const bool glue = f->part[block.first + i] == FT_GLUE;
        if (written && (glue || f->part[block.first + i] == FT_LIBRARY)) {
            ft__fusion_emit(f, n);
            continue;
        }
        if (glue) continue;
        if (f->part[block.first + i] == FT_LIBRARY) {
            if (ft__fusion_joins_many(f, b, block.first + i))
                ft__fusion_join(f, b, block.first + i);
            else
                ft__fusion_library(f, b, n);
            continue;
        }
        /* A group runs at its place, which is one of its members' but not always the first's. */
        int32_t group = ft__group_find(f, f->group_of[i]);
        if (f->groups[group].place != i) continue;
        if (written && f->groups[group].size == 1) {
            ft__fusion_emit(f, n);
            continue;
        }
        int32_t at = ft__fusion_kernel(f, b, group, scratch);
        watch(f, &block, scratch, at, f->groups[group].closed, &s);
    }
    if (!f->failed && !f->layers_only) sew(f, &s);
    for (int i = 0; i < f->held_count; i++) ft__fusion_hold(f, f->held[i]);
}

ft_status ft__graph_fuse(ft_graph *g, unsigned how, ft_error *err)
{
    if (!g->block_count || !g->node_count) return FT_OK;
    if (!sound(g)) return ft__fail(err, FT_E_BUG, "fusion met a node whose tensors do not exist");
    const bool layers_only = how & FT_FUSE_LAYERS_ONLY;
    ft_fusion f = {.g = g, .how = how, .layers_only = layers_only, .inference = true};
    for (int32_t b = 0; b < g->block_count; b++) f.inference &= g->blocks[b].phase == FT_FORWARD;
    open_books(&f);
    ft_fused scratch = {0};
    /* A kernel may read every tensor of the graph, one further for a gradient of zeros. */
    scratch.in = array(&f, (size_t)g->tensor_count + 2, sizeof *scratch.in);
    scratch.in_bytes = array(&f, (size_t)g->tensor_count + 2, sizeof *scratch.in_bytes);
    scratch.out = array(&f, (size_t)g->tensor_count + 2, sizeof *scratch.out);
    int32_t *first = array(&f, (size_t)g->block_count, sizeof *first);
    if (f.failed) return ft__no_memory(err);
    ft__fusion_keep(&f);
    for (int32_t b = 0; b < g->block_count && !f.failed; b++) {
        first[b] = f.count;
        if (ft__fusion_compiles(&f, b))
            fuse_block(&f, b, &scratch);
        else
            copy_block(&f, &g->blocks[b]);
    }
    if (f.failed) return ft__no_memory(err);
    for (int32_t b = 0; b < g->block_count; b++) {
        g->blocks[b].first = first[b];
        g->blocks[b].count = (b + 1 < g->block_count ? first[b + 1] : f.count) - first[b];
    }
    g->nodes = f.nodes;
    g->node_count = f.count;
    g->node_room = f.room;
    g->layers_compiled = layers_only;
    return FT_OK;
}
