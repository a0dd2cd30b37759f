/* bridge.c: a plan as overrides of a Megatron-Bridge recipe, in the Hydra syntax that its training scripts take
 * (docs.nvidia.com/nemo/megatron-bridge: "Megatron-LM to Megatron Bridge", "Parallelisms"): the groups model, train,
 * ddp and dataset of ConfigContainer. The recipe itself, data and checkpoints are the user's. */
#include <string.h>

#include "ranks/ranks.h"
#include "report/launch/launch.h"
#include "report/launch/settings.h"
#include "report/launch/unsaid.h"

static const ft_syntax hydra = {"  ", "=", " \\\n", "true", "false", "null"};
static const ft_core_syntax core = {&hydra, "", "optimizer"};

static void layout(ft_text *out, const ft_launch *l, const ft_parallel *p)
{
    ft_text letters = {0};
    ft__setting_whole(out, &hydra, "model.tensor_model_parallel_size", p->tp);
    ft__setting_whole(out, &hydra, "model.pipeline_model_parallel_size", p->pp);
    if (p->vpp > 1)
        ft__setting_whole(out, &hydra, "model.virtual_pipeline_model_parallel_size", p->vpp);
    else
        ft__setting(out, &hydra, "model.virtual_pipeline_model_parallel_size", NULL);
    ft_deal deal = ft__layout_deal(l->search->model.layers, p->pp * ft__parallel_chunks(p), p->rest);
    if (deal == FT_DEAL_ENDS) ft__setting_flag(out, &hydra, "model.account_for_embedding_in_pipeline_split", true);
    if (deal == FT_DEAL_ENDS || deal == FT_DEAL_LOSS)
        ft__setting_flag(out, &hydra, "model.account_for_loss_in_pipeline_split", true);
    ft__pipeline_letters(&letters, l);
    if (letters.length) /* quoted for the shell, and for Hydra */
        ft__text_addf(out, "  'model.pipeline_model_parallel_layout=\"%s\"' \\\n", letters.at);
    ft__text_drop(&letters, out);
    ft__setting_whole(out, &hydra, "model.context_parallel_size", p->cp);
    if (p->cp > 1) ft__setting(out, &hydra, "model.cp_comm_type", ft__cp_comm_type(p));
    ft__setting_whole(out, &hydra, "model.expert_model_parallel_size", p->ep);
    if (p->etp > 0) ft__setting_whole(out, &hydra, "model.expert_tensor_parallel_size", p->etp);
    ft__setting_flag(out, &hydra, "model.sequence_parallel", p->sp);
    ft__setting_flag(out, &hydra, "ddp.use_distributed_optimizer", p->zero >= 1);
    ft__setting_flag(out, &hydra, "optimizer.use_distributed_optimizer",
                     p->zero >= 1); /* checked by itself, before the two are brought in line */
    bool several = p->dp * p->cp > 1 &&
                   ft__ranks_overlaps(
                       p,
                       &l->search->request
                            .work); /* gathers beside the next forward pass stand on reductions beside the backward */
    ft__setting_flag(out, &hydra, "ddp.overlap_grad_reduce", several);
    ft__setting_flag(out, &hydra, "ddp.overlap_param_gather", several && p->zero >= 1 && p->gather_ahead);
}

/* A recipe of its own trains in what it likes: bf16 mostly. fp8 as Megatron-LM's flags have it, with delayed scaling.
 * The names: megatron/bridge/training/mixed_precision.py. */
static void precision(ft_text *out, ft_dtype dtype)
{
    const char *how = dtype == FT_FP16   ? "fp16_mixed"
                      : dtype == FT_BF16 ? "bf16_mixed"
                      : dtype == FT_FP8  ? "bf16_with_fp8_delayed_scaling_mixed"
                      : dtype == FT_FP4  ? "bf16_with_nvfp4_mixed"
                                         : NULL; /* fp32: nothing is mixed */
    ft__setting(out, &hydra, "mixed_precision", how);
}

