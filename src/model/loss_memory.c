/* loss_memory.c: what the loss holds beside the logits, by who computes it.
 *
 * A finished graph has PyTorch's cross_entropy: the logits in fp32, their log-softmax, which is saved, and going back
 * the gradient of the likelihood and that of the logits, each a tensor of its own. The others are told from it here.
 *
 *   Megatron (core/tensor_parallel/cross_entropy.py) subtracts, exponentiates and divides in the one fp32 copy of the
 *   logits (`-=`, `out=`, `div_`), saves it as the softmax, and going back turns that into the gradient (`grad_input =
 *   softmax`, `mul_`).
 *
 *   FlashAttention's (flash_attn/losses/cross_entropy.py) saves the logits as they are and their rows' sums, and makes
 *   one gradient unless it is told to write that over the logits (`inplace_backward`).
 *
 *   Frameworks whose loss is written after it shift into a new tensor, and do the rest in place: nanotron's
 *   _ShardedCrossEntropy (parallel/tensor_parallel/functional.py), Colossal-AI's DistCrossEntropy
 *   (shardformer/layer/loss.py).
 *
 *   PyTorch's loss_parallel (torch/distributed/tensor/parallel/loss.py): _log_softmax holds the shifted logits beside
 *   the logits while it exponentiates them and while it writes its result; _nll_loss_and_log_softmax_backward has
 *   `grad_input`, `exp(x)` and their sum beside the saved x, then that sum and its product: one more part of the logits
 *   both ways. */
#include <string.h>

#include "graph/emit.h"
#include "model/workload.h"

bool ft__is_log_softmax(const ft_node *n)
{
    return ft__node_site(n) == FT_SITE_LOSS && n->op.kind == FT_OP_ROW && n->op.name &&
           !strcmp(n->op.name, "log_softmax") && n->in_count > 0 && n->out_count > 0;
}

/* torchtune's CEWithChunkedOutputLoss (modules/loss/ce_chunked_output_loss.py), which Axolotl has too
 * (monkeypatch/loss/chunked.py): the head's results are cut into eight along the sequence, and every part is copied to
 * fp32 by itself. In eager mode PyTorch's cross_entropy saves each part's log-softmax; compiled, as torchtune's recipes
 * compile it, it is made again of the logits, which are there anyway. A part's gradients pass through the head before
 * the next one's are made. */
void ft__loss_in_parts(ft_graph *g, bool saves)
{
    enum { PARTS = 8 };
    ft_ref logits = FT_NONE, kept = FT_NONE;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->phase != FT_FORWARD) continue;
        if (logits == FT_NONE && ft__node_site(n) == FT_SITE_LM_HEAD && n->verb == FT_DO_LINEAR) logits = n->out[0];
        if (saves && kept == FT_NONE && ft__is_log_softmax(n)) kept = n->out[0];
    }
    if (logits == FT_NONE) return;
    const int64_t rows = g->tensors[logits].rows, cols = g->tensors[logits].cols, part = (rows + PARTS - 1) / PARTS;
    const ft_ref whole = g->tensors[logits].storage, saved = kept == FT_NONE ? FT_NONE : g->tensors[kept].storage;
    for (ft_ref i = 0; i < g->tensor_count; i++) { /* times are the nodes', which stay whole */
        ft_tensor *t = &g->tensors[i];
        if (t->rows != rows || t->cols != cols || t->role != FT_ACTIVATION) continue;
        if (t->storage != whole && t->storage != saved) t->rows = part;
    }
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_node *n = &g->nodes[i];
        if (n->phase != FT_BACKWARD || ft__node_site(n) != FT_SITE_LM_HEAD || n->in_count + 2 > FT_NODE_INPUTS)
            continue;
        ft__node_in(n, logits);
        if (kept != FT_NONE) ft__node_in(n, kept);
    }
}

/* Adapters of litgpt: head and loss of so many rows at a time. What goes forward is kept of all pieces, the logits by
 * the list that the model returns; a piece's gradients pass through the head before the next one's are made, while the
 * rest of what was kept waits. */
void ft__loss_in_pieces(ft_graph *g, int64_t piece)
{
    ft_ref logits = FT_NONE, kept = FT_NONE;
    for (int32_t i = 0; i < g->node_count && kept == FT_NONE; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->phase != FT_FORWARD || !ft__is_log_softmax(n)) continue;
        logits = n->in[0];
        kept = n->out[0];
    }
    if (kept == FT_NONE || piece >= g->tensors[kept].rows) return;
    const int64_t rows = g->tensors[kept].rows, cols = g->tensors[kept].cols;
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_node *n = &g->nodes[i];
        if (n->phase != FT_BACKWARD) continue;
        for (int k = 0; k < n->out_count; k++) { /* times are the nodes', which stay whole */
            ft_tensor *t = n->out[k] < 0 ? NULL : &g->tensors[n->out[k]];
            if (t && t->rows == rows && t->cols == cols && t->role == FT_ACTIVATION) t->rows = piece;
        }
        if (ft__node_site(n) != FT_SITE_LM_HEAD || n->in_count + 2 > FT_NODE_INPUTS) continue;
        ft__node_in(n, logits);
        ft__node_in(n, kept);
    }
}

/* Whoever lived in `from` lives in `into` from now on. Owners stand before their views. */
static void share_memory(ft_graph *g, ft_ref from, ft_ref into)
{
    if (from >= 0) from = g->tensors[from].storage;
    if (into >= 0) into = g->tensors[into].storage;
    if (from < 0 || into < 0 || from <= into) return;
    const ft_tensor *a = &g->tensors[from], *b = &g->tensors[into];
    if (a->role != FT_ACTIVATION || b->role != FT_ACTIVATION || ft__tensor_bytes(a) != ft__tensor_bytes(b)) return;
    for (ft_ref t = from; t < g->tensor_count; t++)
        if (g->tensors[t].storage == from) g->tensors[t].storage = into;
}

void ft__loss_memory(ft_graph *g, ft_loss_by by)
{
    for (int32_t i = 0; i < g->node_count && by != FT_LOSS_PLAIN; i++) {
        ft_node *n = &g->nodes[i];
        if (!ft__is_log_softmax(n)) continue;
        if (by == FT_LOSS_PARALLEL) {
            n->workspace += (float)ft__tensor_bytes(&g->tensors[n->out[0]]);
        } else if (n->op.pass == FT_PASS_FWD) {
            if (by == FT_LOSS_MEGATRON || by == FT_LOSS_KEPT) share_memory(g, n->out[0], n->in[0]);
        } else if (by == FT_LOSS_KEPT) {
            share_memory(g, n->out[0], n->in[0]);
        } else if (n->in_count > 1) { /* the gradient that comes in, and the one that goes out, over what was saved */
            share_memory(g, n->in[0], n->in[1]);
            share_memory(g, n->out[0], n->in[1]);
        }
    }
}
