/* loss_chunked.c: head and loss of so many rows at a time, and every piece once more going back.
 *
 * TRL's loss since June 2026 (trainer/sft_trainer.py, _chunked_cross_entropy_loss), under torch.utils.checkpoint. A
 * piece widens the head to fp32 (`w.float()`), autocast lowers that copy again for the product, log_softmax raises the
 * logits, and beside the likelihood it takes the largest logit and the entropy. So there are logits of one piece alone,
 * beside both copies of the head, which are made for every piece, and once more in the backward pass; a head that is
 * trained has its gradient widened, lowered and added up as often. A head in fp32 is wide already: autocast keeps its
 * lowered copy going forward, and makes it again for every piece going back. */
#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "graph/pointwise.h"
#include "model/workload.h"

enum { MOST_AGAIN = 24 };

typedef struct pieces {
    ft_graph *g;
    int32_t block, head; /* the forward block, and its product */
    ft_ref weight;
    int64_t rows, piece;
    float count;
    double numel, vocab; /* of the head's weight, and of a row of logits */
    ft_dtype narrow;
    bool wide; /* the head is fp32, and what its product reads is autocast's copy */
} pieces;

static ft_node kernel(const pieces *p, ft_site site, ft_op op)
{
    ft_node n = ft__node_of(op.kind == FT_OP_ROW ? FT_DO_ROW : FT_DO_POINTWISE,
                            site == FT_SITE_LOSS ? FT_AT(LOSS) : FT_AT(LM_HEAD));
    n.op = op;
    n.count = p->count;
    return n;
}

static ft_op pointwise(const char *name, ft_dtype dtype, int inputs, double numel, double bytes)
{
    ft_op op = {.kind = FT_OP_ELEMENTWISE, .name = name, .dtype = dtype, .kv_dtype = dtype};
    op.u.elementwise.numel = (int64_t)numel;
    op.u.elementwise.inputs = inputs;
    op.u.elementwise.bytes = numel * bytes;
    return op;
}

static ft_ref copy_of_head(const pieces *p, ft_dtype dtype, int32_t block)
{
    ft_tensor t = p->g->tensors[p->weight];
    t.dtype = dtype;
    t.element_bytes = ft_dtype_bytes(dtype);
    t.role = FT_ACTIVATION;
    t.trained = false;
    t.storage = FT_NONE;
    t.block = block;
    t.copies = 1;
    t.name = "";
    return ft__graph_tensor(p->g, &t);
}

/* A copy of the head in fp32, and a copy of that in the format of products: nodes, how many, and their results. */
static int widen_and_lower(const pieces *p, int32_t block, ft_node *out, ft_ref copies[2])
{
    int count = 0;
    copies[0] = FT_NONE;
    for (int i = p->wide; i < 2; i++, count++) {
        const ft_dtype to = i ? p->narrow : FT_FP32, from = i ? FT_FP32 : p->narrow;
        out[count] = kernel(p, FT_SITE_LM_HEAD, pointwise(ft__cast_name(to), from, 1, p->numel, 6));
        copies[i] = copy_of_head(p, to, block);
        if (copies[i] == FT_NONE) return 0;
        ft__node_in(&out[count], i ? copies[0] : p->weight);
        out[count].out[0] = copies[i];
        out[count].out_count = 1;
    }
    return count;
}

/* Both are there until the product is done: the expression holds the wide one. */
static void reads(ft_node *n, const ft_ref copies[2])
{
    for (int i = 0; i < 2 && n->in_count < FT_NODE_INPUTS; i++) ft__node_in(n, copies[i]);
}

/* How many tokens were right, and how sure the model was. */
static int figures(const pieces *p, ft_node *out)
{
    const int64_t vocab = (int64_t)p->vocab;
    const double numel = (double)p->piece * p->vocab;
    out[0] = kernel(p, FT_SITE_LOSS, ft__row_kernel("argmax", FT_PASS_FWD, p->piece, vocab, p->narrow));
    out[1] = kernel(p, FT_SITE_LOSS, pointwise("exp", FT_FP32, 1, numel, 8));
    out[2] = kernel(p, FT_SITE_LOSS, pointwise("mul", FT_FP32, 2, numel, 12));
    out[3] = kernel(p, FT_SITE_LOSS, ft__row_kernel("sum_rows", FT_PASS_FWD, p->piece, vocab, FT_FP32));
    return 4;
}

