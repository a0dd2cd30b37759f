/* The parts of a mixture of experts; sizes are those of the maker's architecture. */
#ifndef FT_MODEL_MOE_H
#define FT_MODEL_MOE_H
#include "model/parts.h"

/* How many experts get a token when every token picks `topk` of them at random: E (1 - (1 - k/E)^tokens). */
int64_t ft__hit_experts(const ft_arch *a, int64_t routed);
/* Parameters of all of a layer's experts. */
ft_ref ft__experts_weight(ft_build *b, int64_t rows, int64_t cols);
ft_ref ft__experts_bias(ft_build *b, int64_t rows, int64_t cols);
ft_ref ft__route(ft_maker *m, ft_ref x); /* router.c: the weights of the chosen experts, [tokens, topk] */
/* moe.c: tokens sorted by expert, two grouped products, weighed and combined; `up`, `down`: weights that exist. */
ft_ref ft__sorted_experts(ft_maker *m, ft_ref x, ft_ref weights, ft_ref up, ft_ref down);
/* expert_slices.c: a loop over experts, each a slice of all their weights. */
ft_ref ft__sliced_experts(ft_maker *m, ft_ref x, ft_ref weights);
/* attention_experts.c: each over a cut of the sorted rows, and joined again. */
ft_ref ft__joined_experts(ft_maker *m, ft_ref x, ft_ref weights);
/* all_experts.c: every token through every expert, times a score that is zero for all but the chosen ones; with the
 * shared expert. */
ft_ref ft__all_experts(ft_maker *m, ft_ref x);
ft_ref ft__route_scores(ft_maker *m, ft_ref x); /* router.c: those scores, [tokens, experts] */
/* moe_megatron.c: the same by Megatron-Core's kernels. */
ft_ref ft__megatron_experts(ft_maker *m, ft_ref x, ft_ref weights);
/* moe_gguf.c: by llama.cpp's. */
ft_ref ft__gguf_experts(ft_maker *m, ft_ref x);
/* The order of tokens by their experts. */
void ft__sort_tokens(ft_maker *m, int64_t routed);
/* Every row by its expert's weight [experts * out, cols of x]; FT_NONE makes one. */
ft_ref ft__grouped_product(ft_maker *m, ft_at at, ft_ref x, int64_t out, bool bias, ft_ref weight);
#endif
