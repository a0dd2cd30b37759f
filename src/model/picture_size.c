/* picture_size.c: the tokens that images become, and images of another size than a model's config names.
 *
 * Convolutions and patches go over whatever they are given. Tables of positions grow with it, as timm's `img_size` and
 * transformers' `interpolate_pos_encoding` have them. Denoisers work on latents, each of which stands for a square of
 * pixels (`latent_pixels` of an architecture: what the VAE shrinks, and what is packed after it).
 *
 * Graphs of the catalogue (data/graphs) that were exported over tokens take images and videos of any shape: their
 * length is the number of tokens. A token is a square of `token_pixels` in every latent frame, of which there is one
 * for the first frame and one for each `token_span` behind it; the graph counts rows of `token_row` tokens. What is
 * meant where a request says nothing are `usual_height`, `usual_width` and `usual_frames`.
 *
 * Leaves out: classifiers' images that are not square. */
#include "model/picture_size.h"

#include <inttypes.h>

#include "base/error.h"

/* -- tokens ------------------------------------------------------------------------------------ */

static int64_t steps_of(int64_t length, int64_t step) { return (length + step - 1) / step; }

/* Tokens to an edge. A convolution over a whole image leaves out what fills no patch (SigLIP's 384 pixels are 27
 * patches of 14); models that are given patches bring their images to whole tokens first. */
static int64_t to_edge(const ft_arch *a, int64_t pixels)
{
    int64_t merge = a->tower_merge > 1 ? a->tower_merge : 1;
    if (a->tower_pictures && pixels >= a->tower_patch) return steps_of(pixels / a->tower_patch, merge);
    return steps_of(pixels, a->tower_patch * merge);
}

int64_t ft__picture_tokens(const ft_arch *a, int64_t height, int64_t width)
{
    if (a->queries > 0) return a->queries;
    if (a->tower_tokens > 0 || a->tower_patch < 1) return a->tower_tokens;
    return to_edge(a, height) * to_edge(a, width);
}

/* A resampler and a pool to a fixed number leave nothing of how many there were. */
int64_t ft__picture_patches(const ft_arch *a, int64_t height, int64_t width)
{
    int64_t merged = a->tower_merge > 1 ? a->tower_merge * a->tower_merge : 1;
    bool fixed = a->queries > 0 || (a->tower_tokens > 0 && a->step_count > 0);
    if (fixed && a->tower_patch > 0) return steps_of(height, a->tower_patch) * steps_of(width, a->tower_patch);
    return ft__picture_tokens(a, height, width) * merged;
}

/* -- other sizes ------------------------------------------------------------------------------- */

static bool is_latent(const ft_arch *a) { return a->latent_pixels > 0; }

bool ft__takes_pictures(const ft_arch *a)
{
    if (a->token_pixels > 0) return true;
    if (a->design == FT_AUTOENCODER) return true;
    if (a->design == FT_VIDEO || a->design == FT_JOINT || a->design == FT_DIFFUSION || a->design == FT_UNET)
        return is_latent(a);
    return a->image > 0 &&
           (a->design == FT_VIT || a->design == FT_RESNET || a->design == FT_CONVNEXT || a->design == FT_CLIP);
}

static ft_status refuse(ft_picture_size s, const ft_arch *a, const char *why, int64_t figure, ft_error *err)
{
    return ft__fail_at(err, FT_E_RANGE, "image_size", 0, 0, "\"image_size\" %" PRId64 "x%" PRId64 ": %s %s %" PRId64,
                       s.height, s.width, a->token_pixels > 0 ? "the model" : a->model_type, why, figure);
}

bool ft__takes_frames(const ft_arch *a)
{
    if (a->token_pixels > 0) return a->token_span > 0;
    return (a->design == FT_VIDEO || a->design == FT_AUTOENCODER) && a->latent_span > 0;
}

/* Latents of so many frames: one for the first, one for each `span` behind it. 0 after an error. */
static int64_t latents_of(int64_t frames, int64_t span, ft_error *err)
{
    if ((frames - 1) % span == 0) return (frames - 1) / span + 1;
    const int64_t below = (frames - 1) / span * span + 1;
    ft__fail_at(err, FT_E_RANGE, "frames", 0, 0,
                "\"frames\" %" PRId64 ": the model's autoencoder takes one frame and multiples of %" PRId64
                " behind it, such as %" PRId64 " or %" PRId64,
                frames, span, below, below + span);
    return 0;
}

static ft_status resize_video(ft_arch *a, ft_picture_size s, ft_error *err)
{
    const int64_t patch = a->latent_pixels * (a->patch > 0 ? a->patch : 1);
    if (s.height % patch || s.width % patch) return refuse(s, a, "takes multiples of", patch, err);
    if (s.frames > 0 && a->latent_span > 0) {
        a->latent_frames = latents_of(s.frames, a->latent_span, err);
        if (a->latent_frames < 1) return FT_E_RANGE;
    }
    if (s.height < 1) return FT_OK;
    a->latent_height = a->image = s.height / a->latent_pixels;
    a->latent_width = s.width / a->latent_pixels;
    return FT_OK;
}

ft_status ft__token_size_settle(ft_arch *a, ft_picture_size s, ft_error *err)
{
    if (s.height < 1) s = (ft_picture_size){a->usual_height, a->usual_width, s.frames};
    if (s.frames < 1 || a->token_span < 1) s.frames = a->usual_frames > 0 ? a->usual_frames : 1;
    if (s.height % a->token_pixels || s.width % a->token_pixels)
        return refuse(s, a, "takes multiples of", a->token_pixels, err);
    const int64_t latents = a->token_span > 0 ? latents_of(s.frames, a->token_span, err) : 1;
    if (latents < 1) return FT_E_RANGE;
    const int64_t tokens = latents * (s.height / a->token_pixels) * (s.width / a->token_pixels);
    const int64_t row = a->token_row > 1 ? a->token_row : 1;
    a->usual_seq = (tokens + row - 1) / row;
    return FT_OK;
}

ft_status ft__picture_resize(ft_arch *a, ft_picture_size s, ft_error *err)
{
    if ((s.height < 1 && s.frames < 1) || !ft__takes_pictures(a)) return FT_OK;
    if (a->token_pixels > 0) return ft__token_size_settle(a, s, err);
    if (a->design == FT_VIDEO || a->design == FT_AUTOENCODER) return resize_video(a, s, err);
    if (s.height < 1) return FT_OK;
    const bool oblong = a->design == FT_UNET || a->design == FT_JOINT;
    if (s.height != s.width && !oblong) return refuse(s, a, "is forecast for square images, such as", s.height, err);
    const int64_t halves = a->design == FT_UNET ? (int64_t)1 << (a->stages - 1) : a->patch > 0 ? a->patch : 1;
    const int64_t least = halves * (is_latent(a) ? a->latent_pixels : 1);
    if (is_latent(a) && (s.height % least || s.width % least)) return refuse(s, a, "takes multiples of", least, err);
    if (s.height < least) return refuse(s, a, "takes no fewer than", least, err);
    a->image = is_latent(a) ? s.height / a->latent_pixels : s.height;
    if (oblong) a->latent_width = s.width / a->latent_pixels;
    if (a->design == FT_VIT) { /* clip's positions are its words' */
        const int64_t side = a->image / a->patch;
        a->max_position = a->position_rows = side * side + (a->class_absent ? 0 : 1);
    }
    return FT_OK;
}
