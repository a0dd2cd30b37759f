/* platform.c: from tiers to a fat tree.
 *
 * Leaves carry 32 NICs unless the cluster says how many nodes hang on one: half of a 64-port switch (NVIDIA QM9700,
 * DGX SuperPOD H100 reference architecture), the other half goes up. With rails, NIC i of 32 nodes share a leaf; in a
 * plain tree all NICs of four nodes do. Up to 64 leaves hang on one row of spines; more are grouped 32 by 32 under a
 * third level. A leaf that is oversubscribed o:1 has 1/o as many cables up as down; above the leaves the tree is whole.
 *
 * A cable and the switch behind it add 0.13 us (Mellanox QM8700 product brief: "sub 130 ns" from port to port). The far
 * larger cost of a message's start is the closed forms' and is added there.
 *
 * Routes are SimGrid's own for fat trees, by the destination's number (Zahavi's D-mod-k): shifts do not collide.
 *
 * Leaves out: adaptive routing, packets, back-pressure, failed cables, dragonflies (taken as fat trees). */
#include "comm/platform.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "comm/network_constants.h"

ft_status ft__network_word(const json_t *cluster, bool *simulate, ft_error *err)
{
    const char *word = NULL;
    *simulate = false;
    if (!json_is_object(cluster)) return FT_OK;
    FT_TRY(ft__json_string(cluster, "network", FT_OPTIONAL, &word, "cluster", err));
    if (!word || !strcmp(word, "closed")) return FT_OK;
    *simulate = !strcmp(word, "simgrid");
    if (*simulate) return FT_OK;
    return ft__fail_at(err, FT_E_NAME, "cluster.network", 0, 0,
                       "unknown network model \"%.60s\"; it is \"closed\" or \"simgrid\"", word);
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t ft__leaf_nodes(const ft_cluster *c)
{
    int64_t per_node = c->gpus_per_node > 0 ? c->gpus_per_node : 1;
    int64_t nodes = c->leaf_nodes > 0 ? c->leaf_nodes : c->rails ? 32 : 32 / per_node;
    return nodes < 1 ? 1 : nodes;
}

ft_status ft__platform_of(const ft_cluster *c, int64_t ranks, ft_platform *out, ft_error *err)
{
    *out = (ft_platform){.per_node = c->gpus_per_node > 0 ? c->gpus_per_node : 1, .domain = 1, .rails = c->rails};
    for (int i = 0; i < c->tiers; i++)
        if (c->tier[i].fabric < FT_INFINIBAND && c->tier[i].gpus > out->domain) out->domain = c->tier[i].gpus;
    if (c->tiers < 1 || c->tier[c->tiers - 1].fabric < FT_INFINIBAND)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "cluster.network", 0, 0,
                           "there is no network to simulate: %lld GPUs sit in one domain", (long long)ranks);
    const ft_tier *network = &c->tier[c->tiers - 1];
    int64_t nodes = ceil_div(ranks, out->per_node);
    out->by_node = ranks > FT_MOST_HOSTS / 2;
    if (out->by_node && nodes > FT_MOST_HOSTS)
        return ft__fail_at(err, FT_E_RANGE, "cluster.network", 0, 0,
                           "the network simulator takes up to %d nodes, got %lld; leave \"network\" out for the closed "
                           "forms",
                           FT_MOST_HOSTS, (long long)nodes);
    out->leaf_nodes = ft__leaf_nodes(c);
    if (out->leaf_nodes > nodes) out->leaf_nodes = nodes;
    int64_t in_leaf = out->rails || out->by_node ? out->leaf_nodes : out->leaf_nodes * out->per_node;
    int64_t groups = ceil_div(nodes, out->leaf_nodes),
            leaves = groups * (out->rails && !out->by_node ? out->per_node : 1);
    double over = fmax(1, network->oversubscription);
    out->down[0] = in_leaf;
    out->up[0] = 1;
    out->levels = leaves == 1 ? 1 : leaves <= 64 ? 2 : 3;
    if (out->levels > 1) {
        out->down[1] = out->levels == 2 ? leaves : 32;
        out->up[1] = (int64_t)fmax(1, floor((double)in_leaf / over + 0.5));
    }
    if (out->levels > 2) {
        out->down[2] = ceil_div(leaves, 32);
        out->up[2] = 32;
    }
    out->hosts = 1;
    for (int i = 0; i < out->levels; i++) out->hosts *= out->down[i];
    out->gbps = network->gbps * network->efficiency * (out->by_node ? (double)out->per_node : 1);
    out->latency_us = FT_K_NETWORK_SWITCH_US;
    return FT_OK;
}

int64_t ft__platform_host(const ft_platform *p, int64_t rank)
{
    int64_t node = rank / p->per_node, gpu = rank % p->per_node;
    if (p->by_node) return node;
    if (!p->rails) return rank;
    int64_t group = node / p->leaf_nodes, inside = node % p->leaf_nodes;
    return (group * p->per_node + gpu) * p->leaf_nodes + inside;
}

void ft__platform_xml(const ft_platform *p, ft_text *out)
{
    ft__text_addf(out,
                  "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                  "<platform version=\"4.1\">\n  <cluster id=\"tree\" prefix=\"h\" radical=\"0-%lld\" suffix=\"\" "
                  "speed=\"1Gf\" bw=\"%.0fBps\" lat=\"%.3fus\" sharing_policy=\"SPLITDUPLEX\" topology=\"FAT_TREE\" "
                  "topo_parameters=\"%d;",
                  (long long)(p->hosts - 1), p->gbps * 1e9, p->latency_us, p->levels);
    for (int i = 0; i < p->levels; i++) ft__text_addf(out, "%s%lld", i ? "," : "", (long long)p->down[i]);
    for (int i = 0; i < p->levels; i++) ft__text_addf(out, "%s%lld", i ? "," : ";", (long long)p->up[i]);
    for (int i = 0; i < p->levels; i++) ft__text_addf(out, "%s1", i ? "," : ";");
    ft__text_add(out, "\"/>\n</platform>\n");
}

void ft__platform_words(const ft_platform *p, ft_text *out)
{
    ft__text_addf(out, "fat tree of %d level%s: %lld %s under a leaf", p->levels, p->levels > 1 ? "s" : "",
                  (long long)p->down[0], p->by_node ? "nodes" : "NICs");
    if (p->levels > 1) ft__text_addf(out, ", %lld leaves under a spine", (long long)p->down[1]);
    if (p->levels > 2) ft__text_addf(out, ", %lld groups under the core", (long long)p->down[2]);
    if (p->levels > 1 && p->up[1] < p->down[0])
        ft__text_addf(out, "; %.3g:1 above the leaves", (double)p->down[0] / (double)p->up[1]);
    if (p->rails) ft__text_add(out, "; rails");
}
