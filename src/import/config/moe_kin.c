/* moe_kin.c: further mixtures of experts: glm4_moe, granitemoe, ernie4_5_moe, hunyuan_v1_moe, phimoe. */
#include <inttypes.h>

#include "base/json.h"
#include "import/config/family.h"

/* Shared experts are one MLP of so many times an expert's width. */
static ft_status share(const ft_reading *r, const char *key, ft_arch *a)
{
    if (a->shared_experts > 1000000 || a->shared_experts * a->moe_ffn > ((int64_t)1 << 40))
        return ft__config_fail(r, FT_E_RANGE, key, "%" PRId64 " shared experts are too many", a->shared_experts);
    a->shared_ffn = a->shared_experts * a->moe_ffn;
    return FT_OK;
}

/* -- glm4_moe: deepseek's experts behind grouped attention ------------------------------------------ */

static const ft_config_key glm4_moe_keys[] = {
    FT_KEY(SIZE, moe_ffn, "moe_intermediate_size", NULL),
    FT_KEY(SIZE, experts, "n_routed_experts", "num_local_experts"),
    FT_KEY(MAYBE, shared_experts, "n_shared_experts", NULL),
    FT_KEY(SIZE, topk, "num_experts_per_tok", NULL),
    FT_KEY(MAYBE, first_dense, "first_k_dense_replace", NULL),
    FT_KEY(SIZE, expert_groups, "n_group", NULL),
    FT_KEY(FLAG, qkv_bias, "attention_bias", NULL),
    FT_KEY(FLAG, key_bias, "attention_bias", NULL),
    FT_KEY_END,
};

static ft_status finish_glm4_moe(const ft_reading *r, ft_arch *a)
{
    bool normed = false;
    FT_TRY(ft__config_flag(r, "use_qk_norm", &normed));
    if (normed) a->qk_norm = FT_QK_NORM_HEAD;
    return share(r, "n_shared_experts", a);
}

static const ft_arch glm4_moe = {FT_LLAMA_LIKE,      .norm = FT_RMSNORM,     .embed_scale = 1,      .vocab = 151552,
                                 .hidden = 4096,     .ffn = 10944,           .layers = 46,          .heads = 96,
                                 .kv_heads = 8,      .max_position = 131072, .activation = "silu",  .experts = 128,
                                 .topk = 8,          .moe_ffn = 1408,        .shared_experts = 1,   .first_dense = 1,
                                 .expert_groups = 1, .router_fp32 = true,    .router_sigmoid = true};
const ft_config_type ft__config_glm4_moe = {
    .preset = &glm4_moe, .keys = {ft__llama_keys, glm4_moe_keys}, .rotary_share = 0.5, .finish = finish_glm4_moe};

/* -- granitemoe: granite's multipliers around experts --------------------------------------------------- */

static const ft_config_key granitemoe_keys[] = {
    FT_KEY(SIZE, moe_ffn, "intermediate_size", NULL),
    FT_KEY(SIZE, experts, "num_local_experts", "num_experts"),
    FT_KEY(SIZE, topk, "num_experts_per_tok", NULL),
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY_END,
};
static const ft_arch granitemoe = {FT_LLAMA_LIKE,
                                   .norm = FT_RMSNORM,
                                   .embed_scale = 1,
                                   .vocab = 32000,
                                   .hidden = 4096,
                                   .ffn = 11008,
                                   .moe_ffn = 11008,
                                   .layers = 32,
                                   .heads = 32,
                                   .max_position = 2048,
                                   .activation = "silu",
                                   .scaled_branches = true,
                                   .scaled_logits = true,
                                   .experts = 8,
                                   .topk = 2,
                                   .routing = FT_ROUTE_BEST_FIRST};
const ft_config_type ft__config_granitemoe = {.preset = &granitemoe, .keys = {ft__llama_keys, granitemoe_keys}};

/* -- ernie4_5_moe ------------------------------------------------------------------------------------------ */

static const ft_config_key ernie_moe_keys[] = {
    FT_KEY(SIZE, moe_ffn, "moe_intermediate_size", NULL),
    FT_KEY(SIZE, experts, "moe_num_experts", "num_experts"),
    FT_KEY(MAYBE, shared_experts, "moe_num_shared_experts", NULL),
    FT_KEY(SIZE, topk, "moe_k", "num_experts_per_tok"),
    FT_KEY(MAYBE, first_dense, "moe_layer_start_index", NULL),
    FT_KEY(SIZE, moe_every, "moe_layer_interval", NULL),
    FT_KEY_ATTENTION_BIAS("use_bias"),
    FT_KEY(FLAG, mlp_bias, "use_bias", NULL),
    FT_KEY_END,
};

