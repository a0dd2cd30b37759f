/* shifted.c: Transformer-XL's relative attention (arXiv 1901.02860) as XLNet has it: to scores of content with content
 * are added those of content with sines of all distances, through a product of their own, of twice as many columns as
 * there are keys, which are shifted row by row into the place of their pair. Queries get a bias that is learned for
 * each. No fused kernel takes it: scores are always there. */
#include "graph/emit.h"
#include "model/parts.h"
#include "model/relative.h"

void ft__part_distances(ft_maker *m)
{
    ft_build *b = &m->b;
    int64_t rows = m->batch * (m->q_len + m->kv_len);
    ft__parameter(b, "mask_emb", 1, m->arch->hidden); /* where the second stream starts */
    m->places = ft__no_grad_kernels(b, FT_AT(ATTN_BIAS), "sin", FT_NONE, rows, m->arch->hidden,
                                    ft_dtype_bytes(b->stored), 3);
}

/* Queries, keys, values or distances by heads, in the order that products read. */
static ft_ref by_heads(ft_maker *m, ft_at at, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = ft__tensor_of(b, x)->rows * a->heads;
    ft_ref y = ft__linear(b, at, x, a->heads * a->head_dim, FT_NO_BIAS, FT_CUT_COLUMNS);
    return ft__contiguous(b, at, ft__view(b, y, rows, a->head_dim, true));
}

static ft_ref moved(ft_maker *m, ft_ref q)
{
    ft_build *b = &m->b;
    return ft__add(b, FT_AT(ATTN_BIAS), q, ft__parameter(b, "attn.bias", m->arch->heads, m->arch->head_dim));
}

ft_ref ft__part_shifted(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t pairs = m->batch * a->heads, dim = a->head_dim, distances = m->q_len + m->kv_len;
    ft__parameter(b, "attn.segments", 3 * a->heads, dim); /* a bias and two rows, which texts of one segment leave */
    ft_ref q = by_heads(m, FT_AT(ATTN_Q_PROJ), x), k = by_heads(m, FT_AT(ATTN_K_PROJ), x);
    ft_ref v = by_heads(m, FT_AT(ATTN_V_PROJ), x), r = by_heads(m, FT_AT(ATTN_BIAS), m->places);
    ft__module(b, 2);
    ft_ref p = ft__matmul(b, FT_AT(ATTN_SCORES), moved(m, q), k, pairs, m->q_len, m->kv_len, dim, "nt");
    ft_ref far = ft__matmul(b, FT_AT(ATTN_BIAS), moved(m, q), r, pairs, m->q_len, distances, dim, "nt");
    far = ft__pick(b, FT_AT(ATTN_BIAS), far, pairs * m->q_len, m->kv_len, false);
    p = ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", ft__add(b, FT_AT(ATTN_BIAS), p, far));
    p = ft__dropout(b, FT_AT(ATTN_DROPOUT), ft__row(b, FT_AT(ATTN_SOFTMAX), "softmax", p), a->attention_dropout);
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), p, v, pairs, m->q_len, dim, m->kv_len, "nn");
    y = ft__contiguous(b, FT_AT(ATTN_MERGE), ft__view(b, y, m->batch * m->q_len, a->heads * dim, true));
    return ft__linear(b, FT_AT(ATTN_O_PROJ), y, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}
