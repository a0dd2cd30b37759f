/* What kernels and the node around a GPU draw: joules from bytes, arithmetic and time. */
#ifndef FT_KERNEL_ENERGY_H
#define FT_KERNEL_ENERGY_H
#include "foretell.h"

typedef struct ft_energy {
    double joules, low_joules, high_joules; /* of one GPU, its node not counted; 0: its sheet has no limit */
    double watts;                           /* on average */
    double node_watts;                      /* with its share of the node, before the building's cooling */
} ft_energy;

/* What a board draws that waits with its clocks up; the most that it holds. */
double ft__watts_awake(const ft_device *device);
double ft__watts_most(const ft_device *device);

/* Of one launch that takes `ms`, beyond what a waiting GPU draws. */
double ft__kernel_joules(const ft_device *device, const ft_op *op, double flops, double bytes, double ms,
                         double launch_ms);
/* Factor (>= 1) on the time of work that would draw so many watts, beyond what a waiting GPU draws, at full clock. */
double ft__clock_slowdown(const ft_device *device, double watts);
/* How long it takes back to back: forecast to take `ms`, `sustained_ms` where products slow themselves down, and longer
 * where that would draw more than the board holds. */
double ft__kernel_steady_ms(const ft_device *device, const ft_op *op, const ft_forecast *f);
/* What exchanges add that take so long, hidden or not. */
double ft__exchange_joules(const ft_device *device, double ms);

/* A GPU over `ms`, from `low_ms` to `high_ms`, with so many joules of kernels and exchanges in it. `level`:
 * ft__interval_level of the quantile. */
ft_energy ft__energy_of(const ft_device *device, double joules, double ms, double low_ms, double high_ms, double level);
#endif
