/* Communicators of a layout by number, as a Chakra trace names them. */
#ifndef FT_REPORT_TRACE_CHAKRA_GROUPS_H
#define FT_REPORT_TRACE_CHAKRA_GROUPS_H
#include "base/text.h"
#include "layout/layout.h"

/* Sets of groups: one for each ft_axis, and those of hybrid sharding. */
enum {
    FT_CHAKRA_SHARERS = FT_AXIS_COUNT, /* data ranks that share one copy of the sharded */
    FT_CHAKRA_COPIES,                  /* those that hold the same part of every copy */
    FT_CHAKRA_SETS
};
bool ft__chakra_hybrid(const ft_parallel *p);

/* The number of a rank's group of a set, from 1. */
int64_t ft__chakra_group(const ft_parallel *p, int set, int64_t rank);
/* The groups of a rank, as members of a JSON object; those whose first member was listed before (from `from` on) are
 * left out. */
void ft__chakra_groups(const ft_parallel *p, int64_t rank, int64_t from, ft_text *out);
#endif
