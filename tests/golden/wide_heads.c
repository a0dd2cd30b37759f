/* Heads that only PyTorch's memory-efficient kernels take, against 70 shapes of an H200
 * (data/measurements/h200/attention_wide.jsonl). */
#include <math.h>

#include "golden.h"

static double asked_ms(const json_t *row, const char *pass)
{
    json_t *a = golden_ask(
        "{\"task\":\"kernel\",\"op\":\"attention\",\"gpu\":\"h200_sxm\",\"batch\":%d,\"heads\":%d,"
        "\"q_len\":%d,\"head_dim\":%d,\"causal\":%s,\"pass\":\"%s\"}",
        (int)json_integer_value(json_object_get(row, "batch")), (int)json_integer_value(json_object_get(row, "heads")),
        (int)json_integer_value(json_object_get(row, "seq")), (int)json_integer_value(json_object_get(row, "head_dim")),
        json_is_true(json_object_get(row, "causal")) ? "true" : "false", pass);
    double ms = golden_figure(a, "ms");
    json_decref(a);
    return ms;
}

static double off(const json_t *row, const char *pass, const char *key)
{
    return fabs(asked_ms(row, pass) / json_number_value(json_object_get(row, key)) - 1);
}

static void heads_of_more_than_256(void **state)
{
    json_t *rows = golden_rows("measurements/h200/attention_wide.jsonl"), *row;
    size_t n;
    double forward = 0, back = 0, count = (double)json_array_size(rows);
    (void)state;
    assert_true(count >= 70);
    json_array_foreach (rows, n, row) {
        forward += off(row, "fwd", "forward_ms") / count;
        back += off(row, "bwd", "backward_ms") / count;
    }
    json_decref(rows);
    golden_holds(forward < 0.1, "forward %.1f %% off in the mean", 100 * forward);
    golden_holds(back < 0.1, "back %.1f %% off in the mean", 100 * back);
}

/* With few heads a block's walk over the sequence is the time: four heads take hardly longer than one. */
static void few_heads_take_as_long_as_one(void **state)
{
    double ms[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        json_t *row = json_pack("{s:i, s:i, s:i, s:i, s:b}", "batch", 1, "heads", i ? 4 : 1, "seq", 512, "head_dim",
                                512, "causal", 1);
        ms[i] = asked_ms(row, "bwd");
        json_decref(row);
    }
    assert_true(ms[1] >= ms[0] && ms[1] < 1.5 * ms[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_of_more_than_256),
        cmocka_unit_test(few_heads_take_as_long_as_one),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
