/* Exchanges between nodes, by NCCL's algorithms and protocols; the one that is fastest on a whole tree is taken, since
 * NCCL does not know which cables are shared, and then takes as long as thin cables let it (spine.c).
 *
 * With N nodes of l ranks each, n = N l, S bytes, r the achieved rate of one GPU's share of the network, u that of the
 * links inside, a step inside a_p and a hop between nodes h_p by protocol p:
 *   tree   t0 + 2 ((l-1) a_p + log2 N h_p) + 2 S / (l r e_p) + f        all-reduce
 *   ring   t0 + 2 ((n-N) a_p + N h_p / 2)  + 2 (n-1)/n S / (l r e_p)    all-reduce; half of it gathers or scatters
 *   NVLS   t0 + 25 us + 2 log2 N h_p + max(w / r, 2 (l-1)/l S / U) + f  all-reduce, hierarchical: the switch of each
 *          node adds up first, and the network carries what nodes exchange. Two nodes send w = S / l each, the half of
 *          the sum that the other is the root of, and get the other half back; with more of them those inside the
 *          trees pass on what comes from two below, w = 2 S / l (src/graph/tuning.cc halves the rate there too)
 *   LL     small messages are not spread over the NICs and wait at every hop: S (1.35 + log2 N) / (0.23 r)
 *   f      of Simple's trees: a message runs in chunks of 1 MiB to a NIC (two channels, 512 KiB each: an eighth of
 *          NCCL's buffer of 4 MiB) through K = 5 + 1.5 log2 N stages, each of which takes a chunk's time and a hop
 *          before the last one sees its first byte: K (1 MiB / r + h) x / (x + K MiB) for x = S / l to a NIC. Short
 *          messages have small chunks, long ones fill the pipeline once
 * and never faster than the links inside allow. The forms are NCCL's own cost model (src/graph/tuning.cc); a ring's hop
 * is half of a tree's there. Its figures are too bright for real networks, so the hop's time and the steps come from
 * nccl-tests on 2 to 16 nodes of 8 A100 (NetX-lab/Echo, nccl-test-log): every doubling of the nodes adds 20 us with LL,
 * 25 with LL128, 45 with Simple. The filling and a fabric's hop come from the tables of
 * data/published/collectives.jsonl that are not held out.
 *
 * A tree between two nodes can send S / l as well: each is the root of one half, gets the other's part of it and sends
 * the sum back. NCCL gives such a tree 0.92 of the links' rate inside, up to twice the network's (src/graph/tuning.cc:
 * bwIntra where nNodes <= 2; search.cc), and takes it where the network holds a ring back: nodes with a NIC for two
 * GPUs (p4de: 42 GB/s of 50, where a ring's bytes would allow 27). With a NIC for each A100 its estimates are a few
 * percent apart, and both ways were seen: 127 GB/s on OCI, 100 and 68 (a ring's) on Azure.
 *
 * A broadcast, or a reduction to one rank, goes once around the ring: t0 + (n-N) a_p + N h_p / 2 + S / (l r e_p). Over
 * a thousand ranks that is milliseconds whatever the size.
 *
 * An all-to-all sends (N-1)/N of its bytes through the rank's own NIC, the heaviest rank `skew` times that; 15 us more
 * than a pair takes before the first byte, since what is meant for another rail crosses the node first (PXN).
 *
 * Leaves out: what NCCL picks against its own interest (Echo's LL128 comes too late: 16 to 128 KiB take up to 1.8 times
 * as long there), congestion other than oversubscription, reduction in InfiniBand switches unless the fabric has it. */
#include "comm/network_time.h"

#include <math.h>

#include "comm/network_constants.h"

enum { LL, LL128, SIMPLE, PROTOCOLS };
_Static_assert((int)FT_K_NETWORK_PROTOCOLS_COUNT == (int)PROTOCOLS,
               "data/constants/comm/network.json has them in order");
static const struct ft__k_network_protocols *const of = ft__k_network_protocols; /* steps, hops, shares of rates */
static const double chunk = 1048576; /* bytes to a NIC: two channels, an eighth of a buffer of 4 MiB each */

