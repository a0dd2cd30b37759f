/* cache.c: best fit over free blocks, splitting, joining, new segments. */
#include "memory/cache.h"

#include <string.h>

enum { GRAINS_OF_MIB = 1024 * 1024 / FT_CACHE_GRAIN, WORD = 64 };
static const int64_t SMALL = FT_CACHE_SMALL_GRAINS, SMALL_SEGMENT = 2 * GRAINS_OF_MIB, LARGE = 10 * GRAINS_OF_MIB,
                     LARGE_SEGMENT = 20 * GRAINS_OF_MIB;

static int64_t whole(int64_t size, int64_t of) { return (size + of - 1) / of * of; }

double ft__cache_peak(const ft_cache *c) { return (double)c->most * FT_CACHE_GRAIN; }

double ft__cache_reserved(const ft_cache *c)
{
    const int64_t most = c->most_reserved > c->reserved ? c->most_reserved : c->reserved;
    return (double)(most + whole(c->most_small, SMALL_SEGMENT)) * FT_CACHE_GRAIN;
}

void ft__cache_init(ft_cache *c, ft_arena *arena, bool expandable)
{
    *c = (ft_cache){.arena = arena, .expandable = expandable, .spare = -1, .tail = -1};
}

/* -- records ----------------------------------------------------------------------------------- */

static void *grown(ft_cache *c, const void *old, int32_t count, int32_t room, size_t size)
{
    void *fresh = ft__arena_bare(c->arena, (size_t)room, size);
    if (!fresh) {
        c->failed = true;
        return NULL;
    }
    if (count) memcpy(fresh, old, (size_t)count * size);
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
        const int32_t room = c->room ? 2 * c->room : 256;
        ft_cache_block *more = grown(c, c->blocks, c->count, room, sizeof *more);
        if (!more) return -1;
        c->blocks = more;
        c->room = room;
    }
    return c->count++;
}

/* -- shelves ----------------------------------------------------------------------------------- */

/* The first shelf that is not too small. */
static int32_t search(const ft_cache *c, int64_t size)
{
    const int64_t *from = c->sizes;
    int32_t count = c->shelf_count;
    if (count == 0) return 0;
    while (count > 1) { /* no branch that a processor could guess wrong */
        const int32_t half = count / 2;
        from += from[half - 1] < size ? half : 0;
        count -= half;
    }
    return (int32_t)(from - c->sizes) + (*from < size);
}

static inline int32_t shelf_for(const ft_cache *c, int64_t size, ft_cache_hint *hint)
{
    if (hint->of != c->shelf_count) *hint = (ft_cache_hint){search(c, size), c->shelf_count};
    return hint->shelf;
}

static int lowest_bit(uint64_t bits)
{
#ifdef __GNUC__
    return __builtin_ctzll(bits);
#else
    int n = 0;
    for (; !(bits & 1); bits >>= 1) n++;
    return n;
#endif
}

/* The first shelf from `k` on that has a block; -1. */
static int32_t filled_from(const ft_cache *c, int32_t k)
{
    if (k >= c->shelf_count) return -1;
    const int32_t words = (c->shelf_count + WORD - 1) / WORD;
    int32_t w = k / WORD;
    uint64_t bits = c->filled[w] & (~UINT64_C(0) << (k % WORD));
    while (!bits && ++w < words) bits = c->filled[w];
    return bits ? w * WORD + lowest_bit(bits) : -1;
}

static bool room_for_shelf(ft_cache *c)
{
    if (c->shelf_count < c->shelf_room) return true;
    const int32_t room = c->shelf_room ? 2 * c->shelf_room : WORD;
    int64_t *sizes = grown(c, c->sizes, c->shelf_count, room, sizeof *sizes);
    ft_cache_shelf *shelves = grown(c, c->shelves, c->shelf_count, room, sizeof *shelves);
    uint64_t *filled = ft__arena_array(c->arena, (size_t)(room / WORD), sizeof *filled);
    c->failed = c->failed || !filled;
    if (c->failed) return false;
    if (c->shelf_room) memcpy(filled, c->filled, (size_t)(c->shelf_room / WORD) * sizeof *filled);
    c->sizes = sizes;
    c->shelves = shelves;
    c->filled = filled;
    c->shelf_room = room;
    return true;
}

