/* Forward passes that are repeated (data/measurements/h200/settling.jsonl): six models, eager and compiled, from a
 * board at rest until its clock has settled. Nothing was chosen on them. */
#include <math.h>
#include <string.h>

#include "golden.h"

enum { AT, BUSY }; /* columns of a pass: when it began, its kernels' sum, us */
static const double rested_us = 25e3, settled_us = 200e3;

static double cell(const json_t *pass, size_t column) { return json_number_value(json_array_get(pass, column)); }

/* Mean of the passes that began between two moments, ms. */
static double measured_ms(const json_t *row, double from_us, double to_us)
{
    const json_t *passes = json_object_get(row, "passes"), *pass;
    double sum = 0, count = 0;
    size_t n;
    json_array_foreach (passes, n, pass) {
        if (cell(pass, AT) < from_us || cell(pass, AT) >= to_us) continue;
        sum += cell(pass, BUSY) * 1e-3;
        count++;
    }
    assert_true(count > 0);
    return sum / count;
}

static double forecast_ms(const json_t *row)
{
    char *text = json_dumps(json_object_get(row, "request"), JSON_COMPACT);
    assert_non_null(text);
    json_t *a = golden_ask("%s", text);
    free(text);
    const double ms = golden_figure(a, "busy_ms");
    json_decref(a);
    return ms;
}

static void passes_are_forecast_as_they_settle(void **state)
{
    (void)state;
    json_t *rows = golden_rows("measurements/h200/settling.jsonl"), *row;
    double eager = 0, compiled = 0, half = (double)json_array_size(rows) / 2;
    size_t n;
    assert_int_equal((int)json_array_size(rows), 12);
    json_array_foreach (rows, n, row) {
        const char *execution = json_string_value(json_object_get(json_object_get(row, "request"), "execution"));
        const double off = fabs(forecast_ms(row) / measured_ms(row, settled_us, INFINITY) - 1);
        *(strcmp(execution, "eager") ? &compiled : &eager) += off / half;
    }
    json_decref(rows);
    golden_holds(eager < 0.025, "eager: %.3f, at most 0.025", eager);
    golden_holds(compiled < 0.065, "compiled: %.3f, at most 0.065", compiled);
}

/* Nets whose kernels wait for memory keep the clock that they start with; dense ones lose an eighth of their rate. */
static void boards_that_are_not_full_keep_their_clock(void **state)
{
    (void)state;
    json_t *rows = golden_rows("measurements/h200/settling.jsonl"), *row;
    size_t n;
    json_array_foreach (rows, n, row) {
        const json_t *request = json_object_get(row, "request");
        const char *type = json_string_value(json_object_get(json_object_get(request, "model"), "model_type"));
        const bool compiled = !strcmp(json_string_value(json_object_get(request, "execution")), "compile");
        const double start = measured_ms(row, 0, rested_us), now = forecast_ms(row);
        if (!strcmp(type, "convnext")) golden_holds(now < start, "%s: %.3f ms, from rest %.3f", type, now, start);
        if (!strcmp(type, "gemma") && compiled)
            golden_holds(now > 1.08 * start, "%s: %.3f ms, from rest %.3f", type, now, start);
    }
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(passes_are_forecast_as_they_settle),
                                       cmocka_unit_test(boards_that_are_not_full_keep_their_clock)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
