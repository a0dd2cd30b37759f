/* finish_decoder.c: what a table cannot say of decoders without experts. */
#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "import/config/finish.h"

/* Three layouts under one name: falcon-7b (one key and value, one norm for both halves), falcon-40b and later
 * ("new": groups of keys, two norms beside each other unless the config says one), falcon-rw (alibi, sequential). */
ft_status ft__finish_falcon(const ft_reading *r, ft_arch *a)
{
    bool alibi = false, newer = false, one = true;
    int64_t norms = 0;
    FT_TRY(ft__config_flag(r, "alibi", &alibi));
    FT_TRY(ft__config_flag(r, "new_decoder_architecture", &newer));
    FT_TRY(ft__config_flag(r, "multi_query", &one));
    if (!json_is_null(json_object_get(r->config, "num_ln_in_parallel_attn")))
        FT_TRY(ft__json_whole(r->config, "num_ln_in_parallel_attn", FT_OPTIONAL, 1, 2, &norms, r->where, r->err));
    if (!norms) norms = newer ? 2 : 1;
    if (!newer) a->kv_heads = one ? 1 : a->heads;
    if (newer) a->parallel = a->keys_spread = true;
    a->shared_norm = a->parallel && norms == 1;
    a->position = alibi ? FT_ALIBI : FT_ROTARY;
    return FT_OK;
}

static const ft_config_key mpt_attention_keys[] = {FT_KEY(SHARE, attention_dropout, "attn_pdrop", NULL), FT_KEY_END};

ft_status ft__finish_mpt(const ft_reading *r, ft_arch *a)
{
    double ratio = 4;
    ft_reading inside;
    ft_config_path path;
    FT_TRY(ft__json_number(r->config, "expansion_ratio", FT_OPTIONAL, 0.001, 1000, &ratio, r->where, r->err));
    a->ffn = (int64_t)((double)a->hidden * ratio);
    if (a->ffn < 1) a->ffn = 1;
    if (ft__config_inside(r, "attn_config", &inside, path)) FT_TRY(ft__config_keys(&inside, mpt_attention_keys, a));
    return FT_OK;
}

ft_status ft__finish_gemma(const ft_reading *r, ft_arch *a)
{
    (void)r;
    a->embed_scale = sqrt((double)a->hidden);
    return FT_OK;
}

ft_status ft__finish_smollm3(const ft_reading *r, ft_arch *a)
{
    bool windows = false;
    FT_TRY(ft__config_flag(r, "use_sliding_window", &windows));
    if (windows && !json_is_null(json_object_get(r->config, "sliding_window")) &&
        json_object_get(r->config, "sliding_window"))
        return ft__config_fail(r, FT_E_UNSUPPORTED, "use_sliding_window",
                               "smollm3 with windows in the layers that are not rotated is not modelled");
    return ft__config_turns(r, a);
}

/* The pattern is a number, or a word for one ("LLLG"), which goes with a list of layer_types. */
ft_status ft__finish_exaone4(const ft_reading *r, ft_arch *a)
{
    const json_t *pattern = json_object_get(r->config, "sliding_window_pattern");
    if (json_is_integer(pattern))
        FT_TRY(ft__json_whole(r->config, "sliding_window_pattern", FT_OPTIONAL, 0, 1 << 20, &a->window_every, r->where,
                              r->err));
    a->turn_windowed = a->window > 0;
    return FT_OK;
}

/* Two stacks of layers, which run in turn: the lower L_cycles times, then the upper, H_cycles times over. Where a
 * config does not say num_layers_per_stack, num_hidden_layers is that; otherwise it counts the runs. */
