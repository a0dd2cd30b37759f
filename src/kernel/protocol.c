/* What NCCL does with a collective inside one node: how many bytes and steps it takes, and which protocol it picks.
 *
 * The pick is what NCCL's own cost model decides (NCCL 2.2x, src/graph/tuning.cc and topo.h): latency + w / bandwidth,
 * the least one wins (its figures: data/constants/kernel/collective.json). Its estimates are not the truth: where it
 * switches from LL to Simple between two GPUs the time doubles (A100 at 1 MB, H100 at 2, B200 at 4, each as the model's
 * figures say). */
#include <math.h>

#include "graph/operator.h"
#include "kernel/collective.h"
#include "kernel/collective_constants.h"

const char *const ft__protocol_notes[FT_PROTOCOL_COUNT] = {
    [FT_LL] = "LL", [FT_LL128] = "LL128", [FT_SIMPLE] = "Simple", [FT_NVLS] = "NVLS"};

double ft__collective_wire(int op, double n)
{
    switch (op) {
    case FT_COLLECTIVE_ALL_REDUCE: return 2 * (n - 1) / n;
    case FT_COLLECTIVE_ALL_GATHER:
    case FT_COLLECTIVE_REDUCE_SCATTER:
    case FT_COLLECTIVE_ALL_TO_ALL: return (n - 1) / n;
    default: return n > 1 ? 1 : 0;
    }
}

/* Beyond eight ranks trees take over: their depth grows with the logarithm. */
double ft__collective_steps(int op, double n)
{
    switch (op) {
    case FT_COLLECTIVE_ALL_REDUCE: return n <= 8 ? 2 * (n - 1) : 14 + 4 * log2(n / 8);
    case FT_COLLECTIVE_ALL_TO_ALL: return log2(n);
    case FT_COLLECTIVE_SEND_RECV: return 1;
    default: return n - 1;
    }
}

bool ft__collective_pairwise(const ft_op *op)
{
    return op->u.collective.op == FT_COLLECTIVE_ALL_TO_ALL || op->u.collective.op == FT_COLLECTIVE_SEND_RECV;
}

bool ft__collective_eight_bit(const ft_op *op)
{
    int c = op->u.collective.op;
    return (c == FT_COLLECTIVE_ALL_REDUCE || c == FT_COLLECTIVE_REDUCE_SCATTER || c == FT_COLLECTIVE_REDUCE) &&
           ft_dtype_bytes(op->dtype) <= 1;
}

bool ft__collective_old(const ft_op *op) { return op->u.collective.nccl > 0 && op->u.collective.nccl < FT_NCCL_NEWER; }

/* Pairs exchange by LL on one channel, and then by Simple. NCCL 2.23, and 2.27 on A100's NVLink 3, open more channels
 * and stay with LL for longer. */
bool ft__collective_many_channels(const ft_op *op)
{
    return !op->u.collective.pcie &&
           (op->u.collective.link_gbps <= FT_K_COLLECTIVE_OLD_LINK_GBPS || ft__collective_old(op));
}

/* Shares of the nominal link that NCCL counts with. */
static void nccl_rates(const ft_op *op, double rate[FT_NVLS])
{
    double u = op->u.collective.link_gbps;
    rate[FT_LL] = ft__k_collective_ll_rate[u > FT_K_COLLECTIVE_OLD_LINK_GBPS];
    rate[FT_LL128] = ft__k_collective_ll128_rate[u > FT_K_COLLECTIVE_LL128_LINK_GBPS];
    rate[FT_SIMPLE] = FT_K_COLLECTIVE_SIMPLE_RATE;
    if (!op->u.collective.pcie) return;
    rate[FT_SIMPLE] = ft__k_collective_pcie_simple_rate[op->u.collective.ranks > 2];
    rate[FT_LL] = FT_K_COLLECTIVE_PCIE_LL_SHARE * rate[FT_SIMPLE];
}

ft_protocol ft__collective_protocol(const ft_device *device, const ft_op *op)
{
    _Static_assert((int)FT_K_COLLECTIVE_START_US_COUNT == (int)FT_NVLS, "a figure for every protocol but NVLS");
    double rate[FT_NVLS], n = (double)op->u.collective.ranks, us_per_byte = 1e-3 / op->u.collective.link_gbps;
    double bytes = op->u.collective.bytes;
    bool rccl = device && device->vendor == FT_VENDOR_AMD; /* whose tables have no rate for LL128 in a mesh */
    if (ft__collective_pairwise(op))
        return bytes / n <=
                       (ft__collective_many_channels(op) ? FT_K_COLLECTIVE_PAIR_BYTES_MANY : FT_K_COLLECTIVE_PAIR_BYTES)
                   ? FT_LL
                   : FT_SIMPLE;
    nccl_rates(op, rate);
    double w = ft__collective_wire(op->u.collective.op, n) * bytes, s = ft__collective_steps(op->u.collective.op, n);
    double least = 0;
    ft_protocol best = FT_LL;
    for (int p = FT_LL; p < FT_NVLS; p++) {
        if (p == FT_LL128 && (op->u.collective.pcie || rccl)) continue;
        double us = ft__k_collective_start_us[p] + s * ft__k_collective_step_us[op->u.collective.pcie][p] +
                    w * us_per_byte / rate[p];
        if (p == FT_LL || us < least) least = us, best = (ft_protocol)p;
    }
    /* The switch adds numbers of two bytes and more. */
    bool nvls = op->u.collective.op == FT_COLLECTIVE_ALL_REDUCE && op->u.collective.reduces && n > 4 &&
                !ft__collective_eight_bit(op);
    return nvls && FT_K_COLLECTIVE_NVLS_US + w * us_per_byte / FT_K_COLLECTIVE_NVLS_RATE < least ? FT_NVLS : best;
}
