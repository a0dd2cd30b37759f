/* Numbers to text and back: ours against printf and strtod, over many magnitudes, digits and locales. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void) /* xorshift64 (Marsaglia 2003) */
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static ft_text text;

static const char *written(double value, int digits)
{
    ft__text_clear(&text);
    ft__text_add_number(&text, value, digits);
    assert_false(text.failed);
    assert_int_equal(text.length, strlen(text.at));
    return text.at;
}

static void like_printf(double value, int digits)
{
    char expected[64];
    snprintf(expected, sizeof expected, "%.*g", digits, value);
    if (strcmp(expected, "-0") == 0) memcpy(expected, "0", 2);
    if (strcmp(written(value, digits), expected) != 0)
        fail_msg("%a with %d digits: \"%s\", printf says \"%s\"", value, digits, text.at, expected);
}

static void examples(void **state)
{
    (void)state;
    assert_string_equal(written(0.2125, 6), "0.2125");
    assert_string_equal(written(1.2e-5, 6), "1.2e-05");
    assert_string_equal(written(0, 6), "0");
    assert_string_equal(written(-0.0, 6), "0");
    assert_string_equal(written(4096, 6), "4096");
    assert_string_equal(written(100000, 6), "100000");
    assert_string_equal(written(1e6, 6), "1e+06");
    assert_string_equal(written(1234567, 6), "1.23457e+06");
    assert_string_equal(written(999999.5, 6), "1e+06");
    assert_string_equal(written(0.00012345678, 6), "0.000123457");
    assert_string_equal(written(-3.5, 6), "-3.5");
    assert_string_equal(written(1e300, 6), "1e+300");
    assert_string_equal(written(5e-324, 3), "4.94e-324");
    assert_string_equal(written(137438953472.0, 12), "137438953472");
    assert_string_equal(written(9007199254740992.0, 17), "9007199254740992");
}

static void non_finite_values_write_null(void **state)
{
    (void)state;
    assert_string_equal(written(NAN, 6), "null");
    assert_string_equal(written(INFINITY, 6), "null");
    assert_string_equal(written(-INFINITY, 6), "null");
}

static void digits_are_held_between_1_and_17(void **state)
{
    (void)state;
    assert_string_equal(written(123.456, 0), "1e+02");
    assert_string_equal(written(123.456, -5), "1e+02");
    assert_string_equal(written(0.1, 99), "0.10000000000000001");
}

static void any_bit_pattern_is_written_as_printf_writes_it(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = random_bits();
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) like_printf(value, 1 + (int)(random_bits() % 17));
    }
}

static void common_magnitudes_are_written_as_printf_writes_them(void **state)
{
    (void)state;
    for (int i = 0; i < 200000; i++) {
        double mantissa = 1 + (double)(random_bits() >> 11) * 0x1p-53 * 9;
        like_printf(mantissa * pow(10, (double)(random_bits() % 40) - 20), 1 + (int)(random_bits() % 17));
    }
}

/* Halves, quarters and decimals of few digits: here rounding is a tie or a hair beside one. */
static void ties_are_rounded_as_printf_rounds_them(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        double value = (double)(random_bits() % 4000000) / (double)(1 << (random_bits() % 12));
        for (int digits = 1; digits <= 9; digits += 2) {
            like_printf(value, digits);
            like_printf(nextafter(value, INFINITY), digits);
        }
        like_printf((double)(random_bits() % 100000000) / 1e5, 1 + (int)(random_bits() % 9));
    }
}

static void powers_of_ten_and_their_neighbours(void **state)
{
    (void)state;
    for (int power = -30; power <= 30; power++) {
        char decimal[16];
        snprintf(decimal, sizeof decimal, "1e%d", power);
        double value = strtod(decimal, NULL);
        for (int digits = 1; digits <= 17; digits++) {
            like_printf(value, digits);
            like_printf(nextafter(value, 0), digits);
            like_printf(nextafter(value, INFINITY), digits);
            like_printf(value * 0.9999995, digits);
        }
    }
}

static void numbers_are_read_as_strtod_reads_them(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        char decimal[64];
        uint64_t bits = random_bits();
        double value, ours = 0;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value) || i % 2) value = (double)(random_bits() % 10000000000000) / 1e7;
        snprintf(decimal, sizeof decimal, i % 3 ? "%.*g" : "%.*e", (int)(random_bits() % 20), value);
        bool read = ft__number_parse(decimal, &ours);
        double expected = strtod(decimal, NULL);
        assert_int_equal(read, isfinite(expected));
        if (read && memcmp(&ours, &expected, sizeof ours) != 0) {
            if (ours != 0 || expected != 0) fail_msg("%s read as %a, strtod says %a", decimal, ours, expected);
        }
    }
}

