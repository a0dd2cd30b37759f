/* What bytes cost, for the families that do little else than move them. */
#ifndef FT_KERNEL_TRAFFIC_H
#define FT_KERNEL_TRAFFIC_H
#include "device/traits.h"

/* How a benchmark, or the kernel before, left the last-level cache. */
typedef struct ft_cache_state {
    double share; /* operands up to this share of the cache are found in it */
    double gain;  /* and come this many times faster than from device memory */
} ft_cache_state;

/* Share of `bytes` that a cache holds whose useful part is `room` bytes: 1 well below, 0 well above, half at `room`.
 * The eighth power is as steep as A100 and H200 show it: operators go from cache to memory speed within a third of an
 * octave. */
static inline double ft__resident(double bytes, double room)
{
    double f = bytes / room, f2 = f * f, f4 = f2 * f2;
    return 1 / (1 + f4 * f4);
}

/* Time to move `bytes` at `efficiency` of the device's bandwidth, faster where the cache holds them, in ms. */
static inline double ft__traffic_ms(const ft_device *device, double bytes, double efficiency, ft_cache_state cache)
{
    double resident = ft__resident(bytes, cache.share * device->l2_mib * 1048576);
    return bytes * (1 - resident + resident / cache.gain) / (efficiency * device->memory_gbps * 1e6);
}

/* Instructions that all vector lanes of the device issue in a ms at its boost clock. */
static inline double ft__lane_rate(const ft_device *device)
{
    return (double)device->sms * device->lanes_per_sm * ft__running_mhz(device) * 1e3;
}

/* The same of what its schedulers issue: where fp32 has half the lanes, integers have the other half. */
static inline double ft__issue_rate(const ft_device *device)
{
    return (double)device->sms * device->issue_lanes_per_sm * ft__running_mhz(device) * 1e3;
}
#endif
