/* router.c: which experts a token goes to, and how much each of them counts. Small beside the experts, but many
 * kernels: scores, the best few, their weights. */
#include "graph/emit.h"
#include "model/moe.h"
#include "model/relative.h"

/* The best `k` of every row, which are sorted by a second kernel unless nobody asked for their order. A block per row
 * selects by digits. The gradient scatters. */
static ft_ref best_of(ft_build *b, ft_ref x, int64_t rows, int64_t cols, int64_t k, bool sorted)
{
    ft_node n = ft__node_of(FT_DO_GATHER, FT_AT(MOE_TOPK));
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, k, t.dtype, t.element_bytes);
    n.op = ft__row_kernel("argmax", FT_PASS_FWD, rows, cols, t.dtype);
    n.manner |= FT_MANNER_SELECT;
    ft__emit(b, &n);
    if (!sorted) return out;
    ft_node order = ft__node_of(FT_DO_OTHER, FT_AT(MOE_TOPK));
    order.op = n.op;
    ft__same_manner(&order, &n);
    ft__emit(b, &order);
    return out;
}

/* The weights of the experts that were chosen by other scores than their own. */
static ft_ref picked(ft_build *b, ft_ref probability, int64_t tokens, int64_t k)
{
    ft_node pick = ft__node_of(FT_DO_GATHER, FT_AT(MOE_TOPK));
    ft__node_in(&pick, probability);
    ft_tensor t = *ft__tensor_of(b, probability);
    ft_ref best = ft__node_out(b, &pick, tokens, k, t.dtype, t.element_bytes);
    if (best == FT_NONE) return best;
    pick.op = ft__pointwise_kernel(b->g, "copy", pick.in, 1, &b->g->tensors[best]);
    ft__emit(b, &pick);
    return best;
}

/* Scores with a learned correction pick the best groups of experts, and the best experts within those; the weights are
 * the scores without the correction (deepseek_v3; glm4_moe with one group, for which transformers does it all the
 * same). */
static ft_ref best_in_groups(ft_maker *m, ft_ref probability, int64_t tokens)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(MOE_ROUTER_GROUPS);
    int64_t groups = a->expert_groups, each = a->experts / groups;
    bool training = b->training;
    b->training = false;
    ft_ref correction = ft__buffer(b, 1, a->experts, 4);
    ft_ref corrected = ft__add(b, at, probability, correction);
    ft_ref two = best_of(b, corrected, tokens * groups, each > 0 ? each : 1, 2, true);
    ft_ref group = ft__view(b, ft__reduce(b, at, "sum", two), tokens, groups, false);
    best_of(b, group, tokens, groups, (groups + 1) / 2, false);
    ft__no_grad_kernels(b, at, "fill", FT_NONE, tokens, groups, 4, 2); /* zeros, ones where chosen */
    ft__no_grad_kernels(b, at, "copy", corrected, tokens, a->experts, 4,
                        5); /* as a mask over experts; the rest to zero */
    best_of(b, corrected, tokens, a->experts, a->topk, false);
    b->training = training;
    return picked(b, probability, tokens, a->topk);
}

static ft_ref renormalised(ft_build *b, ft_ref best, bool guarded)
{
    ft_ref sum = ft__reduce(b, FT_AT(MOE_TOPK), "sum", best);
    if (guarded) sum = ft__pointwise(b, FT_AT(MOE_TOPK), "addu", sum); /* not quite zero */
    return ft__pointwise2(b, FT_AT(MOE_TOPK), "div", best, sum);
}

/* Ernie's scores are corrected by numbers that no gradient reaches and that are a parameter all the same. */
static ft_ref ernie_correction(ft_maker *m)
{
    ft_build *b = &m->b;
    bool frozen = b->frozen;
    b->frozen = true;
    ft_ref correction = ft__parameter(b, "moe.router.correction", 1, m->arch->experts);
    b->frozen = frozen;
    return correction;
}

/* Megatron-Core's router (moe_utils.py) in the format that flows, whatever the other products are quantised to; where
 * the model's scores are fp32, that is what the product writes, and nothing is cast. Transformer Engine makes scores,
 * groups, the best of them and their weights in one kernel (moe_router_fusion).
 *
 * Leaves out: that the product's gradients are then TF32 ones over a cast copy of x. */
