/* gradient_image.c: gradients of convolutions, batch norm and pooling. */
#include <math.h>

#include "graph/across.h"
#include "graph/gradient_rules.h"
#include "graph/resize.h"

#define T(ref) (&t->b.g->tensors[ref])

/* A bias gets what all places of its channel give: columns where channels lie last, else sums over the places of an
 * image and over images, between which the channels lie. */
static void over_pictures(const ft_node *n, const ft_tensor *g, int64_t channels, ft_node *sum)
{
    int64_t each = (int64_t)(ft__tensor_numel(g) / (double)channels);
    bool last = n->op.u.conv.nhwc;
    sum->op = last ? ft__row_kernel("sum_cols", FT_PASS_FWD, each, channels, g->dtype)
                   : ft__row_kernel("sum_rows", FT_PASS_FWD, channels, each, g->dtype);
    if (last || n->op.u.conv.n <= 1) return;
    ft_walking walk = ft__sum_apart((double)channels, (double)each);
    sum->walk = walk.walk;
    sum->trips = (float)walk.trips;
    sum->blocks = (float)walk.blocks;
}

void ft__backward_conv(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = n->in[0], weight = n->in[1];
    bool input = ft__needs_grad(t, x), filter = ft__needs_grad(t, weight);
    if (input || filter) {
        ft_node back = ft__node_of(FT_DO_CONV, n->at);
        ft__node_in(&back, g);
        ft__node_in(&back, ft__tape_saved(t, x));
        ft__node_in(&back, ft__tape_saved(t, weight));
        ft_ref dx = input ? ft__result_like(t, &back, x) : FT_NONE,
               dw = filter ? ft__result_like(t, &back, weight) : FT_NONE;
        back.op = n->op;
        back.op.pass = FT_PASS_BWD;
        if (back.op.dtype == FT_FP32) back.op.dtype = back.op.kv_dtype; /* whatever units forward ran on */
        ft__same_manner(&back, n);
        back.traffic = n->traffic;
        bool transposed = n->op.u.conv.parts == FT_CONV_INPUT; /* the way back is the one that it goes against */
        back.op.u.conv.parts = 0;
        if (!input || !filter || transposed)
            back.op.u.conv.parts = (input ? transposed ? FT_CONV_RESULT : FT_CONV_INPUT : 0) |
                                   (filter ? FT_CONV_FILTER : 0);
        ft__emit(&t->b, &back);
        ft__tape_give(t, x, dx);
        ft__tape_give(t, weight, dw);
    }
    if (n->in_count > 2 && ft__needs_grad(t, n->in[2])) {
        ft_node sum = ft__node_of(FT_DO_ROW, n->at);
        ft__node_in(&sum, g);
        ft_tensor shape = *T(g);
        ft_ref out = ft__result_like(t, &sum, n->in[2]);
        over_pictures(n, &shape, (int64_t)fmax(ft__tensor_numel(T(n->in[2])), 1), &sum);
        ft__emit(&t->b, &sum);
        ft__tape_give(t, n->in[2], out);
    }
}

void ft__backward_batchnorm(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_node back = ft__node_of(FT_DO_BATCHNORM, n->at);
    ft__node_in(&back, g);
    ft__node_in(&back, ft__tape_saved(t, n->in[0]));
    if (n->out_count > 1) ft__node_in(&back, ft__tape_saved(t, n->out[1]));
    ft_ref out[3] = {FT_NONE, FT_NONE, FT_NONE};
    for (int i = 0; i < 3 && i < n->in_count; i++) out[i] = ft__result_like(t, &back, n->in[i]);
    if (out[0] == FT_NONE) return;
    int64_t channels = n->in_count > 1 ? T(n->in[1])->cols : T(n->out[n->out_count - 1])->cols;
    back.op = ft__pointwise_kernel(t->b.g, "batchnorm", back.in, 2, T(out[0]));
    back.op.u.elementwise.bytes += ft__tensor_bytes(T(g)) + ft__tensor_bytes(T(n->in[0])); /* moments, then result */
    /* Two walks over both operands. */
    ft_pictures pictures = ft__pictures_of(T(n->in[0]), channels);
    bool library = ft__batchnorm_by_library(T(n->in[0])->dtype, n->in_count > 1 ? T(n->in[1])->element_bytes : 0);
    ft_walking walk = ft__batchnorm_gradient(&pictures, T(g)->element_bytes < 4, library);
    if (n->walk == FT_WALK_NORM_TURNED) walk = (ft_walking){FT_WALK_GRADIENT_TURNED, 1, (double)n->blocks};
    back.walk = walk.walk;
    back.trips = (float)walk.trips;
    back.blocks = (float)walk.blocks;
    ft__emit(&t->b, &back);
    for (int i = 0; i < 3 && i < n->in_count; i++) ft__tape_give(t, n->in[i], out[i]);
}

/* Averages, interpolations and borders: one kernel, from the one size to the other. */
static void resample(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_node back = ft__node_of(FT_DO_POOL, n->at);
    ft__node_in(&back, g);
    ft_ref out = ft__result_like(t, &back, n->in[0]);
    if (out == FT_NONE) return;
    back.op = ft__pointwise_kernel(t->b.g, n->op.name, &g, 1, T(out));
    back.op.u.elementwise.ops_per_element =
        fmax(1, n->op.u.elementwise.ops_per_element * ft__tensor_numel(T(g)) / ft__tensor_numel(T(out)));
    back.op.u.elementwise.pattern = n->op.u.elementwise.pattern;
    if (n->op.u.elementwise.pattern == FT_PATTERN_STRIDED) back.op.u.elementwise.bytes = 2 * ft__tensor_bytes(T(out));
    const ft_resized from = {.forward = {n->walk, (double)n->trips, (double)n->blocks},
                             .window = n->op.u.elementwise.ops_per_element,
                             .in = ft__tensor_numel(T(out)),
                             .out = ft__tensor_numel(T(g)),
                             .bytes = (double)T(g)->element_bytes,
                             .odd = T(g)->cols % 2};
    ft_walking walk = ft__resize_gradient(&from);
    back.walk = walk.walk;
    back.trips = (float)walk.trips;
    back.blocks = (float)walk.blocks;
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}

void ft__backward_pool(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (!ft__needs_grad(t, n->in[0])) return;
    if (n->out_count < 2) {
        resample(t, n, g);
        return;
    }
    ft_ref all = ft__zeros(t, n->at, n->in[0]);
    if (all == FT_NONE) return;
    ft_node back = ft__node_of(FT_DO_POOL, n->at);
    ft__node_in(&back, all);
    ft__node_in(&back, g);
    for (int i = 1; i < n->out_count; i++) ft__node_in(&back, ft__tape_saved(t, n->out[i]));
    ft_tensor shape = *T(all);
    ft_ref out = ft__node_view(&t->b, &back, all, shape.rows, shape.cols, false);
    if (out == FT_NONE) return;
    back.in_place = true;
    back.op = ft__pointwise_kernel(t->b.g, "pool", back.in + 1, back.in_count - 1, T(out));
    back.op.u.elementwise.ops_per_element = n->op.u.elementwise.ops_per_element;
    bool last = n->walk == FT_WALK_POOL_LAST; /* there a thread is a result, not a pixel */
    back.walk = last ? FT_WALK_POOL_LAST_BACKWARD : FT_WALK_POOL_BACKWARD;
    back.trips = last ? n->trips : n->trips * (float)(ft__tensor_numel(T(g)) / ft__tensor_numel(&shape));
    back.blocks = last ? n->blocks : (float)(ft__tensor_numel(&shape) / 256);
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}
