/* Who is furthest behind, of all or from one on, and the clock of the next: the same as by looking at every engine. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serving/clocks.h"

static uint32_t drawn(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void agree(int64_t count)
{
    ft_clocks c;
    double ms[9], second;
    uint32_t seed = (uint32_t)count;
    assert_true(ft__clocks_open(&c, count));
    assert_int_equal(ft__clocks_first(&c, &second), -1);
    for (int64_t i = 0; i < count; i++) ms[i] = INFINITY;
    for (int step = 0; step < 2000; step++) {
        const int64_t at = drawn(&seed) % count;
        ms[at] = drawn(&seed) % 4 ? drawn(&seed) % 16 : INFINITY; /* few values: equal ones are common */
        ft__clocks_set(&c, at, ms[at]);
        int64_t first = -1;
        double next = INFINITY;
        for (int64_t i = 0; i < count; i++)
            if (isfinite(ms[i]) && (first < 0 || ms[i] < ms[first])) first = i;
        for (int64_t i = 0; i < count; i++)
            if (i != first) next = fmin(next, ms[i]);
        assert_int_equal(ft__clocks_first(&c, &second), first);
        if (first >= 0) assert_true(second <= next && second >= next);
        const int64_t from = drawn(&seed) % count;
        int64_t least = from;
        for (int64_t i = from; i < count; i++)
            if (ms[i] < ms[least]) least = i;
        assert_int_equal(ft__clocks_from(&c, from), least);
    }
    ft__clocks_close(&c);
}

static void the_first_is_the_one_furthest_behind(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 9; count++) agree(count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_is_the_one_furthest_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
