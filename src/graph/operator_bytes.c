/* operator_bytes.c: compulsory traffic of operators, what each reads and writes at least once.
 *
 * `e` is the bytes of an element. Weights may be stored in fewer bits than they are computed in; low-precision matrix
 * products write bf16. */
#include "graph/operator.h"

#include <math.h>
#include <string.h>

#include "graph/experts_constants.h"

/* States and copies an optimizer step reads and writes per parameter, in bytes. */
static double optimizer_bytes_per_param(const char *name, double e)
{
    if (strstr(name, "clip") || strstr(name, "norm")) return 2 * e + e; /* read for the norm; read and write to scale */
    if (strstr(name, "adamw_8bit")) return 3 * e + 4;
    if (strstr(name, "adam") || strstr(name, "lamb")) return 7 * e; /* p, g, m, v in; p, m, v out */
    if (strstr(name, "muon")) return 5 * e;
    if (strstr(name, "adafactor")) return 3 * e;
    if (strstr(name, "momentum")) return 5 * e;
    return 3 * e; /* plain SGD: p, g in; p out */
}

static const struct {
    const char *name;
    double bytes;
} storages[FT_STORAGE_COUNT] = {
#define X(code, name, bytes) [code] = {name, bytes},
    FT_STORAGE_LIST(X)
#undef X
};

const char *ft__storage_name(ft_storage storage) { return storages[storage].name; }

double ft__storage_bytes(ft_storage storage) { return storages[storage].bytes; }

double ft__stored_bytes(const ft_op *op)
{
    return op->weights == FT_STORED_AS_COMPUTED ? ft_dtype_bytes(op->dtype) : storages[op->weights].bytes;
}

double ft__experts_here(const ft_op *op) { return (double)op->u.moe.experts / fmax(1, (double)op->u.moe.ep); }

double ft__experts_awake(const ft_op *op)
{
    double tokens = (double)op->u.moe.tokens, topk = (double)op->u.moe.topk, here = ft__experts_here(op);
    double share = topk / (double)op->u.moe.experts;
    if (op->u.moe.drawn) return here * (1 - pow(1 - fmin(1, share), tokens));
    return fmin(here, fmax(1, tokens * topk / fmax(1, (double)op->u.moe.ep)));
}

/* `share`: of the experts that could be awake, those that are. */
static double mixture_bytes(const ft_op *op, double share)
{
    double tokens = (double)op->u.moe.tokens, of_one = (double)op->u.moe.topk / fmax(1, (double)op->u.moe.ep);
    double active = fmax(fmin(ft__experts_here(op), fmax(1, of_one)), share * ft__experts_awake(op));
    double h = (double)op->u.moe.hidden, i = (double)op->u.moe.inter;
    return ft__stored_bytes(op) * active * (op->u.moe.ungated ? 2 : 3) * h * i +
           ft_dtype_bytes(op->dtype) * tokens * 2 * h;
}

double ft__op_least_bytes(const ft_op *op)
{
    return op->kind == FT_OP_MOE && op->u.moe.skew > 0 ? mixture_bytes(op, 0.5) : ft__op_bytes(op);
}

/* -- by kind ----------------------------------------------------------------------------------- */

static double gemm_bytes(const ft_op *op, double e)
{
    const double out_e = fmax(e, 2);
    double m = (double)op->u.gemm.m, n = (double)op->u.gemm.n, k = (double)op->u.gemm.k;
    double once = (double)op->u.gemm.b * (e * m * k + ft__stored_bytes(op) * k * n + out_e * m * n);
    if (op->u.gemm.quantized == 0 && e < 2) once += (double)op->u.gemm.b * m * k * (2 * 2 + e);
    return op->pass == FT_PASS_FWD ? once : op->pass == FT_PASS_BWD ? 2 * once : 3 * once;
}

static double attention_bytes(const ft_op *op, double e)
{
    double kv_e = ft_dtype_bytes(op->kv_dtype), batch = (double)op->u.attention.batch;
    double dv = (double)(op->u.attention.v_dim ? op->u.attention.v_dim : op->u.attention.head_dim);
    double d = (double)op->u.attention.head_dim;
    double q = batch * (double)op->u.attention.heads * (double)op->u.attention.q_len * e * (d + dv);
    double seen = (double)op->u.attention.kv_len; /* positions of the cache that any query looks at */
    if (op->u.attention.window > 0)
        seen = fmin(seen, (double)op->u.attention.window + (double)op->u.attention.q_len - 1);
    double kv = batch * (double)op->u.attention.kv_heads * seen * kv_e * (d + dv);
    double once = q + kv;
    return op->pass == FT_PASS_FWD ? once : op->pass == FT_PASS_BWD ? 2 * once : 3 * once;
}

