/* Between the two halves of a mixture of experts. */
#ifndef FT_MODEL_MOE_H
#define FT_MODEL_MOE_H
#include "model/parts.h"

ft_ref ft__route(ft_maker *m, ft_ref x); /* router.c: the weights of the chosen experts, [tokens, topk] */
#endif
