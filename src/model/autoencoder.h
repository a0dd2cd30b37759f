/* Decoders of latents: what their two files share. */
#ifndef FT_MODEL_AUTOENCODER_H
#define FT_MODEL_AUTOENCODER_H
#include "model/vision.h"

/* Latents, or what they have become: [batch * channels, frames * height * width]. */
typedef struct ft_latent {
    ft_ref x;
    int64_t channels, frames, height, width;
    int64_t held; /* frames that filters over time keep from here on; 0: none, or counted before */
} ft_latent;

/* Through SiLU, as every filter but the first reads it. */
ft_latent ft__latent_silu(ft_maker *m, ft_at at, ft_latent p);
/* The loss of what was made, in training; itself otherwise. */
ft_ref ft__against_pixels(ft_maker *m, ft_ref made);
void ft__make_video_autoencoder(ft_maker *m); /* autoencoder_video.c */
#endif
