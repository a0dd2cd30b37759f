/* recompute_mask.c: what Megatron-Core's recompute_modules run again, and what MaxText's remat_policy keeps.
 *
 * core/transformer/transformer_config.py names them. Of a module its results are dropped when they have been read and
 * made again from its inputs before the backward pass reads them (CheckpointWithoutOutput), or it is checkpointed as a
 * whole (mlp, moe, shared_experts). Here all of a layer's run at the beginning of its backward pass.
 *
 * MaxText gives names to a layer's results (checkpoint_name in layers/attentions.py, linears.py and moe.py), and a
 * policy is a list of those that are kept (Decoder.get_remat_policy in layers/decoders.py); the rest of the layer runs
 * again. */
#include "model/workload.h"

/* The module that a node belongs to. `sparse`: it stands behind a router of its layer. */
static ft_module module_of(const ft_node *n, bool sparse)
{
    if (n->core) return FT_MODULE_CORE_ATTN;
    switch (ft__node_site(n)) {
    case FT_SITE_ATTN_NORM:
    case FT_SITE_MLP_NORM: return FT_MODULE_LAYERNORM;
    case FT_SITE_MOE_ACT:
    case FT_SITE_MOE_CLAMP: return FT_MODULE_MOE_ACT;
    case FT_SITE_ATTN_Q_B_PROJ:
    case FT_SITE_ATTN_KV_B_PROJ:
    case FT_SITE_ATTN_ROTARY:
    case FT_SITE_ATTN_Q_CAT:
    case FT_SITE_ATTN_K_CAT:
    case FT_SITE_ATTN_V: return FT_MODULE_MLA_UP_PROJ;
    case FT_SITE_MLP_POST_NORM:
    case FT_SITE_MLP_RESIDUAL: return FT_MODULE_COUNT;
    default: break;
    }
    if (ft__node_within(n, FT_SITE_MLP)) return sparse ? FT_MODULE_SHARED_EXPERTS : FT_MODULE_MLP;
    return ft__node_within(n, FT_SITE_MOE) ? FT_MODULE_MOE : FT_MODULE_COUNT;
}

static bool latent_layer(const ft_graph *g, const ft_block *block)
{
    for (int32_t i = block->first; i < block->first + block->count; i++)
        if (ft__node_site(&g->nodes[i]) == FT_SITE_ATTN_KV_B_PROJ) return true;
    return false;
}

void ft__mark_recomputed(ft_graph *g, const ft_workload *work)
{
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        bool sparse = false, latent = latent_layer(g, block);
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            ft_node *n = &g->nodes[i];
            sparse = ft__node_within(n, FT_SITE_MOE) || (sparse && !ft__node_within(n, FT_SITE_ATTN));
            ft_module module = module_of(n, sparse);
            bool asked = module < FT_MODULE_COUNT && (work->again & 1u << module);
            /* All of the layer's experts are in `moe`; a rotary embedding alone is nothing that runs again. */
            if (work->again & 1u << FT_MODULE_MOE)
                asked |= module == FT_MODULE_MOE_ACT || module == FT_MODULE_SHARED_EXPERTS;
            n->core = asked && (module != FT_MODULE_MLA_UP_PROJ || latent);
        }
    }
}

/* -- by names of results ----------------------------------------------------------------------- */

/* The names that a node's result has, a bit each. One product may be several of MaxText's. */
static unsigned names_of(const ft_node *n)
{
    const unsigned qkv = 1u << FT_REMAT_QUERY_PROJ | 1u << FT_REMAT_KEY_PROJ | 1u << FT_REMAT_VALUE_PROJ;
    if (n->verb == FT_DO_ATTENTION) return 1u << FT_REMAT_CONTEXT;
    switch (ft__node_site(n)) {
    case FT_SITE_ATTN_Q_PROJ:
    case FT_SITE_ATTN_Q_B_PROJ: return 1u << FT_REMAT_QUERY_PROJ;
    case FT_SITE_ATTN_K_PROJ: return 1u << FT_REMAT_KEY_PROJ;
    case FT_SITE_ATTN_V_PROJ: return 1u << FT_REMAT_VALUE_PROJ;
    case FT_SITE_ATTN_KV_B_PROJ: return 1u << FT_REMAT_KEY_PROJ | 1u << FT_REMAT_VALUE_PROJ;
    case FT_SITE_ATTN_QKV_PROJ: return qkv;
    case FT_SITE_ATTN_VALUES: return 1u << FT_REMAT_CONTEXT;
    case FT_SITE_ATTN_O_PROJ: return 1u << FT_REMAT_OUT_PROJ;
    case FT_SITE_MLP_FC1:
    case FT_SITE_MLP_WI:
    case FT_SITE_MLP_WI_0:
    case FT_SITE_MLP_WI_1:
    case FT_SITE_MLP_GATE_PROJ:
    case FT_SITE_MLP_UP_PROJ:
    case FT_SITE_MLP_GATE_UP_PROJ:
    case FT_SITE_MOE_GATE_UP: return 1u << FT_REMAT_MLPWI;
    case FT_SITE_MLP_FC2:
    case FT_SITE_MLP_WO:
    case FT_SITE_MLP_DOWN_PROJ:
    case FT_SITE_MOE_DOWN: return 1u << FT_REMAT_MLPWO;
    default: return 0;
    }
}

void ft__mark_spared(ft_graph *g, const ft_workload *work)
{
    for (int32_t i = 0; i < g->node_count; i++) {
        const unsigned names = names_of(&g->nodes[i]);
        /* A product of several names is kept where all of them are: it is one tensor. */
        g->nodes[i].spared = names && (names & work->spared) == names;
    }
}
