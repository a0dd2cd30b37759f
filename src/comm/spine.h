/* How much of an exchange crosses the cables above the leaf switches, which may be fewer than those below. */
#ifndef FT_COMM_SPINE_H
#define FT_COMM_SPINE_H
#include "comm/collective.h"

/* How many times longer it takes than over a whole tree, with all groups of this shape at once, `local` of its ranks in
 * one node (or larger domain). `tree`: an all-reduce by NCCL's trees, not by rings. */
double ft__spine_slowdown(const ft_cluster *c, int tier, ft_collective op, bool tree, const ft_group *group,
                          double local);
/* Whether any can take longer: nodes hang on several leaves, with fewer cables above them than below. */
bool ft__spine_narrows(const ft_cluster *c);
#endif
