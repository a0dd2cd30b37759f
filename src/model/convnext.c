/* convnext.c: ConvNeXt (Liu et al. 2022) as transformers launches it. The image is turned to channels-last by the
 * first layer norm and stays so: norms and products then work on [pixels, channels], and the depthwise filters run on
 * cuDNN's NHWC kernels. */
#include "graph/emit.h"
#include "model/relative.h"
#include "model/vision.h"

static ft_conv_shape patches(const ft_maker *m, int64_t side, int64_t in, int64_t out, int64_t filter)
{
    return (ft_conv_shape){.n = m->batch,
                           .c = in,
                           .h = side,
                           .w = side,
                           .k = out,
                           .r = filter,
                           .s = filter,
                           .stride = filter,
                           .groups = 1};
}

static ft_ref stem(ft_maker *m, int64_t *side)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref x = ft__input(b, m->batch * a->channels, a->image * a->image, ft_dtype_bytes(b->stored));
    ft_conv_shape s = patches(m, a->image, a->channels, a->stem_width, a->patch);
    bool before = b->channels_last;
    x = ft__vision_conv(m, FT_AT(PATCH_EMBED), x, &s, FT_BIAS);
    *side = a->image / a->patch;
    x = ft__view(b, x, m->batch * *side * *side, a->stem_width, !before); /* permute to channels-last */
    b->channels_last = true;
    return ft__vision_norm(m, FT_AT(NORM), x, true);
}

/* Between stages: norm, then non-overlapping patches of 2x2. */
static ft_ref downsample(ft_maker *m, ft_ref x, int64_t *side, int64_t in, int64_t out)
{
    ft_build *b = &m->b;
    ft_conv_shape s = patches(m, *side, in, out, 2);
    x = ft__part_norm(m, FT_AT(DOWNSAMPLE_NORM), x, FT_LAYERNORM, true);
    /* The filters are kept NCHW and turned each time. */
    ft__no_grad_kernels(b, FT_AT(DOWNSAMPLE), "copy", FT_NONE, out, 4 * in, ft__tensor_of(b, x)->element_bytes, 1);
    *side /= 2;
    ft__module(b, 1);
    return ft__vision_conv(m, FT_AT(DOWNSAMPLE), x, &s, FT_BIAS);
}

static ft_ref layer(ft_maker *m, ft_ref in, int64_t side, int64_t width)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_conv_shape s = {.n = m->batch,
                       .c = width,
                       .h = side,
                       .w = side,
                       .k = width,
                       .r = 7,
                       .s = 7,
                       .stride = 1,
                       .pad = 3,
                       .groups = width};
    ft__module(b, 2);
    ft_ref x = ft__vision_conv(m, FT_AT(DWCONV), in, &s, FT_BIAS);
    x = ft__part_norm(m, FT_AT(NORM), x, FT_LAYERNORM, true);
    x = ft__linear(b, FT_AT(MLP_FC1), x, 4 * width, FT_BIAS, FT_CUT_COLUMNS);
    x = ft__part_activation(m, FT_AT(MLP_ACT), a->activation, x);
    x = ft__linear(b, FT_AT(MLP_FC2), x, width, FT_BIAS, FT_CUT_ROWS);
    if (a->layer_scale) x = ft__mul(b, FT_AT(LAYER_SCALE), x, ft__parameter(b, "layer_scale", 1, width));
    return ft__add(b, FT_AT(RESIDUAL), in, x);
}

static ft_ref head(ft_maker *m, ft_ref x, int64_t side, int64_t width)
{
    ft_build *b = &m->b;
    x = ft__view(b, x, m->batch * width, side * side, true); /* the mean over pixels strides over channels */
    x = ft__reduce(b, FT_AT(POOL), "mean", x);
    x = ft__view(b, x, m->batch, width, false);
    x = ft__part_norm(m, FT_AT(NORM), x, FT_LAYERNORM, true);
    return ft__vision_classify(m, x);
}

void ft__make_convnext(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (!ft__vision_task(m)) return;
    int64_t side = 0, width = a->stem_width;
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = stem(m, &side);
    x = ft__block_close(b, x);
    for (int64_t i = 0; i < a->stages && i < FT_MAX_STAGES; i++) {
        if (i > 0) {
            x = ft__block_open(b, FT_BLOCK(STAGE1_DOWNSAMPLE) + i, 1, x);
            x = downsample(m, x, &side, width, a->width[i]);
            x = ft__block_close(b, x);
        }
        width = a->width[i];
        x = ft__block_open(b, FT_BLOCK(STAGE1) + i, a->depth[i], x);
        x = layer(m, x, side, width);
        x = ft__block_close(b, x);
    }
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    ft__block_close(b, head(m, x, side, width));
}
