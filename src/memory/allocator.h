/* What a caching allocator makes of the bytes that tensors ask for: PyTorch's CUDACachingAllocator, whose figures users
 * know as memory_allocated and memory_reserved.
 *
 * Requests are rounded up to 512 bytes. Up to 1 MiB they are cut from segments of 2 MiB, up to 10 MiB from segments of
 * 20 MiB, above that a segment is made for them, rounded up to 2 MiB. A block of a large segment is cut only when more
 * than 1 MiB would remain; otherwise the tensor keeps the rest, and the rest counts as allocated (kMinBlockSize,
 * kSmallSize, kSmallBuffer, kLargeBuffer, kMinLargeAlloc, kRoundLarge in c10/cuda/CUDACachingAllocator). */
#ifndef FT_MEMORY_ALLOCATOR_H
#define FT_MEMORY_ALLOCATOR_H
#include <stdbool.h>
#include <stdint.h>

/* Bytes that a passing tensor takes: blocks of its size are found in the cache. */
double ft__allocated(double bytes);

/* Tensors that stay are packed in the order in which they are made: a new model has no cache to find blocks in. */
typedef struct ft_packer {
    double small, large;        /* what is left of the open 2 MiB and 20 MiB segments */
    double allocated, reserved; /* so far */
} ft_packer;
double ft__pack(ft_packer *p, double bytes, int64_t copies); /* the bytes that these count for */

/* What a cache of blocks grows to, by high-water marks: for blocks of several streams, and for decoding; cache.h is
 * what one stream's is put through. A block that was cut for one size serves another of about that size, not a larger
 * one: the high-water marks of the sizes add up to more than the high-water mark of the sum. */
enum { FT_POOL_CLASSES = 64 };
typedef struct ft_pool {
    double size[FT_POOL_CLASSES]; /* of the class's blocks; the first two are for all that share segments */
    double live[FT_POOL_CLASSES], most[FT_POOL_CLASSES];
    int count;
} ft_pool;
void ft__pool_init(ft_pool *p);
int ft__pool_class(ft_pool *p, double bytes); /* by allocated size; classes beyond the room share the nearest one */
static inline void ft__pool_take(ft_pool *p, int at, double bytes)
{
    p->live[at] += bytes;
    if (p->live[at] > p->most[at]) p->most[at] = p->live[at];
}
static inline void ft__pool_give_back(ft_pool *p, int at, double bytes) { p->live[at] -= bytes; }
double ft__pool_most(const ft_pool *p); /* the sum of the high-water marks */

/* Reserved bytes: `kept` of tensors that stay (a packer's), `peak` of those that come and go and `most` of their pool;
 * `copied` of a cache that every step copies into one larger by a row. */
double ft__reserved(bool training, double kept, double peak, double most, double copied);
#endif
