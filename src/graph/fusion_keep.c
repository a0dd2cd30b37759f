/* fusion_keep.c: what other blocks read as it stands, and what they compute again.
 *
 * A compiler that sees forward and backward pass together saves what is dear to compute and computes the rest again
 * where it is read: AOTAutograd takes the minimum cut between what the forward pass has and what the backward pass
 * needs, weighted by bytes (torch/_functorch/partitioners.py). Its rules as far as they show: products, attention and
 * reductions are never run twice; what a library call of the backward pass reads must exist as a whole there and is
 * saved (the input of every linear layer); random masks are saved; any other pointwise result is computed again when
 * its inputs, as far as nobody saves them anyway, are no larger than itself. A greedy walk backwards finds that cut
 * for the chains that models have: each step replaces a saved tensor by its inputs only when that costs nothing.
 *
 * Between forward blocks the same holds without saving: a table of cosines is computed again by every kernel that reads
 * it, since Inductor writes pointwise results with few inputs to memory only when a library call wants them. */
#include <string.h>

#include "graph/fusion.h"

static bool is_row(const ft_node *n, const char *name) { return n->op.kind == FT_OP_ROW && !strcmp(n->op.name, name); }

/* The first result of such a node follows, element by element, from its operands. Concatenations are not among what the
 * partitioner runs again (default_recomputable_ops). */
static bool repeatable(const ft_node *n)
{
    if (n->in_place || n->count != 1 || n->out_count < 1) return false;
    switch (n->verb) {
    case FT_DO_POINTWISE:
    case FT_DO_COPY:
    case FT_DO_FILL: return true;
    case FT_DO_BATCHNORM: return n->phase == FT_FORWARD; /* given its moments, which are small, and saved */
    case FT_DO_ROW: /* given the row's maximum and sum, or its moments: small, and saved */
        return n->op.pass == FT_PASS_FWD &&
               (is_row(n, "layernorm") || is_row(n, "rmsnorm") || is_row(n, "softmax") || is_row(n, "log_softmax"));
    default: return false;
    }
}

/* What the first result is computed from: inputs and the node's further results (moments, a dropout's mask). */
int ft__fusion_operands(const ft_node *n, ft_ref out[FT_FUSION_OPERANDS])
{
    int count = 0;
    for (int i = 0; i < n->in_count; i++) out[count++] = n->in[i];
    for (int i = 1; i < n->out_count; i++) out[count++] = n->out[i];
    return count;
}

/* What nodes read that another block made. */
static void each_far_read(ft_fusion *f, void (*visit)(ft_fusion *f, ft_ref r, int32_t reader))
{
    const ft_graph *g = f->g;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_node *n = &g->nodes[i];
            if (f->part[i] == FT_GLUE) continue;
            for (int k = 0; k < n->in_count; k++) {
                ft_ref r = f->root[n->in[k]];
                if (f->home[r] != b) visit(f, r, i);
            }
        }
    }
}

static void mark_asked(ft_fusion *f, ft_ref r, int32_t reader)
{
    f->flags[r] |= FT_ASKED;
    if (f->part[reader] == FT_LIBRARY) f->flags[r] |= FT_WHOLE_COPY;
}

/* What a maximum's windows read is written for them, which the partitioner can fuse with nothing; there as it is, it is
 * saved: ResNet's first ReLU, not its norm's operand alone. */
static void keep_windows(ft_fusion *f)
{
    const ft_graph *g = f->g;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->verb == FT_DO_POOL && n->phase == FT_FORWARD && n->out_count > 1)
            f->flags[f->root[n->in[0]]] |= FT_WHOLE_COPY;
    }
}

static void ask(ft_fusion *f)
{
    const ft_graph *g = f->g;
    each_far_read(f, mark_asked);
    if (!f->inference && !(f->how & FT_FUSE_REDUCTIONS_END)) keep_windows(f);
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->carry_out != FT_NONE) f->flags[f->root[block->carry_out]] |= FT_FAR | FT_WHOLE_COPY;
        if (block->fed_by != FT_NONE) f->flags[f->root[block->fed_by]] |= FT_FAR | FT_WHOLE_COPY;
    }
}

