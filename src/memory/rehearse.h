/* Steps put through the caching allocator, tensor by tensor: what it holds in the end beyond what was asked of it. */
#ifndef FT_MEMORY_REHEARSE_H
#define FT_MEMORY_REHEARSE_H
#include "memory/kept.h"
#include "memory/sweep.h"

/* `s` has its sizes and workspaces; `update` bytes are what the optimizer takes while it runs, `handle` those of
 * one thread's workspace of the BLAS. `*beyond`: reserved bytes less the peak. False: out of memory. */
/* What a rehearsal depends on. Equal keys: equal results. */
void ft__rehearsal_key(const ft_sweep *s, const ft_kept *k, double update, double handle, bool expandable,
                       uint64_t key[2]);
bool ft__rehearse(const ft_sweep *s, const ft_kept *k, double update, double handle, bool expandable, double *beyond);
#endif
