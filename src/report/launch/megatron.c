/* megatron.c: a plan as flags of Megatron-LM (megatron/training/arguments.py of core_r0.16): the layout, the batch, the
 * recomputation, and of the model what its shape says (megatron_model.c). Data, tokenizer, learning rate and
 * checkpoints are the user's. */
#include "report/launch/megatron.h"

#include <inttypes.h>
#include <string.h>

#include "report/launch/launch.h"
#include "report/launch/unsaid.h"

void ft__megatron_flag(ft_text *out, const char *name) { ft__text_addf(out, "  --%s \\\n", name); }

void ft__megatron_word(ft_text *out, const char *name, const char *value)
{
    ft__text_addf(out, "  --%s %s \\\n", name, value);
}

void ft__megatron_whole(ft_text *out, const char *name, int64_t value)
{
    ft__text_addf(out, "  --%s %" PRId64 " \\\n", name, value);
}

const char *ft__cp_comm_type(const ft_parallel *p)
{
    return p->context == FT_CONTEXT_ULYSSES ? "a2a" : p->context == FT_CONTEXT_GATHER ? "all_gather" : "p2p";
}

void ft__pipeline_letters(ft_text *out, const ft_launch *l)
{
    const ft_parallel *p = &l->plan->layout.parallel;
    int64_t layers = l->search->model.layers, places = p->pp * ft__parallel_chunks(p);
    ft_deal deal = ft__layout_deal(layers, places, p->rest);
    if (p->pp < 2 || (deal != FT_DEAL_REST && deal != FT_DEAL_FRONT)) return;
    for (int64_t i = 0; i < places; i++) {
        int64_t from = 0, to = 0;
        ft__layout_range(layers, places, p->rest, i, &from, &to);
        ft__text_add(out, i ? "|" : "E");
        if (to > from) ft__text_addf(out, to - from > 1 ? "t*%" PRId64 : "t", to - from);
    }
    ft__text_add(out, "L");
}

static void layout(ft_text *out, const ft_launch *l)
{
    const ft_parallel *p = &l->plan->layout.parallel;
    int64_t layers = l->search->model.layers;
    ft__megatron_whole(out, "tensor-model-parallel-size", p->tp);
    ft__megatron_whole(out, "pipeline-model-parallel-size", p->pp);
    if (p->vpp > 1) ft__megatron_whole(out, "num-virtual-stages-per-pipeline-rank", p->vpp);
    ft_deal deal = ft__layout_deal(layers, p->pp * ft__parallel_chunks(p), p->rest);
    if (deal == FT_DEAL_ENDS) ft__megatron_flag(out, "account-for-embedding-in-pipeline-split");
    if (deal == FT_DEAL_ENDS || deal == FT_DEAL_LOSS) ft__megatron_flag(out, "account-for-loss-in-pipeline-split");
    ft_text letters = {0};
    ft__pipeline_letters(&letters, l);
    if (letters.length) ft__text_addf(out, "  --pipeline-model-parallel-layout '%s' \\\n", letters.at);
    ft__text_drop(&letters, out);
    if (p->cp > 1) ft__megatron_whole(out, "context-parallel-size", p->cp);
    if (p->cp > 1) ft__text_addf(out, "  --cp-comm-type %s \\\n", ft__cp_comm_type(p));
    if (p->ep > 1) ft__megatron_whole(out, "expert-model-parallel-size", p->ep);
    if (p->etp > 0) ft__megatron_whole(out, "expert-tensor-parallel-size", p->etp);
    if (p->sp) ft__megatron_flag(out, "sequence-parallel");
    if (p->zero >= 1) ft__megatron_flag(out, "use-distributed-optimizer");
    if (p->dp * p->cp > 1 && ft__ranks_overlaps(p, &l->search->request.work))
        ft__megatron_flag(out, "overlap-grad-reduce");
    if (p->zero >= 1 && p->gather_ahead) ft__megatron_flag(out, "overlap-param-gather");
}

