/* Getters of JSON: numbers, words and keys, and what exactly is said of wrong ones. */
#include <math.h>

#include "json_said.h"

static void number_messages(void **state)
{
    (void)state;
    json_t *o =
        parsed("{\"a\":2.5,\"b\":-3,\"s\":\"x\",\"n\":null,\"l\":[1],\"o\":{},\"t\":true,\"f\":false,\"z\":0.1}");
    double x = 7;
    ft_error err;
    assert_int_equal(ft__json_number(o, "a", FT_REQUIRED, 0, 10, &x, "", &err), FT_OK);
    assert_true(x == 2.5);
    assert_int_equal(ft__json_number(o, "b", FT_REQUIRED, -3, 10, &x, NULL, &err), FT_OK);
    assert_true(x == -3);
    assert_int_equal(ft__json_number(o, "missing", FT_OPTIONAL, 0, 10, &x, "", &err), FT_OK);
    assert_true(x == -3);
    assert_int_equal(ft__json_number(o, "missing", FT_REQUIRED, 0, 10, &x, "parallel", &err), FT_E_MISSING);
    assert_string_equal(err.message, "\"missing\" is missing");
    assert_string_equal(err.where, "parallel.missing");

    static const struct {
        const char *key;
        double low, high;
        ft_status status;
        const char *message;
    } cases[] = {
        {"b", 0, 10, FT_E_RANGE, "\"b\" must be a number from 0 to 10, got -3"},
        {"a", 0, 1e-5, FT_E_RANGE, "\"a\" must be a number from 0 to 1e-05, got 2.5"},
        {"b", 0, INFINITY, FT_E_RANGE, "\"b\" must be a number of at least 0, got -3"},
        {"a", -INFINITY, 1.5, FT_E_RANGE, "\"a\" must be a number of at most 1.5, got 2.5"},
        {"s", 0, 10, FT_E_TYPE, "\"s\" must be a number, got the string \"x\""},
        {"n", 0, 10, FT_E_TYPE, "\"n\" must be a number, got null"},
        {"l", 0, 10, FT_E_TYPE, "\"l\" must be a number, got an array"},
        {"o", 0, 10, FT_E_TYPE, "\"o\" must be a number, got an object"},
        {"t", 0, 10, FT_E_TYPE, "\"t\" must be a number, got true"},
        {"f", 0, 10, FT_E_TYPE, "\"f\" must be a number, got false"},
        {"z", 1, 10, FT_E_RANGE, "\"z\" must be a number from 1 to 10, got 0.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        x = 7;
        assert_int_equal(ft__json_number(o, cases[i].key, FT_OPTIONAL, cases[i].low, cases[i].high, &x, "", &err),
                         cases[i].status);
        assert_string_equal(err.message, cases[i].message);
        assert_string_equal(err.where, cases[i].key);
        assert_true(x == 7);
    }
    json_decref(o);
}

static void whole_numbers_and_their_messages(void **state)
{
    (void)state;
    const int64_t most = INT64_C(1) << 53;
    json_t *o = parsed("{\"a\":3,\"b\":2.0,\"c\":1e3,\"m\":-3,\"h\":2.5,\"s\":\"4\",\"big\":4611686018427387904,"
                       "\"e\":1e300,\"t\":1e-9}");
    int64_t x = 7;
    ft_error err;
    assert_int_equal(ft__json_whole(o, "a", FT_REQUIRED, 1, most, &x, "", &err), FT_OK);
    assert_int_equal(x, 3);
    assert_int_equal(ft__json_whole(o, "b", FT_REQUIRED, 1, most, &x, "", &err), FT_OK);
    assert_int_equal(x, 2);
    assert_int_equal(ft__json_whole(o, "c", FT_REQUIRED, 1, most, &x, "", &err), FT_OK);
    assert_int_equal(x, 1000);
    assert_int_equal(ft__json_whole(o, "big", FT_REQUIRED, 1, INT64_MAX, &x, "", &err), FT_OK);
    assert_true(x == INT64_C(1) << 62);

    static const struct {
        const char *key;
        int64_t low, high;
        ft_status status;
        const char *message;
    } cases[] = {
        {"m", 1, INT64_C(1) << 53, FT_E_RANGE, "\"m\" must be a whole number from 1 to 2^53, got -3"},
        {"h", 1, 100, FT_E_RANGE, "\"h\" must be a whole number from 1 to 100, got 2.5"},
        {"t", 0, 100, FT_E_RANGE, "\"t\" must be a whole number from 0 to 100, got 1e-09"},
        {"s", 1, 100, FT_E_TYPE, "\"s\" must be a whole number from 1 to 100, got the string \"4\""},
        {"big", 1, INT64_C(1) << 53, FT_E_RANGE,
         "\"big\" must be a whole number from 1 to 2^53, got 4611686018427387904"},
        {"e", -(INT64_C(1) << 40), INT64_MAX, FT_E_RANGE,
         "\"e\" must be a whole number from -2^40 to 2^63 - 1, got 1e+300"},
        {"a", INT64_MIN, 2, FT_E_RANGE, "\"a\" must be a whole number from -2^63 to 2, got 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        x = 7;
        assert_int_equal(ft__json_whole(o, cases[i].key, FT_REQUIRED, cases[i].low, cases[i].high, &x, "", &err),
                         cases[i].status);
        assert_string_equal(err.message, cases[i].message);
        assert_int_equal(x, 7);
    }
    json_decref(o);
}

static void strings_and_booleans(void **state)
{
    (void)state;
    json_t *o = parsed("{\"s\":\"gemm\",\"t\":true,\"f\":false,\"n\":5}");
    const char *s = "before";
    bool b = true;
    ft_error err;
    assert_int_equal(ft__json_string(o, "s", FT_REQUIRED, &s, "", &err), FT_OK);
    assert_string_equal(s, "gemm");
    assert_int_equal(ft__json_bool(o, "f", FT_REQUIRED, &b, "", &err), FT_OK);
    assert_false(b);
    assert_int_equal(ft__json_bool(o, "t", FT_REQUIRED, &b, "", &err), FT_OK);
    assert_true(b);
    assert_int_equal(ft__json_string(o, "none", FT_OPTIONAL, &s, "", &err), FT_OK);
    assert_string_equal(s, "gemm");
    assert_int_equal(ft__json_string(o, "n", FT_OPTIONAL, &s, "my_gpu.json", &err), FT_E_TYPE);
    assert_string_equal(err.message, "\"n\" must be a string, got 5");
    assert_string_equal(err.where, "my_gpu.json: n");
    assert_int_equal(ft__json_bool(o, "n", FT_OPTIONAL, &b, "dir/spec", &err), FT_E_TYPE);
    assert_string_equal(err.message, "\"n\" must be true or false, got 5");
    assert_string_equal(err.where, "dir/spec: n");
    assert_int_equal(ft__json_bool(o, "x", FT_REQUIRED, &b, "a.b", &err), FT_E_MISSING);
    assert_string_equal(err.where, "a.b.x");
    json_decref(o);
}

static void long_strings_are_cut_in_messages(void **state)
{
    (void)state;
    char text[600] = "{\"s\":\"";
    for (int i = 0; i < 100; i++) strcat(text, "\xE2\x82\xAC");
    strcat(text, "\"}");
    json_t *o = parsed(text);
    ft_error err;
    double x;
    assert_int_equal(ft__json_number(o, "s", FT_REQUIRED, 0, 1, &x, "", &err), FT_E_TYPE);
    assert_true(strlen(err.message) < 120);
    assert_non_null(strstr(err.message, "\xE2\x82\xAC...\""));
    json_decref(o);
}

static void getters_of_what_is_no_object_say_so(void **state)
{
    (void)state;
    json_t *list = parsed("[1]");
    ft_error err;
    double x;
    assert_int_equal(ft__json_number(list, "m", FT_OPTIONAL, 0, 1, &x, "gpu", &err), FT_E_TYPE);
    assert_string_equal(err.message, "an object that may hold \"m\" is expected, got an array");
    assert_string_equal(err.where, "gpu");
    assert_int_equal(ft__json_number(NULL, "m", FT_OPTIONAL, 0, 1, &x, "gpu", &err), FT_E_TYPE);
    assert_int_equal(ft__json_known_keys(list, NULL, 0, "gpu", &err), FT_E_TYPE);
    assert_int_equal(ft__json_known_keys(NULL, NULL, 0, "gpu", &err), FT_E_TYPE);
    json_decref(list);
}

static void unknown_keys_are_named_with_the_nearest_known_one(void **state)
{
    (void)state;
    static const char *const known[] = {"task", "model", "gpu", "dtype"};
    ft_error err;
    json_t *o = parsed("{\"task\":1,\"dtpye\":2}");
    assert_int_equal(ft__json_known_keys(o, known, 4, "", &err), FT_E_KEY);
    assert_string_equal(err.message, "unknown key \"dtpye\"; did you mean \"dtype\"?");
    assert_string_equal(err.where, "dtpye");
    json_decref(o);
    o = parsed("{\"task\":1,\"potato\":2}");
    assert_int_equal(ft__json_known_keys(o, known, 4, "", &err), FT_E_KEY);
    assert_string_equal(err.message, "unknown key \"potato\"; there are task, model, gpu, dtype");
    json_decref(o);
    o = parsed("{\"task\":1,\"gpu\":2}");
    assert_int_equal(ft__json_known_keys(o, known, 4, "", &err), FT_OK);
    json_decref(o);
    o = parsed("{}");
    assert_int_equal(ft__json_known_keys(o, known, 4, "", &err), FT_OK);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(number_messages),
        cmocka_unit_test(whole_numbers_and_their_messages),
        cmocka_unit_test(strings_and_booleans),
        cmocka_unit_test(long_strings_are_cut_in_messages),
        cmocka_unit_test(getters_of_what_is_no_object_say_so),
        cmocka_unit_test(unknown_keys_are_named_with_the_nearest_known_one),
    };
    return cmocka_run_group_tests_name("base_json", tests, scratch_make, scratch_remove);
}
