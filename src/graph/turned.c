/* turned.c: whether a compiler turns a net's images to channels-last.
 *
 * Inductor turns them as they come in, and every filter where it is used, when it expects convolutions to gain by it
 * (torch/_inductor/graph.py, decide_layout_opt, PyTorch 2.11). A net that trains it leaves alone for one grouped filter
 * (but depthwise ones), or one that has at most half as many channels out as in, or when all are narrow; of one that
 * does not train it weighs the arithmetic of each kind by how it did when its makers measured. In fp32 images stay as
 * they lie: that is unmeasured here, and without TF32 cuDNN's kernels want them so. */
#include "graph/graph.h"
#include "graph/operator.h"
#include "graph/turned_constants.h"

/* Of filters, as the compiler sorts them. */
typedef enum kind { DEFAULT, GROUPED, SMALL, NARROWING, KINDS } kind;

static kind kind_of(const ft_op *op)
{
    const int64_t groups = op->u.conv.groups > 1 ? op->u.conv.groups : 1, out = op->u.conv.k;
    const int64_t in = op->u.conv.c / groups;
    if (groups > 1 && in > 1) return GROUPED;
    if (out <= FT_K_TURNED_SMALL && in <= FT_K_TURNED_SMALL) return SMALL;
    return out * 2 <= in && op->u.conv.r > 1 ? NARROWING : DEFAULT;
}

bool ft__graph_turns_pictures(const ft_graph *g, bool training)
{
    static const double speed[KINDS] = {FT_K_TURNED_USUAL, FT_K_TURNED_GROUPED, FT_K_TURNED_NARROW,
                                        FT_K_TURNED_NARROWING};
    double nodes = 0, filters = 0, flops[KINDS] = {0}, all = 0, weighted = 0;
    bool some[KINDS] = {false};
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        const double times = block->repeat > 1 ? (double)block->repeat : 1;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_op *op = &g->nodes[i].op;
            nodes += times;
            if (op->kind != FT_OP_CONV2D) continue;
            const kind k = kind_of(op);
            filters += times;
            flops[k] += times * ft__op_flops(op);
            some[k] = true;
        }
    }
    if (!(filters > 0) || nodes >= FT_K_TURNED_NODES * filters) return false;
    if (training) return !some[GROUPED] && !some[NARROWING] && (some[DEFAULT] || !some[SMALL]);
    for (int k = 0; k < KINDS; k++) {
        all += flops[k];
        weighted += flops[k] * speed[k];
    }
    return weighted <= all;
}
