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

/* Steps that differ in their sizes. */
typedef struct ft_course {
    double update, handle;
    bool expandable;
    double room; /* bytes that the device has for it; 0: any */
    int steps;
    void (*resize)(void *user, int step); /* gives the sweep's tensors and workspaces the sizes of a step */
    void *user;
} ft_course;
bool ft__rehearse_varied(const ft_sweep *s, const ft_kept *k, const ft_course *course, double *beyond);
#endif
