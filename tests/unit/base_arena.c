/* The arena: alignment, zeroing, the cap, and what a reset keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "failing_alloc.h"

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(0);
    assert_non_null(a);
    unsigned char *last = NULL;
    for (size_t size = 0; size < 3000; size += 7) {
        unsigned char *p = ft__arena_alloc(a, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_ptr_not_equal(p, last);
        for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
        memset(p, 0xAB, size);
        last = p;
    }
    ft__arena_free(a);
}

/* Bare pieces have their own room, count against the cap and are checked for overflow. */
static void bare_pieces_are_pieces(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(1000);
    unsigned char *bare = ft__arena_bare(a, 10, 10), *next = ft__arena_alloc(a, 100);
    assert_non_null(bare);
    assert_non_null(next);
    memset(bare, 0xAB, 100);
    for (int i = 0; i < 100; i++) assert_int_equal(next[i], 0);
    assert_int_equal((uintptr_t)bare % 16, 0);
    assert_null(ft__arena_bare(a, SIZE_MAX, 2));
    assert_null(ft__arena_bare(a, 1000, 1));
    assert_true(ft__arena_full(a));
    ft__arena_free(a);
}

static void a_reset_gives_zeroed_memory_again(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++) {
            unsigned char *p = ft__arena_alloc(a, 1000);
            assert_non_null(p);
            for (int j = 0; j < 1000; j++) assert_int_equal(p[j], 0);
            memset(p, 0xFF, 1000);
        }
        ft__arena_reset(a);
    }
    ft__arena_free(a);
}

static void a_reset_arena_answers_small_requests_without_malloc(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(0);
    ft__arena_alloc(a, 100000);
    ft__arena_reset(a);
    failing_alloc_at(1, true);
    for (int request = 0; request < 100; request++) {
        for (int i = 0; i < 8; i++) assert_non_null(ft__arena_alloc(a, 500));
        ft__arena_reset(a);
    }
    assert_int_equal(failing_alloc_count(), 0);
    failing_alloc_at(0, false);
    ft__arena_free(a);
}

/* Blocks grow until one holds a request like the last one. */
static void a_request_like_the_last_needs_no_malloc(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(0);
    for (int request = 0; request < 12; request++) {
        if (request == 4) failing_alloc_at(1, true);
        for (int i = 0; i < 3000; i++) assert_non_null(ft__arena_alloc(a, 1000));
        ft__arena_reset(a);
    }
    assert_int_equal(failing_alloc_count(), 0);
    failing_alloc_at(0, false);
    ft__arena_free(a);
}

static void one_absurd_piece_is_given_back(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(0);
    assert_non_null(ft__arena_alloc(a, (size_t)20 << 20));
    ft__arena_reset(a);
    failing_alloc_at(1, true);
    assert_null(ft__arena_alloc(a, (size_t)20 << 20));
    failing_alloc_at(0, false);
    assert_non_null(ft__arena_alloc(a, 4096));
    ft__arena_free(a);
}

static void the_cap_holds_and_a_reset_lifts_it(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(64 * 1024);
    size_t given = 0;
    while (ft__arena_alloc(a, 1024)) given += 1024;
    assert_int_equal(given, 64 * 1024);
    assert_null(ft__arena_alloc(a, 1));
    ft__arena_reset(a);
    assert_non_null(ft__arena_alloc(a, 64 * 1024));
    assert_null(ft__arena_alloc(a, 0));
    ft__arena_free(a);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(0);
    assert_null(ft__arena_alloc(a, SIZE_MAX));
    assert_null(ft__arena_alloc(a, SIZE_MAX - 15));
    assert_null(ft__arena_array(a, SIZE_MAX / 8 + 2, 8));
    assert_null(ft__arena_array(a, 8, SIZE_MAX / 8 + 2));
    assert_null(ft__arena_copy(a, "", SIZE_MAX));
    assert_non_null(ft__arena_array(a, 0, 8));
    assert_non_null(ft__arena_array(a, 8, 0));
    assert_non_null(ft__arena_array(a, 3, 8));
    ft__arena_free(a);
}

static void a_copy_ends_with_nul_and_may_hold_one(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(0);
    assert_string_equal(ft__arena_copy(a, "h100_sxm", 4), "h100");
    assert_string_equal(ft__arena_copy(a, NULL, 0), "");
    assert_memory_equal(ft__arena_copy(a, "a\0b", 3), "a\0b", 4);
    ft__arena_free(a);
}

static void nothing_is_freed_without_complaint(void **state)
{
    (void)state;
    ft__arena_free(NULL);
    ft__arena_reset(NULL);
}

static void a_full_arena_says_so(void **state)
{
    (void)state;
    ft_arena *a = ft__arena_new(1024);
    assert_non_null(ft__arena_alloc(a, 512));
    assert_false(ft__arena_full(a));
    failing_alloc_at(1, true);
    assert_null(ft__arena_alloc(a, 1 << 20)); /* over the cap, whatever the machine has */
    failing_alloc_at(0, false);
    assert_true(ft__arena_full(a));
    ft__arena_reset(a);
    assert_false(ft__arena_full(a));
    ft__arena_free(a);
    a = ft__arena_new(0);
    failing_alloc_at(1, true);
    assert_null(ft__arena_alloc(a, 1 << 20)); /* the machine has no more: another thing */
    failing_alloc_at(0, false);
    assert_false(ft__arena_full(a));
    ft__arena_free(a);
}

static ft_status use_arena(void *context)
{
    (void)context;
    ft_arena *a = ft__arena_new(0);
    if (!a) return FT_E_MEMORY;
    ft_status status = FT_OK;
    for (int i = 0; i < 40 && status == FT_OK; i++)
        if (!ft__arena_alloc(a, 5000)) status = FT_E_MEMORY;
    ft__arena_free(a);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(failing_alloc_sweep(use_arena, NULL) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_arena_says_so),
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(bare_pieces_are_pieces),
        cmocka_unit_test(a_reset_gives_zeroed_memory_again),
        cmocka_unit_test(a_reset_arena_answers_small_requests_without_malloc),
        cmocka_unit_test(a_request_like_the_last_needs_no_malloc),
        cmocka_unit_test(one_absurd_piece_is_given_back),
        cmocka_unit_test(the_cap_holds_and_a_reset_lifts_it),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(a_copy_ends_with_nul_and_may_hold_one),
        cmocka_unit_test(nothing_is_freed_without_complaint),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("base_arena", tests, NULL, NULL);
}
