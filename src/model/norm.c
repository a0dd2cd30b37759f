/* norm.c: norms, as one kernel or written out as transformers does it. */
#include "graph/emit.h"
#include "model/parts.h"

/* x over the root of its mean square, in fp32 and written out: raise, square, mean, add epsilon, reciprocal root,
 * product. */
static ft_ref over_root(ft_build *b, ft_at at, ft_ref x)
{
    ft_ref h = ft__cast(b, at, x, FT_FP32);
    ft_ref power = ft__pointwise(b, at, "powu", h);
    ft_ref mean = ft__reduce(b, at, "mean", power);
    mean = ft__pointwise(b, at, "addu", mean);
    mean = ft__pointwise(b, at, "rsqrt", mean);
    return ft__mul(b, at, h, mean);
}

ft_ref ft__part_norm_bare(ft_maker *m, ft_at at, ft_ref x)
{
    ft_build *b = &m->b;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    ft__module(b, 1);
    if (m->stack->fused_norms || m->engine) return ft__row(b, at, "rmsnorm", x);
    return ft__cast(b, at, over_root(b, at, x), low);
}

/* Transformers writes RMSNorm out, and the weight before or after the way back down. litgpt's class is one for all of
 * its models: before, and the weight is raised for it. */
static ft_ref rmsnorm(ft_maker *m, ft_at at, ft_ref x, bool wide)
{
    ft_build *b = &m->b;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    int64_t width = ft__tensor_of(b, x)->cols;
    ft_ref h = over_root(b, at, x);
    ft_ref weight = ft__parameter(b, "norm.weight", 1, width);
    ft__module(b, 1);
    if (!wide) {
        h = ft__cast(b, at, h, low);
        return ft__mul(b, at, weight, h);
    }
    if (m->arch->norm_weight_fp32 || m->stack->wide_norms) weight = ft__cast(b, at, weight, FT_FP32);
    if (m->arch->norm_plus_one) weight = ft__pointwise(b, at, "addu", weight);
    h = ft__mul(b, at, weight, h);
    return ft__cast(b, at, h, low);
}

/* Cohere's layer norm: raise to fp32, mean, variance of the differences, which are computed twice, and the weight in
 * fp32. `x` in rows of a norm; `width`: the elements of the weight, a multiple of a row where each head has its own. */
static ft_ref layernorm_fp32(ft_maker *m, ft_at at, ft_ref x, int64_t width)
{
    ft_build *b = &m->b;
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref weight = ft__parameter(b, "norm.weight", 1, width);
    if (m->stack->fused_norms || m->engine) return ft__norm_with(b, at, "layernorm", x, weight, FT_NONE);
    ft_ref h = ft__cast(b, at, x, FT_FP32);
    ft_ref mean = ft__reduce(b, at, "mean", h);
    ft_ref power = ft__pointwise(b, at, "powu", ft__pointwise2(b, at, "sub", h, mean));
    ft_ref spread = ft__reduce(b, at, "mean", power);
    spread = ft__pointwise(b, at, "rsqrt", ft__pointwise(b, at, "addu", spread));
    h = ft__mul(b, at, ft__pointwise2(b, at, "sub", h, mean), spread);
    if (width != t.cols && width > 0) h = ft__view(b, h, t.rows * t.cols / width, width, false);
    h = ft__mul(b, at, ft__cast(b, at, weight, FT_FP32), h);
    ft__module(b, 1);
    return ft__cast(b, at, h, t.dtype);
}

ft_ref ft__part_norm_of_heads(ft_maker *m, ft_at at, ft_ref x, int64_t heads)
{
    ft_build *b = &m->b;
    ft_tensor t = *ft__tensor_of(b, x);
    int64_t width = heads * t.cols;
    if (m->arch->norm == FT_LAYERNORM_FP32) return layernorm_fp32(m, at, x, width);
    /* Chameleon's: one kernel without weights, then theirs, and a bias. */
    x = ft__row(b, at, "layernorm", x);
    if (width > 0) x = ft__view(b, x, t.rows * t.cols / width, width, false);
    x = ft__mul(b, at, x, ft__parameter(b, "norm.weight", 1, width));
    ft__module(b, 1);
    return ft__add(b, at, x, ft__parameter(b, "norm.bias", 1, width));
}

/* OLMo's layer norm has no weights and runs in fp32 whatever comes in. */
static ft_ref layernorm_bare(ft_maker *m, ft_at at, ft_ref x)
{
    ft_build *b = &m->b;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    ft__module(b, 1);
    if (m->stack->fused_norms || m->engine) return ft__row(b, at, "layernorm", x);
    return ft__cast(b, at, ft__row(b, at, "layernorm", ft__cast(b, at, x, FT_FP32)), low);
}

/* Layer norm with w + 1 for its weight, which is one more kernel over the weights alone (NemotronLayerNorm1P). Under
 * autocast that class casts all operands down by itself and norms in the low format. Transformer Engine has w + 1 as an
 * option of its kernel (zero_centered_gamma), engines add it when they load. */
static ft_ref layernorm_1p(ft_maker *m, ft_at at, ft_ref x, bool biased)
{
    ft_build *b = &m->b;
    if (m->stack->fused_norms || m->engine) return ft__layernorm(b, at, x, biased ? FT_BIAS : FT_NO_BIAS);
    int64_t width = ft__tensor_of(b, x)->cols;
    ft_ref weight = ft__parameter(b, "norm.weight", 1, width);
    ft_ref bias = biased ? ft__parameter(b, "norm.bias", 1, width) : FT_NONE;
    weight = ft__pointwise(b, at, "addu", weight);
    bool autocast = b->autocast;
    if (autocast) {
        ft_dtype low = ft__flowing(b->math);
        x = ft__cast(b, at, x, low);
        weight = ft__cast(b, at, weight, low);
        if (bias != FT_NONE) bias = ft__cast(b, at, bias, low);
    }
    b->autocast = false;
    ft_ref y = ft__norm_with(b, at, "layernorm", x, weight, bias);
    b->autocast = autocast;
    return y;
}

ft_ref ft__part_norm(ft_maker *m, ft_at at, ft_ref x, ft_norm kind, bool bias)
{
    if (kind == FT_LAYERNORM_1P) return layernorm_1p(m, at, x, bias);
    if (kind == FT_LAYERNORM_BARE) return layernorm_bare(m, at, x);
    if (kind == FT_LAYERNORM_FP32) return layernorm_fp32(m, at, x, ft__tensor_of(&m->b, x)->cols);
    if (kind == FT_LAYERNORM) return ft__layernorm(&m->b, at, x, bias ? FT_BIAS : FT_NO_BIAS);
    if (kind == FT_RMSNORM_BARE) return ft__part_norm_bare(m, at, x);
    if (m->stack->fused_norms || m->engine) return ft__rmsnorm_fused(&m->b, at, x);
    return rmsnorm(m, at, x, kind == FT_RMSNORM_WIDE || m->stack->wide_norms);
}
