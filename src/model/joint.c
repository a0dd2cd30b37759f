/* joint.c: diffusion transformers in which images and words attend together (MMDiT): Stable Diffusion 3
 * (arXiv 2403.03206), Flux and Flux 2, as diffusers launches them. Two streams with weights of their own meet in one
 * attention; Flux then runs both as one stream, attention and network side by side. Every norm is scaled, shifted and
 * gated by what a product makes of the time step and the pooled text.
 *
 * Flux 2 has one modulation for all layers of a kind, gated networks, no bias, and in its one stream a single product
 * before attention and network and one behind both.
 *
 * A sample is an image of latents and `max_position` words. The loss is the mean square over the
 * predicted velocity. Left out: text encoders and the autoencoder, which are models of their own. */
#include "graph/emit.h"
#include "model/picture_size.h"
#include "model/vision.h"

enum { FREQUENCIES = 256, SHIFT = 0, SCALE = 1, GATE = 2, MOST_PARTS = 9 };

typedef struct streams {
    ft_ref seen, said;               /* of images, of words; said: FT_NONE once they are one */
    ft_ref to_seen, to_said, to_one; /* what their norms are told in every layer; FT_NONE: each layer makes it */
    int64_t patches, words;
} streams;

/* What comes with gated networks in the one public model that has them: norms of all layers of a kind are told the
 * same, and in one stream a single product stands before attention and network. */
static bool as_flux2(const ft_arch *a) { return a->gated; }

static ft_bias bias_of(const ft_maker *m) { return m->arch->mlp_bias ? FT_BIAS : FT_NO_BIAS; }

/* -- what every norm is told ---------------------------------------------------------------------- */

static ft_ref raised(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    x = ft__linear(b, FT_AT(TIME_FC1), x, m->arch->hidden, bias_of(m), FT_WHOLE);
    x = ft__pointwise(b, FT_AT(TIME_ACT), "silu", x);
    return ft__linear(b, FT_AT(TIME_FC2), x, m->arch->hidden, bias_of(m), FT_WHOLE);
}

static ft_ref sines(ft_maker *m)
{
    ft_build *b = &m->b;
    ft_ref angle = ft__pointwise(b, FT_AT(TIME_ANGLE), "mulu", ft__activation(b, m->batch, FREQUENCIES / 2, FT_FP32));
    ft_ref half[2] = {ft__pointwise(b, FT_AT(TIME_COS), "cos", angle), ft__pointwise(b, FT_AT(TIME_SIN), "sin", angle)};
    return ft__cast(b, FT_AT(TIME), ft__cat(b, FT_AT(TIME), 2, half, m->batch, FREQUENCIES), b->stored);
}

static ft_ref condition(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref c = raised(m, sines(m));
    if (a->guided) c = ft__add(b, FT_AT(CONDITION), c, raised(m, sines(m)));
    if (a->pooled_dim > 0)
        c = ft__add(b, FT_AT(CONDITION), c,
                    raised(m, ft__input(b, m->batch, a->pooled_dim, ft_dtype_bytes(b->stored))));
    return c;
}

/* What the condition says to `parts` rows of the model's width. */
static ft_ref told(ft_maker *m, ft_ref c, int parts)
{
    ft_build *b = &m->b;
    return ft__linear(b, FT_AT(ADALN_LINEAR), ft__pointwise(b, FT_AT(ADALN_ACT), "silu", c), parts * m->arch->hidden,
                      bias_of(m), FT_WHOLE);
}

static void parted(ft_maker *m, ft_ref said, int parts, ft_ref *out)
{
    ft_build *b = &m->b;
    int64_t hidden = m->arch->hidden, three[3] = {hidden, hidden, hidden}, by[3] = {3 * hidden, 3 * hidden, 3 * hidden};
    ft_ref third[3] = {FT_NONE, FT_NONE, FT_NONE};
    if (parts <= 3) {
        ft__split(b, said, parts, three, out);
        return;
    }
    ft__split(b, said, parts / 3, by, third); /* a node has at most four results */
    for (int i = 0; i < parts / 3; i++) ft__split(b, third[i], 3, three, out + 3 * i);
}

/* A layer's own product of the condition, or what was made once for all of them. */
static void modulation(ft_maker *m, ft_ref c, ft_ref once, int parts, ft_ref *out)
{
    ft_ref said = once;
    if (once == FT_NONE) {
        said = told(m, c, parts);
        ft__module(&m->b, 2);
    }
    parted(m, said, parts, out);
}

