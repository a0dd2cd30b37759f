/* cross.c: the half of a layer that looks at what an encoder made, of a decoder whose encoder sees images (BLIP,
 * TrOCR and others of VisionEncoderDecoderModel). A decoder that is asked for by itself has such halves too: their
 * weights lie where they are. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/picture_size.h"
#include "model/relative.h"

void ft__part_source(ft_maker *m)
{
    const ft_arch *a = m->arch;
    const ft_workload *asked = m->work;
    if (a->source_tokens > 0) {
        int64_t wide = a->cross_width > 0 ? a->cross_width : a->hidden;
        m->source_len = asked->source > 0 ? asked->source : a->source_tokens;
        if (asked->task != FT_DECODE)
            m->source = ft__input(&m->b, m->batch * m->source_len, wide, ft_dtype_bytes(m->b.stored));
    }
    if (a->protein.reader.layers > 0) ft__part_protein(m);
    if (!a->tower_source || m->b.status != FT_OK) return;
    ft_workload own = *asked;
    if (own.images < 1) {
        own.images = 1;
        own.image_height = own.image_width = a->tower_size;
    }
    m->source_len = own.images * ft__picture_tokens(a, own.image_height, own.image_width);
    m->work = &own;
    m->source = ft__part_tower(m);
    m->work = asked;
}

static bool generates(const ft_maker *m) { return m->work->task == FT_PREFILL || m->work->task == FT_DECODE; }

/* Keys or values of the source: made of it once, and read from a cache from then on. */
static ft_ref looked_at(ft_maker *m, ft_at at, int64_t source_width)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t width = a->heads * a->head_dim, rows = m->batch * m->source_len * a->heads;
    double bytes = ft_dtype_bytes(m->work->kv_dtype);
    if (m->work->task == FT_DECODE) {
        ft__parameter(b, "weight", width, source_width);
        if (a->qkv_bias) ft__parameter(b, "bias", 1, width);
        return ft__view(b, ft__cache(b, rows, a->head_dim, bytes), rows, a->head_dim, false);
    }
    ft_ref x = ft__linear(b, at, m->source, width, a->qkv_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_COLUMNS);
    x = ft__view(b, x, rows, a->head_dim, true);
    if (!generates(m)) return x;
    ft__cache(b, rows, a->head_dim, bytes);
    return ft__copy(b, FT_AT(CROSS_CACHE), x, rows, a->head_dim);
}

static ft_ref attention(ft_maker *m, ft_ref x, int64_t source_width)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_bias bias = a->qkv_bias ? FT_BIAS : FT_NO_BIAS;
    ft__module(b, 2);
    ft_ref q = ft__linear(b, FT_AT(CROSS_Q_PROJ), x, a->heads * a->head_dim, bias, FT_CUT_COLUMNS);
    q = ft__view(b, q, m->batch * m->q_len * a->heads, a->head_dim, true);
    ft_ref k = looked_at(m, FT_AT(CROSS_K_PROJ), source_width), v = looked_at(m, FT_AT(CROSS_V_PROJ), source_width);
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = a->heads,
                             .kv_heads = a->heads,
                             .q_len = m->q_len,
                             .kv_len = m->source_len,
                             .head_dim = a->head_dim},
                   .eager_only = a->no_sdpa,
                   .dropout = a->attention_dropout,
                   .scale = true,
                   .softmax_fp32 = a->softmax_fp32,
                   .k_dense = generates(m),
                   .v_dense = generates(m)};
    ft_ref y = ft__part_attend(m, FT_AT(CROSS_ATTEND), q, k, v, &s);
    return ft__linear(b, FT_AT(CROSS_O_PROJ), y, a->hidden, a->out_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
}

/* No encoder: four products and a norm that no gradient reaches. */
static void at_rest(ft_maker *m, int64_t source_width)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t width = a->heads * a->head_dim, ins[4] = {a->hidden, source_width, source_width, width};
    bool frozen = b->frozen;
    b->frozen = true;
    for (int i = 0; i < 4; i++) {
        ft__parameter(b, "cross.weight", i < 3 ? width : a->hidden, ins[i]);
        if (i < 3 ? a->qkv_bias : a->out_bias) ft__parameter(b, "cross.bias", 1, i < 3 ? width : a->hidden);
    }
    ft__parameter(b, "cross.norm", a->norm_bias ? 2 : 1, a->hidden);
    b->frozen = frozen;
}

/* What a layer adds, times the tanh of a number that is learned. */
static ft_ref opened(ft_maker *m, ft_ref y)
{
    ft_build *b = &m->b;
    ft_ref gate = ft__pointwise(b, FT_AT(CROSS_RESIDUAL), "tanh", ft__parameter(b, "cross.alpha", 1, 1));
    return ft__mul(b, FT_AT(CROSS_RESIDUAL), y, gate);
}

ft_ref ft__part_cross_layer(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t source_width = a->cross_width > 0 ? a->cross_width : a->hidden;
    ft_ref h = ft__part_norm(m, FT_AT(CROSS_NORM), x, a->norm, a->norm_bias);
    x = ft__add(b, FT_AT(CROSS_RESIDUAL), x, opened(m, attention(m, h, source_width)));
    h = ft__part_norm(m, FT_AT(MLP_NORM), x, a->norm, a->norm_bias);
    h = ft__part_mlp(m, h, a->ffn, a->activation, a->gated, a->fused_gate_up, a->mlp_bias ? FT_BIAS : FT_NO_BIAS);
    return ft__add(b, FT_AT(MLP_RESIDUAL), x, opened(m, h));
}

ft_ref ft__part_cross(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t source_width = a->cross_width > 0 ? a->cross_width : a->hidden;
    if (!a->cross) return x;
    if (m->source_len < 1) {
        at_rest(m, source_width);
        return x;
    }
    bool before = a->place != FT_POST_NORM;
    ft_ref h = before ? ft__part_norm(m, FT_AT(CROSS_NORM), x, a->norm, a->norm_bias) : x;
    ft_ref y = ft__dropout(b, FT_AT(CROSS_RESIDUAL), attention(m, h, source_width), a->residual_dropout);
    x = ft__add(b, FT_AT(CROSS_RESIDUAL), x, y);
    return before ? x : ft__part_norm(m, FT_AT(CROSS_NORM), x, a->norm, a->norm_bias);
}
