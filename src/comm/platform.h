/* A cluster as a simulator's platform: a fat tree of NICs, leaf switches, spines and cores.
 *
 * A host is one GPU's share of its node's NICs; what stays inside a node never gets here. With more GPUs than a
 * simulation takes, a host is a whole node and its cables are as thick as all its NICs together. */
#ifndef FT_COMM_PLATFORM_H
#define FT_COMM_PLATFORM_H
#include "base/text.h"
#include "comm/cluster.h"

enum { FT_MOST_LEVELS = 3, FT_MOST_HOSTS = 8192 };

typedef struct ft_platform {
    int levels;                   /* of switches */
    int64_t down[FT_MOST_LEVELS]; /* children of one switch, from the leaves up */
    int64_t up[FT_MOST_LEVELS];   /* parents of what stands below; the hosts' is 1 */
    int64_t hosts;                /* places in the tree: the product of `down` */
    double gbps;                  /* of one cable and direction: what large messages reach */
    double latency_us;            /* of one cable and the switch behind it */
    int64_t domain;               /* GPUs that reach each other without the network */
    int64_t per_node, leaf_nodes; /* GPUs that share a node's NICs; nodes under one leaf */
    bool rails;
    bool by_node; /* a host is a node */
} ft_platform;

/* The request's "network": "closed" (or nothing) or "simgrid". `cluster` may be NULL. */
ft_status ft__network_word(const json_t *cluster, bool *simulate, ft_error *err);

/* Nodes under one leaf switch (or group of rails): what the cluster says, or 32 NICs' worth. */
int64_t ft__leaf_nodes(const ft_cluster *cluster);
/* The tree under `ranks` GPUs of the cluster. */
ft_status ft__platform_of(const ft_cluster *cluster, int64_t ranks, ft_platform *out, ft_error *err);
/* Where a GPU's NIC hangs in the tree. */
int64_t ft__platform_host(const ft_platform *p, int64_t rank);
/* As SimGrid reads it: one cluster of the kind FAT_TREE. */
void ft__platform_xml(const ft_platform *p, ft_text *out);
/* "3 levels of 32, 32, 4; 2:1 above the leaves". */
void ft__platform_words(const ft_platform *p, ft_text *out);
#endif
