/* walk.c: as long as its waits: a trip to memory, as often as a thread makes one, for every round of blocks that the
 * GPU holds. What a trip takes, how many blocks run beside each other at that pace and what a block takes to begin was
 * read off one GPU (data/constants/kernel/walk.json) and is taken to be the same per SM on others. */
#include "kernel/walk.h"

#include <math.h>

#include "kernel/walk_constants.h"

typedef struct pace {
    const char *name;
    double trip_us, blocks_per_sm, start_trips, start_us;
} pace;

static const pace paces[FT_WALK_COUNT] = {
    [FT_WALK_MOMENTS] = FT_K_WALK_PACE_MOMENTS,
    [FT_WALK_MOMENTS_LAST] = FT_K_WALK_PACE_MOMENTS_LAST,
    [FT_WALK_NORM] = FT_K_WALK_PACE_NORM,
    [FT_WALK_NORM_SMALL] = FT_K_WALK_PACE_NORM_SMALL,
    [FT_WALK_NORM_LAST] = FT_K_WALK_PACE_NORM_LAST,
    [FT_WALK_BOTH] = FT_K_WALK_PACE_BOTH,
    [FT_WALK_BOTH_LAST] = FT_K_WALK_PACE_BOTH_LAST,
    [FT_WALK_BOTH_HALF] = FT_K_WALK_PACE_BOTH_HALF,
    [FT_WALK_BOTH_HALF_LAST] = FT_K_WALK_PACE_BOTH_HALF_LAST,
    [FT_WALK_GRADIENT] = FT_K_WALK_PACE_GRADIENT,
    [FT_WALK_GRADIENT_LAST] = FT_K_WALK_PACE_GRADIENT_LAST,
    [FT_WALK_GRADIENT_LOW] = FT_K_WALK_PACE_GRADIENT_LOW,
    [FT_WALK_GRADIENT_LOW_LAST] = FT_K_WALK_PACE_GRADIENT_LOW_LAST,
    [FT_WALK_GRADIENT_HALF] = FT_K_WALK_PACE_GRADIENT_HALF,
    [FT_WALK_GRADIENT_HALF_LAST] = FT_K_WALK_PACE_GRADIENT_HALF_LAST,
    [FT_WALK_GROUP_MOMENTS] = FT_K_WALK_PACE_GROUP_MOMENTS,
    [FT_WALK_SUMS] = FT_K_WALK_PACE_SUMS,
    [FT_WALK_SUMS_SMALL] = FT_K_WALK_PACE_SUMS_SMALL,
    [FT_WALK_BROADCAST] = FT_K_WALK_PACE_BROADCAST,
    [FT_WALK_BROADCAST_LOW] = FT_K_WALK_PACE_BROADCAST_LOW,
    [FT_WALK_ADD_UP] = FT_K_WALK_PACE_ADD_UP,
    [FT_WALK_POOL] = FT_K_WALK_PACE_POOL,
    [FT_WALK_POOL_BACKWARD] = FT_K_WALK_PACE_POOL_BACKWARD,
    [FT_WALK_POOL_LAST] = FT_K_WALK_PACE_POOL_LAST,
    [FT_WALK_POOL_LAST_BACKWARD] = FT_K_WALK_PACE_POOL_LAST_BACKWARD,
    [FT_WALK_AVERAGE] = FT_K_WALK_PACE_AVERAGE,
    [FT_WALK_AVERAGE_LAST] = FT_K_WALK_PACE_AVERAGE_LAST,
    [FT_WALK_AVERAGE_BACKWARD] = FT_K_WALK_PACE_AVERAGE_BACKWARD,
    [FT_WALK_ADAPTIVE] = FT_K_WALK_PACE_ADAPTIVE,
    [FT_WALK_ADAPTIVE_LAST] = FT_K_WALK_PACE_ADAPTIVE_LAST,
    [FT_WALK_ADAPTIVE_LAST_BACKWARD] = FT_K_WALK_PACE_ADAPTIVE_LAST_BACKWARD,
    [FT_WALK_NEAREST] = FT_K_WALK_PACE_NEAREST,
    [FT_WALK_NEAREST_LAST] = FT_K_WALK_PACE_NEAREST_LAST,
    [FT_WALK_NEAREST_BACKWARD] = FT_K_WALK_PACE_NEAREST_BACKWARD,
    [FT_WALK_NEAREST_LAST_BACKWARD] = FT_K_WALK_PACE_NEAREST_LAST_BACKWARD,
    [FT_WALK_LINEAR] = FT_K_WALK_PACE_LINEAR,
    [FT_WALK_LINEAR_LAST] = FT_K_WALK_PACE_LINEAR_LAST,
    [FT_WALK_LINEAR_BACKWARD] = FT_K_WALK_PACE_LINEAR_BACKWARD,
    [FT_WALK_LINEAR_WIDE_BACKWARD] = FT_K_WALK_PACE_LINEAR_WIDE_BACKWARD,
    [FT_WALK_LINEAR_LAST_BACKWARD] = FT_K_WALK_PACE_LINEAR_LAST_BACKWARD,
    [FT_WALK_VOLUME] = FT_K_WALK_PACE_VOLUME,
    [FT_WALK_VOLUME_BACKWARD] = FT_K_WALK_PACE_VOLUME_BACKWARD,
    [FT_WALK_CUBIC] = FT_K_WALK_PACE_CUBIC,
    [FT_WALK_CUBIC_SAME] = FT_K_WALK_PACE_CUBIC_SAME,
    [FT_WALK_CUBIC_BACKWARD] = FT_K_WALK_PACE_CUBIC_BACKWARD,
    [FT_WALK_CUBIC_WIDE_BACKWARD] = FT_K_WALK_PACE_CUBIC_WIDE_BACKWARD,
    [FT_WALK_SMOOTH] = FT_K_WALK_PACE_SMOOTH,
    [FT_WALK_SMOOTH_LAST] = FT_K_WALK_PACE_SMOOTH_LAST,
    [FT_WALK_SMOOTH_BACKWARD] = FT_K_WALK_PACE_SMOOTH_BACKWARD,
    [FT_WALK_SAMPLE] = FT_K_WALK_PACE_SAMPLE,
    [FT_WALK_SAMPLE_LAST] = FT_K_WALK_PACE_SAMPLE_LAST,
    [FT_WALK_SAMPLE_CUBIC] = FT_K_WALK_PACE_SAMPLE_CUBIC,
    [FT_WALK_SAMPLE_CUBIC_LOW] = FT_K_WALK_PACE_SAMPLE_CUBIC_LOW,
    [FT_WALK_SAMPLE_CUBIC_LAST] = FT_K_WALK_PACE_SAMPLE_CUBIC_LAST,
    [FT_WALK_SAMPLE_CUBIC_CLIPPED] = FT_K_WALK_PACE_SAMPLE_CUBIC_CLIPPED,
    [FT_WALK_SAMPLE_VOLUME] = FT_K_WALK_PACE_SAMPLE_VOLUME,
    [FT_WALK_SAMPLE_BACKWARD] = FT_K_WALK_PACE_SAMPLE_BACKWARD,
    [FT_WALK_SAMPLE_LAST_BACKWARD] = FT_K_WALK_PACE_SAMPLE_LAST_BACKWARD,
    [FT_WALK_SAMPLE_LOW_BACKWARD] = FT_K_WALK_PACE_SAMPLE_LOW_BACKWARD,
    [FT_WALK_SAMPLE_NEAREST_BACKWARD] = FT_K_WALK_PACE_SAMPLE_NEAREST_BACKWARD,
    [FT_WALK_SAMPLE_CUBIC_BACKWARD] = FT_K_WALK_PACE_SAMPLE_CUBIC_BACKWARD,
    [FT_WALK_SAMPLE_CUBIC_LOW_BACKWARD] = FT_K_WALK_PACE_SAMPLE_CUBIC_LOW_BACKWARD,
    [FT_WALK_SAMPLE_CUBIC_CLIPPED_BACKWARD] = FT_K_WALK_PACE_SAMPLE_CUBIC_CLIPPED_BACKWARD,
    [FT_WALK_SAMPLE_VOLUME_BACKWARD] = FT_K_WALK_PACE_SAMPLE_VOLUME_BACKWARD,
    [FT_WALK_ACROSS] = FT_K_WALK_PACE_ACROSS,
    [FT_WALK_ATOMIC] = FT_K_WALK_PACE_ATOMIC,
    [FT_WALK_SCAN] = FT_K_WALK_PACE_SCAN,
    [FT_WALK_UNFOLD] = FT_K_WALK_PACE_UNFOLD,
    [FT_WALK_FOLD] = FT_K_WALK_PACE_FOLD,
    [FT_WALK_OVERLAP] = FT_K_WALK_PACE_OVERLAP,
    [FT_WALK_COUNT_UP] = FT_K_WALK_PACE_COUNT_UP,
    [FT_WALK_MEET] = FT_K_WALK_PACE_MEET,
    [FT_WALK_MEET_WIDE] = FT_K_WALK_PACE_MEET_WIDE,
    [FT_WALK_MEET_NARROW] = FT_K_WALK_PACE_MEET_NARROW,
    [FT_WALK_MEET_SINGLE] = FT_K_WALK_PACE_MEET_SINGLE,
    [FT_WALK_ADD_BY_INDEX] = FT_K_WALK_PACE_ADD_BY_INDEX,
    [FT_WALK_BIAS_LSTM] = FT_K_WALK_PACE_BIAS_LSTM,
    [FT_WALK_BIAS_GRU] = FT_K_WALK_PACE_BIAS_GRU,
    [FT_WALK_BIAS_PLAIN] = FT_K_WALK_PACE_BIAS_PLAIN,
    [FT_WALK_MOMENTS_TURNED] = FT_K_WALK_PACE_MOMENTS_TURNED,
    [FT_WALK_NORM_TURNED] = FT_K_WALK_PACE_NORM_TURNED,
    [FT_WALK_GRADIENT_TURNED] = FT_K_WALK_PACE_GRADIENT_TURNED,
    [FT_WALK_WEIGHT_NORM] = FT_K_WALK_PACE_WEIGHT_NORM,
    [FT_WALK_WEIGHT_NORM_BACKWARD] = FT_K_WALK_PACE_WEIGHT_NORM_BACKWARD,
    [FT_WALK_CHANNELS] = FT_K_WALK_PACE_CHANNELS,
    [FT_WALK_CHANNELS_BACKWARD] = FT_K_WALK_PACE_CHANNELS_BACKWARD,
    [FT_WALK_TOGETHER] = FT_K_WALK_PACE_TOGETHER,
    [FT_WALK_TOGETHER_BACKWARD] = FT_K_WALK_PACE_TOGETHER_BACKWARD,
    [FT_WALK_APART] = FT_K_WALK_PACE_APART,
    [FT_WALK_APART_STAGED] = FT_K_WALK_PACE_APART_STAGED,
};
static const pace held_result = FT_K_WALK_PACE_HELD_RESULT, held_gradient = FT_K_WALK_PACE_HELD_GRADIENT,
                  group_moments_held = FT_K_WALK_PACE_GROUP_MOMENTS_HELD, channels_far = FT_K_WALK_PACE_CHANNELS_FAR,
                  channels_far_back = FT_K_WALK_PACE_CHANNELS_FAR_BACKWARD, linear_held = FT_K_WALK_PACE_LINEAR_HELD;

