/* moe.c: a mixture of experts: router, dispatch, experts, combination.
 *
 * Plain transformers (5.x) sorts tokens by expert and runs two grouped products; the same products as a batched matmul
 * of equal shares stand for them here: with routing close to even, the tiles are the same. The older way, and the one
 * of switch_transformers, is a Python loop over the experts that were hit, with a synchronisation to find them. Serving
 * engines fuse all of it: FT_OP_MOE. */
#include <math.h>

#include "graph/emit.h"
#include "graph/operator.h"
#include "model/moe.h"
#include "model/pytorch.h"
#include "model/relative.h"

/* Sorting tokens by expert and back: a radix sort, a histogram, sums, indices: some thirty launches. Few tokens are
 * sorted by a single block. */
void ft__sort_tokens(ft_maker *m, int64_t routed)
{
    ft_build *b = &m->b;
    if (routed <= 1024) {
        ft__no_grad_kernels(b, FT_AT(MOE_SORT), "copy", FT_NONE, routed, 1, 8, 15);
        return;
    }
    ft_node n = ft__node_of(FT_DO_OTHER, FT_AT(MOE_SORT));
    n.op = ft__bytes_kernel("sort", b->stored, (double)routed * 16 * 4, (double)routed);
    n.count = 33;
    ft__emit(b, &n);
}

/* Rows of experts that live elsewhere are zeroed, on every tensor that passes, even when there are none. */
static ft_ref masked(ft_maker *m, ft_at at, ft_ref x, ft_ref mask, bool in_place)
{
    ft_build *b = &m->b;
    const ft_tensor *t = ft__tensor_of(b, x);
    if (!in_place) x = ft__copy(b, at, x, t->rows, t->cols);
    return ft__pointwise_in_place(b, at, "masked_fill", x, mask);
}

/* act(gate) * up; gpt_oss clamps both and gates by x sigmoid(1.702 x), times up + 1. */
static ft_ref gate_up(ft_maker *m, ft_ref both)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->expert_plain) return ft__part_activation(m, FT_AT(MOE_ACT), a->activation, both);
    if (!a->expert_bias) {
        int64_t halves[2] = {a->moe_ffn, a->moe_ffn};
        ft_ref part[2];
        ft__split(b, both, 2, halves, part);
        return ft__part_gated(m, FT_AT(MOE_ACT), a->activation, part[0], part[1]);
    }
    int64_t rows = ft__tensor_of(b, both)->rows;
    ft_ref gate = ft__pointwise(b, FT_AT(MOE_ACT), "clamp_max",
                                ft__slice(b, both, rows, a->moe_ffn)); /* every other column */
    ft_ref up = ft__pointwise(b, FT_AT(MOE_ACT), "clamp", ft__slice(b, both, rows, a->moe_ffn));
    ft_ref soft = ft__pointwise(b, FT_AT(MOE_ACT), "mulu", gate);
    soft = ft__pointwise(b, FT_AT(MOE_ACT), "sigmoid", soft);
    soft = ft__mul(b, FT_AT(MOE_ACT), gate, soft);
    up = ft__pointwise(b, FT_AT(MOE_ACT), "addu", up);
    return ft__mul(b, FT_AT(MOE_ACT), up, soft);
}

int64_t ft__hit_experts(const ft_arch *a, int64_t routed)
{
    double all = (double)a->experts, tokens = (double)routed / (double)a->topk;
    double hit = all * (1 - pow(1 - fmin(1, (double)a->topk / all), tokens));
    return hit < 1 ? 1 : (int64_t)(hit + 0.5);
}

ft_ref ft__experts_weight(ft_build *b, int64_t rows, int64_t cols)
{
    ft_format_was was = ft__format_open(b, FT_AT(MOE_EXPERTS));
    ft_ref weight = ft__weight(b, "experts.weight", rows, cols);
    ft__format_close(b, was);
    ft__of_experts(b, weight, FT_EXPERT_WEIGHT);
    return weight;
}