/* Experts stand in every so many layers from one to another. */
static ft_status finish_ernie_moe(const ft_reading *r, ft_arch *a)
{
    static const char last_key[] = "moe_layer_end_index";
    int64_t last = -1;
    if (!json_is_null(json_object_get(r->config, last_key)))
        FT_TRY(ft__json_whole(r->config, last_key, FT_OPTIONAL, -1, 1 << 30, &last, r->where, r->err));
    if (last >= 0 && last < a->layers - 1)
        return ft__config_fail(r, FT_E_UNSUPPORTED, last_key,
                               "dense layers behind those with experts are not modelled");
    if (a->moe_every > 1 && a->first_dense >= a->moe_every)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "moe_layer_start_index",
                               "experts in every so many layers are modelled from the first such layer on");
    if (a->moe_every > 1) a->first_dense = 0;
    a->attention_dropout = 0; /* whatever the config says */
    return share(r, "moe_num_shared_experts", a);
}

static const ft_arch ernie4_5_moe = {FT_LLAMA_LIKE,
                                     .norm = FT_RMSNORM,
                                     .embed_scale = 1,
                                     .vocab = 103424,
                                     .hidden = 2560,
                                     .ffn = 12288,
                                     .layers = 28,
                                     .heads = 20,
                                     .kv_heads = 4,
                                     .max_position = 131072,
                                     .activation = "silu",
                                     .rotary_interleaved = true,
                                     .rotary_repeats = true,
                                     .rotary_fp32 = true,
                                     .tied = true,
                                     .experts = 64,
                                     .topk = 6,
                                     .moe_ffn = 1536,
                                     .shared_experts = 2,
                                     .first_dense = 1,
                                     .moe_every = 1,
                                     .router_fp32 = true,
                                     .rotary_tables_fp32 = true,
                                     .routing = FT_ROUTE_CORRECTED};
const ft_config_type ft__config_ernie4_5_moe = {
    .preset = &ernie4_5_moe, .keys = {ft__llama_keys, ernie_moe_keys}, .finish = finish_ernie_moe};

/* -- hunyuan_v1_moe: beside the experts an MLP of their width ---------------------------------------------- */

static const ft_config_key hunyuan_moe_keys[] = {
    FT_KEY(SIZE, moe_ffn, "intermediate_size", NULL),
    FT_KEY(SIZE, experts, "num_experts", "num_local_experts"),
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY_END,
};

/* How many experts a token visits: one number, or the same one for every layer. */
static ft_status finish_hunyuan_moe(const ft_reading *r, ft_arch *a)
{
    static const char key[] = "moe_topk";
    const json_t *said = json_object_get(r->config, key);
    size_t count = json_array_size(said);
    a->shared_ffn = a->moe_ffn;
    a->shared_experts = 1;
    if (!json_is_array(said))
        return ft__json_whole(r->config, key, FT_OPTIONAL, 1, 1 << 20, &a->topk, r->where, r->err);
    for (size_t i = 0; i < count; i++)
        if (!json_is_integer(json_array_get(said, i)) ||
            json_integer_value(json_array_get(said, i)) != json_integer_value(json_array_get(said, 0)))
            return ft__config_fail(r, FT_E_UNSUPPORTED, key,
                                   "layers that visit different numbers of experts are not "
                                   "modelled");
    a->topk = count ? json_integer_value(json_array_get(said, 0)) : 0;
    if (a->topk >= 1) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, key, "\"%s\" must hold whole numbers from 1 on", key);
}

static const ft_arch hunyuan_v1_moe = {FT_LLAMA_LIKE,
                                       .norm = FT_RMSNORM,
                                       .embed_scale = 1,
                                       .vocab = 290943,
                                       .hidden = 4096,
                                       .ffn = 11008,
                                       .moe_ffn = 11008,
                                       .layers = 32,
                                       .heads = 32,
                                       .max_position = 2048,
                                       .activation = "silu",
                                       .qk_norm = FT_QK_NORM_HEAD,
                                       .qk_norm_late = true,
                                       .experts = 1,
                                       .topk = 1,
                                       .router_fp32 = true,
                                       .router_renormalised = true,
                                       .router_wide = true};
const ft_config_type ft__config_hunyuan_v1_moe = {
    .preset = &hunyuan_v1_moe, .keys = {ft__llama_keys, hunyuan_moe_keys}, .finish = finish_hunyuan_moe};

/* -- phimoe: layer norms, biases, two experts by SparseMixer -------------------------------------------- */

static const ft_config_key phimoe_keys[] = {
    FT_KEY(SIZE, moe_ffn, "intermediate_size", NULL),
    FT_KEY(SIZE, experts, "num_local_experts", "num_experts"),
    FT_KEY(MAYBE, window, "sliding_window", NULL),
    FT_KEY(SHARE, router_jitter, "input_jitter_noise", NULL),
    FT_KEY(FLAG, head_bias, "lm_head_bias", NULL),
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY_END,
};
static const ft_arch phimoe = {FT_LLAMA_LIKE,
                               .norm = FT_LAYERNORM,
                               .norm_bias = true,
                               .embed_scale = 1,
                               .vocab = 32064,
                               .hidden = 4096,
                               .ffn = 6400,
                               .moe_ffn = 6400,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 8,
                               .max_position = 131072,
                               .activation = "silu",
                               .experts = 16,
                               .topk = 2 /* whatever the config says */,
                               .routing = FT_ROUTE_MIXER};
const ft_config_type ft__config_phimoe = {.preset = &phimoe, .keys = {ft__llama_keys, phimoe_keys}};
