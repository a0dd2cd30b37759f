/* vit.c: Vision Transformer (Dosovitskiy et al. 2021) as transformers launches it: a strided convolution makes the
 * tokens, pre-norm layers with separate query, key and value products, the class token classified. */
#include "graph/emit.h"
#include "model/vision.h"

static ft_ref embed(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref position = ft__parameter(b, "position_embeddings", ft__vision_token_count(a), a->hidden);
    ft_ref x = ft__vision_tokens(m, a->hidden, FT_BIAS);
    x = ft__add(b, FT_AT(POSITION), x, position);
    return ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout);
}

static ft_ref head(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    x = ft__part_norm(m, FT_AT(NORM), x, FT_LAYERNORM, true);
    if (a->labels < 1 && !a->pooler) return x;
    x = ft__slice(b, x, m->batch, a->hidden); /* the class token */
    if (a->pooler) {
        x = ft__linear(b, FT_AT(POOLER), x, a->hidden, FT_BIAS, FT_WHOLE);
        x = ft__pointwise(b, FT_AT(POOLER_ACT), "tanh", x);
    }
    return ft__vision_classify(m, x);
}

void ft__make_vit(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (!ft__vision_task(m)) return;
    ft_tower tower = {.tokens = ft__vision_token_count(a),
                      .hidden = a->hidden,
                      .heads = a->heads,
                      .ffn = a->ffn,
                      .qkv_bias = a->qkv_bias,
                      .attention_dropout = a->attention_dropout,
                      .residual_dropout = a->residual_dropout};
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = ft__block_close(b, embed(m));
    x = ft__block_open(b, FT_BLOCK(LAYERS), a->layers, x);
    x = ft__block_close(b, ft__vision_layer(m, x, &tower));
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    ft__block_close(b, head(m, x));
}
