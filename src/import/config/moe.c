/* moe.c: decoders with experts: mixtral, qwen2_moe, qwen3_moe, olmoe, deepseek_v2, deepseek_v3, gpt_oss.
 *
 * Experts are one grouped product (transformers 5.x with torch >= 2.9), except where a class keeps its own loop. */
#include <inttypes.h>

#include "base/json.h"
#include "import/config/family.h"
#include "import/config/type.h"

/* -- mixtral -------------------------------------------------------------------------------------- */

static const ft_config_key mixtral_keys[] = {
    FT_KEY(SIZE, moe_ffn, "intermediate_size", NULL),
    FT_KEY(SIZE, experts, "num_local_experts", "num_experts"),
    FT_KEY(SIZE, topk, "num_experts_per_tok", NULL),
    FT_KEY(MAYBE, window, "sliding_window", NULL),
    FT_KEY_END,
};
static const ft_arch mixtral = {
    FT_LLAMA_LIKE,          .norm = FT_RMSNORM,   .embed_scale = 1, .vocab = 32000, .hidden = 4096,
    .ffn = 14336,           .moe_ffn = 14336,     .layers = 32,     .heads = 32,    .kv_heads = 8,
    .max_position = 131072, .activation = "silu", .experts = 8,     .topk = 2,      .router_renormalised = true,
    .router_wide = true};
const ft_config_type ft__config_mixtral = {.preset = &mixtral, .keys = {ft__llama_keys, mixtral_keys}};

/* -- qwen ----------------------------------------------------------------------------------------- */

static const ft_config_key qwen_moe_keys[] = {
    FT_KEY(SIZE, moe_ffn, "moe_intermediate_size", NULL),
    FT_KEY(MAYBE, shared_ffn, "shared_expert_intermediate_size", NULL),
    FT_KEY(SIZE, experts, "num_experts", "num_local_experts"),
    FT_KEY(SIZE, topk, "num_experts_per_tok", NULL),
    FT_KEY(SIZE, moe_every, "decoder_sparse_step", NULL),
    FT_KEY(MAYBE, window, "sliding_window", NULL),
    FT_KEY_END,
};
static const ft_config_key qwen2_moe_bias_keys[] = {
    FT_KEY(FLAG, qkv_bias, "qkv_bias", NULL),
    FT_KEY(FLAG, key_bias, "qkv_bias", NULL),
    FT_KEY_END,
};
static const ft_config_key qwen3_moe_bias_keys[] = {FT_KEY_ATTENTION_BIAS("attention_bias"), FT_KEY_END};

/* Layers that the config keeps dense, which the graph knows as leading ones. */
static ft_status read_dense_layers(const ft_reading *r, ft_arch *a)
{
    const json_t *list = json_object_get(r->config, "mlp_only_layers");
    if (!list || json_is_null(list)) return FT_OK;
    if (!json_is_array(list))
        return ft__config_fail(r, FT_E_TYPE, "mlp_only_layers", "\"mlp_only_layers\" must be a list of layer numbers");
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count; i++) {
        const json_t *layer = json_array_get(list, i);
        if (!json_is_integer(layer) || json_integer_value(layer) != (json_int_t)i)
            return ft__config_fail(r, FT_E_UNSUPPORTED, "mlp_only_layers",
                                   "dense layers are supported where they are the first ones: 0, 1, ... in order");
    }
    a->first_dense = (int64_t)count;
    return FT_OK;
}

static ft_status finish_qwen_moe(const ft_reading *r, ft_arch *a)
{
    FT_TRY(read_dense_layers(r, a));
    a->shared_experts = a->shared_ffn ? 1 : 0;
    return FT_OK;
}

