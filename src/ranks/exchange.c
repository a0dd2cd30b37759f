/* exchange.c: who exchanges with whom in a layout, and how long that takes. */
#include <math.h>

#include "ranks/ranks.h"

/* -- groups ------------------------------------------------------------------------------------ */

ft_group ft__ranks_replicas(const ft_parallel *p, bool expert)
{
    if (!expert) return (ft_group){.size = p->dp * p->cp, .stride = p->tp};
    int64_t all = ft__expert_room(p), apart = p->ep > 1 ? p->ep : 1;
    return (ft_group){.size = all / apart > 0 ? all / apart : 1, .stride = ft__expert_stride(p) * apart};
}

ft_group ft__ranks_sharers(const ft_parallel *p, bool expert)
{
    ft_group g = ft__ranks_replicas(p, expert);
    if (p->shard > 0 && p->shard < g.size) g.size = p->shard;
    return g;
}

double ft__ranks_kept(const ft_parallel *p, double dense, double expert)
{
    double all = dense + expert;
    if (!(all > 0)) return 1;
    return (dense / (double)ft__ranks_sharers(p, false).size + expert / (double)ft__ranks_sharers(p, true).size) / all;
}

ft_workload ft__ranks_workload(const ft_ranks *r)
{
    ft_workload work = *r->work;
    if (work.scope == FT_SCOPE_OPEN && ft__ranks_fsdp(r->parallel, r->work)) work.scope = FT_SCOPE_LAYERS;
    return work;
}

ft_divisible ft__ranks_model(const ft_arch *arch, const ft_workload *work)
{
    bool cuttable = arch->design == FT_DECODER_ONLY || arch->design == FT_ENCODER_ONLY;
    return (ft_divisible){.layers = arch->layers,
                          .heads = arch->heads,
                          .kv_heads = arch->kv_lora > 0 ? arch->heads : arch->kv_heads,
                          .experts = ft__routes_tokens(arch, work) ? arch->experts : 0,
                          .topk = arch->topk,
                          .seq = work->seq,
                          .cuttable = cuttable,
                          .in_a_row = cuttable || arch->design == FT_VIT || arch->design == FT_STATE_SPACE,
                          .latent = arch->kv_lora > 0,
                          .training = work->task == FT_TRAIN};
}

/* -- exchanges --------------------------------------------------------------------------------- */

static ft_collective collective_of(ft_exchange_kind kind)
{
    switch (kind) {
    case FT_EXCHANGE_ALL_GATHER: return FT_COLLECTIVE_ALL_GATHER;
    case FT_EXCHANGE_REDUCE_SCATTER: return FT_COLLECTIVE_REDUCE_SCATTER;
    case FT_EXCHANGE_ALL_TO_ALL: return FT_COLLECTIVE_ALL_TO_ALL;
    case FT_EXCHANGE_SEND_RECV: return FT_COLLECTIVE_SEND_RECV;
    default: return FT_COLLECTIVE_ALL_REDUCE;
    }
}

ft_status ft__ranks_exchange(const ft_ranks *r, ft_exchange_kind kind, const ft_group *group, double bytes, double *ms,
                             ft_ranks_width *width, ft_error *err)
{
    ft_comm comm;
    *ms = 0;
    if (group->size < 2 || bytes <= 0 || kind == FT_EXCHANGE_NONE) return FT_OK;
    FT_TRY(ft__collective_forecast(r->predictor, r->device, r->cluster, collective_of(kind), bytes, group, r->quantile,
                                   &comm, err));
    *ms = comm.ms;
    if (!width) return FT_OK;
    width->below = fmax(width->below, 1 - comm.low_ms / fmax(comm.ms, 1e-9));
    width->above = fmax(width->above, comm.high_ms / fmax(comm.ms, 1e-9) - 1);
    width->taken = fmax(width->taken, comm.gpu_share);
    return FT_OK;
}

/* Kernels lose the SMs that an exchange takes: 16 to 24 of them, 12 to 22 % of an H100 or an A100. "Characterizing
 * Compute-Communication Overlap" (arXiv 2507.03114, 2025) measured 18.9 % on average, up to 40. */
double ft__ranks_overlapped(const ft_ranks_width *width) { return width->taken / fmax(1 - width->taken, 0.5); }
