/* Steps with Liger's kernels and without, and what turning them on saves (data/measurements/h200/liger.jsonl; nothing
 * is fitted to these rows). */
#include <math.h>
#include <string.h>

#include "golden.h"

static double figure(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

static json_t *answer(const json_t *row, const char *more)
{
    char *request = json_dumps(json_object_get(row, "request"), JSON_COMPACT);
    assert_non_null(request);
    request[strlen(request) - 1] = '\0';
    json_t *a = golden_ask("%s%s}", request, more);
    free(request);
    return a;
}

/* The same under the Trainer, which was not measured here. */
static json_t *under_trainer(const json_t *row, const char *stack, const char *more)
{
    json_t *request = json_deep_copy(json_object_get(row, "request"));
    assert_non_null(request);
    json_object_set_new(request, "stack", json_string(stack));
    json_t *asked = json_pack("{s:o}", "request", request), *a = answer(asked, more);
    json_decref(asked);
    return a;
}

/* Rows whose model has Liger's norms but its own loss have no request. */
static bool asked(const json_t *row) { return json_object_get(row, "request") != NULL; }

static bool waits(const json_t *row) { return figure(row, "busy_ms") < 0.9 * figure(row, "ms"); }

static void steps_and_peaks_are_met(void **state)
{
    (void)state;
    json_t *rows = golden_rows("measurements/h200/liger.jsonl"), *row;
    size_t n;
    int seen = 0;
    json_array_foreach (rows, n, row) {
        if (!asked(row)) continue;
        const char *name = json_string_value(json_object_get(row, "name"));
        json_t *a = answer(row, "");
        golden_near(name, golden_figure(a, "busy_ms"), figure(row, "busy_ms"), 0.06);
        golden_near(name, golden_figure(a, "memory.peak_bytes"), figure(row, "peak_bytes"), 0.055);
        if (!waits(row)) golden_near(name, golden_figure(a, "step_ms"), figure(row, "ms"), 0.1);
        json_decref(a);
        seen++;
    }
    assert_int_equal(seen, 16);
    json_decref(rows);
}

static bool of_one_kind(const json_t *a, const json_t *b)
{
    const char *keys[] = {"batch", "seq", "rank", "recompute", "name"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i]))) return false;
    return true;
}

/* The piece of advice whose patch turns them on; 0: there is none. */
static double advised(const json_t *answered)
{
    const json_t *advice = json_object_get(answered, "advice"), *one;
    size_t n;
    json_array_foreach (advice, n, one) {
        const char *stack = json_string_value(json_object_get(json_object_get(one, "request"), "stack"));
        if (stack && !strcmp(stack, "hf_trainer_liger")) return figure(one, "saves_ms");
    }
    return 0;
}

static void what_they_save_is_met(void **state)
{
    (void)state;
    json_t *rows = golden_rows("measurements/h200/liger.jsonl"), *plain, *with;
    size_t i, k;
    int pairs = 0, offered = 0;
    json_array_foreach (rows, i, plain) {
        if (!asked(plain) || !json_is_false(json_object_get(plain, "liger")) || waits(plain)) continue;
        json_array_foreach (rows, k, with) {
            if (!asked(with) || !json_is_true(json_object_get(with, "liger")) || !of_one_kind(plain, with)) continue;
            if (waits(with)) continue;
            const char *name = json_string_value(json_object_get(plain, "name"));
            json_t *a = answer(plain, ""), *b = answer(with, "");
            json_t *c = under_trainer(plain, "hf_trainer", ",\"advice\":true"),
                   *d = under_trainer(with, "hf_trainer_liger", "");
            const double saved = figure(plain, "ms") - figure(with, "ms"), found = advised(c);
            const double forecast = golden_figure(a, "step_ms") - golden_figure(b, "step_ms");
            const double trained = golden_figure(c, "step_ms") - golden_figure(d, "step_ms");
            golden_near(name, forecast, saved, 0.2);
            if (saved < 0) golden_holds(!(found > 0), "%s: slower, and advised", name);
            if (found > 0) golden_near("advice", found, trained, 0.01);
            json_decref(a);
            json_decref(b);
            json_decref(c);
            json_decref(d);
            pairs++;
            offered += found > 0;
        }
    }
    assert_int_equal(pairs, 5);
    assert_true(offered >= 2); /* where compiling does not save more */
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_and_peaks_are_met),
                                       cmocka_unit_test(what_they_save_is_met)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
