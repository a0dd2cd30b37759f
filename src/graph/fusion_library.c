/* fusion_library.c: what a compiler does around library calls.
 *
 * Products whose operands are not aligned to 16 bytes run on a slow path; Inductor pads them when they are bound by
 * arithmetic (torch/_inductor/fx_passes/pad_mm.py): operands with an odd edge are copied into larger ones, the result
 * is a view of a larger one. GPT-2's 50257 words become 50264 in each of the head's three products.
 *
 * The gradient of a lookup becomes a zeroed table in fp32 into which rows are added atomically, and a cast. */
#include <string.h>

#include "graph/fusion.h"
#include "graph/fusion_constants.h"

enum { ALIGN = 8 }; /* elements of 2 bytes */

static int64_t padded(int64_t x) { return (x + ALIGN - 1) / ALIGN * ALIGN; }

/* An aligned copy of x, made once per block. */
static ft_ref aligned_copy(ft_fusion *f, int32_t block, const ft_node *n, ft_ref x)
{
    ft_ref r = f->root[x];
    if (f->written_in[r] == block && f->padded[r] != FT_NONE) return f->padded[r];
    ft_tensor t = f->g->tensors[x];
    double before = ft__tensor_bytes(&t);
    t.cols = padded(t.cols);
    t.storage = FT_NONE;
    t.role = FT_ACTIVATION;
    t.trained = false;
    t.block = block;
    t.copies = 1;
    t.name = "";
    t.expert = FT_NO_EXPERT;
    ft_ref at = ft__graph_tensor(f->g, &t);
    if (at == FT_NONE) {
        f->failed = true;
        return x;
    }
    /* Odd rows are read an element at a time. */
    ft_node copy = ft__fusion_node(FT_DO_COPY, n->phase, FT_AT(PAD), t.dtype, ft__tensor_numel(&t),
                                   before + ft__tensor_bytes(&t), 45);
    ft__fusion_emit_wide(f, &copy, &x, 1, &at, 1);
    if (f->written_in[r] == block) f->padded[r] = at;
    return at;
}

static bool pays(const ft_op *op)
{
    if (op->kind != FT_OP_GEMM || op->u.gemm.b != 1 || ft_dtype_bytes(op->dtype) != 2) return false;
    int64_t edge = op->u.gemm.n % ALIGN + op->u.gemm.k % ALIGN;
    if (op->u.gemm.layout[0] == 't') edge += op->u.gemm.m % ALIGN;
    if (!edge) return false;
    double m = (double)op->u.gemm.m, n = (double)op->u.gemm.n, k = (double)op->u.gemm.k;
    return m * n * k / (m * k + k * n + m * n) > 200; /* the balance of a recent GPU: bound by arithmetic */
}

static void pad(ft_fusion *f, int32_t block, ft_node *n)
{
    int64_t m = n->op.u.gemm.m, k = n->op.u.gemm.k, cols = n->op.u.gemm.n;
    if (n->in_count > 0 && (m % ALIGN || k % ALIGN)) n->in[0] = aligned_copy(f, block, n, n->in[0]);
    if (n->in_count > 1 && (k % ALIGN || cols % ALIGN)) n->in[1] = aligned_copy(f, block, n, n->in[1]);
    n->op.u.gemm.m = padded(m);
    n->op.u.gemm.k = padded(k);
    n->op.u.gemm.n = padded(cols);
}

/* How many gradients a compiler adds up atomically for each that eager autograd looks up: those of a batch, whose sum
 * it does not make first. */
static double added_up(const ft_fusion *f, ft_ref gradient)
{
    enum { FAR = 8 }; /* views and sums of layers between */
    for (int i = 0; i < FAR && gradient >= 0; i++) {
        const int32_t maker = f->maker[f->root[gradient]];
        if (maker < 0) break;
        const ft_node *n = &f->g->nodes[maker];
        if (n->op.kind == FT_OP_ROW && !strcmp(n->op.name, "sum_cols")) return (double)n->op.u.row.rows;
        gradient = n->in_count ? n->in[0] : FT_NONE;
    }
    return 1;
}

