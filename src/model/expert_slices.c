/* expert_slices.c: experts of a decoder in a Python loop over those that were hit, each a slice of one tensor of all
 * weights (longcat_flash): find its tokens (the host waits), gather, two products, weigh, add. Going back, autograd
 * sees every slice as a selection of the whole: a tensor of zeros as large as all experts' is filled in and added for
 * each. Before transformers 5 every decoder's experts ran so, but each had tensors of its own, which
 * nothing is selected of.
 *
 * A node of the loop holds the tensors of all experts and stands for as many launches of an even share each. */
#include "graph/emit.h"
#include "model/moe.h"
#include "model/pytorch.h"
#include "model/relative.h"
#include "model/state_space.h"

/* Every expert a module with tensors of its own: transformers before its fifth version. */
static bool apart(const ft_maker *m) { return !m->arch->expert_loop && ft__experts_by_hand(m->work); }

/* `held`: experts that the tensor has weights of, more than the tokens are sent to (longcat_flash's first, which has
 * those that do nothing too). */
static ft_ref product(ft_maker *m, ft_at at, ft_ref x, int64_t out, int64_t held)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t in = ft__tensor_of(b, x)->cols;
    double all = (double)held * (double)out * (double)in * (double)b->repeat;
    ft_ref weight = ft__experts_weight(b, held * out, in);
    if (held > a->experts && b->status == FT_OK) { /* nothing is ever loaded into those */
        double idle = 1 - (double)a->experts / (double)held;
        b->g->tensors[weight].idle = idle;
        b->g->parameters -= all * idle;
    }
    b->g->active_parameters -= all * (1 - (double)a->topk / (double)held);
    if (!apart(m)) return ft__linear_with(b, at, x, ft__each_step(b, weight, a->experts), out, FT_NONE, FT_CUT_COLUMNS);
    if (b->status == FT_OK) {
        b->g->parameter_tensors += (held - 1) * b->repeat;
        if (b->g->tensors[weight].trained) b->g->trained_tensors += (held - 1) * b->repeat;
    }
    return ft__linear_with(b, at, x, weight, out, FT_NONE, FT_CUT_COLUMNS);
}

/* Rows in the order of their experts, cut, multiplied and put into their places of one tensor (aria): going back, every
 * cut is a tensor of zeros with one part filled, and every assignment a copy of the whole gradient. */
static ft_ref cut_product(ft_maker *m, ft_at at, ft_ref x, int64_t out)
{
    ft_build *b = &m->b;
    int64_t experts = m->arch->experts, rows = ft__tensor_of(b, x)->rows;
    ft__no_grad_kernels(b, at, "fill", FT_NONE, rows, out, ft_dtype_bytes(b->stored), 1);
    x = ft__each_step(b, x, experts);
    int32_t first = b->g->node_count;
    ft_ref y = product(m, at, x, out, experts);
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) {
        ft_node *n = &b->g->nodes[i];
        if (n->verb == FT_DO_SLICE) continue;
        n->count *= (float)experts;
        ft__op_share(&n->op, (double)experts);
    }
    y = ft__looped(b, ft__copy(b, at, y, rows, out), experts);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].assigns = true;
    return y;
}

static ft_ref cut_experts(ft_maker *m, ft_ref x, ft_ref weights)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, width = ft__tensor_of(b, x)->cols, routed = tokens * a->topk;
    int64_t halves[2] = {a->moe_ffn, a->moe_ffn}, rank = b->lora_rank;
    ft_ref part[2];
    b->lora_rank = 0;
    ft__sort_tokens(m, routed);
    ft__no_grad_kernels(b, FT_AT(EXPERTS_HIT), "copy", FT_NONE, routed, 1, 8, 4); /* how many come to each */
    ft__sync(b, FT_AT(EXPERTS_HIT));
    ft_ref h = ft__gather(b, FT_AT(EXPERTS_GATHER), x, routed);
    ft__split(b, cut_product(m, FT_AT(EXPERTS_WI), h, 2 * a->moe_ffn), 2, halves, part);
    h = ft__mul(b, FT_AT(EXPERTS_ACT), ft__part_activation(m, FT_AT(EXPERTS_ACT), a->activation, part[0]), part[1]);
    h = cut_product(m, FT_AT(EXPERTS_WO), h, width);
    b->lora_rank = rank;
    ft__module(b, 3);
    double bytes = ft_dtype_bytes(b->stored);
    ft_ref zeros = ft__fill(b, FT_AT(EXPERTS_SCATTER), routed, width, b->stored, bytes);
    h = ft__scatter(b, FT_AT(EXPERTS_SCATTER), zeros, h, 0, false, true); /* back to where the tokens stand */
    h = ft__mul(b, FT_AT(EXPERTS_WEIGH), h, ft__view(b, weights, routed, 1, false));
    ft_reduction over = {"sum", "sum_cols", tokens, width, a->topk, tokens * width};
    return ft__reduce_over(b, FT_AT(EXPERTS_SCATTER), h, &over);
}

