/* fusion_joined.c: concatenations of many tensors.
 *
 * Up to eight Inductor computes inside of whoever reads them (torch/_inductor/lowering.py, cat:
 * MAX_COMPLEX_POINTWISE_CAT); more are a buffer, into which every part is copied (ir.py, ConcatKernel). Copies of one
 * part into several buffers are one kernel where these stand near each other in the order of the schedule
 * (scheduler.py, are_long_distant_nodes: up to 64 nodes). DenseNet's layers join what all layers before them made:
 * between two of their buffers stand a node for each part and those of a layer (norms, convolutions, a filter that is
 * turned). What the first part's maker made comes out of a generated kernel, which writes it into all of the buffers at
 * once, so that from there on all of them are held. Copies into a buffer that has no such neighbour stand alone. */
#include <math.h>

#include "graph/fusion.h"

enum { FAR = 64 };

static bool is_cat(const ft_node *n) { return n->verb == FT_DO_CAT && n->in_count && n->out_count && !n->streams; }

/* More parts of the concatenation before it: a node has room for the eight that a compiler takes at most. */
static bool goes_on(const ft_node *n) { return is_cat(n) && n->in_place; }

bool ft__fusion_joins_many(const ft_fusion *f, int32_t block, int32_t at)
{
    if (f->how & (FT_FUSE_POINTWISE | FT_FUSE_REDUCTIONS_END | FT_FUSE_LONE_AS_WRITTEN)) return false;
    const ft_block *b = &f->g->blocks[block];
    const ft_node *n = &f->g->nodes[at];
    if (goes_on(n)) return true;
    return is_cat(n) && at + 1 < b->first + b->count && goes_on(n + 1);
}

static int32_t parts(const ft_block *b, const ft_node *nodes, int32_t at)
{
    int32_t count = nodes[at].in_count;
    while (++at < b->first + b->count && goes_on(&nodes[at])) count += nodes[at].in_count - 1;
    return count;
}

/* A node of the compiler's schedule: a library call, or a generated kernel at its place. */
static bool scheduled(const ft_fusion *f, const ft_block *b, int32_t i)
{
    const ft_node *nodes = &f->g->nodes[b->first];
    if (f->part[b->first + i] == FT_GLUE || goes_on(&nodes[i])) return false;
    if (f->part[b->first + i] == FT_LIBRARY) return true;
    const ft_group *group = &f->groups[ft__group_find(f, f->group_of[i])];
    if (group->place != i) return false;
    for (int32_t k = group->head; k >= 0; k = f->next[k])
        for (int o = 0; o < nodes[k].out_count; o++)
            if (ft__fusion_written(f, f->root[nodes[k].out[o]])) return true;
    return false;
}

static bool begins_with(const ft_fusion *f, int32_t block, int32_t i, ft_ref first)
{
    const ft_node *n = &f->g->nodes[i];
    return !goes_on(n) && ft__fusion_joins_many(f, block, i) && f->root[n->in[0]] == first;
}

/* Nodes from the buffer at `at` to the next one of those that begin with the same part, `step` 1 or -1 places further;
 * FAR: there is none near enough. */
static int32_t to_the_next(const ft_fusion *f, int32_t block, int32_t at, int32_t step)
{
    const ft_block *b = &f->g->blocks[block];
    const ft_ref first = f->root[f->g->nodes[at].in[0]];
    int32_t count = 1;
    for (int32_t i = at + step; i >= b->first && i < b->first + b->count && count < FAR; i += step) {
        if (begins_with(f, block, i, first)) return count;
        count += scheduled(f, b, i - b->first);
    }
    return FAR;
}

/* A node without a kernel, which only names tensors. */
static ft_node naming(const ft_node *n)
{
    ft_node out = {
        .verb = FT_DO_VIEW, .phase = n->phase, .at = n->at, .name = n->name, .count = 1, .traffic = 1, .effort = 1};
    out.op.kind = FT_OP_OTHER;
    out.op.name = "view";
    return out;
}

/* The first of those that begin with the same part makes room for all. */
static void make_room(ft_fusion *f, int32_t block, int32_t at)
{
    const ft_block *b = &f->g->blocks[block];
    const ft_ref first = f->root[f->g->nodes[at].in[0]];
    for (int32_t i = b->first; i < at; i++)
        if (begins_with(f, block, i, first)) return;
    for (int32_t i = at; i < b->first + b->count; i++) {
        if (!begins_with(f, block, i, first)) continue;
        ft_node room = naming(&f->g->nodes[at]);
        room.out[room.out_count++] = f->g->nodes[i].out[0];
        ft__fusion_emit(f, &room);
    }
}

void ft__fusion_join(ft_fusion *f, int32_t block, int32_t at)
{
    const ft_node *n = &f->g->nodes[at];
    if (goes_on(n)) {
        ft_node more = naming(n);
        ft__fusion_emit_wide(f, &more, n->in, n->in_count, n->out, 1);
        return;
    }
    make_room(f, block, at);
    const ft_tensor *t = &f->g->tensors[n->out[0]];
    const double count = parts(&f->g->blocks[block], f->g->nodes, at), all = ft__tensor_bytes(t);
    const int32_t before = to_the_next(f, block, at, -1), behind = to_the_next(f, block, at, 1);
    const double apart = count + (before < FAR ? before : behind);
    const double together = 1 + floor(FAR / apart), kernels = fmax(1, round((count - 1) / together));
    ft_node copy = ft__fusion_node(FT_DO_CAT, n->phase, n->at, t->dtype, ft__tensor_numel(t) / kernels,
                                   all * (1 + 1 / together) / kernels, 2);
    copy.count = (float)kernels;
    copy.at = ft__fusion_site(f, "fused_cat");
    if (!copy.at) {
        f->failed = true;
        return;
    }
    copy.name = copy.at->name;
    ft__fusion_emit_wide(f, &copy, n->in, n->in_count, n->out, 1);
}
