/* convolved.c: queries and keys that short convolutions mix along the sequence (ZAYA's compressed convolutional
 * attention, arXiv 2510.04476), as transformers launches them: both joined, a border before the first token, a filter
 * for each channel, a filter for each head; to what comes out the mean of query and key from before is added. Half of a
 * value is the last token's. Queries and keys are then set to one length.
 *
 * Leaves out: the convolution's cache while decoding, which is two columns of it. */
#include "graph/emit.h"
#include "model/mixers.h"

/* The two filters over [batch * width, q_len + their reach]; each ends that much shorter. */
static ft_ref filtered(ft_maker *m, ft_ref x, int64_t width, int64_t heads)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(MIXER_CONV1D);
    int64_t reach = m->arch->conv_kernel - 1, rows = m->batch * width;
    x = ft__view(b, x, rows, m->q_len, true);
    x = ft__resample(b, at, "pad", x, rows, m->q_len + 2 * reach, 1);
    ft__walks_across(b, (double)rows * (double)m->q_len);
    for (int turn = 0; turn < 2; turn++) {
        ft_conv_shape shape = {.n = m->batch,
                               .c = width,
                               .h = 1,
                               .w = m->q_len + (2 - turn) * reach,
                               .k = width,
                               .r = 1,
                               .s = reach + 1,
                               .stride = 1,
                               .groups = turn ? heads : width};
        x = ft__conv(b, at, x, &shape, FT_BIAS);
    }
    ft__module(b, 2);
    return ft__view(b, x, m->batch * m->q_len, width, true);
}

/* x over its own length, times one number for all or one for each head. */
static ft_ref set_length(ft_maker *m, ft_ref x, int64_t heads, bool scaled)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_QK_NORM);
    int64_t dim = m->arch->head_dim, rows = m->batch * m->q_len * heads;
    x = ft__view(b, x, rows, dim, false);
    ft_reduction over = {
        .what = "norm", .kernel = "sum_rows", .rows = rows, .cols = 1, .kernel_rows = rows, .kernel_cols = dim};
    ft_ref length = ft__reduce_over(b, at, x, &over);
    length = ft__pointwise(b, at, "clamp_min", length);
    length = ft__pointwise(b, at, "mulu", ft__pointwise(b, at, "reciprocal", length));
    x = ft__mul(b, at, x, length);
    if (!scaled) return x;
    return ft__mul(b, at, x, ft__expand(b, ft__parameter(b, "attn.temp", heads, 1), rows, 1));
}

/* Two products of half the width, of which the second is of the token before: joined with a row for the first. */
static ft_ref delayed_values(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ATTN_V_PROJ);
    int64_t half = a->kv_heads * a->head_dim / 2, tokens = m->batch * m->q_len;
    ft_bias bias = a->qkv_bias ? FT_BIAS : FT_NO_BIAS;
    ft_ref now = ft__linear(b, at, x, half, bias, FT_CUT_COLUMNS);
    ft_ref before = ft__linear(b, at, x, half, bias, FT_CUT_COLUMNS);
    before = ft__cat(b, at, 1, &before, tokens, half);
    return ft__cat(b, at, 2, (ft_ref[]){now, before}, tokens, 2 * half);
}

void ft__part_convolved(ft_maker *m, ft_ref x, ft_ref *q, ft_ref *k, ft_ref *v)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(ATTN_COMPRESS);
    int64_t tokens = m->batch * m->q_len, wide = a->heads * a->head_dim, narrow = a->kv_heads * a->head_dim;
    int64_t group = a->heads / a->kv_heads, part[2] = {wide, narrow};
    ft_bias bias = a->qkv_bias ? FT_BIAS : FT_NO_BIAS;
    ft_ref query = ft__linear(b, FT_AT(ATTN_Q_PROJ), x, wide, bias, FT_CUT_COLUMNS);
    ft_ref key = ft__linear(b, FT_AT(ATTN_K_PROJ), x, narrow, bias, FT_CUT_COLUMNS);
    ft_ref both = ft__cat(b, at, 2, (ft_ref[]){query, key}, tokens, wide + narrow), mixed[2];
    /* What is added: the mean of a query and its key; of keys, the mean over the queries that share it. */
    ft_ref mean = ft__add(b, at, query, group > 1 ? ft__copy(b, at, key, tokens, wide) : key);
    mean = ft__pointwise(b, at, "mulu", mean);
    ft_reduction over = {.what = "mean",
                         .kernel = "sum_cols",
                         .rows = tokens,
                         .cols = narrow,
                         .kernel_rows = group,
                         .kernel_cols = tokens * narrow};
    ft_ref of_keys = ft__reduce_over(b, at, mean, &over);
    ft__split(b, filtered(m, both, wide + narrow, a->heads + a->kv_heads), 2, part, mixed);
    query = ft__add(b, at, mixed[0], mean);
    key = ft__add(b, at, mixed[1], of_keys);
    *v = delayed_values(m, x);
    *q = set_length(m, query, a->heads, false);
    *k = set_length(m, key, a->kv_heads, true);
}