ft_ref ft__sliced_experts(ft_maker *m, ft_ref x, ft_ref weights)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->expert_cuts) return cut_experts(m, x, weights);
    int64_t tokens = ft__tensor_of(b, x)->rows, width = ft__tensor_of(b, x)->cols, routed = tokens * a->topk;
    int64_t halves[2] = {a->moe_ffn, a->moe_ffn}, rank = b->lora_rank, every = a->experts + a->zero_experts;
    int64_t visits = apart(m) ? ft__hit_experts(a, routed) : every, runs = apart(m) ? visits : a->experts;
    enum { FIND = 8 }; /* a copy, nonzero's sums, selection and indices, two numbers to the host */
    ft_ref part[2];
    b->lora_rank = 0;
    ft__no_grad_kernels(b, FT_AT(EXPERTS_HIT), "copy", FT_NONE, routed, a->experts, 8,
                        4); /* a mask of all, and their sums */
    ft__sync(b, FT_AT(EXPERTS_HIT));
    int32_t first = b->g->node_count;
    ft__no_grad_kernels(b, FT_AT(EXPERTS_FIND), "copy", FT_NONE, routed, 1, 8, FIND);
    ft__sync(b, FT_AT(EXPERTS_FIND));
    int32_t found = b->g->node_count;
    x = ft__gather(b, FT_AT(EXPERTS_GATHER), x, routed);
    ft_ref h = x;
    if (apart(m)) {
        part[0] = product(m, FT_AT(EXPERTS_WI), h, a->moe_ffn, every);
        part[1] = product(m, FT_AT(EXPERTS_WI), h, a->moe_ffn, every);
    } else {
        ft__split(b, product(m, FT_AT(EXPERTS_WI), h, 2 * a->moe_ffn, every), 2, halves, part);
    }
    h = ft__mul(b, FT_AT(EXPERTS_ACT), ft__part_activation(m, FT_AT(EXPERTS_ACT), a->activation, part[0]), part[1]);
    h = product(m, FT_AT(EXPERTS_WO), h, width, a->experts);
    ft_ref each = ft__pick(b, FT_AT(EXPERTS_WEIGH), weights, routed, 1, false);
    h = ft__cast(b, FT_AT(EXPERTS_WEIGH), ft__mul(b, FT_AT(EXPERTS_WEIGH), h, each), b->stored);
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) {
        ft_node *n = &b->g->nodes[i];
        if (n->count > 1 && n->count == (float)a->experts) continue;            /* the slices themselves */
        bool product = n->op.kind == FT_OP_GEMM || n->at == FT_AT(EXPERTS_ACT); /* not of those that pass on */
        n->count *= (float)(product ? runs : visits);
        if (i >= found) ft__op_share(&n->op, (double)visits); /* every one looks through all choices */
    }
    enum { MODULES = 5 }; /* an expert, its three products and its activation */
    ft__module(b, (int)(apart(m) ? MODULES * visits : visits));
    b->lora_rank = rank;
    ft_reduction over = {"sum", "sum_cols", tokens, width, a->topk, tokens * width}; /* added to where it came from */
    /* An index_add for each expert; to autograd it is that sum. */
    ft__no_grad_kernels(b, FT_AT(EXPERTS_SCATTER), "copy", FT_NONE, routed, width, ft_dtype_bytes(b->stored), 1);
    if (b->status != FT_OK) return FT_NONE;
    ft_node *scatter = &b->g->nodes[b->g->node_count - 1];
    ft__op_share(&scatter->op, (double)visits);
    scatter->count = (float)visits;
    scatter->manner |= FT_MANNER_INDEX_ADD;
    return ft__reduce_over(b, FT_AT(EXPERTS_SCATTER), h, &over);
}
