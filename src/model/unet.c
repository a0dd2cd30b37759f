/* unet.c: the denoiser of Stable Diffusion 1, 2 and XL (arXiv 2112.10752, 2307.01952) as diffusers launches it
 * (UNet2DConditionModel): an image of latents is halved stage by stage and doubled again, each stage of two or three
 * residual blocks that the time step is added to, most of them followed by attention over the pixels and over the
 * text's tokens. What the way down made is joined to what the way up reads.
 *
 * Trained with blocks that run again, or with adapters, residual and transformer blocks are blocks of the graph, as
 * diffusers' checkpoints wrap them (unet_2d_blocks.py, transformers/transformer_2d.py) and so do kohya-ss's scripts
 * (library/sdxl_original_unet.py); what stands between them is kept. Otherwise all is one block, so that a compiler
 * merges across. Adapters are beside the linear layers of transformers alone, those at their ends too, as in kohya-ss's
 * networks/lora.py (UNET_TARGET_REPLACE_MODULE); left out there: ends that are filters of one pixel (Stable
 * Diffusion 1).
 *
 * A sample is an image of latents and `max_position` words. The loss is the mean square over the predicted noise. */
#include "graph/emit.h"
#include "graph/resize.h"
#include "model/picture_size.h"
#include "model/vision.h"

enum { GROUPS = 32, MOST_SKIPS = 64 };

typedef struct walk {
    ft_maker *m;
    ft_ref time, text;
    ft_image skip[MOST_SKIPS];
    int count;
    bool apart; /* blocks of the graph */
} walk;

static int64_t pixels_of(ft_image p) { return p.height * p.width; }

/* -- blocks of the graph -------------------------------------------------------------------------- */

static ft_ref begin(walk *w, ft_ref x, int64_t repeat, bool kept)
{
    ft_build *b = &w->m->b;
    if (!w->apart) return x;
    x = ft__block_open(b, FT_BLOCK(LAYERS), repeat, x);
    if (b->status == FT_OK) b->g->blocks[b->block].kept = kept;
    return x;
}

static ft_ref end(walk *w, ft_ref x) { return w->apart ? ft__block_close(&w->m->b, x) : x; }

/* -- parts ---------------------------------------------------------------------------------------- */

static ft_image filtered(ft_maker *m, ft_at at, ft_image in, int64_t out, int64_t filter, int64_t stride)
{
    ft_image p = ft__vision_filter(m, at, in, out, filter, stride, FT_BIAS);
    ft__module(&m->b, 1);
    return p;
}

static ft_image normed(ft_maker *m, ft_at at, ft_image p)
{
    ft_build *b = &m->b;
    ft_ref weight = ft__parameter(b, "norm.weight", 1, p.channels), bias = ft__parameter(b, "norm.bias", 1, p.channels);
    p.x = ft__groupnorm(b, at, p.x, m->batch * GROUPS, weight, bias);
    ft__module(b, 1);
    return p;
}

/* Norm, silu, filter, the time step's row for each channel, norm, silu, filter, and what came in. */
static ft_image residual(walk *w, ft_image in, int64_t out)
{
    ft_maker *m = w->m;
    ft_build *b = &m->b;
    const int64_t rank = b->lora_rank;
    in.x = begin(w, in.x, 1, false);
    b->lora_rank = 0; /* the time step's product has no adapter */
    ft__module(b, 2);
    ft_image p = normed(m, FT_AT(CONV1), in);
    p.x = ft__pointwise(b, FT_AT(CONV1), "silu", p.x);
    p = filtered(m, FT_AT(CONV1), p, out, 3, 1);
    ft_ref row = ft__linear(b, FT_AT(TIME_FC1), ft__pointwise(b, FT_AT(TIME_ACT), "silu", w->time), out, FT_BIAS,
                            FT_WHOLE);
    p.x = ft__add(b, FT_AT(TIME), p.x, ft__view(b, row, m->batch * out, 1, false));
    p = normed(m, FT_AT(CONV2), p);
    p.x = ft__pointwise(b, FT_AT(CONV2), "silu", p.x);
    p = filtered(m, FT_AT(CONV2), p, out, 3, 1);
    if (in.channels != out) in = filtered(m, FT_AT(SHORTCUT), in, out, 1, 1);
    p.x = end(w, ft__add(b, FT_AT(RESIDUAL), p.x, in.x));
    b->lora_rank = rank;
    return p;
}

/* -- attention ------------------------------------------------------------------------------------ */

