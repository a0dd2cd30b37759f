/* One collective over one group: inside a node the fitted family answers, between nodes the closed forms do. */
#include "comm/collective.h"

#include <math.h>
#include <string.h>

#include "comm/network_constants.h"
#include "comm/network_time.h"
#include "comm/pcie_box.h"
#include "comm/simgrid.h"
#include "comm/spine.h"
#include "device/traits.h"
#include "graph/operator.h"
#include "kernel/collective.h"
#include "kernel/kernel.h"
#include "kernel/predictor.h"

const char *ft__collective_name(ft_collective c) { return ft__collective_names[c]; }

/* Log half-width of an interval that covers `quantile`, from the one that covers 0.9: errors of closed forms have too
 * few measurements for quantiles of their own and are taken to be normal. */
static double widened(double at_90, double quantile)
{
    static const double z[FT_QUANTILES] = {0.674, 0.842, 1.036, 1.282, 1.645, 1.960, 2.576};
    const double *q = ft__quantile_levels;
    size_t last = FT_QUANTILES - 1;
    if (quantile <= q[0]) return at_90 * z[0] / z[4] * quantile / q[0];
    for (size_t i = 1; i <= last; i++)
        if (quantile <= q[i]) {
            double t = (quantile - q[i - 1]) / (q[i] - q[i - 1]);
            return at_90 * (z[i - 1] + t * (z[i] - z[i - 1])) / z[4];
        }
    return at_90 * z[last] / z[4];
}

static void interval(double at_90, double quantile, ft_comm *out)
{
    double width = exp(widened(at_90, quantile));
    out->low_ms = out->ms / width;
    out->high_ms = out->ms * width;
}

/* Each channel of NCCL is a block on an SM of its own; a channel is opened for every 64 KiB, up to 24 inside a node
 * (16 with NVLS), 16 between nodes. */
static double sms_taken(const ft_device *device, double bytes, double most)
{
    return fmin(1, fmin(most, fmax(1, bytes / 65536)) / device->sms);
}

/* What a request leaves open is answered for a recent NCCL and wide numbers, and the interval reaches as far as the
 * other answers: those of an old version, of sums of single bytes, of both. */
static ft_status cover_unsaid(const ft_predictor *p, const ft_device *device, const ft_op *exchange, bool any_width,
                              double quantile, ft_comm *out, ft_error *err)
{
    bool any_version = !exchange->u.collective.nccl;
    for (int other = 1; other < 4; other++) {
        ft_op op = *exchange;
        ft_forecast f;
        if (((other & 1) && !any_version) || ((other & 2) && !any_width)) continue;
        if (other & 1) op.u.collective.nccl = FT_NCCL_OLD;
        if (other & 2) op.dtype = FT_INT8;
        if ((other & 2) && !ft__collective_eight_bit(&op)) continue;
        FT_TRY(ft__kernel_forecast(p, device, &op, quantile, &f, err));
        out->low_ms = fmin(out->low_ms, f.ms);
        out->high_ms = fmax(out->high_ms, f.ms);
    }
    return FT_OK;
}

/* What is asked: which exchange, among whom, on what. */
typedef struct asked {
    const ft_predictor *predictor;
    const ft_device *device;
    const ft_cluster *cluster;
    ft_collective op;
    double bytes;
    const ft_group *group;
    double quantile;
} asked;

static ft_status inside_node(const asked *a, const ft_tier *tier, ft_comm *out, ft_error *err)
{
    const ft_device *device = a->device;
    const ft_group *group = a->group;
    const ft_collective op = a->op;
    ft_op exchange;
    ft_forecast f;
    double skew = op == FT_COLLECTIVE_ALL_TO_ALL && group->skew > 1 ? group->skew : 1;
    ft__tier_op(tier, op, a->bytes * skew, group->size, &exchange);
    exchange.engine = group->engine;
    if (group->narrow > 0) exchange.dtype = FT_INT8;
    FT_TRY(ft__op_check(&exchange, device, err));
    FT_TRY(ft__kernel_forecast(a->predictor, device, &exchange, a->quantile, &f, err));
    ft_protocol protocol = ft__collective_protocol(device, &exchange);
    out->ms = f.ms;
    out->low_ms = f.low_ms;
    out->high_ms = f.high_ms;
    out->source = f.source;
    if (f.source == FT_SOURCE_ROOFLINE &&
        a->predictor->mode == FT_PREDICT_LEARNED) { /* a predictor without exchanges */
        out->ms = ft__collective_start_ms(device, &exchange);
        out->source = FT_SOURCE_PHYSICS;
        interval(FT_K_NETWORK_INTERVAL_UNFITTED, a->quantile, out);
    }
    if (exchange.engine < FT_ENGINE_TRTLLM && out->source != FT_SOURCE_PHYSICS)
        FT_TRY(cover_unsaid(a->predictor, device, &exchange, group->narrow < 0, a->quantile, out, err));
    exchange.u.collective.bytes = 1;
    out->latency_ms = fmin(out->ms, ft__collective_start_ms(device, &exchange));
    out->wire_bytes = ft__collective_wire((int)op, (double)group->size) * a->bytes * skew;
    out->protocol = protocol == FT_NVLS ? "Simple" : ft__protocol_notes[protocol];
    bool pairs = op == FT_COLLECTIVE_ALL_TO_ALL || op == FT_COLLECTIVE_SEND_RECV;
    out->algorithm = protocol == FT_NVLS ? "nvls" : pairs ? "pairwise" : "ring";
    out->gpu_share = sms_taken(device, a->bytes, protocol == FT_NVLS ? 16 : 24);
    ft__pcie_box(device, tier, group, out);
    return FT_OK;
}

