/* vision.c: what models of images share. */
#include "model/vision.h"

#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

bool ft__vision_task(ft_maker *m)
{
    const ft_arch *a = m->arch;
    int64_t widest = a->hidden > a->vision_hidden ? a->hidden : a->vision_hidden;
    for (int i = 0; i < FT_MAX_STAGES; i++)
        if (a->width[i] > widest) widest = a->width[i];
    if ((double)m->batch * (double)a->image * (double)a->image * (double)(widest + a->channels) > 1e18) {
        ft__build_fail(&m->b, FT_E_RANGE, "%lld images of %lld pixels a side are too large for any machine",
                       (long long)m->batch, (long long)a->image);
        return false;
    }
    if (m->work->task == FT_TRAIN || m->work->task == FT_FORWARD_PASS) return true;
    ft__build_fail(&m->b, FT_E_UNSUPPORTED,
                   "%s takes whole images and keeps no cache: task must be \"train\" or \"forward\", not \"%s\"",
                   m->arch->model_type, m->work->task == FT_DECODE ? "decode" : "prefill");
    return false;
}

ft_ref ft__vision_conv(ft_maker *m, ft_at at, ft_ref x, const ft_conv_shape *s, ft_bias bias)
{
    ft_build *b = &m->b;
    ft_ref y = ft__conv(b, at, x, s, FT_NO_BIAS);
    ft_tensor t = *ft__tensor_of(b, y);
    if (b->channels_last) y = ft__view(b, y, t.rows / s->k * t.cols, s->k, false);
    if (bias == FT_NO_BIAS) return y;
    /* cuDNN's convolution adds none; PyTorch does so afterwards. */
    ft_ref offset = b->channels_last ? ft__parameter(b, "conv.bias", 1, s->k) : ft__parameter(b, "conv.bias", s->k, 1);
    return ft__pointwise_in_place(b, at, "add", y, ft__cast(b, at, offset, t.dtype));
}

ft_image ft__vision_filter(ft_maker *m, ft_at at, ft_image in, int64_t out, int64_t filter, int64_t stride,
                           ft_bias bias)
{
    ft_conv_shape s = {.n = m->batch,
                       .c = in.channels,
                       .h = in.height,
                       .w = in.width,
                       .k = out,
                       .r = filter,
                       .s = filter,
                       .stride = stride,
                       .pad = filter / 2,
                       .groups = 1};
    return (ft_image){.x = ft__vision_conv(m, at, in.x, &s, bias),
                      .channels = out,
                      .height = (in.height + 2 * s.pad - filter) / stride + 1,
                      .width = (in.width + 2 * s.pad - filter) / stride + 1};
}

/* The last kernel reads across the order in memory: it costs what a transposition does. */
static void across(ft_build *b, int64_t rows, int64_t cols, ft_dtype dtype)
{
    if (b->status != FT_OK) return;
    b->g->nodes[b->g->node_count - 1].op = ft__row_kernel("transpose_copy", FT_PASS_FWD, rows, cols, dtype);
}

ft_ref ft__vision_norm(ft_maker *m, ft_at at, ft_ref x, bool affine)
{
    ft_build *b = &m->b;
    ft_tensor t = *ft__tensor_of(b, x);
    if (t.strided) {
        ft__no_grad_kernels(b, at, "copy", x, t.rows, t.cols, t.element_bytes, 1);
        across(b, t.rows, t.cols, t.dtype);
    }
    if (affine) return ft__part_norm(m, at, x, FT_LAYERNORM, true);
    ft__module(b, 1);
    return ft__row(b, at, "layernorm", x);
}

int64_t ft__vision_token_count(const ft_arch *a)
{
    int64_t side = a->image / a->patch;
    return side * side + (a->class_absent ? 0 : 1) + a->registers;
}

ft_ref ft__vision_tokens(ft_maker *m, int64_t hidden, ft_bias bias)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__vision_token_count(a), side = a->image / a->patch, before = tokens - side * side;
    ft_ref class_token = before > 0 ? ft__parameter(b, "class_embedding", before, hidden) : FT_NONE;
    ft_ref pixels = ft__input(b, m->batch * a->channels, a->image * a->image, ft_dtype_bytes(b->stored));
    ft_conv_shape s = {.n = m->batch,
                       .c = a->channels,
                       .h = a->image,
                       .w = a->image,
                       .k = hidden,
                       .r = a->patch,
                       .s = a->patch,
                       .stride = a->patch,
                       .groups = 1};
    ft_ref x = ft__vision_conv(m, FT_AT(PATCH_EMBED), pixels, &s, bias);
    x = ft__view(b, x, m->batch * side * side, hidden, !b->channels_last); /* flatten(2).transpose(1, 2) */
    if (before < 1) return x;                                              /* as the convolution left it: vit.c */
    ft_ref parts[2] = {ft__expand(b, class_token, m->batch * before, hidden), x};
    bool turned = ft__tensor_of(b, x)->strided;
    x = ft__cat(b, FT_AT(CLASS_TOKEN), 2, parts, m->batch * tokens, hidden);
    if (turned) across(b, m->batch * tokens, hidden, ft__tensor_of(b, x)->dtype);
    return x;
}

