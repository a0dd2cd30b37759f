/* Requests for whole models, answered: sums, layers, tasks, remedies, what a scratch remembers, allocations that fail.
 */
#include <stdio.h>

#include "model_requests.h"

static void a_scratch_remembers_models(void **state)
{
    (void)state;
    const ft_arch *first = reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\"}").arch;
    assert_ptr_equal(first, reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\"}").arch);
    for (int i = 1; i <= FT_REMEMBERED_MODELS + 2; i++) {
        char text[160];
        snprintf(text, sizeof text, "{\"model\":{\"model_type\":\"gpt2\",\"n_layer\":%d},\"gpu\":\"h200_sxm\"}", i);
        assert_int_equal(i, reads(text).arch->layers);
    }
    assert_int_equal(12, reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\"}").arch->layers);
}

/* -- answers ----------------------------------------------------------------------------------- */

static json_t *answer_of(const char *request)
{
    ft_text out = {0};
    json_t *answer = NULL;
    ft_error err = {0};
    ft__answer(ft, &scratch, request, strlen(request), 0, &out);
    if (ft__json_parse(out.at, out.length, "", &answer, &err) != FT_OK) fail_msg("%s: %s", err.message, out.at);
    if (!json_is_true(json_object_get(answer, "ok"))) fail_msg("%s", out.at);
    ft__text_free(&out);
    return answer;
}

static double figure(const json_t *answer, const char *object, const char *key)
{
    const json_t *value = json_object_get(object ? json_object_get(answer, object) : answer, key);
    if (!json_is_number(value)) fail_msg("no figure \"%s\"", key);
    return json_number_value(value);
}

static bool near(double a, double b, double share) { return a >= b * (1 - share) && a <= b * (1 + share); }

#define SMALL "\"model\":{\"model_type\":\"gpt2\",\"n_layer\":4},\"gpu\":\"h200_sxm\",\"batch\":4,\"seq\":512"

static void a_step_adds_up(void **state)
{
    (void)state;
    json_t *a = answer_of("{\"id\":\"s\",\"task\":\"train\"," SMALL ",\"recompute\":\"full\",\"detail\":\"kernels\"}");
    assert_string_equal("s", json_string_value(json_object_get(a, "id")));
    double step = figure(a, NULL, "step_ms"), busy = figure(a, NULL, "busy_ms");
    double phases = figure(a, NULL, "forward_ms") + figure(a, NULL, "backward_ms") + figure(a, NULL, "optimizer_ms") +
                    figure(a, NULL, "recompute_ms");
    assert_true(figure(a, NULL, "low_ms") <= step && step <= figure(a, NULL, "high_ms") && step >= busy * 0.999);
    assert_true(near(phases, busy, 1e-4) && figure(a, NULL, "recompute_ms") > 0);
    assert_true(figure(a, NULL, "hfu") > figure(a, NULL, "mfu"));
    double regime = figure(a, "regime", "compute") + figure(a, "regime", "memory") + figure(a, "regime", "overhead") +
                    figure(a, "regime", "communication");
    assert_true(near(regime, 1, 1e-4));
    static const char *const parts[] = {"weights_bytes",     "gradients_bytes", "optimizer_bytes",
                                        "activations_bytes", "temporary_bytes", "kv_cache_bytes"};
    double sum = 0;
    for (int i = 0; i < 6; i++) sum += figure(a, "memory", parts[i]);
    assert_true(near(sum, figure(a, "memory", "peak_bytes"), 1e-9));
    assert_true(json_is_true(json_object_get(json_object_get(a, "memory"), "fits")));
    size_t i;
    json_t *kernel;
    double launches = 0, total = 0;
    json_array_foreach (json_object_get(a, "kernels"), i, kernel) {
        launches += figure(kernel, NULL, "count");
        total += figure(kernel, NULL, "total_ms");
        assert_true(
            near(figure(kernel, NULL, "total_ms"), figure(kernel, NULL, "count") * figure(kernel, NULL, "ms"), 1e-4));
    }
    assert_true(i > 20 && near(total, busy, 1e-3) && near(launches, figure(a, NULL, "launches"), 1e-6));
    json_decref(a);
}

static void layers_add_up(void **state)
{
    (void)state;
    json_t *a = answer_of("{\"task\":\"train\"," SMALL ",\"detail\":\"layers\"}"), *layer;
    size_t i;
    double parameters = 0, ms = 0, saved = 0;
    json_array_foreach (json_object_get(a, "layers"), i, layer) {
        parameters += figure(layer, NULL, "parameters");
        saved += figure(layer, NULL, "activations_bytes");
        ms += figure(layer, NULL, "forward_ms") + figure(layer, NULL, "backward_ms") +
              figure(layer, NULL, "recompute_ms");
    }
    assert_true(parameters == figure(a, NULL, "parameters"));
    assert_true(near(ms, figure(a, NULL, "busy_ms"), 1e-3) && saved > 0);
    assert_null(json_object_get(a, "kernels"));
    json_decref(a);
}

