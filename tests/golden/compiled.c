/* Models under torch.compile (data/measurements/h200/compiled.jsonl). Of the first round rules of fusion and the host's
 * microseconds were chosen with its rows in view; nothing was chosen on the second. */
#include <math.h>
#include <string.h>

#include "golden.h"

static double figure(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

typedef struct errors {
    double busy, wall, memory, rows;
} errors;

static json_t *answer(const json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT);
    assert_non_null(text);
    json_t *a = golden_ask("%s", text);
    free(text);
    return a;
}

/* The loss alone leaves the compiler, not the logits. */
static bool alone(const json_t *row) { return json_object_get(json_object_get(row, "request"), "compile_scope"); }

static errors of_round(int round, bool loss_alone)
{
    errors e = {0};
    json_t *rows = golden_rows("measurements/h200/compiled.jsonl"), *row;
    size_t n;
    json_array_foreach (rows, n, row) {
        if (alone(row) != loss_alone || (int)figure(row, "round") != round) continue;
        json_t *a = answer(json_object_get(row, "request"));
        e.busy += fabs(golden_figure(a, "busy_ms") / figure(row, "busy_ms") - 1);
        e.wall += fabs(golden_figure(a, "step_ms") / figure(row, "ms") - 1);
        e.memory += fabs(golden_figure(a, "memory.peak_bytes") / figure(row, "peak_bytes") - 1);
        e.rows++;
        json_decref(a);
    }
    json_decref(rows);
    e.busy /= e.rows;
    e.wall /= e.rows;
    e.memory /= e.rows;
    return e;
}

static void rounds_are_met(void **state)
{
    (void)state;
    const errors first = of_round(1, false), second = of_round(2, false);
    assert_int_equal((int)first.rows, 40);
    assert_int_equal((int)second.rows, 13);
    golden_holds(first.busy < 0.085, "first round, busy: %.3f, at most 0.085", first.busy);
    golden_holds(first.wall < 0.125, "first round, wall: %.3f, at most 0.125", first.wall);
    golden_holds(first.memory < 0.048, "first round, memory: %.3f, at most 0.048", first.memory);
    golden_holds(second.busy < 0.11, "second round, busy: %.3f, at most 0.11", second.busy);
    golden_holds(second.wall < 0.11, "second round, wall: %.3f, at most 0.11", second.wall);
    golden_holds(second.memory < 0.075, "second round, memory: %.3f, at most 0.075", second.memory);
}

/* Nobody else has the logits: their gradient is written over them, and nothing was chosen on these peaks. */
static void the_loss_alone_keeps_no_logits(void **state)
{
    (void)state;
    const errors e = of_round(1, true);
    assert_int_equal((int)e.rows, 13);
    golden_holds(e.busy < 0.055, "loss alone, busy: %.3f, at most 0.055", e.busy);
    golden_holds(e.memory < 0.025, "loss alone, memory: %.3f, at most 0.025", e.memory);
}

/* Inductor turns pictures of a net that trains unless one of its filters is grouped: such a net's stay as they were. */
static void grouped_filters_keep_pictures(void **state)
{
    (void)state;
    const char *asks = "{\"task\":\"train\",\"model\":\"%s\",\"batch\":64,\"gpu\":\"h200_sxm\",\"dtype\":\"%s\","
                       "\"optimizer\":\"none\",\"execution\":\"compile\",\"detail\":\"kernels\"}";
    const struct {
        const char *net, *dtype;
        bool turned;
    } nets[] = {{"vgg16", "bf16", true},
                {"vgg16", "fp32", false},
                {"resnext-50-32x4d", "bf16", false},
                {"mobilenet-v3-large", "bf16", true}};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        json_t *a = golden_ask(asks, nets[i].net, nets[i].dtype), *kernel;
        size_t n;
        bool copies = false;
        json_array_foreach (json_object_get(a, "kernels"), n, kernel)
            copies |= !strcmp(json_string_value(json_object_get(kernel, "name")), "fused_copy");
        assert_int_equal(copies, nets[i].turned);
        json_decref(a);
    }
}

