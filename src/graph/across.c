/* across.c: softmax along an axis in the middle, sums over axes apart. */
#include "graph/across.h"

#include <math.h>

#include "graph/across_constants.h"

/* aten/src/ATen/native/cuda/SoftMax.cu (SpatialSoftMax_getBlockSize): a thread for every place beside the axis, up to
 * 1,024 of them in a block, each of which goes along the whole axis by itself, three times (largest, sum, result).
 * Blocks are counted by 1,024 threads. Where there are few places and the axis is long, a block's threads share it, and
 * a warp's lie along the axis: each of them asks for a sector of its own, one after the other. */
ft_walking ft__softmax_across(double outer, double length, double inner, double element_bytes)
{
    enum { BLOCK = 1024, FEW = 64, WARP = 32, SECTOR = 32 };
    if (inner <= 1) return (ft_walking){FT_WALK_NONE, 0, 0};
    double places = fmin(inner, BLOCK), along = 1;
    if (places > FEW || length < FEW)
        return (ft_walking){FT_WALK_CHANNELS, length, outer * ceil(inner / places) * places / BLOCK};
    while (places * along <= BLOCK && along <= length) along *= 2;
    along /= 2;
    double sectors = ceil(places * along / WARP) * fmin(along, WARP) * fmin(1, inner * element_bytes / SECTOR);
    return (ft_walking){FT_WALK_TOGETHER, ceil(length / along) * (1 + FT_K_ACROSS_SECTOR_WAITS * sectors), outer};
}

static double down(double x) /* to a power of two */
{
    double p = 1;
    while (2 * p <= x) p *= 2;
    return p;
}

/* aten/src/ATen/native/cuda/Reduce.cuh lays it out as any reduction along what is contiguous, but the values' places
 * have to be computed: no vectors, and a thread's values come one behind the other, a trip each. From 256 of them on
 * blocks share a sum (16 values at least) and add up in a second stage. Blocks are counted by 512 threads. */
ft_walking ft__sum_apart(double outputs, double length)
{
    enum { BLOCK = 512, WARP = 32, SHARED = 256, LEAST = 16 };
    double width = fmin(down(fmax(length, 1)), WARP), height = fmin(down(fmax(outputs, 1)), BLOCK / width);
    width = fmin(down(fmax(length, 1)), BLOCK / height);
    double values = length / width;
    if (values >= height * LEAST || values >= SHARED) values /= height;
    bool staged = values >= SHARED;
    values = staged ? LEAST : fmax(values, 1);
    return (ft_walking){staged ? FT_WALK_APART_STAGED : FT_WALK_APART, values, outputs * length / BLOCK / values};
}
