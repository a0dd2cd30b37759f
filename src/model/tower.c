/* tower.c: what sees, before a language model: patches, a learned table of positions or a rotation, layers of attention
 * over each image by itself, and a projector that merges neighbouring patches into tokens.
 *
 * Without images in the request the tower stays where it is: its weights take memory and nothing runs. */
#include "graph/emit.h"
#include "graph/sample.h"
#include "model/mixers.h"
#include "model/picture_size.h"
#include "model/relative.h"
#include "model/vision.h"

static ft_ref norm(ft_maker *m, ft_at at, ft_ref x)
{
    ft_norm rms = m->arch->norm == FT_RMSNORM_WIDE ? FT_RMSNORM_WIDE : FT_RMSNORM; /* as the language model's */
    return m->arch->tower_rms ? ft__part_norm(m, at, x, rms, false) : ft__vision_norm(m, at, x, true);
}

/* Patches of a convolution over whole images that nothing joins to a class token or to other images stay as it left
 * them, channels first, for all layers (siglip, idefics3); a carry comes in contiguous. */
static ft_ref as_left(ft_maker *m, ft_ref x)
{
    const ft_arch *a = m->arch;
    bool left = a->tower_pictures && !a->tower_class && !a->tower_masked && !a->tower_first_norm && m->work->images > 0;
    if (left && m->b.status == FT_OK && x != FT_NONE) m->b.g->tensors[x].strided = m->b.g->tensors[x].permuted = true;
    return x;
}

/* A convolution where the model is given images, a product where it is given patches one after the other. */
static ft_ref patches(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t channels = a->tower_channels > 0 ? a->tower_channels : 3,
            frames = a->tower_frames > 0 ? a->tower_frames : 1, size = a->tower_patch, tokens = m->batch * m->q_len;
    int64_t high = m->work->image_height / size, wide = m->work->image_width / size;
    ft_bias bias = a->tower_patch_bias ? FT_BIAS : FT_NO_BIAS;
    if (a->tower_frames > 0 && m->work->images > 0) { /* a convolution that is as large as what it reads */
        ft_conv_shape one = {.n = tokens,
                             .c = channels * frames,
                             .h = size,
                             .w = size,
                             .k = a->tower_hidden,
                             .r = size,
                             .s = size,
                             .stride = size,
                             .groups = 1};
        ft_ref cut = ft__input(b, tokens * channels * frames, size * size, ft_dtype_bytes(b->stored));
        ft_ref x = ft__vision_conv(m, FT_AT(PATCH_EMBED), cut, &one, bias);
        return ft__view(b, x, tokens, a->tower_hidden, false);
    }
    if (!a->tower_pictures || m->work->images < 1 || high * wide != m->q_len) {
        ft_ref pixels = ft__input(b, tokens, channels * frames * size * size, ft_dtype_bytes(b->stored));
        return ft__linear(b, FT_AT(PATCH_EMBED), pixels, a->tower_hidden, bias, FT_WHOLE);
    }
    ft_conv_shape s = {.n = m->batch,
                       .c = channels,
                       .h = high * size,
                       .w = wide * size,
                       .k = a->tower_hidden,
                       .r = size,
                       .s = size,
                       .stride = size,
                       .groups = 1};
    ft_ref pixels = ft__input(b, m->batch * channels, s.h * s.w, ft_dtype_bytes(b->stored));
    ft_ref x = ft__vision_conv(m, FT_AT(PATCH_EMBED), pixels, &s, bias);
    x = ft__view(b, x, tokens, a->tower_hidden, !b->channels_last); /* flatten(2).transpose(1, 2) */
    return a->tower_class || a->tower_masked ? ft__contiguous(b, FT_AT(PATCH_EMBED), x) : x;
}

/* x cos + rotate_half(x) sin; Qwen's towers raise x for it, Pixtral's do not. */
static ft_ref turned(ft_maker *m, ft_ref x, int64_t dim)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_ROTARY);
    int64_t rows = ft__tensor_of(b, x)->rows;
    if (m->engine || m->stack->fused_rotary) return ft__pointwise2(b, at, "mul", x, m->cos);
    if (m->arch->tower_frames > 0 || m->arch->tower_turned) x = ft__cast(b, at, x, FT_FP32);
    ft_ref straight = ft__mul(b, at, x, m->cos);
    ft_ref halves[2] = {ft__pointwise(b, at, "neg", ft__slice(b, x, rows, dim / 2)), ft__slice(b, x, rows, dim / 2)};
    ft_ref across = ft__mul(b, at, ft__cat(b, at, 2, halves, rows, dim), m->cos);
    return ft__cast(b, at, ft__add(b, at, straight, across), b->stored);
}