static const ft_arch qwen2_moe = {FT_LLAMA_LIKE,    .norm = FT_RMSNORM,    .embed_scale = 1,     .vocab = 151936,
                                  .hidden = 2048,   .ffn = 5632,           .layers = 24,         .heads = 16,
                                  .kv_heads = 16,   .max_position = 32768, .activation = "silu", .window = 4096,
                                  .qkv_bias = true, .key_bias = true,      .experts = 60,        .topk = 4,
                                  .moe_ffn = 1408,  .shared_ffn = 5632,    .shared_gate = true,  .moe_every = 1};
const ft_config_type ft__config_qwen2_moe = {
    .preset = &qwen2_moe, .keys = {ft__llama_keys, qwen_moe_keys, qwen2_moe_bias_keys}, .finish = finish_qwen_moe};

static ft_status finish_qwen3_moe(const ft_reading *r, ft_arch *a)
{
    a->shared_ffn = 0;
    return finish_qwen_moe(r, a);
}

static const ft_arch qwen3_moe = {FT_LLAMA_LIKE,
                                  .norm = FT_RMSNORM,
                                  .embed_scale = 1,
                                  .vocab = 151936,
                                  .hidden = 2048,
                                  .ffn = 6144,
                                  .layers = 24,
                                  .heads = 32,
                                  .kv_heads = 4,
                                  .max_position = 32768,
                                  .activation = "silu",
                                  .window = 4096,
                                  .qk_norm = FT_QK_NORM_HEAD,
                                  .experts = 128,
                                  .topk = 8,
                                  .moe_ffn = 768,
                                  .moe_every = 1,
                                  .router_renormalised = true};
const ft_config_type ft__config_qwen3_moe = {
    .preset = &qwen3_moe, .keys = {ft__llama_keys, qwen_moe_keys, qwen3_moe_bias_keys}, .finish = finish_qwen3_moe};

/* -- olmoe: queries and keys are normed over their whole width --------------------------------------- */

static const ft_config_key olmoe_keys[] = {
    FT_KEY(SIZE, moe_ffn, "intermediate_size", NULL),
    FT_KEY(SIZE, experts, "num_experts", "num_local_experts"),
    FT_KEY(SIZE, topk, "num_experts_per_tok", NULL),
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY_END,
};
static const ft_arch olmoe = {FT_LLAMA_LIKE,        .norm = FT_RMSNORM,
                              .embed_scale = 1,     .vocab = 50304,
                              .hidden = 2048,       .ffn = 2048,
                              .moe_ffn = 2048,      .layers = 16,
                              .heads = 16,          .max_position = 4096,
                              .activation = "silu", .qk_norm = FT_QK_NORM_FULL,
                              .experts = 64,        .topk = 8};
const ft_config_type ft__config_olmoe = {.preset = &olmoe, .keys = {ft__llama_keys, olmoe_keys}};

/* -- deepseek: latent attention, shared experts as one MLP, the first layers dense --------------------- */

static const ft_config_key deepseek_keys[] = {
    FT_KEY(SIZE, moe_ffn, "moe_intermediate_size", NULL),
    FT_KEY(MAYBE, experts, "n_routed_experts", "num_local_experts"),
    FT_KEY(MAYBE, shared_experts, "n_shared_experts", NULL),
    FT_KEY(MAYBE, topk, "num_experts_per_tok", NULL),
    FT_KEY(MAYBE, first_dense, "first_k_dense_replace", NULL),
    FT_KEY(MAYBE, expert_groups, "n_group", NULL),
    FT_KEY(MAYBE, q_lora, "q_lora_rank", NULL),
    FT_KEY(SIZE, kv_lora, "kv_lora_rank", NULL),
    FT_KEY(SIZE, nope_dim, "qk_nope_head_dim", NULL),
    FT_KEY(SIZE, rope_dim, "qk_rope_head_dim", NULL),
    FT_KEY(SIZE, v_dim, "v_head_dim", NULL),
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY(FLAG, mlp_bias, "mlp_bias", NULL),
    FT_KEY_END,
};