/* Bytes that have to be kept beyond what others ask for if a storage is to be there later: its own, or those of what it
 * can be computed from. Makers stand before readers, so that one walk prices all. */
static double price(const ft_fusion *f, ft_ref x)
{
    ft_ref r = f->root[x];
    return f->g->tensors[r].role != FT_ACTIVATION || (f->flags[r] & (FT_ASKED | FT_FAR)) ? 0 : (double)f->cost[r];
}

static double inputs_price(const ft_fusion *f, const ft_node *n)
{
    ft_ref from[FT_FUSION_OPERANDS];
    int count = ft__fusion_operands(n, from);
    double sum = 0;
    for (int k = 0; k < count; k++) sum += price(f, from[k]);
    return sum;
}

static void set_prices(ft_fusion *f)
{
    const ft_graph *g = f->g;
    for (ft_ref t = 0; t < f->tensors; t++) f->cost[t] = (float)ft__tensor_bytes(&g->tensors[t]);
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->phase != FT_FORWARD) continue;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_node *n = &g->nodes[i];
            if (f->part[i] == FT_GLUE || f->part[i] == FT_LIBRARY || !repeatable(n)) continue;
            ft_ref r = f->root[n->out[0]];
            if (r != n->out[0] || (f->flags[r] & FT_REWRITTEN)) continue;
            float again = (float)inputs_price(f, n);
            if (again < f->cost[r]) f->cost[r] = again;
        }
    }
}

static void cut(ft_fusion *f)
{
    const ft_graph *g = f->g;
    for (int32_t b = g->block_count - 1; b >= 0; b--) {
        const ft_block *block = &g->blocks[b];
        if (block->phase != FT_FORWARD) continue;
        for (int32_t i = block->first + block->count - 1; i >= block->first; i--) {
            const ft_node *n = &g->nodes[i];
            if (f->part[i] == FT_GLUE || f->part[i] == FT_LIBRARY || !repeatable(n)) continue;
            ft_ref r = f->root[n->out[0]];
            uint8_t flags = f->flags[r];
            if (r != n->out[0] || !(flags & FT_ASKED) || (flags & (FT_FAR | FT_WHOLE_COPY | FT_REWRITTEN))) continue;
            ft_ref from[FT_FUSION_OPERANDS];
            int count = ft__fusion_operands(n, from);
            double own = ft__tensor_bytes(&g->tensors[r]), kept = inputs_price(f, n), read = 0;
            for (int k = 0; k < count; k++) read += ft__tensor_bytes(&g->tensors[f->root[from[k]]]);
            if (kept > own || (kept > 0.99 * own && read > 1.05 * own)) continue; /* a draw must not cost traffic */
            f->flags[r] |= FT_RECOMPUTED_BY_READERS;
            for (int k = 0; k < count; k++) f->flags[f->root[from[k]]] |= FT_ASKED;
        }
    }
}

/* What is read when r is computed again has to stay. Every storage is looked at once. */
static void keep_leaves(ft_fusion *f, ft_ref r)
{
    if (f->stamp[r] == f->mark) return;
    f->stamp[r] = f->mark;
    if (!(f->flags[r] & FT_RECOMPUTED_BY_READERS)) {
        f->flags[r] |= FT_FAR;
        return;
    }
    ft_ref from[FT_FUSION_OPERANDS];
    int count = ft__fusion_operands(&f->g->nodes[f->maker[r]], from);
    for (int k = 0; k < count; k++) keep_leaves(f, f->root[from[k]]);
}

static void mark_far(ft_fusion *f, ft_ref r, int32_t reader)
{
    (void)reader;
    keep_leaves(f, r);
}

void ft__fusion_keep(ft_fusion *f)
{
    ask(f);
    if (!(f->how & FT_FUSE_LONE_AS_WRITTEN)) {
        set_prices(f);
        cut(f);
    }
    f->mark++;
    each_far_read(f, mark_far);
}
