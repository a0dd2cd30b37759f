/* megatron_options.c: exchanges, optimizer and loss as flags of Megatron-LM (megatron/training/arguments.py at
 * d98e8a64, and fields of ModelParallelConfig, TransformerConfig and OptimizerConfig, of which its flags are made):
 * what changes a step's time or memory and is not what Megatron-LM does by itself. */
#include "report/launch/megatron.h"

#include "ranks/ranks.h"
#include "report/launch/unsaid.h"

static void expert_exchanges(ft_text *out, const ft_launch *l)
{
    const ft_parallel *p = &l->plan->layout.parallel;
    if (l->search->request.arch->experts < 1) return;
    const bool flex = p->ep > 1 && p->dispatch_once;
    ft__megatron_word(out, "moe-token-dispatcher-type", flex ? "flex" : "alltoall");
    if (flex) ft__megatron_word(out, "moe-flex-dispatcher-backend", "deepep");
    if (p->ep > 1 && p->expert_overlap > 0) ft__megatron_flag(out, "overlap-moe-expert-parallel-comm");
    const json_t *capacity = ft__launch_said(l, FT_KEY_ID_EXPERT_CAPACITY);
    if (capacity) ft__text_addf(out, "  --moe-expert-capacity-factor %g \\\n", json_number_value(capacity));
}

void ft__megatron_exchanges(ft_text *out, const ft_launch *l)
{
    const ft_parallel *p = &l->plan->layout.parallel;
    const ft_workload *w = &l->search->request.work;
    const double element = ft__ranks_reduce_bytes(p, w);
    if (ft__ranks_in_pieces(p, w)) ft__megatron_flag(out, "tp-comm-overlap");
    if (p->wait_sends) ft__megatron_flag(out, "no-overlap-p2p-communication");
    if (p->bucket_bytes > 0 && element > 0)
        ft__megatron_whole(out, "ddp-bucket-size", (int64_t)(p->bucket_bytes / element));
    if (p->reduce_bytes > 0 && p->reduce_bytes < 4) ft__megatron_flag(out, "grad-reduce-in-bf16");
    expert_exchanges(out, l);
}

static const char *moments_of(const ft_workload *w)
{
    if (w->moment_bytes <= 0 || w->moment_bytes >= 4) return NULL;
    return w->moment_bytes < 2 ? "fp8" : "bf16";
}

/* Moments of fewer bits, and states on the host, are the precision-aware optimizer's. */
void ft__megatron_update(ft_text *out, const ft_launch *l)
{
    const ft_workload *w = &l->search->request.work;
    const char *moments = moments_of(w);
    const bool away = l->plan->layout.offload & 1u << FT_OFFLOAD_OPTIMIZER;
    if (w->optimizer == FT_SGD || w->optimizer == FT_SGD_MOMENTUM) ft__megatron_word(out, "optimizer", "sgd");
    if (w->optimizer == FT_SGD) ft__megatron_word(out, "sgd-momentum", "0");
    if (w->optimizer == FT_MUON) ft__megatron_word(out, "optimizer", "muon");
    if (away || moments) ft__megatron_flag(out, "use-precision-aware-optimizer");
    if (moments) {
        ft__megatron_word(out, "exp-avg-dtype", moments);
        ft__megatron_word(out, "exp-avg-sq-dtype", moments);
    }
    if (w->clip) ft__megatron_word(out, "clip-grad", "1.0");
    if (json_is_false(ft__launch_said(l, FT_KEY_ID_CLIP_GRAD))) /* by itself it clips */
        ft__megatron_word(out, "clip-grad", "0.0");
    if (w->loss == FT_ENTROPY_FUSED) ft__megatron_flag(out, "cross-entropy-loss-fusion");
}