static ft_ref modulated(ft_maker *m, ft_at at, ft_ref x, const ft_ref *part)
{
    ft_build *b = &m->b;
    x = ft__vision_norm(m, at, x, false);
    if (m->stack->fused_norms) return ft__pointwise2(b, at, "mul", x, part[SCALE]);
    x = ft__mul(b, at, x, ft__pointwise(b, at, "addu", part[SCALE]));
    return ft__add(b, at, x, part[SHIFT]);
}

static ft_ref gated(ft_maker *m, ft_at at, ft_ref x, ft_ref gate, ft_ref y)
{
    return ft__add(&m->b, at, x, ft__mul(&m->b, at, y, gate));
}

/* -- attention ------------------------------------------------------------------------------------ */

static ft_ref normed_heads(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = ft__tensor_of(b, x)->rows;
    if (a->qk_norm == FT_NO_QK_NORM) return x;
    ft_ref heads = ft__view(b, x, rows * a->heads, a->head_dim, false);
    return ft__view(b, ft__rmsnorm_fused(b, FT_AT(ATTN_QK_NORM), heads), rows, a->hidden, false);
}

/* Queries, keys and values of one stream, heads normed; out: [batch * length, hidden] each. */
static void projected(ft_maker *m, ft_ref x, ft_ref *out)
{
    const ft_at at[3] = {FT_AT(ATTN_Q_PROJ), FT_AT(ATTN_K_PROJ), FT_AT(ATTN_V_PROJ)};
    for (int i = 0; i < 3; i++) {
        out[i] = ft__linear(&m->b, at[i], x, m->arch->hidden, bias_of(m), FT_CUT_COLUMNS);
        if (i < 2) out[i] = normed_heads(m, out[i]);
    }
}

/* Pairs are turned in fp32: two products, a sum, and casts. */
static ft_ref turned(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_ROTARY);
    if (m->arch->position != FT_ROTARY) return x;
    if (m->stack->fused_rotary) return ft__pointwise2(b, at, "mul", x, m->cos);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref wide = ft__cast(b, at, x, FT_FP32);
    ft_ref half[2] = {ft__pointwise(b, at, "neg", ft__slice(b, x, t.rows, t.cols / 2)),
                      ft__slice(b, x, t.rows, t.cols / 2)};
    ft_ref across = ft__cast(b, at, ft__cat(b, at, 2, half, t.rows, t.cols), FT_FP32);
    wide = ft__mul(b, at, wide, m->cos);
    across = ft__mul(b, at, across, m->cos);
    return ft__cast(b, at, ft__add(b, at, wide, across), b->stored);
}

static ft_ref attended(ft_maker *m, const ft_ref *qkv, int64_t length)
{
    const ft_arch *a = m->arch;
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = a->heads,
                             .kv_heads = a->heads,
                             .q_len = length,
                             .kv_len = length,
                             .head_dim = a->head_dim},
                   .scale = true};
    return ft__part_attend(m, FT_AT(ATTN_CORE), turned(m, qkv[0]), turned(m, qkv[1]), qkv[2], &s);
}

/* Gate and rest of a product twice as wide, or one that is activated whole. */
static ft_ref activated(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t halves[2] = {a->ffn, a->ffn};
    ft_ref part[2];
    if (!a->gated) return ft__part_activation(m, FT_AT(MLP_ACT), a->activation, x);
    ft__split(b, x, 2, halves, part);
    return ft__mul(b, FT_AT(MLP_ACT), ft__part_activation(m, FT_AT(MLP_ACT), a->activation, part[0]), part[1]);
}

static int64_t widened(const ft_arch *a) { return a->gated ? 2 * a->ffn : a->ffn; }

static ft_ref network(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    x = ft__linear(b, FT_AT(MLP_FC1), x, widened(a), bias_of(m), FT_CUT_COLUMNS);
    return ft__linear(b, FT_AT(MLP_FC2), activated(m, x), a->hidden, bias_of(m), FT_CUT_ROWS);
}

/* -- layers --------------------------------------------------------------------------------------- */

typedef struct ft_joint_kind {
    bool twice; /* images attend to themselves besides */
    bool ends;  /* words go no further: the last layer of Stable Diffusion 3 */
} ft_joint_kind;

