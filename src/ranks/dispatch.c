/* dispatch.c: how often a token travels to its experts.
 *
 * NCCL's all-to-all sends a copy for every expert that a token picked. DeepEP and HybridEP send it once to a rank that
 * has several of them, and over the network once to a node, whose NVLink does the rest; coming back, a rank and a node
 * add up what they have of it first (DeepSeek-V3's report, section 3.2.2). With even routing the number of places that
 * one of k picks among E experts falls into is a draw without replacement. */
#include <math.h>

#include "ranks/ranks.h"

double ft__ranks_dispatched(const ft_ranks *r, const ft_group *group)
{
    ft_divisible model = ft__ranks_model(r->arch, r->work);
    double experts = (double)model.experts, picks = (double)model.topk;
    if (!r->parallel->dispatch_once || group->size < 2 || !(experts > 1) || !(picks > 1)) return 1;
    double span = (double)((group->size - 1) * group->stride + 1), node = fmax(1, (double)r->cluster->tier[0].gpus);
    double nodes = ceil(span / node), places = nodes > 1 ? nodes : (double)group->size;
    double elsewhere = experts - experts / places, missed = 1;
    for (int64_t i = 0; i < model.topk; i++) missed *= fmax(0, elsewhere - (double)i) / (experts - (double)i);
    return fmin(1, places * (1 - missed) / picks);
}
