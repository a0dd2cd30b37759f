/* What NCCL does with a collective inside one node: how many bytes and steps it takes, and which protocol it picks.
 *
 * The pick is what NCCL's own cost model decides (NCCL 2.2x, src/graph/tuning.cc and topo.h): latency + w / bandwidth,
 * the least one wins, with NVLink steps of 0.6, 1.9 and 3.4 us (PCIe 1.0, 2.5, 5.7), 6.6, 14 and 8.4 us to start, and
 * an LL that fills 0.31 of the link at most. Its estimates are not the truth: where it switches from LL to Simple
 * between two GPUs the time doubles (A100 at 1 MB, H100 at 2, B200 at 4, each as the model's figures say). */
#include <math.h>

#include "graph/operator.h"
#include "kernel/collective.h"

const char *const ft__protocol_notes[FT_PROTOCOL_COUNT] = {
    [FT_LL] = "LL", [FT_LL128] = "LL128", [FT_SIMPLE] = "Simple", [FT_NVLS] = "NVLS"};

double ft__collective_wire(int op, double n)
{
    switch (op) {
    case FT_ALL_REDUCE: return 2 * (n - 1) / n;
    case FT_ALL_GATHER:
    case FT_REDUCE_SCATTER:
    case FT_ALL_TO_ALL: return (n - 1) / n;
    default: return n > 1 ? 1 : 0;
    }
}

/* Beyond eight ranks trees take over: their depth grows with the logarithm. */
double ft__collective_steps(int op, double n)
{
    switch (op) {
    case FT_ALL_REDUCE: return n <= 8 ? 2 * (n - 1) : 14 + 4 * log2(n / 8);
    case FT_ALL_TO_ALL: return log2(n);
    case FT_SEND_RECV: return 1;
    default: return n - 1;
    }
}

bool ft__collective_pairwise(const ft_op *op)
{
    return op->u.collective.op == FT_ALL_TO_ALL || op->u.collective.op == FT_SEND_RECV;
}

bool ft__collective_narrow(const ft_op *op)
{
    int c = op->u.collective.op;
    return (c == FT_ALL_REDUCE || c == FT_REDUCE_SCATTER || c == FT_REDUCE) && ft_dtype_bytes(op->dtype) <= 1;
}

bool ft__collective_old(const ft_op *op) { return op->u.collective.nccl > 0 && op->u.collective.nccl < FT_NCCL_NEWER; }

/* Pairs exchange by LL on one channel up to 32 KiB a peer, and then by Simple. NCCL 2.23, and 2.27 on A100's NVLink 3,
 * open more channels and stay with LL up to 512 KiB: seen in the rows, where the time of eight ranks hardly changes
 * between 512 KiB and 1 MiB a peer. */
bool ft__collective_many_channels(const ft_op *op)
{
    return !op->u.collective.pcie && (op->u.collective.link_gbps <= 300 || ft__collective_old(op));
}

/* Shares of the nominal link that NCCL reckons with. NVLink: LL at most 87.7 GB/s over A100's 300, 141 over H100's 450
 * and twice that over B200's 900, from its table; that LL128 ends earlier on B200 is not in it: set to where the rows
 * switch. PCIe: 24 GB/s of generation 4's 31.5 (12 for generation 3), LL half of it, and 0.55 of that once four GPUs
 * go through the host: between 0.54 and 0.6 four and eight L40S switch where they were seen to. */
static void reckoned(const ft_op *op, double rate[FT_NVLS])
{
    double u = op->u.collective.link_gbps;
    rate[FT_LL] = u <= 300 ? 0.292 : 0.313;
    rate[FT_LL128] = u <= 450 ? 0.74 : 0.6;
    rate[FT_SIMPLE] = 0.8;
    if (!op->u.collective.pcie) return;
    rate[FT_SIMPLE] = op->u.collective.ranks > 2 ? 0.42 : 0.76;
    rate[FT_LL] = 0.5 * rate[FT_SIMPLE];
}

ft_protocol ft__collective_protocol(const ft_op *op)
{
    static const double step_us[2][FT_NVLS] = {{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}};
    static const double start_us[FT_NVLS] = {6.6, 14, 8.4};
    double rate[FT_NVLS], n = (double)op->u.collective.ranks, us_per_byte = 1e-3 / op->u.collective.link_gbps;
    double bytes = op->u.collective.bytes;
    if (ft__collective_pairwise(op))
        return bytes / n <= (ft__collective_many_channels(op) ? 524288 : 32768) ? FT_LL : FT_SIMPLE;
    reckoned(op, rate);
    double w = ft__collective_wire(op->u.collective.op, n) * bytes, s = ft__collective_steps(op->u.collective.op, n);
    double least = 0;
    ft_protocol best = FT_LL;
    for (int p = FT_LL; p < FT_NVLS; p++) {
        if (p == FT_LL128 && op->u.collective.pcie) continue;
        double us = start_us[p] + s * step_us[op->u.collective.pcie][p] + w * us_per_byte / rate[p];
        if (p == FT_LL || us < least) least = us, best = (ft_protocol)p;
    }
    /* The switch adds numbers of two bytes and more. 27 us and not the table's 25: where the rows switch on H100 and
     * B200. */
    bool nvls = op->u.collective.op == FT_ALL_REDUCE && op->u.collective.reduces && n > 4 && !ft__collective_narrow(op);
    return nvls && 27 + w * us_per_byte / 1.05 < least ? FT_NVLS : best;
}
