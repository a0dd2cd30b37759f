/* autoencoder.c: the decoder that makes images of latents, as diffusers launches it (AutoencoderKL.decode: Stable
 * Diffusion 1 to 3, XL, Flux): a filter, two residual blocks with attention over all latents between them, then stage
 * by stage residual blocks and images twice as large, and a filter to three colours. The encoder half is left out:
 * it runs where an image is what one starts from.
 *
 * A sample is an image of latent_height by latent_width latents. The loss is the mean square over pixels. Videos are
 * autoencoder_video.c's. */
#include "model/autoencoder.h"
#include "graph/emit.h"
#include "graph/resize.h"

enum { GROUPS = 32 };

static ft_latent filtered(ft_maker *m, ft_at at, ft_latent in, int64_t out, int64_t filter)
{
    const ft_conv_shape s = {.n = m->batch,
                             .c = in.channels,
                             .h = in.height,
                             .w = in.width,
                             .k = out,
                             .r = filter,
                             .s = filter,
                             .stride = 1,
                             .pad = filter / 2,
                             .groups = 1};
    in.x = ft__vision_conv(m, at, in.x, &s, FT_BIAS);
    in.channels = out;
    return in;
}

static ft_latent normed(ft_maker *m, ft_at at, ft_latent p)
{
    ft_build *b = &m->b;
    ft_ref weight = ft__parameter(b, "norm.weight", 1, p.channels), bias = ft__parameter(b, "norm.bias", 1, p.channels);
    p.x = ft__groupnorm(b, at, p.x, m->batch * GROUPS, weight, bias);
    ft__module(b, 1);
    return p;
}

static ft_latent activated(ft_maker *m, ft_at at, ft_latent p) { return ft__latent_silu(m, at, normed(m, at, p)); }

/* The sum is divided by a factor of 1, a kernel of its own (ResnetBlock2D.output_scale_factor). */
static ft_latent residual(ft_maker *m, ft_latent in, int64_t out)
{
    ft_build *b = &m->b;
    ft__module(b, 2);
    ft_latent p = filtered(m, FT_AT(CONV1), activated(m, FT_AT(CONV1), in), out, 3);
    p = filtered(m, FT_AT(CONV2), activated(m, FT_AT(CONV2), p), out, 3);
    if (in.channels != out) in = filtered(m, FT_AT(SHORTCUT), in, out, 1);
    p.x = ft__pointwise(b, FT_AT(RESIDUAL), "divu", ft__add(b, FT_AT(RESIDUAL), in.x, p.x));
    return p;
}

/* One head over all channels; the result is divided by 1 here, too. */
static ft_latent attended(ft_maker *m, ft_latent in)
{
    ft_build *b = &m->b;
    const int64_t pixels = in.height * in.width, rows = m->batch * pixels, wide = in.channels;
    ft__module(b, 2);
    ft_latent p = normed(m, FT_AT(ATTN_NORM), in);
    ft_ref x = ft__contiguous(b, FT_AT(PROJECTOR), ft__view(b, p.x, rows, wide, true));
    ft_ref q = ft__linear(b, FT_AT(ATTN_Q_PROJ), x, wide, FT_BIAS, FT_WHOLE);
    ft_ref k = ft__linear(b, FT_AT(ATTN_K_PROJ), x, wide, FT_BIAS, FT_WHOLE);
    ft_ref v = ft__linear(b, FT_AT(ATTN_V_PROJ), x, wide, FT_BIAS, FT_WHOLE);
    ft_scores s = {
        .shape = {.batch = m->batch, .heads = 1, .kv_heads = 1, .q_len = pixels, .kv_len = pixels, .head_dim = wide}};
    x = ft__part_attend(m, FT_AT(ATTN_CORE), q, k, v, &s);
    x = ft__linear(b, FT_AT(ATTN_O_PROJ), x, wide, FT_BIAS, FT_WHOLE);
    p.x = ft__contiguous(b, FT_AT(PROJECTOR), ft__view(b, x, m->batch * wide, pixels, true));
    p.x = ft__pointwise(b, FT_AT(ATTN_RESIDUAL), "divu", ft__add(b, FT_AT(ATTN_RESIDUAL), p.x, in.x));
    return p;
}

static ft_latent doubled(ft_maker *m, ft_latent p)
{
    p.height *= 2;
    p.width *= 2;
    const ft_resize how = {.by = FT_RESIZE_NEAREST,
                           .axes = 2,
                           .pictures = (double)(m->batch * p.channels),
                           .pixels = (double)(p.height * p.width),
                           .window = 1};
    p.x = ft__resize(&m->b, FT_AT(DOWNSAMPLE), "upsample", p.x, m->batch * p.channels, p.height * p.width, &how);
    ft__module(&m->b, 1);
    return filtered(m, FT_AT(DOWNSAMPLE), p, p.channels, 3);
}

ft_latent ft__latent_silu(ft_maker *m, ft_at at, ft_latent p)
{
    p.x = ft__part_activation(m, at, "silu", p.x);
    return p;
}

ft_ref ft__against_pixels(ft_maker *m, ft_ref made)
{
    ft_build *b = &m->b;
    const ft_tensor t = *ft__tensor_of(b, made);
    if (!b->training) return made;
    ft_ref pixels = ft__input(b, t.rows, t.cols, ft_dtype_bytes(b->stored));
    ft_ref x = ft__pointwise(b, FT_AT(LOSS), "powu", ft__pointwise2(b, FT_AT(LOSS), "sub", made, pixels));
    return ft__reduce(b, FT_AT(LOSS), "mean", ft__view(b, x, m->batch, t.rows / m->batch * t.cols, false));
}

static void make_picture(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t last = a->stages - 1;
    ft_latent p = {.channels = a->channels, .frames = 1, .height = a->latent_height, .width = a->latent_width};
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    p.x = ft__input(b, m->batch * p.channels, p.height * p.width, ft_dtype_bytes(b->stored));
    if (a->linear_ends) p = filtered(m, FT_AT(PROJECTOR_FC1), p, a->channels, 1); /* post_quant_conv */
    p = filtered(m, FT_AT(STEM), p, a->width[last], 3);
    p = residual(m, p, a->width[last]);
    if (a->middle_depth > 0) p = attended(m, p);
    p = residual(m, p, a->width[last]);
    for (int64_t i = last; i >= 0 && b->status == FT_OK; i--) {
        for (int64_t j = 0; j <= a->layers && b->status == FT_OK; j++) p = residual(m, p, a->width[i]);
        if (i > 0) p = doubled(m, p);
    }
    ft__block_close(b, p.x);
    p.x = ft__block_open(b, FT_BLOCK(HEAD), 1, p.x);
    p = filtered(m, FT_AT(PROJECTION), activated(m, FT_AT(NORM), p), a->out_channels, 3);
    ft__block_close(b, ft__against_pixels(m, p.x));
}

void ft__make_autoencoder(ft_maker *m)
{
    if (!ft__vision_task(m)) return;
    if (m->arch->latent_span > 0)
        ft__make_video_autoencoder(m);
    else
        make_picture(m);
}
