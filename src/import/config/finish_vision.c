/* finish_vision.c: what a table cannot say of images and of what is no transformer. */
#include <inttypes.h>

#include "base/json.h"
#include "import/config/finish.h"

static const int64_t largest_image = 65536;

ft_status ft__finish_vit(const ft_reading *r, ft_arch *a)
{
    if (a->image > largest_image)
        return ft__config_fail(r, FT_E_RANGE, ft__config_word(r, offsetof(ft_arch, image), "image_size"),
                               "images of %" PRId64 " pixels a side; at most %" PRId64 " are supported", a->image,
                               largest_image);
    if (a->patch > a->image)
        return ft__config_fail(r, FT_E_RANGE, "patch_size", "patches of %" PRId64 " in images of %" PRId64 " pixels",
                               a->patch, a->image);
    FT_TRY(ft__config_ratio(r, a));
    if (a->ffn_ratio > 0 && a->hidden < (1 << 24)) { /* in place of a width */
        a->ffn = (int64_t)(a->ffn_ratio * (double)a->hidden);
        if (a->ffn_two_thirds) a->ffn = (a->ffn * 2 / 3 + 7) / 8 * 8;
    }
    int64_t side = a->image / a->patch; /* the library cuts the rest off; the class has a token too */
    a->max_position = a->position_rows = side * side + (a->class_absent ? 0 : 1);
    return FT_OK;
}

static const ft_config_key clip_text_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, hidden, "hidden_size", NULL),
    FT_KEY(SIZE, ffn, "intermediate_size", NULL),
    FT_KEY(LAYERS, layers, "num_hidden_layers", NULL),
    FT_KEY(SIZE, heads, "num_attention_heads", NULL),
    FT_KEY(SIZE, max_position, "max_position_embeddings", NULL),
    FT_KEY(ACTIVATION, activation, "hidden_act", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_dropout", NULL),
    FT_KEY_END,
};
static const ft_config_key clip_vision_keys[] = {
    FT_KEY(SIZE, vision_hidden, "hidden_size", NULL),
    FT_KEY(SIZE, vision_ffn, "intermediate_size", NULL),
    FT_KEY(LAYERS, vision_layers, "num_hidden_layers", NULL),
    FT_KEY(SIZE, vision_heads, "num_attention_heads", NULL),
    FT_KEY(SIZE, image, "image_size", NULL),
    FT_KEY(SIZE, patch, "patch_size", NULL),
    FT_KEY(SIZE, channels, "num_channels", NULL),
    FT_KEY_END,
};

/* A tower read by itself: sizes that are refused are refused under its own path. */
static ft_status read_tower(const ft_reading *r, const char *name, const ft_config_key *keys, ft_arch *a)
{
    ft_reading inside;
    ft_config_path path;
    const json_t *given = json_object_get(r->config, name);
    if (!given || json_is_null(given)) return FT_OK;
    if (!ft__config_inside(r, name, &inside, path))
        return ft__config_fail(r, FT_E_TYPE, name, "\"%s\" must be an object: one tower's config", name);
    return ft__config_keys(&inside, keys, a);
}

ft_status ft__finish_clip(const ft_reading *r, ft_arch *a)
{
    FT_TRY(read_tower(r, "text_config", clip_text_keys, a));
    FT_TRY(read_tower(r, "vision_config", clip_vision_keys, a));
    int64_t words = a->max_position;
    FT_TRY(ft__finish_vit(r, a));
    a->max_position = a->position_rows = words;
    if (a->vision_hidden % a->vision_heads)
        return ft__config_fail(r, FT_E_RANGE, "vision_config.num_attention_heads",
                               "hidden_size %" PRId64 " is not a multiple of num_attention_heads %" PRId64,
                               a->vision_hidden, a->vision_heads);
    return FT_OK;
}

