/* base/pace.h: how many items are answered before their answers are written. */
#include "base/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void few_where_each_is_long(void **state)
{
    (void)state;
    ft_pace slow = ft__pace_next(8, 80, 8); /* ten seconds each */
    assert_int_equal(slow.round, 8);        /* as many as have room beside each other, and each by itself */
    assert_int_equal(slow.run, 1);
}

static void many_where_they_are_quick(void **state)
{
    (void)state;
    ft_pace quick = ft__pace_next(1000, 0.005, 8); /* 5 us each */
    assert_in_range(quick.round, 49999, 50001);
    assert_int_equal(quick.run, FT_PACE_RUN);
    ft_pace middle = ft__pace_next(1000, 0.02, 8); /* 20 us: five of them are worth a thread */
    assert_in_range(middle.run, 4, 5);
}

static void no_time_at_all(void **state)
{
    (void)state;
    ft_pace none = ft__pace_next(1, 0, 8), nothing = ft__pace_next(0, 1, 8);
    assert_int_equal(none.round, FT_PACE_MOST);
    assert_int_equal(nothing.round, FT_PACE_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_where_each_is_long),
                                       cmocka_unit_test(many_where_they_are_quick), cmocka_unit_test(no_time_at_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
