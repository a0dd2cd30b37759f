/* autoencoder_video.c: the decoder that makes videos of latents frame by frame, as diffusers launches it
 * (AutoencoderKLWan.decode, and AutoencoderKLQwenImage, which has its form): causal filters over time keep the last two
 * frames of what they read, so that each latent frame is decoded by itself, the first to one frame and every further
 * one to `latent_span`. Stages double height and width, the first ones (as many as doublings make the span) also time.
 *
 * Norms are written out over channels (F.normalize), and images are padded by copies; both are as large as the
 * image. The frames that filters keep are memory until the video is there. A sample is a video of latent_frames by
 * latent_height by latent_width latents. */
#include "graph/convolution.h"
#include "graph/emit.h"
#include "graph/resize.h"
#include "model/autoencoder.h"

enum { KEPT = 2 }; /* frames that a filter of three looks back */

static int64_t pixels_of(ft_latent p) { return p.frames * p.height * p.width; }

static ft_ref biased(ft_maker *m, ft_at at, ft_ref y, int64_t channels)
{
    ft_build *b = &m->b;
    ft_ref offset = ft__parameter(b, "conv.bias", channels, 1);
    return ft__pointwise_in_place(b, at, "add", y, ft__cast(b, at, offset, ft__tensor_of(b, y)->dtype));
}

/* time x edge x edge taps; time looks back alone. Earlier frames are joined and borders added by copies. */
static ft_latent filtered(ft_maker *m, ft_at at, ft_latent in, int64_t out, int64_t time, int64_t edge)
{
    ft_build *b = &m->b;
    const int64_t rows = m->batch * in.channels;
    ft_latent padded = in;
    if (time > 1) { /* what is kept for the next frame, and what was kept joined to this one */
        const int64_t plane = in.height * in.width;
        const ft_ref earlier = ft__activation(b, rows, KEPT * plane, b->stored), both[2] = {earlier, in.x};
        if (in.held > 0) ft__buffer(b, rows, in.held * plane, ft_dtype_bytes(b->stored));
        ft__copy(b, at, ft__slice(b, in.x, rows, plane), rows, plane);
        padded.frames += KEPT;
        padded.x = ft__cat(b, at, 2, both, rows, pixels_of(padded));
    }
    if (edge > 1) {
        padded.height += edge - 1;
        padded.width += edge - 1;
        padded.x = ft__resample(b, at, "pad", padded.x, rows, pixels_of(padded), 1);
    }
    ft_convolution f = {.space = 3,
                        .n = m->batch,
                        .c = in.channels,
                        .k = out,
                        .groups = 1,
                        .in = {padded.frames, padded.height, padded.width},
                        .filter = {time, edge, edge},
                        .stride = {1, 1, 1},
                        .dilation = {1, 1, 1}};
    if (ft__convolution_result(&f) >= 0) {
        ft__build_fail(b, FT_E_RANGE, "a video of %lld by %lld latents is too small", (long long)in.height,
                       (long long)in.width);
        return in;
    }
    const ft_conv_shape s = ft__convolution_shape(&f);
    ft_ref weight = ft__parameter(b, "conv.weight", out, in.channels * time * edge * edge);
    in.x = biased(m, at, ft__conv_with(b, at, padded.x, weight, &s, m->batch * out, pixels_of(in)), out);
    in.channels = out;
    return in;
}

/* Every frame an image of its own. */
static ft_latent filtered_flat(ft_maker *m, ft_at at, ft_latent in, int64_t out, int64_t edge)
{
    ft_build *b = &m->b;
    const ft_conv_shape s = {.n = m->batch * in.frames,
                             .c = in.channels,
                             .h = in.height,
                             .w = in.width,
                             .k = out,
                             .r = edge,
                             .s = edge,
                             .stride = 1,
                             .pad = edge / 2,
                             .groups = 1};
    ft_ref weight = ft__parameter(b, "conv.weight", out, in.channels * edge * edge);
    in.x = biased(m, at, ft__conv_with(b, at, in.x, weight, &s, m->batch * out, pixels_of(in)), out);
    in.channels = out;
    return in;
}

