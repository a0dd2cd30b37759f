/* Adapters: what is trained beside frozen weights (LoRA, Hu et al. 2021), and how software runs it. */
#ifndef FT_GRAPH_ADAPTER_H
#define FT_GRAPH_ADAPTER_H
#include <stdbool.h>

#include "graph/site.h"

/* Products that adapters are put beside, bits of ft_adapters.targets. A product that is several at once (queries, keys
 * and values; gate and up) is meant by any of them. */
typedef enum ft_target {
    FT_TARGET_Q = 1 << 0,
    FT_TARGET_K = 1 << 1,
    FT_TARGET_V = 1 << 2,
    FT_TARGET_O = 1 << 3,
    FT_TARGET_GATE = 1 << 4,
    FT_TARGET_UP = 1 << 5,
    FT_TARGET_DOWN = 1 << 6,
    FT_TARGET_Q_A = 1 << 7, /* latent attention's */
    FT_TARGET_Q_B = 1 << 8,
    FT_TARGET_KV_A = 1 << 9,
    FT_TARGET_KV_B = 1 << 10,
    FT_TARGET_MIXER_IN = 1 << 11, /* a state space layer's */
    FT_TARGET_MIXER_OUT = 1 << 12,
    FT_TARGET_OTHER = 1 << 13, /* any other linear layer inside the layers */
    FT_TARGET_ALL = (1 << 14) - 1
} ft_target;

/* The numbers of an adapter. */
typedef enum ft_adapter_form {
    FT_ADAPTER_OF_STACK,
    FT_ADAPTER_FP32,    /* weights and products in fp32: x is raised, the sum goes back to the layer's format */
    FT_ADAPTER_MODEL,   /* the layer's format, no casts */
    FT_ADAPTER_AUTOCAST /* weights, and dropout unless inputs stay narrow, in fp32, products in the layer's format */
} ft_adapter_form;

typedef struct ft_adapters {
    unsigned targets; /* of ft_target; 0: the stack's */
    ft_adapter_form form;
    double dropout;
    bool dropout_said;      /* otherwise the stack's */
    bool scaled_in_product; /* alpha / rank is the second product's factor, not a kernel of its own */
    bool magnitude;         /* DoRA: a trained length for every row of the weight */
    bool narrow_inputs;     /* under autocast x stays as it came, beside packed weights */
    bool copies_base;       /* what the layer makes is copied before the adapter's is added */
    bool embeddings;        /* embeddings and head are trained too */
} ft_adapters;
#endif
