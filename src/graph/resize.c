/* resize.c: averages over windows and interpolations as PyTorch's kernels run them (aten/src/ATen/native/cuda/
 * AveragePool2d.cu, AdaptiveAveragePooling.cu, UpSampleNearest2d.cu, UpSampleBilinear2d.cu, UpSampleBicubic2d.cu,
 * UpSampleTrilinear3d.cu).
 *
 * Interpolations of NCHW have a thread per pixel of the result that goes through all images and channels one after
 * the other: small images of many channels wait for their loads. Channels last, and for the nearest pixel, a thread
 * is an element; cubic ones know no such order, so that the threads of a warp read lines of their own, and an SM looks
 * up one line a clock. An image of the size that it has is copied, by the cubic kernel in its own walk.
 *
 * Going back, results add to what they were made of by atomics; cubic and smoothed ones in 16 bits by a loop of compare
 * and swap: the more of them share a pixel the longer each waits. What a trip takes is in
 * data/constants/kernel/walk.json. */
#include "graph/resize.h"

#include <math.h>
#include <string.h>

#include "graph/resize_constants.h"

enum { THREADS = 1024, ELEMENTS = 512, WARP = 32, LINE = 128, TAPS = 16, LOW = 2, TOGETHER = 3 };

int ft__resizing_find(const char *name)
{
    static const struct {
        const char *name;
        ft_resizing by;
    } known[] = {{"nearest", FT_RESIZE_NEAREST}, {"linear", FT_RESIZE_LINEAR}, {"cubic", FT_RESIZE_CUBIC}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) return (int)known[i].by;
    return -1;
}

static ft_walking by_element(ft_walk walk, double trips, double elements)
{
    return (ft_walking){.walk = walk, .trips = trips, .blocks = elements / ELEMENTS};
}

/* How many pixels apart neighbours of the result are made of, along an axis. */
static double step_of(const ft_resize *how) { return how->from > 0 ? sqrt(how->from / how->pixels) : 0.5; }

double ft__resize_window(const ft_resize *how)
{
    double taps = how->by == FT_RESIZE_CUBIC ? 4 : 2, wide = how->smooth ? fmax(1, step_of(how)) : 1;
    if (how->by == FT_RESIZE_ADAPTIVE) return fmax(1, how->from / how->pixels);
    return how->by == FT_RESIZE_AVERAGE || !how->smooth ? how->window : pow(taps * wide, 2);
}

/* Lines of memory that a warp's threads touch where they lie `stride` bytes apart and name so many different pixels. */
static double lines(double pixels, double span) { return fmin(fmin(pixels, WARP), span / LINE + 1); }

/* Every thread goes through all images. A trip takes as long as its loads need to come, or as the block's warps need
 * to look up their lines. */
static ft_walking by_cubic(const ft_resize *how)
{
    double stride = (how->last ? how->channels : 1) * how->bytes, step = step_of(how);
    double store = lines(WARP, WARP * stride), full = fmin(1, how->pixels / THREADS);
    double load = how->same ? store : TAPS * lines(WARP * fmin(1, step) + 1, WARP * step * stride);
    double hidden = how->same ? ft__k_resize_lines.copied : ft__k_resize_lines.cubic;
    double wait = fmax(1, full * (load + ft__k_resize_lines.stored * store) / hidden);
    return (ft_walking){how->same ? FT_WALK_CUBIC_SAME : FT_WALK_CUBIC, how->pictures * wait, how->pixels / THREADS};
}

/* NCHW: a block is an image of one channel, whose threads go along the rows of their windows. Channels last a thread
 * goes along all of its window; loads of short ones are on their way together. */
static ft_walking by_adaptive(const ft_resize *how)
{
    double window = ft__resize_window(how), made = how->pictures * how->pixels;
    if (!how->last) return (ft_walking){FT_WALK_ADAPTIVE, sqrt(window), how->pictures};
    return by_element(FT_WALK_ADAPTIVE_LAST, window < TAPS ? window / TOGETHER : window, made);
}

/* A row of a block is a warp, which a narrow result leaves idle in part. */
static ft_walking by_smooth(const ft_resize *how)
{
    double idle = how->width > 0 ? WARP * ceil(how->width / WARP) / how->width : 1;
    ft_walk walk = how->last ? FT_WALK_SMOOTH_LAST : FT_WALK_SMOOTH;
    return by_element(walk, ft__resize_window(how), how->pictures * how->pixels * idle);
}

