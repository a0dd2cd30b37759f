/* The budget that errors may not exceed: what is over it is named, and a budget nobody fills is over too. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "report/text/accuracy_screen.h"
#include "scratch.h"

static ft_accuracy lines[] = {
    {.family = "gemm", .variant = "bf16", .gpu = "h200_sxm", .kind = "all", .rows = 100, .mean = 0.05, .inside = 0.9},
    {.family = "gemm", .variant = "fp8", .gpu = "h200_sxm", .kind = "all", .rows = 50, .mean = 0.2, .inside = 0.5},
    {.family = "row", .variant = "softmax", .gpu = "l4", .kind = "all", .rows = 7, .mean = NAN, .inside = NAN},
};
static const ft_accuracy_table table = {lines, 3};

static void says_of(const ft_accuracy_table *of, const char *budget, bool all, size_t expected_checked,
                    const char *complaints)
{
    ft_text said = {0};
    ft_error err = {0};
    size_t checked = 99;
    if (ft__budget_check(scratch_text("budget.json", budget), of, all, &said, &checked, &err) != FT_OK)
        fail_msg("%s: %s", err.where, err.message);
    assert_string_equal(complaints, said.at ? said.at : "");
    assert_int_equal(expected_checked, checked);
    ft__text_free(&said);
}

static void says(const char *budget, bool all, size_t expected_checked, const char *complaints)
{
    says_of(&table, budget, all, expected_checked, complaints);
}

static void within_the_budget_nothing_is_said(void **state)
{
    (void)state;
    says("{\"lines\":[{\"family\":\"gemm\",\"variant\":\"bf16\",\"max_mean\":0.05,\"min_inside\":0.85,\"max_inside\":0."
         "95}]}",
         true, 1, "");
    says("{\"lines\":[{\"family\":\"gemm\",\"max_mean\":0.2}]}", true, 2, "");
    says("{\"about\":\"x\",\"lines\":[]}", true, 0, "");
}

static void what_is_over_is_named(void **state)
{
    (void)state;
    says("{\"lines\":[{\"family\":\"gemm\",\"max_mean\":0.1,\"min_inside\":0.8}]}", true, 2,
         "gemm fp8 h200_sxm: mean error 20.00 % exceeds the budget of 10.00 %\n"
         "gemm fp8 h200_sxm: 50.0 % of the truth lies inside the interval; the budget asks for 80.0 to 100.0 %\n");
    says("{\"lines\":[{\"family\":\"gemm\",\"variant\":\"bf16\",\"gpu\":\"h200_sxm\",\"max_mean\":1,\"max_inside\":0.8}"
         "]}",
         true, 1,
         "gemm bf16 h200_sxm: 90.0 % of the truth lies inside the interval; the budget asks for 0.0 to 80.0 %\n");
}

static void held_out_rows_have_a_budget_of_their_own(void **state)
{
    (void)state;
    static ft_accuracy held[] = {{.family = "gemm", .variant = "bf16", .kind = "held-out", .mean = 0.3, .inside = 0.8}};
    static const ft_accuracy_table held_table = {held, 1};
    static const char both[] =
        "{\"lines\":[{\"family\":\"gemm\",\"variant\":\"bf16\",\"max_mean\":0.05,\"min_inside\":0.85,"
        "\"held_out\":{\"max_mean\":0.25,\"min_inside\":0.8}}]}";
    says_of(&held_table, both, true, 1, "gemm bf16: mean error 30.00 % exceeds the budget of 25.00 %\n");
    says(both, true, 1, "");
    says_of(&held_table, "{\"lines\":[{\"family\":\"gemm\",\"max_mean\":0.05}]}", true, 1,
            "gemm bf16: mean error 30.00 % exceeds the budget of 5.00 %\n");
}

static void an_error_that_is_no_number_is_over_any_budget(void **state)
{
    (void)state;
    says("{\"lines\":[{\"family\":\"row\",\"max_mean\":100}]}", true, 1,
         "row softmax l4: mean error nan % exceeds the budget of 10000.00 %\n");
    says("{\"lines\":[{\"family\":\"row\",\"max_mean\":100,\"min_inside\":0.8}]}", true, 1,
         "row softmax l4: mean error nan % exceeds the budget of 10000.00 %\n"
         "row softmax l4: nan % of the truth lies inside the interval; the budget asks for 80.0 to 100.0 %\n");
}

static void a_budget_that_nothing_meets_is_over_unless_rows_were_picked(void **state)
{
    (void)state;
    says("{\"lines\":[{\"family\":\"gemm\",\"variant\":\"fp4\",\"max_mean\":1}]}", true, 0,
         "gemm fp4: the budget names it, and nothing was measured\n");
    says("{\"lines\":[{\"family\":\"gemm\",\"variant\":\"fp4\",\"max_mean\":1}]}", false, 0, "");
}

static void a_budget_with_a_mistake_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ft_status code;
        const char *message;
    } cases[] = {
        {"{\"lines\":[{\"family\":\"gemm\"}]}", FT_E_MISSING, "\"max_mean\" is missing"},
        {"{\"lines\":[{\"max_mean\":1}]}", FT_E_MISSING, "\"family\" is missing"},
        {"{\"lines\":[{\"family\":\"gemm\",\"max_mean\":1,\"held_out\":{}}]}", FT_E_MISSING, "\"max_mean\" is missing"},
        {"{\"lines\":[{\"family\":\"gemm\",\"max_mean\":1,\"held_out\":{\"gpu\":\"l4\"}}]}", FT_E_KEY,
         "unknown key \"gpu\"; there are max_mean, min_inside, max_inside"},
        {"{\"lines\":{}}", FT_E_MISSING, "\"lines\" must be an array of budgets"},
        {"{\"line\":[]}", FT_E_KEY, "unknown key \"line\"; did you mean \"lines\"?"},
        {"{\"lines\":[5]}", FT_E_TYPE, "an object is expected, got 5"},
        {"{\"lines\":[{\"family\":\"gemm\",\"max_mean\":-1}]}", FT_E_RANGE,
         "\"max_mean\" must be a number from 0 to 100, got -1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_text said = {0};
        ft_error err = {0};
        size_t checked;
        assert_int_equal(cases[i].code, ft__budget_check(scratch_text("bad.json", cases[i].text), &table, true, &said,
                                                         &checked, &err));
        assert_string_equal(cases[i].message, err.message);
        ft__text_free(&said);
    }
}

static void tables_stand_beside_each_other(void **state)
{
    (void)state;
    ft_text out = {0};
    ft_style style = {.width = 100};
    ft_accuracy other[] = {
        {.family = "gemm", .variant = "fp8", .gpu = "h200_sxm", .kind = "all", .rows = 50, .mean = 0.777}};
    ft_accuracy_table roofline = {other, 1};
    ft_baseline_table beside = {"roofline", &roofline};
    assert_true(ft__screen_accuracy(&out, &style, &table, &beside, 1));
    assert_string_equal("family  variant  gpu       kind  rows    mean  median    p90    bias  inside  roofline\n"
                        "gemm    bf16     h200_sxm  all    100   5.0 %   0.0 %  0.0 %  +0.0 %  90.0 %         -\n"
                        "gemm    fp8      h200_sxm  all     50  20.0 %   0.0 %  0.0 %  +0.0 %  50.0 %    77.7 %\n"
                        "row     softmax  l4        all      7       -   0.0 %  0.0 %  +0.0 %       -         -\n",
                        out.at);
    ft__text_free(&out);
}

static ft_status attempt(void *context)
{
    ft_text said = {0};
    size_t checked;
    ft_status status = ft__budget_check(context, &table, true, &said, &checked, NULL);
    ft__text_free(&said);
    return status;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    const char *path = scratch_text("b.json", "{\"lines\":[{\"family\":\"gemm\",\"max_mean\":0.01}]}");
    assert_true(failing_alloc_sweep(attempt, (void *)(uintptr_t)path) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_the_budget_nothing_is_said),
        cmocka_unit_test(what_is_over_is_named),
        cmocka_unit_test(held_out_rows_have_a_budget_of_their_own),
        cmocka_unit_test(an_error_that_is_no_number_is_over_any_budget),
        cmocka_unit_test(a_budget_that_nothing_meets_is_over_unless_rows_were_picked),
        cmocka_unit_test(a_budget_with_a_mistake_is_refused),
        cmocka_unit_test(tables_stand_beside_each_other),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
