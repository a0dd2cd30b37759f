/* diffusion.c: DiT (Peebles & Xie 2023), class-conditional, after the authors' own model: latents cut into patches, one
 * fused product for queries, keys and values, norms without weights whose scale, shift and gate are made from the time
 * step and the class by a product per layer (adaLN-Zero). The loss is the mean square over the predicted noise; where
 * the model predicts variances too (twice the channels) the other half has no gradient here.
 *
 * The stream of tokens stays as the convolution left it, channels before tokens (nothing between copies it, as ViT's
 * class token does): each norm copies it into order first, each residual sum reads one operand across. Whisper's
 * encoder does the same and was measured doing so. */
#include "graph/emit.h"
#include "model/vision.h"

enum { FREQUENCIES = 256 };

/* -- the condition ------------------------------------------------------------------------------ */

/* Sines and cosines of the time step, raised by two products, and a row of the table of classes. */
static ft_ref condition(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref angle = ft__pointwise(b, FT_AT(TIME_ANGLE), "mulu", ft__activation(b, m->batch, FREQUENCIES / 2, FT_FP32));
    ft_ref half[2] = {ft__pointwise(b, FT_AT(TIME_COS), "cos", angle), ft__pointwise(b, FT_AT(TIME_SIN), "sin", angle)};
    ft_ref t = ft__cast(b, FT_AT(TIME), ft__cat(b, FT_AT(TIME), 2, half, m->batch, FREQUENCIES), b->stored);
    t = ft__linear(b, FT_AT(TIME_FC1), t, a->hidden, FT_BIAS, FT_WHOLE);
    t = ft__pointwise(b, FT_AT(TIME_ACT), "silu", t);
    t = ft__linear(b, FT_AT(TIME_FC2), t, a->hidden, FT_BIAS, FT_WHOLE);
    ft_ref table = FT_NONE, labels = ft__input(b, m->batch, 1, 8);
    if (b->training) { /* some labels are replaced by "none", the table's last row */
        ft_ref drop = ft__pointwise(b, FT_AT(LABEL_DROP), "addu", labels);
        labels = ft__pointwise2(b, FT_AT(LABEL_DROP), "where", labels, drop);
    }
    ft_ref y = ft__embedding(b, FT_AT(LABEL), labels, a->labels + 1, a->hidden, &table);
    return ft__add(b, FT_AT(CONDITION), t, y);
}

/* `parts` rows of [batch, hidden] out of the condition. */
static void modulation(ft_maker *m, ft_ref c, int parts, ft_ref *out)
{
    ft_build *b = &m->b;
    int64_t hidden = m->arch->hidden;
    c = ft__pointwise(b, FT_AT(ADALN_ACT), "silu", c);
    c = ft__linear(b, FT_AT(ADALN_LINEAR), c, parts * hidden, FT_BIAS, FT_WHOLE);
    ft__module(b, 2);
    /* A node has at most four results: six parts are two halves of three. */
    int64_t part[3] = {hidden, hidden, hidden}, halves[2] = {3 * hidden, 3 * hidden};
    if (parts <= 3) {
        ft__split(b, c, parts, part, out);
        return;
    }
    ft_ref half[2];
    ft__split(b, c, 2, halves, half);
    ft__split(b, half[0], 3, part, out);
    ft__split(b, half[1], 3, part, out + 3);
}

/* norm(x) (1 + scale) + shift: the norm has no weights of its own. */
static ft_ref modulated(ft_maker *m, ft_at at, ft_ref x, ft_ref shift, ft_ref scale)
{
    ft_build *b = &m->b;
    x = ft__vision_norm(m, at, x, false);
    if (m->stack->fused_norms) return ft__pointwise2(b, at, "mul", x, scale);
    x = ft__mul(b, at, x, ft__pointwise(b, at, "addu", scale));
    return ft__add(b, at, x, shift);
}

static ft_ref gated(ft_maker *m, ft_at at, ft_ref x, ft_ref gate, ft_ref h)
{
    ft_build *b = &m->b;
    return ft__add(b, at, x, ft__mul(b, at, h, gate));
}

/* A carry comes in contiguous; this one is as the convolution left it. */
static ft_ref turned(ft_build *b, ft_ref x)
{
    if (b->status == FT_OK && x != FT_NONE && !b->channels_last)
        b->g->tensors[x].strided = b->g->tensors[x].permuted = true;
    return x;
}

/* -- layers ------------------------------------------------------------------------------------- */