static void batch(ft_text *out, const ft_launch *l)
{
    const ft_workload *w = &l->search->request.work;
    ft__megatron_whole(out, "micro-batch-size", l->plan->layout.batch);
    ft__megatron_whole(out, "global-batch-size", l->search->asked->global);
    ft__megatron_whole(out, "seq-length", w->seq);
    ft__megatron_whole(out, "max-position-embeddings", w->seq);
    if (w->dtype == FT_FP16) ft__megatron_flag(out, "fp16");
    if (w->dtype == FT_BF16 || w->dtype == FT_FP8 || w->dtype == FT_FP4) ft__megatron_flag(out, "bf16");
    if (w->dtype == FT_FP4) ft__text_add(out, "  --fp4-format e2m1 \\\n");
    if (w->dtype == FT_FP8) ft__text_add(out, "  --fp8-format hybrid \\\n");
    ft_recompute recompute = l->plan->layout.recompute;
    if (recompute == FT_RECOMPUTE_SELECTIVE) {
        ft_text modules = {0};
        ft__text_add(out, "  --recompute-granularity selective \\\n");
        ft__launch_modules(&modules, l, "", " ");
        if (modules.length) ft__megatron_word(out, "recompute-modules", modules.at);
        ft__text_drop(&modules, out);
    }
    if (recompute != FT_RECOMPUTE_FULL) return;
    ft__megatron_word(out, "recompute-granularity", "full");
    ft__megatron_word(out, "recompute-method", w->recompute_layers > 0 ? "block" : "uniform");
    ft__megatron_whole(out, "recompute-num-layers", w->recompute_layers > 0 ? w->recompute_layers : 1);
}

/* The flags as they are since the modules have a flag of their own (arguments.py; --cuda-graph-scope before). */
static void graphs(ft_text *out, const ft_launch *l)
{
    const char *captures = ft__launch_graphs(l);
    ft_text modules = {0};
    if (!captures) return;
    ft__megatron_word(out, "cuda-graph-impl", captures);
    ft__launch_graphed(&modules, l, "", " ");
    if (modules.length) ft__megatron_word(out, "cuda-graph-modules", modules.at);
    ft__text_drop(&modules, out);
    ft__megatron_flag(out, "te-rng-tracker");
    if (!strcmp(captures, "full_iteration")) ft__megatron_flag(out, "no-check-for-nan-in-loss-and-grad");
}

static void offload(ft_text *out, const ft_launch *l)
{
    if (l->plan->layout.offload & 1u << FT_OFFLOAD_OPTIMIZER) {
        ft__megatron_flag(out, "optimizer-cpu-offload");
        ft__text_add(out, "  --optimizer-offload-fraction 1.0 \\\n");
        ft__megatron_flag(out, "overlap-cpu-optimizer-d2h-h2d");
    }
    if (l->plan->layout.offload & 1u << FT_OFFLOAD_ACTIVATIONS)
        ft__megatron_whole(out, "cpu-offloading-num-layers", ft__offloaded_layers(l));
}

/* AttnBackend of core/transformer/enums.py. */
static const char *backend(ft_attention_kind kind)
{
    if (kind == FT_CUDNN) return "fused";
    if (kind == FT_EAGER) return "unfused";
    return kind == FT_SDPA || kind == FT_XFORMERS || kind == FT_TRITON ? "auto" : "flash";
}

void ft__launch_megatron(ft_text *out, const ft_launch *l)
{
    ft_text lacks = {0};
    const ft_workload *w = &l->search->request.work;
    ft__megatron_lacks(&lacks, l->search->request.arch);
    ft__launch_unsaid(&lacks, l, "megatron");
    if (lacks.length) ft__text_addf(out, "# pretrain_gpt.py has no flags for: %s\n", lacks.at);
    ft__text_drop(&lacks, out);
    ft__text_add(out, "pretrain_gpt.py \\\n");
    layout(out, l);
    ft__megatron_exchanges(out, l);
    batch(out, l);
    graphs(out, l);
    offload(out, l);
    ft__megatron_update(out, l);
    ft__megatron_model(out, l->search->request.arch, w->mtp);
    ft__text_add(out, "  --transformer-impl transformer_engine \\\n  --attention-backend ");
    ft__text_addf(out, "%s\n", backend(w->attention));
}
