/* picture_size.c: pictures of another size than a model's config names.
 *
 * Convolutions and patches go over whatever they are given. Tables of positions grow with it, as timm's `img_size` and
 * transformers' `interpolate_pos_encoding` have them. Denoisers work on latents, each of which stands for a square of
 * pixels (`latent_pixels` of an architecture: what the VAE shrinks, and what is packed after it).
 *
 * Leaves out: pictures that are not square, but for a video's frames. */
#include "model/picture_size.h"

#include <inttypes.h>

#include "base/error.h"

static bool is_latent(const ft_arch *a) { return a->latent_pixels > 0; }

bool ft__takes_pictures(const ft_arch *a)
{
    if (a->design == FT_VIDEO || a->design == FT_JOINT || a->design == FT_DIFFUSION || a->design == FT_UNET)
        return is_latent(a);
    return a->image > 0 &&
           (a->design == FT_VIT || a->design == FT_RESNET || a->design == FT_CONVNEXT || a->design == FT_CLIP);
}

static ft_status refuse(ft_picture_size s, const ft_arch *a, const char *why, int64_t figure, ft_error *err)
{
    return ft__fail_at(err, FT_E_RANGE, "image_size", 0, 0, "\"image_size\" %" PRId64 "x%" PRId64 ": %s %s %" PRId64,
                       s.height, s.width, a->model_type, why, figure);
}

static ft_status resize_video(ft_arch *a, ft_picture_size s, ft_error *err)
{
    const int64_t patch = a->latent_pixels * a->patch;
    if (s.height % patch || s.width % patch) return refuse(s, a, "takes multiples of", patch, err);
    a->latent_height = a->image = s.height / a->latent_pixels;
    a->latent_width = s.width / a->latent_pixels;
    return FT_OK;
}

ft_status ft__picture_resize(ft_arch *a, ft_picture_size s, ft_error *err)
{
    if (s.height < 1 || !ft__takes_pictures(a)) return FT_OK;
    if (a->design == FT_VIDEO) return resize_video(a, s, err);
    if (s.height != s.width) return refuse(s, a, "is forecast for square pictures, such as", s.height, err);
    const int64_t halves = a->design == FT_UNET ? (int64_t)1 << (a->stages - 1) : a->patch > 0 ? a->patch : 1;
    const int64_t least = halves * (is_latent(a) ? a->latent_pixels : 1);
    if (is_latent(a) && s.height % least) return refuse(s, a, "takes multiples of", least, err);
    if (s.height < least) return refuse(s, a, "takes no fewer than", least, err);
    a->image = is_latent(a) ? s.height / a->latent_pixels : s.height;
    if (a->design == FT_VIT) { /* clip's positions are its words' */
        const int64_t side = a->image / a->patch;
        a->max_position = a->position_rows = side * side + (a->class_absent ? 0 : 1);
    }
    return FT_OK;
}
