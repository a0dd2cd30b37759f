/* Power: rate * energy per flop must fit the board's limit.
 *
 * Energies are effective figures, fitted to large GEMMs with random operands (data/constants/kernel/power.json). On our
 * H200 a stream of 8192^3 bf16 products falls from 779 to 653 TFLOP/s within a second, by power, not by temperature.
 *
 * Leaves out: that zeros and constant operands cost far less (benchmarks with them run faster). */
#include "kernel/power.h"

#include <math.h>
#include <string.h>

#include "device/traits.h"
#include "kernel/power_constants.h"

double ft__watts_limit(const ft_device *device)
{
    bool capped = device->power_cap_w > 0 && device->power_cap_w < device->tdp_w;
    return capped ? device->power_cap_w : device->tdp_w;
}

/* What the arithmetic may draw: boards stop a little short of their limit, and memory, fans and leakage take a share
 * that small boards feel most. */
static double board_watts(const ft_device *device)
{
    double limit = ft__watts_limit(device);
    return fmax(FT_K_POWER_BOARD_SHARE * limit - FT_K_POWER_BOARD_REST_W, FT_K_POWER_BOARD_LEAST * limit);
}

static double process_nm(const ft_device *device)
{
    return device->process_nm > 0 ? device->process_nm : FT_K_POWER_DEFAULT_NM;
}

static double vector_pj(const ft_device *device)
{
    int at = 0;
    while (at < FT_K_POWER_VECTOR_SHARE_COUNT - 1 && process_nm(device) < ft__k_power_vector_share[at].nm) at++;
    return FT_K_POWER_VECTOR_PJ * ft__k_power_vector_share[at].share;
}

/* bf16 on matrix units */
static double matrix_pj(const ft_device *device)
{
    if (device->matrix_pj_per_flop > 0) return device->matrix_pj_per_flop;
    int at = 0;
    while (at < FT_K_POWER_OTHER_MATRIX_PJ_COUNT - 1 && process_nm(device) < ft__k_power_other_matrix_pj[at].nm) at++;
    return ft__k_power_other_matrix_pj[at].pj;
}

double ft__energy_pj(const ft_device *device, ft_dtype dtype)
{
    switch (dtype) {
    case FT_FP32: return vector_pj(device);
    case FT_FP64: return FT_K_POWER_FP64 * vector_pj(device);
    case FT_TF32: return FT_K_POWER_TF32 * matrix_pj(device);
    case FT_FP8:
    case FT_INT8: return FT_K_POWER_EIGHT_BITS * matrix_pj(device);
    case FT_FP4: return FT_K_POWER_FOUR_BITS * matrix_pj(device);
    default: return matrix_pj(device);
    }
}

double ft__power_slowdown(const ft_device *device, ft_dtype dtype, double energy, double tflops, double x)
{
    double watts = energy * ft__energy_pj(device, dtype) * tflops; /* pJ * Tflop/s = W */
    double limit = board_watts(device);
    if (!(watts > limit)) return 1;
    double ratio = limit / watts;
    return 1 / (1 - (1 - ratio) * x / (1 + x));
}

double ft__power_share(const ft_device *device)
{
    double watts = matrix_pj(device) * device->peak_tflops[FT_FP16];
    double limit = board_watts(device);
    return watts > limit ? limit / watts : 1;
}

/* In the steady state the controller averages over everything, memory and leakage of a hot chip included: so many times
 * the energy that decides within microseconds. Chips of 7 nm and before leave no such room between what they start with
 * and what they hold, nor do cards, whose memory stands beside the chip and not in its package. */
static double steady(const ft_device *device, ft_dtype dtype)
{
    bool holds = process_nm(device) >= FT_K_POWER_STEADY_OLD_NM || !device->memory_is_hbm;
    if (holds) return FT_K_POWER_STEADY_OLD;
    return ft__joined_dies(device) && ft_dtype_bytes(dtype) == 2 ? FT_K_POWER_STEADY_TWO_DIES : FT_K_POWER_STEADY;
}

double ft__power_draw(const ft_device *device, const ft_op *op, double flops, double ms)
{
    bool product = op->kind == FT_OP_GEMM || op->kind == FT_OP_ATTENTION || op->kind == FT_OP_MOE ||
                   op->kind == FT_OP_MLA;
    /* Convolutions in fp32 may run fewer flops than they count (Winograd), and have what a board holds for long in
     * their forecast already. Of fp64 nothing was measured. */
    bool counted = product || (op->kind == FT_OP_CONV2D && op->dtype != FT_FP32);
    if (!counted || ms <= 0 || op->dtype == FT_FP64) return 0;
    return steady(device, op->dtype) * ft__energy_pj(device, op->dtype) * flops / (ms * 1e9) / board_watts(device);
}

double ft__power_alone(const ft_device *device, double draw, double ms)
{
    if (!(draw > 1) || !(ms > 0)) return 1;
    /* By how the GPU's kernels were timed; "*" comes last. */
    int at = 0;
    while (at < FT_K_POWER_BENCHMARKS_COUNT - 1 && strcmp(ft__k_power_benchmarks[at].gpu, device->name) != 0) at++;
    double gain = ft__k_power_benchmarks[at].gain, half_ms = ft__k_power_benchmarks[at].half_ms;
    return fmin(1 + gain * (draw - 1) * ms / (ms + half_ms), ft__k_power_benchmarks[at].most);
}

/* No two chips of a kind leak and switch alike. Of n draws from a normal distribution the largest lies, on average,
 * that many deviations above the middle: within 0.12 from two on. */
double ft__power_hungriest(int64_t gpus)
{
    if (gpus < 2) return 1;
    return 1 + FT_K_POWER_UNLIKE * (sqrt(2 * log((double)gpus)) - 0.5);
}