/* Length over channels in fp32, division, and a scale, a weight and an offset of zero, one kernel each. */
static ft_latent normed(ft_maker *m, ft_at at, ft_latent p)
{
    ft_build *b = &m->b;
    const int64_t pixels = pixels_of(p);
    const ft_reduction length = {.what = "norm",
                                 .kernel = "sum_cols",
                                 .rows = m->batch,
                                 .cols = pixels,
                                 .kernel_rows = p.channels,
                                 .kernel_cols = m->batch * pixels};
    ft_ref wide = ft__cast(b, at, p.x, FT_FP32);
    ft_ref long_by = ft__pointwise(b, at, "clamp_min", ft__reduce_over(b, at, wide, &length));
    const ft_ref both[2] = {wide, long_by};
    ft_ref x = ft__pointwise_over(b, at, "div", 2, both, m->batch * p.channels, pixels);
    x = ft__pointwise(b, at, "mulu", ft__cast(b, at, x, b->stored));
    x = ft__mul(b, at, x, ft__parameter(b, "norm.weight", p.channels, 1));
    p.x = ft__pointwise(b, at, "addu", x);
    ft__module(b, 1);
    return p;
}

static ft_latent activated(ft_maker *m, ft_at at, ft_latent p) { return ft__latent_silu(m, at, normed(m, at, p)); }

static ft_latent residual(ft_maker *m, ft_latent in, int64_t out)
{
    ft__module(&m->b, 2);
    ft_latent h = in.channels != out ? filtered(m, FT_AT(SHORTCUT), in, out, 1, 1) : in;
    ft_latent p = filtered(m, FT_AT(CONV1), activated(m, FT_AT(CONV1), in), out, 3, 3);
    p = filtered(m, FT_AT(CONV2), activated(m, FT_AT(CONV2), p), out, 3, 3);
    p.x = ft__add(&m->b, FT_AT(RESIDUAL), p.x, h.x);
    return p;
}

/* One head over the latents of each frame. */
static ft_latent attended(ft_maker *m, ft_latent in)
{
    ft_build *b = &m->b;
    const int64_t plane = in.height * in.width, wide = in.channels, frames = m->batch * in.frames;
    int64_t thirds[3] = {wide, wide, wide};
    ft_ref part[3];
    ft__module(b, 2);
    ft_latent p = filtered_flat(m, FT_AT(ATTN_QKV_PROJ), normed(m, FT_AT(ATTN_NORM), in), 3 * wide, 1);
    ft_ref x = ft__contiguous(b, FT_AT(PROJECTOR), ft__view(b, p.x, frames * plane, 3 * wide, true));
    ft__split(b, x, 3, thirds, part);
    ft_scores s = {
        .shape = {.batch = frames, .heads = 1, .kv_heads = 1, .q_len = plane, .kv_len = plane, .head_dim = wide}};
    x = ft__part_attend(m, FT_AT(ATTN_CORE), part[0], part[1], part[2], &s);
    p.x = ft__contiguous(b, FT_AT(PROJECTOR), ft__view(b, x, m->batch * wide, in.frames * plane, true));
    p.channels = wide;
    p = filtered_flat(m, FT_AT(ATTN_O_PROJ), p, wide, 1);
    p.x = ft__add(b, FT_AT(ATTN_RESIDUAL), p.x, in.x);
    return p;
}

/* `time`: frames are doubled first, by twice the channels, but for the first frame of a video. Then twice the height
 * and width, in fp32, and half the channels. */
