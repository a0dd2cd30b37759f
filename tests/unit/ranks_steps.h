/* Steps on many GPUs that several tests ask for. */
#ifndef TESTS_RANKS_STEPS_H
#define TESTS_RANKS_STEPS_H
#include "ranks_rig.h"

/* GPUs that share nothing but a slow network: its bytes are all that an exchange costs. */
static inline ft_cluster slow_network(int64_t gpus, double gbps)
{
    ft_cluster c = {.tiers = 2, .gpus_per_node = 1, .nodes = gpus, .gpus = gpus};
    c.tier[0] = (ft_tier){.fabric = FT_NVLINK, .gbps = 300, .efficiency = 1, .gpus = 1, .oversubscription = 1};
    c.tier[1] = (ft_tier){.fabric = FT_INFINIBAND, .gbps = gbps, .efficiency = 1, .gpus = gpus, .oversubscription = 1};
    c.tier[1].switched = true;
    return c;
}

static inline void begin(rig *r, const char *model)
{
    *r = (rig){.arena = ft__arena_new(0),
               .memo = ft__memo_new(),
               .device = limit_device("h100_sxm"),
               .arch = open_model(model),
               .work = train_work(1, 2048),
               .parallel = layout_of(1, 1, 1, 1, 1)};
    r->cluster = connected_nodes(16384);
}

static inline void close_to(double found, double expected, double within, const char *what)
{
    if (fabs(found / expected - 1) > within) fail_msg("%s: %.4g, expected %.4g", what, found, expected);
}
#endif
