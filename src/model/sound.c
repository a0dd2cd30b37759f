/* sound.c: wav2vec 2.0 (arXiv 2006.11477) and HuBERT as transformers launches them: a row of one-dimensional
 * convolutions over samples, a projection, positions by a grouped convolution, an encoder like bert's, and a small
 * vocabulary for CTC. `seq` counts the frames that the convolutions leave, 20 ms each of sound at 16 kHz.
 *
 * Left out: the masking of spans in training, and CTC's own recursion (a few small kernels; its loss is read as a
 * cross-entropy over the frames). */
#include "graph/emit.h"
#include "model/parts.h"
#include "model/relative.h"

/* The length before a filter that leaves `after`. */
static int64_t before(int64_t after, int64_t kernel, int64_t stride) { return (after - 1) * stride + kernel; }

static ft_ref filtered(ft_maker *m, ft_ref x, int64_t in, int64_t out, int64_t length, int64_t kernel, int64_t stride)
{
    ft_build *b = &m->b;
    ft_conv_shape s = {
        .n = m->batch, .c = in, .h = 1, .w = length, .k = out, .r = 1, .s = kernel, .stride = stride, .groups = 1};
    x = ft__conv(b, FT_AT(CONV1), x, &s, FT_NO_BIAS);
    if (m->arch->conv_bias)
        x = ft__pointwise_in_place(b, FT_AT(CONV1), "add", x, ft__parameter(b, "conv.bias", out, 1));
    return x;
}

/* Over each channel of a sample by itself behind the first filter alone; over channels behind every filter in models
 * whose layers are normed first. */
static ft_ref normed(ft_maker *m, ft_ref x, int64_t channels, int64_t length, bool first)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(CONV1);
    if (m->arch->conv_norms) {
        x = ft__transpose(b, at, x, m->batch * length, channels);
        x = ft__layernorm(b, at, x, FT_BIAS);
        return ft__transpose(b, at, x, m->batch * channels, length);
    }
    if (!first) return x;
    ft_ref weight = ft__parameter(b, "norm.weight", 1, channels), bias = ft__parameter(b, "norm.bias", 1, channels);
    return ft__groupnorm(b, at, x, m->batch * channels, weight, bias);
}

static ft_ref features(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t length[FT_MAX_STAGES + 1], in = 1;
    length[a->stages] = m->q_len;
    for (int64_t i = a->stages; i-- > 0;) length[i] = before(length[i + 1], a->depth[i], a->strides[i]);
    ft_ref x = ft__input(b, m->batch, length[0], ft_dtype_bytes(b->stored));
    for (int64_t i = 0; i < a->stages; i++) {
        x = filtered(m, x, in, a->width[i], length[i], a->depth[i], a->strides[i]);
        x = normed(m, x, a->width[i], length[i + 1], i == 0);
        x = ft__part_activation(m, FT_AT(CONV1), "gelu", x);
        in = a->width[i];
        ft__module(b, 1);
    }
    x = ft__contiguous(b, FT_AT(EMBED_NORM), ft__view(b, x, m->batch * m->q_len, in, true));
    x = ft__layernorm(b, FT_AT(EMBED_NORM), x, FT_BIAS);
    x = ft__linear(b, FT_AT(EMBED_PROJECT_IN), x, a->hidden, FT_BIAS, FT_WHOLE);
    ft__parameter(b, "masked_spec_embed", 1, a->hidden);
    return ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout);
}

/* A filter over many frames in groups, whose weight is normed (a direction, and a length for each place), added. */
static ft_ref placed(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(POSITION);
    int64_t kernel = a->conv_kernel, groups = a->groups > 0 ? a->groups : 1, rows = m->batch * m->q_len;
    ft_ref lengths = ft__parameter(b, "weight.lengths", 1, kernel);
    ft__no_grad_kernels(b, at, "mul", lengths, a->hidden * (a->hidden / groups), kernel, ft_dtype_bytes(b->stored), 2);
    ft_conv_shape s = {.n = m->batch,
                       .c = a->hidden,
                       .h = 1,
                       .w = m->q_len + kernel - 1,
                       .k = a->hidden,
                       .r = 1,
                       .s = kernel,
                       .stride = 1,
                       .groups = groups};
    ft_ref turned = ft__contiguous(b, at, ft__view(b, x, m->batch * a->hidden, m->q_len, true));
    ft_ref y = ft__conv(b, at, turned, &s, FT_NO_BIAS);
    y = ft__pointwise_in_place(b, at, "add", y, ft__parameter(b, "conv.bias", a->hidden, 1));
    y = ft__part_activation(m, at, "gelu", y);
    return ft__add(b, at, x, ft__contiguous(b, at, ft__view(b, y, rows, a->hidden, true)));
}

static ft_ref head(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t out = a->lm_head ? a->vocab : a->labels;
    if (out < 1) return x;
    x = ft__dropout(b, FT_AT(HEAD_DROPOUT), x, a->embed_dropout);
    x = ft__linear(b, FT_AT(LM_HEAD), x, out, FT_BIAS, FT_WHOLE);
    return b->training ? ft__loss(b, FT_AT(LOSS), x, true) : x;
}

void ft__make_sound(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool first = a->place == FT_PRE_NORM;
    if (m->work->task == FT_DECODE || m->work->task == FT_PREFILL) {
        ft__build_fail(b, FT_E_UNSUPPORTED, "%s hears a sound at once and keeps no cache: ask for \"forward\"",
                       a->model_type);
        return;
    }
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = placed(m, features(m));
    if (!first) x = ft__part_norm(m, FT_AT(EMBED_NORM), x, a->norm, a->norm_bias);
    x = ft__block_close(b, ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->residual_dropout));
    x = ft__block_open(b, FT_BLOCK(LAYERS), a->layers, x);
    x = ft__block_close(b, ft__part_encoder_layer(m, x));
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    if (first) x = ft__part_norm(m, FT_AT(NORM), x, a->norm, a->norm_bias);
    ft__block_close(b, head(m, x));
}
