/* Advice: every piece is the forecast of a request, and the regime is what measured kernels show. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measured.h"

/* -- advice is what the forecast says ---------------------------------------------------------- */

static json_t *advised(json_t *request)
{
    json_object_set_new(request, "advice", json_true());
    return measured_answer(request);
}

/* Every advice carries the request that it is the forecast of. */
static void hold_to_request(const json_t *request, const json_t *advice, const char *what)
{
    json_t *changed = json_deep_copy(request);
    json_object_del(changed, "advice");
    assert_int_equal(json_object_update_recursive(changed, json_object_get(advice, "request")), 0);
    json_t *answer = measured_answer(changed);
    golden_near(what, golden_figure(answer, "step_ms"), measured_figure(advice, "step_ms"), 1e-4);
    json_decref(answer), json_decref(changed);
}

/* And all of them, merged one after another, make what is promised of them together. */
static void hold_to_all(const json_t *request, const json_t *list, const json_t *together)
{
    json_t *changed = json_deep_copy(request), *one;
    size_t i;
    json_object_del(changed, "advice");
    json_array_foreach (list, i, one)
        assert_int_equal(json_object_update_recursive(changed, json_object_get(one, "request")), 0);
    json_t *answer = measured_answer(changed);
    golden_near("all patches", golden_figure(answer, "step_ms"), measured_figure(together, "step_ms"), 1e-4);
    json_decref(answer), json_decref(changed);
}

static void patches(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "{\"task\":\"train\",\"model\":{\"model_type\":\"gpt2\"},\"gpu\":\"h200_sxm\",\"batch\":8,\"seq\":1024,"
        "\"dtype\":\"fp32\",\"attention\":\"eager\",\"optimizer\":\"adamw_foreach\",\"recompute\":\"full\"}",
        "{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"batch\":1,\"seq\":4096,\"global_batch\":"
        "64,"
        "\"parallel\":{\"tp\":2,\"pp\":2,\"dp\":4,\"zero\":1,\"overlap\":false},\"master_weights\":true}",
        "{\"task\":\"decode\",\"model\":\"llama-3-8b\",\"gpu\":\"a100_sxm_80gb\",\"batch\":4,\"seq\":2048,\"cache\":"
        "\"dynamic\"}",
        "{\"task\":\"train\",\"model\":{\"model_type\":\"resnet\"},\"gpu\":\"h200_sxm\",\"batch\":64,\"layout\":"
        "\"nchw\","
        "\"loader\":{\"workers\":2,\"worker_ms\":6,\"samples_per_s_disk\":2000,\"sample_bytes\":150528,\"disk_gbps\":2}"
        "}",
    };
    for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
        json_t *request = json_loads(requests[r], 0, NULL);
        assert_non_null(request);
        json_t *answer = advised(request);
        const json_t *list = json_object_get(answer, "advice"), *all = json_object_get(answer, "advice_together");
        golden_holds(json_array_size(list) >= 2, "request %zu gets %zu pieces of advice", r, json_array_size(list));
        size_t i;
        json_t *one;
        double last = INFINITY;
        json_array_foreach (list, i, one) {
            bool top = json_is_true(json_object_get(one, "on_top"));
            double saves = measured_figure(one, "saves_ms");
            if (!top) hold_to_request(request, one, measured_word(one, "change"));
            golden_holds(saves > 0 && measured_figure(one, "low_ms") <= saves &&
                             saves <= measured_figure(one, "high_ms"),
                         "%s: %g in %g to %g", measured_word(one, "change"), saves, measured_figure(one, "low_ms"),
                         measured_figure(one, "high_ms"));
            golden_holds(top || saves <= last * (1 + 0.031), "%s is out of order", measured_word(one, "change"));
            if (!top) last = saves;
        }
        hold_to_request(request, all, "all together");
        hold_to_all(request, list, all);
        json_decref(answer), json_decref(request);
    }
}

/* Patches hold the keys that they change and no others, so that in any layout all of them make what was promised. */
static void patches_merge(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3-8b", "mixtral-8x7b"}, *const dtypes[] = {"bf16", "fp16", "fp8"},
                             *const executions[] = {"eager", "fused"};
    static const char *const layouts[] = {"{\"tp\":8,\"pp\":2,\"dp\":2}", "{\"tp\":4,\"sp\":true,\"dp\":4,\"zero\":1}",
                                          "{\"dp\":16,\"zero\":3}", "{\"pp\":4,\"dp\":4,\"overlap\":false}",
                                          "{\"tp\":2,\"pp\":2,\"dp\":2,\"cp\":2}"};
    int held = 0;
    for (int i = 0; i < 2 * 3 * 2 * 5 * 2; i++) {
        char text[400];
        int micros = i / 60 ? 16 : 1, dp = i % 5 == 2 ? 16 : i % 5 == 1 || i % 5 == 3 ? 4 : 2;
        snprintf(text, sizeof text,
                 "{\"task\":\"train\",\"model\":\"%s\",\"gpu\":\"h100_sxm\",\"dtype\":\"%s\",\"execution\":\"%s\","
                 "\"batch\":1,\"parallel\":%s,\"master_weights\":%s,\"recompute\":\"full\"}",
                 models[i / 5 % 2], dtypes[i / 10 % 3], executions[i / 30 % 2], layouts[i % 5],
                 i / 60 ? "false" : "true");
        json_t *request = json_loads(text, 0, NULL);
        assert_non_null(request);
        if (micros > 1) json_object_set_new(request, "global_batch", json_integer(micros * dp));
        json_t *answer = advised(request);
        const json_t *list = json_object_get(answer, "advice"), *all = json_object_get(answer, "advice_together");
        size_t k;
        json_t *one;
        json_array_foreach (list, k, one)
            if (!json_is_true(json_object_get(one, "on_top"))) hold_to_request(request, one, text);
        if (all) hold_to_all(request, list, all), held++;
        json_decref(answer), json_decref(request);
    }
    golden_holds(held >= 60, "%d requests have several pieces of advice", held);
}

