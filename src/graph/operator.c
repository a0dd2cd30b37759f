/* Operators: names and arithmetic; what they move is operator_bytes.c's.
 *
 * FLOPs count a fused multiply-add as two. Pointwise and row operators count one unit per arithmetic instruction of a
 * straightforward implementation; they are memory-bound by two orders of magnitude, so the third digit is of no use.
 * Attention counts the two matrix products (4 * q * kv * d per head), halved under a causal mask, and 2.5 times that
 * for the backward pass (five products instead of two), as FlashAttention-2's own benchmark does. */
#include "graph/operator.h"

#include <math.h>
#include <string.h>

#include "graph/embedding_constants.h"

/* Passes over the matrix as PyTorch's kernels make them: layernorm's backward makes one kernel for the input and one
 * for the weights, softmax's backward reads output and gradient. embedding reads only the rows it gathers; its gradient
 * also writes the whole table: see ft__op_bytes. */
const ft_row_op ft__row_ops[] = {
    /* name, gradient, reads, writes, the gradient's reads and writes, flops */
    {"softmax", "softmax_backward", 1, 1, 2, 1, 5},       {"log_softmax", "log_softmax_backward", 1, 1, 2, 1, 5},
    {"layernorm", "layernorm_backward", 1, 1, 2, 1, 8},   {"rmsnorm", "rmsnorm_backward", 1, 1, 2, 1, 5},
    {"sum_rows", "sum_rows_backward", 1, 0, 0, 1, 1},     {"sum_cols", "sum_cols_backward", 1, 0, 0, 1, 1},
    {"mean_all", "mean_all_backward", 1, 0, 0, 1, 1},     {"argmax", "argmax_backward", 1, 0, 0, 0, 1},
    {"cumsum", "cumsum_backward", 1, 1, 1, 1, 1},         {"transpose_copy", "transpose_copy_backward", 1, 1, 1, 1, 0},
    {"cat_halves", "cat_halves_backward", 1, 1, 1, 1, 0}, {"bias_add", "bias_add_backward", 1, 1, 1, 0, 1},
    {"embedding", "embedding_backward", 1, 1, 1, 0, 0},   {"cross_entropy", "cross_entropy_backward", 1, 0, 1, 1, 5},
};
const int ft__row_op_count = FT_ROW_OPS;
_Static_assert(sizeof ft__row_ops / sizeof *ft__row_ops == FT_ROW_OPS, "operator.h counts the row operators");

const ft_pointwise_op ft__pointwise_ops[] = {
    {"add", 2, 1, 0, 0},           {"sub", 2, 1, 0, 0},
    {"mul", 2, 1, 0, 0},           {"div", 2, 4, 0, 0},
    {"pow", 1, 12, 0, 0},          {"addu", 1, 1, 0, 0}, /* with a scalar */
    {"mulu", 1, 1, 0, 0},          {"divu", 1, 1, 0, 0},
    {"powu", 1, 12, 0, 0},         {"scalar_mul", 1, 1, 0, 0},
    {"neg", 1, 1, 0, 0},           {"copy", 1, 0, 0, 0},
    {"relu", 1, 1, 0, 0},          {"gelu", 1, 10, 0, 0},
    {"silu", 1, 5, 0, 0},          {"tanh", 1, 6, 0, 0},
    {"exp", 1, 2, 0, 0},           {"cos", 1, 8, 0, 0},
    {"sin", 1, 8, 0, 0},           {"rsqrt", 1, 2, 0, 0},
    {"sqrt", 1, 2, 0, 0},          {"sigmoid", 1, 4, 0, 0},
    {"dropout", 1, 10, 0, 0}, /* also writes a one-byte mask: see ft__op_bytes */
    {"cast_fp32", 1, 0, 2, 4},     {"cast_bf16", 1, 0, 4, 2},
    {"cast_fp16", 1, 0, 4, 2},     {"gelu_backward", 2, 16, 0, 0},
    {"silu_backward", 2, 8, 0, 0}, {"relu_backward", 2, 1, 0, 0},
    {"tanh_backward", 2, 3, 0, 0}, {"sigmoid_backward", 2, 3, 0, 0},
    {"where", 3, 1, 0, 0},         {"masked_fill", 2, 1, 0, 0},
    {"swiglu", 2, 6, 0, 0},        {"swiglu_backward", 3, 12, 0, 0},
    {"add_by_place", 2, 1, 0, 0}, /* a bias by distance, which a compiler makes again */
};
const int ft__pointwise_op_count = (int)(sizeof ft__pointwise_ops / sizeof *ft__pointwise_ops);

int ft__row_op_find(const char *name)
{
    for (int i = 0; i < ft__row_op_count; i++)
        if (!strcmp(ft__row_ops[i].name, name)) return i;
    return -1;
}

