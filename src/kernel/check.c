/* Is this operator one that can be asked for? Sizes positive and small enough that no product overflows a double's
 * exactness where it matters, dtypes the device has, geometry that exists. */
#include <string.h>

#include "graph/operator.h"
#include "kernel/kernel.h"
#include "kernel/moe_backend.h"
#include "kernel/weight_only.h"

static ft_status size_ok(const char *key, int64_t value, ft_error *err)
{
    if (value >= 1 && value <= FT_LARGEST_SIZE) return FT_OK;
    return ft__fail_value(err, FT_E_RANGE, key, (double)value, "\"%s\" must be a whole number from 1 to 2^40, got %lld",
                          key, (long long)value);
}

static ft_status volume_ok(const char *what, double elements, ft_error *err)
{
    if (elements <= FT_LARGEST_TENSOR) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, what, 0, 0, "%s has %.3g elements; tensors of more than 1e15 are not forecast",
                       what, elements);
}

#define NEED(key, value) FT_TRY(size_ok(key, value, err))

static ft_status dtype_ok(const ft_device *d, const ft_op *op, ft_error *err)
{
    bool matrix = op->kind == FT_OP_GEMM || op->kind == FT_OP_ATTENTION || op->kind == FT_OP_MLA ||
                  op->kind == FT_OP_CONV2D || op->kind == FT_OP_MOE;
    if (!matrix || d->peak_tflops[op->dtype] > 0) return FT_OK;
    static const ft_dtype instead[] = {FT_FP8, FT_BF16, FT_FP16, FT_TF32, FT_FP32};
    const char *would = "fp32";
    for (size_t i = 0; i < sizeof instead / sizeof *instead; i++)
        if (ft_dtype_bytes(instead[i]) >= ft_dtype_bytes(op->dtype) && d->peak_tflops[instead[i]] > 0) {
            would = ft_dtype_name(instead[i]);
            break;
        }
    return ft__fail_at(err, FT_E_UNSUPPORTED, "dtype", 0, 0, "%s has no %s; frameworks would run %s instead", d->name,
                       ft_dtype_name(op->dtype), would);
}

/* Weights in fewer bits than the arithmetic has: stored wider they would be cast, which is another operator. */
static ft_status weights_ok(const ft_op *op, const ft_device *device, ft_error *err)
{
    if (op->kind == FT_OP_GEMM && !ft__weight_kernel_runs(device, (ft_weight_kernel)op->u.gemm.by))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "weight_kernel", 0, 0, "%s has no kernels for %s",
                           ft__weight_kernel_name((ft_weight_kernel)op->u.gemm.by), device->name);
    if (op->weights == FT_STORED_AS_COMPUTED || (op->kind != FT_OP_GEMM && op->kind != FT_OP_MOE)) return FT_OK;
    const char *stored = ft__storage_name(op->weights), *math = ft_dtype_name(op->dtype);
    if (ft__stored_bytes(op) >= 1 && ft_dtype_bytes(op->dtype) < 1)
        return ft__fail_at(
            err, FT_E_RANGE, "weights_dtype", 0, 0,
            "\"weights_dtype\" \"%s\" is wider than \"dtype\" \"%s\": expected weights of as many bits or "
            "fewer",
            stored, math);
    if (op->weights == FT_STORED_FP8_BLOCK && op->dtype != FT_FP8 && ft_dtype_bytes(op->dtype) < 2)
        return ft__fail_at(err, FT_E_RANGE, "weights_dtype", 0, 0,
                           "fp8 in blocks is multiplied in fp8 or widened, not in %s", math);
    return FT_OK;
}

static ft_status attention_ok(const ft_op *op, ft_error *err)
{
    NEED("batch", op->u.attention.batch);
    NEED("heads", op->u.attention.heads);
    NEED("kv_heads", op->u.attention.kv_heads);
    NEED("q_len", op->u.attention.q_len);
    NEED("kv_len", op->u.attention.kv_len);
    NEED("head_dim", op->u.attention.head_dim);
    if (op->u.attention.heads % op->u.attention.kv_heads)
        return ft__fail_at(err, FT_E_RANGE, "kv_heads", 0, 0,
                           "%lld query heads cannot share %lld key-value heads evenly",
                           (long long)op->u.attention.heads, (long long)op->u.attention.kv_heads);
    if (op->u.attention.head_dim > 1024)
        return ft__fail_at(err, FT_E_RANGE, "head_dim", 0, 0, "\"head_dim\" must be at most 1024, got %lld",
                           (long long)op->u.attention.head_dim);
    if (op->u.attention.window < 0 || op->u.attention.v_dim < 0)
        return ft__fail_at(err, FT_E_RANGE, "window", 0, 0, "\"window\" and \"v_dim\" must not be negative");
    double q = (double)op->u.attention.batch * (double)op->u.attention.heads * (double)op->u.attention.head_dim;
    FT_TRY(volume_ok("the query", q * (double)op->u.attention.q_len, err));
    return volume_ok("the cache", q * (double)op->u.attention.kv_len, err);
}

