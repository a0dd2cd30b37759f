/* torchtitan.c: a plan as a torchtitan configuration (torchtitan/config/job_config.py, version 0.2). The model's name
 * and flavour and the data are the user's. */
#include <inttypes.h>

#include "report/launch/launch.h"
#include "report/launch/unsaid.h"

static const char *schedule(const ft_parallel *p)
{
    return p->schedule == FT_INTERLEAVED                                      ? "Interleaved1F1B"
           : p->schedule == FT_ZERO_BUBBLE || p->schedule == FT_V_ZERO_BUBBLE ? "ZBVZeroBubble"
           : p->schedule == FT_GPIPE                                          ? "GPipe"
                                                                              : "1F1B";
}

/* AdamW is all that it has, as one kernel unless it is told otherwise (components/optimizer.py). */
static void optimizer(ft_text *out, const ft_launch *l)
{
    const ft_workload *w = &l->search->request.work;
    const char *how = w->optimizer == FT_ADAMW_FOREACH ? "foreach" : w->optimizer == FT_ADAMW_LOOP ? "for-loop" : NULL;
    if (!how && !w->updates_in_backward) return;
    ft__text_add(out, "\n[optimizer]\nname = \"AdamW\"\n");
    if (how) ft__text_addf(out, "implementation = \"%s\"\n", how);
    if (w->updates_in_backward) ft__text_add(out, "early_step_in_backward = true\n");
}

void ft__launch_torchtitan(ft_text *out, const ft_launch *l)
{
    static const char *const modes[] = {"none", "selective", "full"};
    const ft_parallel *p = &l->plan->layout.parallel;
    const ft_workload *w = &l->search->request.work;
    int64_t batch = l->plan->layout.batch, micros = l->plan->layout.micros;
    /* It trains in bf16 with fp32 beside it, in fp32, and with products in fp8. */
    bool plain = w->dtype == FT_FP32 || w->dtype == FT_TF32;
    ft__launch_remark(out, l, "torchtitan", "torchtitan");
    if (w->dtype == FT_FP8) ft__text_add(out, "[model]\nconverters = [\"quantize.linear.float8\"]\n\n");
    if (!plain && w->dtype != FT_FP8 && w->dtype != FT_BF16)
        ft__text_addf(out, "# no key of torchtitan's says %s: this trains in bf16\n", ft_dtype_name(w->dtype));
    /* A pipeline takes its micro-batches out of the local batch; without one they are accumulated. */
    ft__text_addf(
        out, "[training]\nlocal_batch_size = %" PRId64 "\nglobal_batch_size = %" PRId64 "\nseq_len = %" PRId64 "\n",
        p->pp > 1 ? batch * micros : batch, l->search->asked->global, w->seq);
    if (w->clip) ft__text_add(out, "max_norm = 1.0\n");
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
    if (p->keep_gathered || p->drop_gathered)
        ft__text_addf(out, "fsdp_reshard_after_forward = \"%s\"\n", p->keep_gathered ? "never" : "always");
    if (p->tp > 1 && p->in_pieces >= 0)
        ft__text_addf(out, "enable_async_tensor_parallel = %s\n", p->in_pieces ? "true" : "false");
    optimizer(out, l);
    ft__text_addf(out, "\n[activation_checkpoint]\nmode = \"%s\"\n", modes[l->plan->layout.recompute]);
    if (l->plan->layout.recompute == FT_RECOMPUTE_SELECTIVE) ft__text_add(out, "selective_ac_option = \"op\"\n");
    ft__text_addf(out, "\n[compile]\nenable = %s\n", w->execution == FT_RUN_COMPILE ? "true" : "false");
}