int64_t ft__row_vocab(const ft_op *op)
{
    if (op->u.row.vocab > 0) return op->u.row.vocab;
    int64_t usual = ft__k_embedding_vocabulary.usual;
    bool fits = (double)usual * (double)op->u.row.cols <= ft__k_embedding_vocabulary.most;
    return fits ? usual : ft__k_embedding_vocabulary.small;
}

const char *const ft__collective_names[FT_COLLECTIVE_COUNT] = {[FT_COLLECTIVE_ALL_REDUCE] = "all_reduce",
                                                               [FT_COLLECTIVE_ALL_GATHER] = "all_gather",
                                                               [FT_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
                                                               [FT_COLLECTIVE_ALL_TO_ALL] = "all_to_all",
                                                               [FT_COLLECTIVE_BROADCAST] = "broadcast",
                                                               [FT_COLLECTIVE_REDUCE] = "reduce",
                                                               [FT_COLLECTIVE_SEND_RECV] = "send_recv"};

int ft__collective_find(const char *name)
{
    for (int i = 0; i < FT_COLLECTIVE_COUNT; i++)
        if (!strcmp(ft__collective_names[i], name)) return i;
    return -1;
}

int ft__pointwise_op_find(const char *name)
{
    for (int i = 0; i < ft__pointwise_op_count; i++)
        if (!strcmp(ft__pointwise_ops[i].name, name)) return i;
    return -1;
}

static const struct {
    const char *name;
    ft_op_kind kind;
} kinds[] = {
    {"gemm", FT_OP_GEMM},
    {"linear", FT_OP_GEMM},
    {"matmul", FT_OP_GEMM},
    {"bmm", FT_OP_GEMM},
    {"attention", FT_OP_ATTENTION},
    {"mla", FT_OP_MLA},
    {"elementwise", FT_OP_ELEMENTWISE},
    {"conv2d", FT_OP_CONV2D},
    {"moe", FT_OP_MOE},
    {"optimizer", FT_OP_OPTIMIZER},
    {"quantize", FT_OP_QUANTIZE},
    {"dequantize", FT_OP_QUANTIZE},
    {"quantize_cast", FT_OP_QUANTIZE},
    {"quantize_static", FT_OP_QUANTIZE},
    {"quantize_rows", FT_OP_QUANTIZE},
    {"scale_matrix", FT_OP_QUANTIZE},
};

/* Its kind, and what a name says beside it: "softmax_backward" is softmax, pass bwd. */
static void name_kind(const char *name, ft_op *out)
{
    out->kind = ft__collective_find(name) >= 0 ? FT_OP_COLLECTIVE : FT_OP_OTHER;
    out->name = name;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, name)) out->kind = kinds[i].kind;
    for (int i = 0; i < ft__row_op_count && out->kind == FT_OP_OTHER; i++) {
        bool back = !strcmp(ft__row_ops[i].backward, name);
        if (!back && strcmp(ft__row_ops[i].name, name) != 0) continue;
        out->kind = FT_OP_ROW;
        if (back) out->name = ft__row_ops[i].name, out->pass = FT_PASS_BWD;
    }
    if (out->kind == FT_OP_OTHER && ft__pointwise_op_find(name) >= 0) out->kind = FT_OP_ELEMENTWISE;
}

void ft__op_init(const char *name, ft_op *out)
{
    memset(out, 0, sizeof *out);
    out->dtype = out->kv_dtype = FT_BF16;
    name_kind(name, out);
    switch (out->kind) {
    case FT_OP_GEMM:
        out->u.gemm.b = 1;
        out->u.gemm.bias = !strcmp(name, "linear");
        out->u.gemm.quantized = -1;
        strcpy(out->u.gemm.layout, !strcmp(name, "bmm") ? "nn" : "nt");
        break;
    case FT_OP_ELEMENTWISE: {
        int at = ft__pointwise_op_find(name);
        out->u.elementwise.inputs = at >= 0 ? ft__pointwise_ops[at].inputs : 1;
        break;
    }
    case FT_OP_CONV2D:
        out->u.conv.stride = out->u.conv.groups = 1;
        out->u.conv.nhwc = true;
        break;
    case FT_OP_OPTIMIZER: out->u.optimizer.tensors = 1; break;
    case FT_OP_QUANTIZE: out->dtype = FT_FP8; break;
    case FT_OP_COLLECTIVE:
        out->u.collective.op = ft__collective_find(name);
        out->u.collective.ranks = 2;
        break;
    default: break;
    }
}