static void joint_layer(ft_maker *m, streams *s, ft_ref c, ft_joint_kind kind)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t seen = m->batch * s->patches, said = m->batch * s->words, all = s->patches + s->words;
    ft_ref mod[MOST_PARTS], words[MOST_PARTS], one[3], other[3], both[3];
    ft__module(b, 4);
    modulation(m, c, s->to_seen, kind.twice ? 9 : 6, mod);
    modulation(m, c, s->to_said, kind.ends ? 2 : 6, words);
    ft_ref x = modulated(m, FT_AT(ATTN_NORM), s->seen, mod), again = FT_NONE;
    ft_ref y = modulated(m, FT_AT(ATTN_NORM), s->said, words);
    if (kind.twice) again = modulated(m, FT_AT(ATTN_NORM), s->seen, mod + 6);
    projected(m, x, one);
    projected(m, y, other);
    for (int i = 0; i < 3; i++) {
        ft_ref pair[2] = {other[i], one[i]};
        both[i] = ft__cat(b, FT_AT(ATTN_CORE), 2, pair, seen + said, a->hidden);
    }
    ft_ref z = attended(m, both, all);
    x = ft__linear(b, FT_AT(ATTN_O_PROJ), ft__slice(b, z, seen, a->hidden), a->hidden, bias_of(m), FT_CUT_ROWS);
    s->seen = gated(m, FT_AT(ATTN_RESIDUAL), s->seen, mod[GATE], x);
    if (kind.twice) {
        projected(m, again, one);
        x = ft__linear(b, FT_AT(ATTN_O_PROJ), attended(m, one, s->patches), a->hidden, bias_of(m), FT_CUT_ROWS);
        s->seen = gated(m, FT_AT(ATTN_RESIDUAL), s->seen, mod[6 + GATE], x);
    }
    x = network(m, modulated(m, FT_AT(MLP_NORM), s->seen, mod + 3));
    s->seen = gated(m, FT_AT(MLP_RESIDUAL), s->seen, mod[3 + GATE], x);
    if (kind.ends) return;
    y = ft__linear(b, FT_AT(ATTN_O_PROJ), ft__slice(b, z, said, a->hidden), a->hidden, bias_of(m), FT_CUT_ROWS);
    s->said = gated(m, FT_AT(ATTN_RESIDUAL), s->said, words[GATE], y);
    y = network(m, modulated(m, FT_AT(MLP_NORM), s->said, words + 3));
    s->said = gated(m, FT_AT(MLP_RESIDUAL), s->said, words[3 + GATE], y);
}

/* Both streams are one row of tokens from block to block. */
static ft_ref joint_layers(ft_maker *m, ft_ref x, ft_ref c, streams *s, int64_t count, ft_joint_kind kind)
{
    ft_build *b = &m->b;
    int64_t seen = m->batch * s->patches, said = m->batch * s->words, hidden = m->arch->hidden;
    if (count < 1) return x;
    x = ft__block_open(b, FT_BLOCK(LAYERS), count, x);
    s->seen = ft__slice(b, x, seen, hidden);
    s->said = ft__slice(b, x, said, hidden);
    joint_layer(m, s, c, kind);
    if (kind.ends) return ft__block_close(b, s->seen);
    ft_ref both[2] = {s->said, s->seen};
    return ft__block_close(b, ft__assemble(b, FT_AT(RESIDUAL), 2, both, seen + said, hidden));
}

/* Both by one product: queries, keys, values and what the network widens to. */
static ft_ref projected_with(ft_maker *m, ft_ref x, ft_ref *qkv)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t wide = widened(a), parts[4] = {a->hidden, a->hidden, a->hidden, wide};
    ft_ref out[4];
    x = ft__linear(b, FT_AT(ATTN_QKV_PROJ), x, 3 * a->hidden + wide, bias_of(m), FT_CUT_COLUMNS);
    ft__split(b, x, 4, parts, out);
    for (int i = 0; i < 3; i++) qkv[i] = i < 2 ? normed_heads(m, out[i]) : out[i];
    return out[3];
}