static ft_ref attention(ft_maker *m, ft_ref x, ft_ref over, int64_t length, int64_t keys, int64_t heads)
{
    ft_build *b = &m->b;
    int64_t wide = ft__tensor_of(b, x)->cols;
    bool cross = x != over;
    ft_ref q = ft__linear(b, cross ? FT_AT(CROSS_Q_PROJ) : FT_AT(ATTN_Q_PROJ), x, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref k = ft__linear(b, cross ? FT_AT(CROSS_K_PROJ) : FT_AT(ATTN_K_PROJ), over, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref v = ft__linear(b, cross ? FT_AT(CROSS_V_PROJ) : FT_AT(ATTN_V_PROJ), over, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = heads,
                             .kv_heads = heads,
                             .q_len = length,
                             .kv_len = keys,
                             .head_dim = wide / heads}}; /* written out, the product scales: baddbmm's alpha */
    ft_ref y = ft__part_attend(m, cross ? FT_AT(CROSS_ATTEND) : FT_AT(ATTN_CORE), q, k, v, &s);
    return ft__linear(b, cross ? FT_AT(CROSS_O_PROJ) : FT_AT(ATTN_O_PROJ), y, wide, FT_BIAS, FT_CUT_ROWS);
}

/* gelu of one half times the other, four times as wide. */
static ft_ref network(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    int64_t wide = ft__tensor_of(b, x)->cols, halves[2] = {4 * wide, 4 * wide};
    ft_ref part[2];
    ft__split(b, ft__linear(b, FT_AT(MLP_GATE_UP_PROJ), x, 8 * wide, FT_BIAS, FT_CUT_COLUMNS), 2, halves, part);
    ft_ref gate = ft__part_activation(m, FT_AT(MLP_ACT), "gelu", part[1]);
    return ft__linear(b, FT_AT(MLP_DOWN_PROJ), ft__mul(b, FT_AT(MLP_ACT), part[0], gate), wide, FT_BIAS, FT_CUT_ROWS);
}

static ft_image looked(walk *w, ft_image in, int64_t layers, int64_t heads)
{
    ft_maker *m = w->m;
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t pixels = pixels_of(in), rows = m->batch * pixels, wide = in.channels;
    in.x = begin(w, in.x, 1, true);
    ft__module(b, 2);
    ft_image p = normed(m, FT_AT(ATTN_NORM), in);
    ft_ref x;
    if (!a->linear_ends) p = filtered(m, FT_AT(PROJECTOR_FC1), p, wide, 1, 1);
    x = ft__contiguous(b, FT_AT(PROJECTOR), ft__view(b, p.x, rows, wide, true)); /* pixels become tokens */
    if (a->linear_ends) x = ft__linear(b, FT_AT(PROJECTOR_FC1), x, wide, FT_BIAS, FT_WHOLE);
    const int64_t repeat = w->apart ? layers : 1;
    x = begin(w, end(w, x), repeat, false);
    for (int64_t i = 0; i < layers / repeat && b->status == FT_OK; i++) {
        ft_ref h = ft__part_norm(m, FT_AT(ATTN_NORM), x, FT_LAYERNORM, true);
        x = ft__add(b, FT_AT(ATTN_RESIDUAL), attention(m, h, h, pixels, pixels, heads), x);
        h = ft__part_norm(m, FT_AT(CROSS_NORM), x, FT_LAYERNORM, true);
        x = ft__add(b, FT_AT(CROSS_RESIDUAL), attention(m, h, w->text, pixels, a->max_position, heads), x);
        h = ft__part_norm(m, FT_AT(MLP_NORM), x, FT_LAYERNORM, true);
        x = ft__add(b, FT_AT(MLP_RESIDUAL), network(m, h), x);
        ft__module(b, 3);
    }
    x = begin(w, end(w, x), 1, true);
    if (a->linear_ends) x = ft__linear(b, FT_AT(PROJECTOR_FC2), x, wide, FT_BIAS, FT_WHOLE);
    p.x = ft__contiguous(b, FT_AT(PROJECTOR), ft__view(b, x, m->batch * wide, pixels, true));
    if (!a->linear_ends) p = filtered(m, FT_AT(PROJECTOR_FC2), p, wide, 1, 1);
    p.x = end(w, ft__add(b, FT_AT(RESIDUAL), p.x, in.x));
    return p;
}

/* -- the whole ------------------------------------------------------------------------------------ */

static ft_ref sines(ft_maker *m, int64_t rows, int64_t wide)
{
    ft_build *b = &m->b;
    ft_ref angle = ft__pointwise(b, FT_AT(TIME_ANGLE), "mulu", ft__activation(b, rows, wide / 2, FT_FP32));
    ft_ref half[2] = {ft__pointwise(b, FT_AT(TIME_COS), "cos", angle), ft__pointwise(b, FT_AT(TIME_SIN), "sin", angle)};
    return ft__cast(b, FT_AT(TIME), ft__cat(b, FT_AT(TIME), 2, half, rows, wide), b->stored);
}

static ft_ref raised(ft_maker *m, ft_ref x, int64_t wide)
{
    ft_build *b = &m->b;
    x = ft__linear(b, FT_AT(TIME_FC1), x, wide, FT_BIAS, FT_WHOLE);
    x = ft__pointwise(b, FT_AT(TIME_ACT), "silu", x);
    return ft__linear(b, FT_AT(TIME_FC2), x, wide, FT_BIAS, FT_WHOLE);
}

static void condition(walk *w)
{
    ft_maker *m = w->m;
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t wide = 4 * a->width[0];
    w->time = raised(m, sines(m, m->batch, a->width[0]), wide);
    if (a->pooled_dim > 0) /* sizes and the pooled text: SDXL */
        w->time = ft__add(b, FT_AT(CONDITION), w->time,
                          raised(m, ft__input(b, m->batch, a->pooled_dim, ft_dtype_bytes(b->stored)), wide));
    w->text = ft__input(b, m->batch * a->max_position, a->context_dim, ft_dtype_bytes(b->stored));
}

static void keep(walk *w, ft_image p)
{
    if (w->count < MOST_SKIPS) w->skip[w->count++] = p;
}

static ft_image down(walk *w, ft_image p, int64_t stage)
{
    const ft_arch *a = w->m->arch;
    for (int64_t i = 0; i < a->layers; i++) {
        p = residual(w, p, a->width[stage]);
        if (a->depth[stage] > 0) p = looked(w, p, a->depth[stage], a->stage_heads[stage]);
        keep(w, p);
    }
    if (stage + 1 == a->stages) return p;
    p.x = begin(w, p.x, 1, true);
    p = filtered(w->m, FT_AT(DOWNSAMPLE), p, a->width[stage], 3, 2);
    p.x = end(w, p.x);
    keep(w, p);
    return p;
}

static ft_image up(walk *w, ft_image p, int64_t stage)
{
    ft_maker *m = w->m;
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    for (int64_t i = 0; i <= a->layers && w->count > 0; i++) {
        ft_image other = w->skip[--w->count];
        ft_ref both[2] = {begin(w, p.x, 1, true), other.x};
        p.x = end(w, ft__cat(b, FT_AT(RESIDUAL), 2, both, m->batch * (p.channels + other.channels), pixels_of(p)));
        p.channels += other.channels;
        p = residual(w, p, a->width[stage]);
        if (a->depth[stage] > 0) p = looked(w, p, a->depth[stage], a->stage_heads[stage]);
    }
    if (stage == 0) return p;
    p.x = begin(w, p.x, 1, true);
    p.height *= 2;
    p.width *= 2;
    ft_resize how = {.by = FT_RESIZE_NEAREST,
                     .axes = 2,
                     .pictures = (double)(m->batch * p.channels),
                     .pixels = (double)pixels_of(p),
                     .window = 1};
    p.x = ft__resize(b, FT_AT(DOWNSAMPLE), "upsample", p.x, m->batch * p.channels, pixels_of(p), &how);
    p = filtered(m, FT_AT(DOWNSAMPLE), p, p.channels, 3, 1);
    p.x = end(w, p.x);
    return p;
}

static ft_ref head(walk *w, ft_image p)
{
    ft_maker *m = w->m;
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    p = normed(m, FT_AT(NORM), p);
    p.x = ft__pointwise(b, FT_AT(NORM), "silu", p.x);
    p = filtered(m, FT_AT(PROJECTION), p, a->out_channels, 3, 1);
    if (!b->training) return p.x;
    int64_t pixels = pixels_of(p);
    ft_ref noise = ft__input(b, m->batch * p.channels, pixels, ft_dtype_bytes(b->stored));
    ft_ref x = ft__pointwise(b, FT_AT(LOSS), "powu", ft__pointwise2(b, FT_AT(LOSS), "sub", p.x, noise));
    return ft__reduce(b, FT_AT(LOSS), "mean", ft__view(b, x, m->batch, p.channels * pixels, false));
}

void ft__make_unet(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    walk w = {.m = m, .apart = b->training && (m->work->recompute != FT_RECOMPUTE_NONE || b->lora_rank > 0)};
    if (!ft__vision_task(m)) return;
    int64_t last = a->stages - 1;
    ft_image p = {.channels = a->channels, .height = a->image, .width = ft__latents_across(a)};
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    condition(&w);
    p.x = ft__input(b, m->batch * a->channels, pixels_of(p), ft_dtype_bytes(b->stored));
    p = filtered(m, FT_AT(STEM), p, a->width[0], 3, 1);
    p.x = end(&w, p.x);
    keep(&w, p);
    for (int64_t i = 0; i < a->stages && b->status == FT_OK; i++) p = down(&w, p, i);
    int64_t depth = a->middle_depth > 0 ? a->middle_depth : a->depth[last] > 0 ? a->depth[last] : 1;
    p = residual(&w, p, a->width[last]);
    p = looked(&w, p, depth, a->stage_heads[last]);
    p = residual(&w, p, a->width[last]);
    for (int64_t i = a->stages; i-- > 0 && b->status == FT_OK;) p = up(&w, p, i);
    if (!w.apart) ft__block_close(b, p.x);
    p.x = ft__block_open(b, FT_BLOCK(HEAD), 1, p.x);
    ft__block_close(b, head(&w, p));
}
