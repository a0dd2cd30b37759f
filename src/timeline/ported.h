/* Transformer Engine as AMD first carried it over: what its kernels for few bits take there. */
#ifndef FT_TIMELINE_PORTED_H
#define FT_TIMELINE_PORTED_H
#include "graph/graph.h"
#include "kernel/kernel.h"
#include "model/workload.h"

/* A product whose operands the stack's kernels cast, on the units that they were carried over to. */
bool ft__ported(const ft_device *device, const ft_workload *work, const ft_node *n);
/* To the forecast of the product alone, its operands cast. */
void ft__apply_ported(const ft_device *device, const ft_node *n, ft_forecast *f);
/* The kernel that undoes GELU: it casts what it makes as well. */
bool ft__ported_undoes(const ft_device *device, const ft_workload *work, const ft_node *n);
/* To its forecast; `width` elements are a row. */
void ft__apply_ported_undoing(const ft_device *device, const ft_workload *work, const ft_node *n, int64_t width,
                              ft_forecast *f);
/* How much shorter than forecast software of today is; 0 where that was forecast, or the stack was named. */
double ft__ported_sooner(const ft_workload *work);
#endif
