/* dispatch.c: how often a token travels to its experts.
 *
 * NCCL's all-to-all sends a copy for every expert that a token picked. DeepEP and HybridEP send it once to a rank that
 * has several of them, and over the network once to a node, whose NVLink does the rest; coming back, a rank and a node
 * add up what they have of it first (DeepSeek-V3's report, section 3.2.2). With even routing the number of places that
 * one of k picks among E experts falls into is a draw without replacement; a router that is limited to some groups of
 * experts (the same report, section 2.1.2: 4 of 8) keeps a token to as many nodes. */
#include <math.h>

#include "ranks/ranks.h"

/* The share of `places` that some of `draws` falls into, out of `things` that lie over them evenly. */
static double reached(double things, int64_t draws, double places)
{
    double elsewhere = things - things / places, missed = 1;
    for (int64_t i = 0; i < draws; i++) missed *= fmax(0, elsewhere - (double)i) / fmax(1, things - (double)i);
    return 1 - missed;
}

double ft__ranks_dispatched(const ft_ranks *r, const ft_group *group)
{
    ft_divisible model = ft__ranks_model(r->arch, r->work);
    double experts = (double)model.experts, picks = (double)model.topk;
    if (!r->parallel->dispatch_once || group->size < 2 || !(experts > 1) || !(picks > 1)) return 1;
    double span = (double)((group->size - 1) * group->stride + 1), node = fmax(1, (double)r->cluster->tier[0].gpus);
    double nodes = ceil(span / node), places = nodes > 1 ? nodes : (double)group->size;
    /* Groups first, then experts within those: what they leave out is no place for this token. */
    double groups = (double)model.groups, picked = (double)model.picked_groups, open = picked / groups;
    double within = groups > 1 ? fmax(1, places >= groups ? places * open
                                                          : places * reached(groups, model.picked_groups, places))
                               : places;
    return fmin(1, within * reached(experts * open, model.topk, within) / picks);
}
