/* The roofline: peaks and floors from the spec sheet. */
#include <math.h>

#include "device/traits.h"
#include "graph/operator.h"
#include "kernel/elementwise_constants.h"
#include "kernel/gemm_constants.h"
#include "kernel/kernel.h"
#include "kernel/weight_only.h"

double ft__peak_tflops(const ft_device *device, ft_dtype dtype)
{
    /* What runs when the device has no such format: the next wider one it has. */
    static const ft_dtype wider[FT_DTYPE_COUNT] = {
        [FT_FP64] = FT_FP32, [FT_FP32] = FT_FP32, [FT_TF32] = FT_FP32, [FT_FP16] = FT_FP32,
        [FT_BF16] = FT_FP16, [FT_FP8] = FT_BF16,  [FT_INT8] = FT_FP16, [FT_FP4] = FT_FP8};
    for (int i = 0; i < FT_DTYPE_COUNT && device->peak_tflops[dtype] <= 0; i++) dtype = wider[dtype];
    return device->peak_tflops[dtype] > 0 ? device->peak_tflops[dtype] : 1;
}

/* Published matrix peaks are quoted at less than the boost clock (Hopper: 1,830 of 1,980 MHz), which is what short
 * kernels run at. */
double ft__matrix_boost(const ft_device *device)
{
    bool faster = device->matrix_mhz > 0 && ft__running_mhz(device) > device->matrix_mhz;
    return faster ? ft__running_mhz(device) / device->matrix_mhz : 1;
}

/* Times in the units and in the rest of the SM join like a norm of the third order: 1/e^3 = 1 + rest^3. Half the rate
 * leaves the rest an eighth of its weight. */
double ft__capped_efficiency(double efficiency, double cap)
{
    if (!(cap < 1) || !(efficiency > 0) || efficiency >= FT_K_GEMM_CAPPED_MOST) return efficiency;
    double rest = 1 / (efficiency * efficiency * efficiency) - 1;
    return fmin(1 / cbrt(1 + rest * cap * cap * cap), FT_K_GEMM_CAPPED_MOST);
}

double ft__plain_memory(const ft_device *device)
{
    return device->memory_is_hbm || device->inline_ecc ? 1 : FT_K_ELEMENTWISE_PLAIN_MEMORY;
}

/* fp32 of three products of tf32, on GPUs that multiply it. */
static double in_three(const ft_device *device, const ft_op *op)
{
    enum { PRODUCTS = 3 };
    return op->dtype == FT_FP32 && device->vendor == FT_VENDOR_NVIDIA ? device->peak_tflops[FT_TF32] / PRODUCTS : 0;
}

/* Pointwise and row operators run on the vector units in fp32, whatever their operands' format. */
double ft__arithmetic_tflops(const ft_device *device, const ft_op *op)
{
    switch (op->kind) {
    case FT_OP_ATTENTION:
    case FT_OP_MLA: /* over a narrower cache both products may run in its format: B200's tables show fp8's rate */
        return fmax(in_three(device, op),
                    fmax(ft__peak_tflops(device, op->dtype), ft__peak_tflops(device, op->kv_dtype)));
    case FT_OP_GEMM: return ft__peak_tflops(device, ft__multiplied_in(device, op));
    case FT_OP_CONV2D:
    case FT_OP_MOE: return ft__peak_tflops(device, op->dtype);
    default: {
        double vector = device->vector_tflops[FT_FP32];
        return vector > 0 ? vector : ft__peak_tflops(device, FT_FP32);
    }
    }
}

/* What one rank must send at the link's nominal rate. Reduced in the switch, a buffer leaves each rank once. */
static double wire_ms(const ft_op *op)
{
    double n = (double)op->u.collective.ranks, share = (n - 1) / n;
    switch (op->u.collective.op) {
    case FT_COLLECTIVE_ALL_REDUCE: share *= op->u.collective.reduces && n > 2 ? 1 : 2; break;
    case FT_COLLECTIVE_ALL_GATHER:
    case FT_COLLECTIVE_REDUCE_SCATTER:
    case FT_COLLECTIVE_ALL_TO_ALL: break;
    default: share = n > 1 ? 1 : 0;
    }
    return op->u.collective.bytes * share / (op->u.collective.link_gbps * 1e6);
}

double ft__roofline_ms(const ft_device *device, const ft_op *op)
{
    if (op->kind == FT_OP_COLLECTIVE) return wire_ms(op);
    return fmax(ft__op_flops(op) / (ft__arithmetic_tflops(device, op) * 1e9),
                ft__op_bytes(op) / (device->memory_gbps * 1e6));
}

double ft__floor_ms(const ft_device *device, const ft_op *op)
{
    if (op->kind == FT_OP_COLLECTIVE) return wire_ms(op);
    double compute = ft__op_flops(op) / (ft__arithmetic_tflops(device, op) * ft__matrix_boost(device) * 1e9);
    /* Winograd's F(4x4, 3x3) multiplies 36 times where the definition does 144; on vector units libraries use it, and
     * for larger filters the Fourier transform (5x5 and 7x7 on our H200: 1.7 and 1.2 times faster than their flops). */
    bool vector = op->dtype == FT_FP32 || device->matrix_fma_per_clk_sm <= 0;
    if (op->kind == FT_OP_CONV2D && vector && op->u.conv.r >= 3 && op->u.conv.s >= 3 && op->u.conv.stride == 1)
        compute /= 4;
    /* A backward pass is up to two kernels, and quantising on the fly walks over the activations two times before the
     * product does: each walk may find what the one before left. */
    double walks = op->pass == FT_PASS_FWD ? 1 : op->pass == FT_PASS_BWD ? 2 : 3;
    if (op->kind == FT_OP_GEMM && op->u.gemm.quantized == 0 && ft_dtype_bytes(op->dtype) < 2) walks *= 3;
    double cached = walks * device->l2_mib * 1048576;
    double memory = fmax(0, ft__op_least_bytes(op) - cached) / (device->memory_gbps * 1e6);
    return fmax(compute, memory);
}
