/* JSON documents and getters: what is taken, and what exactly is said of the rest. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "failing_alloc.h"
#include "scratch.h"

static json_t *parsed(const char *text)
{
    json_t *root;
    ft_error err;
    if (ft__json_parse(text, strlen(text), "test", &root, &err) != FT_OK) fail_msg("%s: %s", text, err.message);
    return root;
}

static void malformed_text_has_line_column_and_what_was_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line, column;
        const char *message;
    } cases[] = {
        {"", 1, 1, "the text is empty"},
        {" \n ", 2, 2, "the text is empty"},
        {"3", 1, 1, "'{' or '[' is expected, got '3'"},
        {"{", 1, 2, "a key in quotes is expected, the text ends"},
        {"{\"a\":1,}", 1, 8, "a key in quotes is expected, got '}'"},
        {"{\"a\":1\n \"b\":2}", 2, 2, "',' or '}' is expected, got '\"'"},
        {"{'a':1}", 1, 2, "a key in quotes is expected, got '''"},
        {"{\"a\" 1}", 1, 6, "':' after the key is expected, got '1'"},
        {"{\"a\":}", 1, 6, "a value is expected, got '}'"},
        {"[1,2", 1, 5, "',' or ']' is expected, the text ends"},
        {"[1,]", 1, 4, "a value is expected, got ']'"},
        {"[1 2]", 1, 4, "',' or ']' is expected, got '2'"},
        {"{\"a\":01}", 1, 6, "a number does not begin with 0 and another digit"},
        {"[-]", 1, 3, "a digit is expected, got ']'"},
        {"[1.]", 1, 4, "a digit is expected, got ']'"},
        {"[1e+]", 1, 5, "a digit is expected, got ']'"},
        {"[.5]", 1, 2, "a value is expected, got '.'"},
        {"[+1]", 1, 2, "a value is expected, got '+'"},
        {"{\"a\":nan}", 1, 6, "a value is expected, got 'n'"},
        {"[True]", 1, 2, "a value is expected, got 'T'"},
        {"{} x", 1, 4, "the end of the text is expected, got 'x'"},
        {"[1]\n[2]", 2, 1, "the end of the text is expected, got '['"},
        {"[\"abc]", 1, 2, "the string that begins here is never closed"},
        {"[\"abc\\\"]", 1, 2, "the string that begins here is never closed"},
        {"[\"abc\\", 1, 2, "the string that begins here is never closed"},
        {"[\"a\nb\"]", 1, 4, "a control character in a string (a line end is \\n)"},
        {"[\"\xC3\xA9\xFF\"]", 1, 4, "a byte that is no UTF-8"},
        {"[\"\xE2\x82\"]", 1, 3, "a byte that is no UTF-8"},
        {"[\"a\\x\"]", 1, 4, "an escape is one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u"},
        {"[\"\\u12g4\"]", 1, 3, "\\u needs four hexadecimal digits"},
        {"[\"\\u12\"]", 1, 3, "\\u needs four hexadecimal digits"},
        {"[\"\\u0000\"]", 1, 3, "\\u0000 is not taken"},
        {"[\"\\ud83d\"]", 1, 3, "half of a surrogate pair"},
        {"[\"\\ud83d\\u0041\"]", 1, 3, "half of a surrogate pair"},
        {"[\"\\ude00\"]", 1, 3, "half of a surrogate pair"},
        {"[\xC3\xA9]", 1, 2, "a value is expected, got '\xC3\xA9'"},
        {"[\xFF]", 1, 2, "a value is expected, got the byte 0xff"},
        {"[\x01]", 1, 2, "a value is expected, got the byte 0x01"},
        {"{\"m\":1,\n\"m\":2}", 2, 1, "the key \"m\" is given twice"},
        {"{\"m\":1,\"\\u006d\":2}", 1, 8, "the key \"m\" is given twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *root = (json_t *)1;
        ft_error err;
        assert_int_equal(ft__json_parse(cases[i].text, strlen(cases[i].text), "req", &root, &err), FT_E_SYNTAX);
        assert_null(root);
        assert_string_equal(err.where, "req");
        if (err.line != cases[i].line || err.column != cases[i].column ||
            strncmp(err.message, "malformed JSON: ", 16) || strcmp(err.message + 16, cases[i].message))
            fail_msg("%s\nis %d:%d %s", cases[i].text, err.line, err.column, err.message);
    }
}

/* Ours against Jansson's own reader on text that is right. */
static void well_formed_text_is_read_as_jansson_reads_it(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        " [ ] ",
        "\t{\r\n}\n",
        "[true,false,null]",
        "[0,-0,1,-1,12345678901234567,9223372036854775807]",
        "[0.5,-0.25,1e3,1E-3,1.5e+10,1e-400,3.141592653589793238462643]",
        "[\"\",\"a\",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
        "[\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"]",
        "[\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"]",
        "{\"a\":{\"b\":[{\"c\":[[[1]]]}]},\"\":2,\"key with \\n in it\":\"x\"}",
        "{\"a\":1,\"b\":2,\"A\":3}",
        "[\"a\x7f\"]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *ours = parsed(texts[i]), *theirs = json_loads(texts[i], JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(theirs);
        if (!json_equal(ours, theirs)) fail_msg("%s", texts[i]);
        json_decref(ours);
        json_decref(theirs);
    }
}

