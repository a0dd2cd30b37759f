/* A quantised checkpoint as an engine loads it, where a request names no format. */
#ifndef FT_SERVING_CHECKPOINT_H
#define FT_SERVING_CHECKPOINT_H
#include "serving/cost.h"

/* The format that the checkpoint is called after: what most products compute in, fp4 for mxfp4; bf16 for weights
 * alone. */
ft_dtype ft__checkpoint_dtype(const ft_arch *a);
/* Formats of the parts, where `by_module` and `formats` are set. */
void ft__checkpoint_settle(ft_served *m);
#endif
