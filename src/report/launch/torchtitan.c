/* torchtitan.c: a plan as a torchtitan configuration (torchtitan/config/job_config.py, version 0.2). The model's name
 * and flavour, the data and the optimizer are the user's. */
#include <inttypes.h>

#include "report/launch/launch.h"

static const char *schedule(const ft_parallel *p)
{
    return p->schedule == FT_INTERLEAVED                                      ? "Interleaved1F1B"
           : p->schedule == FT_ZERO_BUBBLE || p->schedule == FT_V_ZERO_BUBBLE ? "ZBVZeroBubble"
           : p->schedule == FT_GPIPE                                          ? "GPipe"
                                                                              : "1F1B";
}

void ft__launch_torchtitan(ft_text *out, const ft_launch *l)
{
    static const char *const modes[] = {"none", "selective", "full"};
    const ft_parallel *p = &l->plan->layout.parallel;
    const ft_workload *w = &l->search->request.work;
    int64_t batch = l->plan->layout.batch, micros = l->plan->layout.micros;
    /* It trains in bf16 with fp32 beside it, in fp32, and with products in fp8. */
    bool plain = w->dtype == FT_FP32 || w->dtype == FT_TF32;
    if (w->dtype == FT_FP8) ft__text_add(out, "[model]\nconverters = [\"quantize.linear.float8\"]\n\n");
    if (!plain && w->dtype != FT_FP8 && w->dtype != FT_BF16)
        ft__text_addf(out, "# no key of torchtitan's says %s: this trains in bf16\n", ft_dtype_name(w->dtype));
    /* A pipeline takes its micro-batches out of the local batch; without one they are accumulated. */
    ft__text_addf(
        out, "[training]\nlocal_batch_size = %" PRId64 "\nglobal_batch_size = %" PRId64 "\nseq_len = %" PRId64 "\n",
        p->pp > 1 ? batch * micros : batch, l->search->asked->global, w->seq);
    if (plain) ft__text_add(out, "mixed_precision_param = \"float32\"\n");
    if (l->plan->layout.offload & 1u << FT_OFFLOAD_PARAMETERS) ft__text_add(out, "enable_cpu_offload = true\n");
    ft__text_addf(out,
                  "\n[parallelism]\ndata_parallel_replicate_degree = %" PRId64 "\ndata_parallel_shard_degree = %" PRId64
                  "\ntensor_parallel_degree = %" PRId64 "\ncontext_parallel_degree = %" PRId64
                  "\npipeline_parallel_degree = %" PRId64 "\n",
                  p->shard > 0 ? p->dp / p->shard : 1, p->shard > 0 ? p->shard : p->dp, p->tp, p->cp, p->pp);
    if (p->pp > 1) {
        ft__text_addf(out, "pipeline_parallel_schedule = \"%s\"\npipeline_parallel_microbatch_size = %" PRId64 "\n",
                      schedule(p), batch);
        if (p->vpp > 1)
            ft__text_addf(out, "pipeline_parallel_layers_per_stage = %" PRId64 "\n",
                          (l->search->model.layers + p->pp * p->vpp - 1) / (p->pp * p->vpp));
    }
    ft__text_addf(out, "\n[activation_checkpoint]\nmode = \"%s\"\n", modes[l->plan->layout.recompute]);
    if (l->plan->layout.recompute == FT_RECOMPUTE_SELECTIVE) ft__text_add(out, "selective_ac_option = \"op\"\n");
    ft__text_addf(out, "\n[compile]\nenable = %s\n", w->execution == FT_RUN_COMPILE ? "true" : "false");
}
