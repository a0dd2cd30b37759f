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
 * every remainder is a block. Bytes are counted in the allocator's grains of 512.
 *
 * Free blocks lie on shelves, one for each size that there ever was; a bit says which shelves are not empty. Who asks
 * for the same size again remembers its shelf (ft_cache_hint): most tensors find their block without a search. */
#ifndef FT_MEMORY_CACHE_H
#define FT_MEMORY_CACHE_H
#include <math.h>
#include <stdint.h>

#include "base/arena.h"

/* A shelf that was found, and the number of shelves then: with another number it is looked for again. */
typedef struct ft_cache_hint {
    int32_t shelf, of;
} ft_cache_hint;

typedef struct ft_cache_block {
    int64_t size, at;      /* grains; address */
    int32_t before, after; /* neighbours in the segment; -1 at its ends */
    int32_t older, newer;  /* the holder's, while it is taken */
    ft_cache_hint hint;    /* of its own size's shelf */
    bool free;
} ft_cache_block;

/* Free blocks of one size, the lowest address last: it is the first to go. */
typedef struct ft_cache_shelf {
    int32_t *blocks;
    int32_t count, room;
} ft_cache_shelf;

typedef struct ft_cache {
    ft_arena *arena;
    bool expandable;
    ft_cache_block *blocks;
    int32_t count, room, spare; /* records; the first of those that are unused, -1 */
    int64_t *sizes;             /* of shelves, ascending */
    ft_cache_shelf *shelves;
    uint64_t *filled; /* a bit for each shelf: it is not empty */
    int32_t shelf_count, shelf_room;
    int32_t tail; /* expandable: the last block; -1 */
    int64_t end;  /* of the addresses that were given out */
    int64_t reserved, taken, small;
    int64_t most, most_small; /* that tensors held, and those up to 1 MiB */
    int64_t most_reserved;    /* before segments were given back */
    int64_t limit;            /* grains that the driver has; 0: any number */
    bool failed;              /* out of memory: figures mean nothing */
} ft_cache;

enum { FT_CACHE_SMALL = -2 }; /* the block of a tensor up to 1 MiB: none */

enum { FT_CACHE_GRAIN = 512, FT_CACHE_SMALL_GRAINS = 1024 * 1024 / FT_CACHE_GRAIN };

/* Grains of so many bytes; 0: there is nothing to take. */
static inline int64_t ft__cache_grains(double bytes) { return bytes > 0 ? (int64_t)ceil(bytes / FT_CACHE_GRAIN) : 0; }

void ft__cache_init(ft_cache *c, ft_arena *arena, bool expandable);
/* -1: nothing was asked for, or it failed. `hint` begins as zeros and belongs to one size. */
int32_t ft__cache_take(ft_cache *c, int64_t grains, ft_cache_hint *hint);
void ft__cache_give(ft_cache *c, int32_t block, int64_t grains);
void ft__cache_touch(ft_cache *c, int64_t grains, ft_cache_hint *hint); /* taken and given back at once */
void ft__cache_keep(ft_cache *c, int64_t grains, int64_t copies);       /* taken, never to be given back */
/* So many bytes are there: what asks for more gives back all segments that nobody uses first. */
void ft__cache_limit(ft_cache *c, double bytes);
/* Takes empty shelves down. Hints that the caller has begin anew. */
void ft__cache_tidy(ft_cache *c);
double ft__cache_peak(const ft_cache *c);
double ft__cache_reserved(const ft_cache *c);

/* Tensors up to 1 MiB, where the caller knows that they are. */
static inline void ft__cache_take_small(ft_cache *c, int64_t grains)
{
    c->taken += grains;
    c->small += grains;
    if (c->taken > c->most) c->most = c->taken;
    if (c->small > c->most_small) c->most_small = c->small;
}

static inline void ft__cache_give_small(ft_cache *c, int64_t grains)
{
    c->taken -= grains;
    c->small -= grains;
}
#endif
