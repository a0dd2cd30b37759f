/* Operands of low-precision products that wait for the backward pass in their own format. */
#ifndef FT_MEMORY_OPERANDS_H
#define FT_MEMORY_OPERANDS_H
#include "memory/lifetime.h"
#include "model/workload.h"

/* Per storage, its bytes over what its format says: NULL where all are as they say. False: out of memory. */
bool ft__low_operands(const ft_graph *g, const ft_lifetimes *lives, const ft_workload *work, const float **out);
#endif