static bool leaves_node(const ft_tier *t) { return t->fabric >= FT_INFINIBAND; }

/* How many ranks of a group sit in one domain of a tier. */
static int64_t members(const ft_group *g, int64_t domain)
{
    int64_t stride = g->stride > 0 ? g->stride : 1, fit = domain / stride;
    return fit < 1 ? 1 : fit > g->size ? g->size : fit;
}

/* A ring over nodes goes around each of them as well; a stage sends to one neighbour. */
static bool through_slots(const ft_cluster *c, int outer, ft_collective op, const ft_group *g)
{
    for (int t = op == FT_COLLECTIVE_SEND_RECV ? outer : 0; t <= outer; t++)
        if (c->tier[t].fabric == FT_PCIE && members(g, c->tier[t].gpus) > 1) return true;
    return false;
}

/* Groups follow each other without a gap: where nodes hold no whole number of them, one of them lies over two nodes,
 * and all wait for it. Racks of several nodes are given out in whole parts by who schedules them. */
static bool lies_askew(const ft_cluster *c, const ft_tier *t, const ft_group *g)
{
    int64_t block = g->size * (g->stride > 0 ? g->stride : 1);
    return t->gpus == c->gpus_per_node && ft__cluster_ranks(c) > t->gpus && t->gpus % block != 0;
}

/* Of a group that would fit into a node but lies over two the part in the one that has fewer, at the worst. */
static int64_t smaller_part(const ft_cluster *c, const ft_group *g, int64_t node)
{
    int64_t stride = g->stride > 0 ? g->stride : 1, block = g->size * stride, fewest = g->size, looked = 0;
    for (int64_t at = 0; at + block <= ft__cluster_ranks(c) && (at == 0 || at % node); at += block)
        for (int64_t i = 0; i < stride && fewest > 1 && looked < 65536; i++, looked++) {
            int64_t here = (node - (at + i) % node + stride - 1) / stride, there = g->size - here;
            if (there > 0 && here < fewest) fewest = here;
            if (there > 0 && there < fewest) fewest = there;
        }
    return fewest;
}

/* Fixed times of GPUs of two dies beside H100's, as inside a node (kernel/collective.c). EFA delivers in any order, so
 * that its plug-in lets servers before p5 (H100, 400 Gbit/s to a GPU) use Simple alone; from there on it does not
 * (p4de's smallest all-reduce takes 160 us, p5's 70). */
static void character(const ft_device *device, const ft_cluster *c, int outer, ft_crossing *x)
{
    bool two_dies = ft__joined_dies(device);
    ft_fabric fabric = c->tier[outer].fabric;
    x->start_scale = two_dies ? FT_K_NETWORK_TWO_DIES_START : 1;
    x->simple_scale = two_dies ? FT_K_NETWORK_TWO_DIES_SIMPLE / FT_K_NETWORK_TWO_DIES_START : 1;
    x->step_scale = ft__clock_scale(device) * x->start_scale;
    x->simple_only = fabric == FT_EFA && device->server_nic_gbit < FT_K_NETWORK_ORDERED_EFA_GBIT;
}

