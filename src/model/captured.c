/* captured.c: which kernels Megatron-Core replays from CUDA graphs (cuda_graph_modules).
 *
 * core/transformer/transformer_config.py and cuda_graphs.py name what is captured: attention with its norm and
 * residual (a gated delta net stands where attention does), a dense layer's MLP, all of a layer of experts, its router
 * with the norm before it and shared experts, where tokens go (`moe_preprocess`), a state space layer, whole layers, or
 * forward and backward passes of all micro-batches. Layers that run again as wholes, or whose activations leave for the
 * host, are not captured but by the last (Megatron-Bridge, docs/training/cuda-graphs.md). */
#include "model/workload.h"

ft_captor ft__captor(const ft_graph *g, const ft_block *block)
{
    ft_captor c = {0};
    for (int32_t i = block->first; i < block->first + block->count; i++) {
        const ft_site site = ft__node_site(&g->nodes[i]);
        c.sparse |= ft__node_within(&g->nodes[i], FT_SITE_MOE);
        c.delta |= site == FT_SITE_MIXER_DELTA_STATE || site == FT_SITE_MIXER_DELTA_UPDATE;
    }
    return c;
}

unsigned ft__graphed(const ft_workload *work)
{
    const unsigned whole = 1u << FT_GRAPHED_FULL_ITERATION;
    if (work->task != FT_TRAIN || work->execution != FT_RUN_FUSED) return 0;
    if (work->graphed & whole) return whole;
    return work->recompute == FT_RECOMPUTE_FULL || ft__offloads(work, FT_OFFLOAD_ACTIVATIONS) ? 0 : work->graphed;
}

/* Where in a layer of experts a node stands. */
static ft_graphed part_of_experts(const ft_node *n)
{
    switch (ft__node_site(n)) {
    case FT_SITE_MOE_SCORES:
    case FT_SITE_MOE_TOPK:
    case FT_SITE_MOE_ROUTER:
    case FT_SITE_MOE_ROUTER_GROUPS:
    case FT_SITE_MOE_JITTER:
    case FT_SITE_MOE_SHARED_GATE: return FT_GRAPHED_MOE_ROUTER;
    case FT_SITE_MOE_MAP:
    case FT_SITE_MOE_SORT: return FT_GRAPHED_MOE_PREPROCESS;
    case FT_SITE_MLP_RESIDUAL:
    case FT_SITE_MLP_POST_NORM: return FT_GRAPHED_MOE;
    default: return ft__node_within(n, FT_SITE_MLP) ? FT_GRAPHED_MOE_ROUTER : FT_GRAPHED_MOE;
    }
}

bool ft__captured(unsigned graphed, ft_captor in, const ft_node *n)
{
    ft_graphed module = FT_GRAPHED_COUNT;
    if (!graphed || n->phase == FT_UPDATE) return false;
    if (graphed & 1u << FT_GRAPHED_FULL_ITERATION) return true;
    const bool mixes = ft__node_within(n, FT_SITE_MIXER);
    if (ft__node_within(n, FT_SITE_ATTN) || ft__node_within(n, FT_SITE_CROSS) || (mixes && in.delta))
        module = FT_GRAPHED_ATTN;
    else if (mixes)
        module = FT_GRAPHED_MAMBA;
    else if (ft__node_within(n, FT_SITE_MOE) || (in.sparse && ft__node_within(n, FT_SITE_MLP)))
        module = part_of_experts(n);
    else if (ft__node_within(n, FT_SITE_MLP))
        module = FT_GRAPHED_MLP;
    if (module == FT_GRAPHED_COUNT) return false;
    const bool experts = module == FT_GRAPHED_MOE_ROUTER || module == FT_GRAPHED_MOE_PREPROCESS;
    return graphed & (1u << module | 1u << FT_GRAPHED_LAYER) || (experts && graphed & 1u << FT_GRAPHED_MOE);
}
