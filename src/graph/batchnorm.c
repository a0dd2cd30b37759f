/* batchnorm.c: how the thread blocks of batch norm's kernels walk.
 *
 * NCHW: a channel is one block of up to 512 threads, as wide as the image, the rest over the images, in PyTorch's
 * kernels and in cuDNN's. Channels last, PyTorch's kernels (flexible_launch_configs of
 * aten/src/ATen/native/cuda/Normalization.cuh): tiles of up to 32 channels and as many pixels as fill a block, never
 * more than 128 blocks along the pixels. Images of few channels are so few blocks that an SM holds but one of them,
 * and channels that do not fill their tiles leave threads idle. cuDNN's: as many blocks as there is room for. */
#include "graph/batchnorm.h"

#include <math.h>

enum { THREADS = 512, WARP = 32, SMALL_PICTURE = 256, TILE = 32, PER_THREAD = 16, TILES_ALONG = 128 };

ft_pictures ft__pictures_of(const ft_tensor *x, int64_t channels)
{
    double rows = (double)x->rows, cols = (double)x->cols, c = (double)(channels > 0 ? channels : 1);
    if (x->cols == channels || rows < c) return (ft_pictures){1, c, rows * cols / c, true};
    return (ft_pictures){floor(rows / c), c, cols, false};
}

static ft_walking by_channel(const ft_pictures *x, ft_walk walk)
{
    double wide = WARP;
    while (wide < x->pixels && wide < THREADS) wide *= 2;
    double high = fmax(1, fmin(THREADS / wide, x->images));
    return (ft_walking){walk, ceil(x->images / high) * ceil(x->pixels / wide), x->channels};
}

static ft_walking all_over(const ft_pictures *x, ft_walk walk)
{
    return (ft_walking){walk, 1, x->images * x->pixels * x->channels / THREADS};
}

static double power_below(double n)
{
    double power = 1;
    while (2 * power <= n) power *= 2;
    return power;
}

static ft_walking by_tile(const ft_pictures *x, ft_walk walk)
{
    const double pixels = x->images * x->pixels, channels = power_below(x->channels);
    const double high = fmin(power_below(ceil(pixels / PER_THREAD)), THREADS / fmin(channels, TILE));
    const double wide = fmin(channels, THREADS / high);
    const double along = fmin(ceil(pixels / (high * PER_THREAD)), TILES_ALONG);
    return (ft_walking){walk, ceil(pixels / (high * along)), ceil(x->channels / wide) * along};
}

ft_walking ft__batchnorm_moments(const ft_pictures *x)
{
    return x->last ? by_tile(x, FT_WALK_MOMENTS_LAST) : by_channel(x, FT_WALK_MOMENTS);
}

ft_walking ft__batchnorm_result(const ft_pictures *x, bool low)
{
    if (x->last) return low ? by_tile(x, FT_WALK_NORM_LAST) : (ft_walking){FT_WALK_NONE, 0, 0};
    return (ft_walking){x->pixels <= SMALL_PICTURE ? FT_WALK_NORM_SMALL : FT_WALK_NORM, ceil(x->pixels / THREADS),
                        x->images * x->channels};
}

ft_walking ft__batchnorm_both(const ft_pictures *x, bool low)
{
    if (x->last) return all_over(x, low ? FT_WALK_BOTH_HALF_LAST : FT_WALK_BOTH_LAST);
    return by_channel(x, low ? FT_WALK_BOTH_HALF : FT_WALK_BOTH);
}

ft_walking ft__batchnorm_gradient(const ft_pictures *x, bool low, bool library)
{
    if (x->last && low && !library) return by_tile(x, FT_WALK_GRADIENT_LOW_LAST);
    if (x->last) return all_over(x, low ? FT_WALK_GRADIENT_HALF_LAST : FT_WALK_GRADIENT_LAST);
    return by_channel(x, !low ? FT_WALK_GRADIENT : library ? FT_WALK_GRADIENT_HALF : FT_WALK_GRADIENT_LOW);
}
