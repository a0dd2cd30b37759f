/* What the writer writes is read by Jansson, and is what was meant. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_write.h"
#include "failing_alloc.h"

static void commas_stand_where_they_are_due(void **state)
{
    (void)state;
    ft_text t = {0};
    ft__json_open(&t);
    ft__json_member_text(&t, "text", "a \"b\"");
    ft__json_member_text(&t, "none", NULL);
    ft__json_member_number(&t, "number", 0.25, 6);
    ft__json_member_number(&t, "infinite", INFINITY, 6);
    ft__json_member_whole(&t, "whole", -7);
    ft__json_member_flag(&t, "flag", true);
    ft__json_member_open(&t, "empty");
    ft__json_close(&t);
    ft__json_member_list(&t, "list");
    ft__json_add_whole(&t, 1);
    ft__json_add_number(&t, 2.5, 6);
    ft__json_add_text(&t, "{");
    ft__json_add_text(&t, "[:,");
    ft__json_open_list(&t);
    ft__json_close_list(&t);
    ft__json_open(&t);
    ft__json_member_flag(&t, "x", false);
    ft__json_close(&t);
    ft__json_add_text(&t, "last");
    ft__json_close_list(&t);
    ft__json_member_written(&t, "written", "[1]");
    ft__json_close(&t);
    assert_string_equal(t.at, "{\"text\":\"a \\\"b\\\"\",\"none\":null,\"number\":0.25,\"infinite\":null,\"whole\":-7,"
                              "\"flag\":true,\"empty\":{},\"list\":[1,2.5,\"{\",\"[:,\",[],{\"x\":false},\"last\"],"
                              "\"written\":[1]}");
    ft__text_free(&t);
}

static void lines_begin_with_a_value(void **state)
{
    (void)state;
    ft_text t = {0};
    ft__json_open_list(&t);
    for (int i = 0; i < 3; i++) {
        ft__json_line(&t);
        ft__json_add_whole(&t, i);
    }
    ft__text_add(&t, "\n");
    ft__json_close_list(&t);
    assert_string_equal(t.at, "[\n0,\n1,\n2\n]");
    ft__text_free(&t);
}

static void answers_follow_each_other_without_commas(void **state)
{
    (void)state;
    ft_text t = {0};
    for (int i = 0; i < 2; i++) {
        ft__json_open(&t);
        ft__json_member_whole(&t, "i", i);
        ft__json_close(&t);
        ft__text_add(&t, "\n");
    }
    assert_string_equal(t.at, "{\"i\":0}\n{\"i\":1}\n");
    ft__text_free(&t);
}

static void what_was_written_takes_more_members(void **state)
{
    (void)state;
    ft_text t = {0};
    ft__json_open(&t);
    ft__json_member_text(&t, "id", "a");
    ft__json_rest(&t, "{\"ok\":true}");
    ft__json_reopen(&t);
    ft__json_member_whole(&t, "more", 1);
    ft__json_close(&t);
    assert_string_equal(t.at, "{\"id\":\"a\",\"ok\":true,\"more\":1}");
    ft__text_clear(&t);
    ft__json_open(&t);
    ft__json_member_text(&t, "id", "a");
    ft__json_rest(&t, "{}");
    assert_string_equal(t.at, "{\"id\":\"a\"}");
    ft__text_clear(&t);
    ft__json_reopen(&t);
    assert_true(t.failed);
    ft__text_free(&t);
}

static void keys_of_any_length_and_letters(void **state)
{
    (void)state;
    char key[200];
    for (size_t n = 0; n < sizeof key; n++) {
        memset(key, 'k', n);
        key[n] = '\0';
        if (n > 3) memcpy(key, n % 2 ? "\"\n\\" : "\xC3\xA9 ", 3);
        ft_text t = {0};
        ft__json_open(&t);
        ft__json_member_whole(&t, "first", 1);
        ft__json_member_whole(&t, key, 2);
        ft__json_close(&t);
        json_t *back = json_loads(t.at, 0, NULL);
        assert_int_equal(json_integer_value(json_object_get(back, key)), 2);
        json_decref(back);
        ft__text_free(&t);
    }
}

/* -- trees ------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

static json_t *random_tree(uint64_t *seed, int depth)
{
    char text[12] = {0};
    uint64_t bits;
    double real;
    switch (next_random(seed) % (depth > 4 ? 6 : 8)) {
    case 0: return json_null();
    case 1: return json_boolean(next_random(seed) & 1);
    case 2: return json_integer((json_int_t)next_random(seed));
    case 3: return json_integer((json_int_t)(next_random(seed) % 2000) - 1000);
    case 4:
        bits = next_random(seed);
        memcpy(&real, &bits, sizeof real);
        return json_real(isfinite(real) ? real : (double)(bits % 1000) / 10);
    case 5:
        for (int i = 0; i < 10; i++) text[i] = (char)(1 + next_random(seed) % 127);
        return json_string(text);
    case 6: {
        json_t *list = json_array();
        for (uint64_t n = next_random(seed) % 5; n; n--) json_array_append_new(list, random_tree(seed, depth + 1));
        return list;
    }
    default: {
        json_t *object = json_object();
        for (uint64_t n = next_random(seed) % 5; n; n--) {
            text[0] = (char)('a' + next_random(seed) % 26);
            text[1] = (char)(1 + next_random(seed) % 127);
            json_object_set_new(object, text, random_tree(seed, depth + 1));
        }
        return object;
    }
    }
}

static void a_tree_comes_back_as_it_was(void **state)
{
    (void)state;
    uint64_t seed = 20261116;
    for (int i = 0; i < 3000; i++) {
        json_t *tree = random_tree(&seed, 0);
        for (int sorted = 0; sorted < 2; sorted++) {
            ft_text t = {0};
            (sorted ? ft__json_add_sorted : ft__json_add_tree)(&t, tree);
            json_t *back = json_loads(t.at, JSON_DECODE_ANY, NULL);
            if (!json_equal(tree, back)) fail_msg("%s", t.at);
            json_decref(back);
            ft__text_free(&t);
        }
        json_decref(tree);
    }
}

static void members_keep_their_order_or_are_sorted(void **state)
{
    (void)state;
    static const char given[] = "{\"b\":1,\"a\":{\"z\":0.1,\"y\":[1.0,1e300]},\"c\":null}";
    json_t *tree = json_loads(given, 0, NULL);
    ft_text t = {0};
    ft__json_add_tree(&t, tree);
    assert_string_equal(t.at, "{\"b\":1,\"a\":{\"z\":0.1,\"y\":[1.0,1e+300]},\"c\":null}");
    ft__text_clear(&t);
    ft__json_add_sorted(&t, tree);
    assert_string_equal(t.at, "{\"a\":{\"y\":[1.0,1e+300],\"z\":0.1},\"b\":1,\"c\":null}");
    ft__text_free(&t);
    json_decref(tree);
}

static ft_status write_tree(void *context)
{
    ft_text t = {0};
    ft__json_open(&t);
    ft__json_member_tree(&t, "tree", context);
    ft__json_close(&t);
    ft__json_reopen(&t);
    ft__json_close(&t);
    ft_status status = t.failed ? FT_E_MEMORY : FT_OK;
    ft__text_free(&t);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    json_t *tree = json_array();
    for (int i = 0; i < 500; i++) json_array_append_new(tree, json_real(0.1 * i));
    assert_true(failing_alloc_sweep(write_tree, tree) > 3);
    json_decref(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_stand_where_they_are_due),
        cmocka_unit_test(lines_begin_with_a_value),
        cmocka_unit_test(answers_follow_each_other_without_commas),
        cmocka_unit_test(what_was_written_takes_more_members),
        cmocka_unit_test(keys_of_any_length_and_letters),
        cmocka_unit_test(a_tree_comes_back_as_it_was),
        cmocka_unit_test(members_keep_their_order_or_are_sorted),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("base_json_write", tests, NULL, NULL);
}
