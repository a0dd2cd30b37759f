/* A cluster as its owner describes it, tier by tier. */
#ifndef FT_COMM_CLUSTER_FILE_H
#define FT_COMM_CLUSTER_FILE_H
#include "comm/cluster.h"

/* Reads "tiers" of a spec: domains must nest and the outermost hold `ranks`. `where` names the spec in errors. */
ft_status ft__cluster_tiers(const json_t *tiers, const char *where, int64_t ranks, ft_cluster *out, ft_error *err);
#endif
