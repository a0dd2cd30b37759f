/* weight_only.c: y = x W with W in 4 or 8 bits and x in 16: read as stored, widened on the way, multiplied in 16 bits.
 *
 * The same product in 16 bits is measured on many GPUs; what differs is the traffic and what widening costs:
 *   arithmetic  = dense body * min(1, flops time / bytes time) / rate     (its part beyond waiting for bf16 weights)
 *   stream      = stored bytes / (share * bandwidth)
 *   walk        = K * ns                                                  (one block along K: what small outputs show)
 *   widening    = K N (1 and rows * share) / (per clock * SMs * clock)   (where it is the vector units' work)
 *   T           = launch + start + cube-norm of these
 *   scaling     = M N K / (per lane and clock * lanes * SMs * clock)     (where sums of integers are scaled in between)
 * llama.cpp rounds activations to 8 bits and multiplies integers: there the dense body is the int8 product's, and every
 * 32 products are scaled by what their block has, lane by lane, which is slower than any of its matrix units.
 * Some libraries widen with a kernel of its own once there are more than a few rows, and multiply densely: a pass over
 * the weights and the dense product. Shares and rates are each kernel's own (data/constants/kernel/weight_only.json).
 *
 * Leaves out: act-order permutations, group sizes other than usual, kernels that need a layout made at load time. */
#include "kernel/weight_only.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/expert.h"
#include "kernel/kernel.h"
#include "kernel/weight_only_constants.h"

static const char *const names[FT_WEIGHT_KERNEL_COUNT] = {
    [FT_WEIGHTS_ANY] = "any",         [FT_WEIGHTS_MARLIN] = "marlin", [FT_WEIGHTS_CUTLASS] = "cutlass",
    [FT_WEIGHTS_AWQ] = "awq",         [FT_WEIGHTS_GPTQ] = "gptq",     [FT_WEIGHTS_BITSANDBYTES] = "bitsandbytes",
    [FT_WEIGHTS_TORCHAO] = "torchao", [FT_WEIGHTS_GGUF] = "gguf"};

const char *ft__weight_kernel_name(ft_weight_kernel kernel) { return names[kernel]; }

bool ft__weight_only(const ft_op *op)
{
    return op->kind == FT_OP_GEMM && op->weights != FT_STORED_AS_COMPUTED && ft_dtype_bytes(op->dtype) >= 2 &&
           ft_dtype_bytes(op->dtype) < 4;
}

/* Marlin's and CUTLASS' kernels are written in NVIDIA's matrix and copy instructions, from Ampere's on. */
bool ft__weight_kernel_runs(const ft_device *device, ft_weight_kernel kernel)
{
    if (kernel != FT_WEIGHTS_MARLIN && kernel != FT_WEIGHTS_CUTLASS) return true;
    return device->vendor == FT_VENDOR_NVIDIA && device->async_copy != FT_COPY_NONE;
}

/* The kernel said, or the usual one for the format on this device. */
static ft_weight_kernel kernel_of(const ft_device *device, const ft_op *op)
{
    if (op->u.gemm.by != FT_WEIGHTS_ANY) return (ft_weight_kernel)op->u.gemm.by;
    if (op->weights == FT_STORED_NF4) return FT_WEIGHTS_BITSANDBYTES;
    return ft__weight_kernel_runs(device, FT_WEIGHTS_MARLIN) ? FT_WEIGHTS_MARLIN : FT_WEIGHTS_GPTQ;
}

static const struct ft__k_weight_only_kernels *figures_of(ft_weight_kernel kernel)
{
    int at = 0;
    while (at < FT_K_WEIGHT_ONLY_KERNELS_COUNT - 1 && strcmp(ft__k_weight_only_kernels[at].kernel, names[kernel]) != 0)
        at++;
    return &ft__k_weight_only_kernels[at];
}

ft_dtype ft__multiplied_in(const ft_device *device, const ft_op *op)
{
    bool integers = ft__weight_only(op) && figures_of(kernel_of(device, op))->scaled_per_lane > 0;
    return integers && device->peak_tflops[FT_INT8] > 0 ? FT_INT8 : op->dtype;
}

