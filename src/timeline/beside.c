/* beside.c: what kernels lose to an exchange that runs beside them. */
#include "timeline/beside.h"

#include <math.h>
#include <string.h>

bool ft__beside_whole(const ft_device *device)
{
    return !strcmp(device->generation, "hopper") || !strcmp(device->generation, "blackwell");
}

double ft__beside_persistent(double d, double count, double left)
{
    if (!(left > 0) || !(d > 0)) return 0;
    double one = d / fmax(count, 1), doubled = floor(left / (2 * one));
    if (doubled >= count) return d;
    return doubled * one + fmin(left - 2 * one * doubled, one);
}

double ft__beside_others(double d, double beside, double left)
{
    if (!(left > 0) || !(beside > 0)) return 0;
    return fmin(left, d * (1 + beside)) * beside / (1 + beside);
}
