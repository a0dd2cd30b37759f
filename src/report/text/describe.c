/* describe.c: an operator in a few words, its sizes under the names that requests give them. */
#include "report/text/describe.h"

#include <inttypes.h>
#include <string.h>

#include "report/text/style.h"

static void size(ft_text *out, const char *name, int64_t value) { ft__text_addf(out, " %s %" PRId64, name, value); }

static void gemm(ft_text *out, const ft_op *op)
{
    if (op->u.gemm.b > 1) size(out, "b", op->u.gemm.b);
    size(out, "m", op->u.gemm.m);
    size(out, "n", op->u.gemm.n);
    size(out, "k", op->u.gemm.k);
    ft__text_addf(out, " %.3s", op->u.gemm.layout);
}

static void attention(ft_text *out, const ft_op *op)
{
    size(out, "batch", op->u.attention.batch);
    size(out, "heads", op->u.attention.heads);
    if (op->u.attention.kv_heads != op->u.attention.heads) size(out, "kv_heads", op->u.attention.kv_heads);
    size(out, "q_len", op->u.attention.q_len);
    size(out, "kv_len", op->u.attention.kv_len);
    size(out, "head_dim", op->u.attention.head_dim);
    if (op->u.attention.window > 0) size(out, "window", op->u.attention.window);
    if (op->u.attention.causal) ft__text_add(out, " causal");
}

static void mla(ft_text *out, const ft_op *op)
{
    size(out, "batch", op->u.mla.batch);
    size(out, "heads", op->u.mla.heads);
    size(out, "q_len", op->u.mla.q_len);
    size(out, "kv_len", op->u.mla.kv_len);
    if (op->u.mla.causal) ft__text_add(out, " causal");
}

static void conv(ft_text *out, const ft_op *op)
{
    size(out, "n", op->u.conv.n);
    size(out, "c", op->u.conv.c);
    ft__text_addf(out, " %" PRId64 "x%" PRId64, op->u.conv.h, op->u.conv.w);
    size(out, "k", op->u.conv.k);
    ft__text_addf(out, " %" PRId64 "x%" PRId64, op->u.conv.r, op->u.conv.s);
    size(out, "stride", op->u.conv.stride);
    size(out, "pad", op->u.conv.pad);
    if (op->u.conv.groups > 1) size(out, "groups", op->u.conv.groups);
    ft__text_add(out, op->u.conv.nhwc ? " nhwc" : " nchw");
}

void ft__describe_op(ft_text *out, const ft_op *op)
{
    ft__text_add_plain(out, op->name ? op->name : "?");
    switch (op->kind) {
    case FT_OP_GEMM: gemm(out, op); break;
    case FT_OP_ATTENTION: attention(out, op); break;
    case FT_OP_MLA: mla(out, op); break;
    case FT_OP_ELEMENTWISE:
        size(out, "numel", op->u.elementwise.numel);
        if (op->u.elementwise.inputs > 1) size(out, "inputs", op->u.elementwise.inputs);
        break;
    case FT_OP_ROW:
        size(out, "rows", op->u.row.rows);
        size(out, "cols", op->u.row.cols);
        break;
    case FT_OP_CONV2D: conv(out, op); break;
    case FT_OP_MOE:
        size(out, "tokens", op->u.moe.tokens);
        size(out, "hidden", op->u.moe.hidden);
        size(out, "inter", op->u.moe.inter);
        size(out, "topk", op->u.moe.topk);
        size(out, "experts", op->u.moe.experts);
        break;
    case FT_OP_OPTIMIZER:
        size(out, "params", op->u.optimizer.params);
        size(out, "tensors", op->u.optimizer.tensors);
        break;
    case FT_OP_QUANTIZE:
        size(out, "rows", op->u.quantize.rows);
        size(out, "cols", op->u.quantize.cols);
        break;
    case FT_OP_COLLECTIVE:
        size(out, "ranks", op->u.collective.ranks);
        size(out, "bytes", (int64_t)op->u.collective.bytes);
        break;
    case FT_OP_OTHER:
    case FT_OP_KIND_COUNT: break;
    }
    if (op->pass == FT_PASS_BWD) ft__text_add(out, " backward");
    if (op->pass == FT_PASS_FWD_BWD) ft__text_add(out, " forward and backward");
    ft__text_addf(out, " %s", ft_dtype_name(op->dtype));
    if ((op->kind == FT_OP_ATTENTION || op->kind == FT_OP_MLA) && op->kv_dtype != op->dtype)
        ft__text_addf(out, " kv %s", ft_dtype_name(op->kv_dtype));
}
