/* core_options.c: what a request says of Megatron-Core's own settings, where a recipe would have its own: optimizer,
 * clipping, loss, experts (fields of OptimizerConfig, ModelParallelConfig and TransformerConfig in NVIDIA/Megatron-LM
 * at d98e8a64, megatron/core). Megatron-Bridge has them as overrides of "model" and "optimizer"
 * (docs/megatron-lm-to-megatron-bridge.md), a NeMo program as members of recipe.model.config and
 * recipe.optim.config. */
#include <stdio.h>

#include "report/launch/settings.h"
#include "report/launch/unsaid.h"

static void word(ft_text *out, const ft_core_syntax *c, const char *group, const char *key, const char *value)
{
    char name[96], quoted[48];
    snprintf(name, sizeof name, "%s.%s", group, key);
    snprintf(quoted, sizeof quoted, "%s%s%s", c->quote, value, c->quote);
    ft__setting(out, c->lines, name, quoted);
}

static void number(ft_text *out, const ft_core_syntax *c, const char *group, const char *key, double value)
{
    char name[96], text[32];
    snprintf(name, sizeof name, "%s.%s", group, key);
    snprintf(text, sizeof text, "%g", value);
    ft__setting(out, c->lines, name, text);
}

static void update(ft_text *out, const ft_launch *l, const ft_core_syntax *c)
{
    const ft_workload *w = &l->search->request.work;
    const json_t *clips = ft__launch_said(l, FT_KEY_ID_CLIP_GRAD);
    if (w->optimizer == FT_SGD || w->optimizer == FT_SGD_MOMENTUM) word(out, c, c->optimizer, "optimizer", "sgd");
    if (w->optimizer == FT_SGD) number(out, c, c->optimizer, "sgd_momentum", 0);
    if (clips) number(out, c, c->optimizer, "clip_grad", json_is_true(clips) ? 1 : 0); /* by itself it clips */
}

static void experts(ft_text *out, const ft_launch *l, const ft_core_syntax *c)
{
    const ft_parallel *p = &l->plan->layout.parallel;
    const json_t *capacity = ft__launch_said(l, FT_KEY_ID_EXPERT_CAPACITY);
    if (l->search->request.arch->experts < 1) return;
    if (capacity) number(out, c, "model", "moe_expert_capacity_factor", json_number_value(capacity));
    if (p->ep < 2 || !ft__launch_said(l, FT_KEY_ID_EXPERT_DISPATCH)) return;
    word(out, c, "model", "moe_token_dispatcher_type", p->dispatch_once ? "flex" : "alltoall");
    if (p->dispatch_once) word(out, c, "model", "moe_flex_dispatcher_backend", "deepep");
}

void ft__launch_core_options(ft_text *out, const ft_launch *l, const ft_core_syntax *c)
{
    const ft_workload *w = &l->search->request.work;
    update(out, l, c);
    experts(out, l, c);
    if (w->loss == FT_ENTROPY_FUSED) ft__setting_flag(out, c->lines, "model.cross_entropy_loss_fusion", true);
    if (w->mtp > 0) ft__setting_whole(out, c->lines, "model.mtp_num_layers", w->mtp);
}

void ft__launch_core_recompute(ft_text *out, const ft_launch *l, const ft_core_syntax *c)
{
    const ft_recompute how = l->plan->layout.recompute;
    const int64_t layers = l->search->request.work.recompute_layers;
    const bool full = how == FT_RECOMPUTE_FULL;
    if (!full && how != FT_RECOMPUTE_SELECTIVE)
        ft__setting(out, c->lines, "model.recompute_granularity", NULL);
    else
        word(out, c, "model", "recompute_granularity", full ? "full" : "selective");
    if (!full) { /* layers beside "selective" are refused (transformer_config.py), and a recipe may have said some */
        ft__setting(out, c->lines, "model.recompute_method", NULL);
        ft__setting(out, c->lines, "model.recompute_num_layers", NULL);
        return;
    }
    word(out, c, "model", "recompute_method", layers > 0 ? "block" : "uniform");
    ft__setting_whole(out, c->lines, "model.recompute_num_layers", layers > 0 ? layers : 1);
}
