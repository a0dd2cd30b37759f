/* The sizes of a state-space layer's recurrence, and its written-out form: for state_space.c, scan_eager.c and other
 * recurrences. */
#ifndef FT_MODEL_STATE_SPACE_H
#define FT_MODEL_STATE_SPACE_H
#include "model/parts.h"

typedef struct ft_scan {
    int64_t batch, length, heads, head_dim, inner, state, groups, kernel, chunk, chunks, conv_width;
} ft_scan;

/* The short convolution before the recurrence and its activation, as it is run: one kernel, or transposed and padded.
 * */
ft_ref ft__scan_conv(ft_maker *m, const ft_scan *s, ft_ref x);
/* The recurrence has kernels of its own: mamba-ssm, flash-linear-attention, an engine's. */
bool ft__scan_has_kernels(const ft_maker *m);
/* A kernel of a chunked scan: a batched product, or one that moves what it reads and writes. */
ft_ref ft__scan_step(ft_maker *m, ft_at at, ft_op op, int64_t rows, int64_t cols, ft_dtype dtype, const ft_ref *in,
                     int count);

/* The node that made x is a step of a loop in Python: a tensor of all steps, made by so many launches. */
ft_ref ft__looped(ft_build *b, ft_ref x, int64_t times);
/* x as the steps of such a loop read it, each its own part: autograd makes a tensor of zeros for every part, as large
 * as x, fills it in and adds it to the others'. */
ft_ref ft__each_step(ft_build *b, ft_ref x, int64_t times);

/* x [tokens, inner], key and query (B and C) [tokens, groups * state], dt [tokens, heads]: result [tokens, inner]. */
ft_ref ft__scan_eager(ft_maker *m, const ft_scan *s, ft_ref x, ft_ref key, ft_ref query, ft_ref dt);
/* The same for one token, on the state that the cache holds. */
ft_ref ft__scan_once(ft_maker *m, const ft_scan *s, ft_ref x, ft_ref key, ft_ref query, ft_ref dt);
/* A cache of [rows, cols], zeroed and filled with the end of `from`. */
void ft__scan_keep(ft_build *b, int64_t rows, int64_t cols, ft_dtype dtype, ft_ref from);
#endif
