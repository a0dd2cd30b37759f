/* One exchange that leaves the node, in closed form. */
#ifndef FT_COMM_NETWORK_TIME_H
#define FT_COMM_NETWORK_TIME_H
#include "comm/collective.h"

/* What a group crosses: n ranks, `local` of them in each of `nodes` nodes. */
typedef struct ft_crossing {
    double n, local, nodes;
    double inside_gbps;      /* per GPU, achieved, between ranks of one node */
    double reducing_gbps;    /* per GPU, nominal, where the node's switch adds up and NCCL lets it: 0 elsewhere */
    bool network_reduces;    /* SHARP: a switch adds up, each node sends once */
    double network_gbps;     /* per GPU, achieved, over the slowest network tier crossed */
    double thin, thin_trees; /* times as long over oversubscribed cables: in general, and by an all-reduce's trees */
    double latency_us;       /* of one hop between nodes */
    double step_scale;       /* of a step inside the node: in clocks, as kernels' fixed times are */
    double start_scale, simple_scale; /* of the start, and of Simple's steps beside the others': B200's take longer */
    bool simple_only;                 /* the network does not deliver in order: no LL, no LL128 */
    double skew;
} ft_crossing;

/* Fills ms, latency_ms, wire_bytes, algorithm and protocol. */
void ft__network_time(const ft_crossing *x, ft_collective op, double bytes, ft_comm *out);
#endif
