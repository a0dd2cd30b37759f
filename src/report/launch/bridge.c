/* bridge.c: a plan as overrides of a Megatron-Bridge recipe, in the Hydra syntax that its training scripts take
 * (docs.nvidia.com/nemo/megatron-bridge: "Megatron-LM to Megatron Bridge", "Parallelisms"): the groups model, train,
 * ddp and dataset of ConfigContainer. The recipe itself, data and checkpoints are the user's. */
#include "report/launch/launch.h"
#include "report/launch/settings.h"

static const ft_syntax hydra = {"  ", "=", " \\\n", "true", "false", "null"};

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
    ft__setting_flag(out, &hydra, "ddp.overlap_grad_reduce", p->dp * p->cp > 1);
}

void ft__launch_bridge(ft_text *out, const ft_launch *l)
{
    const ft_layout *p = &l->plan->layout;
    const ft_workload *w = &l->search->request.work;
    ft__text_add(out, "$RECIPE \\\n");
    layout(out, l, &p->parallel);
    if (p->recompute == FT_RECOMPUTE_NONE) ft__text_add(out, "  model.recompute_granularity=null \\\n");
    if (p->recompute == FT_RECOMPUTE_SELECTIVE) ft__text_add(out, "  model.recompute_granularity=selective \\\n");
    if (p->recompute == FT_RECOMPUTE_FULL)
        ft__text_add(out, "  model.recompute_granularity=full \\\n  model.recompute_method=uniform \\\n"
                          "  model.recompute_num_layers=1 \\\n");
    if (p->offload & 1u << FT_OFFLOAD_OPTIMIZER)
        ft__text_add(out, "  optimizer.optimizer_cpu_offload=true \\\n  optimizer.optimizer_offload_fraction=1.0 \\\n"
                          "  optimizer.use_precision_aware_optimizer=true \\\n"
                          "  optimizer.overlap_cpu_optimizer_d2h_h2d=true \\\n");
    if (p->offload & 1u << FT_OFFLOAD_ACTIVATIONS) {
        ft__setting_flag(out, &hydra, "model.cpu_offloading", true);
        ft__setting_whole(out, &hydra, "model.cpu_offloading_num_layers", ft__offloaded_layers(l));
    }
    if (w->lora_rank > 0) ft__setting_whole(out, &hydra, "peft.dim", w->lora_rank); /* of a recipe that fine-tunes */
    ft__setting_whole(out, &hydra, "model.seq_length", w->seq);
    ft__setting_whole(out, &hydra, "dataset.sequence_length", w->seq);
    ft__setting_whole(out, &hydra, "train.micro_batch_size", p->batch);
    ft__text_addf(out, "  train.global_batch_size=%" PRId64 "\n", l->search->asked->global);
}
