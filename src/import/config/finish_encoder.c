/* finish_encoder.c: what a table cannot say of models with an encoder. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "import/config/finish.h"

/* "gated-gelu" is a gate through gelu_new; "relu" has none. Switch's key is dense_act_fn. */
static ft_status read_feed_forward(const ft_reading *r, ft_arch *a)
{
    static const char gated[] = "gated-";
    const char *kind = NULL, *act = NULL;
    FT_TRY(ft__json_string(r->config, "feed_forward_proj", FT_OPTIONAL, &kind, r->where, r->err));
    FT_TRY(ft__json_string(r->config, "dense_act_fn", FT_OPTIONAL, &act, r->where, r->err));
    if (kind) {
        a->gated = !strncmp(kind, gated, sizeof gated - 1);
        const char *name = a->gated ? kind + sizeof gated - 1 : kind;
        if (a->gated && !strcmp(name, "gelu")) name = "gelu_new";
        FT_TRY(ft__config_activation(r, "feed_forward_proj", name, &a->activation));
    } else if (act) {
        FT_TRY(ft__config_activation(r, "dense_act_fn", act, &a->activation));
    }
    return FT_OK;
}

ft_status ft__finish_t5(const ft_reading *r, ft_arch *a)
{
    FT_TRY(read_feed_forward(r, a));
    if (!a->decoder_layers) a->decoder_layers = a->layers;
    if (a->decoder_layers > 1000000)
        return ft__config_fail(r, FT_E_RANGE, "num_decoder_layers", "\"num_decoder_layers\" must be at most 10^6");
    return FT_OK;
}

ft_status ft__finish_switch(const ft_reading *r, ft_arch *a)
{
    const char *router = NULL;
    FT_TRY(ft__finish_t5(r, a));
    a->gated = false; /* the library has no gated experts, whatever the config says */
    FT_TRY(ft__json_string(r->config, "router_dtype", FT_OPTIONAL, &router, r->where, r->err));
    if (router) a->router_fp32 = !strcmp(router, "float32");
    if (a->sparse_encoder_layers > a->layers)
        return ft__config_fail(r, FT_E_RANGE, "num_sparse_encoder_layers", "%" PRId64 " sparse layers of %" PRId64,
                               a->sparse_encoder_layers, a->layers);
    if (a->sparse_decoder_layers > a->decoder_layers)
        return ft__config_fail(r, FT_E_RANGE, "num_sparse_decoder_layers", "%" PRId64 " sparse layers of %" PRId64,
                               a->sparse_decoder_layers, a->decoder_layers);
    return FT_OK;
}

/* The decoder's own sizes, read into a copy: one builder serves both stacks. */
static const ft_config_key whisper_decoder_keys[] = {
    FT_KEY(SIZE, heads, "decoder_attention_heads", NULL),
    FT_KEY(SIZE, ffn, "decoder_ffn_dim", NULL),
    FT_KEY_END,
};

ft_status ft__finish_whisper(const ft_reading *r, ft_arch *a)
{
    ft_arch decoder = *r->type->preset;
    bool scaled = false;
    FT_TRY(ft__config_keys(r, whisper_decoder_keys, &decoder));
    FT_TRY(ft__config_flag(r, "scale_embedding", &scaled));
    if (a->decoder_layers > 1000000)
        return ft__config_fail(r, FT_E_RANGE, "decoder_layers", "\"decoder_layers\" must be at most 10^6");
    if (decoder.heads != a->heads)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "decoder_attention_heads",
                               "%" PRId64 " heads in the decoder beside %" PRId64 " in the encoder: only equal stacks "
                               "are supported",
                               decoder.heads, a->heads);
    if (decoder.ffn != a->ffn)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "decoder_ffn_dim",
                               "%" PRId64 " in the decoder beside %" PRId64 " in the encoder: only equal stacks are "
                               "supported",
                               decoder.ffn, a->ffn);
    if (scaled) a->embed_scale = sqrt((double)a->hidden);
    a->max_position = a->position_rows = a->max_target;
    return FT_OK;
}

/* T5's, and beside it a product in each stack that cuts images, and two tables of places on a page. */
ft_status ft__finish_udop(const ft_reading *r, ft_arch *a)
{
    int64_t patch = 16, places = 1024, channels = 3;
    FT_TRY(ft__finish_t5(r, a));
    FT_TRY(ft__json_whole(r->config, "patch_size", FT_OPTIONAL, 1, 4096, &patch, r->where, r->err));
    FT_TRY(ft__json_whole(r->config, "num_channels", FT_OPTIONAL, 1, 4096, &channels, r->where, r->err));
    FT_TRY(ft__json_whole(r->config, "max_2d_position_embeddings", FT_OPTIONAL, 1, 1 << 24, &places, r->where, r->err));
    a->beside += 4 * (double)a->relative_buckets * (double)a->heads; /* by rows and columns, in either stack */
    a->beside += (double)a->hidden * (double)(2 * (channels * patch * patch + 1) + 2 * places);
    return FT_OK;
}
