/* deberta.c: DeBERTa's disentangled attention (arXiv 2006.03654) as transformers launches it: to the scores of content
 * with content are added those of content with relative places and of relative places with content, each a product over
 * a table of places and a gather that lays its columns out by distance. No fused kernel takes it: scores are always
 * there. */
#include "graph/emit.h"
#include "model/parts.h"
#include "model/relative.h"

/* What every layer makes anew (modeling_deberta_v2.py, disentangled_attention_bias): columns of distances, shifted and
 * clamped, those of keys turned round before that and the first side's added to a zero; the mask as truths, and their
 * opposite. And numbers that Python makes tensors of on the host, takes a root of and lowers, for three scales. */
enum { OF_QUERIES = 3, OF_KEYS = 3, OF_MASK = 2, ON_HOST = 12 };

/* Of one side: a product over all places, then for each pair of tokens the column of their distance. */
static ft_ref by_place(ft_maker *m, ft_ref x, ft_ref places, int64_t pairs, int columns)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = 2 * a->relative_span;
    bool written = ft__part_spelled_out(m);
    ft_ref laid = ft__view(b, places, a->heads * rows, a->head_dim, true);
    if (written) laid = ft__contiguous(b, FT_AT(ATTN_BIAS), laid); /* head by head, then once for each sequence */
    ft_ref table = ft__copy(b, FT_AT(ATTN_BIAS), laid, pairs * rows, a->head_dim);
    ft_ref score = ft__matmul(b, FT_AT(ATTN_BIAS), x, table, pairs, m->q_len, rows, a->head_dim, "nt");
    if (written) ft__no_grad_kernels(b, FT_AT(ATTN_BIAS), "addu", FT_NONE, m->q_len, m->kv_len, 8, columns);
    score = ft__take_along(b, FT_AT(ATTN_BIAS), score, pairs * m->q_len, m->kv_len);
    return ft__pointwise(b, FT_AT(ATTN_BIAS), "divu", score);
}

typedef struct ft_projection {
    ft_ref weight, bias;
} ft_projection;

static ft_projection made(ft_maker *m, bool biased)
{
    int64_t wide = m->arch->heads * m->arch->head_dim;
    ft_projection p = {ft__weight(&m->b, "weight", wide, m->arch->hidden),
                       biased ? ft__parameter(&m->b, "bias", 1, wide) : FT_NONE};
    return p;
}

static ft_ref applied(ft_maker *m, ft_at at, ft_ref x, ft_projection p)
{
    ft__module(&m->b, 1);
    return ft__linear_with(&m->b, at, x, p.weight, m->arch->heads * m->arch->head_dim, p.bias, FT_CUT_COLUMNS);
}

ft_ref ft__part_disentangled(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, pairs = m->batch * a->heads, rows = pairs * m->q_len;
    ft_projection query = made(m, true), key = made(m, a->key_bias), value = made(m, true);
    ft__module(b, 3);
    ft_ref q = ft__contiguous(b, FT_AT(ATTN_Q_PROJ),
                              ft__view(b, applied(m, FT_AT(ATTN_Q_PROJ), x, query), rows, a->head_dim, true));
    ft_ref k = ft__contiguous(b, FT_AT(ATTN_K_PROJ),
                              ft__view(b, applied(m, FT_AT(ATTN_K_PROJ), x, key), rows, a->head_dim, true));
    ft_ref v = ft__contiguous(b, FT_AT(ATTN_V_PROJ),
                              ft__view(b, applied(m, FT_AT(ATTN_V_PROJ), x, value), rows, a->head_dim, true));
    ft_ref scores = ft__matmul(b, FT_AT(ATTN_SCORES), q, ft__pointwise(b, FT_AT(ATTN_SCALE), "divu", k), pairs,
                               m->q_len, m->kv_len, a->head_dim, "nt");
    ft_ref added = FT_NONE;
    if (a->relative_span > 0 && a->relative_keys)
        added = by_place(m, q, applied(m, FT_AT(ATTN_BIAS), m->places, a->relative_own ? made(m, a->key_bias) : key),
                         pairs, OF_QUERIES);
    if (a->relative_span > 0 && a->relative_queries) {
        ft_ref other = by_place(m, k, applied(m, FT_AT(ATTN_BIAS), m->places, a->relative_own ? made(m, true) : query),
                                pairs, OF_KEYS);
        other = ft__view(b, other, rows, m->kv_len, true); /* keys by queries, turned: it is read across */
        added = added == FT_NONE ? other : ft__add(b, FT_AT(ATTN_BIAS), added, other);
    }
    if (added != FT_NONE) scores = ft__add(b, FT_AT(ATTN_BIAS), scores, added);
    ft_ref hidden = ft__input(b, m->batch * m->q_len, m->kv_len, 1);
    if (ft__part_spelled_out(m)) {
        ft__module(b, ON_HOST);
        ft__no_grad_kernels(b, FT_AT(ATTN_MASK), "compare", FT_NONE, m->batch * m->q_len, m->kv_len, 1, OF_MASK);
    }
    scores = ft__pointwise2(b, FT_AT(ATTN_MASK), "where", scores, hidden);
    ft_ref share = ft__dropout(b, FT_AT(ATTN_DROPOUT), ft__row(b, FT_AT(ATTN_SOFTMAX), "softmax", scores),
                               a->attention_dropout);
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), share, v, pairs, m->q_len, a->head_dim, m->kv_len, "nn");
    y = ft__contiguous(b, FT_AT(ATTN_MERGE), ft__view(b, y, tokens, a->heads * a->head_dim, true));
    return ft__linear(b, FT_AT(ATTN_O_PROJ), y, a->hidden, FT_BIAS, FT_CUT_ROWS);
}

void ft__part_places(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    m->places = FT_NONE;
    if (a->relative_span < 1) return;
    m->places = ft__parameter(b, "rel_embeddings", 2 * a->relative_span, a->hidden);
    if (a->relative_norm) m->places = ft__part_norm(m, FT_AT(ATTN_BIAS), m->places, a->norm, a->norm_bias);
    enum { SHORT = 9, LONG = 25 }; /* distances and their buckets; with the mask that says who sees whom */
    ft__no_grad_kernels(b, FT_AT(ATTN_BIAS), "copy", FT_NONE, m->q_len, m->kv_len, 8,
                        ft__part_spelled_out(m) ? LONG : SHORT);
}
