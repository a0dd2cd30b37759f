/* projector.c: what lies between a tower and the language model, step by step as an architecture's file lists it
 * ("project"): norms, neighbours merged or averaged, products, activations, and resamplers, in which a fixed number of
 * learned queries look at the patches of an image and take their place (Perceiver, arXiv 2103.03206; Q-Former,
 * arXiv 2301.12597). */
#include "graph/emit.h"
#include "model/mixers.h"

static ft_ref query_norm(ft_maker *m, ft_ref x)
{
    bool rms = m->arch->query_rms;
    return ft__part_norm(m, FT_AT(PROJECTOR_NORM), x, rms ? FT_RMSNORM : FT_LAYERNORM, !rms);
}

/* `count` queries of each image look at `keys` rows of `over`. */
static ft_ref look(ft_maker *m, ft_ref x, ft_ref over, int64_t count, int64_t keys)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(PROJECTOR_QUERIES);
    int64_t wide = ft__tensor_of(b, x)->cols, heads = a->query_heads > 0 ? a->query_heads : 1;
    int64_t dim = a->query_head_dim > 0 ? a->query_head_dim : wide / heads;
    int64_t kv = a->query_kv_heads > 0 ? a->query_kv_heads : heads;
    ft_bias bias = a->query_bias ? FT_BIAS : FT_NO_BIAS;
    ft_ref q = ft__linear(b, at, x, heads * dim, bias, FT_WHOLE);
    ft_ref k = ft__linear(b, at, over, kv * dim, bias, FT_WHOLE), v = ft__linear(b, at, over, kv * dim, bias, FT_WHOLE);
    q = ft__view(b, q, m->batch * count * heads, dim, true);
    k = ft__view(b, k, m->batch * keys * kv, dim, true);
    v = ft__view(b, v, m->batch * keys * kv, dim, true);
    ft_scores s = {
        .shape = {.batch = m->batch, .heads = heads, .kv_heads = kv, .q_len = count, .kv_len = keys, .head_dim = dim},
        .scale = true,
        .softmax_fp32 = true};
    return ft__linear(b, at, ft__part_attend(m, at, q, k, v, &s), wide, bias, FT_WHOLE);
}

static ft_ref query_layer(ft_maker *m, ft_ref x, ft_ref seen, int64_t patches, bool crosses)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const char *activation = a->query_gated ? "silu" : "gelu";
    if (a->query_self) x = ft__add(b, FT_AT(PROJECTOR), x, query_norm(m, look(m, x, x, a->queries, a->queries)));
    if (crosses) x = ft__add(b, FT_AT(PROJECTOR), x, query_norm(m, look(m, x, seen, a->queries, patches)));
    if (a->query_ffn < 1) return x;
    int64_t inner = a->query_ffn > 1 ? a->query_ffn : 4 * ft__tensor_of(b, x)->cols;
    ft_ref y = ft__part_mlp(m, query_norm(m, x), inner, activation, a->query_gated, false,
                            a->query_bias ? FT_BIAS : FT_NO_BIAS);
    return ft__add(b, FT_AT(PROJECTOR), x, y);
}

/* Layers stand one by one: they are few, and each reads the patches, which are no carry of a block. */
static ft_ref resample(ft_maker *m, ft_ref seen)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    enum { MOST_LAYERS = 64 };
    int64_t wide = a->query_hidden > 0 ? a->query_hidden : ft__tensor_of(b, seen)->cols, every = a->query_cross_every;
    int64_t patches = ft__tensor_of(b, seen)->rows / m->batch, layers = a->query_layers;
    ft_ref x = ft__copy(b, FT_AT(PROJECTOR_QUERIES), ft__parameter(b, "queries", a->queries, wide),
                        m->batch * a->queries, wide);
    for (int64_t i = 0; i < layers && i < MOST_LAYERS && b->status == FT_OK; i++)
        x = query_layer(m, x, seen, patches, every <= 1 || i % every == 0);
    return x;
}

