/* finish_decoder.c: what a table cannot say of decoders without experts. */
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
    if (newer) a->parallel = true;
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
