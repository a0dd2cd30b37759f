/* finish_autoencoder.c: what a table cannot say of what diffusers saves of its autoencoders: AutoencoderKL, and the
 * causal ones of videos (AutoencoderKLWan, AutoencoderKLQwenImage), whose widths are multiples of one. The decoder
 * alone is read; of what it decodes the usual size is the architecture's. */
#include <inttypes.h>

#include "base/json.h"
#include "import/config/finish.h"

enum { LARGEST = 65536, GROUPS = 32, WIDEST = 1 << 20 };

static ft_status widths_of_video(const ft_reading *r, ft_arch *a)
{
    int64_t base = a->stem_width, count = a->stages;
    bool residual = false;
    FT_TRY(ft__config_sizes(r, "dim_mult", a->width, &count));
    FT_TRY(ft__json_bool(r->config, "is_residual", FT_OPTIONAL, &residual, r->where, r->err));
    if (residual)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "is_residual",
                               "decoders with averaged shortcuts (Wan 2.2's of the 5B model) are not modelled");
    if (!json_is_null(json_object_get(r->config, "decoder_base_dim")))
        FT_TRY(ft__json_whole(r->config, "decoder_base_dim", FT_OPTIONAL, 1, WIDEST, &base, r->where, r->err));
    a->stages = count;
    for (int64_t i = 0; i < FT_MAX_STAGES; i++) a->width[i] = i < count ? a->width[i] * base : 0;
    for (int64_t i = 0; i < count; i++)
        if (a->width[i] > WIDEST || a->width[i] % 2)
            return ft__config_fail(r, FT_E_RANGE, "dim_mult", "stage %" PRId64 " has %" PRId64 " channels", i + 1,
                                   a->width[i]);
    const json_t *times = json_object_get(r->config, "temperal_downsample");
    int64_t doubled = 0;
    for (size_t i = 0; json_is_array(times) && i < json_array_size(times); i++)
        doubled += json_is_true(json_array_get(times, i));
    if (json_is_array(times)) a->latent_span = (int64_t)1 << (doubled < 16 ? doubled : 16);
    return FT_OK;
}

static ft_status widths_of_picture(const ft_reading *r, ft_arch *a)
{
    int64_t count = a->stages;
    FT_TRY(ft__config_sizes(r, "block_out_channels", a->width, &count));
    a->stages = count;
    for (int64_t i = count; i < FT_MAX_STAGES; i++) a->width[i] = 0;
    for (int64_t i = 0; i < count; i++)
        if (a->width[i] % GROUPS || a->width[i] > WIDEST)
            return ft__config_fail(r, FT_E_RANGE, "block_out_channels",
                                   "%" PRId64 " channels are not a multiple of %d groups", a->width[i], GROUPS);
    bool middle = true;
    FT_TRY(ft__json_bool(r->config, "mid_block_add_attention", FT_OPTIONAL, &middle, r->where, r->err));
    a->middle_depth = middle;
    return FT_OK;
}

ft_status ft__finish_autoencoder(const ft_reading *r, ft_arch *a)
{
    FT_TRY(a->latent_span > 0 ? widths_of_video(r, a) : widths_of_picture(r, a));
    a->latent_pixels = (int64_t)1 << (a->stages - 1);
    if (a->latent_height > LARGEST || a->latent_width > LARGEST || a->latent_frames > LARGEST)
        return ft__config_fail(r, FT_E_RANGE, "latent_height", "latents must be up to %d a side", LARGEST);
    a->image = a->latent_height;
    return FT_OK;
}
