/* The public interface from outside: opening, asking, many threads on one context, no memory left. A predictor without
 * experts stands in for the shipped one: it answers everything from the roofline, and these tests stay apart from
 * accuracy. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/answer.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parallel.h"
#include "empty_predictor.h"
#include "failing_alloc.h"

static json_t *answer_of(const ft_context *ft, const char *request)
{
    char *text = ft_answer(ft, request);
    assert_non_null(text);
    assert_null(strchr(text, '\n'));
    json_t *answer = NULL;
    ft_error err = {0};
    if (ft__json_parse(text, strlen(text), "", &answer, &err) != FT_OK) fail_msg("%s: %s", err.message, text);
    free(text);
    return answer;
}

static void a_request_gets_an_answer(void **state)
{
    (void)state;
    ft_context *ft = opened();
    json_t *a = answer_of(
        ft, "{\"task\":\"kernel\",\"op\":\"softmax\",\"rows\":4096,\"cols\":4096,\"gpu\":\"h200_sxm\",\"id\":\"x\"}");
    assert_true(json_is_true(json_object_get(a, "ok")));
    assert_string_equal("x", json_string_value(json_object_get(a, "id")));
    double ms = json_number_value(json_object_get(a, "ms")), low = json_number_value(json_object_get(a, "low_ms")),
           high = json_number_value(json_object_get(a, "high_ms"));
    assert_true(low > 0 && low <= ms && ms <= high);
    /* 2 x 32 MiB at 4.8 TB/s */
    assert_true(fabs(json_number_value(json_object_get(a, "roofline_ms")) - 67.108864 / 4800) < 1e-6);
    assert_string_equal("roofline", json_string_value(json_object_get(a, "source")));
    json_decref(a);
    ft_close(ft);
}

static void errors_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *request, *code, *where;
    } cases[] = {
        {NULL, "syntax", "line 1, column 1"},
        {"", "syntax", "line 1, column 1"},
        {"{\"task\":\n \"kernel\",}", "syntax", "line 2, column 11"},
        {"{\"task\":\"kernel\",\"op\":\"softmax\",\"rows\":0,\"cols\":1,\"gpu\":\"h200_sxm\"}", "out_of_range", "rows"},
        {"{\"task\":\"kernel\",\"op\":\"softmax\",\"rows\":1,\"cols\":1,\"gpu\":\"no_such_gpu_at_all\"}",
         "unknown_name", "gpu"},
        {"{\"task\":\"kernel\",\"op\":\"softmax\",\"rows\":1,\"cols\":1,\"gpu\":\"/no/such/file.json\"}", "file",
         "/no/such/file.json"},
        {"{\"task\":\"kernel\",\"op\":\"softmax\",\"rows\":1,\"cols\":1,\"gpu\":{\"base\":\"h200_sxm\",\"sms\":\"a\"}}",
         "wrong_type", "gpu.sms"},
    };
    ft_context *ft = opened();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *a = answer_of(ft, cases[i].request), *error = json_object_get(a, "error");
        assert_true(json_is_false(json_object_get(a, "ok")));
        assert_null(json_object_get(a, "id"));
        assert_string_equal(cases[i].code, json_string_value(json_object_get(error, "code")));
        assert_string_equal(cases[i].where, json_string_value(json_object_get(error, "where")));
        assert_true(json_string_length(json_object_get(error, "message")) > 5);
        json_decref(a);
    }
    ft_close(ft);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    ft_context *ft = (ft_context *)(uintptr_t)1;
    ft_error err = {0};
    ft_options options = {.predictor = predictor_path, .quantile = 1.5};
    assert_int_equal(FT_E_RANGE, ft_open(&ft, &options, &err));
    assert_null(ft);
    options = (ft_options){.predictor = "/no/such/predictor.ftp"};
    assert_int_equal(FT_E_FILE, ft_open(&ft, &options, &err));
    assert_null(ft);
    ft_close(NULL);
}

static void the_typed_door_gives_the_same_as_the_json_door(void **state)
{
    (void)state;
    ft_context *ft = opened();
    ft_device device;
    ft_forecast f;
    ft_error err = {0};
    ft_op op = {.kind = FT_OP_ROW, .name = "softmax", .dtype = FT_FP32, .u.row = {.rows = 1000, .cols = 1000}};
    assert_int_equal(FT_OK, ft_device_find(ft, "l4", &device, &err));
    assert_int_equal(FT_OK, ft_kernel(ft, &device, &op, &f, &err));
    json_t *a = answer_of(
        ft, "{\"task\":\"kernel\",\"op\":\"softmax\",\"rows\":1000,\"cols\":1000,\"gpu\":\"l4\",\"dtype\":\"fp32\"}");
    assert_true(fabs(json_number_value(json_object_get(a, "ms")) / f.ms - 1) < 1e-5);
    json_decref(a);
    op.u.row.rows = 0;
    assert_int_equal(FT_E_RANGE, ft_kernel(ft, &device, &op, &f, &err));
    assert_int_equal(FT_E_RANGE, ft_device_at(ft, ft_device_count(ft), &device, &err));
    for (size_t i = 0; i < ft_device_count(ft); i++) {
        ft_device found;
        assert_int_equal(FT_OK, ft_device_at(ft, i, &device, &err));
        assert_int_equal(FT_OK, ft_device_find(ft, device.name, &found, &err));
        assert_memory_equal(&device, &found, sizeof device);
    }
    ft_close(ft);
}

