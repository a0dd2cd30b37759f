/* Steps of Hugging Face's Trainer as users call it (data/measurements/h200/trainer.jsonl), forecast before they were
 * measured and again with what its code was then seen to do: gradients are clipped, every loss is read, and all modules
 * are visited between steps. The host's microseconds for a visit were set on twelve of them (trainer_parts.jsonl). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

static json_t *asked(const json_t *row, const char *more)
{
    json_t *request = json_deep_copy(json_object_get(row, "request")), *also = json_loads(more, 0, NULL);
    assert_non_null(request);
    assert_non_null(also);
    json_object_update(request, json_object_get(row, "also"));
    if (json_object_get(row, "ran")) json_object_update(request, json_object_get(row, "ran"));
    json_object_update(request, also);
    char *text = json_dumps(request, JSON_COMPACT);
    assert_non_null(text);
    json_t *answer = golden_ask("%s", text);
    free(text);
    json_decref(also);
    json_decref(request);
    return answer;
}

static double measured(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

/* Sequences of many lengths: nearly every step is the first of its length, and cuDNN plans attention anew. */
static bool meets_new_lengths(const json_t *row) { return json_object_get(row, "lengths") != NULL; }

typedef struct errors {
    double sum;
    int count;
} errors;

static void add(errors *e, double forecast, double truth)
{
    e->sum += fabs(forecast / truth - 1);
    e->count++;
}

static void steps_and_peaks_are_forecast(void **state)
{
    (void)state;
    json_t *rows = golden_rows("measurements/h200/trainer.jsonl"), *row;
    errors by_gpu = {0}, by_host = {0}, peaks = {0};
    size_t n;
    json_array_foreach (rows, n, row) {
        json_t *a = asked(row, "{}");
        const bool host = golden_figure(a, "host_ms") > golden_figure(a, "busy_ms");
        if (!meets_new_lengths(row))
            add(host ? &by_host : &by_gpu, golden_figure(a, "step_ms"), measured(row, "step_ms"));
        add(&peaks, golden_figure(a, "memory.peak_bytes"), measured(row, "peak_bytes"));
        json_decref(a);
    }
    json_decref(rows);
    assert_int_equal(by_gpu.count + by_host.count, 25);
    golden_holds(by_gpu.sum / by_gpu.count < 0.045, "held by the GPU: %.3f, at most 0.045", by_gpu.sum / by_gpu.count);
    golden_holds(by_host.sum / by_host.count < 0.14, "by the host: %.3f, at most 0.14", by_host.sum / by_host.count);
    golden_holds(peaks.sum / peaks.count < 0.01, "peaks: %.4f, at most 0.01", peaks.sum / peaks.count);
}

/* Eighteen more, forecast by what the first had shown before they were measured. */
static void a_second_round_is_forecast(void **state)
{
    (void)state;
    json_t *rows = golden_rows("measurements/h200/trainer_second.jsonl"), *row;
    errors steps = {0}, peaks = {0};
    size_t n;
    json_array_foreach (rows, n, row) {
        json_t *a = asked(row, "{}");
        const double ms = measured(row, "step_ms");
        add(&steps, golden_figure(a, "step_ms"), ms);
        add(&peaks, golden_figure(a, "memory.peak_bytes"), measured(row, "peak_bytes"));
        golden_holds(ms > golden_figure(a, "low_ms") && ms < golden_figure(a, "high_ms"), "%.1f ms, outside", ms);
        json_decref(a);
    }
    json_decref(rows);
    assert_int_equal(steps.count, 18);
    golden_holds(steps.sum / steps.count < 0.04, "steps: %.3f, at most 0.04", steps.sum / steps.count);
    golden_holds(peaks.sum / peaks.count < 0.01, "peaks: %.4f, at most 0.01", peaks.sum / peaks.count);
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void new_lengths_wait_for_plans(void **state)
{
    (void)state;
    enum { MOST = 64 };
    json_t *rows = golden_rows("measurements/h200/trainer.jsonl"), *row, *step;
    double ms[MOST];
    size_t n, i;
    json_array_foreach (rows, n, row) {
        if (strcmp(json_string_value(json_object_get(row, "id")), "llama-1b-padded") != 0) continue;
        const json_t *steps = json_object_get(row, "steps_ms");
        assert_true(json_array_size(steps) <= MOST);
        json_array_foreach (steps, i, step) ms[i] = json_number_value(step);
        qsort(ms, json_array_size(steps), sizeof *ms, rising);
        json_t *a = asked(row, "{}");
        const double longer = ms[json_array_size(steps) / 2] - golden_figure(a, "step_ms");
        golden_near("a new length", golden_figure(a, "lengths.new_length_ms"), longer, 0.15);
        json_decref(a);
    }
    json_decref(rows);
}

/* What the Trainer does between two steps is its own: a loop of one's own does none of it unless it says so. */
static void what_the_trainer_adds_is_said(void **state)
{
    (void)state;
    json_t *rows = golden_rows("measurements/h200/trainer_parts.jsonl"), *row;
    size_t n;
    json_array_foreach (rows, n, row) {
        json_t *trainer = asked(row, "{}"), *clipped = asked(row, "{\"stack\": \"pytorch\", \"clip_grad\": true}"),
               *bare = asked(row, "{\"stack\": \"pytorch\"}"), *unclipped = asked(row, "{\"clip_grad\": false}");
        const double with = golden_figure(trainer, "step_ms"), clips = golden_figure(clipped, "step_ms");
        golden_holds(with > clips, "the Trainer's %.2f ms, a loop that clips %.2f", with, clips);
        golden_holds(clips > golden_figure(bare, "step_ms"), "%.2f ms, and more where it clips", clips);
        golden_holds(with > golden_figure(unclipped, "step_ms"), "%.2f ms, less where it is told not to clip", with);
        json_decref(trainer);
        json_decref(clipped);
        json_decref(bare);
        json_decref(unclipped);
    }
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_and_peaks_are_forecast), cmocka_unit_test(new_lengths_wait_for_plans),
        cmocka_unit_test(a_second_round_is_forecast), cmocka_unit_test(what_the_trainer_adds_is_said)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