/* cuDNN's half-precision kernels read a channel once where the block can keep it, one operand going forward and two
 * going back; else they walk over it twice. Sums of a group norm are of what the kernel before wrote, which the cache
 * may still have. A trip is 512 elements of two bytes. A softmax along channels goes over them again and again: 1,024
 * threads find what the SM keeps. Interpolations whose results the cache holds do not wait for memory. */
static const pace *pace_of(const ft_device *device, ft_walk walk, double trips, double blocks)
{
    double room = FT_K_WALK_HELD_SHARE * device->smem_kib_per_sm * 1024, operand = trips * 512 * 2;
    double cache = FT_K_WALK_CACHE_SHARE * device->l2_mib * 1024 * 1024;
    if (walk == FT_WALK_GROUP_MOMENTS && operand * blocks <= cache) return &group_moments_held;
    if (walk == FT_WALK_BOTH_HALF && operand <= room) return &held_result;
    if (walk == FT_WALK_GRADIENT_HALF && 2 * operand <= room) return &held_gradient;
    if (walk == FT_WALK_LINEAR && trips * blocks * 1024 * 2 <= cache) return &linear_held;
    if (walk == FT_WALK_CHANNELS && 2 * operand > room) return &channels_far;
    if (walk == FT_WALK_CHANNELS_BACKWARD && 2 * operand > room) return &channels_far_back;
    return &paces[walk];
}

double ft__walk_ms(const ft_device *device, ft_walk walk, double trips, double blocks)
{
    if (walk == FT_WALK_NONE || (unsigned)walk >= FT_WALK_COUNT || !(trips > 0)) return 0;
    const pace *p = pace_of(device, walk, trips, blocks);
    double rounds = fmax(1, blocks / (p->blocks_per_sm * device->sms));
    return 1e-3 * (p->start_us + p->trip_us * (trips + p->start_trips) * rounds);
}
