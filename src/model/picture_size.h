/* Sizes of images: the tokens that they become, and other sizes than a model's config names. */
#ifndef FT_MODEL_PICTURE_SIZE_H
#define FT_MODEL_PICTURE_SIZE_H
#include "model/arch.h"

/* Height and width in pixels, and a video's frames; 0: none is asked for. */
typedef struct ft_picture_size {
    int64_t height, width, frames;
} ft_picture_size;

/* Tokens that an image of this size becomes, of a model with a tower: its patches, merged. */
int64_t ft__picture_tokens(const ft_arch *arch, int64_t height, int64_t width);
int64_t ft__picture_patches(const ft_arch *arch, int64_t height, int64_t width); /* that its tower reads */

/* Whether its inputs are images or videos, of a size that can be chosen. */
bool ft__takes_pictures(const ft_arch *arch);
bool ft__takes_frames(const ft_arch *arch); /* of a video, whose number can be chosen */
/* The tokens of what a graph of the catalogue means where nothing is asked for; where that is none, FT_E_RANGE. */
ft_status ft__token_size_settle(ft_arch *arch, ft_picture_size size, ft_error *err);
/* Latents to a row of a denoiser's image; `image` is its rows, and both of squares. */
static inline int64_t ft__latents_across(const ft_arch *a) { return a->latent_width > 0 ? a->latent_width : a->image; }
/* Gives it that size; nothing where none is asked for, or where it has no such inputs. */
ft_status ft__picture_resize(ft_arch *arch, ft_picture_size size, ft_error *err);
#endif
