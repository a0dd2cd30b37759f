/* The tasks that ask several times, from outside: with no memory left they say so and leave nothing behind; a session
 * that answered one of them answers everything after it as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/answer.h"
#include "empty_predictor.h"
#include "failing_alloc.h"

#define SMALL "{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":2,\"vocab_size\":128,\"n_positions\":64}"
#define KERNEL "{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":8,\"n\":8,\"k\":8,\"gpu\":\"l4\"}"

static char
    gpus[] =
        "{\"task\":\"gpus\",\"name\":[\"l4\",{\"base\":\"l4\",\"name\":\"mine\",\"memory_gib\":20}],\"dtype\":\"fp8\"}",
    models[] = "{\"task\":\"models\",\"name\":\"gpt2-xl\"}", types[] = "{\"task\":\"models\",\"types\":true}",
    compare[] = "{\"task\":\"compare\",\"requests\":[" KERNEL "," KERNEL "]}",
    sweep[] =
        "{\"task\":\"sweep\",\"of\":\"kernel\",\"op\":\"gemm\",\"m\":8,\"k\":8,\"gpu\":[\"l4\",\"a10\"],\"over\":{"
        "\"n\":[8,16]}}",
    infer[] = "{\"task\":\"infer\",\"model\":" SMALL ",\"gpu\":\"l4\",\"batch\":1,\"seq\":16,\"advice\":true}",
    largest[] = "{\"task\":\"largest\",\"gpu\":\"l4\",\"seq\":64}",
    scale[] = "{\"task\":\"scale\",\"model\":" SMALL ",\"gpu\":\"l4\",\"gpus\":8,\"seq\":64}";

static ft_status attempt(void *request)
{
    ft_context *ft;
    ft_options options = {.predictor = predictor_path};
    FT_TRY(ft_open(&ft, &options, NULL));
    char *text = ft_answer(ft, request);
    ft_status status = !text || strstr(text, "out of memory") ? FT_E_MEMORY : FT_OK;
    if (text && status == FT_OK && !strstr(text, "\"ok\":true")) fail_msg("%s", text);
    free(text);
    ft_close(ft);
    return status;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    char *const requests[] = {gpus, models, types, compare, sweep};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        assert_true(failing_alloc_sweep(attempt, requests[i]) > 10);
}

/* Thousands of allocations each: every so many fails, instead of every one. */
static void long_studies_run_out_of_memory_too(void **state)
{
    (void)state;
    char *const requests[] = {infer, largest, scale};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        failing_alloc_at(0, false);
        assert_int_equal(attempt(requests[i]), FT_OK);
        long all = failing_alloc_count(), step = all / 60 + 1;
        for (long n = 1; n <= all; n += step)
            for (int good = 0; good < 2; good++) {
                failing_alloc_at(n, good);
                ft_status status = attempt(requests[i]);
                failing_alloc_at(0, false);
                assert_true(status == FT_OK || status == FT_E_MEMORY);
            }
    }
}

static void a_session_answers_alike_after_a_study(void **state)
{
    (void)state;
    char *const requests[] = {infer, gpus, largest, compare, scale, sweep, models};
    enum { COUNT = sizeof requests / sizeof *requests };
    ft_context *ft = opened();
    ft_scratch scratch = {0};
    ft_text first[COUNT] = {0}, again = {0};
    for (int i = 0; i < COUNT; i++) ft__answer(ft, &scratch, requests[i], strlen(requests[i]), 0, &first[i]);
    for (int i = COUNT - 1; i >= 0; i--) {
        ft__text_clear(&again);
        ft__answer(ft, &scratch, requests[i], strlen(requests[i]), 0, &again);
        assert_string_equal(first[i].at, again.at);
        assert_non_null(strstr(again.at, "\"ok\":true"));
        ft__text_free(&first[i]);
    }
    ft__text_free(&again);
    ft__scratch_free(&scratch);
    ft_close(ft);
}

/* What was begun of a sweep is taken back when a point cannot be answered. */
static void a_sweep_that_breaks_off_leaves_an_error_alone(void **state)
{
    (void)state;
    static const char request[] =
        "{\"id\":1,\"task\":\"sweep\",\"of\":\"kernel\",\"op\":\"gemm\",\"m\":8,\"k\":8,\"gpu\":"
        "\"l4\",\"over\":{\"n\":[8,0]}}";
    ft_context *ft = opened();
    char *text = ft_answer(ft, request);
    assert_non_null(text);
    assert_ptr_equal(strstr(text, "{\"id\":1,\"ok\":false,\"error\":"), text);
    assert_non_null(strstr(text, "(at n = 0)"));
    assert_null(strstr(text, "answers"));
    free(text);
    ft_close(ft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_out_of_memory_is_an_answer),
        cmocka_unit_test(long_studies_run_out_of_memory_too),
        cmocka_unit_test(a_session_answers_alike_after_a_study),
        cmocka_unit_test(a_sweep_that_breaks_off_leaves_an_error_alone),
    };
    return cmocka_run_group_tests(tests, make_predictor, scratch_remove);
}
