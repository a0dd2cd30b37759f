/* What the two files of the gated delta rule share: its sizes, what it is given, and some of its steps. */
#ifndef FT_MODEL_DELTA_H
#define FT_MODEL_DELTA_H
#include "model/parts.h"

enum { FT_DELTA_CHUNK = 64 };

typedef struct ft_delta {
    int64_t tokens, batch, length, heads, key_heads, key_dim, value_dim, keys, values, chunks,
        whole /* padded tokens */;
} ft_delta;

/* What the rule is given: queries, keys, values by token, decays and learning rates by head (decays by channel). */
typedef struct ft_delta_given {
    ft_ref q, k, v, decay, rate;
} ft_delta_given;

/* x over the root of its squares' sum. */
ft_ref ft__delta_unit(ft_build *b, ft_ref x);
/* Raised to fp32 and stood head by head. */
ft_ref ft__delta_raised(ft_build *b, ft_ref x, int64_t rows, int64_t cols);
/* A chunk's hidden pairs, or as many rows of one column. */
ft_ref ft__delta_triangle(ft_build *b, int64_t cols);
/* The last node is one of `times` steps of a loop. */
ft_ref ft__delta_step(ft_build *b, ft_ref x, int64_t times);
/* delta_channel.c: the rule written out where each channel has a decay of its own. */
ft_ref ft__delta_by_channel(ft_maker *m, const ft_delta *d, const ft_delta_given *g);
#endif
