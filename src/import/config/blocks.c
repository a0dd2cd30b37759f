/* blocks.c: a searched architecture's list of blocks (DeciLM's block_configs): how many heads share a key in each, how
 * wide its network is, and which halves are left out. */
#include <inttypes.h>

#include "base/json.h"
#include "import/config/architecture.h"

/* Widths are a share of hidden, two thirds of which are counted, rounded up to 256 (block_config.py). */
static int64_t width_of(double share, int64_t hidden)
{
    enum { STEP = 256 };
    int64_t width = (int64_t)(2 * share * (double)hidden / 3);
    return (width + STEP - 1) / STEP * STEP;
}

static ft_status read_half(const ft_reading *r, const char *key, size_t i, const json_t *half, bool *there)
{
    *there = json_is_object(half) && !json_is_true(json_object_get(half, "no_op"));
    if (json_is_true(json_object_get(half, "replace_with_linear")))
        return ft__config_fail(r, FT_E_UNSUPPORTED, key, "block %zu: \"replace_with_linear\" is not modelled", i + 1);
    return FT_OK;
}

ft_status ft__layers_of_blocks(const ft_reading *r, const ft_arch *a, const json_t *name, ft_layer_shape *layers)
{
    const char *key = json_string_value(name);
    const json_t *list = key ? json_object_get(r->config, key) : NULL;
    if (!list || json_is_null(list)) return FT_OK;
    if (!json_is_array(list) || (int64_t)json_array_size(list) != a->layers)
        return ft__config_fail(r, FT_E_RANGE, key, "\"%s\" must be a list of %" PRId64 " blocks, it has %zu", key,
                               a->layers, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *attention = json_object_get(json_array_get(list, i), "attention");
        const json_t *network = json_object_get(json_array_get(list, i), "ffn");
        bool mixes, feeds;
        FT_TRY(read_half(r, key, i, attention, &mixes));
        FT_TRY(read_half(r, key, i, network, &feeds));
        json_int_t shared = json_integer_value(json_object_get(attention, "n_heads_in_group"));
        double share = json_number_value(json_object_get(network, "ffn_mult"));
        if (mixes && (shared < 1 || a->heads % shared))
            return ft__config_fail(r, FT_E_RANGE, key, "block %zu: n_heads_in_group %lld must divide %" PRId64 " heads",
                                   i + 1, (long long)shared, a->heads);
        if (feeds && !(share > 0 && share < 1000))
            return ft__config_fail(r, FT_E_RANGE, key, "block %zu: ffn_mult must be a number above 0", i + 1);
        layers[i].mixer = mixes ? FT_MIX_ATTENTION : FT_MIX_NONE;
        layers[i].feed = feeds ? FT_FEED_DENSE : FT_FEED_NONE;
        if (mixes) layers[i].kv_heads = a->heads / shared;
        if (feeds) layers[i].ffn = width_of(share, a->hidden);
    }
    return FT_OK;
}
