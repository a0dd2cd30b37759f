/* The median: of an even number of values the mean of the two in the middle. */
#ifndef FT_BASE_MEDIAN_H
#define FT_BASE_MEDIAN_H
#include <stddef.h>
#include <stdlib.h>

static inline int ft__ascending(const void *a, const void *b) /* of doubles, for qsort() */
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of values in ascending order; 0 of none. */
static inline double ft__median(const double *sorted, size_t count)
{
    if (count == 0) return 0;
    return count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}
#endif