/* All of it, since a recipe may have said some. */
static void recomputation(ft_text *out, const ft_launch *l)
{
    ft_text modules = {0};
    ft__launch_core_recompute(out, l, &core);
    ft__launch_modules(&modules, l, "", ",");
    if (modules.length)
        ft__text_addf(out, "  'model.recompute_modules=[%s]' \\\n", modules.at);
    else /* attention's scores, as Megatron-Core has it itself */
        ft__setting(out, &hydra, "model.recompute_modules", NULL);
    ft__text_drop(&modules, out);
}

/* Graphs, where a plan has them (docs/training/cuda-graphs.md); where it has none a recipe may keep its own. */
static void graphs(ft_text *out, const ft_launch *l)
{
    const char *captures = ft__launch_graphs(l);
    ft_text modules = {0};
    if (!captures) return;
    const bool whole = !strcmp(captures, "full_iteration");
    ft__setting(out, &hydra, "model.cuda_graph_impl", whole ? "local" : captures);
    ft__launch_graphed(&modules, l, "", ",");
    ft__text_addf(out, "  'model.cuda_graph_scope=[%s]' \\\n", whole ? captures : modules.length ? modules.at : "");
    ft__text_drop(&modules, out);
    ft__text_add(out, "  model.use_te_rng_tracker=true \\\n  rng.te_rng_tracker=true \\\n");
    if (whole) ft__text_add(out, "  rerun_state_machine.check_for_nan_in_loss=false \\\n");
}

/* Of a recipe that fine-tunes (peft/lora.py). */
static void adapters(ft_text *out, const ft_launch *l)
{
    const json_t *dropout = ft__launch_said(l, FT_KEY_ID_ADAPTER_DROPOUT);
    ft_text targets = {0};
    if (l->search->request.work.lora_rank < 1) return;
    ft__setting_whole(out, &hydra, "peft.dim", l->search->request.work.lora_rank);
    if (ft__launch_targets(&targets, l, "")) ft__text_addf(out, "  'peft.target_modules=[%s]' \\\n", targets.at);
    if (dropout) ft__text_addf(out, "  peft.dropout=%g \\\n", json_number_value(dropout));
    ft__text_drop(&targets, out);
}

void ft__launch_bridge(ft_text *out, const ft_launch *l)
{
    const ft_layout *p = &l->plan->layout;
    const ft_workload *w = &l->search->request.work;
    ft__launch_remark(out, l, "bridge", "Megatron-Bridge");
    ft__text_add(out, "$RECIPE \\\n");
    layout(out, l, &p->parallel);
    precision(out, w->dtype);
    recomputation(out, l);
    graphs(out, l);
    if (p->offload & 1u << FT_OFFLOAD_OPTIMIZER)
        ft__text_add(out, "  optimizer.optimizer_cpu_offload=true \\\n  optimizer.optimizer_offload_fraction=1.0 \\\n"
                          "  optimizer.use_precision_aware_optimizer=true \\\n"
                          "  optimizer.overlap_cpu_optimizer_d2h_h2d=true \\\n");
    if (p->offload & 1u << FT_OFFLOAD_ACTIVATIONS) {
        ft__setting_flag(out, &hydra, "model.cpu_offloading", true);
        ft__setting_whole(out, &hydra, "model.cpu_offloading_num_layers", ft__offloaded_layers(l));
    }
    ft__launch_core_options(out, l, &core);
    adapters(out, l);
    ft__setting_whole(out, &hydra, "model.seq_length", w->seq);
    ft__setting_whole(out, &hydra, "dataset.sequence_length", w->seq);
    ft__setting_whole(out, &hydra, "train.micro_batch_size", p->batch);
    ft__text_addf(out, "  train.global_batch_size=%" PRId64 "\n", l->search->asked->global);
}