static void projected(ft_maker *m, ft_ref x, int64_t wide, int64_t narrow, ft_ref *part)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_bias bias = a->tower_bias && !a->tower_in_bias_absent ? FT_BIAS : FT_NO_BIAS;
    int64_t cols[3] = {wide, narrow, narrow};
    if (!a->tower_split || m->stack->fused_projections || m->engine) {
        ft__split(b, ft__linear(b, FT_AT(ATTN_QKV_PROJ), x, wide + 2 * narrow, bias, FT_CUT_COLUMNS), 3, cols, part);
        return;
    }
    part[0] = ft__linear(b, FT_AT(ATTN_Q_PROJ), x, wide, bias, FT_CUT_COLUMNS);
    part[1] = ft__linear(b, FT_AT(ATTN_K_PROJ), x, narrow, bias, FT_CUT_COLUMNS);
    part[2] = ft__linear(b, FT_AT(ATTN_V_PROJ), x, narrow, bias, FT_CUT_COLUMNS);
}

static ft_ref attention(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t dim = a->tower_head_dim > 0 ? a->tower_head_dim : a->tower_hidden / a->tower_heads;
    int64_t kv_heads = a->tower_kv_heads > 0 ? a->tower_kv_heads : a->tower_heads;
    int64_t tokens = m->batch * m->q_len;
    ft_ref part[3];
    ft__module(b, 1);
    projected(m, x, a->tower_heads * dim, kv_heads * dim, part);
    for (int i = 0; i < 2; i++) {
        part[i] = ft__view(b, part[i], tokens * (i ? kv_heads : a->tower_heads), dim, true);
        if (a->tower_qk_norm) part[i] = norm(m, FT_AT(ATTN_QK_NORM), part[i]);
        if (a->tower_positions == 0 || a->tower_frames > 0 || a->tower_turned)
            part[i] = turned(m, part[i], dim); /* rows and columns */
    }
    /* What the mask of one image costs is nothing to be seen (8.04 ms of a pass are 7.89 without it); over two of
     * 4,096 patches each the kernel takes 1.9 times as long (mistral3 on our H200). */
    bool joined = a->tower_masked;
    ft_scores s = {.shape = {.batch = joined ? 1 : m->batch,
                             .heads = a->tower_heads,
                             .kv_heads = kv_heads,
                             .q_len = joined ? tokens : m->q_len,
                             .kv_len = joined ? tokens : m->q_len,
                             .masked = joined && m->batch > 1,
                             .head_dim = dim},
                   .scale = true,
                   .softmax_fp32 = true,
                   .float_mask = true};
    int32_t first = b->g->node_count;
    ft_ref y = ft__part_attend(m, FT_AT(ATTN_ATTEND), part[0], part[1], part[2], &s);
    if (a->tower_apart && m->batch > 1 && !m->engine && m->work->attention != FT_FLASH) {
        for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) {
            ft_node *n = &b->g->nodes[i];
            if (n->verb != FT_DO_ATTENTION) continue;
            n->op.u.attention.batch = 1;
            n->count *= (float)m->batch;
        }
        y = ft__cat(b, FT_AT(ATTN_MERGE), 1, &y, tokens, a->tower_heads * dim);
    }
    ft_bias bias = a->tower_bias && !a->tower_out_bias_absent ? FT_BIAS : FT_NO_BIAS;
    return ft__linear(b, FT_AT(ATTN_O_PROJ), y, a->tower_hidden, bias, FT_CUT_ROWS);
}

static ft_ref scaled(ft_maker *m, ft_ref y)
{
    const ft_arch *a = m->arch;
    if (!a->tower_layer_scale) return y;
    return ft__mul(&m->b, FT_AT(LAYER_SCALE), y, ft__parameter(&m->b, "layer_scale", 1, a->tower_hidden));
}

/* Patches to a side; of a tower at rest, as many as its images have. */
static int64_t side(const ft_maker *m, int64_t pixels)
{
    const ft_arch *a = m->arch;
    int64_t patches = (m->work->images > 0 ? pixels : a->tower_size) / a->tower_patch;
    return patches > 0 ? patches : 1;
}

