/* A qsort() that puts elements which compare equal in the opposite order: the C standard leaves that order open,
 * glibc's keeps it for arrays that fit in memory twice, others do not. Linked into a second program by `--wrap=qsort`.
 * Insertion by binary search: what comes later goes in front of all that are equal to it. */
#include <stdlib.h>
#include <string.h>

void __wrap_qsort(void *base, size_t count, size_t size, int (*order)(const void *, const void *));

void __wrap_qsort(void *base, size_t count, size_t size, int (*order)(const void *, const void *))
{
    char *at = base, *one = malloc(size ? size : 1);
    if (!one) abort();
    for (size_t i = 1; i < count; i++) {
        size_t low = 0, high = i;
        while (low < high) {
            size_t mid = low + (high - low) / 2;
            if (order(at + mid * size, at + i * size) < 0)
                low = mid + 1;
            else
                high = mid;
        }
        memcpy(one, at + i * size, size);
        memmove(at + (low + 1) * size, at + low * size, (i - low) * size);
        memcpy(at + low * size, one, size);
    }
    free(one);
}