static void odd_but_valid_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"+5", 5},
        {"5.", 5},
        {".5", 0.5},
        {"1E3", 1000},
        {"1e+03", 1000},
        {"007", 7},
        {"0.000000000000000000000000000000000000000000000001e48", 1},
        {"1e-400", 0},
        {"0e999999999999", 0},
        {"100000000000000000000000000000e-29", 1},
        {"3.141592653589793238462643383279", 3.141592653589793},
        {"9007199254740993", 9007199254740992.0},
        {"1e22", 1e22},
        {"1e23", 1e23},
        {"123456789012345678901", 123456789012345678901.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = -1;
        if (!ft__number_parse(cases[i].text, &value)) fail_msg("\"%s\" is refused", cases[i].text);
        if (value != cases[i].value) fail_msg("\"%s\" is read as %.17g", cases[i].text, value);
    }
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",    " ",    " 1",  "1 ",    "abc",    "1a",   "0x10",  "inf",
                                        "nan", "-inf", "1e",  "1e+",   "--1",    "+-1",  "1.2.3", ".",
                                        "-",   "e5",   "1,5", "1e400", "-1e400", "1_000"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double value = 42;
        int64_t whole = 42;
        if (ft__number_parse(wrong[i], &value)) fail_msg("\"%s\" is taken for a number", wrong[i]);
        if (ft__whole_parse(wrong[i], &whole)) fail_msg("\"%s\" is taken for a whole number", wrong[i]);
        assert_true(value == 42 && whole == 42);
    }
}

static void whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool whole;
        int64_t value;
    } cases[] = {
        {"4096", true, 4096},
        {"4096.0", true, 4096},
        {"4096.000", true, 4096},
        {"1e3", true, 1000},
        {"-7", true, -7},
        {"2.5", false, 0},
        {"1e-1", false, 0},
        {"10e-1", true, 1},
        {"0.0", true, 0},
        {"0e-5", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"1e18", true, 1000000000000000000},
        {"1e19", false, 0},
        {"4611686018427387904", true, INT64_C(1) << 62},
        {"99999999999999999999", false, 0},
        {"1.5e1", true, 15},
        {"1e999999", false, 0},
        {"00012", true, 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = -99;
        if (ft__whole_parse(cases[i].text, &value) != cases[i].whole) fail_msg("\"%s\"", cases[i].text);
        assert_true(value == (cases[i].whole ? cases[i].value : -99));
    }
}

/* Passes unseen where the machine has no such locale. (cmocka's skip() is "not ok" in its TAP output.) */
static void a_locale_with_decimal_commas_changes_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "pt_BR.UTF-8", "ru_RU.UTF-8"};
    const char *set = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !set; i++) set = setlocale(LC_NUMERIC, names[i]);
    if (!set) return;
    double value = 0;
    assert_string_equal(written(0.2125, 6), "0.2125");
    assert_string_equal(written(1.5e300, 6), "1.5e+300");
    assert_true(ft__number_parse("1.5e300", &value));
    assert_true(value == 1.5e300);
    assert_true(ft__number_parse("0.25", &value));
    assert_false(ft__number_parse("0,25", &value));
    setlocale(LC_NUMERIC, "C");
}

static int free_text(void **state)
{
    (void)state;
    ft__text_free(&text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples),
        cmocka_unit_test(non_finite_values_write_null),
        cmocka_unit_test(digits_are_held_between_1_and_17),
        cmocka_unit_test(any_bit_pattern_is_written_as_printf_writes_it),
        cmocka_unit_test(common_magnitudes_are_written_as_printf_writes_them),
        cmocka_unit_test(ties_are_rounded_as_printf_rounds_them),
        cmocka_unit_test(powers_of_ten_and_their_neighbours),
        cmocka_unit_test(numbers_are_read_as_strtod_reads_them),
        cmocka_unit_test(odd_but_valid_numbers),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(a_locale_with_decimal_commas_changes_nothing),
    };
    return cmocka_run_group_tests_name("base_number", tests, NULL, free_text);
}
