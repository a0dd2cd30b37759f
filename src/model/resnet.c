/* resnet.c: ResNet (He et al. 2016) as transformers launches it. Every convolution is followed by a batch norm and, but
 * for the last of a block and its shortcut, a relu. The first block of a stage halves the image and widens it; the
 * shortcut then is a convolution too. Bottleneck blocks halve in the 3x3 filter, or in the first 1x1 where the config
 * says so (downsample_in_bottleneck). */
#include "graph/emit.h"
#include "model/pytorch.h"
#include "model/vision.h"

/* The norm counts its batches while it learns, and raises its variances each time it does not. */
static ft_ref norm(ft_maker *m, ft_at at, ft_ref x, int64_t channels)
{
    ft_build *b = &m->b;
    if (b->training)
        ft__pointwise_in_place(b, at, "addu", ft__buffer(b, 1, 1, 8), FT_NONE);
    else if (ft_dtype_bytes(b->stored) < 4)
        ft__cast(b, at, ft__buffer(b, 1, channels, ft_dtype_bytes(b->stored)), FT_FP32);
    return ft__batchnorm(b, at, x, channels);
}

static ft_image conv_norm(ft_maker *m, ft_at at, ft_image in, int64_t out, int64_t filter, int64_t stride,
                          const char *activation)
{
    ft_build *b = &m->b;
    ft_image p = ft__vision_filter(m, at, in, out, filter, stride, FT_NO_BIAS);
    p.x = norm(m, at, p.x, out);
    if (activation) p.x = ft__part_activation(m, at, activation, p.x);
    ft__module(b, 2);
    return p;
}

/* -- blocks ------------------------------------------------------------------------------------ */

static ft_image block(ft_maker *m, ft_image in, int64_t out, int64_t stride)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_image p = in;
    ft__module(b, 2);
    if (a->bottleneck) {
        int64_t inner = out / 4 > 0 ? out / 4 : 1, first = a->stride_on_1x1 ? stride : 1;
        p = conv_norm(m, FT_AT(CONV1), p, inner, 1, first, a->activation);
        p = conv_norm(m, FT_AT(CONV2), p, inner, 3, stride / first, a->activation);
        p = conv_norm(m, FT_AT(CONV3), p, out, 1, 1, NULL);
    } else {
        p = conv_norm(m, FT_AT(CONV1), p, out, 3, stride, a->activation);
        p = conv_norm(m, FT_AT(CONV2), p, out, 3, 1, NULL);
    }
    if (in.channels != out || stride != 1) in = conv_norm(m, FT_AT(SHORTCUT), in, out, 1, stride, NULL);
    p.x = ft__pointwise_in_place(b, FT_AT(RESIDUAL), "add", p.x, in.x);
    p.x = ft__part_activation(m, FT_AT(ACT), a->activation, p.x);
    return p;
}

static ft_image stem(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_image p = {.channels = a->channels, .height = a->image, .width = a->image};
    p.x = ft__input(b, m->batch * a->channels, a->image * a->image, ft_dtype_bytes(b->stored));
    if (b->channels_last) p.x = ft__view(b, p.x, m->batch * a->image * a->image, a->channels, false);
    p = conv_norm(m, FT_AT(STEM), p, a->stem_width, 7, 2, a->activation);
    p.height = (p.height - 1) / 2 + 1; /* 3x3, stride 2, one pixel of border */
    p.width = (p.width - 1) / 2 + 1;
    int64_t rows = m->batch * p.channels, cols = p.height * p.width;
    p.x = b->channels_last ? ft__pool(b, FT_AT(STEM_POOL), p.x, m->batch * cols, p.channels, 9)
                           : ft__pool(b, FT_AT(STEM_POOL), p.x, rows, cols, 9);
    return p;
}

static ft_ref head(ft_maker *m, ft_image p)
{
    ft_build *b = &m->b;
    ft_ref x = ft__view(b, p.x, m->batch * p.channels, p.height * p.width, b->channels_last);
    x = ft__reduce(b, FT_AT(POOL), "mean", x);
    x = ft__view(b, x, m->batch, p.channels, false);
    return ft__vision_classify(m, x);
}

void ft__make_resnet(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (!ft__vision_task(m)) return;
    /* As whoever trains on matrix units keeps images; transformers leaves them NCHW, turned round at each filter. A
     * compiled model turns its input once and stays so: Inductor makes convolutions channels-last unless a net has
     * grouped ones, more channels in than out behind larger filters, or few of them (torch/_inductor/graph.py,
     * decide_layout_opt), none of which a ResNet has. In fp32 images stay as they are said to lie: XLA leaves them
     * there (its layout assignment asks for matrix units first), and Inductor's are unmeasured. On AMD's GPUs earlier
     * versions of PyTorch convolve channels first, and Inductor leaves layouts alone (config.layout_optimization). */
    bool compiled = ft__compiles(m->work);
    b->channels_last = !m->work->nchw || (compiled && b->math != FT_FP32 && b->math != FT_FP64);
    if (ft__turns_pictures(m->work)) b->channels_last = false;
    if (m->stack->wide_nchw && b->math != FT_FP16 && b->math != FT_BF16) b->channels_last = false;
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_image p = stem(m);
    p.x = ft__block_close(b, p.x);
    for (int64_t i = 0; i < a->stages && i < FT_MAX_STAGES; i++) {
        int64_t stride = i > 0 || a->stride_first_stage ? 2 : 1;
        p.x = ft__block_open(b, FT_BLOCK(STAGE1) + i, 1, p.x);
        p = block(m, p, a->width[i], stride);
        p.x = ft__block_close(b, p.x);
        if (a->depth[i] < 2) continue;
        p.x = ft__block_open(b, FT_BLOCK(STAGE1) + i, a->depth[i] - 1, p.x);
        p = block(m, p, a->width[i], 1);
        p.x = ft__block_close(b, p.x);
    }
    p.x = ft__block_open(b, FT_BLOCK(HEAD), 1, p.x);
    ft__block_close(b, head(m, p));
}
