/* attention_experts.c: JetMoE's mixture of attention heads (arXiv 2404.07413): a router picks experts for each token,
 * whose products make its queries and, behind attention, its result; keys and values are every token's alike. Each of a
 * token's experts brings as many queries as there are key heads.
 *
 * transformers multiplies expert by expert, over cuts of the rows that the router sorted and slices of one tensor of
 * all weights, and joins what they made; rows are brought back by adding them to zeros. So do its networks. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/moe.h"
#include "model/relative.h"
#include "model/state_space.h"

/* Each expert's rows by its own weights, joined again: a node holds all of it and stands for a launch each. */
static ft_ref joined_product(ft_maker *m, ft_at at, ft_ref x, int64_t out)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = ft__tensor_of(b, x)->rows, in = ft__tensor_of(b, x)->cols;
    double all = (double)a->experts * (double)out * (double)in * (double)b->repeat;
    b->g->active_parameters -= all * (1 - (double)a->topk / (double)a->experts);
    ft_ref weight = ft__each_step(b, ft__experts_weight(b, a->experts * out, in), a->experts);
    int32_t first = b->g->node_count;
    ft_ref y = ft__linear_with(b, at, x, weight, out, FT_NONE, FT_CUT_COLUMNS);
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) {
        b->g->nodes[i].count *= (float)a->experts;
        ft__op_share(&b->g->nodes[i].op, (double)a->experts);
    }
    return ft__cat(b, at, 1, &y, rows, out);
}

/* Zeros, and rows added to where they belong, by atomics. */
static void index_added(ft_maker *m, int64_t into, int64_t rows, int64_t width)
{
    ft_build *b = &m->b;
    double bytes = ft_dtype_bytes(b->stored);
    ft__no_grad_kernels(b, FT_AT(EXPERTS_SCATTER), "fill", FT_NONE, into, width, bytes, 1);
    ft__no_grad_kernels(b, FT_AT(EXPERTS_SCATTER), "copy", FT_NONE, rows, width, bytes, 1);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].manner |= FT_MANNER_INDEX_ADD;
}

/* Weighed, and a token's experts added up: to autograd that is a sum. */
static ft_ref gathered(ft_maker *m, ft_ref y, ft_ref weights, int64_t tokens)
{
    ft_build *b = &m->b;
    int64_t routed = ft__tensor_of(b, y)->rows, width = ft__tensor_of(b, y)->cols;
    y = ft__mul(b, FT_AT(EXPERTS_WEIGH), y, ft__pick(b, FT_AT(EXPERTS_WEIGH), weights, routed, 1, false));
    index_added(m, tokens, routed, width);
    ft_node n = ft__node_of(FT_DO_ROW, FT_AT(EXPERTS_SCATTER));
    ft__node_in(&n, y);
    ft_tensor t = *ft__tensor_of(b, y);
    ft_ref out = ft__node_out(b, &n, tokens, width, t.dtype, t.element_bytes);
    n.op = ft__bytes_kernel("sum", t.dtype, 0, 0);
    ft__emit(b, &n);
    return out;
}

ft_ref ft__joined_experts(ft_maker *m, ft_ref x, ft_ref weights)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, halves[2] = {a->moe_ffn, a->moe_ffn}, rank = b->lora_rank;
    ft_ref part[2];
    b->lora_rank = 0;
    ft__sort_tokens(m, tokens * a->topk);
    ft__no_grad_kernels(b, FT_AT(EXPERTS_HIT), "copy", FT_NONE, tokens, a->experts, 8, 4); /* how many come to each */
    ft__sync(b, FT_AT(EXPERTS_HIT));
    ft_ref h = ft__gather(b, FT_AT(EXPERTS_GATHER), x, tokens * a->topk);
    ft__split(b, joined_product(m, FT_AT(EXPERTS_WI), h, 2 * a->moe_ffn), 2, halves, part);
    h = ft__mul(b, FT_AT(EXPERTS_ACT), ft__part_activation(m, FT_AT(EXPERTS_ACT), a->activation, part[0]), part[1]);
    h = joined_product(m, FT_AT(EXPERTS_WO), h, a->hidden);
    b->lora_rank = rank;
    ft__module(b, 3);
    return gathered(m, h, weights, tokens);
}

ft_ref ft__part_attention_experts(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, routed = tokens * a->topk, wide = a->kv_heads * a->head_dim;
    int64_t heads = a->topk * a->kv_heads, halves[2] = {wide, wide};
    bool cached = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    ft_ref part[2], weights = ft__route(m, x);
    ft__sort_tokens(m, routed);
    ft__module(b, 3);
    ft_ref q = ft__gather(b, FT_AT(EXPERTS_GATHER), x, routed);
    q = joined_product(m, FT_AT(ATTN_Q_PROJ), q, wide);
    index_added(m, routed, routed, wide); /* as the tokens stand */
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
    y = gathered(m, joined_product(m, FT_AT(ATTN_O_PROJ), y, a->hidden), weights, tokens);
    return ft__add(b, FT_AT(ATTN_O_PROJ), y, ft__parameter(b, "experts.bias", 1, a->hidden));
}
