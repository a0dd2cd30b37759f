/* moe.c: a mixture of experts: router, dispatch, experts, combination.
 *
 * Plain transformers (5.x) sorts tokens by expert and runs two grouped products; the same products as a batched matmul
 * of equal shares stand for them here: with routing close to even, the tiles are the same. The older way, and the one
 * of switch_transformers, is a Python loop over the experts that were hit, with a synchronisation to find them. Serving
 * engines fuse all of it: FT_OP_MOE. */
#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "model/parts.h"

/* Scores, the best few, their weights; small beside the rest but many kernels. Returns the weights [tokens, topk]. */
static ft_ref route(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, rank = b->lora_rank;
    b->lora_rank = 0;
    ft_ref h = a->router_fp32 ? ft__cast(b, "moe.router", x, FT_FP32) : x;
    ft_ref weight = ft__parameter(b, "moe.router.weight", a->experts, a->hidden);
    ft_ref bias = a->router_bias ? ft__parameter(b, "moe.router.bias", 1, a->experts) : FT_NONE;
    if (a->router_fp32) weight = ft__cast(b, "moe.router", weight, FT_FP32);
    ft_ref logits = ft__linear_with(b, "moe.router", h, weight, a->experts, bias, FT_WHOLE);
    b->lora_rank = rank;
    logits = ft__cast(b, "moe.router", logits, FT_FP32);
    ft_ref odds = a->router_sigmoid ? ft__pointwise(b, "moe.router", "sigmoid", logits)
                                    : ft__row(b, "moe.router", "softmax", logits);
    if (a->expert_groups > 1) /* bias-corrected choice of groups: masks and two more top-k */
        for (int i = 0; i < 4; i++) ft__pointwise(b, "moe.router.groups", "addu", odds);
    /* top-k reads all scores and writes few; its gradient scatters. */
    ft_node top = ft__node_of(FT_DO_GATHER, "moe.topk");
    ft__node_in(&top, odds);
    ft_tensor t = *ft__tensor_of(b, odds);
    ft_ref best = ft__node_out(b, &top, tokens, a->topk, t.dtype, t.element_bytes);
    top.op = ft__row_kernel("argmax", FT_FWD, t.rows, t.cols, t.dtype);
    top.count = 2;
    ft__emit(b, &top);
    ft_ref sum = ft__reduce(b, "moe.topk", "sum", best);
    ft__module(b, 1);
    return ft__pointwise2(b, "moe.topk", "div", best, sum);
}

/* Sorting tokens by expert: a radix sort and a histogram, some twenty launches. */
static void sort_tokens(ft_maker *m, int64_t routed)
{
    ft_build *b = &m->b;
    ft_node n = ft__node_of(FT_DO_OTHER, "moe.sort");
    n.op = ft__bytes_kernel("sort", b->stored, (double)routed * 16 * 4, (double)routed);
    n.count = 22;
    ft__emit(b, &n);
}

/* Rows of experts that live elsewhere are zeroed, on every tensor that passes, even when there are none. */
static ft_ref masked(ft_build *b, const char *name, ft_ref x, ft_ref mask, bool in_place)
{
    const ft_tensor *t = ft__tensor_of(b, x);
    if (!in_place) x = ft__copy(b, name, x, t->rows, t->cols);
    return ft__pointwise_in_place(b, name, "masked_fill", x, mask);
}

/* act(gate) * up; gpt_oss clamps both and gates by x sigmoid(1.702 x), times up + 1. */
static ft_ref gate_up(ft_maker *m, ft_ref both)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t halves[2] = {a->moe_ffn, a->moe_ffn};
    ft_ref part[2];
    ft__split(b, both, 2, halves, part);
    if (!a->expert_bias) {
        ft_ref gate = ft__part_activation(m, "moe.act", a->activation, part[0]);
        return ft__mul(b, "moe.act", gate, part[1]);
    }
    ft_ref gate = ft__pointwise(b, "moe.act", "clamp", part[0]), up = ft__pointwise(b, "moe.act", "clamp", part[1]);
    ft_ref soft = ft__pointwise(b, "moe.act", "mulu", gate);
    soft = ft__pointwise(b, "moe.act", "sigmoid", soft);
    soft = ft__mul(b, "moe.act", gate, soft);
    up = ft__pointwise(b, "moe.act", "addu", up);
    return ft__mul(b, "moe.act", up, soft);
}

