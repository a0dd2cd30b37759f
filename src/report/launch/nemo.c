/* nemo.c: a plan as a program of NeMo 2 that takes a recipe (of adapters the one that fine-tunes), gives it the layout
 * and starts it by NeMo-Run (NVIDIA-NeMo/NeMo 2.5: nemo/collections/llm/recipes,
 * nemo/lightning/pytorch/strategies/megatron_strategy.py; NVIDIA-NeMo/Run, docs/guides/execution.md). Which recipe is
 * its argument; data and checkpoints are the recipe's. */
#include <inttypes.h>
#include <string.h>

#include "ranks/ranks.h"
#include "report/launch/launch.h"
#include "report/launch/settings.h"
#include "report/launch/unsaid.h"

static const ft_syntax python = {"", " = ", "\n", "True", "False", "None"};
static const ft_core_syntax core = {&python, "\"", "recipe.optim.config"};

static void layout(ft_text *out, const ft_launch *l, const ft_parallel *p)
{
    ft_text letters = {0};
    ft__setting_whole(out, &python, "strategy.tensor_model_parallel_size", p->tp);
    ft__setting_whole(out, &python, "strategy.pipeline_model_parallel_size", p->pp);
    ft_dtype dtype = l->search->request.work.dtype;
    const char *sent = dtype == FT_FP16 ? "float16" : dtype == FT_FP32 || dtype == FT_TF32 ? "float32" : "bfloat16";
    ft__text_addf(out, "strategy.pipeline_dtype = torch.%s\n", sent);
    if (p->vpp > 1)
        ft__setting_whole(out, &python, "strategy.virtual_pipeline_model_parallel_size", p->vpp);
    else
        ft__setting(out, &python, "strategy.virtual_pipeline_model_parallel_size", NULL);
    ft_deal deal = ft__layout_deal(l->search->model.layers, p->pp * ft__parallel_chunks(p), p->rest);
    ft__setting_flag(out, &python, "strategy.account_for_embedding_in_pipeline_split", deal == FT_DEAL_ENDS);
    ft__setting_flag(out, &python, "strategy.account_for_loss_in_pipeline_split",
                     deal == FT_DEAL_ENDS || deal == FT_DEAL_LOSS);
    ft__pipeline_letters(&letters, l);
    /* what a recipe may have said of its own stages */
    ft__text_add(out, "strategy.num_layers_in_first_pipeline_stage = None\n"
                      "strategy.num_layers_in_last_pipeline_stage = None\nstrategy.pipeline_model_parallel_layout = ");
    if (letters.length)
        ft__text_addf(out, "\"%s\"\n", letters.at);
    else
        ft__text_add(out, "None\n");
    ft__text_drop(&letters, out);
    ft__setting_whole(out, &python, "strategy.context_parallel_size", p->cp);
    if (p->cp > 1) ft__text_addf(out, "model.cp_comm_type = \"%s\"\n", ft__cp_comm_type(p));
    ft__setting_whole(out, &python, "strategy.expert_model_parallel_size", p->ep);
    if (p->etp > 0)
        ft__setting_whole(out, &python, "strategy.expert_tensor_parallel_size", p->etp);
    else
        ft__setting(out, &python, "strategy.expert_tensor_parallel_size", NULL);
    ft__setting_flag(out, &python, "strategy.sequence_parallel", p->sp);
    if (l->search->request.work.lora_rank > 0) return; /* gradients are few: as the recipe has them */
    ft__setting_flag(out, &python, "strategy.ddp.overlap_grad_reduce",
                     p->dp * p->cp > 1 && ft__ranks_overlaps(p, &l->search->request.work));
    ft__setting_flag(out, &python, "strategy.ddp.overlap_param_gather", p->zero >= 1 && p->gather_ahead);
    ft__setting_flag(out, &python, "recipe.optim.config.use_distributed_optimizer", p->zero >= 1);
}

static void precision(ft_text *out, ft_dtype dtype)
{
    if (dtype == FT_FP32 || dtype == FT_TF32) {
        ft__text_add(out, "recipe.trainer.plugins = None\n");
        return;
    }
    const char *how = dtype == FT_FP16 ? "fp16_mixed" : dtype == FT_FP8 ? "bf16_with_fp8_mixed" : "bf16_mixed";
    ft__text_addf(out, "recipe.trainer.plugins = mixed_precision.%s()\n", how);
}

static void graphs(ft_text *out, const ft_launch *l)
{
    const char *captures = ft__launch_graphs(l);
    ft_text modules = {0};
    if (!captures) return;
    const bool whole = !strcmp(captures, "full_iteration");
    ft__launch_graphed(&modules, l, "\"", ", ");
    ft__text_addf(out,
                  "model.cuda_graph_impl = \"%s\"\nmodel.cuda_graph_scope = [%s]\nmodel.use_te_rng_tracker = True\n",
                  whole ? "local" : captures,
                  whole            ? "\"full_iteration\""
                  : modules.length ? modules.at
                                   : "");
    ft__text_drop(&modules, out);
}

