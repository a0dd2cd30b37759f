/* vision.c: pictures and what is no transformer: vit, clip, resnet, convnext, diffusion transformers, mamba2. */
#include <inttypes.h>

#include "base/json.h"
#include "import/config/type.h"

/* -- vit ------------------------------------------------------------------------------------------ */

static const ft_config_key vit_keys[] = {
    FT_KEY(SIZE, hidden, "hidden_size", NULL),
    FT_KEY(LAYERS, layers, "num_hidden_layers", NULL),
    FT_KEY(SIZE, heads, "num_attention_heads", NULL),
    FT_KEY(SIZE, ffn, "intermediate_size", NULL),
    FT_KEY(ACTIVATION, activation, "hidden_act", NULL),
    FT_KEY(SHARE, embed_dropout, "hidden_dropout_prob", NULL),
    FT_KEY(SHARE, residual_dropout, "hidden_dropout_prob", NULL),
    FT_KEY(SHARE, mlp_dropout, "hidden_dropout_prob", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_probs_dropout_prob", NULL),
    FT_KEY(SIZE, image, "image_size", NULL),
    FT_KEY(SIZE, patch, "patch_size", NULL),
    FT_KEY(SIZE, channels, "num_channels", NULL),
    FT_KEY(FLAG, qkv_bias, "qkv_bias", NULL),
    FT_KEY(FLAG, key_bias, "qkv_bias", NULL),
    FT_KEY_END,
};

static const int64_t largest_image = 65536;

static ft_status check_patches(const ft_reading *r, ft_arch *a)
{
    if (a->image > largest_image)
        return ft__config_fail(r, FT_E_RANGE, ft__config_word(r, offsetof(ft_arch, image), "image_size"),
                               "pictures of %" PRId64 " pixels a side; at most %" PRId64 " are supported", a->image,
                               largest_image);
    if (a->patch > a->image)
        return ft__config_fail(r, FT_E_RANGE, "patch_size", "patches of %" PRId64 " in pictures of %" PRId64 " pixels",
                               a->patch, a->image);
    int64_t side = a->image / a->patch;                   /* the library cuts the rest off */
    a->max_position = a->position_rows = side * side + 1; /* and the class's token */
    return FT_OK;
}

static const ft_arch vit = {.design = FT_VIT,
                            .hidden = 768,
                            .layers = 12,
                            .heads = 12,
                            .ffn = 3072,
                            .activation = "gelu",
                            .image = 224,
                            .patch = 16,
                            .channels = 3,
                            .qkv_bias = true,
                            .key_bias = true,
                            .out_bias = true,
                            .mlp_bias = true,
                            .norm = FT_LAYERNORM,
                            .norm_bias = true,
                            .final_norm = true,
                            .position = FT_LEARNED_POSITION,
                            .embed_scale = 1,
                            .softmax_fp32 = true,
                            .score_scale = true};
const ft_config_type ft__config_vit = {.preset = &vit, .keys = {vit_keys}, .finish = check_patches};

/* -- clip: the text tower in the fields that decoders use, the other in vision_* ----------------------- */

static const ft_config_key clip_keys[] = {FT_KEY(SIZE, projection, "projection_dim", NULL), FT_KEY_END};
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

static ft_status finish_clip(const ft_reading *r, ft_arch *a)
{
    FT_TRY(read_tower(r, "text_config", clip_text_keys, a));
    FT_TRY(read_tower(r, "vision_config", clip_vision_keys, a));
    int64_t words = a->max_position;
    FT_TRY(check_patches(r, a));
    a->max_position = a->position_rows = words;
    if (a->vision_hidden % a->vision_heads)
        return ft__config_fail(r, FT_E_RANGE, "vision_config.num_attention_heads",
                               "hidden_size %" PRId64 " is not a multiple of num_attention_heads %" PRId64,
                               a->vision_hidden, a->vision_heads);
    return FT_OK;
}

static const ft_arch clip = {.design = FT_CLIP,
                             .causal = true,
                             .vocab = 49408,
                             .hidden = 512,
                             .ffn = 2048,
                             .layers = 12,
                             .heads = 8,
                             .max_position = 77,
                             .activation = "quick_gelu",
                             .vision_hidden = 768,
                             .vision_ffn = 3072,
                             .vision_layers = 12,
                             .vision_heads = 12,
                             .image = 224,
                             .patch = 32,
                             .channels = 3,
                             .projection = 512,
                             .qkv_bias = true,
                             .key_bias = true,
                             .out_bias = true,
                             .mlp_bias = true,
                             .norm = FT_LAYERNORM,
                             .norm_bias = true,
                             .final_norm = true,
                             .position = FT_LEARNED_POSITION,
                             .embed_scale = 1,
                             .softmax_fp32 = true,
                             .score_scale = true};
const ft_config_type ft__config_clip = {.preset = &clip, .keys = {clip_keys}, .finish = finish_clip};

/* -- convolutions ---------------------------------------------------------------------------------- */

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
                               "pictures of %" PRId64 " pixels a side; at most %" PRId64 " are supported", a->image,
                               largest_image);
    return FT_OK;
}