ft_walking ft__resize_walk(const ft_resize *how)
{
    double made = how->pictures * how->pixels;
    ft_walking loop = {.trips = how->pictures, .blocks = how->pixels / THREADS};
    if (how->smooth && (how->by == FT_RESIZE_LINEAR || how->by == FT_RESIZE_CUBIC)) return by_smooth(how);
    if (how->same && (how->by == FT_RESIZE_NEAREST || how->by == FT_RESIZE_LINEAR))
        return (ft_walking){.walk = FT_WALK_NONE}; /* a copy */
    switch (how->by) {
    case FT_RESIZE_AVERAGE: return by_element(how->last ? FT_WALK_AVERAGE_LAST : FT_WALK_AVERAGE, how->window, made);
    case FT_RESIZE_ADAPTIVE: return by_adaptive(how);
    case FT_RESIZE_NEAREST: return by_element(how->last ? FT_WALK_NEAREST_LAST : FT_WALK_NEAREST, 1, made);
    case FT_RESIZE_LINEAR:
        if (how->last) return by_element(FT_WALK_LINEAR_LAST, 1, made);
        loop.walk = how->axes > 2 ? FT_WALK_VOLUME : FT_WALK_LINEAR;
        return loop;
    case FT_RESIZE_CUBIC: return by_cubic(how);
    case FT_RESIZE_OTHER: break;
    }
    return (ft_walking){.walk = FT_WALK_NONE};
}

/* Results that a pixel was part of, times four: more than some wait for the same few addresses, by the row. */
static double sharing(double shared) { return fmin(shared, FT_K_RESIZE_SHARED_ROW * sqrt(shared)); }

/* Sixteen atomics one after the other in every image, in NCHW whatever came in. In 16 bits one of all that want a
 * word succeeds at a time, until sums are so large that what is added does not change them. */
static ft_walking cubic_gradient(const ft_resized *n)
{
    double pixels = n->forward.blocks * THREADS, pictures = n->out / fmax(1, pixels), shared = n->out / n->in;
    ft_walking out = {FT_WALK_CUBIC_BACKWARD, 0, n->forward.blocks};
    double wait = 1 + FT_K_RESIZE_SHARED_WORD_WIDE * shared;
    if (n->bytes > LOW) {
        out.walk = FT_WALK_CUBIC_WIDE_BACKWARD;
    } else {
        wait = fmin(1 + FT_K_RESIZE_SHARED_WORD_LOW * shared,
                    ft__k_resize_settled.least + ft__k_resize_settled.each * pixels);
    }
    out.trips = pictures * wait;
    return out;
}

ft_walking ft__resize_gradient(const ft_resized *n)
{
    const ft_walk forward = n->forward.walk;
    double in = n->in, out = n->out, shared = fmax(1, out / in);
    bool wide = n->bytes > LOW;
    switch (forward) {
    case FT_WALK_AVERAGE:
    case FT_WALK_AVERAGE_LAST: return by_element(FT_WALK_AVERAGE_BACKWARD, fmax(1, n->window * out / in), in);
    case FT_WALK_ADAPTIVE: return by_element(FT_WALK_AVERAGE_BACKWARD, 1, in);
    case FT_WALK_ADAPTIVE_LAST: return by_element(FT_WALK_ADAPTIVE_LAST_BACKWARD, 1, in);
    case FT_WALK_NEAREST: return by_element(FT_WALK_NEAREST_BACKWARD, out / in, in);
    case FT_WALK_NEAREST_LAST: return by_element(FT_WALK_NEAREST_LAST_BACKWARD, out / in, in);
    case FT_WALK_LINEAR:
        return by_element(wide ? FT_WALK_LINEAR_WIDE_BACKWARD : FT_WALK_LINEAR_BACKWARD, sharing(shared), out);
    case FT_WALK_LINEAR_LAST: /* in 16 bits two channels are added at once where their number is even */
        return by_element(FT_WALK_LINEAR_LAST_BACKWARD, sharing(shared), n->odd && !wide ? 2 * out : out);
    case FT_WALK_VOLUME: return by_element(FT_WALK_VOLUME_BACKWARD, 1, out);
    case FT_WALK_CUBIC: return cubic_gradient(n);
    case FT_WALK_CUBIC_SAME:
        return (ft_walking){forward, out / fmax(1, n->forward.blocks * THREADS), n->forward.blocks};
    case FT_WALK_SMOOTH:
    case FT_WALK_SMOOTH_LAST: {
        double scale = out / in, waits = wide ? 1 : 1 + FT_K_RESIZE_SHARED_SMOOTH * scale * sqrt(scale);
        /* Weights that are 0 add nothing. */
        return (ft_walking){FT_WALK_SMOOTH_BACKWARD, in == out ? 1 : n->window * waits, n->forward.blocks};
    }
    default: return (ft_walking){.walk = FT_WALK_NONE};
    }
}
