/* finish_experts.c: what a table cannot say of decoders with experts. */
#include <inttypes.h>

#include "base/json.h"
#include "import/config/finish.h"

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

ft_status ft__finish_qwen_moe(const ft_reading *r, ft_arch *a)
{
    FT_TRY(read_dense_layers(r, a));
    a->shared_experts = a->shared_ffn ? 1 : 0;
    return FT_OK;
}

ft_status ft__finish_qwen3_moe(const ft_reading *r, ft_arch *a)
{
    a->shared_ffn = 0;
    return ft__finish_qwen_moe(r, a);
}

/* Shared experts are one MLP of so many times an expert's width. */
static ft_status share(const ft_reading *r, const char *key, ft_arch *a)
{
    if (a->shared_experts > 1000000 || a->shared_experts * a->moe_ffn > ((int64_t)1 << 40))
        return ft__config_fail(r, FT_E_RANGE, key, "%" PRId64 " shared experts are too many", a->shared_experts);
    a->shared_ffn = a->shared_experts * a->moe_ffn;
    return FT_OK;
}

/* Configs call the rotated part head_dim, or repeat hidden / heads there; what attention sees is both parts. Keys are
 * expanded to all heads whatever num_key_value_heads says. */
ft_status ft__finish_deepseek(const ft_reading *r, ft_arch *a)
{
    a->head_dim = a->nope_dim + a->rope_dim;
    a->kv_heads = a->heads;
    if (a->rope_dim % 2)
        return ft__config_fail(r, FT_E_RANGE, "qk_rope_head_dim", "rotary positions turn pairs: %" PRId64 " is odd",
                               a->rope_dim);
    return share(r, "n_shared_experts", a);
}

/* Where the config gives a shared expert's own width, there are so many of it side by side (bailing_moe). */
ft_status ft__finish_shared_each(const ft_reading *r, ft_arch *a)
{
    if (a->shared_experts < 1) a->shared_ffn = 0;
    if (a->shared_experts < 2 || !a->shared_ffn) return FT_OK;
    if (a->shared_ffn > ((int64_t)1 << 31) / a->shared_experts)
        return ft__config_fail(r, FT_E_RANGE, "num_shared_experts", "%" PRId64 " shared experts are too many",
                               a->shared_experts);
    a->shared_ffn *= a->shared_experts;
    return FT_OK;
}

/* Experts stand in every so many layers from one to another. */
ft_status ft__finish_ernie_moe(const ft_reading *r, ft_arch *a)
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

/* How many experts a token visits: one number, or the same one for every layer. */
ft_status ft__finish_hunyuan_moe(const ft_reading *r, ft_arch *a)
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

/* Which layers have experts, where a list says so: it must be what the step would give. */
static ft_status check_layers(const ft_reading *r, const ft_arch *a)
{
    const json_t *list = json_object_get(r->config, "moe_layers");
    if (!list || json_is_null(list)) return FT_OK;
    FT_TRY(ft__config_layer_numbers(r, "moe_layers", a->layers));
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
ft_status ft__finish_llama4(const ft_reading *r, ft_arch *a)
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
