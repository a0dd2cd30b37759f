/* What GPUs are joined by: tiers from the inside out.
 *
 * Tier 0 joins the GPUs of one NVLink or xGMI domain (or of a PCIe tree); the next ones join nodes over NICs and
 * switches. A group of ranks crosses a tier when its members do not all sit in one domain of the tier below. */
#ifndef FT_COMM_CLUSTER_H
#define FT_COMM_CLUSTER_H
#include <jansson.h>

#include "base/error.h"
#include "foretell.h"

typedef enum ft_fabric { FT_NVLINK, FT_XGMI, FT_PCIE, FT_INFINIBAND, FT_ROCE, FT_EFA, FT_ETHERNET } ft_fabric;

typedef struct ft_tier {
    ft_fabric fabric;
    char name[32];           /* "nvlink4", "ib_ndr400" */
    double gbps;             /* per GPU and direction, nominal */
    double efficiency;       /* share of it that large messages reach */
    double latency_us;       /* of one hop, end to end */
    int64_t gpus;            /* in one domain of this tier; the outermost: all */
    bool switched;           /* any pair at full rate: NVSwitch, a fat tree without oversubscription */
    bool reduces;            /* in the switch: NVLS, SHARP */
    bool by_host;            /* PCIe: GPUs do not reach each other, all goes through the host's memory */
    bool xeon;               /* by_host: Intel's, which passes it on at a share of the slot's rate */
    int nccl;                /* version that runs over it, 100 * major + minor; 0: a recent one */
    double oversubscription; /* 1: none */
} ft_tier;

enum { FT_MAX_TIERS = 4 };

typedef struct ft_cluster {
    char name[64];
    ft_tier tier[FT_MAX_TIERS];
    int tiers;
    int64_t gpus_per_node, nodes, gpus;
    int64_t ranks;                  /* of its GPUs those that are in use, from the first on; 0: all */
    bool rails;                     /* GPU i of every node hangs on switch i */
    int64_t leaf_nodes;             /* nodes under one leaf switch (or rail group); 0: unknown */
    bool simulate;                  /* "network": "simgrid" */
    struct ft_simulated *simulated; /* exchanges between nodes as a network simulator sees them; NULL: closed forms */
    char understood[400];           /* the whole, in words, as it was understood from names and free text */
} ft_cluster;

/* More GPUs than this are no cluster yet. */
enum { FT_MOST_RANKS = 1 << 20 };

/* What joins the GPUs of one node: `gpus` of them. */
void ft__tier_inside(const ft_device *device, int64_t gpus, ft_tier *out);
/* One exchange among `ranks` GPUs of one domain of an inner tier, as the kernel room takes it. */
/* Of a GPU's wires inside a node, those that lead to others of a group of this size. */
double ft__tier_share(const ft_tier *tier, int64_t ranks);
void ft__tier_op(const ft_tier *tier, ft_collective kind, double bytes, int64_t ranks, ft_op *out);

/* GPUs in use, and nodes that they fill. */
int64_t ft__cluster_ranks(const ft_cluster *c);
int64_t ft__cluster_nodes_used(const ft_cluster *c);

/* `cluster` is the request's object or NULL: gpus_per_node, nodes, interconnect (a name, a file, or what people write:
 * "8x200 Gbps HDR InfiniBand/node", "400 Gb/s RDMA per GPU"), topology. `ranks`: how many GPUs the layout needs. */
ft_status ft__cluster_read(const json_t *cluster, const ft_device *device, int64_t ranks, ft_cluster *out,
                           ft_error *err);
/* Whether a request's `cluster` has such a key. */
bool ft__cluster_key(const char *said);
#endif
