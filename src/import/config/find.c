/* find.c: which architecture a config is, and which one to suggest when it is none of ours. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "import/config/type.h"

static const char *const names[] = {
#define X(type, name) name,
    FT_CONFIG_TYPES(X)
#undef X
};
static const ft_config_type *const types[] = {
#define X(type, name) &ft__config_##type,
    FT_CONFIG_TYPES(X)
#undef X
};
enum { TYPE_COUNT = sizeof types / sizeof *types };

const char *const *ft__config_types(size_t *count)
{
    *count = TYPE_COUNT;
    return names;
}

static size_t index_of(const char *name)
{
    size_t i = 0;
    while (i < TYPE_COUNT && strcmp(name, names[i]) != 0) i++;
    return i;
}

/* Whose computation comes closest; names alone mislead (deit is no dit, bart no bert). */
static const char *relative_of(const char *name)
{
    static const struct {
        const char *name, *relative;
    } known[] = {
        {"albert", "bert"},
        {"arcee", "llama"},
        {"baichuan", "llama"},
        {"bart", "t5"},
        {"beit", "vit"},
        {"clip_vision_model", "vit"},
        {"dbrx", "mixtral"},
        {"deberta-v2", "bert"},
        {"deepseek_v32", "deepseek_v3"},
        {"deit", "vit"},
        {"dinov2", "vit"},
        {"electra", "bert"},
        {"glm_moe_dsa", "deepseek_v3"},
        {"grok-1", "mixtral"},
        {"internlm2", "llama"},
        {"mamba", "mamba2"},
        {"minimax", "mixtral"},
        {"minimax_m2", "glm4_moe"},
        {"ministral", "mistral"},
        {"mistral3", "mistral"},
        {"modernbert", "bert"},
        {"qwen2_5_vl", "qwen2"},
        {"qwen2_vl", "qwen2"},
        {"qwen3_next", "qwen3_moe"},
        {"qwen3_vl", "qwen3"},
        {"siglip_vision_model", "vit"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) return known[i].relative;
    return ft__nearest(name, names, TYPE_COUNT);
}

static ft_status unknown(const ft_reading *r, const char *key, const char *name)
{
    const char *relative = relative_of(name);
    int shown = (int)ft__utf8_cut(name, 30);
    if (!relative)
        return ft__config_fail(
            r, FT_E_NAME, key,
            "unknown model_type \"%.*s\"; --read-as TYPE (\"read_as\") reads it as one of %d that are "
            "known: \"foretell models --types\" lists them",
            shown, name, TYPE_COUNT);
    return ft__config_fail(r, FT_E_NAME, key,
                           "unknown model_type \"%.*s\"; --read-as %s (\"read_as\") reads it as the nearest of %d that "
                           "are known: \"foretell models --types\" lists them",
                           shown, name, relative, TYPE_COUNT);
}

/* Diffusers' configs have no model_type but the class: a diffusion transformer where the norms are modulated. */
static const char *diffusers_type(const json_t *config)
{
    const char *class = json_string_value(json_object_get(config, "_class_name"));
    const char *norm = json_string_value(json_object_get(config, "norm_type"));
    if (!class) return NULL;
    if (!strcmp(class, "DiTTransformer2DModel")) return "dit";
    if (!strcmp(class, "Transformer2DModel") && norm && !strcmp(norm, "ada_norm_zero")) return "dit";
    return NULL;
}

ft_status ft__config_find(const ft_reading *r, const char *nearest, ft_found *out)
{
    const char *name = diffusers_type(r->config);
    ft_need need = nearest ? FT_OPTIONAL : FT_REQUIRED;
    if (!name) FT_TRY(ft__json_string(r->config, "model_type", need, &name, r->where, r->err));
    size_t index = name ? index_of(name) : TYPE_COUNT;
    bool relative = index == TYPE_COUNT;
    if (relative) {
        if (!nearest) return unknown(r, "model_type", name ? name : "");
        index = index_of(nearest);
        if (index == TYPE_COUNT) return unknown(r, "read_as", nearest);
    }
    *out = (ft_found){types[index], names[index], relative};
    return FT_OK;
}
