/* groupnorm.c: group norm of images and its gradient, as PyTorch's own kernels compute it
 * (aten/src/ATen/native/cuda/group_norm_kernel.cu).
 *
 *   forward   sums of each group, a thread block apiece, as batch norm's are; factors of each channel, a small kernel;
 *             then x * factor + offset over all elements, which broadcasts and so is bound by its instructions
 *   backward  sums of x * g and of g, a block per image and channel; factors; c1 * g + c2 * x + c3 over all elements;
 *             gradients of weight and bias, where a thread adds the images' sums of a channel one by one
 *
 * What the sums take is a walk (graph/manner.h), and so is the broadcasting kernel: figures and rows in
 * data/constants/kernel/walk.json. Its operand lies with channels first: others are copied before they come here. */
#include <math.h>

#include "graph/batchnorm.h"
#include "graph/emit.h"
#include "graph/gradient_rules.h"

enum { THREADS = 512, WARP = 32, MANY_PICTURES = 128 };

/* Sums of `length` numbers by a block: of a warp where there are few. */
static void sums(ft_node *n, double length, double blocks, ft_walk wide, ft_walk narrow)
{
    bool few = length < THREADS;
    n->walk = few ? narrow : wide;
    n->trips = (float)ceil(length / (few ? WARP : THREADS));
    n->blocks = (float)blocks;
}

static void broadcast(ft_node *n, const ft_tensor *x)
{
    n->walk = x->element_bytes < 4 ? FT_WALK_BROADCAST_LOW : FT_WALK_BROADCAST;
    n->trips = 1;
    n->blocks = (float)(ft__tensor_numel(x) / THREADS);
}

static void small_kernel(ft_build *b, ft_at at, double numbers)
{
    ft_node factors = ft__node_of(FT_DO_FILL, at);
    ft_tensor small = {.rows = (int64_t)fmax(1, numbers), .cols = 2, .dtype = FT_FP32, .element_bytes = 4};
    factors.op = ft__pointwise_kernel(b->g, "mul", NULL, 0, &small);
    ft__emit(b, &factors);
}

ft_ref ft__groupnorm(ft_build *b, ft_at at, ft_ref x, int64_t rows, ft_ref weight, ft_ref bias)
{
    if (b->status != FT_OK) return FT_NONE;
    x = ft__autocast_to_fp32(b, at, x);
    ft_tensor t = *ft__tensor_of(b, x);
    int64_t cols = (int64_t)(ft__tensor_numel(&t) / (double)(rows > 0 ? rows : 1));
    ft_node moments = ft__node_of(FT_DO_FILL, at);
    ft__node_in(&moments, x);
    moments.op = ft__bytes_kernel("groupnorm_moments", t.dtype, ft__tensor_bytes(&t), 4 * ft__tensor_numel(&t));
    sums(&moments, (double)cols, (double)rows, FT_WALK_GROUP_MOMENTS, FT_WALK_SUMS_SMALL);
    ft__emit(b, &moments);
    small_kernel(b, at, (double)rows);
    ft_node n = ft__node_of(FT_DO_BATCHNORM, at);
    ft__node_in(&n, x);
    ft__node_in(&n, weight);
    ft__node_in(&n, bias);
    ft_ref out = ft__node_out(b, &n, t.rows, t.cols, t.dtype, t.element_bytes);
    ft_ref kept = ft__node_out(b, &n, rows, 2, FT_FP32, 4);
    if (out == FT_NONE || kept == FT_NONE) return FT_NONE;
    b->g->tensors[kept].trained = false;
    n.op = ft__pointwise_kernel(b->g, "groupnorm", n.in, 1, &b->g->tensors[out]);
    broadcast(&n, &t);
    ft__emit(b, &n);
    ft__module(b, 1);
    return out;
}

bool ft__is_groupnorm(const ft_node *n) { return n->walk == FT_WALK_BROADCAST || n->walk == FT_WALK_BROADCAST_LOW; }

void ft__backward_groupnorm(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_build *b = &t->b;
    ft_tensor x = *ft__tensor_of(b, n->in[0]);
    ft_ref saved = ft__tape_saved(t, n->in[0]), out[3] = {FT_NONE, FT_NONE, FT_NONE};
    bool affine = n->in_count > 1;
    /* Without weights the groups are all that is known of its channels. */
    double channels = ft__tensor_numel(ft__tensor_of(b, affine ? n->in[1] : n->out[1])) / (affine ? 1 : 2);
    double pictures = fmax(1, floor((double)x.rows / channels)), pixels = ft__tensor_numel(&x) / pictures / channels;
    ft_node products = ft__node_of(FT_DO_FILL, n->at);
    ft__node_in(&products, g);
    ft__node_in(&products, saved);
    products.op = ft__bytes_kernel("groupnorm_sums", x.dtype, 2 * ft__tensor_bytes(&x), 4 * ft__tensor_numel(&x));
    sums(&products, pixels, pictures * channels, FT_WALK_SUMS, FT_WALK_SUMS_SMALL);
    ft__emit(b, &products);
    small_kernel(b, n->at, pictures * channels);
    ft_node back = ft__node_of(FT_DO_BATCHNORM, n->at);
    ft__node_in(&back, g);
    ft__node_in(&back, saved);
    for (int i = 1; i < n->out_count; i++) ft__node_in(&back, ft__tape_saved(t, n->out[i]));
    for (int i = 0; i < n->in_count && i < 3; i++)
        if (ft__needs_grad(t, n->in[i])) out[i] = ft__result_like(t, &back, n->in[i]);
    back.op = ft__pointwise_kernel(b->g, "groupnorm", back.in, 2, &x);
    broadcast(&back, &x);
    ft__emit(b, &back);
    if (affine && ft__needs_grad(t, n->in[1])) {
        ft_node parameters = ft__node_of(FT_DO_FILL, n->at);
        parameters.op = ft__bytes_kernel("groupnorm_weights", FT_FP32, 8 * pictures * channels, 0);
        parameters.walk = FT_WALK_ADD_UP;
        parameters.trips = (float)fmin(pictures, MANY_PICTURES);
        parameters.blocks = 1;
        ft__emit(b, &parameters);
    }
    for (int i = 0; i < n->in_count && i < 3; i++) ft__tape_give(t, n->in[i], out[i]);
}
