/* energy.c: watts from what runs.
 *
 * A GPU that waits draws its share; a kernel adds what its multiprocessors draw, more of it the less they wait for
 * memory, and what its bytes and its arithmetic take. The board's controller averages over tenths of a second: what
 * would go above its limit is held there and paid in clock, which forecasts of time have already (power.c). So nearly
 * all sustained work that fills a large GPU comes out at the limit, small kernels far below it, and steps that wait for
 * the host near an idle GPU.
 *
 * Shares are of the board's limit: what was measured on one GPU carries to others as far as they are alike, and the
 * interval says so. Leaves out: operands (zeros draw 40 % less), clocks below the boost, temperature. */
#include "kernel/energy.h"

#include <math.h>
#include <string.h>

#include "kernel/energy_constants.h"
#include "kernel/power.h"

double ft__watts_awake(const ft_device *device) { return FT_K_ENERGY_AWAKE_SHARE * device->tdp_w; }

double ft__watts_most(const ft_device *device) { return FT_K_ENERGY_HOLD_SHARE * ft__watts_limit(device); }

static bool multiplies(const ft_op *op)
{
    return op->kind == FT_OP_GEMM || op->kind == FT_OP_ATTENTION || op->kind == FT_OP_MLA || op->kind == FT_OP_CONV2D ||
           op->kind == FT_OP_MOE;
}

static double flop_pj(const ft_device *device, const ft_op *op)
{
    if (!multiplies(op)) return FT_K_ENERGY_POINTWISE * ft__energy_pj(device, FT_FP32);
    bool vector = op->dtype == FT_FP32 || op->dtype == FT_FP64;
    return (vector ? FT_K_ENERGY_VECTOR : FT_K_ENERGY_MATRIX) * ft__energy_pj(device, op->dtype);
}

double ft__kernel_joules(const ft_device *device, const ft_op *op, double flops, double bytes, double ms,
                         double launch_ms)
{
    if (!(ms > 0) || !(device->tdp_w > 0)) return 0;
    double waits = fmin(bytes / (ms * device->memory_gbps * 1e6), 1);
    double busy_s = fmax(ms - fmax(launch_ms, 0), 0) * 1e-3;
    bool cached = !multiplies(op) && bytes < device->l2_mib * 1048576;
    return device->tdp_w * (FT_K_ENERGY_ENGAGED_SHARE + FT_K_ENERGY_ISSUE_SHARE * (1 - waits)) * busy_s +
           1e-12 * bytes * FT_K_ENERGY_BYTE_PJ * (cached ? FT_K_ENERGY_CACHED_SHARE : 1) +
           1e-12 * flops * flop_pj(device, op);
}

double ft__clock_slowdown(const ft_device *device, double watts)
{
    double over = (ft__watts_awake(device) + watts) / fmax(ft__watts_most(device), 1);
    return pow(fmax(over, 1), FT_K_ENERGY_CLOCK_POWER);
}

double ft__kernel_steady_ms(const ft_device *device, const ft_op *op, const ft_forecast *f)
{
    double joules = ft__kernel_joules(device, op, f->flops, f->bytes, f->ms, f->launch_ms);
    return fmax(f->sustained_ms, f->ms * ft__clock_slowdown(device, joules / (f->ms * 1e-3)));
}

double ft__exchange_joules(const ft_device *device, double ms)
{
    return FT_K_ENERGY_EXCHANGE_SHARE * device->tdp_w * fmax(ms, 0) * 1e-3;
}

static double spread(const ft_device *device)
{
    int at = 0; /* "*" comes last */
    while (at < FT_K_ENERGY_SPREAD_COUNT - 1 && strcmp(ft__k_energy_spread[at].gpu, device->name) != 0) at++;
    return ft__k_energy_spread[at].share;
}

ft_energy ft__energy_of(const ft_device *device, double joules, double ms, double low_ms, double high_ms, double level)
{
    ft_energy e = {0};
    if (!(ms > 0) || !(device->tdp_w > 0)) return e;
    double most = ft__watts_most(device);
    e.watts = fmin(ft__watts_awake(device) + joules / (ms * 1e-3), most);
    e.joules = e.watts * ms * 1e-3;
    e.node_watts = e.watts + FT_K_ENERGY_NODE_SHARE * device->tdp_w;
    /* Watts and time do not know of each other. At the limit watts are sure, and how far the clock falls is not. */
    double off = spread(device) * level;
    e.low_joules = e.joules * (1 - fmin(hypot(1 - low_ms / ms, off), 1));
    e.high_joules = e.joules * (1 + hypot(high_ms / ms - 1, off));
    return e;
}