ft_ref ft__experts_bias(ft_build *b, int64_t rows, int64_t cols)
{
    ft_ref bias = ft__parameter(b, "experts.bias", rows, cols);
    ft__of_experts(b, bias, FT_EXPERT_BIAS);
    return bias;
}

ft_ref ft__grouped_product(ft_maker *m, ft_at at, ft_ref x, int64_t out, bool bias, ft_ref weight)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t routed = ft__tensor_of(b, x)->rows, in = ft__tensor_of(b, x)->cols;
    if (weight == FT_NONE)
        weight = ft__experts_weight(b, a->experts * out, in);
    else
        ft__as_weight(b, weight);
    /* Experts that no token is routed to are not read, nor do they count as active. */
    double share = fmin(1, (double)a->topk / (double)a->experts);
    double all = (double)a->experts * (double)out * (double)in * (double)b->repeat;
    b->g->active_parameters -= all * (1 - share);
    int64_t hit = ft__hit_experts(a, routed), each = (routed + hit - 1) / hit;
    /* Layers of packed weights compute in 16 bits, whatever flows, and give back what they were given. */
    const ft_dtype came = ft__tensor_of(b, x)->dtype, narrow = ft__flowing(b->math);
    const bool packed = b->training && b->autocast && ft__packed(b, weight, narrow);
    if (packed) x = ft__cast(b, at, x, narrow);
    ft_node n = ft__node_of(FT_DO_MATMUL, at);
    ft__node_in(&n, x);
    ft__node_in(&n, weight);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref y = ft__node_out(b, &n, routed, out, t.dtype, t.element_bytes);
    bool loop = ft_dtype_bytes(t.dtype) > 2;
    /* PyTorch's grouped product is one of 16 bits; Transformer Engine's computes in what the other layers do. */
    bool low = m->stack->grouped_experts && ft_dtype_bytes(b->math) < 2;
    n.op = ft__gemm_kernel(b->math == FT_TF32 || low ? b->math : t.dtype, loop ? 1 : hit, each, out, in, "nt", false);
    n.op.name = "bmm";
    n.empty = (float)(1 - (double)routed / ((double)hit * (double)each)); /* rounded up to whole rows */
    if (loop) { /* there is no grouped product in fp32: the host waits for the sizes and multiplies one by one */
        n.count = (float)hit;
        n.synced = true;
    } else {
        /* Routing is uneven and every expert's last tile of rows part empty. */
        n.manner |= FT_MANNER_UNEVEN | (m->stack->grouped_experts ? 0 : FT_MANNER_GROUPED);
        n.each = (double)each;
    }
    /* Weights of few bits are read so, those of the experts that are hit. */
    double kept = ft__tensor_of(b, weight)->element_bytes, wide = ft_dtype_bytes(n.op.dtype);
    if (!b->training && kept < wide) {
        double dense = ft__op_bytes(&n.op), hits = loop ? 1 : (double)hit;
        n.traffic = (float)((dense - hits * (double)out * (double)in * (wide - kept)) / dense);
    }
    ft_ref offset = bias ? ft__experts_bias(b, a->experts, out) : FT_NONE;
    if (bias) b->g->active_parameters -= (double)a->experts * (double)out * (double)b->repeat * (1 - share);
    if (bias && m->stack->grouped_experts)
        ft__node_in(&n, offset); /* by the product itself; its gradient is a sum over rows */
    ft__emit(b, &n);
    if (bias && !m->stack->grouped_experts)
        y = ft__pointwise_in_place(b, at, "add", y, ft__gather(b, at, offset, routed));
    return packed ? ft__cast(b, at, y, came) : y;
}

