/* The sizes of a state-space layer's recurrence, and its written-out form: for state_space.c and scan_eager.c alone. */
#ifndef FT_MODEL_STATE_SPACE_H
#define FT_MODEL_STATE_SPACE_H
#include "model/parts.h"

typedef struct ft_scan {
    int64_t batch, length, heads, head_dim, inner, state, groups, kernel, chunk, chunks, conv_width;
} ft_scan;

/* x [tokens, inner], key and query (B and C) [tokens, groups * state], dt [tokens, heads]: result [tokens, inner]. */
ft_ref ft__scan_eager(ft_maker *m, const ft_scan *s, ft_ref x, ft_ref key, ft_ref query, ft_ref dt);
/* The same for one token, on the state that the cache holds. */
ft_ref ft__scan_once(ft_maker *m, const ft_scan *s, ft_ref x, ft_ref key, ft_ref query, ft_ref dt);
/* A cache of [rows, cols], zeroed and filled with the end of `from`. */
void ft__scan_keep(ft_build *b, int64_t rows, int64_t cols, ft_dtype dtype, ft_ref from);
#endif
