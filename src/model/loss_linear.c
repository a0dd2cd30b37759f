/* loss_linear.c: head and loss in chunks of rows, gradients and all, before anything goes back.
 *
 * Liger's fused linear cross-entropy (liger_kernel/ops/fused_linear_cross_entropy.py): a chunk's logits are made by a
 * product, one kernel reads them twice and writes their gradient over them, and two more products take that to the
 * stream and add it up in the head's gradient (addmm into a matrix that is zeroed first). What is left for the backward
 * pass is to scale both by the gradient that comes in, unless that is one: Trainer divides a sum by the number of
 * tokens (transformers/model/loss_utils.py), so that it is not. The host waits twice, for how many tokens count
 * (`.item()`) and for whether there is anything to scale (`torch.equal`). Logits that are scaled or capped are so
 * inside the kernel.
 *
 * A finished graph has PyTorch's way: head, log-softmax, likelihood, and all of it back. Its nodes stay with the
 * kernels that run, a chunk at a time. The head's gradients stand where they did, at the start of the backward pass,
 * which is when what forward passes leave and they are there together; their time is the forward pass'. */
#include <math.h>

#include "graph/emit.h"
#include "graph/pointwise.h"
#include "model/workload.h"

typedef struct chunks {
    ft_graph *g;
    int32_t block, head; /* the forward block, and its product */
    int64_t rows, cols, chunk;
    double times;
} chunks;

/* Liger: as many as the vocabulary is wider than the hidden size, rounded so that a chunk's rows are a power of two.
 * Unsloth: one, or four, eight, twelve, so that the logits of each are `gib` in fp32 at most. */
static int64_t chunk_rows(int64_t rows, int64_t vocab, int64_t hidden, double gib)
{
    if (gib > 0) {
        double of_all = (double)rows * (double)vocab * 4 / (gib * 1073741824);
        return of_all <= 1 ? rows : (int64_t)ceil((double)rows / (4 * ceil(of_all / 4)));
    }
    int64_t count = (vocab + hidden - 1) / hidden, least = (rows + count - 1) / count, chunk = 1;
    while (chunk < least) chunk *= 2;
    return chunk < rows ? chunk : rows;
}

void ft__part_product(ft_node *n, int64_t rows, int64_t piece)
{
    int64_t *side[] = {&n->op.u.gemm.m, &n->op.u.gemm.k, &n->op.u.gemm.n};
    for (size_t i = 0; i < sizeof side / sizeof *side; i++) {
        if (*side[i] != rows) continue;
        *side[i] = piece;
        n->count *= (float)ceil((double)rows / (double)piece);
        return;
    }
}

static bool is_head(const ft_node *n)
{
    return ft__node_site(n) == FT_SITE_LM_HEAD && n->verb == FT_DO_LINEAR && n->op.kind == FT_OP_GEMM;
}

static bool find(chunks *c, double gib)
{
    for (c->block = 0; c->block < c->g->block_count; c->block++) {
        const ft_block *b = &c->g->blocks[c->block];
        if (b->phase != FT_FORWARD || b->repeat != 1) continue;
        for (c->head = b->first; c->head < b->first + b->count; c->head++) {
            const ft_node *n = &c->g->nodes[c->head];
            if (!is_head(n)) continue;
            const ft_tensor *logits = &c->g->tensors[n->out[0]];
            c->rows = logits->rows;
            c->cols = logits->cols;
            c->chunk = chunk_rows(c->rows, c->cols, c->g->tensors[n->in[0]].cols, gib);
            c->times = ceil((double)c->rows / (double)c->chunk);
            return true;
        }
    }
    return false;
}

static ft_op nothing(const ft_node *n) { return ft__bytes_kernel(n->op.name, n->op.dtype, 0, 0); }

/* What stands between the head and the loss, and the loss: one kernel for both ways, where log-softmax stood. */
static void join(const chunks *c, ft_node *n)
{
    const ft_site site = ft__node_site(n);
    const bool between = site == FT_SITE_LM_HEAD_SOFTCAP || (site == FT_SITE_LM_HEAD_SCALE && n->out_count > 0 &&
                                                             c->g->tensors[n->out[0]].cols == c->cols);
    if (site != FT_SITE_LOSS && !between) return;
    if (!ft__is_log_softmax(n) || n->op.pass != FT_PASS_FWD) {
        n->op = nothing(n);
        n->inside = true;
        return;
    }
    const ft_dtype format = c->g->tensors[n->in[0]].dtype;
    n->op = ft__row_kernel("log_softmax", FT_PASS_BWD, c->chunk, c->cols, format); /* the same passes over memory */
    n->count *= (float)c->times;
}

/* Both gradients, scaled in place by what comes in. */
static int scaled(const chunks *c, const ft_node *back, ft_node *out)
{
    const ft_tensor *t = &c->g->tensors[back->out[0]];
    *out = ft__node_of(FT_DO_POINTWISE, FT_AT(LOSS));
    out->op = ft__pointwise_kernel(c->g, "mulu", back->out, 1, t);
    out->phase = FT_BACKWARD;
    ft__node_in(out, back->out[0]);
    return 1;
}

static bool going_back(const chunks *c)
{
    ft_graph *g = c->g;
    int32_t block = 0;
    while (block < g->block_count && g->blocks[block].mirror != c->block) block++;
    if (block == g->block_count) return true;
    ft_node more[3];
    int32_t last = -1;
    int count = 0;
    for (int32_t i = g->blocks[block].first; i < g->blocks[block].first + g->blocks[block].count; i++) {
        ft_node *n = &g->nodes[i];
        if (!is_head(n)) {
            join(c, n);
            continue;
        }
        const bool of_weights = n->op.u.gemm.k == c->rows;
        ft__part_product(n, c->rows, c->chunk);
        if (of_weights) n->manner |= FT_MANNER_ADDS;
        n->phase = FT_FORWARD;
        if (count < 2) count += scaled(c, n, &more[count]);
        last = i;
    }
    if (last < 0) return true;
    for (int i = count; i > 0; i--) more[i] = more[i - 1];
    more[0] = ft__node_of(FT_DO_SYNC, FT_AT(LOSS));
    more[0].synced = true;
    more[0].phase = FT_BACKWARD;
    return ft__graph_insert(g, block, last + 1, more, count + 1);
}

bool ft__loss_in_chunks(ft_graph *g, double gib)
{
    chunks c = {.g = g};
    if (!find(&c, gib)) return true;
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].rows == c.rows && g->tensors[i].cols == c.cols && g->tensors[i].role == FT_ACTIVATION)
            g->tensors[i].rows = c.chunk;
    bool plain = false; /* a compiler's kernels have no parts that could be told apart */
    const ft_block *b = &g->blocks[c.block];
    for (int32_t i = b->first; i < b->first + b->count; i++) plain |= ft__is_log_softmax(&g->nodes[i]);
    if (!plain) return true;
    for (int32_t i = b->first; i < b->first + b->count; i++) join(&c, &g->nodes[i]);
    ft__part_product(&g->nodes[c.head], c.rows, c.chunk);
    ft_node waits = ft__node_of(FT_DO_SYNC, FT_AT(LOSS));
    waits.synced = true;
    return going_back(&c) && ft__graph_insert(g, c.block, c.head, &waits, 1);
}