static ft_latent doubled(ft_maker *m, ft_latent p, bool time, bool first)
{
    ft_build *b = &m->b;
    const int64_t wide = p.channels;
    if (time && first) { /* whose filter is not run */
        ft__parameter(b, "conv.weight", 2 * wide, 3 * wide);
        ft__parameter(b, "conv.bias", 2 * wide, 1);
    } else if (time) {
        ft_latent both = filtered(m, FT_AT(DOWNSAMPLE), p, 2 * wide, 3, 1);
        p.frames *= 2;
        p.x = ft__copy(b, FT_AT(DOWNSAMPLE), both.x, m->batch * wide, pixels_of(p));
    }
    const ft_latent small = p;
    p.height *= 2;
    p.width *= 2;
    const ft_resize how = {.by = FT_RESIZE_NEAREST,
                           .axes = 2,
                           .pictures = (double)(m->batch * small.frames * wide),
                           .pixels = (double)(p.height * p.width),
                           .window = 1};
    ft_ref x = ft__contiguous(b, FT_AT(DOWNSAMPLE), ft__view(b, p.x, m->batch * wide, pixels_of(small), true));
    x = ft__cast(b, FT_AT(DOWNSAMPLE), x, FT_FP32);
    x = ft__resize(b, FT_AT(DOWNSAMPLE), "upsample", x, m->batch * wide, pixels_of(p), &how);
    p.x = ft__cast(b, FT_AT(DOWNSAMPLE), x, b->stored);
    ft__module(b, 2);
    return filtered_flat(m, FT_AT(DOWNSAMPLE), p, wide / 2, 3);
}

static int64_t times_doubled(const ft_arch *a)
{
    int64_t count = 0;
    for (int64_t span = a->latent_span; span > 1; span /= 2) count++;
    return count;
}

/* One latent frame. */
static ft_latent decoded(ft_maker *m, ft_latent p, bool first)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t last = a->stages - 1, times = times_doubled(a);
    p = filtered(m, FT_AT(STEM), p, a->width[last], 3, 3);
    p = attended(m, residual(m, p, a->width[last]));
    p = residual(m, p, a->width[last]);
    for (int64_t i = last; i >= 0 && b->status == FT_OK; i--) {
        for (int64_t j = 0; j <= a->layers && b->status == FT_OK; j++) p = residual(m, p, a->width[i]);
        if (i > 0) p = doubled(m, p, last - i < times, first);
    }
    return filtered(m, FT_AT(PROJECTION), activated(m, FT_AT(NORM), p), a->out_channels, 3, 3);
}

/* All frames so far are copied together with the new ones: on average half of the video, read and written. */
static ft_ref joined(ft_maker *m, ft_ref video, ft_ref frames)
{
    ft_build *b = &m->b;
    const ft_tensor t = *ft__tensor_of(b, video);
    return ft__other(b, FT_AT(UNPATCHIFY), "cat", frames, t.rows, t.cols,
                     (double)t.rows * (double)t.cols * t.element_bytes, 0);
}

void ft__make_video_autoencoder(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t scale = (int64_t)1 << (a->stages - 1), more = a->latent_frames - 1;
    const ft_latent one = {.channels = a->channels, .frames = 1, .height = a->latent_height, .width = a->latent_width};
    const int64_t frames = 1 + more * a->latent_span, plane = one.height * one.width;
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_latent all = one;
    all.frames = a->latent_frames;
    all.x = ft__input(b, m->batch * a->channels, a->latent_frames * plane, ft_dtype_bytes(b->stored));
    all = filtered(m, FT_AT(PROJECTOR_FC1), all, a->channels, 1, 1); /* post_quant_conv */
    ft_latent p = one;
    p.held = more > 0 ? KEPT : 1; /* by every filter, from the first frame on */
    p.x = ft__slice(b, all.x, m->batch * a->channels, plane);
    b->untracked = b->frozen = more > 0; /* the frames behind it have the same parameters */
    p = decoded(m, p, true);
    b->untracked = b->frozen = false;
    ft_ref video = p.x;
    if (more > 0) video = ft__activation(b, m->batch * a->out_channels, frames * scale * scale * plane, b->stored);
    video = ft__block_close(b, video);
    if (more > 0 && b->status == FT_OK) {
        video = ft__block_open(b, FT_BLOCK(LAYERS), more, video);
        b->once = true;
        p = one;
        p.x = ft__slice(b, all.x, m->batch * a->channels, plane);
        p = decoded(m, p, false);
        b->once = false;
        video = ft__block_close(b, joined(m, video, p.x));
    }
    video = ft__block_open(b, FT_BLOCK(HEAD), 1, video);
    ft__block_close(b, ft__against_pixels(m, ft__pointwise(b, FT_AT(UNPATCHIFY), "clamp", video)));
}
