/* finish_bytes.c: the stacks of a model of bytes, each in an object of its own. */
#include <inttypes.h>

#include "base/json.h"
#include "import/config/finish.h"

enum { MOST = 1 << 24, MOST_HASHES = 256, BYTES = 4 /* of a group, where the config does not say */ };

/* A size that may be null, which means its default. */
static ft_status size_of(const ft_reading *r, const char *key, int64_t *out)
{
    if (json_is_null(json_object_get(r->config, key))) return FT_OK;
    return ft__json_whole(r->config, key, FT_OPTIONAL, 1, MOST, out, r->where, r->err);
}

/* What an object leaves out is as the library has it; of the widths between, eight thirds of the stack's. */
static ft_status stack_of(const ft_reading *whole, const char *key, ft_stack_size *s)
{
    ft_reading own;
    ft_config_path path;
    int64_t ffn = s->ffn;
    if (!ft__config_inside(whole, key, &own, path)) return FT_OK;
    FT_TRY(size_of(&own, "num_hidden_layers", &s->layers));
    FT_TRY(size_of(&own, "hidden_size", &s->hidden));
    FT_TRY(size_of(&own, "num_attention_heads", &s->heads));
    s->kv_heads = s->heads;
    FT_TRY(size_of(&own, "num_key_value_heads", &s->kv_heads));
    if (json_is_null(json_object_get(own.config, "intermediate_size"))) ffn = 8 * s->hidden / 3;
    FT_TRY(size_of(&own, "intermediate_size", &ffn));
    s->ffn = ffn;
    FT_TRY(ft__config_flag(&own, "cross_attn_all_layers", &s->looks_each));
    if (s->hidden % s->heads || s->heads % s->kv_heads)
        return ft__config_fail(&own, FT_E_RANGE, "num_attention_heads",
                               "%" PRId64 " heads, %" PRId64 " of keys, must divide a width of %" PRId64, s->heads,
                               s->kv_heads, s->hidden);
    return FT_OK;
}

ft_status ft__finish_bytes(const ft_reading *r, ft_arch *a)
{
    ft_reading whole = *r;
    bool groups = true;
    int64_t functions = 1, sizes = a->bytes.hashes;
    whole.config = r->whole;
    a->bytes.group = BYTES;
    FT_TRY(size_of(&whole, "vocab_size", &a->vocab));
    FT_TRY(size_of(&whole, "patch_size", &a->bytes.group));
    FT_TRY(size_of(&whole, "cross_attn_k", &a->bytes.parts));
    FT_TRY(size_of(&whole, "encoder_hash_byte_group_vocab", &a->bytes.hash_rows));
    FT_TRY(size_of(&whole, "encoder_hash_byte_group_nb_functions", &functions));
    const json_t *list = json_object_get(r->whole, "encoder_hash_byte_group_size");
    if (json_array_size(list) > 0) sizes = (int64_t)json_array_size(list);
    a->bytes.hashes = functions * sizes;
    if (a->bytes.hashes > MOST_HASHES || a->bytes.parts > MOST_HASHES)
        return ft__config_fail(&whole, FT_E_RANGE, "encoder_hash_byte_group_nb_functions",
                               "%" PRId64 " hashes of each byte: at most %d are expected", a->bytes.hashes,
                               MOST_HASHES);
    FT_TRY(stack_of(&whole, "encoder_config", &a->bytes.reader));
    FT_TRY(stack_of(&whole, "decoder_config", &a->bytes.writer));
    FT_TRY(stack_of(&whole, "patcher_config", &a->bytes.grouper));
    FT_TRY(ft__config_flag(&whole, "patch_in_forward", &groups));
    if (!groups) a->bytes.grouper.layers = 0;
    if (a->bytes.reader.looks_each && a->bytes.reader.layers > 1)
        return ft__config_fail(&whole, FT_E_UNSUPPORTED, "encoder_config.cross_attn_all_layers",
                               "groups that look at bytes behind every layer are not modelled: false is expected");
    if (a->bytes.reader.hidden != a->bytes.writer.hidden)
        return ft__config_fail(&whole, FT_E_RANGE, "decoder_config.hidden_size",
                               "%" PRId64 " beside an encoder of width %" PRId64, a->bytes.writer.hidden,
                               a->bytes.reader.hidden);
    return FT_OK;
}