ft_ref ft__sorted_experts(ft_maker *m, ft_ref x, ft_ref weights, ft_ref up, ft_ref down)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, routed = tokens * a->topk, width = ft__tensor_of(b, x)->cols;
    ft__sort_tokens(m, routed);
    ft_ref mask = ft__input(b, routed, 1, 1);
    ft_ref h = ft__gather(b, FT_AT(MOE_DISPATCH), x, routed);
    h = masked(m, FT_AT(MOE_DISPATCH), h, mask, true);
    ft_ref both = ft__grouped_product(m, FT_AT(MOE_GATE_UP), h, (a->expert_plain ? 1 : 2) * a->moe_ffn, a->expert_bias,
                                      up);
    both = masked(m, FT_AT(MOE_GATE_UP), both, mask, false);
    h = gate_up(m, both);
    ft_ref y = ft__grouped_product(m, FT_AT(MOE_DOWN), h, width, a->expert_bias, down);
    y = masked(m, FT_AT(MOE_DOWN), y, mask, false);
    ft_ref each = ft__view(b, weights, routed, 1, false);
    ft_ref named = y;
    y = ft__mul(b, FT_AT(MOE_WEIGH), y, each);
    y = ft__gather(b, FT_AT(MOE_COMBINE), y, routed);
    y = ft__view(b, y, tokens * a->topk, width, false);
    ft_node sum = ft__node_of(FT_DO_ROW, FT_AT(MOE_COMBINE));
    ft__node_in(&sum, y);
    ft_tensor t = *ft__tensor_of(b, y);
    ft_ref out = ft__node_out(b, &sum, tokens, width, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    sum.op = ft__pointwise_kernel(b->g, "sum", sum.in, 1, &b->g->tensors[out]);
    sum.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    ft__emit(b, &sum);
    ft__part_held(m, 1, &named);
    return ft__cast(b, FT_AT(MOE_COMBINE), out, b->stored);
}

/* One kernel for all experts, as vLLM, SGLang and TensorRT-LLM have it. */
static ft_ref engine_experts(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, width = ft__tensor_of(b, x)->cols, products = a->expert_plain ? 2 : 3;
    double share = fmin(1, (double)a->topk / (double)a->experts);
    double each = (double)products * (double)a->moe_ffn * (double)width;
    ft_node n = ft__node_of(FT_DO_EXPERTS, FT_AT(MOE_EXPERTS));
    ft__node_in(&n, x);
    ft__node_in(&n, ft__experts_weight(b, a->experts * products * a->moe_ffn, width));
    if (a->expert_bias) { /* added by the same kernel */
        ft__experts_bias(b, a->experts, 2 * a->moe_ffn + width);
        each += 2 * (double)a->moe_ffn + (double)width;
    }
    b->g->active_parameters -= each * (double)a->experts * (double)b->repeat * (1 - share);
    ft_ref y = ft__node_out(b, &n, tokens, width, b->stored, ft_dtype_bytes(b->stored));
    n.op = (ft_op){.kind = FT_OP_MOE, .name = "moe", .dtype = b->math, .kv_dtype = b->stored};
    n.op.u.moe.tokens = tokens;
    n.op.u.moe.hidden = width;
    /* The kernel has three products; two of the same width are as much work as three of two thirds of it. */
    n.op.u.moe.inter = a->expert_plain ? (2 * a->moe_ffn + 2) / 3 : a->moe_ffn;
    n.op.u.moe.topk = a->topk;
    n.op.u.moe.experts = a->experts;
    n.op.u.moe.drawn = true;
    n.op.weights = ft__format_stored(b, FT_AT(MOE_EXPERTS));
    if (b->formats && b->formats->of[FT_OF_EXPERTS].given) n.op.dtype = b->formats->of[FT_OF_EXPERTS].math;
    ft__emit(b, &n);
    return y;
}

/* Experts of their own for the tokens of images: text passes by, and their weights lie where they are. */
static void other_experts(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool frozen = b->frozen;
    double all = 3 * (double)a->other_experts * (double)a->other_moe_ffn * (double)a->hidden;
    b->frozen = true;
    ft__parameter(b, "moe.router.weight", a->other_experts, a->hidden);
    ft__parameter(b, "moe.router.correction", 1, a->other_experts);
    ft__experts_weight(b, 3 * a->other_experts * a->other_moe_ffn, a->hidden);
    b->g->active_parameters -= all * (double)b->repeat;
    b->frozen = frozen;
}

