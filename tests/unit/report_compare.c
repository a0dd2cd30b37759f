/* Answers side by side: parts add up, kernels are matched, the same work is compared, other things are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "report/text/compare_screen.h"

static const char eager[] =
    "{\"ok\":true,\"version\":\"1\",\"request\":{\"task\":\"train\",\"batch\":8,\"parallel\":{\"tp\":2}},\"step_ms\":"
    "100,"
    "\"low_ms\":90,\"high_ms\":110,\"backward_ms\":40,\"busy_ms\":70,\"idle_ms\":20,\"comm_exposed_ms\":5,\"launches\":"
    "900,"
    "\"host_ms\":80,\"samples_per_s_per_gpu\":80,\"classes\":{\"contraction\":{\"ms\":50,\"flops\":1e13},"
    "\"normalisation\":{"
    "\"ms\":5,\"flops\":1},\"elementwise\":{\"ms\":15,\"flops\":1}},\"memory\":{\"peak_bytes\":1073741824,\"fits\":"
    "true},"
    "\"kernels\":[{\"name\":\"head\",\"op\":\"linear\",\"phase\":\"forward\",\"block\":\"h\",\"count\":2,\"total_ms\":"
    "50,"
    "\"bound\":\"compute\"},{\"name\":\"head\",\"op\":\"linear\",\"phase\":\"forward\",\"block\":\"h\",\"count\":1,"
    "\"total_ms\":5,\"bound\":\"memory\"},{\"name\":\"act\",\"op\":\"gelu\",\"phase\":\"forward\",\"block\":\"l\","
    "\"count\":"
    "10,\"total_ms\":15,\"bound\":\"memory\"}]}";
/* Twice the samples in 120 ms. */
static const char compiled[] =
    "{\"ok\":true,\"version\":\"1\",\"request\":{\"task\":\"train\",\"batch\":16,\"execution\":\"compile\","
    "\"parallel\":{"
    "\"tp\":4}},\"step_ms\":120,\"low_ms\":110,\"high_ms\":130,\"backward_ms\":40,\"busy_ms\":110,\"idle_ms\":4,"
    "\"launches\":"
    "300,\"host_ms\":10,\"samples_per_s_per_gpu\":133.3333333,\"classes\":{\"contraction\":{\"ms\":90,\"flops\":2e13},"
    "\"normalisation\":{\"ms\":10,\"flops\":1},\"elementwise\":{\"ms\":10,\"flops\":1}},\"memory\":{\"peak_bytes\":"
    "2147483648,"
    "\"fits\":false},\"kernels\":[{\"name\":\"head\",\"op\":\"linear\",\"phase\":\"forward\",\"block\":\"h\",\"count\":"
    "3,"
    "\"total_ms\":90,\"bound\":\"compute\"},{\"name\":\"fused\",\"op\":\"gelu\",\"phase\":\"forward\",\"block\":\"l\","
    "\"count\":4,\"total_ms\":20,\"bound\":\"memory\"}]}";

typedef struct couple {
    json_t *documents[2];
    ft_compared c[2];
} couple;

static void open_couple(couple *t, const char *a, const char *b)
{
    ft_error err = {0};
    const char *const texts[] = {a, b}, *const names[] = {"a.json", "b.json"};
    for (int i = 0; i < 2; i++) {
        t->documents[i] = json_loads(texts[i], 0, NULL);
        assert_non_null(t->documents[i]);
        if (ft__compared_of(names[i], t->documents[i], NULL, &t->c[i], &err) != FT_OK) fail_msg("%s", err.message);
    }
}

static void close_couple(couple *t)
{
    for (int i = 0; i < 2; i++) json_decref(t->documents[i]);
}

static void near(double expected, double got) { assert_true(fabs(expected - got) < 1e-6 * (fabs(expected) + 1)); }

static void parts_add_up_for_the_same_work(void **state)
{
    (void)state;
    couple t;
    ft_pair p;
    open_couple(&t, eager, compiled);
    assert_true(ft__compare_pair(&t.c[0], &t.c[1], &p));
    near(0.5, p.work);
    near(100, p.a_ms);
    near(60, p.b_ms);
    near(-40, p.change_ms);
    assert_true(p.apart); /* 90 to 110 against 55 to 65 */
    double sum = 0;
    for (size_t i = 0; i < p.cause_count; i++) {
        sum += p.causes[i].b_ms - p.causes[i].a_ms;
        if (i > 0)
            assert_true(fabs(p.causes[i].b_ms - p.causes[i].a_ms) <= fabs(p.causes[i - 1].b_ms - p.causes[i - 1].a_ms));
    }
    near(p.change_ms, sum);
    assert_string_equal("host", p.causes[0].name);
    near(20, p.causes[0].a_ms);
    near(2, p.causes[0].b_ms);
    assert_string_equal("the host issues 150 launches in 5 ms instead of 900 in 80", p.causes[0].why);
    free(p.kernels);
    close_couple(&t);
}