ft_status ft__finish_hrm(const ft_reading *r, ft_arch *a)
{
    enum { MOST = 1 << 10 };
    int64_t high = 2, low = 3, stack = 0;
    FT_TRY(ft__json_whole(r->config, "H_cycles", FT_OPTIONAL, 1, MOST, &high, r->where, r->err));
    FT_TRY(ft__json_whole(r->config, "L_cycles", FT_OPTIONAL, 1, MOST, &low, r->where, r->err));
    if (!json_is_null(json_object_get(r->config, "num_layers_per_stack")))
        FT_TRY(ft__json_whole(r->config, "num_layers_per_stack", FT_OPTIONAL, 1, MOST, &stack, r->where, r->err));
    int64_t runs = high * (low + 1);
    if (stack > 0 && a->layers != stack * runs)
        return ft__config_fail(r, FT_E_RANGE, "num_hidden_layers",
                               "%" PRId64 " runs of layers: num_layers_per_stack, H_cycles and L_cycles + 1 make "
                               "%" PRId64,
                               a->layers, stack * runs);
    if (!stack && a->layers <= MOST) a->layers *= runs;
    a->layer_runs = runs > 1 ? runs / 2 : 1;
    /* The last so many of each turn's inner runs have gradients: a list's, from the end of the turns; one in the
     * others. */
    const json_t *list = json_object_get(r->config, "L_bp_cycles");
    for (size_t i = 0; i < json_array_size(list) || (list && !json_is_null(list) && !json_is_array(list)); i++)
        if (!json_is_integer(json_array_get(list, i)) || json_integer_value(json_array_get(list, i)) < 0)
            return ft__config_fail(r, FT_E_TYPE, "L_bp_cycles",
                                   "\"L_bp_cycles\" must be a list of whole numbers, one a turn; entry %zu is not one",
                                   i + 1);
    int64_t said = json_is_array(list) ? (int64_t)json_array_size(list) : 1, tracked = high > said ? high - said : 0;
    for (int64_t i = said > high ? said - high : 0; i < said; i++) {
        int64_t each = json_is_array(list) ? json_integer_value(json_array_get(list, (size_t)i)) : 2;
        tracked += each < 0 ? 0 : each > low ? low : each;
    }
    a->free_layers = a->layers / runs * (high * low - tracked);
    return FT_OK;
}

/* Half of ffn_dim is the network's width; what it gives gate and up in one product. */
ft_status ft__finish_moshi(const ft_reading *r, ft_arch *a)
{
    int64_t both = 2 * a->ffn;
    FT_TRY(ft__json_whole(r->config, "ffn_dim", FT_OPTIONAL, 2, (int64_t)1 << 31, &both, r->where, r->err));
    a->ffn = both / 2;
    return FT_OK;
}

/* Half of intermediate_size is the network's width. */
ft_status ft__finish_recurrent_gemma(const ft_reading *r, ft_arch *a)
{
    int64_t both = 2 * a->ffn;
    FT_TRY(ft__json_whole(r->config, "intermediate_size", FT_OPTIONAL, 2, (int64_t)1 << 31, &both, r->where, r->err));
    a->ffn = both / 2;
    return FT_OK;
}

/* Layers that look at images are passed by without them: their weights lie beside, as the tower's and its projector's
 * do. Embeddings have eight rows more than the head. */
ft_status ft__finish_mllama(const ft_reading *r, ft_arch *a)
{
    enum { EVERY = 5, SEEN = 7680, MORE_ROWS = 8 };
    const json_t *list = json_object_get(r->config, "cross_attention_layers");
    int64_t cross_layers = json_is_array(list) ? 0
                                               : (a->layers + 1) / EVERY; /* the fourth, and every fifth from there */
    FT_TRY(ft__config_layer_numbers(r, "cross_attention_layers", a->layers));
    if (json_is_array(list)) cross_layers = (int64_t)json_array_size(list);
    int64_t dim = a->head_dim > 0 ? a->head_dim : a->heads > 0 ? a->hidden / a->heads : 0;
    int64_t kv = a->kv_heads > 0 ? a->kv_heads : a->heads;
    if (cross_layers >= a->layers)
        return ft__config_fail(r, FT_E_RANGE, "cross_attention_layers",
                               "%" PRId64 " of %" PRId64 " layers look at images", cross_layers, a->layers);
    double wide = (double)a->hidden, attention = 2 * (double)(a->heads * dim + kv * dim), network = 3 * (double)a->ffn;
    a->layers -= cross_layers;
    a->beside += (double)cross_layers * (wide * (attention + network + 2) + 2 * (double)dim + 2);
    a->beside += wide * (SEEN + 1 + MORE_ROWS);
    /* A row for each patch of an image, and nine times four of them for shapes and tiles; the trait has 448 pixels'.
     */
    enum { PATCH = 14, USUAL_ROWS = 1025, TABLES = 1 + 9 * 4, TOWER_WIDTH = 1280, MOST_PIXELS = 1 << 16 };
    const json_t *eye = json_object_get(r->whole, "vision_config");
    int64_t pixels = 448;
    if (json_is_object(eye))
        FT_TRY(ft__json_whole(eye, "image_size", FT_OPTIONAL, PATCH, MOST_PIXELS, &pixels, r->where, r->err));
    double rows = (double)((pixels / PATCH) * (pixels / PATCH) + 1);
    a->beside += (rows - USUAL_ROWS) * TABLES * TOWER_WIDTH;
    return FT_OK;
}

