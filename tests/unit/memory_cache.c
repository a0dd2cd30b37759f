/* The caching allocator, block by block: what it was read to do in PyTorch's code, on the smallest cases that show it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory/cache.h"

#define MIB (1024.0 * 1024.0)

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
    const int32_t large = ft__cache_take(&c, 100 * MIB), middle = ft__cache_take(&c, 60 * MIB);
    ft__cache_give(&c, large, 100 * MIB);
    ft__cache_give(&c, middle, 60 * MIB);
    assert_int_equal(ft__cache_take(&c, 50 * MIB), middle);
    assert_int_equal(ft__cache_take(&c, 50 * MIB), large); /* 10 MiB of the middle one are left, not enough */
    assert_true(ft__cache_reserved(&c) == 160 * MIB);
    ft__cache_take(&c, 100 * MIB); /* the large one is cut: there is none left */
    assert_true(ft__cache_reserved(&c) == 260 * MIB);
    ft__arena_free(arena);
}

static void what_is_given_back_joins_its_neighbours(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_cache c = cache_of(arena, false);
    int32_t of[3];
    ft__cache_give(&c, ft__cache_take(&c, 90 * MIB), 90 * MIB);
    for (int i = 0; i < 3; i++) of[i] = ft__cache_take(&c, 30 * MIB);
    ft__cache_give(&c, of[0], 30 * MIB);
    ft__cache_give(&c, of[2], 30 * MIB);
    ft__cache_touch(&c, 60 * MIB); /* two of three are free, not beside each other */
    assert_true(ft__cache_reserved(&c) == 150 * MIB);
    ft__cache_give(&c, of[1], 30 * MIB);
    ft__cache_take(&c, 90 * MIB);
    assert_true(ft__cache_reserved(&c) == 150 * MIB && ft__cache_peak(&c) == 90 * MIB);
    ft__arena_free(arena);
}

static void segments_and_remainders_follow_pytorch(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_cache c = cache_of(arena, false);
    ft__cache_take(&c, 6 * MIB); /* below 10 MiB: of a segment of 20 */
    assert_true(ft__cache_reserved(&c) == 20 * MIB);
    ft__cache_take(&c, 13.5 * MIB); /* half a MiB would be left: the tensor keeps it */
    assert_true(ft__cache_reserved(&c) == 20 * MIB && ft__cache_peak(&c) == 20 * MIB);
    ft__cache_take(&c, 11.5 * MIB); /* 12 by the two */
    assert_true(ft__cache_reserved(&c) == 32 * MIB);
    for (int i = 0; i < 3; i++) assert_int_equal(ft__cache_take(&c, 0.75 * MIB), FT_CACHE_SMALL);
    assert_true(ft__cache_reserved(&c) == 36 * MIB); /* 2.25 MiB of small ones: two segments */
    assert_int_equal(ft__cache_take(&c, 0), -1);
    ft__arena_free(arena);
}

static void an_expandable_segment_grows_at_its_end(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_cache c = cache_of(arena, true);
    const int32_t first = ft__cache_take(&c, 30 * MIB); /* two pages of 20 MiB */
    assert_true(ft__cache_reserved(&c) == 40 * MIB);
    const int32_t second = ft__cache_take(&c, 50 * MIB); /* 10 are there already */
    assert_true(ft__cache_reserved(&c) == 80 * MIB);
    ft__cache_give(&c, first, 30 * MIB);
    ft__cache_give(&c, second, 50 * MIB);
    ft__cache_take(&c, 80 * MIB); /* segments of their own could not be joined */
    assert_true(ft__cache_reserved(&c) == 80 * MIB && ft__cache_peak(&c) == 80 * MIB);
    ft__cache_take(&c, 0.5 * MIB + 1 * MIB);
    assert_true(ft__cache_reserved(&c) == 100 * MIB);
    ft__arena_free(arena);
}

static void memory_that_runs_out_is_said(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(1024);
    ft_cache c = cache_of(arena, false);
    assert_int_equal(ft__cache_take(&c, 100 * MIB), -1);
    assert_true(c.failed);
    ft__cache_touch(&c, 100 * MIB);
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_take_the_smallest_block_that_holds_them),
        cmocka_unit_test(what_is_given_back_joins_its_neighbours),
        cmocka_unit_test(segments_and_remainders_follow_pytorch),
        cmocka_unit_test(an_expandable_segment_grows_at_its_end),
        cmocka_unit_test(memory_that_runs_out_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
