/* expert_loop.c: the sparse feed-forward of switch_transformers (Fedus et al. 2021): each token goes to the one expert
 * that a router in fp32 likes best, and a Python loop runs over the experts that were hit: find their tokens (the host
 * waits), gather, two products, weigh, scatter. Tokens are taken to be spread evenly.
 *
 * A node of the loop holds the tensors of all experts and stands for `hit` launches of an even share each. */
#include "graph/emit.h"
#include "model/relative.h"

/* What was appended since `first` is launched once per expert. */
static void in_shares(ft_build *b, int32_t first, int64_t hit)
{
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) {
        ft_node *n = &b->g->nodes[i];
        n->count *= (float)hit;
        ft__op_share(&n->op, (double)hit);
    }
}

/* The router's weights stay in fp32 whatever the model's format is. */
static ft_ref router_weight(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref weight = ft__parameter(b, "router.weight", a->experts, a->hidden);
    if (b->status != FT_OK || !a->router_fp32) return weight;
    ft_tensor *t = &b->g->tensors[weight];
    b->g->parameter_bytes += (4 - t->element_bytes) * ft__tensor_numel(t) * (double)t->copies;
    t->dtype = FT_FP32;
    t->element_bytes = 4;
    return weight;
}

/* The probability of each token's expert, [tokens, 1]. */
static ft_ref route(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    ft_ref h = a->router_fp32 ? ft__cast(b, FT_AT(ROUTER), x, FT_FP32) : x;
    if (b->training) { /* jitter */
        ft_ref noise = ft__no_grad_kernels(b, FT_AT(ROUTER_JITTER), "fill", FT_NONE, tokens, a->hidden,
                                           a->router_fp32 ? 4 : 2, 1);
        h = ft__pointwise_in_place(b, FT_AT(ROUTER_JITTER), "mul", h, noise);
    }
    ft_ref bias = a->router_bias ? ft__parameter(b, "router.bias", 1, a->experts) : FT_NONE;
    ft_ref probability = ft__linear_with(b, FT_AT(ROUTER), h, router_weight(m), a->experts, bias, FT_WHOLE);
    probability = ft__cast(b, FT_AT(ROUTER), ft__row(b, FT_AT(ROUTER_SOFTMAX), "softmax", probability), low);
    /* The best expert, one-hot, how many came before, which are within capacity. */
    ft__no_grad_kernels(b, FT_AT(ROUTER_CHOICE), "copy", probability, tokens, a->experts, 8, 7);
    ft__no_grad_kernels(b, FT_AT(EXPERTS_RESULT), "fill", FT_NONE, tokens, a->hidden, ft_dtype_bytes(low), 1);
    ft__no_grad_kernels(b, FT_AT(EXPERTS_HIT), "copy", FT_NONE, a->experts, 1, 8, 6);
    ft__sync(b, FT_AT(EXPERTS_HIT));
    ft__module(b, 2);
    return ft__slice(b, probability, tokens, 1);
}

static ft_ref product(ft_maker *m, ft_at at, ft_ref x, int64_t out)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t in = ft__tensor_of(b, x)->cols;
    ft_ref weight = ft__parameter(b, "experts.weight", a->experts * out, in);
    ft__of_experts(b, weight, FT_EXPERT_WEIGHT);
    double all = (double)a->experts * (double)out * (double)in * (double)b->repeat;
    b->g->active_parameters -= all * (1 - 1 / (double)a->experts);
    if (weight != FT_NONE) { /* every expert's is a tensor of its own */
        b->g->parameter_tensors += (a->experts - 1) * b->repeat;
        if (b->g->tensors[weight].trained) b->g->trained_tensors += (a->experts - 1) * b->repeat;
    }
    return ft__linear_with(b, at, x, weight, out, FT_NONE, FT_CUT_COLUMNS);
}

ft_ref ft__expert_loop(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, hit = a->experts < tokens ? a->experts : tokens;
    int64_t inter = a->moe_ffn > 0 ? a->moe_ffn : a->ffn;
    int64_t rank = b->lora_rank;
    b->lora_rank = 0; /* adapters go to attention: experts are many */
    ft_ref probability = route(m, x);
    int32_t first = b->g->node_count;
    ft__no_grad_kernels(b, FT_AT(EXPERTS_FIND), "copy", FT_NONE, tokens, 1, 8, 6);
    ft__sync(b, FT_AT(EXPERTS_FIND));
    ft_ref h = ft__gather(b, FT_AT(EXPERTS_GATHER), x, tokens);
    h = product(m, FT_AT(EXPERTS_WI), h, inter);
    h = ft__part_activation(m, FT_AT(EXPERTS_ACT), a->activation, h);
    h = ft__dropout(b, FT_AT(EXPERTS_DROPOUT), h, a->activation_dropout);
    h = ft__cast(b, FT_AT(EXPERTS_WO), h, b->stored);
    h = product(m, FT_AT(EXPERTS_WO), h, a->hidden);
    ft_ref weight = ft__pointwise(b, FT_AT(EXPERTS_WEIGH), "copy", probability);
    h = ft__mul(b, FT_AT(EXPERTS_WEIGH), h, weight);
    h = ft__pointwise(b, FT_AT(EXPERTS_SCATTER), "copy", h);
    in_shares(b, first, hit);
    ft__module(b, (int)(3 * hit));
    b->lora_rank = rank;
    return h;
}
