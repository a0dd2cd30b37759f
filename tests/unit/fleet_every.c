/* Plans for serving: the search that passes things over and the one that passes nothing over find the same best, under
 * each objective; what is called optimal is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "bare_context.h"
#include "foretell.h"

static json_t *plan(const char *keys, bool exhaustive)
{
    char request[512];
    snprintf(request, sizeof request, "{\"task\":\"plan_serve\",%s%s}", keys, exhaustive ? ",\"exhaustive\":true" : "");
    char *text = ft_answer(ft, request);
    json_t *answer = json_loads(text ? text : "", 0, NULL);
    if (!json_is_true(json_object_get(answer, "ok"))) fail_msg("%s: %s", request, text);
    free(text);
    return answer;
}

static double number(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

/* The best plan without its settings: its engines, together or apart. */
static void describe(const json_t *answer, char *out, size_t room)
{
    static const char *const keys[] = {"parallel", "replicas", "disaggregated"};
    const json_t *best = json_array_get(json_object_get(answer, "plans"), 0),
                 *request = json_object_get(best, "request");
    size_t at = 0;
    *out = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *text = json_dumps(json_object_get(request, keys[i]), JSON_ENCODE_ANY | JSON_SORT_KEYS);
        at += (size_t)snprintf(out + at, at < room ? room - at : 0, "%s ", text ? text : "-");
        free(text);
    }
}

#define LLAMA "\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\","
#define LARGE "\"model\":\"llama-3.3-70b\",\"gpu\":\"h100_sxm\","

static const struct {
    const char *objective, *keys;
} cases[] = {
    {"gpus", LLAMA "\"rate\":60,\"isl\":512,\"osl\":64,\"slo\":{\"ttft_ms\":300,\"tpot_ms\":20}"},
    {"gpus",
     LLAMA "\"rate\":30,\"isl\":4000,\"osl\":50,\"slo\":{\"ttft_ms\":800,\"tpot_ms\":25},\"search\":{\"tp\":[1,2]}"},
    /* Engines of the prompts' layout alone miss the answers' objective. */
    {"gpus", LARGE "\"rate\":10,\"isl\":1000,\"osl\":100,\"slo\":{\"ttft_ms\":800,\"tpot_ms\":30}"},
    {"gpus",
     "\"model\":\"qwen3-32b\",\"gpu\":\"h200_sxm\",\"rate\":8,\"isl\":1000,\"osl\":60,\"slo\":{\"ttft_ms\":1000,"
     "\"tpot_ms\":30},\"search\":{\"tp\":[1,2]}"},
    {"gpus",
     "\"model\":\"qwen3-30b-a3b\",\"gpu\":\"h100_sxm\",\"rate\":80,\"isl\":500,\"osl\":50,\"slo\":{\"ttft_ms\":500,"
     "\"tpot_ms\":25},\"search\":{\"tp\":1,\"ep\":[1,2]}"},
    {"rate", LLAMA "\"gpus\":2,\"isl\":512,\"osl\":64,\"slo\":{\"ttft_ms\":300,\"tpot_ms\":20}"},
    {"rate", LARGE "\"gpus\":4,\"isl\":1000,\"osl\":100,\"slo\":{\"ttft_ms\":1000,\"tpot_ms\":40}"},
    {"rate", LLAMA "\"gpus\":2,\"engine\":\"trtllm\",\"isl\":2000,\"osl\":50,\"slo\":{\"e2e_ms\":3000}"},
    {"tokens", LLAMA "\"gpus\":4,\"isl\":512,\"osl\":64"},
    {"tokens", LARGE "\"gpus\":8,\"isl\":1000,\"osl\":100"},
    {"tokens", "\"model\":\"qwen3-32b\",\"gpu\":\"a100_sxm_80gb\",\"gpus\":4,\"isl\":512,\"osl\":64"},
};

static void both_find_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *some = plan(cases[i].keys, false), *all = plan(cases[i].keys, true);
        const json_t *x = json_array_get(json_object_get(some, "plans"), 0);
        const json_t *y = json_array_get(json_object_get(all, "plans"), 0);
        char one[256], two[256];
        describe(some, one, sizeof one);
        describe(all, two, sizeof two);
        bool same = !strcmp(one, two) && fabs(number(x, "gpus") - number(y, "gpus")) < 0.5;
        /* as far as a search for a rate goes */
        same = same && fabs(number(x, "rate") / number(y, "rate") - 1) < 0.02;
        if (!same) fail_msg("%s:\n%s %g\n%s %g", cases[i].keys, one, number(x, "rate"), two, number(y, "rate"));
        assert_string_equal(json_string_value(json_object_get(some, "objective")), cases[i].objective);
        assert_true(number(all, "simulations") > number(some, "simulations"));
        json_decref(some);
        json_decref(all);
    }
}

/* Where nothing else meets the objectives there are stages. */
static void stages_are_tried_where_they_help(void **state)
{
    static const char keys[] = "\"model\":\"llama-3.3-70b\",\"gpu\":\"l40s\",\"isl\":2000,\"osl\":60,\"rate\":5,"
                               "\"engine\":\"trtllm\",\"slo\":{\"ttft_ms\":500,\"tpot_ms\":25}";
    json_t *answer = plan(keys, false);
    const json_t *best = json_array_get(json_object_get(answer, "plans"), 0);
    (void)state;
    assert_non_null(best);
    assert_true(number(best, "gpus") < 200);
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_find_the_same),
                                       cmocka_unit_test(stages_are_tried_where_they_help)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