static ft_status conv_ok(const ft_op *op, ft_error *err)
{
    NEED("n", op->u.conv.n);
    NEED("c", op->u.conv.c);
    NEED("h", op->u.conv.h);
    NEED("w", op->u.conv.w);
    NEED("k", op->u.conv.k);
    NEED("r", op->u.conv.r);
    NEED("s", op->u.conv.s);
    NEED("stride", op->u.conv.stride);
    NEED("groups", op->u.conv.groups);
    if (op->u.conv.pad < 0 || op->u.conv.pad > 65536)
        return ft__fail_at(err, FT_E_RANGE, "pad", 0, 0, "\"pad\" must be from 0 to 65536, got %lld",
                           (long long)op->u.conv.pad);
    if (op->u.conv.c % op->u.conv.groups || op->u.conv.k % op->u.conv.groups)
        return ft__fail_at(err, FT_E_RANGE, "groups", 0, 0, "%lld groups divide neither %lld nor %lld channels evenly",
                           (long long)op->u.conv.groups, (long long)op->u.conv.c, (long long)op->u.conv.k);
    if (op->u.conv.h + 2 * op->u.conv.pad < op->u.conv.r || op->u.conv.w + 2 * op->u.conv.pad < op->u.conv.s)
        return ft__fail_at(err, FT_E_RANGE, "r", 0, 0,
                           "a %lldx%lld filter does not fit a %lldx%lld image padded by %lld", (long long)op->u.conv.r,
                           (long long)op->u.conv.s, (long long)op->u.conv.h, (long long)op->u.conv.w,
                           (long long)op->u.conv.pad);
    double image = (double)op->u.conv.n * (double)op->u.conv.h * (double)op->u.conv.w;
    FT_TRY(volume_ok("the input", image * (double)op->u.conv.c, err));
    FT_TRY(volume_ok("the output", image * (double)op->u.conv.k, err));
    return volume_ok("the filter",
                     (double)op->u.conv.c * (double)op->u.conv.k * (double)op->u.conv.r * (double)op->u.conv.s, err);
}

static ft_status collective_ok(const ft_op *op, ft_error *err)
{
    NEED("ranks", op->u.collective.ranks);
    if (op->u.collective.op < 0 || op->u.collective.op >= FT_COLLECTIVE_COUNT)
        return ft__fail_at(err, FT_E_NAME, "op", 0, 0, "\"%.60s\" is not a collective", op->name ? op->name : "");
    if (!(op->u.collective.bytes >= 1 && op->u.collective.bytes <= FT_LARGEST_TENSOR))
        return ft__fail_value(err, FT_E_RANGE, "bytes", op->u.collective.bytes,
                              "\"bytes\" must be from 1 to 1e15, got %g", op->u.collective.bytes);
    if (!(op->u.collective.link_gbps >= 1e-3 && op->u.collective.link_gbps <= 1e6))
        return ft__fail_at(err, FT_E_RANGE, "link_gbps", 0, 0, "a link carries from 0.001 to 1e6 GB/s, got %g",
                           op->u.collective.link_gbps);
    return FT_OK;
}

static ft_status gemm_ok(const ft_op *op, ft_error *err)
{
    NEED("b", op->u.gemm.b);
    NEED("m", op->u.gemm.m);
    NEED("n", op->u.gemm.n);
    NEED("k", op->u.gemm.k);
    const char *l = op->u.gemm.layout;
    if ((l[0] != 'n' && l[0] != 't') || (l[1] != 'n' && l[1] != 't') || l[2])
        return ft__fail_at(err, FT_E_NAME, "layout", 0, 0, "\"layout\" must be nn, nt, tn or tt, got \"%.3s\"", l);
    double b = (double)op->u.gemm.b, m = (double)op->u.gemm.m, n = (double)op->u.gemm.n, k = (double)op->u.gemm.k;
    FT_TRY(volume_ok("A", b * m * k, err));
    FT_TRY(volume_ok("B", b * k * n, err));
    return volume_ok("C", b * m * n, err);
}