/* One way to exchange: times on a whole tree, and how much longer its bytes take over the cables of this one. */
typedef struct way {
    const char *algorithm;
    int protocol;
    double latency_us, network_us, inside_us, thin;
    double wire_bytes;
} way;

typedef struct pick {
    ft_comm *out;
    double least_us; /* on a whole tree */
    double rate;     /* of one GPU's share of the network, bytes per us */
} pick;

/* LL and LL128 send more slowly than a NIC could: thin cables are felt where they are thinner than that. */
static void offer(pick *best, const way *w)
{
    double us = w->latency_us + fmax(w->network_us, w->inside_us);
    if (best->out->algorithm && us >= best->least_us) return;
    best->least_us = us;
    double network_us = w->thin > 1 ? fmax(w->network_us, w->wire_bytes / best->rate * w->thin) : w->network_us;
    best->out->ms = (w->latency_us + fmax(network_us, w->inside_us)) * 1e-3;
    best->out->latency_ms = w->latency_us * 1e-3;
    best->out->wire_bytes = w->wire_bytes;
    best->out->algorithm = w->algorithm;
    best->out->protocol = of[w->protocol].protocol;
}

static double started(const ft_crossing *x) { return FT_K_NETWORK_START_US * x->start_scale; }

static double step(const ft_crossing *x, int p)
{
    return of[p].step_us * x->step_scale * (p == SIMPLE ? x->simple_scale : 1);
}

/* Until the last stage of a tree's pipeline sees its first chunk. */
static double filling(const ft_crossing *x, double s)
{
    double stages = FT_K_NETWORK_STAGES + FT_K_NETWORK_STAGES_PER_LEVEL * log2(x->nodes), each = s / x->local;
    return stages * (chunk / (x->network_gbps * 1e3) + x->latency_us) * each / (each + stages * chunk);
}

/* From the first rank of a ring to its last. */
static double around(const ft_crossing *x, int p)
{
    return (x->n - x->nodes) * step(x, p) + x->nodes * of[p].hops * x->latency_us / 2;
}

static void ring(const ft_crossing *x, ft_collective op, double s, int p, double inside_us, pick *best)
{
    double passes = op == FT_COLLECTIVE_ALL_REDUCE ? 2 : 1, sent = passes * (x->n - 1) / x->n * s;
    way w = {"ring", p, .inside_us = inside_us, .thin = x->thin, .wire_bytes = sent / x->local};
    w.latency_us = started(x) + passes * around(x, p);
    w.network_us = w.wire_bytes / (x->network_gbps * 1e3 * of[p].share);
    offer(best, &w);
}

/* NCCL takes the tree between two nodes by its own estimate; where that is a close call either was seen. */
static bool halves(const ft_crossing *x)
{
    double network = x->local * x->network_gbps, links = fmin(2 * network, x->inside_gbps);
    double tree = FT_K_NETWORK_TREE_OF_LINKS * links / 2, ring = network * x->n / (2 * (x->n - 1));
    return x->nodes <= 2 && tree > FT_K_NETWORK_CLOSE_CALL * ring;
}

static void tree(const ft_crossing *x, double s, int p, double inside_us, pick *best)
{
    bool half = halves(x);
    double levels = log2(x->nodes), r = x->network_gbps * 1e3;
    way w = {"tree", p, .inside_us = inside_us, .thin = x->thin_trees};
    w.latency_us = started(x) + 2 * ((x->local - 1) * step(x, p) + levels * of[p].hops * x->latency_us);
    if (p == SIMPLE) w.latency_us += filling(x, s);
    w.network_us = p == LL ? s * (FT_K_NETWORK_LL_LEAD + levels) / (of[LL].share * r)
                           : 2 * s / (x->local * r * of[p].share * FT_K_NETWORK_TREE_SHARE);
    w.wire_bytes = 2 * (x->n - 1) / x->n * s / x->local;
    if (x->nodes <= 2 && p != LL) w.network_us *= half ? 0.5 : FT_K_NETWORK_TWO_NODES; /* less than a ring sends */
    if (half) w.wire_bytes = s / x->local;
    offer(best, &w);
}