static void memory(ft_text *out, const ft_launch *l, const ft_layout *p)
{
    ft__launch_core_recompute(out, l, &core);
    ft_text modules = {0};
    ft__launch_modules(&modules, l, "\"", ", ");
    if (modules.length)
        ft__text_addf(out, "model.recompute_modules = [%s]\n", modules.at);
    else
        ft__setting(out, &python, "model.recompute_modules", NULL);
    ft__text_drop(&modules, out);
    graphs(out, l);
    if (p->offload & 1u << FT_OFFLOAD_OPTIMIZER)
        ft__text_add(out, "recipe.optim.config.optimizer_cpu_offload = True\n"
                          "recipe.optim.config.optimizer_offload_fraction = 1.0\n"
                          "recipe.optim.config.use_precision_aware_optimizer = True\n"
                          "recipe.optim.config.overlap_cpu_optimizer_d2h_h2d = True\n");
    if (!(p->offload & 1u << FT_OFFLOAD_ACTIVATIONS)) return;
    ft__setting_flag(out, &python, "model.cpu_offloading", true);
    ft__setting_whole(out, &python, "model.cpu_offloading_num_layers", ft__offloaded_layers(l));
}

/* Nodes that all have as many of the GPUs, as its executors start them: 12 are twice six, not eight and four. */
static ft_launch even(const ft_launch *l)
{
    ft_launch out = *l;
    int64_t gpus = l->search->asked->gpus;
    while (gpus % out.gpus_per_node) out.gpus_per_node--;
    out.nodes = gpus / out.gpus_per_node;
    return out;
}

static void executor(ft_text *out, const ft_launch *l)
{
    ft__text_add(out, "\nif __name__ == '__main__':\n");
    if (l->nodes == 1)
        ft__text_addf(out, "    executor = run.LocalExecutor(ntasks_per_node=%" PRId64 ", launcher=\"torchrun\")\n",
                      l->gpus_per_node);
    else
        ft__text_addf(out,
                      "    executor = run.SlurmExecutor(\n"
                      "        account=os.environ[\"SBATCH_ACCOUNT\"],\n"
                      "        partition=os.environ[\"SBATCH_PARTITION\"],\n"
                      "        tunnel=run.LocalTunnel(job_dir=os.path.abspath(\"jobs\")),\n"
                      "        nodes=%" PRId64 ",\n"
                      "        ntasks_per_node=%" PRId64 ",\n"
                      "        gpus_per_node=%" PRId64 ",\n"
                      "    )\n",
                      l->nodes, l->gpus_per_node, l->gpus_per_node);
    ft__text_add(out, "    run.run(recipe, executor=executor)\n");
}

/* nemo/collections/llm/peft/lora.py. */
static void adapters(ft_text *out, const ft_launch *l)
{
    const json_t *dropout = ft__launch_said(l, FT_KEY_ID_ADAPTER_DROPOUT);
    ft_text targets = {0};
    if (l->search->request.work.lora_rank < 1) return;
    ft__setting_whole(out, &python, "recipe.peft.dim", l->search->request.work.lora_rank);
    if (ft__launch_targets(&targets, l, "\"")) ft__text_addf(out, "recipe.peft.target_modules = [%s]\n", targets.at);
    if (dropout) ft__text_addf(out, "recipe.peft.dropout = %g\n", json_number_value(dropout));
    ft__text_drop(&targets, out);
}

/* Moments of fewer bits are the precision-aware optimizer's; fp8 is Transformer Engine's by uint8. */
static void moments(ft_text *out, const ft_workload *w)
{
    if (w->moment_bytes <= 0 || w->moment_bytes >= 4) return;
    const char *how = w->moment_bytes < 2 ? "uint8" : "bfloat16";
    ft__text_addf(out,
                  "recipe.optim.config.use_precision_aware_optimizer = True\n"
                  "recipe.optim.config.exp_avg_dtype = torch.%s\n"
                  "recipe.optim.config.exp_avg_sq_dtype = torch.%s\n",
                  how, how);
}

void ft__launch_nemo(ft_text *out, const ft_launch *uneven)
{
    const ft_launch evened = even(uneven), *l = &evened;
    const ft_layout *p = &l->plan->layout;
    const ft_workload *w = &l->search->request.work;
    ft__launch_remark(out, l, "nemo", "NeMo");
    ft__text_add(out, "\"\"\"A recipe of NeMo with a plan's layout: python3 THIS RECIPE, as in llama3_8b.\"\"\"\n"
                      "import importlib\nimport os\nimport sys\n\nimport nemo_run as run\nimport torch\n"
                      "from nemo.collections.llm.recipes.precision import mixed_precision\n\n");
    ft__text_addf(out,
                  "recipe = importlib.import_module(\"nemo.collections.llm.recipes.\" + sys.argv[1]).%s_recipe(\n"
                  "    name=\"plan\", num_nodes=%" PRId64 ", num_gpus_per_node=%" PRId64 "%s\n)\n",
                  w->lora_rank > 0 ? "finetune" : "pretrain", l->nodes, l->gpus_per_node,
                  w->lora_rank > 0 ? ", peft_scheme=\"lora\"" : "");
    adapters(out, l);
    ft__text_add(out, "strategy, model = recipe.trainer.strategy, recipe.model.config\n");
    layout(out, l, &p->parallel);
    precision(out, w->dtype);
    if (p->parallel.reduce_bytes == 2 && w->dtype != FT_FP32 && w->dtype != FT_TF32)
        ft__text_add(out, "recipe.trainer.plugins.grad_reduce_in_fp32 = False\n");
    memory(out, l, p);
    ft__launch_core_options(out, l, &core);
    moments(out, w);
    ft__setting_whole(out, &python, "model.seq_length", w->seq);
    ft__setting_whole(out, &python, "recipe.data.seq_length", w->seq);
    ft__setting_whole(out, &python, "recipe.data.micro_batch_size", p->batch);
    ft__setting_whole(out, &python, "recipe.data.global_batch_size", l->search->asked->global);
    executor(out, l);
}
