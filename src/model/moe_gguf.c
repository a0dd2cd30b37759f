/* moe_gguf.c: experts by llama.cpp's kernels: a product over the chosen experts' rows for gate and way up at once, one
 * for the way down, and a sum. Nothing is sorted or gathered for a few tokens: a kernel finds each row's expert by its
 * number (ggml-org/llama.cpp, ggml-cuda.cu, mul_mat_id and its fusions; src/llama-graph.cpp, build_moe_ffn). */
#include <math.h>

#include "graph/emit.h"
#include "model/moe.h"

/* Rows of an expert fill tiles whose height is chosen by how many tokens there are, not by how many an expert gets:
 * ggml-cuda/mmq.cuh, mul_mat_q_switch_J. Up to eight tokens there are none (mmvq). RDNA3's are by expert since
 * September 2026 (pull request 24546), which nothing here says. */
static int64_t in_tiles(int64_t rows, int64_t tokens)
{
    enum { NO_TILES = 8, STEP = 8, LARGEST = 128 };
    if (tokens <= NO_TILES) return rows;
    const int64_t tile = tokens >= LARGEST ? LARGEST : (tokens + STEP - 1) / STEP * STEP;
    return (rows + tile - 1) / tile * tile;
}

static ft_ref product(ft_maker *m, ft_at at, ft_ref x, int64_t routed, int64_t out)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t in = ft__tensor_of(b, x)->cols;
    const double share = fmin(1, (double)a->topk / (double)a->experts), tokens = (double)routed / (double)a->topk;
    const double awake = fmax((double)a->experts * (1 - pow(1 - share, tokens)), 1);
    const int64_t hit = (int64_t)(awake + 0.5), each = in_tiles((routed + hit - 1) / hit, routed / a->topk);
    ft_ref weight = ft__experts_weight(b, a->experts * out, in);
    b->g->active_parameters -= (double)a->experts * (double)out * (double)in * (double)b->repeat * (1 - share);
    ft_node n = ft__node_of(FT_DO_MATMUL, at);
    ft__node_in(&n, x);
    ft__node_in(&n, weight);
    ft_ref y = ft__node_out(b, &n, routed, out, b->stored, ft_dtype_bytes(b->stored));
    if (y == FT_NONE) return y;
    n.op = ft__gemm_kernel(b->math, hit, each, out, in, "nt", false);
    n.op.weights = ft__format_stored(b, FT_AT(MOE_EXPERTS));
    n.op.u.gemm.by = b->weights_by;
    n.empty = (float)(1 - (double)routed / ((double)hit * (double)each)); /* rounded up to whole rows */
    if (a->expert_bias) {                                                 /* added by the same kernel */
        ft__experts_bias(b, a->experts, out);
        b->g->active_parameters -= (double)a->experts * (double)out * (double)b->repeat * (1 - share);
    }
    ft__emit(b, &n);
    return y;
}

ft_ref ft__gguf_experts(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    const int64_t tokens = ft__tensor_of(b, x)->rows, routed = tokens * a->topk, width = ft__tensor_of(b, x)->cols;
    ft_ref h = product(m, FT_AT(MOE_GATE_UP), x, routed, (a->expert_plain ? 1 : 2) * a->moe_ffn);
    if (a->expert_plain)
        h = ft__part_activation(m, FT_AT(MOE_ACT), a->activation, h);
    else
        h = ft__pointwise(b, FT_AT(MOE_ACT), "silu", ft__slice(b, h, routed, a->moe_ffn));
    ft_ref y = product(m, FT_AT(MOE_DOWN), h, routed, width);
    ft_node sum = ft__node_of(FT_DO_ROW, FT_AT(MOE_COMBINE));
    ft__node_in(&sum, y);
    ft_ref out = ft__node_out(b, &sum, tokens, width, b->stored, ft_dtype_bytes(b->stored));
    if (out == FT_NONE) return out;
    sum.op = ft__pointwise_kernel(b->g, "sum", sum.in, 1, &b->g->tensors[out]);
    sum.op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    ft__emit(b, &sum);
    return out;
}
