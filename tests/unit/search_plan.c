/* Plans: pruned and exhaustive search find the same, a plan's request is answered with its time, ties have equal
 * chances, and what cannot be says why. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "bare_context.h"
#include "foretell.h"
#include "search/plan.h"

static json_t *ask(const char *request)
{
    char *text = ft_answer(ft, request);
    assert_non_null(text);
    json_t *answer = json_loads(text, 0, NULL);
    if (!answer) fail_msg("%s", text);
    free(text);
    return answer;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number \"%s\"", key);
    return json_number_value(value);
}

static json_t *plan(const char *keys, bool exhaustive)
{
    char request[512];
    snprintf(request, sizeof request, "{\"task\":\"plan\",%s%s}", keys, exhaustive ? ",\"exhaustive\":true" : "");
    json_t *answer = ask(request);
    if (!json_is_true(json_object_get(answer, "ok"))) {
        char *text = json_dumps(answer, 0);
        fail_msg("%s: %s", request, text);
    }
    return answer;
}

/* Dense and sparse, wide and deep, of every framework; small enough to forecast all of. */
static const char *const cases[] = {
    "\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":32,\"seq\":4096",
    "\"model\":\"llama-3-70b\",\"gpu\":\"h200_sxm\",\"gpus\":32,\"global_batch\":64,\"seq\":4096,\"search\":{\"batch\":"
    "[1,2]}",
    "\"model\":\"gpt3-13b\",\"gpu\":\"a100_sxm_80gb\",\"gpus\":16,\"global_batch\":64,\"seq\":2048",
    "\"model\":\"mixtral-8x7b\",\"gpu\":\"h100_sxm\",\"gpus\":16,\"global_batch\":32,\"seq\":2048,\"search\":{\"cp\":1,"
    "\"batch\":[1,2]}",
    "\"model\":\"qwen3-30b-a3b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":16,\"seq\":2048,\"search\":{\"cp\":1,"
    "\"batch\":[1,2]}",
    "\"model\":\"deepseek-v2-lite\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":16,\"seq\":2048,"
    "\"search\":{\"tp\":[1,2],\"cp\":1,\"batch\":1}",
    "\"model\":\"llama-3-8b\",\"gpu\":\"a100_sxm_80gb\",\"gpus\":16,\"global_batch\":64,\"framework\":\"torchtitan\","
    "\"search\":{\"cp\":1,\"batch\":[1,2]}",
    "\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":64,\"framework\":\"fsdp\"",
    "\"model\":\"llama-2-7b\",\"gpu\":\"a100_sxm_40gb\",\"gpus\":8,\"global_batch\":64,\"framework\":\"deepspeed\"",
    "\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":16,\"global_batch\":32,\"seq\":2048,\"objective\":"
    "\"energy\"",
    "\"model\":\"llama-3-8b\",\"gpu\":\"a100_sxm_40gb\",\"gpus\":8,\"global_batch\":32,\"seq\":2048,"
    "\"search\":{\"cp\":1},\"objective\":\"memory\"",
    "\"model\":\"llama-3-8b\",\"gpu\":\"a100_sxm_40gb\",\"gpus\":8,\"global_batch\":64,\"framework\":\"deepspeed\","
    "\"allow\":[\"offload\"]",
    "\"model\":\"llama-3-8b\",\"gpu\":\"a100_sxm_40gb\",\"gpus\":8,\"global_batch\":32,\"seq\":4096,\"allow\":"
    "\"offload\","
    "\"search\":{\"cp\":1,\"batch\":[1,2]}",
    "\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":16,\"global_batch\":16,\"seq\":16384,\"allow\":"
    "\"cp_kinds\",\"search\":{\"tp\":[1,2],\"pp\":[1,2],\"vpp\":1}",
    "\"model\":\"llama-3-8b\",\"gpu\":\"l40s\",\"gpus\":16,\"global_batch\":32,\"seq\":2048",
    "\"model\":\"bert-base\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":512,\"seq\":512",
    "\"model\":\"resnet50\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":2048",
};
enum { CASES = sizeof cases / sizeof *cases };

