/* attention_experts.c: JetMoE's mixture of attention heads (arXiv 2404.07413): a router picks experts for each token,
 * whose products make its queries and, behind attention, its result; keys and values are every token's alike. Each of a
 * token's experts brings as many queries as there are key heads.
 *
 * transformers multiplies expert by expert, over slices of the rows that the router sorted. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/moe.h"
#include "model/relative.h"

ft_ref ft__part_attention_experts(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, routed = tokens * a->topk, wide = a->kv_heads * a->head_dim;
    int64_t heads = a->topk * a->kv_heads, halves[2] = {wide, wide};
    bool cached = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    ft_ref part[2], weights = ft__route(m, x);
    ft__module(b, 3);
    ft_ref q = ft__gather(b, FT_AT(EXPERTS_GATHER), x, routed);
    q = ft__grouped_product(m, FT_AT(ATTN_Q_PROJ), q, wide, false, FT_NONE);
    q = ft__gather(b, FT_AT(EXPERTS_SCATTER), q, routed); /* as the tokens stand */
    ft__split(b, ft__linear(b, FT_AT(ATTN_K_PROJ), x, 2 * wide, FT_NO_BIAS, FT_CUT_COLUMNS), 2, halves, part);
    q = ft__part_rotate(m, FT_AT(ATTN_ROTARY), q, heads, a->head_dim, a->head_dim);
    ft_ref k = ft__part_rotate(m, FT_AT(ATTN_ROTARY), part[0], a->kv_heads, a->head_dim, a->head_dim);
    ft_ref v = ft__view(b, part[1], tokens * a->kv_heads, a->head_dim, true);
    if (cached) {
        k = ft__part_remember(m, k, a->kv_heads, a->head_dim);
        v = ft__part_remember(m, v, a->kv_heads, a->head_dim);
    }
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = heads,
                             .kv_heads = a->kv_heads,
                             .q_len = m->q_len,
                             .kv_len = m->kv_len,
                             .head_dim = a->head_dim,
                             .causal = m->q_len > 1},
                   .dropout = a->attention_dropout,
                   .scale = true,
                   .mask = true,
                   .softmax_fp32 = true,
                   .k_dense = cached,
                   .v_dense = cached};
    ft_ref y = ft__part_attend(m, FT_AT(ATTN_ATTEND), q, k, v, &s);
    y = ft__gather(b, FT_AT(EXPERTS_GATHER), ft__view(b, y, routed, wide, false), routed);
    y = ft__grouped_product(m, FT_AT(ATTN_O_PROJ), y, a->hidden, false, FT_NONE);
    y = ft__mul(b, FT_AT(EXPERTS_WEIGH), y, ft__pick(b, FT_AT(EXPERTS_WEIGH), weights, routed, 1, false));
    ft_reduction over = {"sum", "sum_cols", tokens, a->hidden, a->topk, tokens * a->hidden};
    y = ft__reduce_over(b, FT_AT(EXPERTS_SCATTER), y, &over);
    return ft__add(b, FT_AT(ATTN_O_PROJ), y, ft__parameter(b, "experts.bias", 1, a->hidden));
}
