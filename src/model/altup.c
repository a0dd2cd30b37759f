/* altup.c: Gemma 3n's residual stream (AltUp, arXiv 2301.13310): several copies of it, of which a layer reads one;
 * small products predict all copies before the layer and correct them behind it. Beside attention a product of low rank
 * adds to the stream (LAuReL, arXiv 2411.07501), and of the first layers' networks only the largest gates pass.
 *
 * The copies stand as [copies * tokens, hidden]; the first is the one that layers read. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

static int64_t tokens_of(const ft_maker *m) { return m->batch * m->q_len; }

/* What a layer asks twice, before it and behind it, by one set of weights. */
typedef struct ft_asks {
    ft_ref norm, weight;
} ft_asks;

/* A number for each copy and token, of what the layer reads. */
static ft_ref modalities(ft_maker *m, ft_ref x, ft_asks w)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ALTUP);
    x = m->stack->fused_norms || m->engine ? ft__norm_with(b, at, "rmsnorm", x, w.norm, FT_NONE)
                                           : ft__mul(b, at, ft__part_norm_bare(m, at, x), w.norm);
    x = ft__linear_with(b, at, ft__pointwise(b, at, "mulu", x), w.weight, a->altup, FT_NONE, FT_WHOLE);
    return ft__cast(b, at, ft__pointwise(b, at, "tanh", ft__cast(b, at, x, FT_FP32)), b->stored);
}

/* Every copy plus a mixture of all, token by token. */
static ft_ref predicted(ft_maker *m, ft_ref x, ft_asks w)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ALTUP);
    int64_t tokens = tokens_of(m), n = a->altup;
    ft_ref active = ft__slice(b, x, tokens, a->hidden);
    ft_ref coefs = ft__linear(b, at, modalities(m, active, w), n * n, FT_NO_BIAS, FT_WHOLE);
    ft_ref turned = ft__contiguous(b, at, ft__view(b, x, tokens * a->hidden, n, true));
    ft_ref mixed = ft__matmul(b, at, turned, ft__view(b, coefs, tokens * n, n, true), tokens, a->hidden, n, n, "nn");
    mixed = ft__view(b, mixed, n * tokens, a->hidden, true);
    return ft__contiguous(b, at, ft__pointwise_in_place(b, at, "add", mixed, x));
}

/* What the layer made beyond its prediction goes to every copy, each by its own measure. */
static ft_ref corrected(ft_maker *m, ft_ref predictions, ft_ref made, ft_asks w)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ALTUP);
    int64_t tokens = tokens_of(m), n = a->altup;
    ft_ref coefs = ft__linear(b, at, modalities(m, made, w), n, FT_NO_BIAS, FT_WHOLE);
    coefs = ft__pointwise(b, at, "addu", coefs);
    ft_ref fresh = ft__pointwise2(b, at, "sub", made, ft__slice(b, predictions, tokens, a->hidden));
    fresh = ft__copy(b, at, fresh, n * tokens, a->hidden);
    ft_ref both[2] = {fresh, ft__view(b, coefs, n * tokens, 1, true)};
    ft_ref y = ft__pointwise_over(b, at, "mul", 2, both, n * tokens, a->hidden);
    return ft__pointwise_in_place(b, at, "add", y, predictions);
}

static ft_ref low_rank(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ALTUP);
    ft_ref y = ft__linear(b, at, x, a->laurel_rank, FT_NO_BIAS, FT_WHOLE);
    y = ft__linear(b, at, y, a->hidden, FT_NO_BIAS, FT_WHOLE);
    return ft__add(b, at, x, ft__part_norm(m, at, y, a->norm, a->norm_bias));
}