static void pruned_search_finds_what_all_of_it_finds(void **state)
{
    (void)state;
    size_t spared = 0;
    for (size_t i = 0; i < CASES; i++) {
        json_t *some = plan(cases[i], false), *all = plan(cases[i], true);
        const json_t *a = json_object_get(some, "plans"), *b = json_object_get(all, "plans");
        assert_string_equal("optimal", json_string_value(json_object_get(some, "proof")));
        assert_int_equal(number(some, "candidates"), number(all, "candidates"));
        assert_int_equal(json_array_size(a), json_array_size(b));
        if (!json_array_size(a)) fail_msg("%s: nothing fits", cases[i]);
        for (size_t k = 0; k < json_array_size(a); k++)
            if (!json_equal(json_array_get(a, k), json_array_get(b, k)))
                fail_msg("%s: plan %zu takes %g ms, of all %g", cases[i], k, number(json_array_get(a, k), "step_ms"),
                         number(json_array_get(b, k), "step_ms"));
        if (!json_equal(json_object_get(some, "would_fit"), json_object_get(all, "would_fit")))
            fail_msg("%s: another layout is the nearest that does not fit", cases[i]);
        const json_t *fastest = json_array_get(json_object_get(some, "pareto"), 0);
        if (!json_equal(fastest, json_array_get(json_object_get(all, "pareto"), 0)))
            fail_msg("%s: another layout is the fastest that fits", cases[i]);
        spared += number(some, "forecast") < 0.7 * number(all, "forecast");
        json_decref(some);
        json_decref(all);
    }
    if (spared < CASES / 2) fail_msg("pruning spared much in %zu of %d cases", spared, CASES);
}

/* Eight images, or eight short sentences, fill no GPU. */
static void short_sequences_and_pictures_come_in_large_micro_batches(void **state)
{
    (void)state;
    for (size_t i = CASES - 2; i < CASES; i++) {
        json_t *answer = plan(cases[i], false);
        const json_t *best = json_array_get(json_object_get(answer, "plans"), 0);
        if (!(number(best, "batch") > 8)) fail_msg("%s: micro-batch %g", cases[i], number(best, "batch"));
        json_decref(answer);
    }
}

/* The search asks by other doors than a user does. */
static void a_plan_is_what_its_request_is_answered_with(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        json_t *answer = plan(cases[i], false);
        const json_t *one;
        size_t k;
        json_array_foreach (json_object_get(answer, "plans"), k, one) {
            char *request = json_dumps(json_object_get(one, "request"), 0);
            json_t *step = ask(request);
            if (!json_is_true(json_object_get(step, "ok"))) fail_msg("%s is refused", request);
            if (fabs(number(step, "step_ms") - number(one, "step_ms")) > 1e-9 * number(one, "step_ms"))
                fail_msg("%s takes %g ms, planned %g", request, number(step, "step_ms"), number(one, "step_ms"));
            assert_true(json_is_true(json_object_get(json_object_get(step, "memory"), "fits")));
            json_decref(step);
            free(request);
        }
        json_decref(answer);
    }
}

static void what_a_runner_up_loses_adds_up(void **state)
{
    (void)state;
    json_t *answer = plan(cases[1], false);
    const json_t *one, *cause;
    size_t i, k;
    assert_true(json_array_size(json_object_get(answer, "runners_up")) > 0);
    json_array_foreach (json_object_get(answer, "runners_up"), i, one) {
        double sum = 0, step = number(one, "step_ms");
        json_array_foreach (json_object_get(one, "causes"), k, cause) sum += number(cause, "change_ms");
        if (fabs(sum - number(one, "behind_ms")) > 1e-3 * step)
            fail_msg("behind by %g ms, causes add up to %g", number(one, "behind_ms"), sum);
    }
    json_decref(answer);
}

/* On GPUs that are too small for states, what may lie on the host does, where that is faster; the request says so. */
static void what_lies_on_the_host_is_searched(void **state)
{
    (void)state;
    json_t *without = plan(cases[8], false);
    char keys[256];
    snprintf(keys, sizeof keys, "%s,\"allow\":[\"offload\"]", cases[8]);
    json_t *with = plan(keys, false);
    const json_t *best = json_array_get(json_object_get(with, "plans"), 0),
                 *before = json_array_get(json_object_get(without, "plans"), 0);
    assert_true(number(with, "candidates") > number(without, "candidates"));
    assert_true(number(best, "step_ms") < number(before, "step_ms"));
    assert_null(json_object_get(before, "offload"));
    assert_true(
        json_equal(json_object_get(best, "offload"), json_object_get(json_object_get(best, "request"), "offload")));
    json_decref(without);
    json_decref(with);
    const char *const kept = "\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":32,"
                             "\"framework\":\"fsdp\",\"offload\":[\"parameters\"]";
    json_t *all = plan(kept, false);
    const json_t *one;
    size_t i;
    json_array_foreach (json_object_get(all, "plans"), i, one)
        assert_string_equal("parameters", json_string_value(json_array_get(json_object_get(one, "offload"), 0)));
    assert_true(i > 0);
    json_decref(all);
}

