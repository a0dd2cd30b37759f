/* finish_sound.c: what a table cannot say of encoders of sound, and of deberta's places. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "import/config/finish.h"

/* Filters over samples: three lists of one length. */
ft_status ft__finish_sound(const ft_reading *r, ft_arch *a)
{
    int64_t widths = a->stages, kernels = widths, strides = widths;
    FT_TRY(ft__config_sizes(r, "conv_dim", a->width, &widths));
    FT_TRY(ft__config_sizes(r, "conv_kernel", a->depth, &kernels));
    FT_TRY(ft__config_sizes(r, "conv_stride", a->strides, &strides));
    if (widths != kernels || widths != strides)
        return ft__config_fail(r, FT_E_RANGE, "conv_dim",
                               "%" PRId64 " filters in conv_dim, %" PRId64 " in conv_kernel, %" PRId64
                               " in conv_stride: one number is expected",
                               widths, kernels, strides);
    a->stages = widths;
    if (a->groups > 0 && a->hidden % a->groups)
        return ft__config_fail(r, FT_E_RANGE, "num_conv_pos_embedding_groups",
                               "%" PRId64 " groups must divide hidden_size %" PRId64, a->groups, a->hidden);
    return FT_OK;
}

/* "c2p|p2c", or a list of both. */
static bool names_both(const json_t *value, const char *word)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *each = json_string_value(json_array_get(value, i));
        if (each && !strcmp(each, word)) return true;
    }
    const char *text = json_string_value(value);
    return text && strstr(text, word);
}

ft_status ft__finish_deberta(const ft_reading *r, ft_arch *a)
{
    bool relative = false, shared = false;
    int64_t most = -1, buckets = -1;
    const char *norm = NULL;
    FT_TRY(ft__config_flag(r, "relative_attention", &relative));
    FT_TRY(ft__config_flag(r, "share_att_key", &shared));
    FT_TRY(ft__json_whole(r->config, "max_relative_positions", FT_OPTIONAL, -1, 1 << 20, &most, r->where, r->err));
    FT_TRY(ft__json_whole(r->config, "position_buckets", FT_OPTIONAL, -1, 1 << 20, &buckets, r->where, r->err));
    FT_TRY(ft__json_string(r->config, "norm_rel_ebd", FT_OPTIONAL, &norm, r->where, r->err));
    if (json_is_integer(json_object_get(r->config, "conv_kernel_size")) &&
        json_integer_value(json_object_get(r->config, "conv_kernel_size")) > 0)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "conv_kernel_size",
                               "the convolution beside the first layer is not modelled: 0 is expected");
    if (!relative) return FT_OK;
    const json_t *kinds = json_object_get(r->config, "pos_att_type");
    a->relative_span = buckets > 0 ? buckets : most > 0 ? most : a->max_position;
    a->relative_keys = names_both(kinds, "c2p");
    a->relative_queries = names_both(kinds, "p2c");
    a->relative_own = !shared;
    a->relative_norm = norm && strstr(norm, "layer_norm");
    return FT_OK;
}
