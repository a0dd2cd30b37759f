/* exchange.c: who exchanges with whom in a layout, and how long that takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
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
    work.head_ranks = r->parallel->tp;
    if (work.scope == FT_SCOPE_OPEN && ft__ranks_fsdp(r->parallel, r->work)) work.scope = FT_SCOPE_LAYERS;
    /* A loss of parts of the vocabulary has an exchange between each two of its operators, and nothing is fused across
     * (torch/distributed/tensor/parallel/loss.py, _log_softmax_handler). */
    if (work.scope == FT_SCOPE_LOSS && ft__ranks_loss(r->parallel, r->work) == FT_LOSS_PARALLEL)
        work.scope = FT_SCOPE_LAYERS;
    return work;
}

ft_divisible ft__ranks_model(const ft_arch *arch, const ft_workload *work)
{
    bool cuttable = arch->design == FT_DECODER_ONLY || arch->design == FT_ENCODER_ONLY;
    bool limited = arch->picked_groups > 0 && arch->picked_groups < arch->expert_groups;
    return (ft_divisible){.layers = arch->layers,
                          .heads = arch->heads,
                          .kv_heads = arch->kv_lora > 0 ? arch->heads : arch->kv_heads,
                          .experts = ft__routes_tokens(arch, work) ? arch->experts : 0,
                          .topk = arch->topk,
                          .groups = limited ? arch->expert_groups : 1,
                          .picked_groups = limited ? arch->picked_groups : 1,
                          .seq = work->seq,
                          .routing_spared = ft__stack(work)->routing_spared,
                          .cuttable = cuttable,
                          .in_a_row = cuttable || arch->design == FT_VIT || arch->design == FT_STATE_SPACE,
                          .latent = arch->kv_lora > 0,
                          .uneven = ft__stack(work)->uneven_chunks,
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

/* What is kept of an exchange, and what it was of. Open addressing; a full table is begun anew. */
enum { EXCHANGES = 1024, SLOTS = 2 * EXCHANGES };

typedef struct exchanged {
    ft_exchange_kind kind;
    ft_group group;
    double bytes, ms, below, above, taken;
    bool slots;
} exchanged;

struct ft_exchanges {
    uint32_t used, slot[SLOTS]; /* number of an exchange plus one; 0: free */
    exchanged at[EXCHANGES];
};

ft_exchanges *ft__exchanges_new(void) { return calloc(1, sizeof(ft_exchanges)); }

void ft__exchanges_free(ft_exchanges *e) { free(e); }

static bool same(const exchanged *a, ft_exchange_kind kind, const ft_group *g, double bytes)
{
    return a->kind == kind && a->bytes == bytes && a->group.size == g->size && a->group.stride == g->stride &&
           a->group.skew == g->skew && a->group.engine == g->engine && a->group.narrow == g->narrow;
}

static uint32_t slot_of(const ft_exchanges *e, ft_exchange_kind kind, const ft_group *g, double bytes)
{
    uint64_t hash = ft__mix(ft__mix_double((uint64_t)kind, bytes), (uint64_t)g->size << 32 ^ (uint64_t)g->stride);
    uint32_t at = (uint32_t)(hash >> 32) % SLOTS;
    while (e->slot[at] && !same(&e->at[e->slot[at] - 1], kind, g, bytes)) at = (at + 1) % SLOTS;
    return at;
}

static ft_status forecast(const ft_ranks *r, ft_exchange_kind kind, const ft_group *group, double bytes, exchanged *out,
                          ft_error *err)
{
    ft_comm comm;
    ft_group asked = *group;
    asked.in_step = true;
    FT_TRY(ft__collective_forecast(r->predictor, r->device, r->cluster, collective_of(kind), bytes, &asked, r->quantile,
                                   &comm, err));
    *out = (exchanged){.kind = kind,
                       .group = *group,
                       .bytes = bytes,
                       .ms = comm.ms,
                       .below = 1 - comm.low_ms / fmax(comm.ms, 1e-9),
                       .above = comm.high_ms / fmax(comm.ms, 1e-9) - 1,
                       .taken = comm.gpu_share,
                       .slots = comm.slots};
    return FT_OK;
}

static ft_status find(const ft_ranks *r, ft_exchange_kind kind, const ft_group *group, double bytes,
                      const exchanged **out, ft_error *err)
{
    ft_exchanges *e = r->exchanges;
    uint32_t at = slot_of(e, kind, group, bytes);
    if (!e->slot[at]) {
        if (e->used == EXCHANGES) {
            memset(e->slot, 0, sizeof e->slot);
            e->used = 0;
            at = slot_of(e, kind, group, bytes);
        }
        FT_TRY(forecast(r, kind, group, bytes, &e->at[e->used], err));
        e->slot[at] = ++e->used;
    }
    *out = &e->at[e->slot[at] - 1];
    return FT_OK;
}

ft_status ft__ranks_exchange(const ft_ranks *r, ft_exchange_kind kind, const ft_group *group, double bytes, double *ms,
                             ft_ranks_width *width, ft_error *err)
{
    exchanged once;
    const exchanged *found = &once;
    *ms = 0;
    if (group->size < 2 || bytes <= 0 || kind == FT_EXCHANGE_NONE) return FT_OK;
    if (r->exchanges)
        FT_TRY(find(r, kind, group, bytes, &found, err));
    else
        FT_TRY(forecast(r, kind, group, bytes, &once, err));
    *ms = found->ms;
    if (!width) return FT_OK;
    width->below = fmax(width->below, found->below);
    width->above = fmax(width->above, found->above);
    width->taken = fmax(width->taken, found->taken);
    width->slots = width->slots || found->slots;
    return FT_OK;
}

/* Kernels lose the SMs that an exchange takes: 16 to 24 of them, 12 to 22 % of an H100 or an A100. "Characterizing
 * Compute-Communication Overlap" (arXiv 2507.03114, 2025) measured 18.9 % on average, up to 40. */
double ft__ranks_overlapped(const ft_ranks_width *width) { return width->taken / fmax(1 - width->taken, 0.5); }