static double mla_bytes(const ft_op *op, double e)
{
    double latent = (double)(op->u.mla.kv_lora + op->u.mla.rope_dim) * ft_dtype_bytes(op->kv_dtype);
    double batch = (double)op->u.mla.batch, heads = (double)op->u.mla.heads, q = (double)op->u.mla.q_len;
    double width = op->u.mla.q_len == 1 ? 2.0 * (double)op->u.mla.kv_lora + (double)op->u.mla.rope_dim
                                        : (double)(op->u.mla.nope_dim + op->u.mla.rope_dim + op->u.mla.v_dim);
    double kv = op->u.mla.q_len == 1
                    ? latent
                    : heads * e * (double)(op->u.mla.nope_dim + op->u.mla.v_dim) + (double)op->u.mla.rope_dim * e;
    return batch * (q * heads * width * e + (double)op->u.mla.kv_len * kv);
}

static double elementwise_bytes(const ft_op *op, double e)
{
    if (op->u.elementwise.bytes > 0) return op->u.elementwise.bytes;
    int at = ft__pointwise_op_find(op->name);
    double in = e, out = e;
    if (at >= 0 && ft__pointwise_ops[at].in_bytes > 0) in = ft__pointwise_ops[at].in_bytes;
    if (at >= 0 && ft__pointwise_ops[at].out_bytes > 0) out = ft__pointwise_ops[at].out_bytes;
    if (!strcmp(op->name, "dropout")) out += 1; /* the mask, a byte per element */
    return (double)op->u.elementwise.numel * (in * op->u.elementwise.inputs + out);
}

static double row_bytes(const ft_op *op, double e)
{
    int at = ft__row_op_find(op->name);
    double all = (double)op->u.row.rows * (double)op->u.row.cols * e, passes = 2;
    if (at >= 0) {
        const ft_row_op *r = &ft__row_ops[at];
        passes = op->pass == FT_PASS_FWD   ? r->reads + r->writes
                 : op->pass == FT_PASS_BWD ? r->back_reads + r->back_writes
                                           : r->reads + r->writes + r->back_reads + r->back_writes;
    }
    if (op->pass != FT_PASS_FWD && !strcmp(op->name, "embedding"))
        return all * passes + (double)ft__row_vocab(op) * (double)op->u.row.cols * e;
    return all * passes;
}

static double conv_bytes(const ft_op *op, double e)
{
    double out_h = ft__conv_out(op->u.conv.h, op->u.conv.r, op->u.conv.stride, op->u.conv.pad);
    double out_w = ft__conv_out(op->u.conv.w, op->u.conv.s, op->u.conv.stride, op->u.conv.pad);
    double x = (double)op->u.conv.n * (double)op->u.conv.c * (double)op->u.conv.h * (double)op->u.conv.w;
    double w = (double)op->u.conv.k * (double)op->u.conv.c * (double)op->u.conv.r * (double)op->u.conv.s /
               (double)op->u.conv.groups;
    double y = (double)op->u.conv.n * (double)op->u.conv.k * out_h * out_w;
    /* A stride beyond the filter leaves pixels out. */
    x *= fmin(1, (double)op->u.conv.r / (double)op->u.conv.stride) *
         fmin(1, (double)op->u.conv.s / (double)op->u.conv.stride);
    if (op->u.conv.depth > 1) x /= (double)op->u.conv.depth;
    double once = e * (x + w + y);
    return once * ft__conv_products(op);
}

static double moe_bytes(const ft_op *op)
{
    double routed = (double)op->u.moe.tokens * (double)op->u.moe.topk, skew = op->u.moe.skew;
    /* Experts without a token leave their weights unread. With tokens enough everybody gets one. */
    double skewed = FT_K_EXPERTS_IDLE_SKEWED * fmin(skew / FT_K_EXPERTS_SKEW_MOST, 1);
    double idle = skew > 0 ? FT_K_EXPERTS_IDLE_DRAWN + skewed : 0;
    double each = routed / (double)op->u.moe.experts / FT_K_EXPERTS_TOKENS_EACH;
    return mixture_bytes(op, 1 - idle / (1 + each * each));
}

/* The buffer is read or written once, its other side is whole or a rank's share. */
static double collective_bytes(const ft_op *op)
{
    double n = fmax(1, (double)op->u.collective.ranks);
    int c = op->u.collective.op;
    bool share = c == FT_COLLECTIVE_ALL_GATHER || c == FT_COLLECTIVE_REDUCE_SCATTER;
    return op->u.collective.bytes * (share ? 1 + 1 / n : 2);
}

double ft__op_bytes(const ft_op *op)
{
    const double e = ft_dtype_bytes(op->dtype);
    switch (op->kind) {
    case FT_OP_GEMM: return gemm_bytes(op, e);
    case FT_OP_ATTENTION: return attention_bytes(op, e);
    case FT_OP_MLA: return mla_bytes(op, e);
    case FT_OP_ELEMENTWISE: return elementwise_bytes(op, e);
    case FT_OP_ROW: return row_bytes(op, e);
    case FT_OP_CONV2D: return conv_bytes(op, e);
    case FT_OP_MOE: return moe_bytes(op);
    case FT_OP_OPTIMIZER: return (double)op->u.optimizer.params * optimizer_bytes_per_param(op->name, e);
    case FT_OP_QUANTIZE:
        return (double)op->u.quantize.rows * (double)op->u.quantize.cols * (2 + e); /* bf16 on one side */
    case FT_OP_COLLECTIVE: return collective_bytes(op);
    default: return op->u.other.bytes;
    }
}
