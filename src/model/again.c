/* again.c: what Megatron-Core's recompute_modules run again.
 *
 * core/transformer/transformer_config.py names them. Of a module its results are dropped when they have been read and
 * made again from its inputs before the backward pass reads them (CheckpointWithoutOutput), or it is checkpointed as a
 * whole (mlp, moe, shared_experts). Here all of a layer's run at the beginning of its backward pass. */
#include <string.h>

#include "model/workload.h"

static bool begins(const ft_node *n, const char *with) { return n->name && !strncmp(n->name, with, strlen(with)); }

static bool is(const ft_node *n, const char *name) { return n->name && !strcmp(n->name, name); }

static bool dense_part(const ft_node *n)
{
    return begins(n, "mlp.") && !begins(n, "mlp.norm") && !begins(n, "mlp.post_norm") && !begins(n, "mlp.residual");
}

/* The module that a node belongs to. `sparse`: it stands behind a router of its layer. */
static ft_module module_of(const ft_node *n, bool sparse)
{
    if (n->core) return FT_MODULE_CORE_ATTN;
    if (is(n, "attn.norm") || is(n, "mlp.norm")) return FT_MODULE_LAYERNORM;
    if (is(n, "moe.act") || is(n, "moe.clamp")) return FT_MODULE_MOE_ACT;
    if (is(n, "attn.q_b_proj") || is(n, "attn.kv_b_proj") || is(n, "attn.rotary") || is(n, "attn.q_cat") ||
        is(n, "attn.k_cat") || is(n, "attn.v"))
        return FT_MODULE_MLA_UP_PROJ;
    if (dense_part(n)) return sparse ? FT_MODULE_SHARED_EXPERTS : FT_MODULE_MLP;
    return begins(n, "moe.") ? FT_MODULE_MOE : FT_MODULE_COUNT;
}

static bool latent_layer(const ft_graph *g, const ft_block *block)
{
    for (int32_t i = block->first; i < block->first + block->count; i++)
        if (is(&g->nodes[i], "attn.kv_b_proj")) return true;
    return false;
}

void ft__mark_again(ft_graph *g, const ft_workload *work)
{
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        bool sparse = false, latent = latent_layer(g, block);
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            ft_node *n = &g->nodes[i];
            sparse = begins(n, "moe.") || (sparse && !begins(n, "attn."));
            ft_module module = module_of(n, sparse);
            bool asked = module < FT_MODULE_COUNT && (work->again & 1u << module);
            /* All of the layer's experts are in `moe`; a rotary embedding alone is nothing that runs again. */
            if (work->again & 1u << FT_MODULE_MOE)
                asked |= module == FT_MODULE_MOE_ACT || module == FT_MODULE_SHARED_EXPERTS;
            n->core = asked && (module != FT_MODULE_MLA_UP_PROJ || latent);
        }
    }
}