static ft_ref experts(ft_maker *m, ft_ref x, ft_ref weights);

ft_ref ft__part_experts(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft__module(b, 2);
    if (a->other_experts > 0) other_experts(m);
    if (!ft__routes_tokens(a, m->work)) return ft__all_experts(m, x);
    ft_ref asks = x;
    if (a->router_norm) /* gemma4's router norms and scales what it reads, and scales each expert's weight */
        asks = ft__mul(b, FT_AT(MOE_ROUTER), ft__part_norm_bare(m, FT_AT(MOE_ROUTER), x),
                       ft__parameter(b, "moe.router.scale", 1, a->hidden));
    ft_ref weights = ft__route(m, asks);
    if (a->router_norm)
        weights = ft__mul(b, FT_AT(MOE_ROUTER), weights,
                          ft__pick(b, FT_AT(MOE_ROUTER), ft__parameter(b, "moe.router.per_expert_scale", 1, a->experts),
                                   ft__tensor_of(b, x)->rows, a->topk, false));
    if (a->zero_experts < 1) return experts(m, x, weights);
    /* What picks an expert that does nothing costs nothing: the others are visited by their share. */
    ft_arch fewer = *a;
    double all = (double)(a->experts + a->zero_experts);
    fewer.topk = (int64_t)fmax(1, floor((double)a->topk * (double)a->experts / all + 0.5));
    m->arch = &fewer;
    ft_ref y = experts(m, x, ft__slice(b, weights, ft__tensor_of(b, x)->rows, fewer.topk));
    m->arch = a;
    return y;
}

static ft_ref experts(ft_maker *m, ft_ref x, ft_ref weights)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref in = x;
    bool latent = a->expert_width > 0 && a->expert_width != a->hidden;
    if (latent) in = ft__linear(b, FT_AT(MOE_LATENT), x, a->expert_width, FT_NO_BIAS, FT_WHOLE);
    const bool gguf = !b->training && b->weights_by == FT_WEIGHTS_GGUF && b->formats &&
                      b->formats->of[FT_OF_EXPERTS].given;
    ft_ref y = gguf                                             ? ft__gguf_experts(m, in)
               : m->engine                                      ? engine_experts(m, in)
               : m->stack->grouped_experts                      ? ft__megatron_experts(m, in, weights)
               : a->attn_experts                                ? ft__joined_experts(m, in, weights)
               : a->expert_loop || ft__experts_by_hand(m->work) ? ft__sliced_experts(m, in, weights)
                                                                : ft__sorted_experts(m, in, weights, FT_NONE, FT_NONE);
    if (latent && a->expert_latent_norm) y = ft__part_norm(m, FT_AT(MOE_LATENT), y, a->norm, false);
    if (latent) y = ft__linear(b, FT_AT(MOE_LATENT), y, a->hidden, FT_NO_BIAS, FT_WHOLE);
    if (a->shared_ffn <= 0) return y;
    b->shared = true;
    ft_ref z = ft__part_mlp(m, x, a->shared_ffn, a->activation, !a->shared_plain, false,
                            a->mlp_bias ? FT_BIAS : FT_NO_BIAS);
    b->shared = false;
    if (a->shared_gate) {
        ft_ref gate = ft__linear(b, FT_AT(MOE_SHARED_GATE), x, 1, FT_NO_BIAS, FT_WHOLE);
        gate = ft__pointwise(b, FT_AT(MOE_SHARED_GATE), "sigmoid", gate);
        z = ft__mul(b, FT_AT(MOE_SHARED_GATE), z, gate);
    }
    return ft__add(b, FT_AT(MOE_ADD), y, z);
}