static ft_ref single_layer(ft_maker *m, ft_ref x, ft_ref c, const streams *s)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t length = s->patches + s->words;
    ft_ref mod[3], qkv[3], wide;
    ft__module(b, 3);
    modulation(m, c, s->to_one, 3, mod);
    ft_ref h = modulated(m, FT_AT(ATTN_NORM), x, mod);
    if (as_flux2(a)) {
        wide = projected_with(m, h, qkv);
    } else {
        wide = ft__linear(b, FT_AT(MLP_FC1), h, widened(a), bias_of(m), FT_CUT_COLUMNS);
        projected(m, h, qkv);
    }
    wide = activated(m, wide);
    ft_ref both[2] = {attended(m, qkv, length), wide};
    h = ft__cat(b, FT_AT(MLP_ACT), 2, both, m->batch * length, a->hidden + a->ffn);
    h = ft__linear(b, FT_AT(MLP_FC2), h, a->hidden, bias_of(m), FT_CUT_ROWS);
    return gated(m, FT_AT(RESIDUAL), x, mod[GATE], h);
}

/* -- the whole ------------------------------------------------------------------------------------ */

static ft_ref embed(ft_maker *m, const streams *s)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    double wide = ft_dtype_bytes(b->stored);
    int64_t rows = m->batch * s->patches, patch = a->patch * a->patch * a->channels;
    ft_ref x = ft__linear(b, FT_AT(PATCH_EMBED), ft__input(b, rows, patch, wide), a->hidden, bias_of(m), FT_WHOLE);
    if (a->position == FT_SINUSOIDAL) x = ft__add(b, FT_AT(POSITION), x, ft__buffer(b, s->patches, a->hidden, wide));
    ft_ref y = ft__linear(b, FT_AT(EMBED_PROJECT_IN), ft__input(b, m->batch * s->words, a->context_dim, wide),
                          a->hidden, bias_of(m), FT_WHOLE);
    m->cos = ft__buffer(b, s->patches + s->words, 1, 4);
    ft_ref both[2] = {y, x};
    return ft__cat(b, FT_AT(EMBED_TOKENS), 2, both, m->batch * (s->patches + s->words), a->hidden);
}

static ft_ref head(ft_maker *m, ft_ref x, ft_ref c, int64_t patches)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = m->batch * patches, out = a->patch * a->patch * a->out_channels;
    ft_ref mod[2];
    if (ft__tensor_of(b, x)->rows != rows) x = ft__slice(b, x, rows, a->hidden);
    modulation(m, c, FT_NONE, 2, mod);
    x = modulated(m, FT_AT(NORM), x, mod);
    x = ft__linear(b, FT_AT(PROJECTION), x, out, bias_of(m), FT_WHOLE);
    if (!b->training) return x;
    x = ft__pointwise2(b, FT_AT(LOSS), "sub", x, ft__input(b, rows, out, ft_dtype_bytes(b->stored)));
    x = ft__view(b, ft__pointwise(b, FT_AT(LOSS), "powu", x), m->batch, patches * out, false);
    return ft__reduce(b, FT_AT(LOSS), "mean", x);
}

static ft_ref told_once(ft_maker *m, ft_ref c, int parts)
{
    ft__block_open(&m->b, FT_BLOCK(CONDITION), 1, FT_NONE);
    return ft__block_close(&m->b, told(m, c, parts));
}

void ft__make_joint(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (!ft__vision_task(m)) return;
    int64_t rows = a->image / a->patch, across = ft__latents_across(a) / a->patch, twice = a->dual_layers,
            ends = a->words_end ? 1 : 0;
    streams s = {.seen = FT_NONE,
                 .said = FT_NONE,
                 .to_seen = FT_NONE,
                 .to_said = FT_NONE,
                 .to_one = FT_NONE,
                 .patches = rows * across,
                 .words = a->max_position};
    ft__block_open(b, FT_BLOCK(CONDITION), 1, FT_NONE);
    ft_ref c = ft__block_close(b, condition(m));
    if (as_flux2(a)) {
        s.to_seen = told_once(m, c, 6);
        s.to_said = told_once(m, c, 6);
        s.to_one = told_once(m, c, 3);
    }
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = ft__block_close(b, embed(m, &s));
    x = joint_layers(m, x, c, &s, twice, (ft_joint_kind){.twice = true});
    x = joint_layers(m, x, c, &s, a->layers - twice - ends, (ft_joint_kind){.twice = false});
    if (ends) x = joint_layers(m, x, c, &s, 1, (ft_joint_kind){.ends = true});
    if (a->single_layers > 0) {
        x = ft__block_open(b, FT_BLOCK(LAYERS), a->single_layers, x);
        x = ft__block_close(b, single_layer(m, x, c, &s));
    }
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    ft__block_close(b, head(m, x, c, s.patches));
}
