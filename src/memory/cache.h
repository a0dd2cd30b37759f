/* PyTorch's caching allocator, block by block: which segments it asks the driver for while tensors come and go.
 *
 * A tensor takes the smallest free block that holds it (best fit, the lower address among equals); what is left of the
 * block stays free when it is worth a block of its own. A block that is given back joins its free neighbours in the
 * segment; segments are never given back. What asks for a new segment gets one by allocator.h's rules (alloc_block,
 * get_free_block, should_split and free_block in c10/cuda/CUDACachingAllocator.cpp). Tensors up to 1 MiB have segments
 * of 2 MiB of their own; they are counted, not placed: little of so small segments is lost.
 *
 * With expandable segments (`expandable_segments:True` in PYTORCH_CUDA_ALLOC_CONF) there is one stretch of addresses,
 * and memory is mapped at its end as it is needed, 20 MiB at a time; free blocks that lie before the end go first, and
 * every remainder is a block. Bytes are counted in the allocator's grains of 512. */
#ifndef FT_MEMORY_CACHE_H
#define FT_MEMORY_CACHE_H
#include <stdint.h>

#include "base/arena.h"

typedef struct ft_cache_block {
    int64_t size, at;      /* grains; address */
    int32_t before, after; /* neighbours in the segment; -1 at its ends */
    int32_t older, newer;  /* the holder's, while it is taken */
    bool free;
} ft_cache_block;

/* A free block in the order of size and address. */
typedef struct ft_cache_place {
    int64_t size, at;
    int32_t block;
} ft_cache_place;

typedef struct ft_cache {
    ft_arena *arena;
    bool expandable;
    ft_cache_block *blocks;
    int32_t count, room, spare; /* records; the first of those that are unused, -1 */
    ft_cache_place *order;
    int32_t free_count, free_room;
    int32_t tail; /* expandable: the last block; -1 */
    int64_t end;  /* of the addresses that were given out */
    int64_t reserved, taken, small;
    int64_t most, most_small; /* that tensors held, and those up to 1 MiB */
    bool failed;              /* out of memory: figures mean nothing */
} ft_cache;

enum { FT_CACHE_SMALL = -2 }; /* the block of a tensor up to 1 MiB: none */

void ft__cache_init(ft_cache *c, ft_arena *arena, bool expandable);
int32_t ft__cache_take(ft_cache *c, double bytes); /* -1: nothing was asked for, or it failed */
void ft__cache_give(ft_cache *c, int32_t block, double bytes);
void ft__cache_touch(ft_cache *c, double bytes); /* taken and given back at once */
double ft__cache_peak(const ft_cache *c);
double ft__cache_reserved(const ft_cache *c);
#endif
