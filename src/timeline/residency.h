/* What a kernel finds in the last-level cache: of what the kernels before it wrote and read, as much as the traffic
 * since then has left there. */
#ifndef FT_TIMELINE_RESIDENCY_H
#define FT_TIMELINE_RESIDENCY_H
#include "device/gpu.h"
#include "graph/graph.h"

typedef struct ft_found {
    double read;  /* bytes of its operands */
    double hit;   /* of them, found in the cache */
    double least; /* the share found of the operand that is found least: all threads wait for it */
    double back;  /* bytes of others that it has to wait for on their way to memory; only where it writes nearly none */
} ft_found;

/* Fills `found`, one per node, for every node that runs. `last` has room for a figure per tensor. */
void ft__residency_walk(const ft_graph *g, const ft_device *device, double *last, ft_found *found);

/* How much longer than in its benchmark such a kernel takes in ms, negative where it is shorter. `timed`: the share of
 * its operands that the benchmark found in the cache; `wait_ms`: what it waits where it finds none. */
double ft__residency_ms(const ft_device *device, const ft_found *found, double timed, double wait_ms);
/* What a kernel waits once for operands that are not there: of elements of so many bytes where they are not one run. */
double ft__residency_wait_ms(bool scattered, bool mixed, double bytes);
/* Of a row operator whose loads wait for each other: its time beyond the launch over that of its benchmark; 0 where it
 * is none of those. */
double ft__residency_chain(const ft_found *found, const char *op, double timed);
/* That share for operands of so many bytes: as our own tables were taken, or `in_models`, as kernels were whose figures
 * come from there. */
double ft__residency_timed(const ft_device *device, double bytes, bool in_models);
#endif
