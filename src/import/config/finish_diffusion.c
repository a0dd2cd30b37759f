/* finish_diffusion.c: what a table cannot say of what diffusers saves of its denoisers: Flux, Stable Diffusion 3, Wan,
 * and the UNet of Stable Diffusion 1, 2 and XL. The size of a sample is the library's where it has one (sample_size)
 * and the usual image or video otherwise. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "import/config/finish.h"

enum { LARGEST = 65536 };

/* The width is heads times their width; patches must fit the image. */
ft_status ft__finish_joint(const ft_reading *r, ft_arch *a)
{
    const char *norm = NULL;
    if (a->heads > ((int64_t)1 << 31) / a->head_dim)
        return ft__config_fail(r, FT_E_RANGE, "num_attention_heads",
                               "%" PRId64 " heads of %" PRId64 " are wider than 2^31", a->heads, a->head_dim);
    a->hidden = a->heads * a->head_dim;
    FT_TRY(ft__config_ratio(r, a));
    double ratio = a->ffn_ratio > 0 ? a->ffn_ratio : 4;
    FT_TRY(ft__json_number(r->config, "mlp_ratio", FT_OPTIONAL, 0.01, 64, &ratio, r->where, r->err));
    a->ffn = (int64_t)(ratio * (double)a->hidden);
    if (!a->out_channels) a->out_channels = a->channels;
    if (a->image > LARGEST || a->patch > a->image)
        return ft__config_fail(r, FT_E_RANGE, "sample_size",
                               "\"sample_size\" must be latents a side, from patch_size %" PRId64 " to %d", a->patch,
                               LARGEST);
    FT_TRY(ft__json_string(r->config, "qk_norm", FT_OPTIONAL, &norm, r->where, r->err));
    if (norm) a->qk_norm = FT_QK_NORM_HEAD;
    const json_t *dual = json_object_get(r->config, "dual_attention_layers");
    if (json_array_size(dual) > 0) a->dual_layers = (int64_t)json_array_size(dual);
    if (a->dual_layers + a->words_end > a->layers)
        return ft__config_fail(r, FT_E_RANGE, "dual_attention_layers", "%" PRId64 " of %" PRId64 " layers attend twice",
                               a->dual_layers, a->layers);
    return FT_OK;
}

ft_status ft__finish_wan(const ft_reading *r, ft_arch *a)
{
    int64_t patch[FT_MAX_STAGES] = {1, 2, 2}, count = 3;
    FT_TRY(ft__config_sizes(r, "patch_size", patch, &count));
    if (count != 3 || patch[0] != 1 || patch[1] != patch[2])
        return ft__config_fail(r, FT_E_UNSUPPORTED, "patch_size", "patches are one frame of a square: [1, 2, 2]");
    if (!json_is_null(json_object_get(r->config, "added_kv_proj_dim")) &&
        json_object_get(r->config, "added_kv_proj_dim"))
        return ft__config_fail(r, FT_E_UNSUPPORTED, "added_kv_proj_dim",
                               "the model for images in motion attends to an image's tokens too, which is not "
                               "modelled");
    if (a->heads > ((int64_t)1 << 31) / a->head_dim)
        return ft__config_fail(r, FT_E_RANGE, "num_attention_heads",
                               "%" PRId64 " heads of %" PRId64 " are wider than 2^31", a->heads, a->head_dim);
    a->patch = patch[1];
    a->hidden = a->heads * a->head_dim;
    if (!a->out_channels) a->out_channels = a->channels;
    if (a->latent_height < a->patch || a->latent_width < a->patch || a->latent_height > LARGEST ||
        a->latent_width > LARGEST || a->latent_frames > LARGEST)
        return ft__config_fail(r, FT_E_RANGE, "latent_height", "a video's latents must be from a patch to %d a side",
                               LARGEST);
    a->image = a->latent_height;
    return FT_OK;
}

