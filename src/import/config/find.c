/* find.c: which architecture a config is, and which one to suggest when it is none of ours. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "import/config/architecture.h"
#include "import/embedded.h"

size_t ft__config_type_count(void) { return ft__architecture_count(); }

const char *ft__config_type_at(size_t index) { return ft__architecture_at(index); }

/* Whose computation comes closest; names alone mislead (deit is no dit, bart no bert). */
static const char *relative_of(const char *name)
{
    static const struct {
        const char *name, *relative;
    } known[] = {
        {"baichuan", "llama"}, {"beit", "vit"}, {"deit", "vit"}, {"grok-1", "mixtral"}, {"internlm2", "llama"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) return known[i].relative;
    const char *all[512];
    size_t count = ft__config_type_count() < 512 ? ft__config_type_count() : 512;
    for (size_t i = 0; i < count; i++) all[i] = ft__config_type_at(i);
    return ft__nearest(name, all, count);
}

/* A type that is known and not modelled: why. */
static ft_status refused(const ft_reading *r, const char *key, const char *name)
{
    for (const struct ft__embedded_refused_type *t = ft__embedded_refused_types; t->name; t++)
        if (!strcmp(name, t->name))
            return ft__config_fail(r, FT_E_UNSUPPORTED, key,
                                   "\"%s\" is not modelled: %s; --read-as TYPE (\"read_as\") reads it as another", name,
                                   t->why);
    return FT_OK;
}

static ft_status unknown(const ft_reading *r, const char *key, const char *name)
{
    const char *relative = relative_of(name);
    int shown = (int)ft__utf8_cut(name, 30);
    FT_TRY(refused(r, key, name));
    if (!relative)
        return ft__config_fail(
            r, FT_E_NAME, key,
            "unknown model_type \"%.*s\"; --read-as TYPE (\"read_as\") reads it as one of %zu that are "
            "known: \"foretell models --types\" lists them",
            shown, name, ft__config_type_count());
    char lost[200];
    ft__config_lost(r, relative, lost, sizeof lost);
    return ft__config_fail(
        r, FT_E_NAME, key,
        "unknown model_type \"%.*s\"; --read-as %s (\"read_as\") reads it as the nearest of %zu that "
        "are known: \"foretell models --types\" lists them%s",
        shown, name, relative, ft__config_type_count(), lost);
}

static const char *const classes[] = {
    "AutoencoderKL",         "AutoencoderKLFlux2",      "AutoencoderKLQwenImage", "AutoencoderKLWan",
    "DiTTransformer2DModel", "Flux2Transformer2DModel", "FluxTransformer2DModel", "QwenImageTransformer2DModel",
    "SD3Transformer2DModel", "UNet2DConditionModel",    "WanTransformer3DModel"};
static const char *const class_types[] = {"autoencoder_kl",
                                          "autoencoder_kl",
                                          "autoencoder_kl_wan",
                                          "autoencoder_kl_wan",
                                          "dit",
                                          "flux2",
                                          "flux",
                                          "qwen_image",
                                          "sd3",
                                          "unet",
                                          "wan"};
enum { CLASSES = sizeof classes / sizeof *classes };

/* A class of diffusers that nobody here knows. */
static ft_status unknown_class(const ft_reading *r, const char *class)
{
    const char *nearest = ft__nearest(class, classes, CLASSES);
    return ft__config_fail(r, FT_E_NAME, "_class_name",
                           "unknown class \"%.*s\" of diffusers%s%s%s; known are AutoencoderKL, AutoencoderKLFlux2, "
                           "AutoencoderKLQwenImage, AutoencoderKLWan, DiTTransformer2DModel, "
                           "Flux2Transformer2DModel, FluxTransformer2DModel, QwenImageTransformer2DModel, "
                           "SD3Transformer2DModel, UNet2DConditionModel, "
                           "WanTransformer3DModel",
                           (int)ft__utf8_cut(class, 40), class, nearest ? "; did you mean \"" : "",
                           nearest ? nearest : "", nearest ? "\"?" : "");
}

/* Diffusers' configs have no model_type but the class: a diffusion transformer where the norms are modulated. */
static const char *diffusers_type(const json_t *config)
{
    const char *class = json_string_value(json_object_get(config, "_class_name"));
    const char *norm = json_string_value(json_object_get(config, "norm_type"));
    if (!class) return NULL;
    for (size_t i = 0; i < CLASSES; i++)
        if (!strcmp(class, classes[i])) return class_types[i];
    if (!strcmp(class, "Transformer2DModel") && norm && !strcmp(norm, "ada_norm_zero")) return "dit";
    return NULL;
}

static bool known_type(const char *name, ft_found *out)
{
    *out = (ft_found){.name = NULL};
    return ft__architecture_text(name, &out->name) != NULL;
}

ft_status ft__config_find(const ft_reading *r, const char *nearest, ft_found *out)
{
    const char *name = diffusers_type(r->config);
    ft_need need = nearest ? FT_OPTIONAL : FT_REQUIRED;
    const char *class = json_string_value(json_object_get(r->config, "_class_name"));
    if (!name && class && !nearest && !json_object_get(r->config, "model_type")) return unknown_class(r, class);
    if (!name) FT_TRY(ft__json_string(r->config, "model_type", need, &name, r->where, r->err));
    size_t length = nearest ? strlen(nearest) : 0;
    if (length > 5 && !strcmp(nearest + length - 5, ".json")) { /* an architecture of the user's own */
        *out = (ft_found){.name = "own", .file = nearest, .relative = true};
        return FT_OK;
    }
    if (name && known_type(name, out)) return FT_OK;
    if (!nearest) return unknown(r, "model_type", name ? name : "");
    if (!known_type(nearest, out)) return unknown(r, "read_as", nearest);
    out->relative = true;
    return FT_OK;
}
