/* davit.c: DaViT (arXiv 2204.03645), the encoder of images of Florence-2: stages of a convolution that halves the
 * image and pairs of layers. Each half of a layer begins with a filter by channel; of each pair the first attends
 * through windows of patches, the second over channels, groups of which look at each other by all patches. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/vision.h"

typedef struct stage {
    int64_t side, wide, heads, window; /* patches to an edge, channels */
} stage;

/* x [batch * patches, channels] and a filter over its neighbours, by channel. */
static ft_ref filtered(ft_maker *m, ft_ref x, const stage *s)
{
    enum { FILTER = 3 };
    ft_build *b = &m->b;
    ft_at at = FT_AT(PATCH_EMBED);
    int64_t patches = s->side * s->side;
    ft_conv_shape shape = {.n = m->batch,
                           .c = s->wide,
                           .h = s->side,
                           .w = s->side,
                           .k = s->wide,
                           .r = FILTER,
                           .s = FILTER,
                           .stride = 1,
                           .pad = FILTER / 2,
                           .groups = s->wide};
    ft_ref picture = ft__view(b, x, m->batch * s->wide, patches, true);
    ft_ref y = ft__add(b, at, ft__vision_conv(m, at, picture, &shape, FT_BIAS), picture);
    return ft__view(b, y, m->batch * patches, s->wide, true);
}

static ft_ref through_windows(ft_maker *m, const ft_ref *part, const stage *s)
{
    ft_build *b = &m->b;
    int64_t patches = s->window * s->window, dim = s->wide / s->heads, rows = ft__tensor_of(b, part[0])->rows;
    ft_scores how = {.shape = {.batch = rows / patches,
                               .heads = s->heads,
                               .kv_heads = s->heads,
                               .q_len = patches,
                               .kv_len = patches,
                               .head_dim = dim},
                     .scale = true};
    ft_ref by[3];
    for (int i = 0; i < 3; i++) by[i] = ft__view(b, part[i], rows * s->heads, dim, true);
    return ft__part_attend(m, FT_AT(ATTN_CORE), by[0], by[1], by[2], &how);
}

/* Heads as wide as there are patches: no fused kernel takes them. */
static ft_ref over_channels(ft_maker *m, const ft_ref *part, const stage *s)
{
    ft_build *b = &m->b;
    int64_t patches = s->side * s->side, groups = m->batch * s->heads, each = s->wide / s->heads;
    ft_ref by[3];
    for (int i = 0; i < 3; i++)
        by[i] = ft__contiguous(b, FT_AT(ATTN_QKV_PROJ), ft__view(b, part[i], groups * each, patches, true));
    ft_ref scores = ft__matmul(b, FT_AT(ATTN_SCORES), by[0], by[1], groups, each, each, patches, "nt");
    scores = ft__row(b, FT_AT(ATTN_SOFTMAX), "softmax", ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", scores));
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), scores, by[2], groups, each, patches, each, "nn");
    return ft__contiguous(b, FT_AT(ATTN_MERGE), ft__view(b, y, m->batch * patches, s->wide, true));
}

static ft_ref layer(ft_maker *m, ft_ref x, const stage *s, bool windows)
{
    ft_build *b = &m->b;
    int64_t patches = m->batch * s->side * s->side, cols[3] = {s->wide, s->wide, s->wide};
    int64_t whole = (s->side + s->window - 1) / s->window * s->window, rows = m->batch * whole * whole;
    ft_ref part[3];
    ft__module(b, 4);
    x = filtered(m, x, s);
    ft_ref h = ft__vision_norm(m, FT_AT(ATTN_NORM), x, true);
    if (windows) h = ft__copy(b, FT_AT(ATTN_WINDOWS), h, rows, s->wide); /* padded, window by window */
    ft__split(b, ft__linear(b, FT_AT(ATTN_QKV_PROJ), h, 3 * s->wide, FT_BIAS, FT_CUT_COLUMNS), 3, cols, part);
    h = windows ? through_windows(m, part, s) : over_channels(m, part, s);
    h = ft__linear(b, FT_AT(ATTN_O_PROJ), h, s->wide, FT_BIAS, FT_CUT_ROWS);
    if (windows) h = ft__copy(b, FT_AT(ATTN_WINDOWS), h, patches, s->wide);
    x = filtered(m, ft__add(b, FT_AT(ATTN_RESIDUAL), x, h), s);
    h = ft__vision_norm(m, FT_AT(MLP_NORM), x, true);
    h = ft__part_mlp(m, h, m->arch->tower_ffn * s->wide, "gelu", false, false, FT_BIAS);
    return ft__add(b, FT_AT(MLP_RESIDUAL), x, h);
}