static void long_keys_strings_and_numbers(void **state)
{
    (void)state;
    for (size_t n = 1; n < 3000; n = n < 300 ? n + 1 : n * 2) {
        char *text = malloc(3 * n + 100);
        int length = sprintf(text, "{\"k%0*d\":\"\\ts%0*d\",\"last\":1}", (int)n, 7, (int)n, 8);
        json_t *ours = parsed(text), *theirs = json_loadb(text, (size_t)length, 0, NULL);
        assert_true(json_equal(ours, theirs));
        json_decref(ours);
        json_decref(theirs);
        free(text);
    }
    char digits[500] = "[0.";
    memset(digits + 3, '3', 390);
    strcpy(digits + 393, "]");
    json_decref(parsed(digits));
    memset(digits + 3, '3', 400);
    strcpy(digits + 403, "]");
    json_t *root;
    ft_error err;
    assert_int_equal(ft__json_parse(digits, strlen(digits), "", &root, &err), FT_E_RANGE);
    assert_string_equal(err.message, "a number of more than 400 characters");
}

static void numbers_beyond_the_machine_are_out_of_range(void **state)
{
    (void)state;
    json_t *root;
    ft_error err;
    assert_int_equal(ft__json_parse("{\"m\":1e999}", 11, "", &root, &err), FT_E_RANGE);
    assert_string_equal(err.message, "a number beyond 1.8e308");
    assert_int_equal(err.column, 6);
    assert_int_equal(ft__json_parse("{\"m\":99999999999999999999}", 26, "", &root, &err), FT_E_RANGE);
    assert_string_equal(err.message, "a whole number beyond 2^63");
    assert_int_equal(ft__json_parse("{\"m\":9223372036854775808}", 25, "", &root, &err), FT_E_RANGE);
}

static void deep_nesting_is_an_error_and_no_crash(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    char *text = malloc(DEPTH);
    memset(text, '[', DEPTH);
    json_t *root;
    ft_error err;
    assert_int_equal(ft__json_parse(text, DEPTH, "", &root, &err), FT_E_SYNTAX);
    assert_non_null(strstr(err.message, "depth"));
    memset(text + 512, ']', 512);
    assert_int_equal(ft__json_parse(text, 1024, "", &root, &err), FT_OK);
    json_decref(root);
    free(text);
}

static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    json_decref(parsed("\xEF\xBB\xBF{\"a\":1}"));
}

static void text_needs_no_nul_at_its_end(void **state)
{
    (void)state;
    json_t *root;
    assert_int_equal(ft__json_parse("{}garbage", 2, "", &root, NULL), FT_OK);
    json_decref(root);
}

static void files_are_loaded_and_named_in_errors(void **state)
{
    (void)state;
    json_t *root;
    ft_error err;
    assert_int_equal(ft__json_load(scratch_text("good.json", "{\"a\": 1}\n"), &root, &err), FT_OK);
    json_decref(root);
    const char *path = scratch_text("bad.json", "{\"a\": 1\n\"b\": 2}");
    assert_int_equal(ft__json_load(path, &root, &err), FT_E_SYNTAX);
    assert_null(root);
    assert_string_equal(err.where, path);
    assert_int_equal(err.line, 2);
    assert_int_equal(ft__json_load(scratch_path("none.json"), &root, &err), FT_E_FILE);
    assert_null(root);
}

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
    assert_string_equal(err.message, "unknown key \"potato\"");
    json_decref(o);
    o = parsed("{\"task\":1,\"gpu\":2}");
    assert_int_equal(ft__json_known_keys(o, known, 4, "", &err), FT_OK);
    json_decref(o);
    o = parsed("{}");
    assert_int_equal(ft__json_known_keys(o, known, 4, "", &err), FT_OK);
    json_decref(o);
}

static ft_status read_request(void *context)
{
    json_t *o;
    ft_error err;
    ft_status status = ft__json_load(context, &o, &err);
    if (status != FT_OK) return status;
    double x = 0;
    int64_t n = 0;
    /* Messages need memory for a moment; without it they are shorter, and the verdict is the same. */
    assert_int_equal(ft__json_number(o, "a", FT_REQUIRED, 0, 1, &x, "", &err), FT_E_RANGE);
    assert_int_equal(ft__json_whole(o, "a", FT_REQUIRED, 0, 1, &n, "", &err), FT_E_RANGE);
    json_decref(o);
    return FT_OK;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s",
             scratch_text("request.json", "{\"a\": 2.5, \"a100_pcie_40gb\": \"a100_pcie_40gb\", \"list\": [1, 2, "
                                          "{\"deep\": \"text \\u00e9\"}], \"b\": true}"));
    assert_true(failing_alloc_sweep(read_request, path) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_text_has_line_column_and_what_was_expected),
        cmocka_unit_test(well_formed_text_is_read_as_jansson_reads_it),
        cmocka_unit_test(long_keys_strings_and_numbers),
        cmocka_unit_test(numbers_beyond_the_machine_are_out_of_range),
        cmocka_unit_test(deep_nesting_is_an_error_and_no_crash),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(text_needs_no_nul_at_its_end),
        cmocka_unit_test(files_are_loaded_and_named_in_errors),
        cmocka_unit_test(number_messages),
        cmocka_unit_test(whole_numbers_and_their_messages),
        cmocka_unit_test(strings_and_booleans),
        cmocka_unit_test(long_strings_are_cut_in_messages),
        cmocka_unit_test(getters_of_what_is_no_object_say_so),
        cmocka_unit_test(unknown_keys_are_named_with_the_nearest_known_one),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("base_json", tests, scratch_make, scratch_remove);
}