static void hierarchical(const ft_crossing *x, double s, pick *best)
{
    bool nvls = x->reducing_gbps > 0 && x->local > 4;
    if (!(nvls || x->network_reduces)) return;
    double hops = x->network_reduces ? 2 : 2 * log2(x->nodes), u = nvls ? x->reducing_gbps : x->inside_gbps;
    way w = {"hierarchical", SIMPLE, .thin = x->thin};
    w.latency_us = started(x) + FT_K_NETWORK_NVLS_US + hops * of[SIMPLE].hops * x->latency_us + filling(x, s);
    w.wire_bytes = (x->network_reduces || x->nodes <= 2 ? 1 : 2) * s / x->local;
    w.network_us = w.wire_bytes / (x->network_gbps * 1e3);
    w.inside_us = 2 * (x->local - 1) / x->local * s / (u * 1e3);
    offer(best, &w);
}

static void tree_and_ring(const ft_crossing *x, ft_collective op, double s, ft_comm *out)
{
    double sent = (op == FT_COLLECTIVE_ALL_REDUCE ? 2 : 1) * (x->n - 1) / x->n * s;
    pick best = {.out = out, .rate = x->network_gbps * 1e3};
    for (int p = x->simple_only ? SIMPLE : LL; p < PROTOCOLS; p++) {
        double inside_us = x->local > 1 ? sent / (x->inside_gbps * 1e3 * of[p].inside) : 0;
        if (op == FT_COLLECTIVE_ALL_REDUCE) tree(x, s, p, inside_us, &best);
        ring(x, op, s, p, inside_us, &best);
    }
    if (op == FT_COLLECTIVE_ALL_REDUCE) hierarchical(x, s, &best);
}

/* Broadcasts and reductions to one rank have no trees (NVIDIA/nccl, src/graph/tuning.cc: rings alone). */
static void chain(const ft_crossing *x, double s, ft_comm *out)
{
    double r = x->network_gbps * 1e3, inside_us = x->local > 1 ? s / (x->inside_gbps * 1e3) : 0;
    pick best = {.out = out, .rate = x->network_gbps * 1e3};
    for (int p = x->simple_only ? SIMPLE : LL; p < PROTOCOLS; p++) {
        way w = {"ring", p, .inside_us = inside_us, .thin = x->thin, .wire_bytes = s / x->local};
        w.latency_us = started(x) + around(x, p);
        w.network_us = w.wire_bytes / (r * (of[p].single));
        offer(&best, &w);
    }
}

static void pairs(const ft_crossing *x, ft_collective op, double s, ft_comm *out)
{
    double r = x->network_gbps * 1e3, u = x->inside_gbps * 1e3, far = s, near = 0, peers = 1;
    pick best = {.out = out, .rate = x->network_gbps * 1e3};
    if (op == FT_COLLECTIVE_ALL_TO_ALL) {
        far = s * (1 - x->local / x->n) * x->skew;
        near = s * (x->local - 1) / x->n * x->skew;
        peers = x->n - x->local;
    }
    for (int p = x->simple_only ? SIMPLE : LL; p < PROTOCOLS; p += SIMPLE) {
        way w = {"pairwise", p, .inside_us = near / u, .thin = x->thin, .wire_bytes = far};
        /* A proxy thread posts sends for many peers one after the other. */
        w.latency_us = started(x) + of[p].hops * x->latency_us + FT_K_NETWORK_POST_US * (peers - 1);
        if (op == FT_COLLECTIVE_ALL_TO_ALL && x->local > 1) w.latency_us += FT_K_NETWORK_RELAY_US * x->step_scale;
        w.network_us = far / (r * of[p].single);
        offer(&best, &w);
    }
}

void ft__network_time(const ft_crossing *x, ft_collective op, double bytes, ft_comm *out)
{
    out->algorithm = NULL;
    switch (op) {
    case FT_COLLECTIVE_ALL_TO_ALL:
    case FT_COLLECTIVE_SEND_RECV: pairs(x, op, bytes, out); break;
    case FT_COLLECTIVE_BROADCAST:
    case FT_COLLECTIVE_REDUCE: chain(x, bytes, out); break;
    default: tree_and_ring(x, op, bytes, out);
    }
}
