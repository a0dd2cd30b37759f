/* The caching allocator, block by block: what it was read to do in PyTorch's code, on the smallest cases that show it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "memory/cache.h"

#define MIB (1024.0 * 1024.0)

/* Every size its own hint, as a tensor has it. */
static int32_t take(ft_cache *c, double bytes)
{
    ft_cache_hint hint = {0};
    return ft__cache_take(c, ft__cache_grains(bytes), &hint);
}

static void touch(ft_cache *c, double bytes)
{
    ft_cache_hint hint = {0};
    ft__cache_touch(c, ft__cache_grains(bytes), &hint);
}

static void give(ft_cache *c, int32_t block, double bytes) { ft__cache_give(c, block, ft__cache_grains(bytes)); }

static ft_cache cache_of(ft_arena *arena, bool expandable)
{
    ft_cache c;
    ft__cache_init(&c, arena, expandable);
    return c;
}

static void tensors_take_the_smallest_block_that_holds_them(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_cache c = cache_of(arena, false);
    const int32_t large = take(&c, 100 * MIB), middle = take(&c, 60 * MIB);
    give(&c, large, 100 * MIB);
    give(&c, middle, 60 * MIB);
    assert_int_equal(take(&c, 50 * MIB), middle);
    assert_int_equal(take(&c, 50 * MIB), large); /* 10 MiB of the middle one are left, not enough */
    assert_true(ft__cache_reserved(&c) == 160 * MIB);
    take(&c, 100 * MIB); /* the large one is cut: there is none left */
    assert_true(ft__cache_reserved(&c) == 260 * MIB);
    ft__arena_free(arena);
}

static void what_is_given_back_joins_its_neighbours(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_cache c = cache_of(arena, false);
    int32_t of[3];
    give(&c, take(&c, 90 * MIB), 90 * MIB);
    for (int i = 0; i < 3; i++) of[i] = take(&c, 30 * MIB);
    give(&c, of[0], 30 * MIB);
    give(&c, of[2], 30 * MIB);
    touch(&c, 60 * MIB); /* two of three are free, not beside each other */
    assert_true(ft__cache_reserved(&c) == 150 * MIB);
    give(&c, of[1], 30 * MIB);
    take(&c, 90 * MIB);
    assert_true(ft__cache_reserved(&c) == 150 * MIB && ft__cache_peak(&c) == 90 * MIB);
    ft__arena_free(arena);
}

static void segments_and_remainders_follow_pytorch(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_cache c = cache_of(arena, false);
    take(&c, 6 * MIB); /* below 10 MiB: of a segment of 20 */
    assert_true(ft__cache_reserved(&c) == 20 * MIB);
    take(&c, 13.5 * MIB); /* half a MiB would be left: the tensor keeps it */
    assert_true(ft__cache_reserved(&c) == 20 * MIB && ft__cache_peak(&c) == 20 * MIB);
    take(&c, 11.5 * MIB); /* 12 by the two */
    assert_true(ft__cache_reserved(&c) == 32 * MIB);
    for (int i = 0; i < 3; i++) assert_int_equal(take(&c, 0.75 * MIB), FT_CACHE_SMALL);
    assert_true(ft__cache_reserved(&c) == 36 * MIB); /* 2.25 MiB of small ones: two segments */
    assert_int_equal(take(&c, 0), -1);
    ft__arena_free(arena);
}

static void an_expandable_segment_grows_at_its_end(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_cache c = cache_of(arena, true);
    const int32_t first = take(&c, 30 * MIB); /* two pages of 20 MiB */
    assert_true(ft__cache_reserved(&c) == 40 * MIB);
    const int32_t second = take(&c, 50 * MIB); /* 10 are there already */
    assert_true(ft__cache_reserved(&c) == 80 * MIB);
    give(&c, first, 30 * MIB);
    give(&c, second, 50 * MIB);
    take(&c, 80 * MIB); /* segments of their own could not be joined */
    assert_true(ft__cache_reserved(&c) == 80 * MIB && ft__cache_peak(&c) == 80 * MIB);
    take(&c, 0.5 * MIB + 1 * MIB);
    assert_true(ft__cache_reserved(&c) == 100 * MIB);
    ft__arena_free(arena);
}

static void memory_that_runs_out_is_said(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(1024);
    ft_cache c = cache_of(arena, false);
    assert_int_equal(take(&c, 100 * MIB), -1);
    assert_true(c.failed);
    touch(&c, 100 * MIB);
    ft__arena_free(arena);
}

/* -- against the rules, looked up one after the other ------------------------------------------ */

enum { MOST_BLOCKS = 4096, SMALL = 2048, SEGMENT = 40960 }; /* grains of 1 and 20 MiB */

typedef struct plain_block {
    int64_t size, at;
    int segment;
    bool free;
} plain_block;

/* All blocks in the order of their addresses; nothing is remembered, everything is looked for. */
typedef struct plain_cache {
    plain_block block[MOST_BLOCKS];
    int count, segments;
    int64_t reserved, taken, most;
    bool expandable;
} plain_cache;

static void plain_insert(plain_cache *p, int at, plain_block b)
{
    assert_true(p->count < MOST_BLOCKS);
    memmove(p->block + at + 1, p->block + at, (size_t)(p->count - at) * sizeof b);
    p->block[at] = b;
    p->count++;
}

