/* What features are made of, in every family. */
#ifndef FT_KERNEL_FEATURE_H
#define FT_KERNEL_FEATURE_H
#include <math.h>
#include <stdint.h>

static inline float ft__lg(double x) { return (float)log2(x); }

/* Exponent of the largest power of two, up to 2^most, that divides x: libraries branch on it. */
static inline float ft__log2_divisor(int64_t x, int most)
{
    int t = 0;
    while (t < most && x % 2 == 0) x /= 2, t++;
    return (float)t;
}
#endif
