/* What the rules of gradient.c's files share. Each ft__backward_* emits the gradients that a node owes its inputs; g is
 * the gradient of its result. */
#ifndef FT_GRAPH_GRADIENT_RULES_H
#define FT_GRAPH_GRADIENT_RULES_H
#include "graph/gradient.h"

static inline bool ft__needs_grad(const ft_tape *t, ft_ref x) { return x != FT_NONE && t->b.g->tensors[x].trained; }
/* The result of a kernel, like `like` in shape and format. */
ft_ref ft__result_like(ft_tape *t, ft_node *n, ft_ref like);

/* gradient_math.c */
void ft__backward_linear(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_matmul(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_attention(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_pointwise(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_row(ft_tape *t, const ft_node *n, ft_ref g);
ft_ref ft__summed(ft_tape *t, const ft_node *of, ft_ref g, ft_ref like); /* g over what was broadcast */

/* gradient_memory.c */
ft_ref ft__zeros(ft_tape *t, ft_at at, ft_ref like);
void ft__backward_view(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_slice(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_split(ft_tape *t, const ft_node *n);
void ft__backward_cat(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_lookup(ft_tape *t, const ft_node *n, ft_ref g);

/* gradient_image.c */
void ft__backward_groupnorm(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_conv(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_batchnorm(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_pool(ft_tape *t, const ft_node *n, ft_ref g);

/* windows.c */
bool ft__is_windows(const ft_node *n);
bool ft__is_overlap(const ft_node *n);
void ft__backward_windows(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_overlap(ft_tape *t, const ft_node *n, ft_ref g);
/* sample.c */
void ft__backward_sample(ft_tape *t, const ft_node *n, ft_ref g);

/* gradient_recurrent.c */
void ft__backward_recur(ft_tape *t, const ft_node *n, ft_ref g);

/* gradient_rotary.c */
void ft__backward_rotate(ft_tape *t, const ft_node *n);

/* gate.c */
bool ft__is_gate(const ft_node *n);
void ft__backward_gate(ft_tape *t, const ft_node *n, ft_ref g);

/* gradient_index.c */
void ft__backward_scatter(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_permute(ft_tape *t, const ft_node *n, ft_ref g);
void ft__backward_pick(ft_tape *t, const ft_node *n, ft_ref g);
#endif
