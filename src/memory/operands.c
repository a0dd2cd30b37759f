/* operands.c: what waits for the backward pass in eight bits or four.
 *
 * A product in a low format casts its operands; a library that keeps the cast copy for the weight's gradient, and not
 * what it was made of, halves what such a tensor holds (Transformer Engine: pytorch/module/linear.py and
 * layernorm_mlp.py save the quantised input). Whoever else reads the tensor going back, attention of its own result,
 * keeps it beside the copy. The wide tensor passes by: it is counted as the copy from the start. */
#include "memory/operands.h"

#include <string.h>

#include "model/stack.h"

enum { LOW = 1, OTHER = 2 };

/* The graph of the last micro-batch lives until its loss is assigned anew, and with it what its nodes hold by
 * themselves: inputs of 4-bit products, kept as attributes, are there twice. */
static bool kept_twice(const ft_graph *g, const ft_lifetimes *lives, const float **out)
{
    float *share = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *share);
    if (!share) return false;
    for (ft_ref t = 0; t < g->tensor_count; t++) share[t] = 1;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->phase != FT_BACKWARD || n->verb != FT_DO_OTHER || !n->keeps || n->in_count < 2 || n->in[1] < 0) continue;
        const ft_ref t = lives->root[n->in[1]];
        if (lives->birth[t] >= 0 && g->nodes[lives->birth[t]].phase == FT_FORWARD) share[t] = 2;
    }
    *out = share;
    return true;
}

bool ft__low_operands(const ft_graph *g, const ft_lifetimes *lives, const ft_workload *work, const float **out)
{
    *out = NULL;
    if (g->keeps_inputs && ft__stack(work)->packed_inputs > 1) return kept_twice(g, lives, out);
    const double wide = 2, low = work->dtype == FT_FP4 ? 0.5 + 1.0 / 16 : 1; /* four bits with a scale for sixteen */
    if (work->task != FT_TRAIN || (work->dtype != FT_FP8 && work->dtype != FT_FP4)) return true;
    if (!ft__stack(work)->keeps_low_operands) return true;
    uint8_t *read = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *read);
    float *share = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *share);
    if (!read || !share) return false;
    memset(read, 0, (size_t)g->tensor_count + 1);
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->phase != FT_BACKWARD || ft__makes_nothing(n)) continue;
        const bool product = n->op.kind == FT_OP_GEMM && n->op.dtype == work->dtype;
        for (int k = 0; k < n->in_count; k++)
            if (n->in[k] >= 0) read[lives->root[n->in[k]]] |= product ? LOW : OTHER;
    }
    for (ft_ref t = 0; t < g->tensor_count; t++) {
        const ft_tensor *x = &g->tensors[t];
        const bool made = lives->birth[t] >= 0 && g->nodes[lives->birth[t]].phase != FT_BACKWARD;
        share[t] = 1;
        if (lives->root[t] != t || !made || x->role != FT_ACTIVATION || x->element_bytes != wide) continue;
        if (read[t] & LOW) share[t] = (float)(read[t] & OTHER ? (wide + low) / wide : low / wide);
    }
    *out = share;
    return true;
}
