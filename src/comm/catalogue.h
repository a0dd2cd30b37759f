/* Fabrics and servers of data/clusters/, compiled in by scripts/embed_clusters.py, sorted by name. */
#ifndef FT_COMM_CATALOGUE_H
#define FT_COMM_CATALOGUE_H
#include "comm/cluster.h"

typedef struct ft_fabric_entry {
    const char *name;
    ft_fabric fabric;
    double gbit;       /* of one port and direction */
    double efficiency; /* of it, in collectives of many nodes */
    double latency_us; /* of a small message to the next node, kernel to kernel */
    bool reduces;
} ft_fabric_entry;

typedef struct ft_server_entry {
    const char *name, *title;
    const char *also; /* other names that people have for it, between blanks: an instance's type */
    const char *gpus; /* names between blanks; the first server that names a GPU is its usual one */
    const char *fabric;
    int64_t gpus_per_node, domain_gpus, nics_per_node;
    double nic_gbit;
    bool rails;
    int64_t leaf_nodes; /* 0: unknown */
    double oversubscription;
} ft_server_entry;

extern const size_t ft__fabric_count, ft__server_count;
extern const ft_fabric_entry ft__fabrics[];
extern const ft_server_entry ft__servers[];

const ft_fabric_entry *ft__fabric_find(const char *name);
/* The slowest of a kind whose port carries at least `gbit`, or its fastest. */
const ft_fabric_entry *ft__fabric_nearest(ft_fabric kind, double gbit);
/* By its own name or another one: "aws_p5", "p5.48xlarge". */
const ft_server_entry *ft__server_find(const char *name);
const ft_server_entry *ft__server_usual(const char *gpu);

/* The network between nodes, as text says it. Scope: what the rate is of. */
typedef struct ft_network {
    const char *entry; /* a fabric of the catalogue that the words name; NULL: by kind and rate */
    bool named;        /* the text says something about it; otherwise only about the inside of nodes */
    ft_fabric kind;
    double port_gbit; /* of one port; 0: not said, as usual in the GPU's time */
    bool generation;  /* HDR, NDR, ...: the port's rate is certain */
    double gbit;      /* of one port, or of a whole node, or of one GPU; 0: as usual */
    enum { FT_PER_PORT, FT_PER_NODE, FT_PER_GPU } scope;
    double ports; /* "8x200": 8; 0: not said */
    bool known;   /* anything in the text is */
    bool nvlink_named, xgmi_named, pcie_named;
    double pcie_gbps;   /* "PCIe Gen4 x8": of its lanes; 0: not said */
    bool pcie_switched; /* "PCIe switch" */
    bool p2p_off;       /* "P2P disabled", "no P2P" */
    bool xeon;          /* "Xeon", "Intel": whose memory it then goes through */
    enum { FT_AS_USUAL, FT_RAILS, FT_TREE } topology;
    double oversubscription; /* "2:1"; 0: not said */
} ft_network;

/* Free text ("8x200 Gbps HDR InfiniBand/node (Selene)"). `known` is false where nothing in it is; figures that
 * cannot be and misspelt fabrics fail. */
ft_status ft__network_parse(const char *text, ft_network *out, ft_error *err);
#endif
