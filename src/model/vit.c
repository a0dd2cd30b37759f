/* vit.c: Vision Transformer (Dosovitskiy et al. 2021) as transformers launches it: a strided convolution makes the
 * tokens, pre-norm layers with separate query, key and value products, the class token classified. Its kin: the towers
 * of CLIP and SigLIP by themselves, DINOv2 and v3 (scaled branches, registers, turned queries and keys). */
#include "graph/emit.h"
#include "model/vision.h"

static ft_ref embed(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool placed = a->position == FT_LEARNED_POSITION;
    int64_t rows = ft__vision_token_count(a) - a->registers + a->position_extra;
    ft_ref position = placed ? ft__parameter(b, "position_embeddings", rows, a->hidden) : FT_NONE;
    if (a->mask_token) ft__parameter(b, "mask_token", 1, a->hidden);
    ft_ref x = ft__vision_tokens(m, a->hidden, a->patch_bias_absent ? FT_NO_BIAS : FT_BIAS);
    if (placed) x = ft__add(b, FT_AT(POSITION), x, position);
    if (a->embed_norm) x = ft__part_norm(m, FT_AT(EMBED_NORM), x, FT_LAYERNORM, true);
    return ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout);
}

ft_ref ft__vision_pooled(ft_maker *m, ft_ref x, int64_t wide, int64_t heads, int64_t ffn)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(POOLER);
    int64_t tokens = ft__vision_token_count(a), halves[2] = {wide, wide};
    ft_ref one = ft__copy(b, at, ft__parameter(b, "probe", 1, wide), m->batch, wide), part[2];
    ft_ref q = ft__linear(b, at, one, wide, FT_BIAS, FT_WHOLE);
    ft__split(b, ft__linear(b, at, x, 2 * wide, FT_BIAS, FT_WHOLE), 2, halves, part);
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = heads,
                             .kv_heads = heads,
                             .q_len = 1,
                             .kv_len = tokens,
                             .head_dim = wide / heads},
                   .scale = true};
    ft_ref y = ft__linear(b, at, ft__part_attend(m, at, q, part[0], part[1], &s), wide, FT_BIAS, FT_WHOLE);
    ft_ref h = ft__part_norm(m, at, y, FT_LAYERNORM, true);
    return ft__add(b, at, y, ft__part_mlp(m, h, ffn, a->activation, false, false, FT_BIAS));
}

/* SAM's: a product and a filter of 3 x 3 over the patches, each normed over its channels. */
static ft_ref neck(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t side = a->image / a->patch;
    x = ft__linear(b, FT_AT(PROJECTOR_FC1), x, a->neck, FT_NO_BIAS, FT_WHOLE);
    x = ft__vision_norm(m, FT_AT(PROJECTOR_NORM), x, true);
    ft_image seen = {ft__view(b, x, m->batch * a->neck, side * side, true), a->neck, side, side};
    seen = ft__vision_filter(m, FT_AT(PROJECTOR_FC2), seen, a->neck, 3, 1, FT_NO_BIAS);
    x = ft__view(b, seen.x, m->batch * side * side, a->neck, !b->channels_last);
    return ft__vision_norm(m, FT_AT(PROJECTOR_NORM), x, true);
}

static ft_ref head(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->neck > 0) return neck(m, x);
    if (a->pool_mean) {
        int64_t patches = ft__vision_token_count(a) - 1;
        ft_reduction over = {"mean", "sum_cols", m->batch, a->hidden, patches, m->batch * a->hidden};
        x = ft__reduce_over(b, FT_AT(POOLER), ft__slice(b, x, m->batch * patches, a->hidden), &over);
        return ft__vision_classify(m, ft__vision_norm(m, FT_AT(NORM), x, true));
    }
    if (a->final_norm) x = ft__vision_norm(m, FT_AT(NORM), x, true);
    if (a->pool_head) return ft__vision_classify(m, ft__vision_pooled(m, x, a->hidden, a->heads, a->ffn));
    if (a->labels < 1 && !a->pooler) return x;
    x = ft__slice(b, x, m->batch, a->hidden); /* the class token */
    if (a->pooler) {
        x = ft__linear(b, FT_AT(POOLER), x, a->hidden, FT_BIAS, FT_WHOLE);
        x = ft__pointwise(b, FT_AT(POOLER_ACT), "tanh", x);
    }
    return ft__vision_classify(m, x);
}

/* Without a class token nothing copies the patches: the stream stays as the convolution left it, as DiT's does, and a
 * carry comes in contiguous. */
static ft_ref as_left(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    if (b->status == FT_OK && x != FT_NONE && m->arch->class_absent && !m->arch->registers && !b->channels_last)
        b->g->tensors[x].strided = b->g->tensors[x].permuted = true;
    return x;
}

void ft__make_vit(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (!ft__vision_task(m)) return;
    ft__part_unused_weights(m);
    ft_tower tower = {.tokens = ft__vision_token_count(a),
                      .hidden = a->hidden,
                      .heads = a->heads,
                      .ffn = a->ffn,
                      .qkv_bias = a->qkv_bias,
                      .key_bias_absent = !a->key_bias,
                      .attention_dropout = a->attention_dropout,
                      .residual_dropout = a->residual_dropout};
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = ft__block_close(b, embed(m));
    int64_t whole = a->tower_window > 0 && a->tower_whole < a->layers ? a->tower_whole : 0;
    tower.window = a->tower_window;
    x = as_left(m, ft__block_open(b, FT_BLOCK(LAYERS), a->layers - whole, x));
    ft__part_other_modules(m);
    x = ft__block_close(b, ft__vision_layer(m, x, &tower));
    if (whole > 0) { /* SAM's stand among the others, one in three */
        tower.window = 0;
        x = as_left(m, ft__block_open(b, FT_BLOCK(LAYERS_WHOLE), whole, x));
        x = ft__block_close(b, ft__vision_layer(m, x, &tower));
    }
    x = as_left(m, ft__block_open(b, FT_BLOCK(HEAD), 1, x));
    ft__block_close(b, head(m, x));
}
