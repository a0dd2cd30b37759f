/* What t5 and its kin have of their own: a norm, attention with relative position biases, a loop over experts;
 * and what whisper has in common with them. */
#ifndef FT_MODEL_RELATIVE_H
#define FT_MODEL_RELATIVE_H
#include "model/parts.h"

/* RMSNorm as t5 writes it out: the root is taken of an fp32 copy, and scales what came in. */
ft_ref ft__relative_norm(ft_maker *m, ft_at at, ft_ref x);

/* The biases of a stack, once per forward pass: a bucket for each pair of positions, an embedding of it per head.
 * Result [heads * q_len, kv_len], seen through strides. */
ft_ref ft__relative_bias(ft_maker *m, ft_at at, int64_t q_len, int64_t kv_len, bool both_ways);

/* Attention of x [batch * q_len, hidden] over `over` (x itself, or an encoder's result of kv_len tokens). */
typedef struct ft_relative {
    ft_at q, k, v, o, attend;
    int64_t q_len, kv_len;
    ft_ref bias; /* FT_NONE: none; cross-attention has one of zeros */
    ft_ref mask; /* eager attention alone adds one */
    bool causal, cross;
    bool cached; /* keys and values go to a cache that is still empty: what use_cache costs without generation */
} ft_relative;
ft_ref ft__relative_attention(ft_maker *m, ft_ref x, ft_ref over, const ft_relative *r);

/* scaled_dot_product_attention's fallback where a mask is added that has a gradient or that no fused kernel reads.
 * Operands as [batch * heads * length, dim], as many heads of keys as of queries. */
ft_ref ft__attend_written_out(ft_maker *m, ft_ref q, ft_ref k, ft_ref v, ft_ref mask, const ft_scores *s);

/* Feed-forward over one of many experts per token: a Python loop (expert_loop.c). */
ft_ref ft__expert_loop(ft_maker *m, ft_ref x);

/* Tokens of a sequence that an encoder reads for a decoder: as many as are written, unless they are counted apart. */
int64_t ft__encoder_tokens(const ft_maker *m);

/* Weights of an encoder that is not run in this step but stays where it is. `shared`: elements that the decoder has
 * already. */
void ft__encoder_at_rest(ft_maker *m, ft_ref (*encode)(ft_maker *m), double shared);

/* x is part of the answer: alive until here. */
void ft__answered(ft_build *b, ft_ref x);

/* Kernels that no gradient passes: `op` over `rows` x `cols` elements of `bytes`, `count` times. Result: the last's. */
ft_ref ft__no_grad_kernels(ft_build *b, ft_at at, const char *op, ft_ref x, int64_t rows, int64_t cols, double bytes,
                           int count);
#endif
