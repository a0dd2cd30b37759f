/* fusion_joined.c: concatenations of many tensors.
 *
 * Up to eight Inductor computes inside of whoever reads them (torch/_inductor/lowering.py, cat:
 * MAX_COMPLEX_POINTWISE_CAT); more are a buffer, into which every part is copied (ir.py, ConcatKernel). Copies of one
 * part into several buffers are one kernel where these stand near each other in the order of the schedule
 * (scheduler.py, are_long_distant_nodes: up to 64 nodes). DenseNet's layers join what all layers before them made: a
 * layer has a node for each part and six more (the buffer, two norms, two convolutions, a filter that is turned). What
 * its block was given comes out of a generated kernel, which writes it into all of the buffers at once, so that from
 * there on all of them are held. */
#include <math.h>

#include "graph/fusion.h"

enum { FAR = 64, OTHERS = 6 };

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
    const ft_node *nodes = f->g->nodes;
    const ft_ref first = f->root[nodes[at].in[0]];
    for (int32_t i = b->first; i < at; i++)
        if (!goes_on(&nodes[i]) && ft__fusion_joins_many(f, block, i) && f->root[nodes[i].in[0]] == first) return;
    for (int32_t i = at; i < b->first + b->count; i++) {
        if (goes_on(&nodes[i]) || !ft__fusion_joins_many(f, block, i) || f->root[nodes[i].in[0]] != first) continue;
        ft_node room = naming(&nodes[at]);
        room.out[room.out_count++] = nodes[i].out[0];
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
    const double together = 1 + floor(FAR / (count + OTHERS)), kernels = fmax(1, round((count - 1) / together));
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
