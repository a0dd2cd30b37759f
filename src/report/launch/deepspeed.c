/* deepspeed.c: a plan as a DeepSpeed configuration (deepspeed/runtime/config.py, version 0.18). */
#include <string.h>

#include "base/json_write.h"
#include "ranks/ranks.h"
#include "report/launch/launch.h"

static const unsigned states = 1u << FT_OFFLOAD_OPTIMIZER, drives = 1u << FT_OFFLOAD_OPTIMIZER_NVME,
                      weights = 1u << FT_OFFLOAD_PARAMETERS;

/* The folder on drives is the user's; without one DeepSpeed stops (runtime/zero/stage3.py,
 * _configure_tensor_swapping). The name is that of its own documentation. */
static void host(ft_text *out, const char *what, const char *where)
{
    ft__json_member_open(out, what);
    ft__json_member_text(out, "device", where);
    if (!strcmp(where, "nvme")) ft__json_member_text(out, "nvme_path", "/local_nvme");
    ft__json_member_flag(out, "pin_memory", true);
    ft__json_close(out);
}

void ft__launch_deepspeed(ft_text *out, const ft_launch *l)
{
    const ft_workload *w = &l->search->request.work;
    const ft_layout *p = &l->plan->layout;
    const double element = ft__ranks_reduce_bytes(&p->parallel, w) > 0 ? ft__ranks_reduce_bytes(&p->parallel, w) : 2;
    const double wire = p->parallel.reduce_bytes;
    ft__json_open(out);
    ft__json_member_whole(out, "train_batch_size", l->search->asked->global);
    ft__json_member_whole(out, "train_micro_batch_size_per_gpu", p->batch);
    ft__json_member_whole(out, "gradient_accumulation_steps", p->micros);
    bool wide = w->dtype == FT_FP32 || w->dtype == FT_TF32 || w->dtype == FT_FP64;
    if (!wide) { /* products in fewer bits are the model's own; everything else is in bf16 then */
        ft__json_member_open(out, w->dtype == FT_FP16 ? "fp16" : "bf16");
        ft__json_member_flag(out, "enabled", true);
        ft__json_close(out);
    }
    if (wire == 4 || wire == 2)
        ft__json_member_text(out, "communication_data_type",
                             wire == 4             ? "fp32"
                             : w->dtype == FT_FP16 ? "fp16"
                                                   : "bf16");
    ft__json_member_open(out, "zero_optimization");
    ft__json_member_whole(out, "stage", p->parallel.zero);
    ft__json_member_flag(out, "overlap_comm", !p->parallel.no_overlap);
    if (p->parallel.bucket_bytes > 0)
        ft__json_member_whole(out, "reduce_bucket_size", (int64_t)(p->parallel.bucket_bytes / element));
    if (p->offload & (states | weights | drives)) host(out, "offload_optimizer", p->offload & drives ? "nvme" : "cpu");
    if (p->offload & weights) host(out, "offload_param", "cpu");
    ft__json_close(out);
    if (w->clip) ft__json_member_number(out, "gradient_clipping", 1, 3);
    ft__json_close(out);
    ft__text_add(out, "\n");
}
