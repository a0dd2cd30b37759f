/* Memory that a framework's kernels take from the allocator while they run, beside their operands and results. */
#ifndef FT_MEMORY_WORKSPACE_H
#define FT_MEMORY_WORKSPACE_H
#include "graph/graph.h"

/* Bytes that node `n` holds while it runs, what the graph itself says included. */
double ft__node_workspace(const ft_graph *g, const ft_node *n, const ft_device *device);
/* Its kernel is a product that a framework hands to the BLAS, by its thread's handle. */
bool ft__calls_blas(const ft_node *n);
#endif
