/* Answers as JSON: valid whatever stands in them, figures that make no sense left out. */
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
#include "report/json/answer.h"

static ft_forecast plain(void)
{
    return (ft_forecast){.ms = 0.2,
                         .low_ms = 0.19,
                         .high_ms = 0.22,
                         .bound = FT_BOUND_COMPUTE,
                         .source = FT_SOURCE_SIBLING,
                         .kin = "h200_sxm",
                         .family = "gemm_tensor",
                         .flops = 1.37439e11,
                         .bytes = 1.00663e8,
                         .intensity = 1365.33,
                         .roofline_ms = 0.138911,
                         .launch_ms = 0.002,
                         .tile_m = 128,
                         .tile_n = 256,
                         .split_k = 2,
                         .tiles = 512,
                         .waves = 3.87879};
}

static void an_answer_is_this_text(void **state)
{
    (void)state;
    ft_text out = {0};
    ft_forecast f = plain();
    json_t *id = json_string("a1");
    ft__answer_kernel(&out, id, &f, NULL, "");
    assert_string_equal(
        "{\"id\":\"a1\",\"ok\":true,\"ms\":0.2,\"low_ms\":0.19,\"high_ms\":0.22,\"bound\":\"compute\","
        "\"source\":\"sibling\",\"kin\":\"h200_sxm\",\"family\":\"gemm_tensor\",\"tile\":\"128x256\",\"tiles\":512,"
        "\"waves\":3.87879,\"split_k\":2,\"flops\":1.37439e+11,\"bytes\":1.00663e+08,\"intensity\":1365.33,"
        "\"roofline_ms\":0.138911,\"launch_ms\":0.002,\"achieved_tflops\":687.195,\"achieved_gbps\":503.315,"
        "\"regime\":{\"compute\":0.99,\"memory\":0,\"overhead\":0.01,\"communication\":0}}",
        out.at);
    json_decref(id);
    ft__text_free(&out);
}

/* Whatever a model may one day put there. */
static void an_answer_is_valid_json_always(void **state)
{
    (void)state;
    static const double odd[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e-300, 1e300};
    for (int i = 0; i < 7; i++)
        for (int field = 0; field < 8; field++) {
            ft_forecast f = plain();
            double *const fields[] = {&f.flops,     &f.bytes, &f.intensity, &f.roofline_ms,
                                      &f.launch_ms, &f.tiles, &f.waves,     &f.ms};
            *fields[field] = odd[i];
            strcpy(f.note, "a \"quoted\" note\n\x01 \xff\xfe");
            f.kin = "\\back\tslash";
            ft_text out = {0};
            ft__answer_kernel(&out, NULL, &f, NULL, "");
            json_t *back = json_loads(out.at, JSON_REJECT_DUPLICATES, NULL);
            if (!back) fail_msg("%s", out.at);
            const char *key;
            json_t *value;
            json_object_foreach (back, key, value) {
                if (json_is_number(value) && !(json_number_value(value) >= 0)) fail_msg("%s: %s", key, out.at);
            }
            json_decref(back);
            ft__text_free(&out);
        }
}

static void what_does_not_apply_is_left_out(void **state)
{
    (void)state;
    ft_text out = {0};
    ft_forecast f = {.ms = 1,
                     .low_ms = 1,
                     .high_ms = 1,
                     .bound = FT_BOUND_MEMORY,
                     .source = FT_SOURCE_ROOFLINE,
                     .kin = "",
                     .family = "",
                     .bytes = 1e9};
    ft__answer_kernel(&out, NULL, &f, NULL, "");
    assert_string_equal(
        "{\"ok\":true,\"ms\":1,\"low_ms\":1,\"high_ms\":1,\"bound\":\"memory\",\"source\":\"roofline\",\"flops\":0,"
        "\"bytes\":1e+09,\"intensity\":0,\"roofline_ms\":0,\"launch_ms\":0,\"achieved_tflops\":0,\"achieved_gbps\":"
        "1000,"
        "\"regime\":{\"compute\":0,\"memory\":1,\"overhead\":0,\"communication\":0}}",
        out.at);
    ft__text_free(&out);
}

