/* build_reduce.c: reductions over any axes, norms, losses of pairs. */
#include <string.h>

#include "graph/emit.h"

/* Gradients of what is not a plain sum, in the words of pointwise.h ("sum" is this reduction once more): the elements
 * that are the maximum share it; x over the norm; (x - mean) of a variance; exp(x - y) of logsumexp. */
static const char *rule_of(const char *what)
{
    static const struct {
        const char *what, *rule;
    } rules[] = {
        {"amax", "compare:xy sum:1 mul:1g div:32"}, {"prod", "div:yx mul:g1"},
        {"norm", "div:xy masked_fill!:1y mul:g2"},  {"var", "sum:x sub:x1 mulu:g mul:23"},
        {"logsumexp", "sub:xy exp:1 mul:g2"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].what, what)) return rules[i].rule;
    return NULL;
}

ft_ref ft__reduce_over(ft_build *b, ft_at at, ft_ref x, const ft_reduction *how)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_ROW, at);
    ft__node_in(&n, x);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, how->rows, how->cols, t.dtype, ft_dtype_bytes(t.dtype));
    n.op = ft__row_kernel(how->kernel, FT_PASS_FWD, how->kernel_rows, how->kernel_cols, t.dtype);
    /* Masks and indices are read in their own width. */
    double read = t.element_bytes / ft_dtype_bytes(t.dtype);
    if (read > 0) n.traffic = (float)read;
    n.mean = !strcmp(how->what, "mean");
    n.rule = rule_of(how->what);
    ft__emit(b, &n);
    return out;
}

/* -- norms ------------------------------------------------------------------------------------- */

ft_ref ft__norm_with(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref weight, ft_ref bias)
{
    if (b->status != FT_OK) return FT_NONE;
    x = ft__autocast_to_fp32(b, at, x);
    ft_node n = ft__node_of(FT_DO_ROW, at);
    ft_tensor t = *ft__tensor_of(b, x);
    ft__node_in(&n, x);
    ft__node_in(&n, weight);
    ft__node_in(&n, bias);
    ft_ref out = ft__node_out(b, &n, t.rows, t.cols, t.dtype, t.element_bytes);
    ft_ref moments = ft__node_out(b, &n, t.rows, strcmp(op, "layernorm") ? 1 : 2, FT_FP32, 4);
    if (out == FT_NONE || moments == FT_NONE) return FT_NONE;
    b->g->tensors[moments].trained = false;
    n.op = ft__row_kernel(op, FT_PASS_FWD, t.rows, t.cols, t.dtype);
    ft__emit(b, &n);
    ft__module(b, 1);
    return out;
}

static ft_ref norm(ft_build *b, ft_at at, const char *op, ft_ref x, ft_bias bias)
{
    if (b->status != FT_OK) return FT_NONE;
    x = ft__autocast_to_fp32(b, at, x);
    int64_t cols = ft__tensor_of(b, x)->cols;
    ft_ref weight = ft__parameter(b, "norm.weight", 1, cols);
    return ft__norm_with(b, at, op, x, weight, bias == FT_BIAS ? ft__parameter(b, "norm.bias", 1, cols) : FT_NONE);
}

ft_ref ft__layernorm(ft_build *b, ft_at at, ft_ref x, ft_bias bias) { return norm(b, at, "layernorm", x, bias); }
ft_ref ft__rmsnorm_fused(ft_build *b, ft_at at, ft_ref x) { return norm(b, at, "rmsnorm", x, FT_NO_BIAS); }

/* -- losses of pairs --------------------------------------------------------------------------- */

/* mse_loss: one kernel for the squares, their mean, one kernel back. bce_with_logits: (1 - y) x - log_sigmoid(x), four
 * kernels, the mean; back: sigmoid, difference, product, quotient. */
ft_ref ft__pair_loss(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref y)
{
    if (b->status != FT_OK) return FT_NONE;
    bool probability = !strcmp(op, "bce_with_logits");
    if (b->autocast) x = ft__cast(b, at, x, FT_FP32);
    ft_tensor t = *ft__tensor_of(b, x);
    if (probability) {
        ft_node n = ft__node_of(FT_DO_FILL, at);
        ft__node_in(&n, x);
        n.op = ft__pointwise_kernel(b->g, "sigmoid", &x, 1, &t);
        n.count = 3;
        ft__emit(b, &n);
    }
    ft_node n = ft__node_of(FT_DO_POINTWISE, at);
    ft__node_in(&n, x);
    ft__node_in(&n, y);
    ft_ref each = ft__node_out(b, &n, t.rows, t.cols, t.dtype, t.element_bytes);
    if (each == FT_NONE) return each;
    n.op = ft__pointwise_kernel(b->g, probability ? "bce_with_logits" : "mse_loss", n.in, n.in_count,
                                &b->g->tensors[each]);
    ft__emit(b, &n);
    ft_reduction mean = {.what = "sum", .kernel = "mean_all", .rows = 1, .cols = 1};
    mean.kernel_rows = t.rows;
    mean.kernel_cols = t.cols;
    return ft__reduce_over(b, at, each, &mean);
}
