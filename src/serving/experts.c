/* experts.c: fused experts of a serving engine on one rank: the engine's own backend on that GPU and in that format.
 * Tokens pick their experts at random, so that of E experts E (1 - (1 - k/E)^T) are awake. */
#include <math.h>

#include "graph/operator.h"
#include "kernel/moe_backend.h"
#include "serving/kernels.h"
#include "serving/step_constants.h"

static const ft_moe_backend backends[] = {[FT_EXPERTS_USUAL] = FT_MOE_ANY,
                                          [FT_EXPERTS_CUTLASS] = FT_MOE_CUTLASS,
                                          [FT_EXPERTS_TRTLLM_GEN] = FT_MOE_TRTLLM_GEN,
                                          [FT_EXPERTS_TRITON] = FT_MOE_TRITON,
                                          [FT_EXPERTS_MARLIN] = FT_MOE_MARLIN,
                                          [FT_EXPERTS_DEEPGEMM] = FT_MOE_DEEPGEMM};

ft_status ft__price_experts(ft_pricer *p, double tokens, ft_priced *sum, ft_error *err)
{
    const ft_served *m = p->m;
    const ft_arch *a = m->arch;
    double width = (double)(a->moe_ffn > 0 ? a->moe_ffn : a->ffn) * (double)m->ep / (double)(m->tp * m->dp);
    ft_op op;
    ft__op_init("moe", &op);
    op.dtype = op.kv_dtype = m->expert_dtype;
    op.weights = m->expert_storage;
    op.engine = m->engine->kernels;
    op.u.moe.tokens = tokens < 1 ? 1 : (int64_t)ceil(tokens);
    op.u.moe.hidden = a->hidden;
    op.u.moe.inter = width < 1 ? 1 : (int64_t)ceil(width);
    op.u.moe.topk = a->topk;
    op.u.moe.experts = a->experts;
    op.u.moe.ep = m->ep;
    op.u.moe.drawn = true;
    if (m->engine->experts != FT_EXPERTS_USUAL) op.u.moe.backend = backends[m->engine->experts];
    op.u.moe.ungated = !a->gated;
    /* weights are fetched ahead of the kernel that reads them, while there are few tokens for each */
    ft_priced one = {0};
    double each = tokens * (double)a->topk / (double)a->experts, ahead = 1 / (1 + each / FT_K_STEP_FETCHED_AHEAD);
    FT_TRY(ft__price_op(p, &op, &one, err));
    /* the tables are of a later release of the generated kernels, which tunes them to the number of tokens */
    bool generated = ft__moe_backend(m->device, &op) == FT_MOE_TRTLLM_GEN;
    double many = m->blocks && generated ? m->engine->block_experts_scale : 1;
    sum->ms += (ahead * m->engine->experts_scale + (1 - ahead) * many) * one.ms;
    sum->joules += one.joules;
    return FT_OK;
}