static const ft_config_key resnet_keys[] = {
    FT_KEY(SIZE, channels, "num_channels", NULL),
    FT_KEY(SIZE, stem_width, "embedding_size", NULL),
    FT_KEY(SIZE, image, "image_size", NULL), /* not the library's: without it 224 */
    FT_KEY(ACTIVATION, activation, "hidden_act", NULL),
    FT_KEY(FLAG, stride_first_stage, "downsample_in_first_stage", NULL),
    FT_KEY(FLAG, stride_on_1x1, "downsample_in_bottleneck", NULL),
    FT_KEY_END,
};

static ft_status finish_resnet(const ft_reading *r, ft_arch *a)
{
    const char *kind = NULL;
    FT_TRY(ft__json_string(r->config, "layer_type", FT_OPTIONAL, &kind, r->where, r->err));
    if (kind && kind[0] == 'b' && kind[1] == 'a')
        a->bottleneck = false;
    else if (kind && !(kind[0] == 'b' && kind[1] == 'o'))
        return ft__config_fail(r, FT_E_NAME, "layer_type", "\"layer_type\" must be \"basic\" or \"bottleneck\"");
    return read_stages(r, a);
}

static const ft_arch resnet = {.design = FT_RESNET,
                               .channels = 3,
                               .stem_width = 64,
                               .image = 224,
                               .stages = 4,
                               .depth = {3, 4, 6, 3},
                               .width = {256, 512, 1024, 2048},
                               .activation = "relu",
                               .bottleneck = true};
const ft_config_type ft__config_resnet = {.preset = &resnet, .keys = {resnet_keys}, .finish = finish_resnet};

static const ft_config_key convnext_keys[] = {
    FT_KEY(SIZE, channels, "num_channels", NULL),
    FT_KEY(SIZE, patch, "patch_size", NULL),
    FT_KEY(SIZE, image, "image_size", NULL),
    FT_KEY(ACTIVATION, activation, "hidden_act", NULL),
    FT_KEY_END,
};

static ft_status finish_convnext(const ft_reading *r, ft_arch *a)
{
    double scale = 1e-6;
    FT_TRY(ft__json_number(r->config, "layer_scale_init_value", FT_OPTIONAL, -1e9, 1e9, &scale, r->where, r->err));
    a->layer_scale = scale > 0;
    FT_TRY(read_stages(r, a));
    a->stem_width = a->width[0];
    return FT_OK;
}

static const ft_arch convnext = {.design = FT_CONVNEXT,
                                 .channels = 3,
                                 .patch = 4,
                                 .image = 224,
                                 .stages = 4,
                                 .depth = {3, 3, 9, 3},
                                 .width = {96, 192, 384, 768},
                                 .activation = "gelu",
                                 .norm = FT_LAYERNORM,
                                 .norm_bias = true,
                                 .mlp_bias = true};
const ft_config_type ft__config_convnext = {.preset = &convnext, .keys = {convnext_keys}, .finish = finish_convnext};

/* -- diffusion transformer, in diffusers' words ------------------------------------------------------ */