/* x cos + rotate_half(x) sin over the patches: dinov3. */
static ft_ref turned(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_ROTARY);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref table = ft__input(b, 1, t.cols, ft_dtype_bytes(b->stored));
    if (m->stack->fused_rotary) return ft__pointwise2(b, at, "mul", x, table);
    ft_ref half[2] = {ft__pointwise(b, at, "neg", ft__slice(b, x, t.rows, t.cols / 2)),
                      ft__slice(b, x, t.rows, t.cols / 2)};
    ft_ref across = ft__mul(b, at, ft__cat(b, at, 2, half, t.rows, t.cols), table);
    ft_ref sum = ft__add(b, at, ft__mul(b, at, x, table), across);
    int64_t apart = (m->arch->class_absent ? 0 : 1) + m->arch->registers;
    ft_ref both[2] = {ft__slice(b, x, m->batch * apart, t.cols),
                      sum}; /* what is no patch is not turned: joined again */
    return ft__cat(b, at, 2, both, t.rows, t.cols);
}

static ft_ref scaled(ft_maker *m, ft_ref y)
{
    ft_build *b = &m->b;
    if (!m->arch->layer_scale) return y;
    return ft__mul(b, FT_AT(LAYER_SCALE), y, ft__parameter(b, "layer_scale", 1, ft__tensor_of(b, y)->cols));
}

/* What follows attention in a layer. */
static ft_ref followed(ft_maker *m, ft_ref x, ft_ref h, const ft_tower *t)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    h = ft__dropout(b, FT_AT(ATTN_DROPOUT), h, t->residual_dropout);
    x = ft__add(b, FT_AT(ATTN_RESIDUAL), scaled(m, h), x);
    h = ft__vision_norm(m, FT_AT(MLP_NORM), x, true);
    if (a->gated) {
        h = ft__part_mlp(m, h, t->ffn, a->activation, true, a->fused_gate_up, FT_BIAS);
    } else {
        h = ft__linear(b, FT_AT(MLP_FC1), h, t->ffn, FT_BIAS, FT_CUT_COLUMNS);
        h = ft__part_activation(m, FT_AT(MLP_ACT), a->activation, h);
        h = ft__linear(b, FT_AT(MLP_FC2), h, t->hidden, FT_BIAS, FT_CUT_ROWS);
    }
    h = ft__dropout(b, FT_AT(MLP_DROPOUT), h, t->residual_dropout);
    return ft__add(b, FT_AT(MLP_RESIDUAL), scaled(m, h), x);
}

ft_ref ft__vision_layer(ft_maker *m, ft_ref x, const ft_tower *t)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t dim = t->hidden / t->heads;
    ft_bias bias = t->qkv_bias ? FT_BIAS : FT_NO_BIAS;
    ft__module(b, 4); /* layer, attention, output, mlp */
    ft_ref h = ft__vision_norm(m, FT_AT(ATTN_NORM), x, true);
    if (a->tower_window > 0) {
        int64_t side = a->image / a->patch;
        ft_windows seen = {side, side, t->window, t->hidden, t->heads, t->qkv_bias, a->tower_fused};
        return followed(m, x, ft__part_windows(m, h, &seen), t);
    }
    ft_ref q = ft__linear(b, FT_AT(ATTN_Q_PROJ), h, t->hidden, bias, FT_CUT_COLUMNS);
    ft_ref k = ft__linear(b, FT_AT(ATTN_K_PROJ), h, t->hidden, t->key_bias_absent ? FT_NO_BIAS : bias, FT_CUT_COLUMNS);
    ft_ref v = ft__linear(b, FT_AT(ATTN_V_PROJ), h, t->hidden, bias, FT_CUT_COLUMNS);
    if (a->position == FT_ROTARY) {
        q = turned(m, q);
        k = turned(m, k);
    }
    ft_scores scores = {
        .shape = {.batch = m->batch,
                  .heads = t->heads,
                  .kv_heads = t->heads,
                  .q_len = t->tokens,
                  .kv_len = t->tokens,
                  .head_dim = dim,
                  .v_dim = dim,
                  .causal = t->causal},
        .dropout = t->attention_dropout,
        .scale = true,
        .softmax_fp32 = a->softmax_fp32,
    };
    if (a->relative_table) { /* a bias by distance for each pair of tokens, laid out in every layer: beit */
        int64_t side = a->image / a->patch, wide = (2 * side - 1) * (2 * side - 1) + 3;
        ft_ref table = ft__parameter(b, "relative_position_bias_table", wide, t->heads);
        ft__copy(b, FT_AT(ATTN_BIAS), table, t->tokens * t->tokens, t->heads);
        scores.shape.masked = scores.float_mask = true;
    }
    h = ft__part_attend(m, FT_AT(ATTN_CORE), q, k, v, &scores);
    h = ft__linear(b, FT_AT(ATTN_O_PROJ), h, t->hidden, FT_BIAS, FT_CUT_ROWS);
    return followed(m, x, h, t);
}

ft_ref ft__vision_classify(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    if (m->arch->labels < 1) return x;
    x = ft__linear(b, FT_AT(CLASSIFIER), x, m->arch->labels, FT_BIAS, FT_WHOLE);
    return b->training ? ft__loss(b, FT_AT(LOSS), x, false) : x;
}