static ft_status read_stages(const ft_reading *r, ft_arch *a)
{
    int64_t depths = a->stages, widths = a->stages;
    FT_TRY(ft__config_sizes(r, "depths", a->depth, &depths));
    FT_TRY(ft__config_sizes(r, "hidden_sizes", a->width, &widths));
    if (depths != widths)
        return ft__config_fail(r, FT_E_RANGE, "hidden_sizes",
                               "%" PRId64 " stages in hidden_sizes and %" PRId64 " in depths", widths, depths);
    a->stages = depths;
    for (int64_t i = depths; i < FT_MAX_STAGES; i++) a->depth[i] = a->width[i] = 0;
    a->layers = 0;
    for (int64_t i = 0; i < depths; i++) a->layers += a->depth[i];
    if (a->image > largest_image)
        return ft__config_fail(r, FT_E_RANGE, "image_size",
                               "images of %" PRId64 " pixels a side; at most %" PRId64 " are supported", a->image,
                               largest_image);
    return FT_OK;
}

ft_status ft__finish_resnet(const ft_reading *r, ft_arch *a)
{
    const char *kind = NULL;
    FT_TRY(ft__json_string(r->config, "layer_type", FT_OPTIONAL, &kind, r->where, r->err));
    if (kind && kind[0] == 'b' && kind[1] == 'a')
        a->bottleneck = false;
    else if (kind && !(kind[0] == 'b' && kind[1] == 'o'))
        return ft__config_fail(r, FT_E_NAME, "layer_type", "\"layer_type\" must be \"basic\" or \"bottleneck\"");
    return read_stages(r, a);
}

ft_status ft__finish_convnext(const ft_reading *r, ft_arch *a)
{
    double scale = 1e-6;
    FT_TRY(ft__json_number(r->config, "layer_scale_init_value", FT_OPTIONAL, -1e9, 1e9, &scale, r->where, r->err));
    a->layer_scale = scale > 0;
    FT_TRY(read_stages(r, a));
    a->stem_width = a->width[0];
    return FT_OK;
}

ft_status ft__finish_dit(const ft_reading *r, ft_arch *a)
{
    if (a->heads > ((int64_t)1 << 31) / a->head_dim)
        return ft__config_fail(r, FT_E_RANGE, "num_attention_heads",
                               "%" PRId64 " heads of %" PRId64 " are wider than 2^31", a->heads, a->head_dim);
    a->hidden = a->heads * a->head_dim;
    if (!a->out_channels) a->out_channels = a->channels;
    FT_TRY(ft__finish_vit(r, a));
    a->max_position -= 1; /* no class token; positions are a fixed table of sines */
    a->position_rows = 0;
    return FT_OK;
}

ft_status ft__finish_mamba2(const ft_reading *r, ft_arch *a)
{
    double inner = (double)a->hidden * (double)a->expand;
    if ((double)a->heads * (double)a->head_dim != inner)
        return ft__config_fail(r, FT_E_RANGE, "num_heads",
                               "num_heads %" PRId64 " of head_dim %" PRId64 " must make hidden_size * expand = %.0f",
                               a->heads, a->head_dim, inner);
    if (a->heads % a->groups)
        return ft__config_fail(r, FT_E_RANGE, "n_groups", "n_groups %" PRId64 " must divide num_heads %" PRId64,
                               a->groups, a->heads);
    a->ffn = a->heads * a->head_dim; /* the inner width */
    return FT_OK;
}

/* The projector behind FastViT-MCI3, whose width is the language model's: two products. What the file says beside it is
 * the tower. */
ft_status ft__finish_fast_vlm(const ft_reading *r, ft_arch *a)
{
    const double seen = 3072, hidden = (double)a->hidden;
    (void)r;
    a->beside += hidden * (seen + 1) + hidden * (hidden + 1);
    return FT_OK;
}

/* As many parameters again as the tower of images has: CLIP's, with a class, positions and norms at both ends. */
ft_status ft__finish_second_tower(const ft_reading *r, ft_arch *a)
{
    const double h = (double)a->tower_hidden, f = (double)a->tower_ffn, p = (double)a->tower_patch;
    const double side = (double)(a->tower_patch > 0 ? a->tower_size / a->tower_patch : 0);
    (void)r;
    a->beside += (double)a->tower_layers * (4 * h * h + 2 * h * f + 9 * h + f) + (3 * p * p + side * side + 6) * h;
    return FT_OK;
}