/* -- regimes ----------------------------------------------------------------------------------- */

static bool contracts(const char *kernel)
{
    static const char *const signs[] = {"gemm", "nvjet", "cutlass", "sdpa", "flash",
                                        "conv", "wgrad", "dgrad",   "xmma", "prop_"};
    if (strstr(kernel, "convert") || strstr(kernel, "compute_dot")) return false;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strstr(kernel, signs[i])) return true;
    return false;
}

/* What most of the measured kernels' time goes into; convolutions and products may be bound by memory too, so that a
 * close call is no call. */
static const char *busy_kernels_say(const json_t *row)
{
    double contraction = 0, all = 0;
    size_t i;
    json_t *kernel;
    json_array_foreach (json_object_get(json_object_get(row, "profile"), "by_kernel"), i, kernel) {
        double us = json_number_value(json_array_get(kernel, 2));
        all += us;
        if (contracts(json_string_value(json_array_get(kernel, 0)))) contraction += us;
    }
    double share = all > 0 ? contraction / all : 0.5;
    return share > 0.53 ? "compute" : share < 0.47 ? "memory" : "";
}

static void regimes(void **state)
{
    (void)state;
    int hosts = 0, large = 0;
    size_t i;
    json_t *row;
    json_array_foreach (measured, i, row) {
        if (json_object_get(row, "config")) continue; /* the first file alone */
        double over = measured_figure(row, "ms") / measured_busy(row);
        if (over > 1.5 && over < 1.7) continue; /* a close call is no call */
        bool host = over > 1.6, training = !strcmp(measured_word(row, "mode"), "train");
        if (!host && !(training && measured_figure(row, "batch") >= 8)) continue;
        json_t *request = measured_request(row), *answer = measured_answer(request);
        const char *bound = measured_word(json_object_get(answer, "regime"), "bound");
        const char *expected = host ? "overhead" : busy_kernels_say(row);
        golden_holds(*expected ? !strcmp(bound, expected) : strcmp(bound, "overhead") != 0,
                     "%s %s b%g s%g %s is bound by %s, expected %s", measured_word(row, "model"),
                     measured_word(row, "mode"), measured_figure(row, "batch"), measured_figure(row, "seq"),
                     measured_word(row, "dtype"), bound, *expected ? expected : "compute or memory");
        hosts += host;
        large += !host;
        json_decref(answer), json_decref(request);
    }
    golden_holds(hosts >= 10 && large >= 12, "%d host-bound, %d large training steps", hosts, large);
}

/* The overhead test: twice the batch costs a decode step of one sequence nothing, a large training step twice. */
static void doubling(void **state)
{
    (void)state;
    json_t *small = golden_ask(
        "{\"task\":\"decode\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"batch\":1,\"seq\":512,\"advice\":true}");
    json_t *large = golden_ask(
        "{\"task\":\"train\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"batch\":32,\"seq\":1024,\"advice\":true}");
    double few = golden_figure(small, "verdict.doubled.ratio"), many = golden_figure(large, "verdict.doubled.ratio");
    golden_holds(few < 1.1 && many > 1.8, "doubling the batch takes %g and %g times as long", few, many);
    json_decref(small), json_decref(large);
}

/* What of the step a piece of advice saves that sets this key of the layout; 0: there is none. Two sequences, as of
 * one the host's time with the experts' products would be most. */
static double saved_by(const char *key, const char *more)
{
    json_t *answer = golden_ask("{\"task\":\"train\",\"model\":\"qwen3-30b-a3b\",\"gpu\":\"h200_sxm\",\"batch\":2,"
                                "\"seq\":4096,\"dtype\":\"fp8\",\"master_weights\":true,\"execution\":\"fused\","
                                "\"parallel\":{\"dp\":16,\"ep\":16,\"zero\":1},\"advice\":true%s}",
                                more);
    const json_t *one;
    size_t n;
    double saves = 0, step = golden_figure(answer, "step_ms");
    json_array_foreach (json_object_get(answer, "advice"), n, one) {
        const json_t *layout = json_object_get(json_object_get(one, "request"), "parallel");
        if (json_object_get(layout, key)) saves = json_number_value(json_object_get(one, "saves_ms"));
    }
    json_decref(answer);
    return saves / step;
}

/* Experts over two nodes: their exchanges are most of the step, and half of what travels need not. */
static void tokens_need_not_travel_twice(void **state)
{
    (void)state;
    double saves = saved_by("expert_dispatch", "");
    golden_holds(saves > 0.2, "tokens sent once save %g of the step", saves);
}

/* And where there is another micro-batch, its kernels hide them. */
static void tokens_travel_beside_other_micro_batches(void **state)
{
    (void)state;
    double saves = saved_by("expert_overlap", ",\"global_batch\":128");
    golden_holds(saves > 0.1, "hidden exchanges save %g of the step", saves);
    saves = saved_by("expert_overlap", "");
    golden_holds(saves == 0, "with one micro-batch %g of the step are said to be saved", saves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patches),
        cmocka_unit_test(patches_merge),
        cmocka_unit_test(regimes),
        cmocka_unit_test(doubling),
        cmocka_unit_test(tokens_need_not_travel_twice),
        cmocka_unit_test(tokens_travel_beside_other_micro_batches),
    };
    return cmocka_run_group_tests(tests, measured_open, measured_close);
}
