/* The kernels and exchanges of one iteration, part by part, for the tables of cost.c. */
#ifndef FT_SERVING_KERNELS_H
#define FT_SERVING_KERNELS_H
#include "serving/cost.h"

/* What something takes, and what it draws beyond a GPU that waits. */
typedef struct ft_priced {
    double ms, joules;
} ft_priced;

/* Asks for the kernels of one served model, and adds up what they are forecast with. */
typedef struct ft_pricer {
    const ft_context *ft;
    ft_scratch *scratch;
    const ft_served *m;
    double quantile;
    double ms, low_ms, high_ms; /* of everything asked so far */
    ft_source source;
} ft_pricer;

ft_status ft__pricer_open(ft_pricer *p, ft_error *err);
/* Adds what one kernel takes. */
ft_status ft__price_op(ft_pricer *p, const ft_op *op, ft_priced *sum, ft_error *err);
/* Attention of one layer as the engine has it, fused or not (unfused.c); *op says which kernel it became. */
bool ft__sums_norm(const ft_served *m);        /* its all-reduces carry one of a layer's two norms */
double ft__head_norms(const ft_served *m);     /* kernels of a layer for norms of queries and keys */
bool ft__narrows_attended(const ft_served *m); /* by a kernel of its own, before the product behind it */
ft_status ft__price_attention(ft_pricer *p, ft_op *op, ft_priced *sum, ft_error *err);
/* Adds a product y[m, n] = x[m, k] W; adds `times` fused kernels that move so many bytes each. */
ft_status ft__price_product(ft_pricer *p, double m, double n, double k, ft_dtype dtype, ft_priced *sum, ft_error *err);
void ft__price_pass(const ft_pricer *p, double times, double bytes, ft_priced *sum);
/* Of all layers, or of what is no layer. */
ft_status ft__price_projections(ft_pricer *p, double tokens, ft_priced *out, ft_error *err);
ft_status ft__price_mlp(ft_pricer *p, double tokens, ft_priced *out, ft_error *err);
ft_status ft__price_experts(ft_pricer *p, double tokens, ft_priced *sum, ft_error *err); /* of one layer (experts.c) */
ft_status ft__price_head(ft_pricer *p, double rows, ft_priced *out, ft_error *err);
ft_status ft__price_decode(ft_pricer *p, double sequences, double context, ft_priced *out, ft_error *err);
ft_status ft__price_prompt(ft_pricer *p, double length, ft_priced *out, ft_error *err);
#endif
