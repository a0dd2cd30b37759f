/* cache.c: best fit over free blocks, splitting, joining, new segments. */
#include "memory/cache.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 512, GRAINS_OF_MIB = 1024 * 1024 / GRAIN };
static const int64_t SMALL = GRAINS_OF_MIB, SMALL_SEGMENT = 2 * GRAINS_OF_MIB, LARGE = 10 * GRAINS_OF_MIB,
                     LARGE_SEGMENT = 20 * GRAINS_OF_MIB;

static int64_t whole(int64_t size, int64_t of) { return (size + of - 1) / of * of; }

double ft__cache_peak(const ft_cache *c) { return (double)c->most * GRAIN; }

double ft__cache_reserved(const ft_cache *c)
{
    return (double)(c->reserved + whole(c->most_small, SMALL_SEGMENT)) * GRAIN;
}

void ft__cache_init(ft_cache *c, ft_arena *arena, bool expandable)
{
    *c = (ft_cache){.arena = arena, .expandable = expandable, .spare = -1, .tail = -1};
}

/* -- records ----------------------------------------------------------------------------------- */

static void *grown(ft_cache *c, const void *old, int32_t count, int32_t *room, size_t size)
{
    const int32_t more = *room ? 2 * *room : 256;
    void *fresh = ft__arena_bare(c->arena, (size_t)more, size);
    if (!fresh) {
        c->failed = true;
        return NULL;
    }
    if (count) memcpy(fresh, old, (size_t)count * size);
    *room = more;
    return fresh;
}

static int32_t record(ft_cache *c)
{
    if (c->spare >= 0) {
        const int32_t i = c->spare;
        c->spare = c->blocks[i].after;
        return i;
    }
    if (c->count == c->room) {
        ft_cache_block *more = grown(c, c->blocks, c->count, &c->room, sizeof *more);
        if (!more) return -1;
        c->blocks = more;
    }
    return c->count++;
}

/* -- free blocks ------------------------------------------------------------------------------- */