static ft_status mla_ok(const ft_op *op, ft_error *err)
{
    NEED("batch", op->u.mla.batch);
    NEED("heads", op->u.mla.heads);
    NEED("q_len", op->u.mla.q_len);
    NEED("kv_len", op->u.mla.kv_len);
    NEED("kv_lora", op->u.mla.kv_lora);
    NEED("rope_dim", op->u.mla.rope_dim);
    NEED("nope_dim", op->u.mla.nope_dim);
    NEED("v_dim", op->u.mla.v_dim);
    double batch = (double)op->u.mla.batch, width = (double)op->u.mla.kv_lora + (double)op->u.mla.rope_dim;
    FT_TRY(volume_ok("the query", batch * (double)op->u.mla.heads * (double)op->u.mla.q_len * width, err));
    return volume_ok("the cache", batch * (double)op->u.mla.kv_len * width, err);
}

static ft_status moe_ok(const ft_op *op, const ft_device *device, ft_error *err)
{
    NEED("tokens", op->u.moe.tokens);
    NEED("hidden", op->u.moe.hidden);
    NEED("inter", op->u.moe.inter);
    NEED("topk", op->u.moe.topk);
    NEED("experts", op->u.moe.experts);
    if (op->u.moe.topk > op->u.moe.experts)
        return ft__fail_at(err, FT_E_RANGE, "topk", 0, 0, "a token cannot go to %lld of %lld experts",
                           (long long)op->u.moe.topk, (long long)op->u.moe.experts);
    if (op->u.moe.ep > 1 && op->u.moe.experts % op->u.moe.ep)
        return ft__fail_at(err, FT_E_RANGE, "ep", 0, 0, "%lld experts cannot be divided evenly over %lld ranks",
                           (long long)op->u.moe.experts, (long long)op->u.moe.ep);
    if (!ft__moe_backend_runs(device, (ft_moe_backend)op->u.moe.backend))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "moe_backend", 0, 0, "%s has no kernels for %s",
                           ft__moe_backend_name((ft_moe_backend)op->u.moe.backend), device->name);
    double hidden = (double)op->u.moe.hidden;
    FT_TRY(volume_ok("the routed tokens", (double)op->u.moe.tokens * (double)op->u.moe.topk * hidden, err));
    return volume_ok("the experts", (double)op->u.moe.experts * hidden * (double)op->u.moe.inter, err);
}

static ft_status matrix_ok(int64_t rows, int64_t cols, ft_error *err)
{
    NEED("rows", rows);
    NEED("cols", cols);
    return volume_ok("the matrix", (double)rows * (double)cols, err);
}

static ft_status elementwise_ok(const ft_op *op, ft_error *err)
{
    NEED("numel", op->u.elementwise.numel);
    NEED("inputs", op->u.elementwise.inputs);
    return volume_ok("the operands", (double)op->u.elementwise.numel * op->u.elementwise.inputs, err);
}

static ft_status optimizer_ok(const ft_op *op, ft_error *err)
{
    NEED("params", op->u.optimizer.params);
    NEED("tensors", op->u.optimizer.tensors);
    return FT_OK;
}

/* Described by its bytes and its arithmetic alone. */
static ft_status other_ok(const ft_op *op, ft_error *err)
{
    if (!(op->u.other.bytes > 0 && op->u.other.bytes <= FT_LARGEST_TENSOR))
        return ft__fail_value(err, FT_E_RANGE, "bytes", op->u.other.bytes, "\"bytes\" must be from 1 to 1e15, got %g",
                              op->u.other.bytes);
    if (!(op->u.other.flops >= 0 && op->u.other.flops <= 1e21))
        return ft__fail_at(err, FT_E_RANGE, "flops", 0, 0, "\"flops\" must be from 0 to 1e21, got %g",
                           op->u.other.flops);
    return FT_OK;
}

static ft_status sizes_ok(const ft_op *op, const ft_device *device, ft_error *err)
{
    switch (op->kind) {
    case FT_OP_GEMM: return gemm_ok(op, err);
    case FT_OP_ATTENTION: return attention_ok(op, err);
    case FT_OP_MLA: return mla_ok(op, err);
    case FT_OP_ELEMENTWISE: return elementwise_ok(op, err);
    case FT_OP_ROW: return matrix_ok(op->u.row.rows, op->u.row.cols, err);
    case FT_OP_CONV2D: return conv_ok(op, err);
    case FT_OP_MOE: return moe_ok(op, device, err);
    case FT_OP_OPTIMIZER: return optimizer_ok(op, err);
    case FT_OP_QUANTIZE: return matrix_ok(op->u.quantize.rows, op->u.quantize.cols, err);
    case FT_OP_COLLECTIVE: return collective_ok(op, err);
    default: return other_ok(op, err);
    }
}

ft_status ft__op_check(const ft_op *op, const ft_device *device, ft_error *err)
{
    FT_TRY(sizes_ok(op, device, err));
    FT_TRY(weights_ok(op, device, err));
    return dtype_ok(device, op, err);
}
