/* split.c: the keys of a model that a card holds in part. */
#include "request/effects_rules.h"
#include "request/formats.h"

static ft_status refuse(ft_key_id key, const char *why, ft_error *err)
{
    return ft__fail_at(err, FT_E_UNSUPPORTED, ft__keys[key].key, 0, 0, "\"%s\" %s", ft__keys[key].key, why);
}

/* llama.cpp's ways: other engines keep all of a model on GPUs, or none. */
ft_status ft__split_settle(const ft_said *said, ft_model_request *out, ft_error *err)
{
    ft_workload *w = &out->work;
    const bool layers = ft__given(said, FT_KEY_ID_GPU_LAYERS), experts = ft__given(said, FT_KEY_ID_CPU_EXPERTS);
    const ft_key_id key = layers ? FT_KEY_ID_GPU_LAYERS : FT_KEY_ID_CPU_EXPERTS;
    if (!layers && !experts) return FT_OK;
    if (!ft__generates_tokens(w)) return FT_OK; /* has no effect, which is remarked */
    if (ft__widened_by(w) != FT_WEIGHTS_GGUF)
        return refuse(key, "is for llama.cpp: name one of its formats (\"weights_dtype\" \"q4_k_m\")", err);
    if (!ft__parallel_alone(&out->parallel)) return refuse(key, "is forecast on one GPU", err);
    if (experts && out->arch->experts < 1)
        return refuse(FT_KEY_ID_CPU_EXPERTS, "asks for experts: there are none", err);
    w->splits_layers = layers && ft__whole_of(said, FT_KEY_ID_GPU_LAYERS) <= out->arch->layers;
    w->gpu_layers = layers ? ft__whole_of(said, FT_KEY_ID_GPU_LAYERS) : 0;
    w->split_layers = out->arch->layers;
    w->cpu_experts = experts ? ft__whole_of(said, FT_KEY_ID_CPU_EXPERTS) : 0;
    w->host_memory_gbps = ft__real_of(said, FT_KEY_ID_HOST_MEMORY);
    return FT_OK;
}

const char *ft__split_rule(const ft_effect_case *c)
{
    return ft__generates_tokens(c->w) ? NULL : "only prefill and decode are split between a card and its host";
}

const char *ft__host_memory_rule(const ft_effect_case *c)
{
    if (ft__split_rule(c)) return ft__split_rule(c);
    return c->w->splits_layers || c->w->cpu_experts > 0 ? NULL : "nothing is on the host";
}
