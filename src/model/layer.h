/* A layer of a decoder (layer.c). */
#ifndef FT_MODEL_LAYER_H
#define FT_MODEL_LAYER_H
#include "model/parts.h"

/* What layers of one model differ in. */
typedef struct ft_layer_kind {
    ft_mixer mixer;
    ft_feed feed;
    bool windowed, rotated, keys_are_values, shares_keys, sparse_gate, start_bare;
    bool grams;
    bool looks; /* behind a layer that looks at what an encoder made */
    int64_t compress;
} ft_layer_kind;

ft_ref ft__part_layer(ft_maker *m, ft_ref x, ft_layer_kind kind);
#endif