static ft_ref grouped(ft_maker *m, const char *name, ft_ref x, int64_t out, bool bias)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t routed = ft__tensor_of(b, x)->rows, in = ft__tensor_of(b, x)->cols;
    ft_ref weight = ft__parameter(b, "experts.weight", a->experts * out, in);
    /* Experts that no token is routed to are not read, nor do they count as active. */
    double share = fmin(1, (double)a->topk / (double)a->experts);
    double all = (double)a->experts * (double)out * (double)in * (double)b->repeat;
    b->g->active_parameters -= all * (1 - share);
    int64_t hit = a->experts < routed ? a->experts : routed, each = (routed + hit - 1) / hit;
    ft_node n = ft__node_of(FT_DO_MATMUL, name);
    ft__node_in(&n, x);
    ft__node_in(&n, weight);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref y = ft__node_out(b, &n, routed, out, t.dtype, t.element_bytes);
    n.op = ft__gemm_kernel(b->math == FT_TF32 ? FT_TF32 : t.dtype, hit, each, out, in, "nt", false);
    /* Routing is uneven: every expert's last tile of 128 rows is half empty on average. */
    n.effort = (float)(1 + 64 / (double)(each > 64 ? each : 64));
    ft__emit(b, &n);
    if (bias) {
        ft_ref offset = ft__parameter(b, "experts.bias", a->experts, out);
        b->g->active_parameters -= (double)a->experts * (double)out * (double)b->repeat * (1 - share);
        y = ft__pointwise_in_place(b, name, "add", y, ft__gather(b, name, offset, routed));
    }
    return y;
}

static ft_ref sorted_experts(ft_maker *m, ft_ref x, ft_ref weights)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows, routed = tokens * a->topk;
    sort_tokens(m, routed);
    ft_ref mask = ft__input(b, routed, 1, 1);
    ft_ref h = ft__gather(b, "moe.dispatch", x, routed);
    h = masked(b, "moe.dispatch", h, mask, true);
    ft_ref both = masked(b, "moe.gate_up", grouped(m, "moe.gate_up", h, 2 * a->moe_ffn, a->expert_bias), mask, false);
    h = gate_up(m, both);
    ft_ref y = masked(b, "moe.down", grouped(m, "moe.down", h, a->hidden, a->expert_bias), mask, false);
    ft_ref each = ft__view(b, weights, routed, 1, false);
    y = ft__mul(b, "moe.weigh", y, each);
    y = ft__gather(b, "moe.combine", y, routed);
    y = ft__view(b, y, tokens * a->topk, a->hidden, false);
    ft_node sum = ft__node_of(FT_DO_ROW, "moe.combine");
    ft__node_in(&sum, y);
    ft_tensor t = *ft__tensor_of(b, y);
    ft_ref out = ft__node_out(b, &sum, tokens, a->hidden, t.dtype, t.element_bytes);
    sum.op = ft__pointwise_kernel(b->g, "sum", sum.in, 1, &t);
    sum.op.u.elementwise.pattern = FT_BROADCAST;
    ft__emit(b, &sum);
    return ft__cast(b, "moe.combine", out, b->stored);
}

/* One kernel for all experts, as vLLM, SGLang and TensorRT-LLM have it. */
static ft_ref engine_experts(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = ft__tensor_of(b, x)->rows;
    double share = fmin(1, (double)a->topk / (double)a->experts), each = 3.0 * (double)a->moe_ffn * (double)a->hidden;
    ft_node n = ft__node_of(FT_DO_EXPERTS, "moe.experts");
    ft__node_in(&n, x);
    ft__node_in(&n, ft__parameter(b, "experts.weight", a->experts * 3 * a->moe_ffn, a->hidden));
    b->g->active_parameters -= each * (double)a->experts * (double)b->repeat * (1 - share);
    ft_ref y = ft__node_out(b, &n, tokens, a->hidden, b->stored, ft_dtype_bytes(b->stored));
    n.op = (ft_op){.kind = FT_OP_MOE, .name = "moe", .dtype = b->math, .kv_dtype = b->stored};
    n.op.u.moe.tokens = tokens;
    n.op.u.moe.hidden = a->hidden;
    n.op.u.moe.inter = a->moe_ffn;
    n.op.u.moe.topk = a->topk;
    n.op.u.moe.experts = a->experts;
    ft__emit(b, &n);
    return y;
}

ft_ref ft__part_experts(ft_maker *m, const char *name, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft__module(b, 2);
    ft_ref weights = route(m, x);
    ft_ref y = m->engine ? engine_experts(m, x) : sorted_experts(m, x, weights);
    if (a->shared_ffn <= 0) return y;
    ft_ref z = ft__part_mlp(m, name, x, a->shared_ffn, a->activation, true, false, FT_NO_BIAS);
    if (a->shared_gate) {
        ft_ref gate = ft__linear(b, "moe.shared_gate", x, 1, FT_NO_BIAS, FT_WHOLE);
        gate = ft__pointwise(b, "moe.shared_gate", "sigmoid", gate);
        z = ft__mul(b, "moe.shared_gate", z, gate);
    }
    return ft__add(b, "moe.add", y, z);
}
