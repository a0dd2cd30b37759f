/* A second stack of layers that makes actions of what a language model read (actor.c): pi0. */
#ifndef FT_MODEL_ACTOR_H
#define FT_MODEL_ACTOR_H
#include <stdint.h>

#include "model/bytes.h"

typedef struct ft_actor {
    ft_stack_size size; /* 0 layers: there is none */
    int64_t head_dim;
    int64_t actions, action_width, state_width; /* actions that are made at once */
    int64_t steps;                              /* of denoising, where a request says nothing */
} ft_actor;
#endif