static ft_ref route_fused(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, rank = b->lora_rank;
    ft_dtype math = b->math;
    b->lora_rank = 0;
    b->math = ft__flowing(math);
    int64_t known = a->experts + a->zero_experts;
    ft_ref weight = ft__parameter(b, "moe.router.weight", known, a->hidden);
    ft_ref bias = a->router_bias ? ft__parameter(b, "moe.router.bias", 1, known) : FT_NONE;
    ft_ref logits = ft__linear_with(b, FT_AT(MOE_ROUTER), x, weight, known, bias, FT_WHOLE);
    b->lora_rank = rank;
    b->math = math;
    ft__module(b, 1);
    ft_node n = ft__node_of(FT_DO_GATHER, FT_AT(MOE_TOPK));
    ft__node_in(&n, logits);
    if (a->routing == FT_ROUTE_CORRECTED) ernie_correction(m); /* read by the same kernel */
    ft_tensor t = *ft__tensor_of(b, logits);
    ft_ref best = ft__node_out(b, &n, tokens, a->topk, t.dtype, t.element_bytes);
    n.op = ft__row_kernel("softmax", FT_PASS_FWD, tokens, a->experts, FT_FP32);
    ft__emit(b, &n);
    return best;
}

/* The best by softmax and that correction. */
static ft_ref best_by_correction(ft_maker *m, ft_ref probability, int64_t tokens)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool training = b->training;
    ft_ref correction = ernie_correction(m);
    b->training = false;
    best_of(b, ft__add(b, FT_AT(MOE_ROUTER), probability, correction), tokens, a->experts, a->topk, true);
    b->training = training;
    ft_ref best = picked(b, probability, tokens, a->topk);
    ft_ref sum = ft__pointwise(b, FT_AT(MOE_TOPK), "clamp_min", ft__reduce(b, FT_AT(MOE_TOPK), "sum", best));
    return ft__pointwise2(b, FT_AT(MOE_TOPK), "div", best, sum);
}

/* SparseMixer (arXiv 2409.12136), which picks two experts one after the other: a threshold over each row, the rest
 * masked out, in training a draw among what is left, softmax, the weight of the chosen one. The gradient is a function
 * of its own that scatters the weights' into the scores'. */
