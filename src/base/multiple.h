/* The least common multiple. */
#ifndef FT_BASE_MULTIPLE_H
#define FT_BASE_MULTIPLE_H
#include <stdint.h>

/* Of two positive numbers. */
static inline int64_t ft__common_multiple(int64_t x, int64_t y)
{
    int64_t a = x, b = y;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return x / a * y;
}
#endif