static void kernels_meet_by_name_operator_phase_and_block(void **state)
{
    (void)state;
    couple t;
    ft_pair p;
    open_couple(&t, eager, compiled);
    assert_true(ft__compare_pair(&t.c[0], &t.c[1], &p));
    assert_int_equal(3, p.kernel_count);
    assert_int_equal(1, p.only_a);
    assert_int_equal(1, p.only_b);
    near(15, p.only_a_ms);
    near(10, p.only_b_ms);
    assert_string_equal("act", p.kernels[0].name);
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(p.kernels[i].name, "head") != 0) continue;
        near(3, p.kernels[i].launches[0]); /* two sizes, one place */
        near(1.5, p.kernels[i].launches[1]);
        near(55, p.kernels[i].ms[0]);
        near(45, p.kernels[i].ms[1]);
    }
    free(p.kernels);
    close_couple(&t);
}

static void what_was_asked_differently_is_found_once(void **state)
{
    (void)state;
    couple t;
    ft_asked asked[9];
    open_couple(&t, eager, compiled);
    assert_int_equal(3, ft__compare_asked(t.c, 2, asked, 8));
    assert_string_equal("batch", asked[0].key);
    assert_string_equal("parallel.tp", asked[1].key);
    assert_string_equal("execution", asked[2].key);
    assert_null(asked[2].value[0]);
    assert_int_equal(1, ft__compare_asked(t.c, 2, asked, 1));
    close_couple(&t);
}

static ft_status check(const char *a, const char *b)
{
    couple t;
    ft_error err = {0};
    open_couple(&t, a, b);
    ft_status status = ft__compare_check(t.c, 2, &err);
    close_couple(&t);
    return status;
}

static void other_tasks_and_versions_are_refused(void **state)
{
    (void)state;
    assert_int_equal(FT_OK, check(eager, compiled));
    assert_int_equal(FT_E_UNSUPPORTED, check(eager, "{\"ok\":true,\"step_ms\":1,\"ttft_ms\":1}"));
    assert_int_equal(FT_E_UNSUPPORTED, check(eager, "{\"ok\":true,\"ms\":1}"));
    assert_int_equal(FT_E_FORMAT, check(eager, "{\"ok\":true,\"version\":\"2\",\"step_ms\":1,\"backward_ms\":1}"));
    /* Without a version: of the program at hand. */
    assert_int_equal(FT_OK, check("{\"ok\":true,\"ms\":1}", "{\"ok\":true,\"ms\":1,\"version\":\"" FT_VERSION "\"}"));
    static const char *const none[] = {"[]",
                                       "{}",
                                       "{\"ok\":1}",
                                       "{\"ok\":false}",
                                       "{\"ok\":true}",
                                       "{\"ok\":true,\"step_ms\":0}",
                                       "{\"ok\":true,\"ms\":\"1\"}",
                                       "{\"ok\":true,\"strong\":[]}"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ft_error err = {0};
        ft_compared c;
        json_t *document = json_loads(none[i], 0, NULL);
        assert_int_not_equal(FT_OK, ft__compared_of("x", document, NULL, &c, &err));
        assert_true(err.message[0]);
        json_decref(document);
    }
}

static ft_status attempt(void *context)
{
    const couple *t = context;
    ft_text screen = {0}, answer = {0};
    const ft_style style = {.unicode = true, .width = 110};
    bool made = ft__screen_compared(&screen, &style, t->c, 2, true) && ft__answer_compared(&answer, NULL, t->c, 2, "");
    made = made && !screen.failed && !answer.failed;
    ft__text_free(&screen);
    ft__text_free(&answer);
    return made ? FT_OK : FT_E_MEMORY;
}

static void running_out_of_memory_is_noticed(void **state)
{
    (void)state;
    couple t;
    open_couple(&t, eager, compiled);
    assert_true(failing_alloc_sweep(attempt, &t) > 10);
    close_couple(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up_for_the_same_work),
        cmocka_unit_test(kernels_meet_by_name_operator_phase_and_block),
        cmocka_unit_test(what_was_asked_differently_is_found_once),
        cmocka_unit_test(other_tasks_and_versions_are_refused),
        cmocka_unit_test(running_out_of_memory_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
