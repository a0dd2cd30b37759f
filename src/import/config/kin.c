/* kin.c: llama's kin with one or two turns of their own: granite, helium, smollm3, exaone4, ernie4_5, hunyuan,
 * apertus, the first olmo. */
#include "base/json.h"
#include "import/config/family.h"

static const ft_config_key bias_keys[] = {
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY(FLAG, mlp_bias, "mlp_bias", NULL),
    FT_KEY_END,
};

/* -- granite: multipliers on the embedding, on what both branches add, and on the logits -------------- */

static const ft_arch granite = {
    FT_LLAMA_LIKE,         .norm = FT_RMSNORM,  .embed_scale = 1, .vocab = 32000,       .hidden = 4096,
    .ffn = 11008,          .layers = 32,        .heads = 32,      .max_position = 2048, .scaled_branches = true,
    .scaled_logits = true, .activation = "silu"};
const ft_config_type ft__config_granite = {.preset = &granite, .keys = {ft__llama_keys, bias_keys}};

/* -- helium: the norm's weight in fp32, neighbours rotated, no bias behind attention ------------------- */

static const ft_config_key helium_keys[] = {
    FT_KEY(FLAG, qkv_bias, "attention_bias", NULL),
    FT_KEY(FLAG, key_bias, "attention_bias", NULL),
    FT_KEY(FLAG, mlp_bias, "mlp_bias", NULL),
    FT_KEY_END,
};
static const ft_arch helium = {FT_LLAMA_LIKE,
                               .norm = FT_RMSNORM_WIDE,
                               .embed_scale = 1,
                               .vocab = 48000,
                               .hidden = 2560,
                               .ffn = 7040,
                               .layers = 24,
                               .heads = 20,
                               .kv_heads = 20,
                               .head_dim = 128,
                               .max_position = 4096,
                               .activation = "silu",
                               .rotary_interleaved = true,
                               .rotary_repeats = true,
                               .norm_weight_fp32 = true};
const ft_config_type ft__config_helium = {.preset = &helium, .keys = {ft__llama_keys, helium_keys}};

/* -- smollm3: of four layers the last one has no positions ---------------------------------------------- */

static ft_status finish_smollm3(const ft_reading *r, ft_arch *a)
{
    bool windows = false;
    FT_TRY(ft__config_flag(r, "use_sliding_window", &windows));
    if (windows && !json_is_null(json_object_get(r->config, "sliding_window")) &&
        json_object_get(r->config, "sliding_window"))
        return ft__config_fail(r, FT_E_UNSUPPORTED, "use_sliding_window",
                               "smollm3 with windows in the layers that are not rotated is not modelled");
    return ft__config_turns(r, a);
}

static const ft_arch smollm3 = {FT_LLAMA_LIKE,  .norm = FT_RMSNORM,    .embed_scale = 1,     .vocab = 128256,
                                .hidden = 2048, .ffn = 11008,          .layers = 36,         .heads = 16,
                                .kv_heads = 4,  .max_position = 32768, .activation = "silu", .tied = true};
const ft_config_type ft__config_smollm3 = {
    .preset = &smollm3, .keys = {ft__llama_keys, bias_keys}, .finish = finish_smollm3};

/* -- exaone4: norms behind the branches and on each head; full layers have no positions --------------- */

static const ft_config_key exaone4_keys[] = {FT_KEY(MAYBE, window, "sliding_window", NULL), FT_KEY_END};

/* The pattern is a number, or a word for one ("LLLG"), which goes with a list of layer_types. */
static ft_status finish_exaone4(const ft_reading *r, ft_arch *a)
{
    const json_t *pattern = json_object_get(r->config, "sliding_window_pattern");
    if (json_is_integer(pattern))
        FT_TRY(ft__json_whole(r->config, "sliding_window_pattern", FT_OPTIONAL, 0, 1 << 20, &a->window_every, r->where,
                              r->err));
    a->turn_windowed = a->window > 0;
    return FT_OK;
}