/* Gates below the mean and some deviations are cut off: written out, a mean, a deviation, and two passes. */
static ft_ref network(ft_maker *m, ft_ref x, bool sparse)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(MLP_ACT);
    if (!sparse) return ft__part_mlp(m, x, a->ffn, a->activation, true, false, FT_NO_BIAS);
    ft__module(b, 1);
    ft_ref gate = ft__linear(b, FT_AT(MLP_GATE_PROJ), x, a->ffn, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref mean = ft__reduce(b, at, "mean", gate), spread = ft__reduce(b, at, "var", gate);
    ft_ref cut = ft__add(b, at, mean, ft__pointwise(b, at, "mulu", spread));
    gate = ft__pointwise(b, at, "relu", ft__pointwise2(b, at, "sub", gate, cut));
    gate = ft__part_activation(m, at, a->activation, gate);
    ft_ref up = ft__linear(b, FT_AT(MLP_UP_PROJ), x, a->ffn, FT_NO_BIAS, FT_CUT_COLUMNS);
    return ft__linear(b, FT_AT(MLP_DOWN_PROJ), ft__mul(b, at, gate, up), a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}

ft_ref ft__part_altup_layer(ft_maker *m, ft_ref x, bool windowed, bool shares, bool sparse)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = tokens_of(m), rest = (a->altup - 1) * tokens;
    ft__module(b, 3);
    ft_asks w = {ft__parameter(b, "router_norm", 1, a->hidden), ft__weight(b, "modality_router", a->altup, a->hidden)};
    ft_ref predictions = predicted(m, x, w), active = ft__slice(b, predictions, tokens, a->hidden);
    ft_ref h = ft__part_norm(m, FT_AT(ATTN_NORM), active, a->norm, a->norm_bias), beside = low_rank(m, h);
    ft_ref y = ft__part_self_attention(m, h, windowed, true, shares ? FT_SHARES_KEYS : 0);
    y = ft__part_norm(m, FT_AT(ATTN_POST_NORM), y, a->norm, a->norm_bias);
    y = ft__add(b, FT_AT(ATTN_RESIDUAL), ft__add(b, FT_AT(ATTN_RESIDUAL), active, y), beside);
    y = ft__pointwise(b, FT_AT(ATTN_RESIDUAL), "divu", y);
    h = network(m, ft__part_norm(m, FT_AT(MLP_NORM), y, a->norm, a->norm_bias), sparse);
    y = ft__add(b, FT_AT(MLP_RESIDUAL), y, ft__part_norm(m, FT_AT(MLP_POST_NORM), h, a->norm, a->norm_bias));
    ft_ref all = corrected(m, predictions, y, w);
    ft_ref first = ft__pointwise(b, FT_AT(ALTUP), "copy", ft__slice(b, all, tokens, a->hidden));
    first = ft__mul(b, FT_AT(ALTUP), first, ft__parameter(b, "correct_output_scale", 1, a->hidden));
    ft_ref own = ft__part_per_layer_own(m, first);
    ft_ref others = ft__pointwise_in_place(b, FT_AT(PER_LAYER), "add", ft__slice(b, all, rest, a->hidden), own);
    ft_ref both[2] = {ft__slice(b, all, tokens, a->hidden), others};
    return ft__assemble(b, FT_AT(ALTUP), 2, both, a->altup * tokens, a->hidden);
}

/* y times the ratio of both roots of mean squares. */
static ft_ref as_large(ft_maker *m, ft_ref y, ft_ref size)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ALTUP);
    ft_ref mine = ft__pointwise(b, at, "addu", ft__reduce(b, at, "mean", ft__pointwise(b, at, "powu", y)));
    mine = ft__pointwise(b, at, "sqrt", mine);
    return ft__pointwise2(b, at, "div", ft__mul(b, at, y, size), mine);
}

static ft_ref size_of(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ALTUP);
    return ft__pointwise(b, at, "powu", ft__reduce(b, at, "mean", ft__pointwise(b, at, "powu", x)));
}

ft_ref ft__part_altup_open(ft_maker *m, ft_ref x)
{
    enum { MOST = 4 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref copy[MOST] = {x}, size = size_of(m, x);
    int64_t n = a->altup < MOST ? a->altup : MOST;
    for (int64_t i = 1; i < n; i++)
        copy[i] = as_large(m, ft__linear(b, FT_AT(ALTUP), x, a->hidden, FT_NO_BIAS, FT_WHOLE), size);
    return ft__cat(b, FT_AT(ALTUP), (int)n, copy, n * tokens_of(m), a->hidden);
}

ft_ref ft__part_altup_close(ft_maker *m, ft_ref x)
{
    enum { MOST = 4 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t n = a->altup < MOST ? a->altup : MOST, tokens = tokens_of(m);
    ft_ref copy[MOST] = {ft__slice(b, x, tokens, a->hidden)}, size = size_of(m, copy[0]);
    for (int64_t i = 1; i < n; i++) {
        ft_ref y = ft__linear(b, FT_AT(ALTUP), ft__slice(b, x, tokens, a->hidden), a->hidden, FT_NO_BIAS, FT_WHOLE);
        copy[i] = as_large(m, y, size);
    }
    ft_ref all = ft__cat(b, FT_AT(ALTUP), (int)n, copy, n * tokens, a->hidden);
    ft_reduction over = {"mean", "sum_cols", tokens, a->hidden, n, tokens * a->hidden};
    return ft__reduce_over(b, FT_AT(ALTUP), all, &over);
}