static ft_ref mixed_two(ft_maker *m, ft_ref logits, int64_t tokens)
{
    enum { ALWAYS = 9, DRAWING = 11 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool training = b->training;
    ft_ref both[2];
    for (int i = 0; i < 2; i++) {
        b->training = false;
        ft__no_grad_kernels(b, FT_AT(MOE_MIXER), "copy", logits, tokens, a->experts, 2,
                            ALWAYS + (training ? DRAWING : 0));
        ft__row(b, FT_AT(MOE_MIXER), "softmax", logits);
        b->training = training;
        both[i] = ft__pointwise(b, FT_AT(MOE_MIXER), "mulu", picked(b, logits, tokens, 1));
    }
    return ft__cat(b, FT_AT(MOE_MIXER), 2, both, tokens, 2);
}

/* x times noise, in place: by the block that holds router and experts, and by the router once more. */
static ft_ref jittered(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    ft_tensor t = *ft__tensor_of(b, x);
    if (!b->training || m->arch->router_jitter <= 0) return x;
    for (int i = 0; i < 2; i++) {
        ft_ref noise = ft__no_grad_kernels(b, FT_AT(MOE_JITTER), "fill", FT_NONE, t.rows, t.cols, t.element_bytes, 1);
        x = ft__pointwise_in_place(b, FT_AT(MOE_JITTER), "mul", x, noise);
    }
    return x;
}

/* A network in place of the one product (ZAYA): down to a few columns, to which those of the layer before are added by
 * a scale, a norm, two products with an activation each, and the scores, one more than there are experts; of softmax
 * the best by a correction that no gradient reaches. A token that the last one is best for goes to none.
 *
 * Leaves out: that its first layer has nothing to add. */
static ft_ref route_network(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_at at = FT_AT(MOE_ROUTER);
    int64_t tokens = ft__tensor_of(b, x)->rows, wide = a->router_width, known = a->experts + 1;
    ft_ref h = ft__linear(b, at, x, wide, FT_BIAS, FT_WHOLE);
    ft_ref before = ft__activation(b, tokens, wide, b->stored);
    h = ft__add(b, at, h, ft__mul(b, at, before, ft__parameter(b, "moe.router.states", 1, wide)));
    ft__pointwise(b, at, "copy", h);
    h = ft__part_norm(m, at, h, a->norm, a->norm_bias);
    for (int i = 0; i < 2; i++) h = ft__pointwise(b, at, "gelu", ft__linear(b, at, h, wide, FT_BIAS, FT_WHOLE));
    ft_ref probability = ft__row(b, at, "softmax", ft__linear(b, at, h, known, FT_NO_BIAS, FT_WHOLE));
    bool training = b->training;
    b->training = false;
    ft_ref corrected = ft__add(b, at, ft__cast(b, at, probability, FT_FP32), ft__buffer(b, 1, known, 4));
    best_of(b, corrected, tokens, known, a->topk, true);
    ft__no_grad_kernels(b, FT_AT(MOE_TOPK), "compare", FT_NONE, tokens, a->topk, 1,
                        2); /* who goes to none, as the first's */
    b->training = training;
    return ft__pointwise(b, FT_AT(MOE_TOPK), "masked_fill", picked(b, probability, tokens, a->topk));
}

ft_ref ft__route(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->router_width > 0) return route_network(m, x);
    if (ft__fuses(m->work, m->stack->fused_router)) return route_fused(m, x);
    int64_t tokens = ft__tensor_of(b, x)->rows, rank = b->lora_rank;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    b->lora_rank = 0;
    x = jittered(m, x);
    ft_ref h = a->router_fp32 ? ft__cast(b, FT_AT(MOE_ROUTER), x, FT_FP32) : x;
    int64_t known = a->experts + a->zero_experts;
    ft_ref weight = ft__parameter(b, "moe.router.weight", known, a->hidden);
    ft_ref bias = a->router_bias ? ft__parameter(b, "moe.router.bias", 1, known) : FT_NONE;
    if (a->router_fp32) weight = ft__cast(b, FT_AT(MOE_ROUTER), weight, FT_FP32);
    ft_ref logits = ft__linear_with(b, FT_AT(MOE_ROUTER), h, weight, known, bias, FT_WHOLE);
    b->lora_rank = rank;
    ft__module(b, 1);
    if (a->router_bias) /* gpt_oss: the best first, then their softmax */
        return ft__row(b, FT_AT(MOE_ROUTER), "softmax", best_of(b, logits, tokens, a->experts, a->topk, true));
    if (a->routing == FT_ROUTE_MIXER && !m->stack->grouped_experts && !m->engine) return mixed_two(m, logits, tokens);
    logits = ft__cast(b, FT_AT(MOE_ROUTER), logits, FT_FP32);
    if (a->routing == FT_ROUTE_BEST_FIRST) {
        ft_ref best = ft__row(b, FT_AT(MOE_ROUTER), "softmax", best_of(b, logits, tokens, a->experts, a->topk, true));
        return ft__cast(b, FT_AT(MOE_TOPK), best, low);
    }
    ft_ref probability = a->router_sigmoid ? ft__pointwise(b, FT_AT(MOE_ROUTER), "sigmoid", logits)
                                           : ft__row(b, FT_AT(MOE_ROUTER), "softmax", logits);
    if (a->routing == FT_ROUTE_CORRECTED)
        return ft__cast(b, FT_AT(MOE_TOPK), best_by_correction(m, probability, tokens), low);
    if (a->all_experts)
        return ft__cast(b, FT_AT(MOE_TOPK), best_of(b, probability, tokens, a->experts, a->topk, true), low);
    bool scaled = a->kv_lora > 0 || a->router_sigmoid; /* deepseek, glm4_moe: no order, and a factor at the end */
    bool grouped = a->expert_groups > (m->stack->grouped_experts || m->engine ? 1 : 0);
    ft_ref best = a->router_sigmoid && grouped ? best_in_groups(m, probability, tokens)
                                               : best_of(b, probability, tokens, a->experts, a->topk, !scaled);
    if (a->router_renormalised || a->router_sigmoid) best = renormalised(b, best, a->router_sigmoid);
    if (scaled) return ft__pointwise(b, FT_AT(MOE_TOPK), "mulu", best);
    /* Mixtral and Hunyuan weigh in fp32, which the experts' results become; qwen and olmoe go back first. */
    return a->router_wide ? best : ft__cast(b, FT_AT(MOE_TOPK), best, low);
}

/* Sigmoid of the best logits, and of minus infinity for all others (llama4). */
ft_ref ft__route_scores(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, rank = b->lora_rank;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    b->lora_rank = 0;
    ft_ref weight = ft__parameter(b, "moe.router.weight", a->experts, a->hidden);
    ft_ref logits = ft__linear_with(b, FT_AT(MOE_ROUTER), x, weight, a->experts, FT_NONE, FT_WHOLE);
    b->lora_rank = rank;
    ft__module(b, 1);
    ft_ref best = best_of(b, logits, tokens, a->experts, a->topk, true);
    ft__no_grad_kernels(b, FT_AT(MOE_SCORES), "fill", FT_NONE, tokens, a->experts, ft_dtype_bytes(low), 1);
    ft_ref scores = ft__cast(b, FT_AT(MOE_SCORES), picked(b, best, tokens, a->experts), FT_FP32);
    return ft__cast(b, FT_AT(MOE_SCORES), ft__pointwise(b, FT_AT(MOE_SCORES), "sigmoid", scores), low);
}