/* One pass of this model as it is forecast over what was seen. */
static double off_by(const char *net, const char *task, const char *forecast, const char *seen)
{
    json_t *rows = golden_rows("measurements/h200/compiled.jsonl"), *row;
    double off = NAN;
    size_t n;
    json_array_foreach (rows, n, row) {
        const json_t *asked = json_object_get(row, "request"), *model = json_object_get(asked, "model");
        if (json_is_object(model)) model = json_object_get(model, "model_type");
        if (strcmp(json_string_value(model), net) != 0) continue;
        if (strcmp(json_string_value(json_object_get(asked, "task")), task) != 0) continue;
        json_t *a = answer(asked);
        off = golden_figure(a, forecast) / figure(row, seen) - 1;
        json_decref(a);
    }
    json_decref(rows);
    return off;
}

static double memory_off(const char *net, const char *task)
{
    return off_by(net, task, "memory.peak_bytes", "peak_bytes");
}

/* T5's bias by distance is made again inside of every softmax, and its gradient is added up atomically. */
static void biases_by_distance_are_made_again(void **state)
{
    (void)state;
    const char *tasks[] = {"forward", "train"};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        const double off = off_by("t5", tasks[i], "busy_ms", "busy_ms");
        golden_holds(fabs(off) < 0.04, "t5, %s, busy: %+.3f, at most 0.04", tasks[i], off);
    }
}

/* A pool's gradient is too dear to be computed for a norm's sums and for its result: a kernel of its own writes it. */
static void gradients_of_pools_are_written(void **state)
{
    (void)state;
    json_t *kernel, *a = golden_ask("{\"task\":\"train\",\"model\":\"wide-resnet-50-2\",\"batch\":64,"
                                    "\"gpu\":\"h200_sxm\",\"dtype\":\"bf16\",\"execution\":\"compile\","
                                    "\"detail\":\"kernels\"}");
    double pools = 0;
    size_t n;
    json_array_foreach (json_object_get(a, "kernels"), n, kernel) {
        const char *name = json_string_value(json_object_get(kernel, "name"));
        if (strcmp(json_string_value(json_object_get(kernel, "phase")), "backward") != 0 || !strstr(name, "pool"))
            continue;
        assert_null(strstr(name, "batchnorm"));
        pools += golden_figure(kernel, "total_ms");
    }
    golden_holds(fabs(pools / 0.366 - 1) < 0.2, "gradient of the pool: %.3f ms, 0.366 measured", pools);
    json_decref(a);
}

/* A mask of numbers that learns is the memory-efficient kernel's, which keeps no scores. */
static void a_mask_that_learns_has_a_kernel(void **state)
{
    (void)state;
    const double off = memory_off("swin-tiny", "train");
    golden_holds(fabs(off) < 0.01, "swin-tiny, training, memory: %+.4f, at most 0.01", off);
}

/* A first layer of small filters with a stride is not padded; SiLU and hardswish behind a norm get memory of their own
 * where ReLU is written over what the convolution made. */
static void narrow_nets_hold_what_they_held(void **state)
{
    (void)state;
    const char *nets[] = {"mobilenet-v3-small", "mobilenet-v3-large", "shufflenet-v2-1.0",
                          "efficientnet-v2-s",  "resnet-50",          "wide-resnet-50-2"};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        const double off = memory_off(nets[i], "forward");
        golden_holds(fabs(off) < 0.01, "%s, memory: %+.4f, at most 0.01", nets[i], off);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounds_are_met),
                                       cmocka_unit_test(the_loss_alone_keeps_no_logits),
                                       cmocka_unit_test(grouped_filters_keep_pictures),
                                       cmocka_unit_test(narrow_nets_hold_what_they_held),
                                       cmocka_unit_test(a_mask_that_learns_has_a_kernel),
                                       cmocka_unit_test(gradients_of_pools_are_written),
                                       cmocka_unit_test(biases_by_distance_are_made_again)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
