/* spine.c: what an exchange sends across the cables above the leaf switches.
 *
 * Nodes hang on leaves in the order of their ranks, L of them on one; above a leaf that is oversubscribed o:1 there are
 * 1/o as many cables as below. All groups of one shape exchange at once. If a share x of what a leaf's NICs send leaves
 * the leaf, it takes max(1, o x) times as long. For groups of m nodes that stand d nodes apart:
 *
 *   ring, chain   d of L nodes send across the edge to the next leaf: x = d/L, 1 at most. A leaf in which one group
 *                 ends and another begins, the edges of the leaves and of the groups not falling together, has the way
 *                 back of the one beside the way on of the other: twice that. One flow takes one cable
 *   tree          a double binary tree crosses a leaf's edge on more edges, with a quarter of the bytes each
 *   all-to-all    to all others alike: of m - 1 those (m - L/d) that hang elsewhere
 *   send          to who stands d nodes further: x = d/L, 1 at most
 *
 * and nothing for groups that fill a leaf or a whole part of it. What is sent between rails goes over the node's own
 * links first (NCCL's PXN), so that a rail is a tree of its own. */
#include "comm/spine.h"

#include <math.h>

#include "comm/platform.h"

/* Nodes under one leaf of a tier: of the tier below where that is a network too. */
static double under_leaf(const ft_cluster *c, int tier)
{
    bool below = tier > 0 && c->tier[tier - 1].fabric >= FT_INFINIBAND;
    double per_node = c->gpus_per_node > 0 ? (double)c->gpus_per_node : 1;
    return fmax(1, below ? (double)c->tier[tier - 1].gpus / per_node : (double)ft__leaf_nodes(c));
}

static bool divides(double small, double large) { return fmod(large, small) < 0.5; }

/* Cables above a leaf and below it: whole ones, as the simulated tree has them. */
static double cables(const ft_cluster *c, int tier, double leaf, double *up)
{
    double down = leaf * (c->rails ? 1 : fmax(1, (double)c->gpus_per_node));
    *up = fmax(1, floor(down / fmax(1, c->tier[tier].oversubscription) + 0.5));
    return down;
}

double ft__spine_slowdown(const ft_cluster *c, int tier, ft_collective op, bool tree, const ft_group *group,
                          double local)
{
    double stride = group->stride > 0 ? (double)group->stride : 1, per_node = fmax(1, (double)c->gpus_per_node);
    double leaf = under_leaf(c, tier), apart = fmax(1, floor(stride * local / per_node)), up;
    double nodes = fmax(1, ceil((double)group->size / local)), span = nodes * apart;
    double all = (double)ft__cluster_nodes_used(c); /* others send nothing */
    if (c->tier[tier].oversubscription <= 1) return 1;
    if (all <= leaf || divides(span, leaf)) return 1; /* one leaf, or no group leaves its own */
    double down = cables(c, tier, leaf, &up), edge = fmin(1, apart / leaf);
    bool meet = all > span && !divides(leaf, span) && op != FT_COLLECTIVE_SEND_RECV;
    if (op == FT_COLLECTIVE_ALL_TO_ALL) {
        double near = fmin(nodes, fmax(1, leaf / apart));
        return fmax(1, down / up * (nodes - near) / fmax(1, nodes - 1));
    }
    double flows = down * fmin(1, meet ? 2 * edge : edge);
    double edges = ceil(fmin(all, span) / leaf) > 2 ? 1.5 : 1; /* a tree's across a leaf's edge, in rings' bytes */
    return fmax(1, tree ? edges * flows / up : ceil(flows / up - 1e-9));
}

bool ft__spine_narrows(const ft_cluster *c)
{
    for (int t = 0; t < c->tiers; t++)
        if (c->tier[t].fabric >= FT_INFINIBAND && c->tier[t].oversubscription > 1 &&
            (double)ft__cluster_nodes_used(c) > under_leaf(c, t))
            return true;
    return false;
}