static void between_nodes(const asked *a, int outer, ft_comm *out)
{
    const ft_cluster *c = a->cluster;
    const ft_group *group = a->group;
    ft_crossing x = {.n = (double)group->size, .local = 1};
    double rings = INFINITY, trees = INFINITY; /* rates that oversubscribed cables leave */
    x.network_gbps = x.inside_gbps = INFINITY;
    x.skew = group->skew > 1 ? group->skew : 1;
    character(a->device, c, outer, &x);
    for (int t = 0; t <= outer; t++) {
        const ft_tier *tier = &c->tier[t];
        double rate = tier->gbps * tier->efficiency;
        if (leaves_node(tier)) {
            double left = rate / ft__spine_slowdown(c, t, a->op, false, group, x.local);
            trees = fmin(trees, rate / ft__spine_slowdown(c, t, a->op, true, group, x.local));
            if (left < rings) rings = left, out->tier = t;
            x.network_gbps = fmin(x.network_gbps, rate);
            x.network_reduces = tier->reduces;
            x.latency_us = fmax(x.latency_us, tier->latency_us);
        } else {
            int64_t local = members(group, tier->gpus);
            if (local == group->size && lies_askew(c, tier, group)) local = smaller_part(c, group, tier->gpus);
            x.local = (double)local;
            if (x.local > 1) x.inside_gbps = fmin(x.inside_gbps, rate / fmax(1, tier->oversubscription));
            x.reducing_gbps = tier->reduces ? tier->gbps : 0;
        }
    }
    x.nodes = fmax(2, ceil(x.n / x.local));
    if (!isfinite(x.inside_gbps)) x.inside_gbps = x.network_gbps;
    x.thin = x.network_gbps / rings;
    x.thin_trees = x.network_gbps / trees;
    ft__network_time(&x, a->op, a->bytes, out);
    interval(FT_K_NETWORK_INTERVAL, a->quantile, out);
    out->source = FT_SOURCE_PHYSICS;
    out->gpu_share = sms_taken(a->device, a->bytes, 16);
}

/* What crosses nodes also goes around each of them: it takes no less than its ranks in one node take for their part.
 * The closed forms know the links' rate, not what a box of slots leaves of it. */
static ft_status not_below_node(const asked *a, int outer, ft_comm *out, ft_error *err)
{
    for (int t = outer - 1; t >= 0 && a->op != FT_COLLECTIVE_SEND_RECV; t--) {
        const ft_tier *tier = &a->cluster->tier[t];
        ft_group local = *a->group;
        ft_comm inside = {0};
        if (leaves_node(tier)) continue;
        local.size = members(a->group, tier->gpus);
        if (local.size < 2) return FT_OK;
        asked part = *a;
        part.group = &local;
        part.bytes *= a->op == FT_COLLECTIVE_ALL_TO_ALL ? (double)local.size / (double)a->group->size : 1;
        part.bytes = fmax(part.bytes, 1);
        FT_TRY(inside_node(&part, tier, &inside, err));
        if (inside.ms <= out->ms) return FT_OK;
        if (inside.ms > FT_K_NETWORK_BOUND_MARGIN * out->ms) out->tier = t;
        out->ms = inside.ms;
        out->low_ms = fmin(fmax(out->low_ms, inside.low_ms), out->ms);
        out->high_ms = fmax(out->high_ms, inside.high_ms);
        return FT_OK;
    }
    return FT_OK;
}

/* The same exchange among all its kind in a simulated network, which has the oversubscribed cables in it. */
static ft_status simulated(const asked *a, int outer, ft_comm *out, ft_error *err)
{
    ft_cluster whole = *a->cluster;
    ft_comm comm = *out;
    asked alone = *a;
    alone.cluster = &whole;
    for (int t = 0; t < whole.tiers; t++) whole.tier[t].oversubscription = 1;
    between_nodes(&alone, outer, &comm);
    return ft__simulated_ask(a->cluster->simulated, a->op, a->bytes, a->group, &comm, out, err);
}

ft_status ft__collective_forecast(const ft_predictor *p, const ft_device *device, const ft_cluster *cluster,
                                  ft_collective op, double bytes, const ft_group *group, double quantile, ft_comm *out,
                                  ft_error *err)
{
    memset(out, 0, sizeof *out);
    out->algorithm = out->protocol = "";
    if (group->size < 1 || group->size > FT_MOST_RANKS)
        return ft__fail_at(err, FT_E_RANGE, "ranks", 0, 0, "a group has from 1 to %d ranks, got %lld", FT_MOST_RANKS,
                           (long long)group->size);
    if (!(bytes >= 0 && bytes <= 1e15))
        return ft__fail_at(err, FT_E_RANGE, "bytes", 0, 0, "\"bytes\" must be from 1 to 1e15, got %g", bytes);
    if (group->size == 1 || bytes <= 0) return FT_OK; /* nothing is sent */
    int64_t span = (group->size - 1) * (group->stride > 0 ? group->stride : 1) + 1;
    int tier = 0;
    while (tier < cluster->tiers - 1 &&
           (cluster->tier[tier].gpus < span || lies_askew(cluster, &cluster->tier[tier], group)))
        tier++;
    asked a = {p, device, cluster, op, bytes, group, quantile};
    out->tier = tier;
    out->slots = through_slots(cluster, tier, op, group);
    if (leaves_node(&cluster->tier[tier])) {
        between_nodes(&a, tier, out);
        if (cluster->simulated) FT_TRY(simulated(&a, tier, out, err));
        return not_below_node(&a, tier, out, err);
    }
    a.bytes = fmax(bytes, 1);
    return inside_node(&a, &cluster->tier[tier], out, err);
}
