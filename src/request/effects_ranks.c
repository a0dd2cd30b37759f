/* effects_ranks.c: when keys about several GPUs and what joins them have no effect.
 *
 * A rule for every key of `parallel` and `cluster`. Most ask whether an axis has more than one rank; those about links
 * read the cluster twice, with the key and without it. */
#include <string.h>

#include "comm/cluster.h"
#include "comm/spine.h"
#include "ranks/ranks.h"
#include "request/effects.h"
#include "request/effects_rules.h"
#include "request/keys.h"
#include "request/tasks.h"

/* -- the axes ---------------------------------------------------------------------------------- */

static const char *tensor(const ft_effect_case *c) { return c->p->tp > 1 ? NULL : "\"tp\" is 1"; }

static const char *pieces(const ft_effect_case *c)
{
    return tensor(c) ? tensor(c) : c->p->sp ? NULL : "\"sp\" is false";
}

static const char *staged(const ft_effect_case *c) { return c->p->pp > 1 ? NULL : "\"pp\" is 1"; }

static const char *sending(const ft_effect_case *c)
{
    bool waits = c->p->schedule == FT_1F1B || c->p->schedule == FT_GPIPE;
    return staged(c) ? staged(c) : waits ? "stages of this schedule wait for what they send" : NULL;
}

static const char *dealing(const ft_effect_case *c)
{
    int64_t layers = ft__ranks_model(c->a, c->w).layers, places = c->p->pp * ft__parallel_chunks(c->p);
    if (staged(c)) return staged(c);
    return ft__layout_deal(layers, places, true) == FT_DEAL_REST ? NULL : "no layers are left over";
}

static const char *context(const ft_effect_case *c) { return c->p->cp > 1 ? NULL : "\"cp\" is 1"; }

static const char *sharing(const ft_effect_case *c)
{
    return !c->trains ? ft__training(c) : c->shares ? NULL : "\"dp\" and \"cp\" are 1";
}

/* Megatron also sums gradients of norms over tensor ranks that split them, and of a tied table over two stages. */
static const char *reducing(const ft_effect_case *c)
{
    bool norms = c->p->tp > 1 && c->p->sp, tied = c->p->pp > 1 && c->a->tied;
    return c->trains && c->w->execution == FT_RUN_FUSED && (norms || tied) ? NULL : sharing(c);
}

static const char *sharding(const ft_effect_case *c)
{
    bool alone = c->trains && ft__stack_shards_alone(ft__stack(c->w), c->p->zero);
    return alone ? NULL : sharing(c);
}

static const char *sharded(const ft_effect_case *c)
{
    return sharing(c) ? sharing(c) : c->p->zero > 0 ? NULL : "\"zero\" is 0";
}

static const char *wholly_sharded(const ft_effect_case *c)
{
    return sharing(c) ? sharing(c) : c->p->zero == 3 ? NULL : "\"zero\" is not 3";
}

static const char *gathered_after(const ft_effect_case *c)
{
    bool after = c->p->zero == 1 || c->p->zero == 2;
    return sharing(c) ? sharing(c) : after ? NULL : "\"zero\" is not 1 or 2";
}

static const char *experts(const ft_effect_case *c)
{
    if (c->a->experts < 1) return "the model has no experts";
    return c->p->ep > 1 ? NULL : "\"ep\" is 1";
}

static const char *capacity(const ft_effect_case *c)
{
    double skew = ft__real_of(c->said, FT_KEY_ID_EXPERT_SKEW);
    if (experts(c)) return experts(c);
    return skew > ft__real_of(c->said, FT_KEY_ID_EXPERT_CAPACITY) ? NULL : "no expert gets more than that";
}

/* False is what happens anyway but in a dualpipe. */
static const char *expert_overlap(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    return c->p->expert_overlap != 0 || c->p->schedule == FT_DUALPIPE ? experts(c) : NULL;
}

static const char *expert_tensor(const ft_effect_case *c)
{
    return c->a->experts < 1 ? "the model has no experts" : tensor(c);
}

/* -- what joins them --------------------------------------------------------------------------- */

/* GPUs of their own that generate: new weights reach them over the same links, and their ranks exchange. */
static int64_t generating(const ft_effect_case *c) { return c->trains ? c->w->answers.gpus : 0; }

static const char *joined(const ft_effect_case *c)
{
    bool apart = !c->trains && c->p->tp < 2 && c->p->ep < 2;
    return c->ranks < 2 && generating(c) < 2 ? "one GPU" : apart ? "the ranks exchange nothing" : NULL;
}

static bool same_links(const ft_tier *a, const ft_tier *b)
{
    return a->fabric == b->fabric && a->gbps == b->gbps && a->efficiency == b->efficiency &&
           a->latency_us == b->latency_us && a->switched == b->switched && a->reduces == b->reduces;
}

