/* What the files of the cut share: see cut.c. */
#ifndef FT_LAYOUT_CUTTER_H
#define FT_LAYOUT_CUTTER_H
#include "layout/layout.h"

typedef struct share {
    double rows, cols; /* held over whole */
    double part;       /* the factor in them that is the tensor axis' cut by heads or columns; 1 for none */
    bool split;        /* over tensor ranks, by columns or by heads */
    bool in_cols;      /* the split stands in the columns; otherwise in the rows */
    bool tokens;       /* over tensor ranks, by tokens */
    bool mixed;        /* queries, keys and values side by side */
    ft_ref gathered;   /* the result of f on this tensor, when somebody asked already */
} share;

typedef struct cutter {
    ft_graph *g;
    const ft_parallel *p;
    const ft_divisible *model;
    share *of;            /* by tensor */
    int64_t *rows, *cols; /* as they were */
    ft_ref *alias;        /* by tensor: what those who come later read instead */
    ft_ref *base;         /* by tensor: the parameter that it is a cast of, or itself; FT_NONE */
    int32_t known;        /* tensors that existed before the pass */
    ft_ref expert;        /* the last grouped product's result */
    ft_status status;
    ft_error *err;
    int32_t block;
} cutter;

static inline ft_tensor *cut_tensor(const cutter *c, ft_ref x) { return &c->g->tensors[x]; }
static inline share whole_share(void) { return (share){.rows = 1, .cols = 1, .part = 1, .gathered = FT_NONE}; }

int64_t ft__cut_part(int64_t whole, double share_of);
/* Of the key-value heads. Fewer of them than ranks: each is held by several. */
double ft__cut_kv_part(const cutter *c);
static inline int64_t cut_divided(int64_t n, double by) { return n > 0 ? ft__cut_part(n, 1 / by) : n; }
void ft__cut_give(cutter *c, ft_ref x, share s);
void ft__cut_emit(cutter *c, const ft_node *n);

/* Exchanges (cut_exchange.c). */
typedef struct exchanged {
    ft_at at;
    ft_axis axis;
    ft_exchange_kind kind, gradient;
    bool borrowed;         /* the result is no memory of its own: it is made again where it is read again */
    double gradient_scale; /* bytes going back over bytes going forward; 0: 1 */
} exchanged;
ft_ref ft__cut_exchange(cutter *c, ft_ref x, share after, const exchanged *how);
ft_ref ft__cut_trade(cutter *c, ft_at at, ft_ref x, ft_axis axis); /* all-to-all, and back */
ft_ref ft__cut_f(cutter *c, ft_at at, ft_ref x);                   /* what a product cut by columns reads */
void ft__cut_g(cutter *c, ft_at at, ft_ref x);             /* x is a partial sum: those who come later read the sum */
void ft__cut_sums(cutter *c, const ft_node *n, int count); /* statistics of rows that are split by columns */

/* Rules (cut_products.c, cut_attention.c, cut_rows.c). Each emits the node. */
void ft__cut_weights(cutter *c, const ft_node *nodes, int32_t count);
void ft__cut_linear(cutter *c, ft_node *n);
void ft__cut_matmul(cutter *c, ft_node *n);
void ft__cut_attention(cutter *c, ft_node *n);
void ft__cut_experts(cutter *c, ft_node *n);
void ft__cut_embedding(cutter *c, ft_node *n);
void ft__cut_gather(cutter *c, ft_node *n);
void ft__cut_follow(cutter *c, ft_node *n);
#endif
