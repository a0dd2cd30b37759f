/* The parallel loop: every index once, whatever the thread count, and without threads too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/parallel.h"
#include "failing_alloc.h"

enum { MOST = 5000 };
static atomic_int runs[MOST];

static void count_run(void *context, size_t i) { atomic_fetch_add(&runs[i], *(int *)context); }

static void every_index_runs_exactly_once(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 3, 7, 100, MOST};
    static const int threads[] = {-1, 0, 1, 2, 3, 16, 10000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            int one = 1;
            for (size_t i = 0; i < MOST; i++) atomic_store(&runs[i], 0);
            ft__parallel(threads[t], counts[c], count_run, &one);
            for (size_t i = 0; i < MOST; i++) assert_int_equal(atomic_load(&runs[i]), i < counts[c]);
        }
}

typedef struct order {
    size_t seen[64];
    size_t count;
} order;

static void note_order(void *context, size_t i)
{
    order *o = context;
    o->seen[o->count++] = i;
}

static void one_thread_runs_in_order(void **state)
{
    (void)state;
    order o = {.count = 0};
    ft__parallel(1, 64, note_order, &o);
    assert_int_equal(o.count, 64);
    for (size_t i = 0; i < 64; i++) assert_int_equal(o.seen[i], i);
}

static void without_threads_the_caller_does_the_work(void **state)
{
    (void)state;
    order o = {.count = 0};
    failing_threads_after(0);
    ft__parallel(8, 64, note_order, &o);
    failing_threads_after(-1);
    assert_int_equal(o.count, 64);
    for (size_t i = 0; i < 64; i++) assert_int_equal(o.seen[i], i);
}

static void with_fewer_threads_than_asked_for_nothing_is_lost(void **state)
{
    (void)state;
    int one = 1;
    for (size_t i = 0; i < MOST; i++) atomic_store(&runs[i], 0);
    failing_threads_after(2);
    ft__parallel(8, MOST, count_run, &one);
    failing_threads_after(-1);
    for (size_t i = 0; i < MOST; i++) assert_int_equal(atomic_load(&runs[i]), 1);
}

static void there_is_at_least_one_core(void **state)
{
    (void)state;
    assert_in_range(ft__core_count(), 1, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_exactly_once),
        cmocka_unit_test(one_thread_runs_in_order),
        cmocka_unit_test(without_threads_the_caller_does_the_work),
        cmocka_unit_test(with_fewer_threads_than_asked_for_nothing_is_lost),
        cmocka_unit_test(there_is_at_least_one_core),
    };
    return cmocka_run_group_tests_name("base_parallel", tests, NULL, NULL);
}