/* The cluster as it would be without the key: where all ranks sit in one node of both, only its own links matter. */
const char *ft__network_idle(const json_t *cluster, const ft_device *device, int64_t ranks, const char *key)
{
    const char *why = NULL;
    ft_cluster with, without;
    json_t *rest = json_copy((json_t *)(uintptr_t)cluster); /* of its keys: the values are shared */
    if (!rest || json_object_del(rest, key) != 0 || ft__cluster_read(cluster, device, ranks, &with, NULL) != FT_OK ||
        ft__cluster_read(rest, device, ranks, &without, NULL) != FT_OK) {
        json_decref(rest); /* that something is wrong with it others say */
        return NULL;
    }
    bool narrows = ft__spine_narrows(&with) || ft__spine_narrows(&without);
    bool switches = ft__among("topology oversubscription leaf_nodes", key) && !with.simulate;
    bool one_node = ranks <= with.gpus_per_node && ranks <= without.gpus_per_node;
    bool usual = !strcmp(key, "gpus_per_node") && with.gpus_per_node == without.gpus_per_node; /* the default, said */
    if (one_node && !usual && same_links(&with.tier[0], &without.tier[0]))
        why = "all ranks are in one node";
    else if (switches && !narrows)
        why = "so few nodes use no oversubscribed switch";
    json_decref(rest);
    return why;
}

static const char *network(const ft_effect_case *c, const char *key)
{
    const int64_t engines = generating(c);
    const char *why = joined(c);
    if (!why) why = ft__network_idle(c->r->cluster, c->r->device, c->ranks, key);
    return why && engines > 1 ? ft__network_idle(c->r->cluster, c->r->device, engines, key) : why;
}

static const char *per_node(const ft_effect_case *c) { return network(c, "gpus_per_node"); }
static const char *interconnect(const ft_effect_case *c) { return network(c, "interconnect"); }
static const char *topology(const ft_effect_case *c) { return network(c, "topology"); }
static const char *oversubscription(const ft_effect_case *c) { return network(c, "oversubscription"); }
static const char *leaves(const ft_effect_case *c) { return network(c, "leaf_nodes"); }
static const char *simulated(const ft_effect_case *c) { return network(c, "network"); }

/* Nodes say how many there are; ranks fill the first of them. As many as are needed is the default. */
static const char *nodes(const ft_effect_case *c)
{
    ft_cluster cluster;
    int64_t given = ft__json_whole_of(ft__key_get(c->r->cluster, FT_KEY_ID_NODES));
    if (ft__cluster_read(c->r->cluster, c->r->device, c->ranks, &cluster, NULL) != FT_OK) return NULL;
    return given > (c->ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node ? "the ranks fill fewer nodes" : NULL;
}

/* -- every key of them ------------------------------------------------------------------------- */

const ft_rule ft__ranks_rules[FT_KEY_COUNT] = {
    [FT_KEY_ID_PARALLEL] = ft__acts,
    [FT_KEY_ID_CLUSTER] = ft__acts,
    [FT_KEY_ID_TP] = ft__acts,
    [FT_KEY_ID_PP] = ft__acts,
    [FT_KEY_ID_VPP] = staged,
    [FT_KEY_ID_DP] = ft__acts,
    [FT_KEY_ID_GPUS] = ft__acts,
    [FT_KEY_ID_CP] = ft__acts,
    [FT_KEY_ID_EP] = ft__acts,
    [FT_KEY_ID_ETP] = expert_tensor,
    [FT_KEY_ID_ZERO] = sharding,
    [FT_KEY_ID_SP] = tensor,
    [FT_KEY_ID_SCHEDULE] = staged,
    [FT_KEY_ID_OVERLAP] = sharing,
    [FT_KEY_ID_TP_OVERLAP] = pieces,
    [FT_KEY_ID_DEAL] = dealing,
    [FT_KEY_ID_CP_KIND] = context,
    [FT_KEY_ID_ULYSSES] = context,
    [FT_KEY_ID_GATHER] = wholly_sharded,
    [FT_KEY_ID_SHARD] = sharded,
    [FT_KEY_ID_RESHARD] = wholly_sharded,
    [FT_KEY_ID_GATHER_OVERLAP] = gathered_after,
    [FT_KEY_ID_OVERLAP_P2P] = sending,
    [FT_KEY_ID_EXPERT_DISPATCH] = experts,
    [FT_KEY_ID_EXPERT_OVERLAP] = expert_overlap,
    [FT_KEY_ID_EXPERT_SKEW] = experts,
    [FT_KEY_ID_EXPERT_CAPACITY] = capacity,
    [FT_KEY_ID_BUCKET] = sharing,
    [FT_KEY_ID_REDUCE_DTYPE] = reducing,
    [FT_KEY_ID_GATHER_DTYPE] = sharded,
    [FT_KEY_ID_NODES] = nodes,
    [FT_KEY_ID_GPUS_PER_NODE] = per_node,
    [FT_KEY_ID_INTERCONNECT] = interconnect,
    [FT_KEY_ID_TOPOLOGY] = topology,
    [FT_KEY_ID_OVERSUBSCRIPTION] = oversubscription,
    [FT_KEY_ID_LEAF_NODES] = leaves,
    [FT_KEY_ID_NCCL] = joined,
    [FT_KEY_ID_NETWORK] = simulated,
    [FT_KEY_ID_TIERS] = joined,
};
