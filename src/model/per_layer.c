/* per_layer.c: embeddings by layer (Gemma 3n and 4): a second table gives every token a short row for each layer; the
 * layer gates it with its result and adds what a product makes of it. */
#include "graph/emit.h"
#include "model/mixers.h"

void ft__part_per_layer_inputs(ft_maker *m, ft_ref tokens, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(PER_LAYER);
    int64_t wide = a->layers * a->per_layer_width, count = m->batch * m->q_len;
    ft_ref table = FT_NONE;
    ft_ref rows = ft__embedding(b, at, tokens, a->per_layer_vocab, wide, &table);
    rows = ft__pointwise(b, at, "mulu", rows);
    ft_ref made = ft__pointwise(b, at, "mulu", ft__linear(b, at, x, wide, FT_NO_BIAS, FT_WHOLE));
    made = ft__part_norm(m, at, ft__view(b, made, count * a->layers, a->per_layer_width, false), a->norm, false);
    rows = ft__add(b, at, ft__view(b, rows, count * a->layers, a->per_layer_width, false), made);
    m->per_layer = ft__pointwise(b, at, "mulu", rows);
}

ft_ref ft__part_per_layer_own(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(PER_LAYER);
    ft_ref gate = ft__linear(b, at, x, a->per_layer_width, FT_NO_BIAS, FT_WHOLE);
    gate = ft__part_activation(m, at, a->activation, gate);
    gate = ft__mul(b, at, gate, ft__view(b, m->per_layer, m->batch * m->q_len, a->per_layer_width, true));
    ft_ref y = ft__linear(b, at, gate, a->hidden, FT_NO_BIAS, FT_WHOLE);
    return ft__part_norm(m, at, y, a->norm, a->norm_bias);
}

ft_ref ft__part_per_layer(ft_maker *m, ft_ref x)
{
    return ft__add(&m->b, FT_AT(PER_LAYER), x, ft__part_per_layer_own(m, x));
}
