/* video.c: Wan's diffusion transformer (arXiv 2503.20314) as diffusers launches it: latents of a video cut into
 * patches, attention over all of them with rotated queries and keys, a look at the text's tokens, a network; the time
 * step scales, shifts and gates by a table of each layer added to one product.
 *
 * A sample is a video of latent_frames by latent_height by latent_width and `max_position` words; of the model for
 * images in motion the image's tokens are left out. The loss is the mean square over the predicted velocity. */
#include "graph/emit.h"
#include "model/vision.h"

enum { SHIFT, SCALE, GATE, PARTS = 6 };

static int64_t patches_of(const ft_arch *a)
{
    return a->latent_frames * (a->latent_height / a->patch) * (a->latent_width / a->patch);
}

/* -- the condition -------------------------------------------------------------------------------- */

static ft_ref raised(ft_maker *m, ft_ref x, const char *activation)
{
    ft_build *b = &m->b;
    x = ft__linear(b, FT_AT(TIME_FC1), x, m->arch->hidden, FT_BIAS, FT_WHOLE);
    x = ft__part_activation(m, FT_AT(TIME_ACT), activation, x);
    return ft__linear(b, FT_AT(TIME_FC2), x, m->arch->hidden, FT_BIAS, FT_WHOLE);
}

static ft_ref timed(ft_maker *m)
{
    ft_build *b = &m->b;
    int64_t wide = m->arch->time_dim;
    ft_ref angle = ft__pointwise(b, FT_AT(TIME_ANGLE), "mulu", ft__activation(b, m->batch, wide / 2, FT_FP32));
    ft_ref half[2] = {ft__pointwise(b, FT_AT(TIME_COS), "cos", angle), ft__pointwise(b, FT_AT(TIME_SIN), "sin", angle)};
    ft_ref t = ft__cast(b, FT_AT(TIME), ft__cat(b, FT_AT(TIME), 2, half, m->batch, wide), b->stored);
    return raised(m, t, "silu");
}

/* A row for each of `parts`: the condition's, and the layer's own added. */
static void modulation(ft_maker *m, ft_ref six, int parts, ft_ref *out)
{
    ft_build *b = &m->b;
    int64_t hidden = m->arch->hidden, each[3] = {hidden, hidden, hidden}, halves[2] = {3 * hidden, 3 * hidden};
    ft_ref table = ft__parameter(b, "scale_shift_table", 1, parts * hidden), half[2];
    ft_ref sum = ft__add(b, FT_AT(ADALN), six, table);
    if (parts <= 3) {
        ft__split(b, sum, parts, each, out);
        return;
    }
    ft__split(b, sum, 2, halves, half);
    ft__split(b, half[0], 3, each, out);
    ft__split(b, half[1], 3, each, out + 3);
}

/* In fp32, whatever the stream is in. */
static ft_ref modulated(ft_maker *m, ft_at at, ft_ref x, ft_ref shift, ft_ref scale)
{
    ft_build *b = &m->b;
    if (m->stack->fused_norms) return ft__pointwise2(b, at, "mul", ft__row(b, at, "layernorm", x), scale);
    x = ft__row(b, at, "layernorm", ft__cast(b, at, x, FT_FP32));
    x = ft__mul(b, at, x, ft__pointwise(b, at, "addu", scale));
    return ft__cast(b, at, ft__add(b, at, x, shift), b->stored);
}

static ft_ref gated(ft_maker *m, ft_at at, ft_ref x, ft_ref gate, ft_ref y)
{
    ft_build *b = &m->b;
    x = ft__cast(b, at, x, FT_FP32);
    y = ft__mul(b, at, y, gate);
    return ft__cast(b, at, ft__add(b, at, x, y), b->stored);
}

/* -- attention ------------------------------------------------------------------------------------ */

static ft_ref turned(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_ROTARY);
    ft_tensor t = *ft__tensor_of(b, x);
    if (m->stack->fused_rotary) return ft__pointwise2(b, at, "mul", x, m->cos);
    ft_ref half = ft__slice(b, x, t.rows, t.cols / 2);
    ft_ref left = ft__mul(b, at, half, m->cos), right = ft__mul(b, at, half, m->cos);
    ft_ref even = ft__pointwise2(b, at, "sub", left, right);
    left = ft__mul(b, at, half, m->cos);
    right = ft__mul(b, at, half, m->cos);
    ft_ref odd = ft__add(b, at, left, right);
    ft_ref both[2] = {even, odd};
    return ft__assemble(b, at, 2, both, t.rows, t.cols);
}

