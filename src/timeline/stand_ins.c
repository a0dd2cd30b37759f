/* stand_ins.c: gradients that nobody reads.
 *
 * Megatron's products add a weight's gradient into the fp32 buffer themselves (gradient_accumulation_fusion, on by
 * default), and autograd, whose hooks start the exchange, gets a tensor of the weight's shape in the weight's format
 * instead. Transformer Engine keeps one for every distinct shape and never lets go of it (pytorch/module/base.py,
 * get_dummy_wgrad; linear layers since 2.3, grouped ones, of whose experts one counts, since 2.10), Megatron-LM's
 * output layer since August 2025 (core/tensor_parallel/layers.py). There, queries, keys and values are one weight, and
 * so are gate and up: together as large as ours, and all of a layer's shapes are different. */
#include <math.h>

#include "layout/layout.h"
#include "model/stack.h"
#include "timeline/states.h"

/* The trained weight that a forward product reads; FT_NONE. */
static ft_ref weight_of(const ft_graph *g, const ft_node *n)
{
    if (n->phase != FT_FORWARD || (n->verb != FT_DO_LINEAR && n->verb != FT_DO_MATMUL)) return FT_NONE;
    if (n->in_count < 2 || n->in[0] < 0 || n->in[1] < 0 || n->out_count < 1 || n->out[0] < 0) return FT_NONE;
    const ft_ref w = g->tensors[n->in[1]].storage;
    return w >= 0 && g->tensors[w].role == FT_PARAMETER && g->tensors[w].trained ? w : FT_NONE;
}

/* Modules at other sites or of other shapes than all before; another layer's are the same. */
typedef struct modules {
    const ft_graph *g;
    int32_t nodes[64]; /* a model has a dozen */
    int count;
} modules;

static bool is_new(modules *m, int32_t node)
{
    const ft_node *n = &m->g->nodes[node];
    const ft_tensor *t = &m->g->tensors[weight_of(m->g, n)];
    for (int i = 0; i < m->count; i++) {
        const ft_node *other = &m->g->nodes[m->nodes[i]];
        const ft_tensor *its = &m->g->tensors[weight_of(m->g, other)];
        if (its->rows == t->rows && its->cols == t->cols && n->at && n->at == other->at) return false;
    }
    if (m->count < 64) m->nodes[m->count++] = node;
    return true;
}

double ft__stand_ins(const ft_graph *g, const ft_workload *work)
{
    if (work->task != FT_TRAIN || !ft__stack(work)->gradient_stand_ins || !work->master_weights || work->autocast)
        return 0;
    modules all = {.g = g};
    double bytes = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        const ft_ref w = weight_of(g, n);
        if (w == FT_NONE || !is_new(&all, i)) continue;
        const ft_tensor *t = &g->tensors[w];
        const double one = (double)g->tensors[n->in[0]].cols * (double)g->tensors[n->out[0]].cols; /* an expert's */
        bytes += (ft__is_expert(t) ? one : ft__tensor_numel(t)) * fmax(2, t->element_bytes);
    }
    return bytes;
}