/* The image halved, or at first a quarter as wide; channels are normed before, at first behind it. */
static ft_ref halved(ft_maker *m, ft_ref x, int64_t i, int64_t in, stage *s)
{
    enum { FIRST_FILTER = 7, FIRST_STRIDE = 4, FILTER = 3, STRIDE = 2 };
    ft_build *b = &m->b;
    int64_t filter = i ? FILTER : FIRST_FILTER, stride = i ? STRIDE : FIRST_STRIDE;
    ft_conv_shape shape = {.n = m->batch,
                           .c = in,
                           .h = s->side,
                           .w = s->side,
                           .k = s->wide,
                           .r = filter,
                           .s = filter,
                           .stride = stride,
                           .pad = filter / 2,
                           .groups = 1};
    if (i) x = ft__view(b, ft__vision_norm(m, FT_AT(EMBED_NORM), x, true), m->batch * in, s->side * s->side, true);
    x = ft__vision_conv(m, FT_AT(PATCH_EMBED), x, &shape, FT_BIAS);
    s->side = (s->side + 2 * shape.pad - filter) / stride + 1;
    x = ft__view(b, x, m->batch * s->side * s->side, s->wide, true);
    return i ? x : ft__vision_norm(m, FT_AT(EMBED_NORM), x, true);
}

ft_ref ft__part_davit(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    stage s = {.side = a->tower_size, .window = a->tower_window};
    int64_t in = a->tower_channels > 0 ? a->tower_channels : 3;
    ft_ref x = ft__input(b, m->batch * in, s.side * s.side, ft_dtype_bytes(b->stored));
    for (int64_t i = 0; i < a->stages && b->status == FT_OK; i++) {
        s.wide = a->width[i];
        s.heads = a->stage_heads[i];
        ft_ref before = ft__block_open(b, FT_BLOCK(VISION_EMBED), 1, i ? x : FT_NONE);
        x = ft__block_close(b, halved(m, i ? before : x, i, in, &s));
        x = ft__block_open(b, FT_BLOCK(VISION_LAYERS), a->depth[i], x);
        x = layer(m, x, &s, true);
        x = ft__block_close(b, layer(m, x, &s, false));
        in = s.wide;
    }
    x = ft__block_open(b, FT_BLOCK(VISION_HEAD), 1, x);
    ft_ref places = ft__parameter(b, "places", a->tower_positions, s.wide);
    x = ft__add(b, FT_AT(EMBED_POSITIONS), x, ft__slice(b, places, s.side, s.wide));
    ft_reduction over = {"mean", "sum_cols", m->batch, s.wide, s.side * s.side, m->batch * s.wide};
    ft_ref both[2] = {ft__reduce_over(b, FT_AT(PROJECTOR), x, &over), x}; /* their mean stands before the patches */
    x = ft__cat(b, FT_AT(PROJECTOR), 2, both, m->batch * (s.side * s.side + 1), s.wide);
    x = ft__linear(b, FT_AT(PROJECTOR_FC1), x, a->hidden, FT_NO_BIAS, FT_WHOLE);
    return ft__block_close(b, ft__layernorm(b, FT_AT(PROJECTOR_NORM), x, FT_BIAS));
}