static ft_ref attention(ft_maker *m, ft_ref x, ft_ref over, int64_t length, int64_t keys)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool cross = x != over;
    ft_ref q = ft__linear(b, cross ? FT_AT(CROSS_Q_PROJ) : FT_AT(ATTN_Q_PROJ), x, a->hidden, FT_BIAS, FT_CUT_COLUMNS);
    ft_ref k = ft__linear(b, cross ? FT_AT(CROSS_K_PROJ) : FT_AT(ATTN_K_PROJ), over, a->hidden, FT_BIAS,
                          FT_CUT_COLUMNS);
    ft_ref v = ft__linear(b, cross ? FT_AT(CROSS_V_PROJ) : FT_AT(ATTN_V_PROJ), over, a->hidden, FT_BIAS,
                          FT_CUT_COLUMNS);
    q = ft__rmsnorm_fused(b, FT_AT(ATTN_QK_NORM), q); /* torch.nn.RMSNorm: one kernel */
    k = ft__rmsnorm_fused(b, FT_AT(ATTN_QK_NORM), k);
    if (!cross) {
        q = turned(m, q);
        k = turned(m, k);
    }
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = a->heads,
                             .kv_heads = a->heads,
                             .q_len = length,
                             .kv_len = keys,
                             .head_dim = a->head_dim},
                   .scale = true};
    ft_ref y = ft__part_attend(m, cross ? FT_AT(CROSS_ATTEND) : FT_AT(ATTN_CORE), q, k, v, &s);
    return ft__linear(b, cross ? FT_AT(CROSS_O_PROJ) : FT_AT(ATTN_O_PROJ), y, a->hidden, FT_BIAS, FT_CUT_ROWS);
}

static ft_ref layer(ft_maker *m, ft_ref x, ft_ref six, ft_ref text)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t length = patches_of(a);
    ft_ref mod[PARTS];
    ft__module(b, 4);
    modulation(m, six, PARTS, mod);
    ft_ref h = modulated(m, FT_AT(ATTN_NORM), x, mod[SHIFT], mod[SCALE]);
    x = gated(m, FT_AT(ATTN_RESIDUAL), x, mod[GATE], attention(m, h, h, length, length));
    h = a->cross_norm ? ft__part_norm(m, FT_AT(CROSS_NORM), x, FT_LAYERNORM, true) : x;
    x = ft__add(b, FT_AT(CROSS_RESIDUAL), x, attention(m, h, text, length, a->max_position));
    h = modulated(m, FT_AT(MLP_NORM), x, mod[3 + SHIFT], mod[3 + SCALE]);
    h = ft__linear(b, FT_AT(MLP_FC1), h, a->ffn, FT_BIAS, FT_CUT_COLUMNS);
    h = ft__part_activation(m, FT_AT(MLP_ACT), a->activation, h);
    h = ft__linear(b, FT_AT(MLP_FC2), h, a->hidden, FT_BIAS, FT_CUT_ROWS);
    return gated(m, FT_AT(MLP_RESIDUAL), x, mod[3 + GATE], h);
}

/* -- the whole ------------------------------------------------------------------------------------ */

static ft_ref head(ft_maker *m, ft_ref x, ft_ref time)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t length = patches_of(a), rows = m->batch * length, out = a->patch * a->patch * a->out_channels;
    ft_ref mod[2], pair[2] = {time, time};
    modulation(m, ft__cat(b, FT_AT(ADALN), 2, pair, m->batch, 2 * a->hidden), 2, mod);
    x = modulated(m, FT_AT(NORM), x, mod[SHIFT], mod[SCALE]);
    x = ft__linear(b, FT_AT(PROJECTION), x, out, FT_BIAS, FT_WHOLE);
    x = ft__contiguous(b, FT_AT(UNPATCHIFY),
                       ft__view(b, x, m->batch * a->out_channels, rows * out / (m->batch * a->out_channels), true));
    if (!b->training) return x;
    ft_tensor t = *ft__tensor_of(b, x);
    x = ft__pointwise2(b, FT_AT(LOSS), "sub", x, ft__input(b, t.rows, t.cols, ft_dtype_bytes(b->stored)));
    x = ft__view(b, ft__pointwise(b, FT_AT(LOSS), "powu", x), m->batch, t.rows / m->batch * t.cols, false);
    return ft__reduce(b, FT_AT(LOSS), "mean", x);
}

void ft__make_video(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    double wide = ft_dtype_bytes(b->stored);
    if (!ft__vision_task(m)) return;
    ft__block_open(b, FT_BLOCK(CONDITION), 1, FT_NONE);
    ft_ref time = timed(m);
    ft_ref six = ft__linear(b, FT_AT(ADALN_LINEAR), ft__pointwise(b, FT_AT(ADALN_ACT), "silu", time), PARTS * a->hidden,
                            FT_BIAS, FT_WHOLE);
    ft_ref text = raised(m, ft__input(b, m->batch * a->max_position, a->context_dim, wide), "gelu_pytorch_tanh");
    text = ft__block_close(b, text);
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref pixels = ft__input(b, m->batch * patches_of(a), a->patch * a->patch * a->channels, wide);
    ft_ref x = ft__linear(b, FT_AT(PATCH_EMBED), pixels, a->hidden, FT_BIAS, FT_WHOLE);
    m->cos = ft__buffer(b, patches_of(a), 1, 4);
    x = ft__block_close(b, x);
    x = ft__block_open(b, FT_BLOCK(LAYERS), a->layers, x);
    x = ft__block_close(b, layer(m, x, six, text));
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    ft__block_close(b, head(m, x, time));
}
