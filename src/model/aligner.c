/* aligner.c: a layer behind every few of a decoder's that looks at what was read of a protein (Evolla): attention whose
 * scores are written out, and a network, each behind a gate that is learned. */
#include "graph/emit.h"
#include "model/mixers.h"

/* Scores less the largest of each row, masked, and their softmax: no fused kernel takes the largest off. */
ft_ref ft__part_scored(ft_maker *m, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_scored *of)
{
    ft_build *b = &m->b;
    const int32_t first = b->g->node_count;
    ft_ref scores = ft__matmul(b, at, q, k, of->groups, of->queries, of->keys, of->dim, "nt");
    ft_ref largest = ft__detach(b, ft__reduce(b, at, "amax", scores));
    scores = ft__pointwise2(b, at, "sub", scores, largest);
    scores = ft__pointwise2(b, at, "masked_fill", scores, ft__input(b, of->groups * of->queries, of->keys, 1));
    scores = ft__softmax(b, at, scores, false);
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) b->g->nodes[i].core = true;
    return ft__matmul(b, at, scores, v, of->groups, of->queries, of->dim, of->keys, "nn");
}

/* What is added, times the tanh of a number that is learned. */
static ft_ref opened(ft_maker *m, ft_ref y)
{
    ft_build *b = &m->b;
    ft_ref gate = ft__pointwise(b, FT_AT(CROSS_RESIDUAL), "tanh", ft__parameter(b, "gate", 1, 1));
    return ft__mul(b, FT_AT(CROSS_RESIDUAL), y, gate);
}

ft_ref ft__part_aligner(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t dim = a->hidden / a->heads, pairs = m->batch * a->heads;
    ft__module(b, 4);
    ft_ref h = ft__part_norm(m, FT_AT(CROSS_NORM), x, a->norm, a->norm_bias);
    ft_ref q = ft__linear(b, FT_AT(CROSS_Q_PROJ), h, a->hidden, FT_BIAS, FT_CUT_COLUMNS);
    ft_ref k = ft__linear(b, FT_AT(CROSS_K_PROJ), m->source, a->hidden, FT_BIAS, FT_CUT_COLUMNS);
    ft_ref v = ft__linear(b, FT_AT(CROSS_V_PROJ), m->source, a->hidden, FT_BIAS, FT_CUT_COLUMNS);
    q = ft__pointwise(b, FT_AT(CROSS_ATTEND), "mulu", q);
    q = ft__contiguous(b, FT_AT(CROSS_ATTEND), ft__view(b, q, pairs * m->q_len, dim, true));
    k = ft__contiguous(b, FT_AT(CROSS_ATTEND), ft__view(b, k, pairs * m->source_len, dim, true));
    v = ft__contiguous(b, FT_AT(CROSS_ATTEND), ft__view(b, v, pairs * m->source_len, dim, true));
    const ft_scored of = {.groups = pairs, .queries = m->q_len, .keys = m->source_len, .dim = dim};
    ft_ref y = ft__part_scored(m, FT_AT(CROSS_ATTEND), q, k, v, &of);
    y = ft__contiguous(b, FT_AT(CROSS_MERGE), ft__view(b, y, m->batch * m->q_len, a->hidden, m->q_len > 1));
    y = ft__linear(b, FT_AT(CROSS_O_PROJ), y, a->hidden, a->protein.aligner_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
    x = ft__add(b, FT_AT(CROSS_RESIDUAL), x, opened(m, y));
    h = ft__part_norm(m, FT_AT(MLP_NORM), x, FT_LAYERNORM, true);
    h = ft__part_mlp(m, h, a->protein.aligner_ffn * a->hidden, "gelu", false, false, FT_NO_BIAS);
    return ft__add(b, FT_AT(MLP_RESIDUAL), x, opened(m, h));
}
