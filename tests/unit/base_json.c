/* JSON documents and getters: what is taken, and what exactly is said of the rest. */
#include <stdio.h>
#include <stdlib.h>

#include "json_said.h"

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
        {"{\"a\":01}", 1, 6, "a number must not begin with 0 and another digit"},
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
        {"[\"\xC3\xA9\xFF\"]", 1, 4, "a byte that is not UTF-8"},
        {"[\"\xE2\x82\"]", 1, 3, "a byte that is not UTF-8"},
        {"[\"a\\x\"]", 1, 4, "an escape is one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u"},
        {"[\"\\u12g4\"]", 1, 3, "\\u needs four hexadecimal digits"},
        {"[\"\\u12\"]", 1, 3, "\\u needs four hexadecimal digits"},
        {"[\"\\u0000\"]", 1, 3, "\\u0000 is not accepted"},
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
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("base_json", tests, scratch_make, scratch_remove);
}