static ft_ref merged(ft_maker *m, ft_ref x, int64_t share, bool pools)
{
    ft_build *b = &m->b;
    if (share < 1) share = 1;
    int64_t wide = ft__tensor_of(b, x)->cols, rows = ft__tensor_of(b, x)->rows / share;
    if (rows < 1) rows = 1;
    if (!pools) return ft__contiguous(b, FT_AT(PROJECTOR), ft__view(b, x, rows, wide * share, true));
    ft_reduction over = {"mean", "sum_cols", rows, wide, share, rows * wide};
    return ft__reduce_over(b, FT_AT(PROJECTOR), x, &over);
}

/* Nine neighbours side by side, and a product. */
static ft_ref filtered(ft_maker *m, ft_ref x, int64_t wide, int64_t stride, ft_bias bias)
{
    enum { PLACES = 9 };
    ft_build *b = &m->b;
    int64_t rows = ft__tensor_of(b, x)->rows / (stride > 1 ? stride * stride : 1), in = ft__tensor_of(b, x)->cols;
    ft_ref around = ft__copy(b, FT_AT(PROJECTOR), x, rows < 1 ? 1 : rows, PLACES * in);
    return ft__linear(b, FT_AT(PROJECTOR_FC1), around, wide, bias, FT_WHOLE);
}

/* Gate and up, the activation, down. */
static ft_ref gated(ft_maker *m, ft_ref x, const ft_project_step *s, int64_t wide)
{
    ft_build *b = &m->b;
    int64_t into = s->into > 0 ? s->into : s->into < 0 ? ft__tensor_of(b, x)->cols : m->arch->hidden;
    ft_bias bias = s->bias ? FT_BIAS : FT_NO_BIAS;
    ft_ref gate = ft__linear(b, FT_AT(PROJECTOR_FC1), x, wide, bias, FT_WHOLE);
    gate = ft__part_activation(m, FT_AT(PROJECTOR_ACT), s->activation ? s->activation : "silu", gate);
    ft_ref up = ft__linear(b, FT_AT(PROJECTOR_FC1), x, wide, bias, FT_WHOLE);
    return ft__linear(b, FT_AT(PROJECTOR_FC2), ft__mul(b, FT_AT(PROJECTOR_ACT), gate, up), into, bias, FT_WHOLE);
}

static ft_ref glu(ft_maker *m, ft_ref x, const char *activation)
{
    ft_build *b = &m->b;
    int64_t half = ft__tensor_of(b, x)->cols / 2, cols[2] = {half, half};
    ft_ref part[2];
    ft__split(b, x, 2, cols, part);
    return ft__mul(b, FT_AT(PROJECTOR_ACT), ft__part_activation(m, FT_AT(PROJECTOR_ACT), activation, part[0]), part[1]);
}

ft_ref ft__part_project(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    for (int32_t i = 0; i < a->step_count && b->status == FT_OK; i++) {
        const ft_project_step *s = &a->steps[i];
        const char *activation = s->activation ? s->activation : "gelu";
        int64_t wide = s->width > 0 ? s->width : s->width < 0 ? ft__tensor_of(b, x)->cols : a->hidden;
        ft_bias bias = s->bias ? FT_BIAS : FT_NO_BIAS;
        switch (s->kind) {
        case FT_STEP_NORM: x = ft__part_norm(m, FT_AT(PROJECTOR_NORM), x, FT_LAYERNORM, true); break;
        case FT_STEP_RMSNORM: x = ft__part_norm(m, FT_AT(PROJECTOR_NORM), x, FT_RMSNORM, false); break;
        case FT_STEP_MERGE: x = merged(m, x, s->width * s->width, false); break;
        case FT_STEP_POOL:
            x = merged(m, x,
                       s->width > 0 ? s->width * s->width : ft__tensor_of(b, x)->rows / (m->batch * a->tower_tokens),
                       true);
            break;
        case FT_STEP_LINEAR: x = ft__linear(b, FT_AT(PROJECTOR_FC1), x, wide, bias, FT_WHOLE); break;
        case FT_STEP_ACT: x = ft__part_activation(m, FT_AT(PROJECTOR_ACT), activation, x); break;
        case FT_STEP_GLU: x = glu(m, x, activation); break;
        case FT_STEP_GATED: x = gated(m, x, s, wide); break;
        case FT_STEP_CONV: x = filtered(m, x, wide, s->stride, bias); break;
        case FT_STEP_RESAMPLE: x = resample(m, x); break;
        }
    }
    return x;
}