static void ids_come_back_as_given(void **state)
{
    (void)state;
    static const char *const ids[] = {"\"a\\\"b\"",  "17",  "-9223372036854775808", "0.1",  "1e+100", "1.0",
                                      "-3.0",        "1.5", "123456789.123",        "true", "false",  "null",
                                      "\"\xc3\xa9\""};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        ft_text out = {0};
        char expected[128];
        ft_error err = {.code = FT_E_MISSING, .message = "m"};
        json_t *id = json_loads(ids[i], JSON_DECODE_ANY, NULL);
        assert_non_null(id);
        ft__answer_error(&out, id, &err, 0);
        snprintf(expected, sizeof expected,
                 "{\"id\":%s,\"ok\":false,\"error\":{\"code\":\"missing\",\"message\":\"m\"}}", ids[i]);
        assert_string_equal(expected, out.at);
        json_decref(id);
        ft__text_free(&out);
    }
}

static void errors_say_as_much_of_the_place_as_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *where;
        int line, column;
        int64_t stream;
        const char *expected;
    } cases[] = {
        {"", 0, 0, 0, "{\"ok\":false,\"error\":{\"code\":\"syntax\",\"message\":\"m\"}}"},
        {"", 2, 5, 0,
         "{\"ok\":false,\"error\":{\"code\":\"syntax\",\"message\":\"m\",\"where\":\"line 2, column 5\"}}"},
        {"m", 0, 0, 0, "{\"ok\":false,\"error\":{\"code\":\"syntax\",\"message\":\"m\",\"where\":\"m\"}}"},
        {"a.json", 2, 5, 0,
         "{\"ok\":false,\"error\":{\"code\":\"syntax\",\"message\":\"m\",\"where\":\"a.json, line 2, column 5\"}}"},
        {"", 1, 5, 17,
         "{\"id\":null,\"ok\":false,\"error\":{\"code\":\"syntax\",\"message\":\"m\",\"where\":\"line 17, column "
         "5\"}}"},
        {"m", 0, 0, 17,
         "{\"id\":null,\"ok\":false,\"error\":{\"code\":\"syntax\",\"message\":\"m\",\"where\":\"line 17, m\"}}"},
        {"a.json", 2, 5, 17,
         "{\"id\":null,\"ok\":false,\"error\":{\"code\":\"syntax\",\"message\":\"m\",\"where\":\"line 17, a.json, line "
         "2, column 5\"}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_text out = {0};
        ft_error err = {.code = FT_E_SYNTAX, .message = "m", .line = cases[i].line, .column = cases[i].column};
        strcpy(err.where, cases[i].where);
        ft__answer_error(&out, NULL, &err, cases[i].stream);
        assert_string_equal(cases[i].expected, out.at);
        ft__text_free(&out);
    }
}

static ft_status attempt(void *context)
{
    (void)context;
    ft_text out = {0};
    ft_forecast f = plain();
    ft_error err = {.code = FT_E_SYNTAX, .message = "m", .where = "w", .line = 3};
    ft__answer_kernel(&out, NULL, &f, NULL, "");
    ft__answer_error(&out, NULL, &err, 5);
    ft_status status = out.failed ? FT_E_MEMORY : FT_OK;
    ft__text_free(&out);
    return status;
}

static void running_out_of_memory_is_noticed(void **state)
{
    (void)state;
    assert_true(failing_alloc_sweep(attempt, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_this_text),
        cmocka_unit_test(an_answer_is_valid_json_always),
        cmocka_unit_test(what_does_not_apply_is_left_out),
        cmocka_unit_test(ids_come_back_as_given),
        cmocka_unit_test(errors_say_as_much_of_the_place_as_is_known),
        cmocka_unit_test(running_out_of_memory_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
