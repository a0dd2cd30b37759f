/* How the tiles of an attention kernel are dealt to SMs, and when the last of them ends. */
#ifndef FT_KERNEL_ATTENTION_WALK_H
#define FT_KERNEL_ATTENTION_WALK_H
#include <stdbool.h>

#include "device/gpu.h"

/* What a block of threads takes at a time: rows of the side it owns, steps of the other, which it walks. */
typedef struct ft_attention_tile {
    int lowest, highest; /* of 64, 128 and 256 rows */
    double step;
    bool owns_keys;
} ft_attention_tile;

typedef struct ft_attention_costs {
    double cell_ms; /* a row and a column in one SM */
    double small, tile_ms, wave_ms, q_full, q_causal;
    double diagonal; /* more of the steps that a causal mask cuts */
    ft_attention_tile tile;
} ft_attention_costs;

typedef struct ft_attention_walk {
    double ms, tiles, waves, longest_share;
    int height;
    double step;
} ft_attention_walk;

/* A framework's kernel, not an engine's. */
bool ft__attention_of_frameworks(const ft_op *op);
ft_attention_tile ft__attention_tile(const ft_device *device, const ft_op *op, bool back);
/* By the tile height that ends first. */
ft_attention_walk ft__attention_walk(const ft_device *device, const ft_op *op, const ft_attention_costs *c);
#endif