static double attention_flops(const ft_op *op)
{
    double q = (double)op->u.attention.q_len, kv = (double)op->u.attention.kv_len;
    double dv = (double)(op->u.attention.v_dim ? op->u.attention.v_dim : op->u.attention.head_dim);
    double pairs = q * kv;
    if (op->u.attention.causal) pairs = q <= kv ? q * (kv - q) + q * (q + 1) / 2 : kv * (kv + 1) / 2;
    if (op->u.attention.window > 0) pairs = fmin(pairs, q * (double)op->u.attention.window);
    double f = 2 * pairs * ((double)op->u.attention.head_dim + dv) * (double)op->u.attention.heads *
               (double)op->u.attention.batch;
    return op->pass == FT_PASS_FWD ? f : op->pass == FT_PASS_BWD ? 2.5 * f : 3.5 * f;
}

int ft__conv_parts(const ft_op *op)
{
    if (op->u.conv.parts) return op->u.conv.parts;
    int gradients = FT_CONV_INPUT | FT_CONV_FILTER;
    return op->pass == FT_PASS_FWD ? FT_CONV_RESULT : op->pass == FT_PASS_BWD ? gradients : FT_CONV_RESULT | gradients;
}

double ft__conv_products(const ft_op *op)
{
    int parts = ft__conv_parts(op);
    return (parts & FT_CONV_RESULT ? 1 : 0) + (parts & FT_CONV_INPUT ? 1 : 0) + (parts & FT_CONV_FILTER ? 1 : 0);
}

double ft__conv_out(int64_t in, int64_t filter, int64_t stride, int64_t pad)
{
    return floor((double)(in + 2 * pad - filter) / (double)stride) + 1;
}

double ft__op_flops(const ft_op *op)
{
    switch (op->kind) {
    case FT_OP_GEMM: {
        double f = 2.0 * (double)op->u.gemm.b * (double)op->u.gemm.m * (double)op->u.gemm.n * (double)op->u.gemm.k;
        return op->pass == FT_PASS_FWD ? f : op->pass == FT_PASS_BWD ? 2 * f : 3 * f;
    }
    case FT_OP_ATTENTION: return attention_flops(op);
    case FT_OP_MLA: {
        /* Absorbed form when decoding (scores and values in the latent space), expanded form in prefill. */
        double q = (double)op->u.mla.q_len, kv = (double)op->u.mla.kv_len;
        double pairs = op->u.mla.causal && q <= kv ? q * (kv - q) + q * (q + 1) / 2 : q * kv;
        double width = op->u.mla.q_len == 1 ? 2.0 * (double)op->u.mla.kv_lora + (double)op->u.mla.rope_dim
                                            : (double)(op->u.mla.nope_dim + op->u.mla.rope_dim + op->u.mla.v_dim);
        return 2 * pairs * width * (double)op->u.mla.heads * (double)op->u.mla.batch;
    }
    case FT_OP_ELEMENTWISE: {
        int at = ft__pointwise_op_find(op->name);
        double per = op->u.elementwise.ops_per_element > 0 ? op->u.elementwise.ops_per_element
                     : at >= 0                             ? ft__pointwise_ops[at].flops_per_element
                                                           : 1;
        return (double)op->u.elementwise.numel * per;
    }
    case FT_OP_ROW: {
        int at = ft__row_op_find(op->name);
        double per = at >= 0 ? ft__row_ops[at].flops_per_element : 1;
        return (double)op->u.row.rows * (double)op->u.row.cols * per * (op->pass == FT_PASS_FWD_BWD ? 2 : 1);
    }
    case FT_OP_CONV2D: {
        double out_h = ft__conv_out(op->u.conv.h, op->u.conv.r, op->u.conv.stride, op->u.conv.pad);
        double out_w = ft__conv_out(op->u.conv.w, op->u.conv.s, op->u.conv.stride, op->u.conv.pad);
        double f = 2.0 * (double)op->u.conv.n * out_h * out_w * (double)op->u.conv.k * (double)op->u.conv.c *
                   (double)op->u.conv.r * (double)op->u.conv.s / (double)op->u.conv.groups;
        return f * ft__conv_products(op);
    }
    case FT_OP_MOE: /* gate and up into 2 * inter, down back to hidden */
        return 2 * (op->u.moe.ungated ? 2 : 3) * (double)op->u.moe.tokens * (double)op->u.moe.topk *
               (double)op->u.moe.hidden * (double)op->u.moe.inter / fmax(1, (double)op->u.moe.ep);
    case FT_OP_OPTIMIZER: return 12 * (double)op->u.optimizer.params;
    case FT_OP_QUANTIZE: return 3 * (double)op->u.quantize.rows * (double)op->u.quantize.cols;
    case FT_OP_COLLECTIVE: { /* a sum of n buffers, each rank its share */
        int c = op->u.collective.op;
        bool sums = c == FT_COLLECTIVE_ALL_REDUCE || c == FT_COLLECTIVE_REDUCE_SCATTER || c == FT_COLLECTIVE_REDUCE;
        return sums ? op->u.collective.bytes / ft_dtype_bytes(op->dtype) : 0;
    }
    default: return op->u.other.flops;
    }
}
