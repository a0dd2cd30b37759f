/* What models of images share: convolutions with a bias, patches as tokens, the pre-norm layer of ViT and both towers
 * of CLIP, the classifier. Images are [batch * channels, height * width], as frameworks keep them (NCHW), or
 * [batch * height * width, channels] where an implementation made them so. */
#ifndef FT_MODEL_VISION_H
#define FT_MODEL_VISION_H
#include "model/parts.h"

/* Images have no earlier tokens: refuses prefill and decode. False when it did. */
bool ft__vision_task(ft_maker *m);

/* A convolution and, where it has one, its bias: a kernel of its own, in place. Result [n * k, pixels], or
 * [n * pixels, k] when the builder's images are NHWC. */
ft_ref ft__vision_conv(ft_maker *m, ft_at at, ft_ref x, const ft_conv_shape *shape, ft_bias bias);

/* An image, its channels and its pixels. */
typedef struct ft_image {
    ft_ref x;
    int64_t channels, height, width;
} ft_image;

/* Square filters over all channels, padded by half of themselves: `out` channels, sides that the stride divides. */
ft_image ft__vision_filter(ft_maker *m, ft_at at, ft_image in, int64_t out, int64_t filter, int64_t stride,
                           ft_bias bias);

/* Layer norm over channels. An image whose channels do not lie next to each other is copied into order first, and the
 * copy dropped afterwards. `affine`: with weights of its own. */
ft_ref ft__vision_norm(ft_maker *m, ft_at at, ft_ref x, bool affine);

/* The image cut into patches by one convolution, one class token in front: [batch * tokens, hidden]. */
ft_ref ft__vision_tokens(ft_maker *m, int64_t hidden, ft_bias bias);
int64_t ft__vision_token_count(const ft_arch *a); /* patches and the class token */

typedef struct ft_tower {
    int64_t tokens, hidden, heads, ffn; /* tokens: of one sequence */
    bool causal, qkv_bias, key_bias_absent;
    double attention_dropout, residual_dropout;
    int64_t window; /* patches to a side that a layer sees, of an architecture with windows; 0: all */
} ft_tower;
ft_ref ft__vision_layer(ft_maker *m, ft_ref x, const ft_tower *tower);

/* One learned query looks at all patches, and a network behind it: siglip (vit.c). */
ft_ref ft__vision_pooled(ft_maker *m, ft_ref x, int64_t wide, int64_t heads, int64_t ffn);

/* Linear to the labels, and the loss on it in the model's own format when training. Without labels x itself. */
ft_ref ft__vision_classify(ft_maker *m, ft_ref x);
#endif