/* One number for all stages, or a list with one for each. */
static ft_status by_stage(const ft_reading *r, const char *key, const ft_arch *a, int64_t *out)
{
    const json_t *value = json_object_get(r->config, key);
    int64_t one = 0, count = a->stages;
    if (!value || json_is_null(value)) return FT_OK;
    if (json_is_array(value)) {
        FT_TRY(ft__config_sizes(r, key, out, &count));
        if (count != a->stages)
            return ft__config_fail(r, FT_E_RANGE, key, "%" PRId64 " entries for %" PRId64 " stages", count, a->stages);
        return FT_OK;
    }
    FT_TRY(ft__json_whole(r->config, key, FT_OPTIONAL, 1, 100000, &one, r->where, r->err));
    for (int64_t i = 0; i < a->stages; i++) out[i] = one;
    return FT_OK;
}

ft_status ft__finish_unet(const ft_reading *r, ft_arch *a)
{
    const json_t *types = json_object_get(r->config, "down_block_types");
    const char *added = NULL;
    int64_t count = a->stages;
    FT_TRY(ft__config_sizes(r, "block_out_channels", a->width, &count));
    for (int64_t i = count; i < FT_MAX_STAGES; i++) a->width[i] = a->depth[i] = a->stage_heads[i] = 0;
    bool fewer = count != a->stages;
    a->stages = count;
    if (fewer && !types)
        return ft__config_fail(r, FT_E_MISSING, "down_block_types", "%" PRId64 " stages, and nothing says which attend",
                               count);
    for (int64_t i = 0; i < count; i++) a->depth[i] = 1;
    FT_TRY(by_stage(r, "transformer_layers_per_block", a, a->depth));
    for (int64_t i = 0; i < count; i++) a->stage_heads[i] = 8;
    FT_TRY(
        by_stage(r, "attention_head_dim", a, a->stage_heads)); /* which are their number: the library's own mistake */
    FT_TRY(by_stage(r, "num_attention_heads", a, a->stage_heads));
    a->middle_depth = a->depth[count - 1];
    if (types && (!json_is_array(types) || (int64_t)json_array_size(types) != count))
        return ft__config_fail(r, FT_E_RANGE, "down_block_types",
                               "one class for each of %" PRId64 " stages is expected", count);
    for (int64_t i = 0; i < count; i++) {
        const char *class = types ? json_string_value(json_array_get(types, (size_t)i)) : NULL;
        bool plain = types ? class && !strcmp(class, "DownBlock2D") : i == count - 1;
        if (types && !plain && !(class && !strcmp(class, "CrossAttnDownBlock2D")))
            return ft__config_fail(r, FT_E_UNSUPPORTED, "down_block_types",
                                   "stage %" PRId64 " is \"%.*s\"; DownBlock2D and CrossAttnDownBlock2D are known",
                                   i + 1, 40, class ? class : "");
        if (plain) a->depth[i] = 0;
        if (!plain && a->width[i] % a->stage_heads[i])
            return ft__config_fail(r, FT_E_RANGE, "attention_head_dim",
                                   "%" PRId64 " heads must divide the %" PRId64 " channels of stage %" PRId64,
                                   a->stage_heads[i], a->width[i], i + 1);
        if (a->width[i] % 32)
            return ft__config_fail(r, FT_E_RANGE, "block_out_channels",
                                   "%" PRId64 " channels are not a multiple of 32 groups", a->width[i]);
    }
    FT_TRY(ft__json_string(r->config, "addition_embed_type", FT_OPTIONAL, &added, r->where, r->err));
    if (added && !strcmp(added, "text_time")) {
        a->pooled_dim = 2816;
        FT_TRY(ft__json_whole(r->config, "projection_class_embeddings_input_dim", FT_OPTIONAL, 1, 1 << 20,
                              &a->pooled_dim, r->where, r->err));
    }
    int64_t halved = (int64_t)1 << (count - 1);
    if (a->image > LARGEST || a->image < halved || a->image % halved)
        return ft__config_fail(r, FT_E_RANGE, "sample_size",
                               "%" PRId64 " latents a side cannot be halved %" PRId64 " times", a->image, count - 1);
    return FT_OK;
}
