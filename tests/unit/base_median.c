/* The middle of values: one of them, or half-way between two. */
#include "base/median.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "fit/cell.h"

static void test_median(void **state)
{
    (void)state;
    double odd[] = {9, 1, 2}, even[] = {4, 1, 2, 10};
    qsort(odd, 3, sizeof *odd, ft__ascending);
    qsort(even, 4, sizeof *even, ft__ascending);
    assert_true(ft__median(odd, 3) == 2);
    assert_true(ft__median(even, 4) == 3);
    assert_true(ft__median(even, 2) == 1.5);
    assert_true(ft__median(even, 1) == 1);
    assert_true(ft__median(NULL, 0) == 0);
}

/* Errors of 0 and 100 %: the median is half-way, not the larger. */
static void test_reported_median(void **state)
{
    (void)state;
    ft_errors e = {0};
    ft_accuracy a = {0};
    assert_true(ft__errors_add(&e, 0, 0.1, 0.1) && ft__errors_add(&e, -0.6931471805599453, 0.1, 0.1));
    assert_true(ft__errors_summary(&e, &a));
    assert_float_equal(a.median, 0.5, 1e-9);
    assert_float_equal(a.mean, 0.5, 1e-9);
    ft__errors_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_median), cmocka_unit_test(test_reported_median)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