/* -- threads ----------------------------------------------------------------------------------- */

typedef struct crowd {
    const ft_context *ft;
    char *answer[256];
} crowd;

static void ask(void *context, size_t i)
{
    static const char *const gpus[] = {"h200_sxm", "l4",       "mi300x", "a100_sxm_80gb",
                                       "t4",       "b200_sxm", "p4",     "v100_sxm_32gb"};
    crowd *c = context;
    ft_text request = {0};
    ft__text_addf(&request, "{\"task\":\"kernel\",\"op\":\"copy\",\"numel\":%zu,\"dtype\":\"fp32\",\"gpu\":\"%s\"}",
                  i + 1, gpus[i % 8]);
    c->answer[i] = ft_answer(c->ft, request.at);
    ft__text_free(&request);
}

/* Many threads ask a fresh context for the same devices at once: whoever reads a spec first, the answers are those
 * of a single thread. */
static void many_threads_share_one_context(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        ft_context *one = opened(), *many = opened();
        crowd alone = {.ft = one}, together = {.ft = many};
        ft__parallel(1, 256, ask, &alone);
        ft__parallel(8, 256, ask, &together);
        for (int i = 0; i < 256; i++) {
            assert_non_null(alone.answer[i]);
            assert_non_null(together.answer[i]);
            assert_string_equal(alone.answer[i], together.answer[i]);
            free(alone.answer[i]);
            free(together.answer[i]);
        }
        ft_close(one);
        ft_close(many);
    }
}

/* -- memory ------------------------------------------------------------------------------------ */

static void a_scratch_remembers_devices_and_lets_them_go(void **state)
{
    (void)state;
    ft_context *ft = opened();
    ft_scratch scratch = {0};
    ft_text out = {0}, first = {0};
    for (int round = 0; round < 3; round++)
        for (int g = 1; g <= 7; g++) { /* more than it remembers */
            ft_text request = {0};
            ft__text_addf(
                &request,
                "{\"task\":\"kernel\",\"op\":\"copy\",\"numel\":99,\"gpu\":{\"base\":\"h200_sxm\",\"name\":\"g%d\","
                "\"memory_gbps\":%d000}}",
                g, g);
            ft__text_clear(&out);
            ft__answer(ft, &scratch, request.at, request.length, 0, &out);
            assert_true(strstr(out.at, "\"ok\":true") != NULL);
            if (g == 1 && round == 0) ft__text_add(&first, out.at);
            if (g == 1) assert_string_equal(first.at, out.at);
            ft__text_free(&request);
        }
    ft__scratch_free(&scratch);
    ft__text_free(&first);
    ft__text_free(&out);
    ft_close(ft);
}

/* A text that may not grow stands for memory that ran out while the answer was written. */
static void an_answer_that_breaks_off_is_taken_back(void **state)
{
    (void)state;
    static const char request[] =
        "{\"id\":7,\"task\":\"kernel\",\"op\":\"gemm\",\"m\":64,\"n\":64,\"k\":64,\"gpu\":\"h200_sxm\"}";
    ft_context *ft = opened();
    ft_scratch scratch = {0};
    ft_text out = {.cap = 160};
    ft__text_add(&out, "the line before\n");
    ft__answer(ft, &scratch, request, strlen(request), 2, &out);
    assert_false(out.failed);
    assert_string_equal(out.at, "the line before\n{\"id\":7,\"ok\":false,\"error\":{\"code\":\"out_of_memory\","
                                "\"message\":\"out of memory: the answer broke off\",\"where\":\"line 2\"}}");
    ft__scratch_free(&scratch);
    ft__text_free(&out);
    ft_close(ft);
}

static ft_status attempt(void *context)
{
    ft_context *ft;
    ft_options options = {.predictor = predictor_path};
    FT_TRY(ft_open(&ft, &options, NULL));
    char *text = ft_answer(ft, context);
    ft_status status = !text || strstr(text, "out_of_memory") ? FT_E_MEMORY : FT_OK;
    if (text && status == FT_OK && !strstr(text, "\"ok\":true")) fail_msg("%s", text);
    free(text);
    ft_close(ft);
    return status;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    char named[] = "{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":1,\"n\":1,\"k\":1,\"gpu\":\"h200_sxm\",\"id\":1}";
    char spelled[] =
        "{\"task\":\"kernel\",\"op\":\"copy\",\"numel\":1,\"gpu\":{\"base\":\"h200_sxm\",\"memory_gbps\":2000}}";
    assert_true(failing_alloc_sweep(attempt, named) > 20);
    assert_true(failing_alloc_sweep(attempt, spelled) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_gets_an_answer),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(the_typed_door_gives_the_same_as_the_json_door),
        cmocka_unit_test(many_threads_share_one_context),
        cmocka_unit_test(a_scratch_remembers_devices_and_lets_them_go),
        cmocka_unit_test(an_answer_that_breaks_off_is_taken_back),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, make_predictor, scratch_remove);
}
