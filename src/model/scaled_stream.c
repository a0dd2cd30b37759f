/* scaled_stream.c: a residual stream in fp32 whose two sides are each moved and scaled by channel before they are added
 * (ZAYA): (y + bias) * scale + (x + bias) * scale. Norms read it in the format of their weights. */
#include "graph/emit.h"
#include "model/mixers.h"

static ft_ref moved(ft_maker *m, ft_at at, ft_ref x)
{
    ft_build *b = &m->b;
    int64_t width = m->arch->hidden;
    x = ft__add(b, at, x, ft__parameter(b, "residual.bias", 1, width));
    return ft__mul(b, at, x, ft__parameter(b, "residual.scale", 1, width));
}

ft_ref ft__part_stream_open(ft_maker *m, ft_ref x)
{
    if (!m->arch->stream_scaled) return x;
    return ft__cast(&m->b, FT_AT(RESIDUAL), moved(m, FT_AT(RESIDUAL), x), FT_FP32);
}

ft_ref ft__part_stream_add(ft_maker *m, ft_at at, ft_ref x, ft_ref y)
{
    if (!m->arch->stream_scaled) return ft__add(&m->b, at, x, y);
    ft__module(&m->b, 1);
    ft_ref branch = moved(m, at, y);
    return ft__add(&m->b, at, branch, moved(m, at, x));
}

ft_ref ft__part_stream_norm(ft_maker *m, ft_at at, ft_ref x)
{
    const ft_arch *a = m->arch;
    if (a->stream_scaled) x = ft__cast(&m->b, at, x, m->b.stored);
    return ft__part_norm(m, at, x, a->norm, a->norm_bias);
}

ft_ref ft__part_layer_norm(ft_maker *m, ft_at at, ft_ref x)
{
    ft_build *b = &m->b;
    ft_ref y = ft__part_stream_norm(m, at, x);
    if (m->arch->norm_gate < 1) return y;
    int64_t rank = b->lora_rank;
    b->lora_rank = 0;
    ft_ref gate = ft__pointwise(b, at, "silu", ft__linear(b, at, y, m->arch->norm_gate, FT_NO_BIAS, FT_WHOLE));
    gate = ft__cast(b, at, ft__linear(b, at, gate, m->arch->hidden, FT_NO_BIAS, FT_WHOLE), FT_FP32);
    b->lora_rank = rank;
    ft__module(b, 3);
    return ft__cast(b, at, ft__mul(b, at, y, ft__pointwise(b, at, "sigmoid", gate)), b->stored);
}
