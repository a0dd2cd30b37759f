/* resize.c: averages over windows and interpolations as PyTorch's kernels run them (aten/src/ATen/native/cuda/
 * AveragePool2d.cu, UpSampleNearest2d.cu, UpSampleBilinear2d.cu, UpSampleBicubic2d.cu, UpSampleTrilinear3d.cu).
 *
 * Interpolations of NCHW have a thread per pixel of the result that goes through all pictures and channels one after
 * the other: small pictures of many channels wait for their loads. Channels last, and for the nearest pixel, a thread
 * is an element. Going back, results add to what they were made of by atomics, in 16 bits a loop of compare and swap:
 * the more of them share a pixel the longer each waits. What a trip takes is in data/constants/kernel/walk.json. */
#include "graph/resize.h"

#include <math.h>
#include <string.h>

enum { THREADS = 1024, ELEMENTS = 512 };

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

ft_walking ft__resize_walk(const ft_resize *how)
{
    double made = how->pictures * how->pixels;
    ft_walking loop = {.trips = how->pictures, .blocks = how->pixels / THREADS};
    switch (how->by) {
    case FT_RESIZE_AVERAGE: return by_element(how->last ? FT_WALK_AVERAGE_LAST : FT_WALK_AVERAGE, 1, made);
    case FT_RESIZE_NEAREST: return by_element(how->last ? FT_WALK_NEAREST_LAST : FT_WALK_NEAREST, 1, made);
    case FT_RESIZE_LINEAR:
        if (how->last) return by_element(FT_WALK_LINEAR_LAST, 1, made);
        loop.walk = how->axes > 2 ? FT_WALK_VOLUME : FT_WALK_LINEAR;
        return loop;
    case FT_RESIZE_CUBIC: loop.walk = FT_WALK_CUBIC; return loop;
    case FT_RESIZE_OTHER: break;
    }
    return (ft_walking){.walk = FT_WALK_NONE};
}

ft_walking ft__resize_gradient(ft_walk forward, double window, double in, double out, bool odd)
{
    double shared = fmax(1, out / in); /* results that a pixel was part of, times four in two dimensions */
    switch (forward) {
    case FT_WALK_AVERAGE:
    case FT_WALK_AVERAGE_LAST: return by_element(FT_WALK_AVERAGE_BACKWARD, fmax(1, window * out / in), in);
    case FT_WALK_NEAREST: return by_element(FT_WALK_NEAREST_BACKWARD, 1, out);
    case FT_WALK_NEAREST_LAST: return by_element(FT_WALK_NEAREST_LAST_BACKWARD, 1, out);
    case FT_WALK_LINEAR: return by_element(FT_WALK_LINEAR_BACKWARD, shared, out);
    case FT_WALK_LINEAR_LAST: /* two channels are added at once where their number is even */
        return by_element(FT_WALK_LINEAR_LAST_BACKWARD, shared, odd ? 2 * out : out);
    case FT_WALK_VOLUME: return by_element(FT_WALK_VOLUME_BACKWARD, 1, out);
    case FT_WALK_CUBIC: return by_element(FT_WALK_CUBIC_BACKWARD, 1, out);
    default: return (ft_walking){.walk = FT_WALK_NONE};
    }
}