static ft_ref layer(ft_maker *m, ft_ref x, ft_ref c)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = a->max_position, part[3] = {a->hidden, a->hidden, a->hidden};
    enum { SHIFT, SCALE, GATE, MLP };
    ft_ref mod[6], qkv[3];
    ft__module(b, 3);
    modulation(m, c, 6, mod);
    ft_ref h = modulated(m, FT_AT(ATTN_NORM), x, mod[SHIFT], mod[SCALE]);
    h = ft__linear(b, FT_AT(ATTN_QKV_PROJ), h, 3 * a->hidden, a->qkv_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_COLUMNS);
    ft__split(b, h, 3, part, qkv);
    ft_scores scores = {.shape = {.batch = m->batch,
                                  .heads = a->heads,
                                  .kv_heads = a->heads,
                                  .q_len = tokens,
                                  .kv_len = tokens,
                                  .head_dim = a->head_dim,
                                  .v_dim = a->head_dim},
                        .scale = true};
    h = ft__part_attend(m, FT_AT(ATTN_CORE), qkv[0], qkv[1], qkv[2], &scores);
    h = ft__linear(b, FT_AT(ATTN_O_PROJ), h, a->hidden, FT_BIAS, FT_CUT_ROWS);
    x = gated(m, FT_AT(ATTN_RESIDUAL), x, mod[GATE], h);
    h = modulated(m, FT_AT(MLP_NORM), x, mod[MLP + SHIFT], mod[MLP + SCALE]);
    h = ft__linear(b, FT_AT(MLP_FC1), h, a->ffn, FT_BIAS, FT_CUT_COLUMNS);
    h = ft__part_activation(m, FT_AT(MLP_ACT), a->activation, h);
    h = ft__linear(b, FT_AT(MLP_FC2), h, a->hidden, FT_BIAS, FT_CUT_ROWS);
    return gated(m, FT_AT(MLP_RESIDUAL), x, mod[MLP + GATE], h);
}

/* -- ends --------------------------------------------------------------------------------------- */

static ft_ref embed(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = a->max_position;
    ft_ref position = ft__buffer(b, tokens, a->hidden, ft_dtype_bytes(b->stored));
    ft_ref x = ft__input(b, m->batch * a->channels, a->image * a->image, ft_dtype_bytes(b->stored));
    ft_conv_shape s = {.n = m->batch,
                       .c = a->channels,
                       .h = a->image,
                       .w = a->image,
                       .k = a->hidden,
                       .r = a->patch,
                       .s = a->patch,
                       .stride = a->patch,
                       .groups = 1};
    x = ft__vision_conv(m, FT_AT(PATCH_EMBED), x, &s, FT_BIAS);
    x = ft__view(b, x, m->batch * tokens, a->hidden, !b->channels_last);
    return ft__add(b, FT_AT(POSITION), x, position);
}

static ft_ref head(ft_maker *m, ft_ref x, ft_ref c)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t pixels = a->max_position * a->patch * a->patch, out = a->out_channels;
    ft_ref mod[2];
    modulation(m, c, 2, mod);
    x = modulated(m, FT_AT(NORM), x, mod[0], mod[1]);
    x = ft__linear(b, FT_AT(PROJECTION), x, a->patch * a->patch * out, FT_BIAS, FT_WHOLE);
    x = ft__contiguous(b, FT_AT(UNPATCHIFY), ft__view(b, x, m->batch * out, pixels, true));
    if (!b->training) return x;
    ft_ref noise = ft__input(b, m->batch * a->channels, pixels, ft_dtype_bytes(b->stored));
    if (out > a->channels) x = ft__slice(b, x, m->batch * a->channels, pixels);
    x = ft__pointwise2(b, FT_AT(LOSS), "sub", x, noise);
    x = ft__pointwise(b, FT_AT(LOSS), "powu", x);
    x = ft__view(b, x, m->batch, a->channels * pixels, false);
    return ft__reduce(b, FT_AT(LOSS), "mean", x);
}

void ft__make_diffusion(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (!ft__vision_task(m)) return;
    ft__block_open(b, FT_BLOCK(CONDITION), 1, FT_NONE);
    ft_ref c = ft__block_close(b, condition(m));
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = ft__block_close(b, embed(m));
    x = turned(b, ft__block_open(b, FT_BLOCK(LAYERS), a->layers, x));
    x = ft__block_close(b, layer(m, x, c));
    x = turned(b, ft__block_open(b, FT_BLOCK(HEAD), 1, x));
    ft__block_close(b, head(m, x, c));
}
