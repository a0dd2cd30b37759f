/* clip.c: CLIP (Radford et al. 2021) and SigLIP (Zhai et al. 2023, without a class token): a tower for images, one
 * for text, and a contrastive head over all pairs of the batch. transformers runs the images first. */
#include "graph/emit.h"
#include "model/vision.h"

/* -- towers ------------------------------------------------------------------------------------ */

/* Positions are looked up in a table each time, though every position is taken. */
static ft_ref positions(ft_maker *m, int64_t rows, int64_t tokens, int64_t hidden)
{
    ft_build *b = &m->b;
    ft_ref table = FT_NONE, indices = ft__buffer(b, 1, rows, 8);
    if (tokens < rows) indices = ft__view(b, indices, 1, tokens, false); /* a shorter text than the table holds */
    return ft__embedding(b, FT_AT(POSITION), indices, rows, hidden, &table);
}

static ft_ref pictures(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__vision_token_count(a), hidden = a->vision_hidden;
    ft_tower tower = {.tokens = tokens,
                      .hidden = hidden,
                      .heads = a->vision_heads,
                      .ffn = a->vision_ffn,
                      .qkv_bias = true,
                      .attention_dropout = a->attention_dropout};
    ft__block_open(b, FT_BLOCK(VISION_EMBED), 1, FT_NONE);
    ft_ref x = ft__vision_tokens(m, hidden, a->class_absent ? FT_BIAS : FT_NO_BIAS);
    x = ft__add(b, FT_AT(POSITION), x, positions(m, tokens, tokens, hidden));
    if (!a->class_absent) x = ft__part_norm(m, FT_AT(NORM), x, FT_LAYERNORM, true);
    x = ft__block_close(b, x);
    x = ft__block_open(b, FT_BLOCK(VISION_LAYERS), a->vision_layers, x);
    x = ft__block_close(b, ft__vision_layer(m, x, &tower));
    x = ft__block_open(b, FT_BLOCK(VISION_HEAD), 1, x);
    if (a->class_absent) {
        x = ft__part_norm(m, FT_AT(NORM), x, FT_LAYERNORM, true);
        return ft__block_close(b, ft__vision_pooled(m, x, hidden, a->vision_heads, a->vision_ffn));
    }
    x = ft__contiguous(b, FT_AT(NORM), ft__slice(b, x, m->batch, hidden)); /* the class token, copied for the norm */
    x = ft__part_norm(m, FT_AT(NORM), x, FT_LAYERNORM, true);
    x = ft__linear(b, FT_AT(PROJECTION), x, a->projection, FT_NO_BIAS, FT_WHOLE);
    return ft__block_close(b, x);
}

/* The end of each text: the tokens compared with the end's number, the first hit per row, that row of x. */
static ft_ref text_end(ft_maker *m, ft_ref tokens, ft_ref x)
{
    ft_build *b = &m->b;
    ft_ref narrow = ft__pointwise(b, FT_AT(POOL_TO_INT), "copy", tokens);
    narrow = ft__pointwise(b, FT_AT(POOL_IS_END), "copy", narrow);
    narrow = ft__pointwise(b, FT_AT(POOL_TO_INT), "copy", narrow);
    ft__row(b, FT_AT(POOL_ARGMAX), "argmax", narrow);
    return ft__gather(b, FT_AT(POOL_INDEX), x, m->batch);
}

static ft_ref text(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->q_len;
    ft_tower tower = {.tokens = tokens,
                      .hidden = a->hidden,
                      .heads = a->heads,
                      .ffn = a->ffn,
                      .causal = a->causal,
                      .qkv_bias = true,
                      .attention_dropout = a->attention_dropout};
    ft_ref table = FT_NONE;
    ft__block_open(b, FT_BLOCK(TEXT_EMBED), 1, FT_NONE);
    ft_ref indices = ft__input(b, m->batch, tokens, 8);
    ft_ref x = ft__embedding(b, FT_AT(TOKEN), indices, a->vocab, a->hidden, &table);
    x = ft__add(b, FT_AT(POSITION), x, positions(m, a->position_rows, tokens, a->hidden));
    x = ft__block_close(b, x);
    x = ft__block_open(b, FT_BLOCK(TEXT_LAYERS), a->layers, x);
    x = ft__block_close(b, ft__vision_layer(m, x, &tower));
    x = ft__block_open(b, FT_BLOCK(TEXT_HEAD), 1, x);
    x = ft__part_norm(m, FT_AT(NORM), x, FT_LAYERNORM, true);
    x = a->class_absent ? ft__slice(b, x, m->batch, a->hidden) /* the last token, whatever it is */
                        : text_end(m, indices, x);
    x = ft__linear(b, FT_AT(PROJECTION), x, a->projection, a->class_absent ? FT_BIAS : FT_NO_BIAS, FT_WHOLE);
    return ft__block_close(b, x);
}

/* -- the head ---------------------------------------------------------------------------------- */

/* x over its length, written out: power, sum, root, quotient. */
static ft_ref unit(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    ft_ref square = ft__pointwise(b, FT_AT(UNIT_SQUARE), "powu", x);
    ft_ref sum = ft__reduce(b, FT_AT(UNIT_SUM), "sum", square);
    return ft__pointwise2(b, FT_AT(UNIT_DIV), "div", x, ft__pointwise(b, FT_AT(UNIT_ROOT), "powu", sum));
}

static ft_ref contrast(ft_maker *m, ft_ref image, ft_ref words)
{
    ft_build *b = &m->b;
    int64_t n = m->batch, width = m->arch->projection;
    ft_ref scale = ft__parameter(b, "logit_scale", 1, 1);
    if (m->arch->class_absent) ft__parameter(b, "logit_bias", 1, 1);
    image = unit(m, image);
    words = unit(m, words);
    ft_ref logits = ft__matmul(b, FT_AT(LOGITS), words, image, 1, n, n, width, "nt");
    logits = ft__mul(b, FT_AT(LOGITS_SCALE), logits, ft__pointwise(b, FT_AT(SCALE_EXP), "exp", scale));
    if (!b->training) return logits;
    ft_ref across = ft__contiguous(b, FT_AT(LOSS),
                                   ft__view(b, logits, n, n, true)); /* images by texts, texts by images */
    ft_ref sum = ft__add(b, FT_AT(LOSS_SUM), ft__loss(b, FT_AT(LOSS), logits, false),
                         ft__loss(b, FT_AT(LOSS), across, false));
    return ft__pointwise(b, FT_AT(LOSS_MEAN), "divu", sum);
}

void ft__make_clip(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (!ft__vision_task(m)) return;
    if (m->q_len > a->position_rows) {
        ft__build_fail(b, FT_E_RANGE, "a text of %lld tokens: this model's table of positions has %lld",
                       (long long)m->q_len, (long long)a->position_rows);
        return;
    }
    ft_ref image = pictures(m);
    ft_ref words = text(m);
    words = ft__block_open(b, FT_BLOCK(HEAD), 1, words);
    ft__block_close(b, contrast(m, image, words));
}
