/* llama4.c: the language model of Llama 4; its eyes work only when pictures are given. */
#include "base/json.h"
#include "import/config/family.h"

static const ft_config_key llama4_keys[] = {
    FT_KEY(SIZE, moe_ffn, "intermediate_size", NULL),
    FT_KEY(SIZE, ffn, "intermediate_size_mlp", NULL),
    FT_KEY(SIZE, experts, "num_local_experts", NULL),
    FT_KEY(SIZE, topk, "num_experts_per_tok", NULL),
    FT_KEY(SIZE, moe_every, "interleave_moe_layer_step", NULL),
    FT_KEY(MAYBE, window, "attention_chunk_size", NULL),
    FT_KEY(FLAG, temperature, "attn_temperature_tuning", NULL),
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY_END,
};

/* Which layers have experts, where a list says so: it must be what the step would give. */
static ft_status check_layers(const ft_reading *r, const ft_arch *a)
{
    const json_t *list = json_object_get(r->config, "moe_layers");
    if (!json_is_array(list)) return FT_OK;
    size_t count = json_array_size(list);
    bool right = (int64_t)count == a->layers / a->moe_every;
    for (size_t i = 0; i < count && right; i++)
        right = json_integer_value(json_array_get(list, i)) == (json_int_t)((int64_t)(i + 1) * a->moe_every - 1);
    if (right) return FT_OK;
    return ft__config_fail(r, FT_E_UNSUPPORTED, "moe_layers",
                           "experts are modelled in every layer or at equal distances: the list is not what "
                           "\"interleave_moe_layer_step\" %lld gives",
                           (long long)a->moe_every);
}

/* Rotated layers look at their own chunk, the others at everything. */
static ft_status finish_llama4(const ft_reading *r, ft_arch *a)
{
    bool normed = true;
    FT_TRY(ft__config_flag(r, "use_qk_norm", &normed));
    if (normed) a->qk_norm = FT_QK_NORM_BARE;
    a->shared_ffn = a->moe_ffn;
    FT_TRY(ft__config_turns(r, a));
    a->window_every = a->turn_every;
    if (a->position == FT_NO_POSITION) a->window = 0;
    return check_layers(r, a);
}

static const ft_arch llama4 = {FT_ROTARY_DECODER,
                               .gated = true,
                               .norm = FT_RMSNORM,
                               .embed_scale = 1,
                               .vocab = 202048,
                               .hidden = 5120,
                               .ffn = 16384,
                               .moe_ffn = 8192,
                               .layers = 48,
                               .heads = 40,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .max_position = 131072,
                               .activation = "silu",
                               .window = 8192,
                               .chunked = true,
                               .qk_norm_late = true,
                               .temperature = true,
                               .experts = 16,
                               .topk = 1,
                               .moe_every = 1,
                               .shared_experts = 1,
                               .router_sigmoid = true,
                               .all_experts = true,
                               .rotary_tables_fp32 = true,
                               .rotary_complex = true};
const ft_config_type ft__config_llama4 = {
    .preset = &llama4, .keys = {ft__llama_keys, llama4_keys}, .finish = finish_llama4};
