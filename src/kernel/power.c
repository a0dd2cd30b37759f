/* Power: rate * energy per flop must fit the board's limit.
 *
 * Energies are effective figures, fitted to large GEMMs with random operands: 1.3 to 1.5 pJ/flop for bf16 through
 * mma.sync (Ampere, Ada, consumer Blackwell), 0.76 through Hopper's wgmma, 0.55 through Blackwell's tcgen05; fp8 costs
 * 0.55 of that, tf32 twice. On our H200 a stream of 8192^3 bf16 products falls from 779 to 653 TFLOP/s within a second,
 * by power, not by temperature. fp32 on vector units: 11.5 pJ/flop at 16 nm, 0.85 of that at 12, 0.42 at 7, 0.32 at 5
 * and 4 nm: what holds P4 at 4.5 of its 5.5 TFLOP/s, T4 at 4 of 8, L4 at 9 of 30 in large products, and leaves V100,
 * A100 and H100 alone.
 *
 * Leaves out: that zeros and constant operands cost far less (benchmarks with them run faster). */
#include "kernel/power.h"

#include <math.h>
#include <string.h>

/* What the arithmetic may draw: boards stop a little short of their limit, and memory, fans and leakage take a share
 * that small boards feel most (P4, T4, L4: 70 W, of which 43 are left). */
static double board_watts(const ft_device *device) { return fmax(0.9 * device->tdp_w - 20, 0.3 * device->tdp_w); }

double ft__energy_pj(const ft_device *device, ft_dtype dtype)
{
    static const struct {
        const char *generation;
        double pj; /* bf16 on matrix units */
    } matrix[] = {{"volta", 2.2}, {"turing", 2.0},  {"ampere", 1.3},     {"ampere_rtx", 1.4},
                  {"ada", 1.5},   {"hopper", 0.76}, {"blackwell", 0.55}, {"blackwell_rtx", 1.3},
                  {"cdna1", 1.9}, {"cdna2", 1.3},   {"cdna3", 0.75},     {"cdna4", 0.6}};
    double vector = 11.5;
    double nm = device->process_nm > 0 ? device->process_nm : 7;
    vector *= nm >= 16 ? 1 : nm >= 12 ? 0.85 : nm >= 7 ? 0.42 : 0.32;
    if (dtype == FT_FP32) return vector;
    if (dtype == FT_FP64) return 2 * vector;
    double pj = nm >= 12 ? 2.1 : nm >= 7 ? 1.3 : 0.8;
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++)
        if (!strcmp(matrix[i].generation, device->generation)) pj = matrix[i].pj;
    switch (dtype) {
    case FT_TF32: return 2 * pj;
    case FT_FP8:
    case FT_INT8: return 0.55 * pj;
    case FT_FP4: return 0.3 * pj;
    default: return pj;
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

/* In the steady state the controller averages over everything, memory and leakage of a hot chip included: so many times
 * the energy that decides within microseconds.
 *
 * Hopper, our H200 (8192^3): bf16 779 -> 653 TFLOP/s, fp16 748 -> 631 (653: its wider significand is not counted), tf32
 * 402 -> 349 (326), fp8 1235 (1188), fp32 51 -> 51. Blackwell in 16 bits: the 514 products of SimuMax's B200
 * (MooreThreads/SimuMax@4dcaae5, its table of efficiencies: back to back, 1,000 W) hold 1.0 to 1.15 PFLOP/s, 1.075 in
 * the middle, where the first, cold ones reach 1.45; in 8 and 4 bits Megatron-Bridge's published runs hold what
 * Hopper's factor allows. Chips of 7 nm and before leave no such room between what they start with and what they hold:
 * published runs of days on A100s spend 0.67 to 0.78 of the peak over whole steps (MosaicML, 13B and 30B, recomputed,
 * whether or not their checkpoints stopped early), which 1.23 would forbid, and Megatron's (SC21, sixteen runs without
 * ZeRO) come out within 9 % with 1.02. */
static double steady(const ft_device *device, ft_dtype dtype)
{
    double nm = device->process_nm > 0 ? device->process_nm : 7;
    if (nm >= 7) return 1.02;
    return !strcmp(device->generation, "blackwell") && ft_dtype_bytes(dtype) == 2 ? 1.49 : 1.23;
}

double ft__power_draw(const ft_device *device, const ft_op *op, double flops, double ms)
{
    bool arithmetic = op->kind == FT_OP_GEMM || op->kind == FT_OP_ATTENTION || op->kind == FT_OP_CONV2D ||
                      op->kind == FT_OP_MOE || op->kind == FT_OP_MLA;
    /* Vector units: fitted to kernels of up to seconds, what a board holds for long is in the forecast already. */
    if (!arithmetic || ms <= 0 || op->dtype == FT_FP32 || op->dtype == FT_FP64) return 0;
    return steady(device, op->dtype) * ft__energy_pj(device, op->dtype) * flops / (ms * 1e9) / board_watts(device);
}

double ft__power_alone(const ft_device *device, double draw, double ms)
{
    if (!(draw > 1) || !(ms > 0)) return 1;
    /* Benchmarks repeat a kernel for a few milliseconds, and long kernels are their own neighbours: on our H200
     * products of 0.2 ms are as fast in whole models of short steps as alone, those of 3 ms a tenth faster, of 10 ms
     * a fifth. The constants were fitted with the one of timeline/timed.c. */
    if (!strcmp(device->name, "h200_sxm")) return fmin(1 + 2 * (draw - 1) * ms / (ms + 5), 1.3);
    /* Everybody else's tables are engines', of six replays: large bf16 products of TensorRT-LLM's (random operands)
     * lose 1, 3, 8 and 15 % of their rate on a B200 from half a millisecond to 1, 2, 8 and 16, on an H100 1, 3, 6 and
     * 9 %. With draws of 1.4 and 1.2 that is a half-way of 29 and 14 ms. */
    return 1 + (draw - 1) * ms / (ms + 20);
}