/* What would make a faster layout fit is something that its framework has. */
static void a_remedy_is_one_of_the_framework(void **state)
{
    (void)state;
    json_t *answer = plan(cases[8], false);
    const json_t *faster = json_array_get(json_object_get(answer, "would_fit"), 0);
    const char *remedy = json_string_value(json_object_get(faster, "remedy"));
    if (!remedy || !*remedy || strstr(remedy, "selective") || strstr(remedy, "tp") || strstr(remedy, "pp"))
        fail_msg("it would fit with \"%s\"", remedy ? remedy : "");
    json_decref(answer);
}

/* The plans again over slower networks, and at the ends of their intervals. */
static void other_assumptions_name_their_best(void **state)
{
    (void)state;
    json_t *answer = plan(cases[2], false);
    const json_t *plans = json_object_get(answer, "plans"), *list = json_object_get(answer, "sensitivity"), *one;
    size_t i, k;
    assert_int_equal(4, json_array_size(list));
    json_array_foreach (list, i, one) {
        const json_t *ms = json_object_get(one, "step_ms");
        size_t best = (size_t)number(one, "best_plan");
        assert_int_equal(json_array_size(plans), json_array_size(ms));
        for (k = 0; k < json_array_size(ms); k++) {
            double step = json_number_value(json_array_get(ms, k));
            const json_t *own = json_array_get(plans, k);
            assert_true(step >= json_number_value(json_array_get(ms, best)));
            double wanted = i == 2 ? number(own, "low_ms") : i == 3 ? number(own, "high_ms") : 0;
            if (i < 2) assert_true(step >= number(own, "step_ms") * (1 - 1e-5));
            if (i > 1) assert_true(fabs(step - wanted) < 1e-4 * wanted);
        }
    }
    json_decref(answer);
}

/* Time against GPUs: the fewest first, those asked for among them with the first plan's step. */
static void other_numbers_of_gpus_have_plans(void **state)
{
    (void)state;
    char keys[256];
    snprintf(keys, sizeof keys, "%s,\"by_gpus\":true", cases[0]);
    json_t *answer = plan(keys, false);
    const json_t *list = json_object_get(answer, "by_gpus"), *one;
    double gpus = 0, fastest = INFINITY;
    size_t i;
    assert_int_equal(5, json_array_size(list));
    json_array_foreach (list, i, one) {
        assert_true(number(one, "gpus") > gpus);
        gpus = number(one, "gpus");
        if (!json_is_true(json_object_get(one, "fits"))) continue;
        double step = number(one, "step_ms");
        assert_true(json_is_true(json_object_get(one, "front")) == (step < fastest));
        if (step < fastest) fastest = step;
        if (gpus == 8) assert_true(step == number(json_array_get(json_object_get(answer, "plans"), 0), "step_ms"));
    }
    assert_int_equal(16, gpus);
    json_decref(answer);
}

/* Faster is larger, all along. */
static void the_front_falls(void **state)
{
    (void)state;
    json_t *answer = plan(cases[0], false);
    double step = 0, bytes = INFINITY;
    const json_t *one;
    size_t i;
    assert_true(json_array_size(json_object_get(answer, "pareto")) > 1);
    json_array_foreach (json_object_get(answer, "pareto"), i, one) {
        const json_t *memory = json_object_get(one, "memory");
        double held = number(memory, "reserved_bytes") + number(memory, "context_bytes");
        assert_true(number(one, "step_ms") >= step && held < bytes);
        step = number(one, "step_ms");
        bytes = held;
    }
    json_decref(answer);
}

static void chances_follow_the_distance(void **state)
{
    double even[] = {100, 100, 100}, apart[] = {100, 105, 130}, far[] = {100, 200}, out[3];
    (void)state;
    ft__plan_chances(even, 3, 0.14, out);
    for (int i = 0; i < 3; i++) assert_true(fabs(out[i] - 1.0 / 3) < 1e-9);
    ft__plan_chances(apart, 3, 0.14, out);
    assert_true(out[0] > out[1] && out[1] > out[2] && fabs(out[0] + out[1] + out[2] - 1) < 1e-9);
    ft__plan_chances(far, 2, 0.14, out);
    assert_true(out[0] > 0.999);
    /* What the constant was taken from: two layouts 5 % and 15 % apart. */
    double five[] = {100, 105}, fifteen[] = {100, 115};
    ft__plan_chances(five, 2, 0.14, out);
    assert_true(out[0] > 0.6 && out[0] < 0.69);
    ft__plan_chances(fifteen, 2, 0.14, out);
    assert_true(out[0] > 0.8 && out[0] < 0.9);
}

