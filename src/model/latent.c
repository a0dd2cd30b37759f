/* latent.c: multi-head latent attention as transformers writes it (no weight absorption): the latent is expanded to the
 * keys and values of every head, the rotary part is shared by all heads. */
#include "model/latent.h"

#include "graph/emit.h"

/* Interleaved rotary of a slice: four products, a difference and a sum over halves, one concatenation. */
static ft_ref rotate_pairs(ft_maker *m, ft_ref x, int64_t rows)
{
    ft_build *b = &m->b;
    int64_t half = m->arch->rope_dim / 2;
    ft_ref even = ft__slice(b, x, rows, half), odd = ft__slice(b, x, rows, half);
    ft_ref c = ft__slice(b, m->cos, m->q_len, half), s = ft__slice(b, m->sin, m->q_len, half);
    ft_ref first = ft__pointwise2(b, "attn.rotary", "sub", ft__mul(b, "attn.rotary", even, c),
                                  ft__mul(b, "attn.rotary", odd, s));
    ft_ref second = ft__add(b, "attn.rotary", ft__mul(b, "attn.rotary", odd, c), ft__mul(b, "attn.rotary", even, s));
    ft_ref both[2] = {first, second};
    return ft__cat(b, "attn.rotary", 2, both, rows, 2 * half);
}

static ft_ref queries(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t wide = a->heads * (a->nope_dim + a->rope_dim);
    if (a->q_lora <= 0) return ft__linear(b, "attn.q_proj", x, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref q = ft__linear(b, "attn.q_a_proj", x, a->q_lora, a->qkv_bias ? FT_BIAS : FT_NO_BIAS, FT_WHOLE);
    q = ft__part_norm(m, "attn.q_a_norm", q, FT_RMSNORM, false);
    return ft__linear(b, "attn.q_b_proj", q, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
}

ft_ref ft__part_latent_attention(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, dim = a->nope_dim + a->rope_dim, rows = tokens * a->heads;
    ft__module(b, 1);
    ft_ref q = ft__view(b, queries(m, x), rows, dim, true), part[2];
    int64_t q_cols[2] = {a->nope_dim, a->rope_dim};
    ft__split(b, q, 2, q_cols, part);
    ft_ref q_nope = part[0], q_rope = part[1];

    ft_ref latent = ft__linear(b, "attn.kv_a_proj", x, a->kv_lora + a->rope_dim, a->qkv_bias ? FT_BIAS : FT_NO_BIAS,
                               FT_WHOLE);
    int64_t kv_cols[2] = {a->kv_lora, a->rope_dim};
    ft__split(b, latent, 2, kv_cols, part);
    ft_ref c = ft__part_norm(m, "attn.kv_a_norm", part[0], FT_RMSNORM, false), k_rope = part[1];
    q_rope = rotate_pairs(m, q_rope, rows);
    ft_ref both[2] = {q_nope, q_rope};
    q = ft__cat(b, "attn.q_cat", 2, both, rows, dim);
    k_rope = rotate_pairs(m, k_rope, tokens);

    /* The cache holds the latent and the shared rotary key; every step expands the whole history again. */
    c = ft__part_remember(m, c, 1, a->kv_lora);
    k_rope = ft__part_remember(m, k_rope, 1, a->rope_dim);
    int64_t seen = m->batch * m->kv_len;
    ft_ref kv = ft__linear(b, "attn.kv_b_proj", c, a->heads * (a->nope_dim + a->v_dim), FT_NO_BIAS, FT_CUT_COLUMNS);
    kv = ft__view(b, kv, seen * a->heads, a->nope_dim + a->v_dim, true);
    int64_t cols[2] = {a->nope_dim, a->v_dim};
    ft__split(b, kv, 2, cols, part);
    ft_ref nope_rope[2] = {part[0], ft__expand(b, k_rope, seen * a->heads, a->rope_dim)};
    ft_ref k = ft__assemble(b, "attn.k_cat", 2, nope_rope, seen * a->heads, dim), v = part[1];

    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = a->heads,
                             .kv_heads = a->heads,
                             .q_len = m->q_len,
                             .kv_len = m->kv_len,
                             .head_dim = dim,
                             .v_dim = a->v_dim,
                             .causal = m->q_len > 1},
                   .dropout = a->attention_dropout,
                   .scale = true,
                   .mask = m->q_len > 1,
                   .softmax_fp32 = true,
                   .q_dense = true,
                   .merge = true,
                   .k_dense = true};
    ft_ref y = ft__part_attend(m, "attn.attend", q, k, v, &s);
    return ft__linear(b, "attn.o_proj", y, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}
