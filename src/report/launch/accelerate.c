/* accelerate.c: a plan as a configuration of Hugging Face Accelerate (accelerate/commands/config/config_args.py,
 * 1.12). */
#include <inttypes.h>

#include "report/launch/launch.h"
#include "report/launch/unsaid.h"

void ft__launch_accelerate(ft_text *out, const ft_launch *l)
{
    const ft_workload *w = &l->search->request.work;
    const ft_layout *p = &l->plan->layout;
    const char *mixed = w->dtype == FT_BF16 ? "bf16" : w->dtype == FT_FP16 ? "fp16" : w->dtype == FT_FP8 ? "fp8" : "no";
    ft__launch_remark(out, l, "accelerate", "Accelerate's file");
    ft__text_addf(out,
                  "compute_environment: LOCAL_MACHINE\n"
                  "distributed_type: FSDP\n"
                  "mixed_precision: \"%s\"\n"
                  "num_machines: %" PRId64 "\n"
                  "num_processes: %" PRId64 "\n"
                  "machine_rank: 0\n"
                  "main_training_function: main\n"
                  "fsdp_config:\n"
                  "  fsdp_version: 2\n"
                  "  fsdp_reshard_after_forward: %s\n"
                  "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
                  "  fsdp_activation_checkpointing: %s\n"
                  "  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
                  "  fsdp_offload_params: %s\n"
                  "# per_device_train_batch_size: %" PRId64 "\n"
                  "# gradient_accumulation_steps: %" PRId64 "\n",
                  mixed, l->nodes, l->search->asked->gpus,
                  p->parallel.zero >= 3 && !p->parallel.keep_gathered ? "true" : "false",
                  p->recompute == FT_RECOMPUTE_FULL ? "true" : "false",
                  p->offload & 1u << FT_OFFLOAD_PARAMETERS ? "true" : "false", p->batch, p->micros);
    if (p->parallel.shard < 1) return;
    ft__text_addf(out,
                  "parallelism_config:\n"
                  "  parallelism_config_dp_replicate_size: %" PRId64 "\n"
                  "  parallelism_config_dp_shard_size: %" PRId64 "\n",
                  p->parallel.dp / p->parallel.shard, p->parallel.shard);
}
