/* What the rules of gradient.c's files share. Each ft__undo_* emits the gradients that a node owes its inputs; g is the
 * gradient of its result. */
#ifndef FT_GRAPH_GRADIENT_RULES_H
#define FT_GRAPH_GRADIENT_RULES_H
#include "graph/gradient.h"

static inline bool ft__wants(const ft_tape *t, ft_ref x) { return x != FT_NONE && t->b.g->tensors[x].trained; }
/* The result of a kernel, like `like` in shape and format. */
ft_ref ft__result_like(ft_tape *t, ft_node *n, ft_ref like);

/* gradient_math.c */
void ft__undo_linear(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_matmul(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_attention(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_pointwise(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_row(ft_tape *t, const ft_node *n, ft_ref g);
ft_ref ft__summed(ft_tape *t, const ft_node *of, ft_ref g, ft_ref like); /* g over what was broadcast */

/* gradient_memory.c */
ft_ref ft__zeros(ft_tape *t, ft_at at, ft_ref like);
void ft__undo_view(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_slice(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_split(ft_tape *t, const ft_node *n);
void ft__undo_cat(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_lookup(ft_tape *t, const ft_node *n, ft_ref g);

/* gradient_image.c */
void ft__undo_groupnorm(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_conv(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_batchnorm(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_pool(ft_tape *t, const ft_node *n, ft_ref g);

/* sample.c */
void ft__undo_sample(ft_tape *t, const ft_node *n, ft_ref g);

/* gradient_recurrent.c */
void ft__undo_recur(ft_tape *t, const ft_node *n, ft_ref g);

/* gradient_rotary.c */
void ft__undo_rotate(ft_tape *t, const ft_node *n);

/* gradient_index.c */
void ft__undo_scatter(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_permute(ft_tape *t, const ft_node *n, ft_ref g);
void ft__undo_pick(ft_tape *t, const ft_node *n, ft_ref g);
#endif