static void what_cannot_be_says_why(void **state)
{
    static const struct {
        const char *keys, *where, *says;
    } bad[] = {
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"global_batch\":32", "gpus", "missing"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8", "global_batch", "missing"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,\"framework\":\"megatorn\"",
         "framework", "did you mean \"megatron\""},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,\"search\":{\"tq\":2}",
         "search.tq", "did you mean \"tp\""},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,\"search\":{\"tp\":\"some\"}",
         "search.tp", "auto"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,\"search\":{\"zero\":3}",
         "search.zero", "has no zero 3"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,\"parallel\":{\"dp\":2}",
         "parallel.dp", "follows"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":7,\"search\":{\"tp\":1,\"pp\":1}",
         "search.tp", "do not divide the global batch; 2 would do"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,\"search\":{\"tp\":3,\"pp\":5}",
         "search",
         "no layout of 8 GPUs has tp 3: it does not divide the GPUs; 4 would do. pp 5: it does not divide the "
         "GPUs; 2 would do"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":7,\"framework\":\"fsdp\"",
         "global_batch", "a global batch of 8 would do, or 7 GPUs"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,\"offload\":[\"parameters\"]",
         "offload", "plans of Megatron-Core do not keep that on the host"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,\"offload\":[\"activations\"],"
         "\"search\":{\"pp\":2}",
         "search.pp", "1 would do"},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,\"gpuss\":8", "gpuss",
         "did you mean \"gpus\""},
        {"\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":8,"
         "\"constraints\":{\"memory_margin\":2}",
         "constraints.memory_margin", "0.9"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char request[512];
        snprintf(request, sizeof request, "{\"task\":\"plan\",%s}", bad[i].keys);
        json_t *answer = ask(request), *error = json_object_get(answer, "error");
        const char *where = json_string_value(json_object_get(error, "where"));
        const char *message = json_string_value(json_object_get(error, "message"));
        if (!message || !where || strcmp(where, bad[i].where) != 0 || !strstr(message, bad[i].says))
            fail_msg("%s: \"%s\" at \"%s\"", request, message ? message : "answered", where ? where : "");
        json_decref(answer);
    }
}

static void nothing_fits_names_a_cluster_that_would(void **state)
{
    (void)state;
    json_t *none = plan("\"model\":\"llama-3-70b\",\"gpu\":\"h100_sxm\",\"gpus\":2,\"global_batch\":16", false);
    assert_true(json_is_false(json_object_get(none, "fits")));
    assert_int_equal(0, json_array_size(json_object_get(none, "plans")));
    double least = number(none, "least_gpus");
    assert_true(least > 2 && least <= 64);
    json_decref(none);
    char keys[160];
    snprintf(keys, sizeof keys, "\"model\":\"llama-3-70b\",\"gpu\":\"h100_sxm\",\"gpus\":%g,\"global_batch\":%g", least,
             fmax(16, least));
    json_t *some = plan(keys, false);
    assert_true(json_array_size(json_object_get(some, "plans")) > 0);
    json_decref(some);
}

/* A margin takes plans away, and never makes the best one faster. */
static void a_margin_costs_time(void **state)
{
    (void)state;
    double before = 0;
    for (int percent = 0; percent <= 40; percent += 20) {
        char keys[256];
        snprintf(keys, sizeof keys, "%s,\"constraints\":{\"memory_margin\":%g}", cases[0], percent / 100.0);
        json_t *answer = plan(keys, false);
        double best = number(json_array_get(json_object_get(answer, "plans"), 0), "step_ms");
        assert_true(best >= before);
        before = best;
        json_decref(answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pruned_search_finds_what_all_of_it_finds),
        cmocka_unit_test(short_sequences_and_pictures_come_in_large_micro_batches),
        cmocka_unit_test(a_plan_is_what_its_request_is_answered_with),
        cmocka_unit_test(what_a_runner_up_loses_adds_up),
        cmocka_unit_test(what_lies_on_the_host_is_searched),
        cmocka_unit_test(a_remedy_is_one_of_the_framework),
        cmocka_unit_test(other_assumptions_name_their_best),
        cmocka_unit_test(other_numbers_of_gpus_have_plans),
        cmocka_unit_test(the_front_falls),
        cmocka_unit_test(chances_follow_the_distance),
        cmocka_unit_test(what_cannot_be_says_why),
        cmocka_unit_test(nothing_fits_names_a_cluster_that_would),
        cmocka_unit_test(a_margin_costs_time),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