/* Widening first: every element is read as stored and written in 16 bits. */
static double widen_ms(const ft_device *device, const ft_op *op, double launch_ms)
{
    double elements = (double)op->u.gemm.b * (double)op->u.gemm.n * (double)op->u.gemm.k;
    return launch_ms + elements * (ft__stored_bytes(op) + ft_dtype_bytes(op->dtype)) /
                           (FT_K_WEIGHT_ONLY_WIDEN_SHARE * device->memory_gbps * 1e6);
}

static double fused_ms(const ft_device *device, const ft_op *op, const ft_forecast *dense, ft_dtype units,
                       const struct ft__k_weight_only_kernels *k)
{
    double m = (double)op->u.gemm.m, body = fmax(dense->ms - dense->launch_ms, 0);
    double flops_ms = dense->flops / (ft__peak_tflops(device, units) * 1e9),
           bytes_ms = dense->bytes / (device->memory_gbps * 1e6);
    double rate = k->few + (k->many - k->few) * m / (m + k->half_rows);
    double arithmetic = body * fmin(1, flops_ms / bytes_ms) / rate;
    double share = ft__stored_bytes(op) < 1 ? k->stream4 : k->stream8;
    double stream = ft__op_bytes(op) / (share * device->memory_gbps * 1e6);
    double walk = (double)op->u.gemm.k * k->serial_ns * 1e-6 * ft__clock_scale(device);
    double widen = 0; /* on the vector units, element by element */
    if (k->widen_per_clock > 0 && ft__stored_bytes(op) < 1)
        widen = (double)op->u.gemm.b * (double)op->u.gemm.n * (double)op->u.gemm.k * hypot(1, k->widen_rows * m) /
                (k->widen_per_clock * device->sms * device->boost_mhz * 1e3);
    double scale = 0; /* by all lanes that the schedulers issue to, once a block of weights and row */
    if (k->scaled_per_lane > 0)
        scale = (double)op->u.gemm.b * (double)op->u.gemm.n * (double)op->u.gemm.k * m /
                (k->scaled_per_lane * device->issue_lanes_per_sm * device->sms * device->boost_mhz * 1e3);
    return dense->launch_ms + k->start_us * 1e-3 +
           cbrt(arithmetic * arithmetic * arithmetic + stream * stream * stream + walk * walk * walk +
                widen * widen * widen + scale * scale * scale);
}

ft_status ft__weight_only_forecast(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                                   ft_forecast *out, ft_error *err)
{
    ft_weight_kernel kernel = kernel_of(device, op);
    const struct ft__k_weight_only_kernels *k = figures_of(kernel);
    ft_op plain = *op;
    ft_forecast dense;
    plain.weights = FT_STORED_AS_COMPUTED;
    plain.dtype = ft__multiplied_in(device, op);
    FT_TRY(ft__expert_forecast(p, device, &plain, quantile, &dense, err));
    bool apart = k->fused_rows > 0 && op->u.gemm.m > k->fused_rows;
    double ms = apart ? widen_ms(device, op, dense.launch_ms) + dense.ms : fused_ms(device, op, &dense, plain.dtype, k);
    ms = fmax(ms, ft__floor_ms(device, op));
    double wide = exp(k->log_width * quantile / FT_K_WEIGHT_ONLY_WIDTH_LEVEL), low = dense.low_ms / dense.ms,
           high = dense.high_ms / dense.ms;
    ft__forecast_begin(device, op, out);
    out->ms = ms;
    out->low_ms = ms * fmin(low, 1 / wide);
    out->high_ms = ms * fmax(high, wide);
    out->launch_ms = dense.launch_ms;
    out->sustained_ms = ms * (dense.ms > 0 ? fmax(1, dense.sustained_ms / dense.ms) : 1);
    out->source = FT_SOURCE_PHYSICS;
    out->kin = dense.kin;
    out->family = "weight_only";
    bool held = apart ? dense.bound == FT_BOUND_MEMORY
                      : out->bytes / (device->memory_gbps * 1e6) >
                            out->flops / (ft__peak_tflops(device, plain.dtype) * 1e9);
    out->bound = held ? FT_BOUND_MEMORY : FT_BOUND_COMPUTE;
    snprintf(out->note, sizeof out->note, "%s weights, %s%s", ft__storage_name(op->weights), names[kernel],
             apart ? ": widened by a kernel of their own, then a dense product" : "");
    return FT_OK;
}