static const ft_config_key dit_keys[] = {
    FT_KEY(SIZE, heads, "num_attention_heads", NULL),
    FT_KEY(SIZE, head_dim, "attention_head_dim", NULL),
    FT_KEY(LAYERS, layers, "num_layers", NULL),
    FT_KEY(SIZE, channels, "in_channels", NULL),
    FT_KEY(MAYBE, out_channels, "out_channels", NULL),
    FT_KEY(SIZE, image, "sample_size", NULL),
    FT_KEY(SIZE, patch, "patch_size", NULL),
    FT_KEY(SIZE, labels, "num_embeds_ada_norm", NULL),
    FT_KEY(ACTIVATION, activation, "activation_fn", NULL),
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY_END,
};

static ft_status finish_dit(const ft_reading *r, ft_arch *a)
{
    if (a->heads > ((int64_t)1 << 31) / a->head_dim)
        return ft__config_fail(r, FT_E_RANGE, "num_attention_heads",
                               "%" PRId64 " heads of %" PRId64 " are wider than 2^31", a->heads, a->head_dim);
    a->hidden = a->heads * a->head_dim;
    if (!a->out_channels) a->out_channels = a->channels;
    FT_TRY(check_patches(r, a));
    a->max_position -= 1; /* no class token; positions are a fixed table of sines */
    a->position_rows = 0;
    return FT_OK;
}

static const ft_arch dit = {.design = FT_DIFFUSION,
                            .heads = 16,
                            .head_dim = 72,
                            .layers = 28,
                            .channels = 4,
                            .image = 32,
                            .patch = 2,
                            .labels = 1000,
                            .activation = "gelu_pytorch_tanh",
                            .qkv_bias = true,
                            .key_bias = true,
                            .out_bias = true,
                            .mlp_bias = true,
                            .norm = FT_LAYERNORM,
                            .position = FT_SINUSOIDAL,
                            .embed_scale = 1,
                            .score_scale = true};
const ft_config_type ft__config_dit = {.preset = &dit, .keys = {dit_keys}, .finish = finish_dit};

/* -- mamba2 --------------------------------------------------------------------------------------- */

static const ft_config_key mamba2_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, hidden, "hidden_size", "d_model"),
    FT_KEY(LAYERS, layers, "num_hidden_layers", "n_layer"),
    FT_KEY(SIZE, heads, "num_heads", NULL),
    FT_KEY(SIZE, head_dim, "head_dim", NULL),
    FT_KEY(SIZE, state, "state_size", NULL),
    FT_KEY(SIZE, expand, "expand", NULL),
    FT_KEY(SIZE, conv_kernel, "conv_kernel", NULL),
    FT_KEY(SIZE, groups, "n_groups", NULL),
    FT_KEY(SIZE, chunk, "chunk_size", NULL),
    FT_KEY(ACTIVATION, activation, "hidden_act", NULL),
    FT_KEY(FLAG, qkv_bias, "use_bias", NULL),
    FT_KEY(FLAG, out_bias, "use_bias", NULL),
    FT_KEY(FLAG, conv_bias, "use_conv_bias", NULL),
    FT_KEY(FLAG, residual_fp32, "residual_in_fp32", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};

static ft_status finish_mamba2(const ft_reading *r, ft_arch *a)
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

static const ft_arch mamba2 = {.design = FT_STATE_SPACE,
                               .causal = true,
                               .vocab = 32768,
                               .hidden = 4096,
                               .layers = 64,
                               .heads = 128,
                               .head_dim = 64,
                               .state = 128,
                               .expand = 2,
                               .conv_kernel = 4,
                               .groups = 8,
                               .chunk = 256,
                               .activation = "silu",
                               .conv_bias = true,
                               .residual_fp32 = true,
                               .norm = FT_RMSNORM,
                               .final_norm = true,
                               .embed_scale = 1,
                               .max_position = 2048,
                               .loss_fp32 = true,
                               .lm_head = true};
const ft_config_type ft__config_mamba2 = {.preset = &mamba2, .keys = {mamba2_keys}, .finish = finish_mamba2};