static void each_task_answers_its_own(void **state)
{
    (void)state;
    json_t *prefill = answer_of("{\"task\":\"prefill\"," SMALL "}"),
           *decode = answer_of("{\"task\":\"decode\"," SMALL "}"),
           *memory = answer_of("{\"task\":\"memory\"," SMALL "}"), *train = answer_of("{\"task\":\"train\"," SMALL "}");
    assert_true(figure(prefill, NULL, "ttft_ms") == figure(prefill, NULL, "step_ms"));
    assert_true(figure(decode, NULL, "tpot_ms") == figure(decode, NULL, "step_ms"));
    assert_true(figure(decode, "memory", "kv_cache_bytes") > 0);
    assert_null(json_object_get(memory, "step_ms"));
    assert_true(figure(memory, "memory", "peak_bytes") == figure(train, "memory", "peak_bytes"));
    json_decref(prefill);
    json_decref(decode);
    json_decref(memory);
    json_decref(train);
}

static void what_does_not_fit_is_answered_with_a_remedy(void **state)
{
    (void)state;
    json_t *a =
        answer_of("{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"batch\":8,\"seq\":4096}");
    const json_t *memory = json_object_get(a, "memory");
    assert_true(json_is_false(json_object_get(memory, "fits")));
    assert_true(json_string_length(json_object_get(memory, "remedy")) > 0);
    double short_bytes = figure(a, "memory", "reserved_bytes") + figure(a, "memory", "context_bytes") -
                         figure(a, "memory", "capacity_bytes");
    assert_true(near(figure(a, "memory", "short_bytes"), short_bytes, 1e-9) && figure(a, NULL, "step_ms") > 0);
    json_decref(a);
}

/* The same request gives the same bytes, whatever was asked before. */
static void answers_do_not_depend_on_what_was_asked_before(void **state)
{
    (void)state;
    const char *request = "{\"task\":\"train\"," SMALL ",\"detail\":\"kernels\"}";
    ft_text one = {0}, two = {0};
    ft_scratch fresh = {0};
    ft__answer(ft, &scratch, request, strlen(request), 0, &one);
    json_decref(answer_of("{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"mi300x\"}"));
    ft__answer(ft, &fresh, request, strlen(request), 0, &two);
    assert_string_equal(one.at, two.at);
    ft__text_clear(&two);
    ft__answer(ft, &scratch, request, strlen(request), 0, &two);
    assert_string_equal(one.at, two.at);
    ft__scratch_free(&fresh);
    ft__text_free(&one);
    ft__text_free(&two);
}

static ft_status attempt(void *context)
{
    ft_text out = {0};
    ft_scratch fresh = {0};
    const char *request = context;
    ft__answer(ft, &fresh, request, strlen(request), 0, &out);
    bool answered = !out.failed && !strncmp(out.at, "{\"ok\":true", 10);
    bool no_memory = out.failed || strstr(out.at, "\"out_of_memory\"");
    if (!answered && !no_memory) fail_msg("%s", out.at);
    ft__scratch_free(&fresh);
    ft__text_free(&out);
    return answered ? FT_OK : FT_E_MEMORY;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    static char layers[] = "{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"t4\",\"dtype\":\"fp16\","
                           "\"detail\":\"layers\"}",
                kernels[] = "{\"task\":\"train\"," SMALL ",\"detail\":\"kernels\"}";
    assert_true(failing_alloc_sweep(attempt, layers) > 10);
    assert_true(failing_alloc_sweep(attempt, kernels) > 10);
}

/* No request within the other limits is known to need all that a request may have; this one may have little. */
static void a_step_that_needs_more_than_a_request_may_have_is_refused(void **state)
{
    (void)state;
    const char *request = "{\"task\":\"train\"," SMALL "}";
    ft_text out = {0};
    ft_scratch fresh = {.arena = ft__arena_new(4096)};
    assert_non_null(fresh.arena);
    ft__answer(ft, &fresh, request, strlen(request), 0, &out);
    assert_non_null(strstr(out.at, "\"code\":\"out_of_range\",\"message\":\"the step is too large to forecast: its "));
    assert_non_null(strstr(out.at, "need more than 512 MiB; fewer stages, micro-batches or kinds of layers would do"));
    ft__scratch_free(&fresh);
    ft__text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scratch_remembers_models),
        cmocka_unit_test(a_step_adds_up),
        cmocka_unit_test(layers_add_up),
        cmocka_unit_test(each_task_answers_its_own),
        cmocka_unit_test(what_does_not_fit_is_answered_with_a_remedy),
        cmocka_unit_test(answers_do_not_depend_on_what_was_asked_before),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
        cmocka_unit_test(a_step_that_needs_more_than_a_request_may_have_is_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
