/* loss_fused.c: a loss of one kernel each way, and figures that are taken of the logits once more.
 *
 * Apex' and FlashAttention's cross-entropy (flash_attn/losses/cross_entropy.py, csrc/xentropy) and Liger's read the
 * logits in their own format and write a number for every row; going back one kernel reads them again and writes their
 * gradient. A finished graph has PyTorch's instead: a log-softmax, the likelihood, a zeroed matrix with an element of
 * every row set, and log-softmax's gradient. Its nodes stay, two of them with the kernels that run.
 *
 * Composer (trainer/trainer.py, _eval_train_metrics) hands every micro-batch's logits to the model's metrics when it
 * went back. Each of llm-foundry's two is PyTorch's cross_entropy without a gradient (composer/metrics/nlp.py), under
 * autocast: log_softmax in the logits' format, whose result is raised to fp32 for the likelihood. What a forward pass
 * left is gone by then, so that they take time and no room beside the peak.
 *
 * accelerate hands fp32 to whoever calls a model under its autocast (utils/operations.py, convert_outputs_to_fp32): the
 * logits are copied once more when the loss is there, and what it saved too. */
#include "graph/emit.h"
#include "graph/pointwise.h"
#include "model/workload.h"

static bool of_loss(const ft_node *n) { return ft__node_site(n) == FT_SITE_LOSS && n->out_count > 0; }

static ft_op nothing(const ft_node *n) { return ft__bytes_kernel(n->op.name, n->op.dtype, 0, 0); }

void ft__loss_fused(ft_graph *g)
{
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_node *n = &g->nodes[i];
        if (!of_loss(n)) continue;
        if (!ft__is_log_softmax(n)) {
            if (n->verb == FT_DO_LOSS || n->verb == FT_DO_FILL) n->op = nothing(n);
        } else if (n->op.pass == FT_PASS_FWD) {
            const ft_tensor *logits = &g->tensors[n->in[0]];
            n->op = ft__row_kernel("sum_rows", FT_PASS_FWD, logits->rows, logits->cols, logits->dtype);
        } else {
            n->op = ft__pointwise_kernel(g, "exp", n->in, 1, &g->tensors[n->out[0]]);
            n->verb = FT_DO_POINTWISE;
        }
    }
}

/* The forward block that makes the loss, and its logits. */
static int32_t loss_block(const ft_graph *g, ft_tensor *logits)
{
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->phase != FT_FORWARD || block->repeat != 1) continue;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            if (!ft__is_log_softmax(&g->nodes[i])) continue;
            *logits = g->tensors[g->nodes[i].in[0]];
            return b;
        }
    }
    return -1;
}

/* To fp32. */
static ft_op cast_of(ft_dtype from, double numel, double bytes)
{
    ft_op op = {.kind = FT_OP_ELEMENTWISE, .name = ft__cast_name(FT_FP32), .dtype = from, .kv_dtype = from};
    op.u.elementwise.numel = (int64_t)numel;
    op.u.elementwise.inputs = 1;
    op.u.elementwise.bytes = numel * (bytes + ft_dtype_bytes(FT_FP32));
    return op;
}

bool ft__loss_figures(ft_graph *g, int figures)
{
    ft_tensor logits = {0};
    const int32_t forward = loss_block(g, &logits);
    int32_t back = 0;
    while (back < g->block_count && (forward < 0 || g->blocks[back].mirror != forward)) back++;
    if (back == g->block_count) return true;
    const double numel = ft__tensor_numel(&logits);
    ft_node made[3] = {ft__node_of(FT_DO_ROW, FT_AT(LOSS)), ft__node_of(FT_DO_POINTWISE, FT_AT(LOSS)),
                       ft__node_of(FT_DO_LOSS, FT_AT(LOSS))};
    made[0].op = ft__row_kernel("log_softmax", FT_PASS_FWD, logits.rows, logits.cols, logits.dtype);
    made[1].op = cast_of(logits.dtype, numel, logits.element_bytes);
    made[2].op = ft__bytes_kernel("nll_loss", FT_FP32, (double)logits.rows * 64, (double)logits.rows);
    const bool wide = ft_dtype_bytes(logits.dtype) >= ft_dtype_bytes(FT_FP32);
    const int count = wide ? 2 : 3;
    if (wide) made[1] = made[2];
    for (int i = 0; i < count; i++) {
        made[i].phase = FT_BACKWARD;
        made[i].count = (float)figures;
    }
    return ft__graph_insert(g, back, g->blocks[back].first + g->blocks[back].count, made, count);
}

bool ft__loss_returns_wide(ft_graph *g)
{
    ft_tensor made;
    const int32_t forward = loss_block(g, &made);
    ft_ref logits = FT_NONE;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        const bool head = n->phase == FT_FORWARD && n->verb == FT_DO_LINEAR && ft__node_site(n) == FT_SITE_LM_HEAD;
        if (head) logits = n->out[0];
    }
    if (forward < 0 || logits == FT_NONE) return true;
    const ft_tensor *t = &g->tensors[logits];
    if (ft_dtype_bytes(t->dtype) >= ft_dtype_bytes(FT_FP32)) return true;
    const double numel = ft__tensor_numel(t), wide = numel * ft_dtype_bytes(FT_FP32);
    ft_node copy = ft__node_of(FT_DO_COPY, FT_AT(LOSS));
    copy.op = cast_of(t->dtype, numel, t->element_bytes);
    copy.phase = FT_FORWARD;
    copy.workspace = (float)wide; /* gone before the backward pass begins */
    ft__node_in(&copy, logits);
    return ft__graph_insert(g, forward, g->blocks[forward].first + g->blocks[forward].count, &copy, 1);
}