static ft_ref layer(ft_maker *m, ft_ref x, int64_t window)
{
    const ft_arch *a = m->arch;
    const char *activation = a->tower_activation ? a->tower_activation : "gelu_pytorch_tanh";
    ft_windows seen = {side(m, m->work->image_height),
                       side(m, m->work->image_width),
                       window,
                       a->tower_hidden,
                       a->tower_heads,
                       a->tower_bias,
                       a->tower_fused};
    ft_ref h = norm(m, FT_AT(ATTN_NORM), x);
    ft_ref y = a->tower_window > 0 ? ft__part_windows(m, h, &seen) : attention(m, h);
    if (a->tower_sandwich) y = norm(m, FT_AT(ATTN_POST_NORM), y);
    x = ft__add(&m->b, FT_AT(ATTN_RESIDUAL), x, scaled(m, y));
    y = ft__part_mlp(m, norm(m, FT_AT(MLP_NORM), x), a->tower_ffn > 0 ? a->tower_ffn : 4 * a->tower_hidden, activation,
                     a->tower_gated, false, a->tower_mlp_bias ? FT_BIAS : FT_NO_BIAS);
    if (a->tower_sandwich) y = norm(m, FT_AT(MLP_POST_NORM), y);
    return ft__add(&m->b, FT_AT(MLP_RESIDUAL), x, scaled(m, y));
}

/* Neighbours side by side, a product, an activation, a product into the language model's width; or one product. */
static ft_ref project(ft_maker *m, ft_ref x, bool wide_norm)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t merge = a->tower_merge > 1 ? a->tower_merge * a->tower_merge : 1, width = merge * a->tower_hidden;
    int64_t rows = ft__tensor_of(b, x)->rows / merge;
    ft_bias bias = a->tower_merge_bias ? FT_BIAS : FT_NO_BIAS;
    if (rows < 1) rows = 1;
    if (!a->tower_merge_norm_absent && !wide_norm) x = norm(m, FT_AT(PROJECTOR_NORM), x);
    if (a->tower_pools && merge > 1) {
        ft_reduction over = {"mean", "sum_cols", rows, a->tower_hidden, merge, rows * a->tower_hidden};
        x = ft__reduce_over(b, FT_AT(PROJECTOR), x, &over);
        width = a->tower_hidden;
    }
    x = ft__view(b, x, rows, width, false);
    if (!a->tower_merge_norm_absent && wide_norm) x = norm(m, FT_AT(PROJECTOR_NORM), x);
    if (a->tower_out <= 0) return ft__linear(b, FT_AT(PROJECTOR_FC2), x, a->hidden, bias, FT_WHOLE);
    int64_t inner = a->tower_out == 1 ? width : a->tower_out == 2 ? a->hidden : a->tower_out;
    x = ft__linear(b, FT_AT(PROJECTOR_FC1), x, inner, bias, FT_WHOLE);
    x = ft__pointwise(b, FT_AT(PROJECTOR_ACT), "gelu", x);
    return ft__linear(b, FT_AT(PROJECTOR_FC2), x, a->hidden, bias, FT_WHOLE);
}

/* One learned query looks at the patches; its answer is made and not used. */
static void pooled(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(PROJECTOR_QUERIES);
    int64_t wide = a->tower_hidden, dim = wide / a->tower_heads, inner = a->tower_ffn > 0 ? a->tower_ffn : 4 * wide;
    ft_ref one = ft__copy(b, at, ft__parameter(b, "probe", 1, wide), m->batch, wide);
    ft_ref q = ft__linear(b, at, one, wide, FT_BIAS, FT_WHOLE), part[2];
    int64_t halves[2] = {wide, wide};
    ft__split(b, ft__linear(b, at, x, 2 * wide, FT_BIAS, FT_WHOLE), 2, halves, part);
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = a->tower_heads,
                             .kv_heads = a->tower_heads,
                             .q_len = 1,
                             .kv_len = m->q_len,
                             .head_dim = dim},
                   .scale = true};
    q = ft__view(b, q, m->batch * a->tower_heads, dim, false);
    for (int i = 0; i < 2; i++) part[i] = ft__view(b, part[i], m->batch * m->q_len * a->tower_heads, dim, true);
    ft_ref y = ft__linear(b, at, ft__part_attend(m, at, q, part[0], part[1], &s), wide, FT_BIAS, FT_WHOLE);
    ft__part_mlp(m, norm(m, at, y), inner, "gelu", false, false, FT_BIAS);
}

/* The table's rows, or what lies between them where an image has another size than the table. */
static ft_ref positions(ft_maker *m, int64_t rows)
{
    ft_build *b = &m->b;
    const int64_t wide = m->arch->tower_hidden, patches = m->batch * m->q_len;
    ft_ref table = ft__parameter(b, "positions", rows, wide);
    if (!m->arch->tower_sampled || m->work->images < 1) return ft__slice(b, table, m->q_len, wide);
    ft_dtype own = ft__tensor_of(b, table)->dtype;
    ft_sample how = {FT_RESIZE_CUBIC, 2, (double)patches, (double)wide, .last = true, .clipped = true};
    table = ft__cast(b, FT_AT(EMBED_POSITIONS), table, FT_FP32);
    ft_ref read = ft__sampled(b, FT_AT(EMBED_POSITIONS), table, ft__buffer(b, patches, 2, 4), wide, patches, &how);
    read = ft__view_as(b, read, patches, wide, FT_PERMUTED);
    return ft__cast(b, FT_AT(EMBED_POSITIONS), read, own);
}