static int64_t rounded(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

static int plain_fetch(plain_cache *p, int64_t size)
{
    plain_block *last = p->count ? &p->block[p->count - 1] : NULL;
    const bool open = p->expandable && last && last->free;
    const int64_t least = size < SEGMENT / 2 ? SEGMENT : rounded(size, SEGMENT / 10),
                  more = p->expandable ? rounded(size - (open ? last->size : 0), SEGMENT) : least;
    p->reserved += more;
    if (open) {
        last->size += more;
        return p->count - 1;
    }
    const int64_t end = last ? last->at + last->size : 0;
    plain_insert(p, p->count, (plain_block){more, end, p->expandable ? 0 : p->segments++, true});
    return p->count - 1;
}

/* The address of what was taken. */
static int64_t plain_take(plain_cache *p, int64_t size)
{
    int best = -1;
    for (int i = 0; i < p->count; i++)
        if (p->block[i].free && p->block[i].size >= size && (best < 0 || p->block[i].size < p->block[best].size))
            best = i;
    if (p->expandable && best == p->count - 1) /* the end can grow: any other goes first */
        for (int i = 0, end = best; i < end; i++)
            if (p->block[i].free && p->block[i].size >= size && (best == end || p->block[i].size < p->block[best].size))
                best = i;
    if (best < 0) best = plain_fetch(p, size);
    const plain_block b = p->block[best];
    p->block[best].free = false;
    if (b.size - size > (p->expandable ? 0 : SMALL)) {
        p->block[best].size = size;
        plain_insert(p, best + 1, (plain_block){b.size - size, b.at + size, b.segment, true});
    }
    p->taken += p->block[best].size;
    if (p->taken > p->most) p->most = p->taken;
    return b.at;
}

static void plain_give(plain_cache *p, int64_t at)
{
    int i = 0;
    while (p->block[i].at != at) i++;
    p->block[i].free = true;
    p->taken -= p->block[i].size;
    for (int k = i; k >= i - 1 && k >= 0; k--) {
        if (k + 1 >= p->count || !p->block[k].free || !p->block[k + 1].free) continue;
        if (p->block[k].segment != p->block[k + 1].segment) continue;
        p->block[k].size += p->block[k + 1].size;
        p->count--;
        memmove(p->block + k + 1, p->block + k + 2, (size_t)(p->count - k - 1) * sizeof *p->block);
    }
}

/* A few sizes that come again, as a step's do, and some that do not. */
static int64_t drawn_size(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint64_t r = *state >> 33;
    return r % 4 ? SMALL + 1 + (int64_t)(r / 4 % 7) * 9001 : SMALL + 1 + (int64_t)(r / 4 % 90000);
}

static void shelves_and_hints_change_nothing(void **state)
{
    (void)state;
    enum { HELD = 300, ROUNDS = 6000 };
    static plain_cache plain;
    for (int expandable = 0; expandable < 2; expandable++) {
        ft_arena *arena = ft__arena_new(0);
        ft_cache c = cache_of(arena, expandable);
        ft_cache_hint hint[HELD] = {{0}};
        int32_t block[HELD];
        int64_t at[HELD], size[HELD];
        uint64_t seed = 7;
        plain = (plain_cache){.expandable = expandable};
        for (int i = 0; i < HELD; i++) block[i] = -1, size[i] = drawn_size(&seed);
        for (int round = 0; round < ROUNDS; round++) {
            const int i = (int)((uint64_t)drawn_size(&seed) * 31 % HELD);
            if (block[i] >= 0) {
                ft__cache_give(&c, block[i], size[i]);
                plain_give(&plain, at[i]);
                block[i] = -1;
            } else if (round % 5 == 0) {
                ft__cache_touch(&c, size[i], &hint[i]);
                plain_give(&plain, plain_take(&plain, size[i]));
            } else {
                block[i] = ft__cache_take(&c, size[i], &hint[i]);
                at[i] = plain_take(&plain, size[i]);
                assert_true(c.blocks[block[i]].at == at[i]);
            }
            assert_true(c.reserved == plain.reserved && c.taken == plain.taken && c.most == plain.most);
        }
        assert_true(plain.count > 100 && c.shelf_count > 64);
        ft__arena_free(arena);
    }
}

static void what_is_kept_is_taken_one_by_one(void **state)
{
    (void)state;
    for (int expandable = 0; expandable < 2; expandable++)
        for (int64_t size = SMALL - 1000; size < 4 * SEGMENT; size += 7777) {
            ft_arena *arena = ft__arena_new(0);
            ft_cache one = cache_of(arena, expandable), all = cache_of(arena, expandable);
            ft_cache_hint hint = {0};
            give(&one, take(&one, 50 * MIB), 50 * MIB);
            give(&all, take(&all, 50 * MIB), 50 * MIB);
            for (int i = 0; i < 33; i++) ft__cache_take(&one, size, &hint);
            ft__cache_keep(&all, size, 33);
            assert_true(ft__cache_reserved(&one) == ft__cache_reserved(&all) && one.most == all.most);
            touch(&one, 9 * MIB);
            touch(&all, 9 * MIB);
            assert_true(ft__cache_reserved(&one) == ft__cache_reserved(&all) && one.most == all.most);
            ft__arena_free(arena);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_take_the_smallest_block_that_holds_them),
        cmocka_unit_test(what_is_given_back_joins_its_neighbours),
        cmocka_unit_test(segments_and_remainders_follow_pytorch),
        cmocka_unit_test(an_expandable_segment_grows_at_its_end),
        cmocka_unit_test(shelves_and_hints_change_nothing),
        cmocka_unit_test(what_is_kept_is_taken_one_by_one),
        cmocka_unit_test(memory_that_runs_out_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