static bool find(pieces *p)
{
    ft_graph *g = p->g;
    for (p->block = 0; p->block < g->block_count; p->block++) {
        const ft_block *b = &g->blocks[p->block];
        if (b->phase != FT_FORWARD || b->repeat != 1) continue;
        for (p->head = b->first; p->head < b->first + b->count; p->head++) {
            const ft_node *n = &g->nodes[p->head];
            if (ft__node_site(n) != FT_SITE_LM_HEAD || n->op.kind != FT_OP_GEMM || n->in_count < 2) continue;
            const ft_tensor *logits = &g->tensors[n->out[0]], *weight = &g->tensors[n->in[1]];
            p->rows = logits->rows;
            p->vocab = (double)logits->cols;
            p->weight = n->in[1];
            p->numel = ft__tensor_numel(weight);
            p->narrow = n->op.dtype;
            p->wide = weight->role != FT_PARAMETER;
            p->count = (float)ceil((double)p->rows / (double)p->piece);
            return ft_dtype_bytes(p->narrow) == 2;
        }
    }
    return false;
}

/* What of the forward pass runs again: the results are the pieces that stand for all of them already. How many. */
static int again(const pieces *p, int32_t block, ft_node *out, ft_ref copies[2])
{
    const ft_block *b = &p->g->blocks[p->block];
    int count = widen_and_lower(p, block, out, copies);
    if (!count) return 0;
    for (int32_t i = p->head; i < b->first + b->count && count < MOST_AGAIN - 4; i++) {
        ft_node n = p->g->nodes[i];
        n.in_count = n.out_count = 0;
        if (i == p->head) reads(&n, copies);
        if (ft__node_runs(&n)) out[count++] = n;
    }
    count += figures(p, out + count);
    for (int i = 0; i < count; i++) out[i].phase = FT_RECOMPUTE;
    return count;
}

/* The gradient of a head that is trained: what a piece gives is widened, and lowered again where the head is
 * narrow, and added to the others'. How many nodes. */
static int summed(const pieces *p, ft_node *out)
{
    int count = 0;
    const ft_dtype kept = p->wide ? FT_FP32 : p->narrow;
    out[count++] = kernel(p, FT_SITE_LM_HEAD, pointwise(ft__cast_name(FT_FP32), p->narrow, 1, p->numel, 6));
    if (!p->wide)
        out[count++] = kernel(p, FT_SITE_LM_HEAD, pointwise(ft__cast_name(p->narrow), FT_FP32, 1, p->numel, 6));
    for (int i = 0; i < count; i++) out[i].workspace = (float)(p->numel * 6);
    out[count++] = kernel(p, FT_SITE_LM_HEAD, pointwise("add", kept, 2, p->numel, 3 * ft_dtype_bytes(kept)));
    for (int i = 0; i < count; i++) out[i].phase = FT_BACKWARD;
    if (p->wide) out[0].count = out[1].count = p->count - 1; /* the last piece's are in the graph */
    return count;
}

static bool going_back(const pieces *p)
{
    ft_graph *g = p->g;
    int32_t block = 0;
    while (block < g->block_count && g->blocks[block].mirror != p->block) block++;
    if (block == g->block_count) return true;
    ft_node first[MOST_AGAIN], more[3];
    ft_ref copies[2];
    const int count = again(p, block, first, copies);
    if (!count) return false;
    for (int32_t i = g->blocks[block].first; i < g->blocks[block].first + g->blocks[block].count; i++) {
        ft_node *n = &g->nodes[i];
        if (ft__node_site(n) != FT_SITE_LM_HEAD || n->op.kind != FT_OP_GEMM) continue;
        const bool weights = n->op.u.gemm.k == p->rows;
        ft__part_product(n, p->rows, p->piece);
        if (n->in_count < FT_NODE_INPUTS) ft__node_in(n, copies[1]);
        if (!weights) continue;
        const int sums = summed(p, more);
        if (!ft__graph_insert(g, block, i + 1, more, sums)) return false;
        i += sums;
    }
    return ft__graph_insert(g, block, g->blocks[block].first, first, count);
}

bool ft__loss_chunked(ft_graph *g, int64_t piece)
{
    pieces p = {.g = g, .piece = piece};
    if (!find(&p) || piece >= p.rows) return true;
    for (int32_t i = 0; i < g->tensor_count; i++) {
        ft_tensor *t = &g->tensors[i];
        if (t->rows == p.rows && t->cols == (int64_t)p.vocab && t->role == FT_ACTIVATION) t->rows = piece;
    }
    ft__part_product(&g->nodes[p.head], p.rows, p.piece);
    ft_node more[4];
    ft_ref copies[2];
    const int32_t end = g->blocks[p.block].first + g->blocks[p.block].count;
    if (!going_back(&p) || !ft__graph_insert(g, p.block, end, more, figures(&p, more))) return false;
    if (p.wide) return true;
    const int made = widen_and_lower(&p, p.block, more, copies);
    reads(&g->nodes[p.head], copies);
    return made && ft__graph_insert(g, p.block, p.head, more, made);
}