/* A network four times as wide where the config does not say. */
ft_status ft__finish_quadrupled(const ft_reading *r, ft_arch *a)
{
    const json_t *said = json_object_get(r->config, "intermediate_size");
    if (!said || json_is_null(said)) a->ffn = 4 * a->hidden;
    return FT_OK;
}

/* The shared layer reads the stream and the embedding side by side: its heads divide twice the width. */
ft_status ft__finish_zamba2(const ft_reading *r, ft_arch *a)
{
    if (a->heads < 1 || 2 * a->hidden % a->heads)
        return ft__config_fail(r, FT_E_RANGE, "num_attention_heads",
                               "%" PRId64 " heads must divide twice the width %" PRId64, a->heads, a->hidden);
    a->head_dim = 2 * a->hidden / a->heads;
    if (!a->ffn) a->ffn = 4 * a->hidden;
    return FT_OK;
}

ft_status ft__config_ratio(const ft_reading *r, const ft_arch *a)
{
    enum { MOST_RATIO = 64 };
    if (a->ffn_ratio <= MOST_RATIO) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, FT_CONFIG_WORD(r, ffn_ratio), "must be at most %d", MOST_RATIO);
}

/* Widths are shares of the model's, in multiples: of queries and keys a half. */
ft_status ft__finish_xlstm(const ft_reading *r, ft_arch *a)
{
    enum { HEADS_STEP = 64 };
    double keys = 0.5, values = 1, hidden = (double)a->hidden;
    int64_t step = 64;
    FT_TRY(ft__json_number(r->config, "qk_dim_factor", FT_OPTIONAL, 0, 64, &keys, r->where, r->err));
    FT_TRY(ft__json_number(r->config, "v_dim_factor", FT_OPTIONAL, 0, 64, &values, r->where, r->err));
    FT_TRY(ft__json_whole(r->config, "ffn_round_up_to_multiple_of", FT_OPTIONAL, 1, 1 << 20, &step, r->where, r->err));
    FT_TRY(ft__config_ratio(r, a));
    if (a->ffn_ratio <= 0) return ft__config_fail(r, FT_E_RANGE, "ffn_proj_factor", "must be more than 0");
    int64_t query = ((int64_t)(hidden * keys) + HEADS_STEP - 1) / HEADS_STEP * HEADS_STEP;
    int64_t value = ((int64_t)(hidden * values) + HEADS_STEP - 1) / HEADS_STEP * HEADS_STEP;
    a->ffn = ((int64_t)(hidden * a->ffn_ratio) + step - 1) / step * step;
    if (query % a->heads || value % a->heads || query < 1 || value < 1)
        return ft__config_fail(r, FT_E_RANGE, "num_heads",
                               "%" PRId64 " heads must divide queries of %" PRId64 " and values of %" PRId64, a->heads,
                               query, value);
    a->kv_heads = a->heads;
    a->head_dim = query / a->heads;
    a->v_dim = value / a->heads;
    return FT_OK;
}
