/* What training steps with adapters hold and reserve on an H200, each in a process of its own
 * (data/measurements/h200/adapters_fresh.jsonl): bf16 weights and 4-bit ones that plain operators unpack, short and
 * long sequences, with and without checkpoints. Forecasts were written down before the figures were looked at, and
 * nothing was changed after. */
#include <math.h>
#include <stdlib.h>

#include "golden.h"

static double figure(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

static bool is_set(const json_t *row, const char *key) { return json_is_true(json_object_get(row, key)); }

static json_t *asked(const json_t *row)
{
    json_t *model = json_copy(json_object_get(row, "config"));
    assert_non_null(model);
    json_object_set_new(model, "model_type", json_string("qwen2"));
    char *text = json_dumps(model, JSON_COMPACT);
    assert_non_null(text);
    const int batch = (int)figure(row, "batch"), rank = (int)figure(row, "rank");
    const bool packed = is_set(row, "packed");
    const json_t *zero = json_object_get(row, "zero"); /* DeepSpeed's engine casts adapters, and leaves autocast out */
    char adapters[96] = "", shards[96] = "";
    if (rank > 0)
        snprintf(adapters, sizeof adapters, "\"lora\":{\"rank\":%d,\"dtype\":\"%s\"},", rank,
                 zero ? "bf16" : "autocast");
    if (zero)
        snprintf(shards, sizeof shards, "\"stack\":\"deepspeed\",\"parallel\":{\"dp\":1,\"zero\":%d},",
                 (int)json_integer_value(zero));
    json_t *a = golden_ask(
        "{\"task\":\"train\",\"model\":%s,\"gpu\":\"h200_sxm\",\"batch\":%d,\"global_batch\":%d,\"seq\":%d,\"dtype\":"
        "\"%s\",%s%s%s\"attention\":\"sdpa\",\"execution\":\"eager\",\"optimizer\":\"%s\",\"recompute\":\"%s\","
        "\"loss\":"
        "\"%s\",\"expandable_segments\":%s}",
        text, batch, batch * (int)figure(row, "accumulate"), (int)figure(row, "seq"), packed ? "fp16" : "bf16",
        adapters, packed ? "\"weights_dtype\":\"int4\"," : "", shards, rank > 0 && !zero ? "adamw_foreach" : "adamw",
        is_set(row, "checkpoint") ? "full" : "none", is_set(row, "narrow") ? "narrow" : "model",
        is_set(row, "expandable") ? "true" : "false");
    json_decref(model);
    free(text);
    return a;
}

static double mean_error(const char *key, bool sharded, bool expandable, int least, double each)
{
    char path[64];
    json_t *rows = golden_rows("measurements/h200/adapters_fresh.jsonl"), *row;
    double sum = 0;
    int count = 0;
    size_t n;
    snprintf(path, sizeof path, "memory.%s", key);
    json_array_foreach (rows, n, row) { /* a loss in chunks cannot be asked for */
        if (!json_object_get(row, "forecast") || is_set(row, "expandable") != expandable) continue;
        if ((json_object_get(row, "zero") != NULL) != sharded) continue;
        json_t *a = asked(row);
        const double held = golden_figure(a, path), seen = figure(row, key);
        golden_near(json_string_value(json_object_get(row, "name")), held, seen, each);
        sum += fabs(held / seen - 1);
        count++;
        json_decref(a);
    }
    json_decref(rows);
    assert_true(count >= least);
    return sum / count;
}

static void peaks_are_met(void **state)
{
    (void)state;
    const double off = mean_error("peak_bytes", false, false, 19, 0.025);
    golden_holds(off < 0.005, "peaks %.2f %% off", 100 * off);
}

static void so_is_what_is_reserved(void **state)
{
    (void)state;
    const double off = mean_error("reserved_bytes", false, false, 19, 0.035);
    golden_holds(off < 0.015, "reserved %.2f %% off", 100 * off);
    mean_error("reserved_bytes", false, true, 1, 0.09);
}

/* Its stages in a world of one. What they reserve is forecast 8 to 15 % short: the update's joined gradients do not fit
 * into what the backward pass left, which the rehearsal, parameter by parameter, thinks they do. */
static void deepspeed_joins_gradients_and_has_a_bucket(void **state)
{
    (void)state;
    const double off = mean_error("peak_bytes", true, false, 7, 0.032);
    golden_holds(off < 0.015, "peaks under DeepSpeed %.2f %% off", 100 * off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_are_met),
        cmocka_unit_test(so_is_what_is_reserved),
        cmocka_unit_test(deepspeed_joins_gradients_and_has_a_bucket),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
