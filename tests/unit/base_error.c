/* Errors: what stands in them, how they are cut, how they quote each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void fail_returns_its_code_and_fills_the_message(void **state)
{
    (void)state;
    ft_error err;
    memset(&err, 'x', sizeof err);
    assert_int_equal(ft__fail(&err, FT_E_RANGE, "m is %d", -3), FT_E_RANGE);
    assert_int_equal(err.code, FT_E_RANGE);
    assert_string_equal(err.message, "m is -3");
    assert_string_equal(err.where, "");
    assert_int_equal(err.line, 0);
    assert_int_equal(err.column, 0);
}

static void fail_at_keeps_the_place(void **state)
{
    (void)state;
    ft_error err;
    assert_int_equal(ft__fail_at(&err, FT_E_SYNTAX, "a.csv", 7, 12, "a %s", "quote"), FT_E_SYNTAX);
    assert_string_equal(err.message, "a quote");
    assert_string_equal(err.where, "a.csv");
    assert_int_equal(err.line, 7);
    assert_int_equal(err.column, 12);
}

static void a_place_may_be_unknown(void **state)
{
    (void)state;
    ft_error err;
    ft__fail_at(&err, FT_E_SYNTAX, NULL, -1, -5, "bad");
    assert_string_equal(err.where, "");
    assert_int_equal(err.line, 0);
    assert_int_equal(err.column, 0);
}

static void nobody_needs_to_listen(void **state)
{
    (void)state;
    assert_int_equal(ft__fail(NULL, FT_E_FILE, "lost %d", 1), FT_E_FILE);
    assert_int_equal(ft__fail_at(NULL, FT_E_KEY, "x", 1, 1, "lost"), FT_E_KEY);
}

static void an_error_may_quote_the_one_it_replaces(void **state)
{
    (void)state;
    ft_error err;
    ft__fail_at(&err, FT_E_FILE, "a.json", 3, 4, "cannot open");
    ft__fail_at(&err, err.code, err.where, err.line, err.column, "loading the predictor: %s", err.message);
    assert_string_equal(err.message, "loading the predictor: cannot open");
    assert_string_equal(err.where, "a.json");
    assert_int_equal(err.line, 3);
}

static void a_long_message_is_cut_between_characters(void **state)
{
    (void)state;
    ft_error err;
    for (size_t ascii = 600; ascii < 645; ascii++) {
        char text[1024] = "";
        memset(text, 'a', ascii);
        text[ascii] = '\0';
        for (int i = 0; i < 20; i++) strcat(text, "\xE2\x82\xAC"); /* the euro sign, three bytes */
        ft__fail_at(&err, FT_E_NAME, text, 0, 0, "%s", text);
        size_t length = strlen(err.message);
        assert_in_range(length, sizeof err.message - 4, sizeof err.message - 1);
        assert_memory_equal(err.message, text, length);
        if (ascii < length) assert_int_equal((length - ascii) % 3, 0);
        assert_int_equal(strlen(err.where), sizeof err.where - 1);
    }
}

/* A quoted word is cut by bytes ("%.60s"): what is left of a character goes with it. */
static void half_a_character_is_left_out(void **state)
{
    (void)state;
    ft_error err;
    ft__fail(&err, FT_E_NAME, "unknown \"%.4s\"; %s", "aaa\xCE\xA9", "\xCE\xA9 stays");
    assert_string_equal(err.message, "unknown \"aaa\"; \xCE\xA9 stays");
    ft__fail(&err, FT_E_NAME, "%s", "\xA9\xFF\xCE");
    assert_string_equal(err.message, "");
}

static void every_status_has_a_name_and_an_exit(void **state)
{
    (void)state;
    for (int i = 0; i < FT_STATUS_COUNT; i++) {
        assert_true(strlen(ft_status_name((ft_status)i)) > 0);
        assert_in_range(ft_status_exit((ft_status)i), 0, 4);
        for (int j = 0; j < i; j++) assert_string_not_equal(ft_status_name((ft_status)i), ft_status_name((ft_status)j));
    }
    assert_string_equal(ft_status_name(FT_OK), "ok");
    assert_int_equal(ft_status_exit(FT_OK), 0);
    assert_int_equal(ft_status_exit(FT_E_USAGE), 2);
    assert_int_equal(ft_status_exit(FT_E_NAME), 3);
    assert_int_equal(ft_status_exit(FT_E_MEMORY), 4);
    assert_string_equal(ft_status_name(FT_STATUS_COUNT), "bug");
    assert_int_equal(ft_status_exit(FT_STATUS_COUNT), 4);
}

static ft_status tries(int n, int *reached)
{
    *reached = 1;
    FT_TRY(n == 1 ? FT_E_KEY : FT_OK);
    *reached = 2;
    return FT_OK;
}

static void try_returns_the_first_failure(void **state)
{
    (void)state;
    int reached;
    assert_int_equal(tries(1, &reached), FT_E_KEY);
    assert_int_equal(reached, 1);
    assert_int_equal(tries(0, &reached), FT_OK);
    assert_int_equal(reached, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_returns_its_code_and_fills_the_message),
        cmocka_unit_test(fail_at_keeps_the_place),
        cmocka_unit_test(a_place_may_be_unknown),
        cmocka_unit_test(nobody_needs_to_listen),
        cmocka_unit_test(an_error_may_quote_the_one_it_replaces),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(half_a_character_is_left_out),
        cmocka_unit_test(every_status_has_a_name_and_an_exit),
        cmocka_unit_test(try_returns_the_first_failure),
    };
    return cmocka_run_group_tests_name("base_error", tests, NULL, NULL);
}