/* What stays beside the layers while they run without gradients: every layer's result, where the model asks for all to
 * choose one (llava), and the mask that keeps images apart (pixtral). Tensors made before the layers and named behind
 * them stand for it. */
static void kept_beside(ft_maker *m, ft_ref *all, ft_ref *mask)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len;
    *all = *mask = FT_NONE;
    if (b->training || m->engine || m->work->images < 1) return;
    ft_node n = ft__node_of(FT_DO_OTHER, FT_AT(ATTN_VARIABLES));
    double element = ft_dtype_bytes(b->stored);
    if (a->tower_keeps) *all = ft__node_out(b, &n, tokens * a->tower_layers, a->tower_hidden, b->stored, element);
    if (a->tower_masked) *mask = ft__node_out(b, &n, tokens, tokens, b->stored, element);
    if (n.out_count > 0) ft__emit(b, &n);
}

static ft_ref tower(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->stages > 0) return ft__part_davit(m);
    ft__block_open(b, FT_BLOCK(VISION_EMBED), 1, FT_NONE);
    ft_ref x = patches(m);
    if (a->tower_class) ft__parameter(b, "class_token", 1, a->tower_hidden);
    int64_t edge = a->tower_patch > 0 ? a->tower_size / a->tower_patch : 0, rows = a->tower_positions;
    if (rows == 1) rows = edge * edge + (a->tower_class ? 1 : 0);
    if (rows > 0) x = ft__add(b, FT_AT(EMBED_POSITIONS), x, positions(m, rows));
    int64_t whole = a->tower_window > 0 && a->tower_whole < a->tower_layers ? a->tower_whole : 0;
    m->cos = ft__buffer(b, m->q_len, 1, 4);
    ft_ref all, mask;
    kept_beside(m, &all, &mask);
    if (a->tower_first_norm) x = norm(m, FT_AT(EMBED_NORM), x);
    x = ft__block_close(b, x);
    x = as_left(m, ft__block_open(b, FT_BLOCK(VISION_LAYERS), a->tower_layers - whole, x));
    x = ft__block_close(b, layer(m, x, a->tower_window));
    if (whole > 0) { /* SAM's stand among the others, one in three */
        x = as_left(m, ft__block_open(b, FT_BLOCK(VISION_LAYERS_WHOLE), whole, x));
        x = ft__block_close(b, layer(m, x, 0));
    }
    x = as_left(m, ft__block_open(b, FT_BLOCK(VISION_HEAD), 1, x));
    if (mask != FT_NONE) ft__part_held(m, 1, &mask);
    if (a->tower_end_norm) x = norm(m, FT_AT(NORM), x);
    if (all != FT_NONE) ft__part_held(m, 1, &all);
    if (a->tower_pool_head) pooled(m, x);
    if (a->tower_source && a->step_count < 1) return ft__block_close(b, x); /* as it is */
    ft_ref out = a->step_count > 0 ? ft__part_project(m, x) : project(m, x, a->tower_merge_norm_wide);
    /* What layers in between are looked at for is added to the language model's first layers: here, to the tokens. */
    for (int64_t i = 1; i < a->tower_mergers; i++) out = ft__add(b, FT_AT(PROJECTOR), out, project(m, x, true));
    return ft__block_close(b, out);
}

ft_ref ft__part_tower(ft_maker *m)
{
    const ft_workload *w = m->work;
    const ft_arch *whole = m->arch;
    ft_arch own = *whole;
    own.sub_norms = own.mlp_sub_norm = false; /* those are the language model's */
    bool frozen = m->b.frozen;
    m->arch = &own;
    if (w->images < 1 || w->task == FT_DECODE) {
        m->b.frozen = true; /* no gradient reaches what does not run */
        ft__encoder_at_rest(m, tower, 0);
        m->b.frozen = frozen;
        m->arch = whole;
        return FT_NONE;
    }
    ft_maker eyes = *m;
    eyes.batch = m->batch * w->images;
    eyes.q_len = eyes.kv_len = ft__picture_patches(m->arch, w->image_height, w->image_width);
    eyes.mask = FT_NONE;
    ft_ref seen = tower(&eyes);
    m->b = eyes.b;
    m->arch = whole;
    return seen;
}
