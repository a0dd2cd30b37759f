/* Exchanges between nodes, by NCCL's algorithms and protocols; the one that is fastest on a whole tree is taken, since
 * NCCL does not know which cables are shared, and then takes as long as thin cables let it (spine.c).
 *
 * With N nodes of l ranks each, n = N l, S bytes, r the achieved rate of one GPU's share of the network, u that of the
 * links inside, a step inside a_p and a hop between nodes h_p by protocol p:
 *   tree   t0 + 2 ((l-1) a_p + log2 N h_p) + 2 S / (l r e_p)            all-reduce
 *   ring   t0 + 2 ((n-N) a_p + N h_p / 2)  + 2 (n-1)/n S / (l r e_p)    all-reduce; half of it gathers or scatters
 *   NVLS   t0 + 25 us + 2 log2 N h_p + max(2 (N-1)/N S / (l r), 2 (l-1)/l S / U)   all-reduce, hierarchical: the switch
 *          of each node adds up first, so that the network carries what nodes exchange and not what ranks do
 *   LL     small messages are not spread over the NICs and wait at every hop: S (1.35 + log2 N) / (0.23 r)
 * and never faster than the links inside allow. The forms are NCCL's own cost model (src/graph/tuning.cc); a ring's hop
 * is half of a tree's there. Its figures are too bright for real networks, so the hop's time and the steps come from
 * nccl-tests on 2 to 16 nodes of 8 A100 (NetX-lab/Echo, nccl-test-log): every doubling of the nodes adds 20 us with LL,
 * 25 with LL128, 45 with Simple.
 *
 * An all-to-all sends (N-1)/N of its bytes through the rank's own NIC, the heaviest rank `skew` times that.
 *
 * Leaves out: what NCCL picks against its own interest (Echo's LL128 comes too late: 16 to 128 KiB take up to 1.8 times
 * as long there), congestion other than oversubscription, reduction in InfiniBand switches unless the fabric has it. */
#include "comm/network_time.h"

#include <math.h>

enum { LL, LL128, SIMPLE, PROTOCOLS };
static const char *const names[PROTOCOLS] = {"LL", "LL128", "Simple"};
static const double start_us = 8;
static const double step_us[PROTOCOLS] = {0.63, 2.0, 2.0}; /* inside, at 1.8 GHz */
static const double hop[PROTOCOLS] = {1, 1.27, 2.2};       /* times the fabric's latency */
static const double share[PROTOCOLS] = {0.23, 0.43, 1};    /* of the network's achieved rate */

/* What is offered: times on a whole tree, and how much longer the network's part takes over this one. */
typedef struct pick {
    ft_comm *out;
    double least_us; /* on a whole tree */
} pick;

static void offer(pick *best, double latency_us, double network_us, double inside_us, double thin,
                  const char *algorithm, int protocol)
{
    double us = latency_us + fmax(network_us, inside_us);
    if (best->out->algorithm && us >= best->least_us) return;
    best->least_us = us;
    best->out->ms = (latency_us + fmax(network_us * thin, inside_us)) * 1e-3;
    best->out->latency_ms = latency_us * 1e-3;
    best->out->algorithm = algorithm;
    best->out->protocol = names[protocol];
}

static void tree_and_ring(const ft_crossing *x, ft_collective op, double s, ft_comm *out)
{
    double passes = op == FT_ALL_REDUCE ? 2 : 1, levels = log2(x->nodes);
    double r = x->network_gbps * 1e3, u = x->inside_gbps * 1e3; /* bytes per us */
    pick best = {.out = out};
    double around = passes * (x->n - 1) / x->n * s;
    for (int p = LL; p < PROTOCOLS; p++) {
        double a = step_us[p] * x->step_scale, h = hop[p] * x->latency_us;
        double inside = x->local > 1 ? around / (u * (p == LL ? 0.4 : p == LL128 ? 0.9 : 1)) : 0;
        if (op == FT_ALL_REDUCE) {
            double moved = p == LL ? s * (1.35 + levels) / (share[LL] * r) : 2 * s / (x->local * r * share[p] * 0.96);
            if (x->nodes <= 2 && p != LL) moved *= 0.94; /* between two nodes a tree sends less than a ring */
            offer(&best, start_us + 2 * ((x->local - 1) * a + levels * h), moved, inside, x->thin_trees, "tree", p);
        }
        double moved = around / (x->local * r * share[p]);
        offer(&best, start_us + passes * ((x->n - x->nodes) * a + x->nodes * h / 2), moved, inside, x->thin, "ring", p);
    }
    out->wire_bytes = around / x->local;
    bool nvls = x->reducing_gbps > 0 && x->local > 4;
    if (op != FT_ALL_REDUCE || !(nvls || x->network_reduces)) return;
    /* NVLSTree: two nodes of 8 H100 on 8 x 400 Gb/s reach 470 GB/s of bus bandwidth (NVIDIA/nccl issue 2409), which a
     * ring's bytes would not let through 8 NICs. */
    double before = best.least_us, wire = (x->network_reduces ? 1 : 2 * (x->nodes - 1) / x->nodes) * s / x->local;
    double inside = 2 * (x->local - 1) / x->local * s / (nvls ? x->reducing_gbps * 1e3 : u);
    double hops = x->network_reduces ? 2 : 2 * levels;
    offer(&best, start_us + 25 + hops * hop[SIMPLE] * x->latency_us, wire / r, inside, x->thin, "hierarchical", SIMPLE);
    if (best.least_us < before) out->wire_bytes = wire;
}

static void chain(const ft_crossing *x, double s, ft_comm *out)
{
    double r = x->network_gbps * 1e3, u = x->inside_gbps * 1e3;
    pick best = {.out = out};
    for (int p = LL; p < PROTOCOLS; p++) {
        double inside = x->local > 1 ? s / u : 0;
        offer(&best, start_us + (x->local - 1) * step_us[p] * x->step_scale + log2(x->nodes) * hop[p] * x->latency_us,
              s / (x->local * r * (p == LL ? 0.4 : share[p])), inside, x->thin, "tree", p);
    }
    out->wire_bytes = s / x->local;
}

static void pairs(const ft_crossing *x, ft_collective op, double s, ft_comm *out)
{
    double r = x->network_gbps * 1e3, u = x->inside_gbps * 1e3, far = s, near = 0, peers = 1;
    pick best = {.out = out};
    if (op == FT_ALL_TO_ALL) {
        far = s * (1 - x->local / x->n) * x->skew;
        near = s * (x->local - 1) / x->n * x->skew;
        peers = x->n - x->local;
    }
    for (int p = LL; p < PROTOCOLS; p += SIMPLE) {
        /* A proxy thread posts sends for many peers one after the other, a third of a microsecond each. */
        double latency = start_us + hop[p] * x->latency_us + 0.35 * (peers - 1);
        offer(&best, latency, far / (r * (p == LL ? 0.4 : 1)), near / u, x->thin, "pairwise", p);
    }
    out->wire_bytes = far;
}

void ft__network_time(const ft_crossing *x, ft_collective op, double bytes, ft_comm *out)
{
    out->algorithm = NULL;
    switch (op) {
    case FT_ALL_TO_ALL:
    case FT_SEND_RECV: pairs(x, op, bytes, out); break;
    case FT_BROADCAST:
    case FT_REDUCE: chain(x, bytes, out); break;
    default: tree_and_ring(x, op, bytes, out);
    }
}