/* The first place in the order that is not before (size, address). */
static int32_t place(const ft_cache *c, int64_t size, int64_t at)
{
    int32_t low = 0, high = c->free_count;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        const ft_cache_place *p = &c->order[middle];
        if (p->size < size || (p->size == size && p->at < at))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void set_free(ft_cache *c, int32_t i)
{
    if (c->free_count == c->free_room) {
        ft_cache_place *more = grown(c, c->order, c->free_count, &c->free_room, sizeof *more);
        if (!more) return;
        c->order = more;
    }
    ft_cache_block *b = &c->blocks[i];
    const int32_t k = place(c, b->size, b->at);
    memmove(c->order + k + 1, c->order + k, (size_t)(c->free_count - k) * sizeof *c->order);
    c->order[k] = (ft_cache_place){b->size, b->at, i};
    c->free_count++;
    b->free = true;
}

static void set_taken_at(ft_cache *c, int32_t k)
{
    c->blocks[c->order[k].block].free = false;
    memmove(c->order + k, c->order + k + 1, (size_t)(c->free_count - k - 1) * sizeof *c->order);
    c->free_count--;
}

static void set_taken(ft_cache *c, int32_t i) { set_taken_at(c, place(c, c->blocks[i].size, c->blocks[i].at)); }

/* The place of the block to take, or -1. An expandable end can grow: it counts as the largest of all. */
static int32_t best_fit(const ft_cache *c, int64_t size)
{
    int32_t k = place(c, size, 0);
    if (k + 1 < c->free_count && c->expandable && c->order[k].block == c->tail) k++;
    return k < c->free_count ? k : -1;
}

/* -- segments ---------------------------------------------------------------------------------- */

/* Memory from the driver: a segment, or pages behind the end of the one that there is. */
static int32_t fetched(ft_cache *c, int64_t size)
{
    const int32_t last = c->tail;
    const bool open = last >= 0 && c->blocks[last].free;
    int64_t more = size < LARGE ? LARGE_SEGMENT : whole(size, SMALL_SEGMENT);
    if (c->expandable) more = whole(size - (open ? c->blocks[last].size : 0), LARGE_SEGMENT);
    c->reserved += more;
    c->end += more;
    if (open) {
        set_taken(c, last);
        c->blocks[last].size += more;
        return last;
    }
    const int32_t i = record(c);
    if (i < 0) return -1;
    c->blocks[i] = (ft_cache_block){.size = more, .at = c->end - more, .before = last, .after = -1};
    if (last >= 0) c->blocks[last].after = i;
    if (c->expandable) c->tail = i;
    return i;
}

/* What is left of a block, if it is worth one of its own. */
static void split(ft_cache *c, int32_t i, int64_t size)
{
    const int64_t rest = c->blocks[i].size - size;
    if (rest <= (c->expandable ? 0 : SMALL)) return;
    const int32_t k = record(c);
    if (k < 0) return;
    ft_cache_block *b = &c->blocks[i];
    c->blocks[k] = (ft_cache_block){.size = rest, .at = b->at + size, .before = i, .after = b->after};
    if (b->after >= 0) c->blocks[b->after].before = k;
    if (c->tail == i) c->tail = k;
    b->after = k;
    b->size = size;
    set_free(c, k);
}

static void count(ft_cache *c, int64_t size, bool small)
{
    c->taken += size;
    if (c->taken > c->most) c->most = c->taken;
    if (!small) return;
    c->small += size;
    if (c->small > c->most_small) c->most_small = c->small;
}

int32_t ft__cache_take(ft_cache *c, double bytes)
{
    if (bytes <= 0 || c->failed) return -1;
    const int64_t size = (int64_t)ceil(bytes / GRAIN);
    if (size <= SMALL) {
        count(c, size, true);
        return FT_CACHE_SMALL;
    }
    const int32_t k = best_fit(c, size);
    int32_t i = -1;
    if (k >= 0) {
        i = c->order[k].block;
        set_taken_at(c, k);
    } else {
        i = fetched(c, size);
    }
    if (i < 0) return -1;
    split(c, i, size);
    count(c, c->blocks[i].size, false);
    return i;
}

/* Joins the block behind `i` to it. */
static void join(ft_cache *c, int32_t i, int32_t next)
{
    c->blocks[i].size += c->blocks[next].size;
    c->blocks[i].after = c->blocks[next].after;
    if (c->blocks[i].after >= 0) c->blocks[c->blocks[i].after].before = i;
    if (c->tail == next) c->tail = i;
    c->blocks[next].after = c->spare;
    c->spare = next;
}

void ft__cache_give(ft_cache *c, int32_t i, double bytes)
{
    if (c->failed) return;
    if (i == FT_CACHE_SMALL) {
        const int64_t size = (int64_t)ceil(bytes / GRAIN);
        c->taken -= size;
        c->small -= size;
    }
    if (i < 0) return;
    c->taken -= c->blocks[i].size;
    const int32_t next = c->blocks[i].after, last = c->blocks[i].before;
    if (next >= 0 && c->blocks[next].free) {
        set_taken(c, next);
        join(c, i, next);
    }
    if (last >= 0 && c->blocks[last].free) {
        set_taken(c, last);
        join(c, last, i);
        i = last;
    }
    set_free(c, i);
}

void ft__cache_touch(ft_cache *c, double bytes)
{
    if (bytes <= 0 || c->failed) return;
    const int64_t size = (int64_t)ceil(bytes / GRAIN);
    const int32_t k = size > SMALL ? best_fit(c, size) : -1;
    if (k < 0) {
        ft__cache_give(c, ft__cache_take(c, bytes), bytes);
        return;
    }
    const int64_t rest = c->order[k].size - size, takes = rest <= (c->expandable ? 0 : SMALL) ? size + rest : size;
    if (c->taken + takes > c->most) c->most = c->taken + takes;
}