static const ft_arch exaone4 = {FT_LLAMA_LIKE,        .norm = FT_RMSNORM,
                                .embed_scale = 1,     .place = FT_AFTER,
                                .vocab = 102400,      .hidden = 4096,
                                .ffn = 16384,         .layers = 32,
                                .heads = 32,          .kv_heads = 32,
                                .window = 4096,       .max_position = 2048,
                                .activation = "silu", .qk_norm = FT_QK_NORM_HEAD,
                                .window_every = 4};
const ft_config_type ft__config_exaone4 = {
    .preset = &exaone4, .keys = {ft__llama_keys, exaone4_keys}, .finish = finish_exaone4};

/* -- ernie4_5: neighbours rotated in fp32, one switch for all biases ------------------------------------ */

static const ft_config_key ernie_keys[] = {
    FT_KEY_ATTENTION_BIAS("use_bias"),
    FT_KEY(FLAG, mlp_bias, "use_bias", NULL),
    FT_KEY_END,
};

static ft_status finish_ernie(const ft_reading *r, ft_arch *a)
{
    (void)r;
    a->attention_dropout = 0; /* whatever the config says */
    return FT_OK;
}

static const ft_arch ernie4_5 = {FT_LLAMA_LIKE,
                                 .norm = FT_RMSNORM,
                                 .embed_scale = 1,
                                 .vocab = 103424,
                                 .hidden = 1024,
                                 .ffn = 3072,
                                 .layers = 18,
                                 .heads = 16,
                                 .kv_heads = 2,
                                 .head_dim = 128,
                                 .max_position = 131072,
                                 .activation = "silu",
                                 .rotary_interleaved = true,
                                 .rotary_repeats = true,
                                 .rotary_fp32 = true,
                                 .tied = true,
                                 .rotary_tables_fp32 = true};
const ft_config_type ft__config_ernie4_5 = {
    .preset = &ernie4_5, .keys = {ft__llama_keys, ernie_keys}, .finish = finish_ernie};

/* -- hunyuan: each head is normed after it is rotated --------------------------------------------------- */

static const ft_config_key hunyuan_keys[] = {FT_KEY_ATTENTION_BIAS("attention_bias"), FT_KEY_END};
static const ft_arch hunyuan_v1_dense = {FT_LLAMA_LIKE,        .norm = FT_RMSNORM,   .embed_scale = 1,
                                         .vocab = 290943,      .hidden = 4096,       .ffn = 11008,
                                         .layers = 32,         .heads = 32,          .qk_norm_late = true,
                                         .max_position = 2048, .activation = "silu", .qk_norm = FT_QK_NORM_HEAD};
const ft_config_type ft__config_hunyuan_v1_dense = {.preset = &hunyuan_v1_dense,
                                                    .keys = {ft__llama_keys, hunyuan_keys}};

/* -- apertus: xIELU without a gate ------------------------------------------------------------------------ */

static const ft_arch apertus = {.design = FT_DECODER_ONLY,
                                .causal = true,
                                .final_norm = true,
                                .position = FT_ROTARY,
                                .softmax_fp32 = true,
                                .score_scale = true,
                                .loss_fp32 = true,
                                .lm_head = true,
                                .norm = FT_RMSNORM,
                                .embed_scale = 1,
                                .vocab = 131072,
                                .hidden = 4096,
                                .ffn = 14336,
                                .layers = 32,
                                .heads = 32,
                                .max_position = 65536,
                                .activation = "xielu",
                                .qk_norm = FT_QK_NORM_HEAD};
const ft_config_type ft__config_apertus = {.preset = &apertus, .keys = {ft__llama_keys, hunyuan_keys}};

/* -- olmo: layer norms without weights, queries, keys and values within bounds --------------------------- */

static const ft_config_key olmo_keys[] = {
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY(REAL, clip_qkv, "clip_qkv", NULL),
    FT_KEY_END,
};
static const ft_arch olmo = {FT_LLAMA_LIKE,
                             .norm = FT_LAYERNORM_BARE,
                             .embed_scale = 1,
                             .vocab = 50304,
                             .hidden = 4096,
                             .ffn = 11008,
                             .layers = 32,
                             .heads = 32,
                             .max_position = 2048,
                             .activation = "silu",
                             .rotary_tables_fp32 = true};
const ft_config_type ft__config_olmo = {.preset = &olmo, .keys = {ft__llama_keys, olmo_keys}};