/* A new, empty shelf before the k-th. */
static bool put_up(ft_cache *c, int32_t k, int64_t size)
{
    if (!room_for_shelf(c)) return false;
    const size_t behind = (size_t)(c->shelf_count - k);
    if (behind) {
        memmove(c->sizes + k + 1, c->sizes + k, behind * sizeof *c->sizes);
        memmove(c->shelves + k + 1, c->shelves + k, behind * sizeof *c->shelves);
    }
    c->sizes[k] = size;
    c->shelves[k] = (ft_cache_shelf){0};
    const uint64_t below = (UINT64_C(1) << (k % WORD)) - 1;
    for (int32_t w = c->shelf_count / WORD; w >= k / WORD; w--) {
        const uint64_t moved = w == k / WORD ? c->filled[w] & ~below : c->filled[w];
        const uint64_t stays = w == k / WORD ? c->filled[w] & below : 0;
        const uint64_t carried = w > k / WORD ? c->filled[w - 1] >> (WORD - 1) : 0;
        c->filled[w] = stays | moved << 1 | carried;
    }
    c->shelf_count++;
    return true;
}

/* Where on its shelf a block of this address is, or belongs: addresses fall. */
static int32_t place(const ft_cache *c, const ft_cache_shelf *s, int64_t at)
{
    int32_t low = 0, high = s->count;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (c->blocks[s->blocks[middle]].at > at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void set_free(ft_cache *c, int32_t i)
{
    ft_cache_block *b = &c->blocks[i];
    int32_t k = shelf_for(c, b->size, &b->hint);
    if (k == c->shelf_count || c->sizes[k] != b->size) {
        if (!put_up(c, k, b->size)) return;
        b->hint.of = c->shelf_count;
    }
    ft_cache_shelf *s = &c->shelves[k];
    if (s->count == s->room) {
        const int32_t room = s->room ? 2 * s->room : 4;
        int32_t *more = grown(c, s->blocks, s->count, room, sizeof *more);
        if (!more) return;
        s->blocks = more;
        s->room = room;
    }
    int32_t to = s->count;
    if (to > 0 && c->blocks[s->blocks[to - 1]].at < b->at) {
        to = place(c, s, b->at);
        memmove(s->blocks + to + 1, s->blocks + to, (size_t)(s->count - to) * sizeof *s->blocks);
    }
    s->blocks[to] = i;
    s->count++;
    c->filled[k / WORD] |= UINT64_C(1) << (k % WORD);
    b->free = true;
}

/* Takes the block at this place of a shelf. */
static int32_t take_off(ft_cache *c, int32_t k, int32_t from)
{
    ft_cache_shelf *s = &c->shelves[k];
    const int32_t i = s->blocks[from];
    s->count--;
    if (from < s->count) memmove(s->blocks + from, s->blocks + from + 1, (size_t)(s->count - from) * sizeof *s->blocks);
    if (s->count == 0) c->filled[k / WORD] &= ~(UINT64_C(1) << (k % WORD));
    c->blocks[i].free = false;
    return i;
}

static void set_taken(ft_cache *c, int32_t i)
{
    ft_cache_block *b = &c->blocks[i];
    const int32_t k = shelf_for(c, b->size, &b->hint);
    const ft_cache_shelf *s = &c->shelves[k];
    take_off(c, k, s->blocks[s->count - 1] == i ? s->count - 1 : place(c, s, b->at));
}

/* The shelf whose lowest block is to be taken, or -1. An expandable end can grow: it counts as the largest of all. */
static int32_t best_fit(const ft_cache *c, int64_t size, ft_cache_hint *hint)
{
    const int32_t k = filled_from(c, shelf_for(c, size, hint));
    if (k < 0 || !c->expandable) return k;
    const ft_cache_shelf *s = &c->shelves[k];
    if (s->blocks[s->count - 1] != c->tail) return k;
    const int32_t next = filled_from(c, k + 1); /* of its size the end is the last */
    return next < 0 ? k : next;
}

/* -- segments ---------------------------------------------------------------------------------- */

static int64_t segment_of(int64_t size) { return size < LARGE ? LARGE_SEGMENT : whole(size, SMALL_SEGMENT); }

/* The driver has no more: whole segments that are free go back to it (release_cached_blocks). */
static void release(ft_cache *c)
{
    if (c->reserved > c->most_reserved) c->most_reserved = c->reserved;
    for (int32_t k = filled_from(c, 0); k >= 0; k = filled_from(c, k + 1))
        for (int32_t n = c->shelves[k].count - 1; n >= 0; n--) {
            const int32_t i = c->shelves[k].blocks[n];
            if (c->blocks[i].before >= 0 || c->blocks[i].after >= 0) continue;
            take_off(c, k, n);
            c->reserved -= c->blocks[i].size;
            c->blocks[i].after = c->spare;
            c->spare = i;
        }
}

void ft__cache_limit(ft_cache *c, double bytes) { c->limit = bytes > 0 ? (int64_t)(bytes / FT_CACHE_GRAIN) : 0; }

void ft__cache_tidy(ft_cache *c)
{
    int32_t kept = 0;
    for (int32_t k = 0; k < c->shelf_count; k++) {
        if (c->shelves[k].count == 0) continue;
        c->sizes[kept] = c->sizes[k];
        c->shelves[kept++] = c->shelves[k];
    }
    c->shelf_count = kept;
    if (c->filled) memset(c->filled, 0, (size_t)(c->shelf_room / WORD) * sizeof *c->filled);
    for (int32_t k = 0; k < kept; k++) c->filled[k / WORD] |= UINT64_C(1) << (k % WORD);
    for (int32_t i = 0; i < c->count; i++) c->blocks[i].hint = (ft_cache_hint){0};
}

/* Memory from the driver: a segment, or pages behind the end of the one that there is. */
static int32_t fetched(ft_cache *c, int64_t size)
{
    const int32_t last = c->tail;
    const bool open = last >= 0 && c->blocks[last].free;
    int64_t more = segment_of(size);
    if (c->expandable) more = whole(size - (open ? c->blocks[last].size : 0), LARGE_SEGMENT);
    if (c->limit > 0 && !c->expandable && c->reserved + more > c->limit) release(c);
    c->reserved += more;
    c->end += more;
    if (open) {
        set_taken(c, last);
        c->blocks[last].size += more;
        c->blocks[last].hint = (ft_cache_hint){0};
        return last;
    }
    const int32_t i = record(c);
    if (i < 0) return -1;
    c->blocks[i] = (ft_cache_block){.size = more, .at = c->end - more, .before = last, .after = -1};
    if (last >= 0) c->blocks[last].after = i;
    if (c->expandable) c->tail = i;
    return i;
}

static int64_t least_rest(const ft_cache *c) { return c->expandable ? 0 : SMALL; }

/* What is left of a block, if it is worth one of its own. */
static void split(ft_cache *c, int32_t i, int64_t size)
{
    const int64_t rest = c->blocks[i].size - size;
    if (rest <= least_rest(c)) return;
    const int32_t k = record(c);
    if (k < 0) return;
    ft_cache_block *b = &c->blocks[i];
    c->blocks[k] = (ft_cache_block){.size = rest, .at = b->at + size, .before = i, .after = b->after};
    if (b->after >= 0) c->blocks[b->after].before = k;
    if (c->tail == i) c->tail = k;
    b->after = k;
    b->size = size;
    b->hint = (ft_cache_hint){0};
    set_free(c, k);
}

static void count_taken(ft_cache *c, int64_t size)
{
    c->taken += size;
    if (c->taken > c->most) c->most = c->taken;
}

int32_t ft__cache_take(ft_cache *c, int64_t size, ft_cache_hint *hint)
{
    if (size <= 0 || c->failed) return -1;
    if (size <= SMALL) {
        ft__cache_take_small(c, size);
        return FT_CACHE_SMALL;
    }
    const int32_t k = best_fit(c, size, hint);
    const int32_t i = k >= 0 ? take_off(c, k, c->shelves[k].count - 1) : fetched(c, size);
    if (i < 0) return -1;
    split(c, i, size);
    count_taken(c, c->blocks[i].size);
    return i;
}

/* Joins the block behind `i` to it. */
static void join(ft_cache *c, int32_t i, int32_t next)
{
    c->blocks[i].size += c->blocks[next].size;
    c->blocks[i].hint = (ft_cache_hint){0};
    c->blocks[i].after = c->blocks[next].after;
    if (c->blocks[i].after >= 0) c->blocks[c->blocks[i].after].before = i;
    if (c->tail == next) c->tail = i;
    c->blocks[next].after = c->spare;
    c->spare = next;
}

void ft__cache_give(ft_cache *c, int32_t i, int64_t size)
{
    if (c->failed) return;
    if (i == FT_CACHE_SMALL) ft__cache_give_small(c, size);
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

void ft__cache_touch(ft_cache *c, int64_t size, ft_cache_hint *hint)
{
    if (size <= 0 || c->failed) return;
    const int32_t k = size > SMALL ? best_fit(c, size, hint) : -1;
    if (k < 0) {
        ft__cache_give(c, ft__cache_take(c, size, hint), size);
        return;
    }
    const int64_t rest = c->sizes[k] - size, takes = rest <= least_rest(c) ? size + rest : size;
    if (c->taken + takes > c->most) c->most = c->taken + takes;
}

void ft__cache_keep(ft_cache *c, int64_t size, int64_t copies)
{
    ft_cache_hint hint = {0};
    if (size <= 0 || c->failed) return;
    if (size <= SMALL && copies > 0) {
        ft__cache_take_small(c, size * copies);
        return;
    }
    for (; copies > 0 && !c->failed; copies--) {
        const int64_t segment = segment_of(size);
        if (c->expandable || segment - size > SMALL || best_fit(c, size, &hint) >= 0) {
            ft__cache_take(c, size, &hint);
            continue;
        }
        /* Nothing is free and nothing will be left: all others are segments of their own, which nobody joins. */
        c->reserved += copies * segment;
        c->end += copies * segment;
        count_taken(c, copies * segment);
        return;
    }
}
