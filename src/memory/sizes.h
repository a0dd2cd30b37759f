/* What a walk over a step needs to know before it begins: who lives how long, bytes of tensors and workspaces, what is
 * there before and after. */
#ifndef FT_MEMORY_SIZES_H
#define FT_MEMORY_SIZES_H
#include "memory/kept.h"
#include "memory/sweep.h"

extern const ft_memory_share ft__share_alone; /* a GPU alone keeps all, and has nothing beside */

/* `lives`: of the graph's tensors, NULL: not known yet. `*update`: bytes that the optimizer takes while it runs. From
 * the graph's arena. */
ft_status ft__sweep_begin(const ft_graph *g, const ft_workload *work, const ft_device *device,
                          const ft_memory_share *share, const ft_lifetimes *lives, ft_sweep *s, ft_kept *k,
                          double *update, ft_error *err);
#endif
