/* Number formats: names, sizes, and the other names people use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "foretell.h"

static void every_name_is_read_back(void **state)
{
    (void)state;
    for (int i = 0; i < FT_DTYPE_COUNT; i++) {
        ft_dtype found = FT_DTYPE_COUNT;
        assert_true(ft_dtype_parse(ft_dtype_name((ft_dtype)i), &found));
        assert_int_equal(found, i);
        assert_true(ft_dtype_bytes((ft_dtype)i) > 0);
    }
    assert_true(ft_dtype_bytes(FT_FP4) == 0.5);
    assert_true(ft_dtype_bytes(FT_TF32) == 4);
}

static void unknown_names_and_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "bf", "bf16 ", "BF16x", "int", "fp"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ft_dtype found = FT_INT8;
        assert_false(ft_dtype_parse(wrong[i], &found));
        assert_int_equal(found, FT_INT8);
    }
    assert_string_equal(ft_dtype_name(FT_DTYPE_COUNT), "?");
    assert_true(ft_dtype_bytes(FT_DTYPE_COUNT) == 0);
}

static void frameworks_names_are_taken(void **state)
{
    (void)state;
    ft_dtype found = FT_DTYPE_COUNT;
    assert_true(ft_dtype_parse("bfloat16", &found));
    assert_int_equal(found, FT_BF16);
    assert_true(ft_dtype_parse("float32", &found));
    assert_int_equal(found, FT_FP32);
    assert_true(ft_dtype_parse("half", &found));
    assert_int_equal(found, FT_FP16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_read_back),
        cmocka_unit_test(unknown_names_and_numbers_are_refused),
        cmocka_unit_test(frameworks_names_are_taken),
    };
    return cmocka_run_group_tests_name("base_dtype", tests, NULL, NULL);
}
