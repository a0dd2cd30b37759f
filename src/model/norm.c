/* norm.c: norms, as one kernel or written out as transformers does it. */
#include <string.h>

#include "graph/emit.h"
#include "model/parts.h"

/* Transformers writes RMSNorm out: raise to fp32, square, mean, add epsilon, reciprocal root, product, and the weight
 * before or after the way back down. */
static ft_ref rmsnorm(ft_maker *m, const char *name, ft_ref x, bool wide)
{
    ft_build *b = &m->b;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    int64_t width = ft__tensor_of(b, x)->cols;
    ft_ref h = ft__cast(b, name, x, FT_FP32);
    ft_ref power = ft__pointwise(b, name, "powu", h);
    ft_ref mean = ft__reduce(b, name, "mean", power);
    mean = ft__pointwise(b, name, "addu", mean);
    mean = ft__pointwise(b, name, "rsqrt", mean);
    h = ft__mul(b, name, h, mean);
    ft_ref weight = ft__parameter(b, "norm.weight", 1, width);
    ft__module(b, 1);
    if (!wide) {
        h = ft__cast(b, name, h, low);
        return ft__mul(b, name, weight, h);
    }
    if (!strncmp(m->arch->model_type, "gemma", 5)) { /* 1 + w */
        weight = ft__cast(b, name, weight, FT_FP32);
        weight = ft__pointwise(b, name, "addu", weight);
    }
    h = ft__mul(b, name, weight, h);
    return ft__cast(b, name, h, low);
}

/* Layer norm with w + 1 for its weight, which is one more kernel over the weights alone (NemotronLayerNorm1P). Under
 * autocast that class casts all operands down by itself and norms in the low format. Transformer Engine has w + 1 as an
 * option of its kernel (zero_centered_gamma), engines add it when they load. */
static ft_ref layernorm_1p(ft_maker *m, const char *name, ft_ref x, bool biased)
{
    ft_build *b = &m->b;
    if (m->fused || m->engine) return ft__layernorm(b, name, x, biased ? FT_BIAS : FT_NO_BIAS);
    int64_t width = ft__tensor_of(b, x)->cols;
    ft_ref weight = ft__parameter(b, "norm.weight", 1, width);
    ft_ref bias = biased ? ft__parameter(b, "norm.bias", 1, width) : FT_NONE;
    weight = ft__pointwise(b, name, "addu", weight);
    bool autocast = b->autocast;
    if (autocast) {
        ft_dtype low = ft__flowing(b->math);
        x = ft__cast(b, name, x, low);
        weight = ft__cast(b, name, weight, low);
        if (bias != FT_NONE) bias = ft__cast(b, name, bias, low);
    }
    b->autocast = false;
    ft_ref y = ft__norm_with(b, name, "layernorm", x, weight, bias);
    b->autocast = autocast;
    return y;
}

ft_ref ft__part_norm(ft_maker *m, const char *name, ft_ref x, ft_norm kind, bool bias)
{
    if (kind == FT_LAYERNORM_1P) return layernorm_1p(m, name, x, bias);
    if (kind == FT_LAYERNORM) return ft__layernorm(&m->b, name, x, bias ? FT_BIAS : FT_NO_BIAS);
    if (m->fused || m->engine) return ft__rmsnorm_fused(&m->b, name, x);
    return rmsnorm(m, name, x, kind == FT_RMSNORM_WIDE);
}