/* Rows of a small table that many indices name: their additions wait for each other, one address at a time. */
static double crowded(const ft_fusion *f, const ft_node *n)
{
    const double vocab = n->op.u.row.vocab > 0 ? (double)n->op.u.row.vocab : (double)n->op.u.row.rows;
    const double rows = (double)n->op.u.row.rows * (n->in_count ? added_up(f, n->in[0]) : 1);
    if (rows < FT_K_FUSION_CROWD * vocab) return 0;
    return FT_K_FUSION_CROWD_WORK * rows / ((double)n->op.u.row.rows * (double)n->op.u.row.cols);
}

static void scatter(ft_fusion *f, const ft_node *n)
{
    const ft_tensor *table = &f->g->tensors[n->out[0]];
    double rows = (double)n->op.u.row.rows * (double)n->op.u.row.cols, numel = ft__tensor_numel(table);
    bool low = table->element_bytes < 4;
    ft_node fill = ft__fusion_node(FT_DO_FILL, n->phase, n->at, FT_FP32, numel, numel * 4, 0);
    if (low) fill.workspace = (float)(numel * 4);
    fill.out[fill.out_count++] = n->out[0];
    ft__fusion_emit(f, &fill);
    double gradient = n->in_count ? ft__tensor_bytes(&f->g->tensors[n->in[0]]) : rows * 2;
    ft_node add = ft__fusion_node(FT_DO_EMBEDDING, n->phase, n->at, FT_FP32, rows, gradient + 8 * rows,
                                  4 + crowded(f, n));
    if (low) add.workspace = (float)(numel * 4);
    ft__fusion_emit_wide(f, &add, n->in, n->in_count, n->out, 1);
    if (!low) return;
    ft_node cast = ft__fusion_node(FT_DO_POINTWISE, n->phase, n->at, FT_FP32, numel, numel * (4 + table->element_bytes),
                                   2);
    cast.workspace = (float)(numel * 4);
    cast.in[cast.in_count++] = n->out[0];
    ft__fusion_emit(f, &cast);
}

/* Each lane has its own row of the table, as DeBERTa's positions have. */
static void put_back(ft_fusion *f, const ft_node *n)
{
    const ft_tensor *table = &f->g->tensors[n->out[0]], *picked = &f->g->tensors[n->in[1]];
    const double sums = ft__tensor_numel(table), elements = ft__tensor_numel(picked);
    ft_node add = ft__fusion_node(FT_DO_POINTWISE, n->phase, n->at, FT_FP32, elements,
                                  ft__tensor_bytes(picked) + 8 * sums, FT_K_FUSION_ADDS_APART);
    add.workspace = (float)(4 * sums);
    ft__fusion_emit_wide(f, &add, n->in, n->in_count, n->out, 1);
    ft_node cast = ft__fusion_node(FT_DO_POINTWISE, n->phase, n->at, FT_FP32, sums, sums * (4 + table->element_bytes),
                                   2);
    cast.workspace = (float)(4 * sums);
    cast.in[cast.in_count++] = n->out[0];
    ft__fusion_emit(f, &cast);
}

/* Of what a checkpoint would run again a compiler runs only what somebody reads: not the product whose sum over ranks
 * was saved. */
static bool idle(const ft_fusion *f, const ft_node *n)
{
    if (n->phase != FT_RECOMPUTE || n->synced || !n->out_count) return false;
    for (int k = 0; k < n->out_count; k++)
        if (f->uses[f->root[n->out[k]]] > 0) return false;
    return true;
}

void ft__fusion_library(ft_fusion *f, int32_t block, const ft_node *node)
{
    if (idle(f, node)) return;
    if (node->verb == FT_DO_EMBEDDING && node->op.kind == FT_OP_ROW && node->op.pass == FT_PASS_BWD &&
        node->out_count) {
        scatter(f, node);
        return;
    }
    if (ft__fusion_puts_back(node) && !(f->how & ~(unsigned)FT_FUSE_LOSS_ALONE)) {
        put_back(f, node);
        return;
    }
    if (ft__fusion_picture(f, node)) return;
    ft_node n = *node;
    if (pays(&n.op)) pad(f, block, &n);
    ft__fusion_emit(f, &n);
}