/* Configs call the rotated part head_dim, or repeat hidden / heads there; what attention sees is both parts. Keys are
 * expanded to all heads whatever num_key_value_heads says. */
static ft_status finish_deepseek(const ft_reading *r, ft_arch *a)
{
    a->head_dim = a->nope_dim + a->rope_dim;
    a->kv_heads = a->heads;
    if (a->rope_dim % 2)
        return ft__config_fail(r, FT_E_RANGE, "qk_rope_head_dim", "rotary positions turn pairs: %" PRId64 " is odd",
                               a->rope_dim);
    if (a->shared_experts > 1000000 || a->shared_experts * a->moe_ffn > ((int64_t)1 << 40))
        return ft__config_fail(r, FT_E_RANGE, "n_shared_experts", "%" PRId64 " shared experts are too many",
                               a->shared_experts);
    a->shared_ffn = a->shared_experts * a->moe_ffn;
    return FT_OK;
}

#define DEEPSEEK_LIKE                                                                                           \
    FT_LLAMA_LIKE, .norm = FT_RMSNORM, .embed_scale = 1, .activation = "silu", .kv_lora = 512, .nope_dim = 128, \
                   .rope_dim = 64, .v_dim = 128, .q_lora = 1536, .router_fp32 = true, .moe_every = 1,           \
                   .rotary_interleaved = true

static const ft_arch deepseek_v2 = {DEEPSEEK_LIKE,       .vocab = 102400, .hidden = 4096,       .ffn = 11008,
                                    .layers = 32,        .heads = 32,     .max_position = 2048, .experts = 64,
                                    .shared_experts = 2, .moe_ffn = 1407};
const ft_config_type ft__config_deepseek_v2 = {
    .preset = &deepseek_v2, .keys = {ft__llama_keys, deepseek_keys}, .finish = finish_deepseek};

/* The extra layer that predicts a second token is left out, as the library leaves it out. */
static const ft_arch deepseek_v3 = {
    DEEPSEEK_LIKE, .vocab = 129280,      .hidden = 7168,     .ffn = 18432,          .layers = 61,
    .heads = 128,  .max_position = 4096, .experts = 256,     .shared_experts = 1,   .moe_ffn = 2048,
    .topk = 8,     .first_dense = 3,     .expert_groups = 8, .router_sigmoid = true};
const ft_config_type ft__config_deepseek_v3 = {
    .preset = &deepseek_v3, .keys = {ft__llama_keys, deepseek_keys}, .finish = finish_deepseek};

/* -- gpt_oss -------------------------------------------------------------------------------------- */

static const ft_config_key gpt_oss_keys[] = {
    FT_KEY(SIZE, moe_ffn, "intermediate_size", NULL),
    FT_KEY(SIZE, experts, "num_local_experts", "num_experts"),
    FT_KEY(SIZE, topk, "num_experts_per_tok", "experts_per_token"),
    FT_KEY(MAYBE, window, "sliding_window", NULL),
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY_END,
};
static const ft_arch gpt_oss = {FT_ROTARY_DECODER,
                                .gated = true,
                                .norm = FT_RMSNORM_WIDE,
                                .embed_scale = 1,
                                .vocab = 201088,
                                .hidden = 2880,
                                .ffn = 2880,
                                .moe_ffn = 2880,
                                .layers = 36,
                                .heads = 64,
                                .kv_heads = 8,
                                .head_dim = 64,
                                .max_position = 131072,
                                .activation = "silu",
                                .window = 128,
                                .window_every = 2,
                                .qkv_bias = true,
                                .key_bias = true,
                                .out_bias = true,
                                .sinks = true,
                                .no_sdpa = true,
                                .experts = 128,
                                .topk = 4,
                                .router_bias = true,
                                .expert_bias = true};
const ft_config_type ft__config_gpt_oss = {.preset = &gpt_oss, .keys = {ft__llama_keys, gpt_oss_keys}};
