/* sample.c: images read at places that were computed, as PyTorch's kernels do it (aten/src/ATen/native/cuda/
 * GridSampler.cu, torch.nn.functional.grid_sample).
 *
 * A thread is a place: it goes through all channels one after the other, each with four loads (sixteen for cubic
 * weights) and one store. Few places of many channels therefore take as long as many. Going back the same thread adds
 * to as many pixels of every channel by atomics, in an image of zeros, and sums what its place gets. What a trip takes
 * is in data/constants/kernel/walk.json. */
#include "graph/sample.h"

#include "graph/emit.h"
#include "graph/gradient_rules.h"

enum { THREADS = 256 };
#define T(ref) (&t->b.g->tensors[ref])

ft_walking ft__sample_walk(const ft_sample *how)
{
    ft_walking out = {.walk = FT_WALK_SAMPLE, .trips = how->channels, .blocks = how->places / THREADS};
    if (how->axes > 2)
        out.walk = FT_WALK_SAMPLE_VOLUME;
    else if (how->by != FT_RESIZE_CUBIC)
        out.walk = how->last ? FT_WALK_SAMPLE_LAST : FT_WALK_SAMPLE;
    else if (how->clipped && !how->low)
        out.walk = FT_WALK_SAMPLE_CUBIC_CLIPPED;
    else
        out.walk = how->low ? FT_WALK_SAMPLE_CUBIC_LOW : how->last ? FT_WALK_SAMPLE_CUBIC_LAST : FT_WALK_SAMPLE_CUBIC;
    return out;
}

static bool is_cubic(ft_walk walk) { return walk >= FT_WALK_SAMPLE_CUBIC && walk <= FT_WALK_SAMPLE_CUBIC_CLIPPED; }

ft_walking ft__sample_gradient(const ft_node *forward, bool pixels, bool low)
{
    ft_walk walk = forward->walk;
    bool nearest = forward->op.u.elementwise.ops_per_element == 1;
    ft_walking out = {.walk = walk, .trips = (double)forward->trips, .blocks = (double)forward->blocks};
    if (!pixels) return out; /* reads what the result read */
    if (walk == FT_WALK_SAMPLE_VOLUME)
        out.walk = FT_WALK_SAMPLE_VOLUME_BACKWARD;
    else if (is_cubic(walk))
        out.walk = low                                    ? FT_WALK_SAMPLE_CUBIC_LOW_BACKWARD
                   : walk == FT_WALK_SAMPLE_CUBIC_CLIPPED ? FT_WALK_SAMPLE_CUBIC_CLIPPED_BACKWARD
                                                          : FT_WALK_SAMPLE_CUBIC_BACKWARD;
    else
        out.walk = nearest                       ? FT_WALK_SAMPLE_NEAREST_BACKWARD
                   : low                         ? FT_WALK_SAMPLE_LOW_BACKWARD
                   : walk == FT_WALK_SAMPLE_LAST ? FT_WALK_SAMPLE_LAST_BACKWARD
                                                 : FT_WALK_SAMPLE_BACKWARD;
    return out;
}

static double taps(const ft_sample *how)
{
    return how->by == FT_RESIZE_NEAREST ? 1 : how->by == FT_RESIZE_CUBIC ? 16 : how->axes > 2 ? 8 : 4;
}

ft_ref ft__sampled(ft_build *b, ft_at at, ft_ref x, ft_ref places, int64_t rows, int64_t cols, const ft_sample *how)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_POOL, at);
    ft__node_in(&n, x);
    ft__node_in(&n, places);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(b->g, "grid_sample", n.in, n.in_count, &b->g->tensors[out]);
    n.op.u.elementwise.ops_per_element = taps(how);
    ft_walking w = ft__sample_walk(how);
    n.walk = w.walk;
    n.trips = (float)w.trips;
    n.blocks = (float)w.blocks;
    ft__emit(b, &n);
    return out;
}

/* Places get theirs beside the image's: PyTorch computes it whoever asks. */
void ft__backward_sample(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = n->in[0], places = n->in[1];
    bool pixels = ft__needs_grad(t, x);
    if (!pixels && !ft__needs_grad(t, places)) return;
    ft_ref all = pixels ? ft__zeros(t, n->at, x) : FT_NONE, added = FT_NONE;
    ft_node back = ft__node_of(FT_DO_POOL, n->at);
    if (pixels) ft__node_in(&back, all);
    ft__node_in(&back, g);
    ft__node_in(&back, ft__tape_saved(t, x));
    ft__node_in(&back, ft__tape_saved(t, places));
    if (pixels) {
        ft_tensor shape = *T(all);
        added = ft__node_view(&t->b, &back, all, shape.rows, shape.cols, false);
        back.in_place = true;
    }
    ft_ref moved = ft__result_like(t, &back, places);
    if (t->b.status != FT_OK || moved == FT_NONE) return;
    back.op = ft__pointwise_kernel(t->b.g, "grid_sample", &g, 1, T(x));
    back.op.u.elementwise.ops_per_element = n->op.u.elementwise.ops_per_element;
    ft_walking w = ft__sample_gradient(n, pixels, T(x)->element_bytes < 4);
    back.walk = w.walk;
    back.trips = (float)w.trips;
    back.blocks = (float)w.blocks;
    ft__emit(&t->b, &back);
    if (pixels) ft__tape_give(t, x, added);
    if (ft__needs_grad(t, places)) ft__tape_give(t, places, moved);
}
