/* What an optimizer keeps between steps, and what it holds while it runs. */
#ifndef FT_TIMELINE_STATES_H
#define FT_TIMELINE_STATES_H
#include "model/workload.h"

/* Bytes kept beside one trained parameter tensor (one copy of it), fp32 master copy included. `parts`, when not NULL,
 * gets the sizes of its tensors (at most 3), `*count` how many. */
enum { FT_STATE_PARTS = 4 };
int ft__optimizer_states(const ft_workload *work, const ft_tensor *parameter, double parts[FT_STATE_PARTS]);

/* Bytes of a gradient's element that waits for the optimizer: fp32 with master weights (Megatron's main_grad). */
/* Bytes of an element of the gradients that are kept beside fp32 copies: fp32, or 16 bits where the stack sums so. */
double ft__main_gradient(const ft_workload *work);
double ft__gradient_element(const ft_workload *work, const ft_tensor *parameter);

/* Bytes of the tensors that autograd gets for gradients which Megatron's products have already added up
 * (stand_ins.c). */
double ft__stand_ins(const ft_graph *g, const ft_workload *work);

/* Bytes held during the update: `all` of the trained parameters in their own format, `widest` the tensor whose update
 * takes most. */
double ft__update_workspace(const ft_workload *work, double all, const ft_tensor *widest);
#endif
