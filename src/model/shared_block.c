/* shared_block.c: Zamba 2's shared transformer (arXiv 2411.15242): every few Mamba layers one attention layer, whose
 * weights are the same each time, reads the stream and the embedding side by side; a low-rank pair of the layer's own
 * is added to its network's first product, and what it makes is added to what the Mamba layer reads. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/relative.h"

/* The weights that all such layers share, made once; of several sets each layer reads one. */
void ft__part_shared_open(ft_maker *m, ft_ref embedded)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t wide = 2 * a->hidden, sets = a->shared_blocks > 1 ? a->shared_blocks : 1;
    int64_t inner = sets * a->heads * a->head_dim, out = sets * a->hidden;
    ft_shared_block *s = &m->shared;
    if (a->shared_adapter < 1) return;
    s->embedded = embedded;
    s->norm = ft__parameter(b, "shared.norm", sets, wide);
    s->q = ft__weight(b, "shared.q", inner, wide);
    s->k = ft__weight(b, "shared.k", inner, wide);
    s->v = ft__weight(b, "shared.v", inner, wide);
    s->o = ft__weight(b, "shared.o", out, a->heads * a->head_dim);
    s->feed_norm = ft__parameter(b, "shared.feed_norm", sets, a->hidden);
    s->up = ft__weight(b, "shared.gate_up", sets * 2 * a->ffn, a->hidden);
    s->down = ft__weight(b, "shared.down", out, a->ffn);
}

/* One of the three products, and what this layer adds to it. */
static ft_ref projected(ft_maker *m, ft_at at, ft_ref h, ft_ref weight)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t inner = a->heads * a->head_dim;
    ft_ref y = ft__linear_with(b, at, h, weight, inner, FT_NONE, FT_CUT_COLUMNS);
    if (a->shared_adapted) {
        ft_ref low = ft__linear(b, at, h, a->shared_adapter, FT_NO_BIAS, FT_WHOLE);
        y = ft__add(b, at, y, ft__linear(b, at, low, inner, FT_NO_BIAS, FT_CUT_COLUMNS));
    }
    return ft__view(b, y, m->batch * m->q_len * a->heads, a->head_dim, true);
}

static ft_ref normed(ft_maker *m, ft_at at, ft_ref x, ft_ref weight)
{
    ft_build *b = &m->b;
    if (m->stack->fused_norms || m->engine) return ft__norm_with(b, at, "rmsnorm", x, weight, FT_NONE);
    return ft__mul(b, at, ft__part_norm_bare(m, at, x), weight);
}

ft_ref ft__part_shared_block(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const ft_shared_block *s = &m->shared;
    int64_t tokens = m->batch * m->q_len, halves[2] = {a->ffn, a->ffn};
    ft_ref both[2] = {x, s->embedded}, part[2];
    ft__module(b, 4);
    ft_ref h = normed(m, FT_AT(ATTN_NORM), ft__cat(b, FT_AT(ATTN_NORM), 2, both, tokens, 2 * a->hidden), s->norm);
    ft_ref q = projected(m, FT_AT(ATTN_Q_PROJ), h, s->q), k = projected(m, FT_AT(ATTN_K_PROJ), h, s->k);
    ft_ref v = projected(m, FT_AT(ATTN_V_PROJ), h, s->v);
    if (a->position == FT_ROTARY) {
        q = ft__part_rotate(m, FT_AT(ATTN_ROTARY), q, a->heads, a->head_dim, a->rotary_dim);
        k = ft__part_rotate(m, FT_AT(ATTN_ROTARY), k, a->heads, a->head_dim, a->rotary_dim);
    }
    k = ft__part_remember(m, k, a->heads, a->head_dim);
    v = ft__part_remember(m, v, a->heads, a->head_dim);
    bool cached = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    ft_scores scores = {.shape = {.batch = m->batch,
                                  .heads = a->heads,
                                  .kv_heads = a->heads,
                                  .q_len = m->q_len,
                                  .kv_len = m->kv_len,
                                  .head_dim = a->head_dim,
                                  .causal = m->q_len > 1},
                        .scale = true,
                        .softmax_fp32 = true,
                        .k_dense = cached,
                        .v_dense = cached};
    ft_ref y = ft__part_attend(m, FT_AT(ATTN_ATTEND), q, k, v, &scores);
    y = ft__linear_with(b, FT_AT(ATTN_O_PROJ), y, s->o, a->hidden, FT_NONE, FT_CUT_ROWS);
    h = normed(m, FT_AT(MLP_NORM), y, s->feed_norm);
    ft_ref up = ft__linear_with(b, FT_AT(MLP_GATE_UP_PROJ), h, s->up, 2 * a->ffn, FT_NONE, FT_CUT_COLUMNS);
    ft_ref low = ft__linear(b, FT_AT(MLP_GATE_UP_PROJ), h, a->shared_adapter, FT_NO_BIAS, FT_WHOLE);
    low = ft__linear(b, FT_AT(MLP_GATE_UP_PROJ), low, 2 * a->ffn, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft__split(b, ft__add(b, FT_AT(MLP_GATE_UP_PROJ), up, low), 2, halves, part);
    h = ft__mul(b, FT_AT(MLP_ACT), ft__part_activation(m, FT_AT(MLP_ACT), a->activation, part[0]), part[1]);
    h = ft__linear_with(b, FT_AT(MLP_DOWN_PROJ), h, s->down, a->hidden, FT_NONE, FT_CUT_ROWS);
    return ft__linear(b, FT_AT(PROJECTION), h, a->hidden, FT_NO_BIAS, FT_WHOLE);
}
