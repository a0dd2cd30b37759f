/* A model that a card holds in part: layers or experts that llama.cpp keeps in the host's memory. */
#ifndef FT_RANKS_SPLIT_H
#define FT_RANKS_SPLIT_H
#include "timeline/step.h"

/* Moves what "gpu_layers" and "cpu_experts" leave to the host out of a forecast step: its memory, and unless `memory`
 * alone was asked for its time. Nothing where a workload has neither. */
void ft__split_apply(const ft_graph *g, const ft_workload *work, const ft_device *device, bool memory, ft_step *step);
/* Of a model of `layers`: the least that must leave the GPU for it to fit, of experts or of layers: the workload that
 * says so, and its step. False: it fits in no such way, or is split already. */
bool ft__split_fit(const ft_graph *g, const ft_workload *work, const ft_device *device, int64_t layers, bool memory,
                   bool experts, const ft_step *asked, ft_workload *out, ft_step *fitted);
#endif
