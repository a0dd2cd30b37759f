/* The steps between a tower that sees and the language model. */
#ifndef FT_MODEL_STEPS_H
#define FT_MODEL_STEPS_H
#include <stdbool.h>
#include <stdint.h>

/* One step between a tower and the language model (projector.c). */
typedef enum ft_step_kind {
    FT_STEP_NORM, /* LayerNorm */
    FT_STEP_RMSNORM,
    FT_STEP_MERGE,  /* `width` by `width` neighbours side by side */
    FT_STEP_POOL,   /* their mean */
    FT_STEP_LINEAR, /* a product into `width` */
    FT_STEP_ACT,
    FT_STEP_GLU,     /* the activation of one half times the other */
    FT_STEP_GATED,   /* gate and up into `width`, down to `into` */
    FT_STEP_CONV,    /* a filter of 3 x 3 into `width`, every `stride`-th place */
    FT_STEP_RESAMPLE /* learned queries look at the patches and take their place */
} ft_step_kind;
typedef struct ft_project_step {
    ft_step_kind kind;
    int64_t width, into; /* of a product: 0: the language model's; -1: as it comes. Of a pool 0: down to tower_tokens */
    int64_t stride;
    bool bias;
    const char *activation;
} ft_project_step;
enum { FT_MOST_STEPS = 12 };
#endif
