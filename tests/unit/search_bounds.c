/* What a search may leave out: bounds are below forecasts, or a proof is none; and what is missing on the front of time
 * against memory is no better than a twentieth, in both. */
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
#include "base/json.h"
#include "foretell.h"
#include "search/plan.h"

static json_t *plan(const char *keys, bool exhaustive)
{
    char request[512];
    snprintf(request, sizeof request, "{\"task\":\"plan\",%s%s}", keys, exhaustive ? ",\"exhaustive\":true" : "");
    char *text = ft_answer(ft, request);
    assert_non_null(text);
    json_t *answer = json_loads(text, 0, NULL);
    if (!json_is_true(json_object_get(answer, "ok"))) fail_msg("%s: %s", request, text);
    free(text);
    return answer;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number \"%s\"", key);
    return json_number_value(value);
}

static double held(const json_t *one)
{
    const json_t *memory = json_object_get(one, "memory");
    return number(memory, "reserved_bytes") + number(memory, "context_bytes");
}

/* Fronts with much between their ends: experts, long sequences, states on the host, adapters, memory as the goal. */
static const char *const cases[] = {
    "\"model\":\"llama-3-70b\",\"gpu\":\"h100_sxm\",\"gpus\":64,\"global_batch\":256,\"seq\":8192,\"search\":"
    "{\"batch\":[1,2]}",
    "\"model\":\"olmoe-1b-7b\",\"gpu\":\"h100_pcie\",\"gpus\":8,\"global_batch\":64,\"seq\":16384,\"allow\":"
    "[\"offload\",\"cp_kinds\"],\"search\":{\"ep\":8}",
    "\"model\":\"phi-3-mini\",\"gpu\":\"a100_sxm_40gb\",\"gpus\":8,\"global_batch\":16,\"seq\":2048,\"framework\":"
    "\"nemo\",\"allow\":[\"offload\"]",
    "\"model\":\"phi-3-mini\",\"gpu\":\"h200_sxm\",\"gpus\":48,\"global_batch\":384,\"seq\":2048,\"framework\":"
    "\"torchtitan\",\"allow\":[\"offload\"],\"recompute\":\"none\"",
    "\"model\":\"mixtral-8x7b\",\"gpu\":\"h200_sxm\",\"gpus\":16,\"global_batch\":128,\"seq\":3000,\"lora_rank\":16,"
    "\"search\":{\"batch\":[1,2]}",
    "\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":16,\"global_batch\":64,\"seq\":4096,\"objective\":"
    "\"memory\"",
};
enum { CASES = sizeof cases / sizeof *cases };

static void a_front_is_what_all_of_it_would_give(void **state)
{
    static const double less = 0.95 * 0.95; /* to be looked at, and to be listed */
    size_t spared = 0;
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        json_t *some = plan(cases[i], false), *all = plan(cases[i], true);
        const json_t *front = json_object_get(some, "pareto"), *every = json_object_get(all, "pareto"), *one, *other;
        double fastest = number(json_array_get(every, 0), "step_ms");
        bool however_slow = strstr(cases[i], "\"memory\"");
        size_t k, j;
        json_array_foreach (every, k, one) {
            double step = 1.05 * number(one, "step_ms"), most = held(one) / less;
            bool there = !however_slow && step > 1.5 * fastest; /* what stands for it may be too slow to be listed */
            json_array_foreach (front, j, other) there |= number(other, "step_ms") <= step && held(other) <= most;
            if (!there)
                fail_msg("%s: nothing in %g ms and %g GiB", cases[i], number(one, "step_ms"), held(one) / 1073741824);
        }
        spared += number(some, "forecast") < 0.5 * number(all, "forecast");
        json_decref(some);
        json_decref(all);
    }
    if (spared < CASES / 2) fail_msg("%zu of %d were pruned", spared, CASES);
}

/* Where a layer of a pipeline is no share of a whole model: parameters that are gathered once or in every pass, hosts
 * that are waited for, stages without data ranks, layers that do not divide, ends that weigh more than a layer. */
static const char *const uneven[] = {
    "\"model\":\"llama-3-8b\",\"gpu\":\"h100_pcie\",\"gpus\":56,\"global_batch\":224,\"seq\":1024,\"framework\":"
    "\"torchtitan\",\"search\":{\"tp\":[2,4]}",
    "\"model\":\"phi-3-mini\",\"gpu\":\"h200_sxm\",\"gpus\":48,\"global_batch\":384,\"seq\":2048,\"framework\":"
    "\"torchtitan\",\"search\":{\"tp\":1}",
    "\"model\":\"llama-2-13b\",\"gpu\":\"b200_sxm\",\"gpus\":8,\"global_batch\":36,\"seq\":4096,\"lora_rank\":16,"
    "\"search\":{\"batch\":1}",
    "\"model\":\"qwen2.5-32b\",\"gpu\":\"h200_sxm\",\"gpus\":96,\"global_batch\":48,\"seq\":1024,\"search\":{\"tp\":"
    "[2,4]}",
    "\"model\":\"phi-3-mini\",\"gpu\":\"l40s\",\"gpus\":24,\"global_batch\":48,\"seq\":4096,\"search\":{\"tp\":2}",
    "\"model\":\"phi-3-mini\",\"gpu\":\"gb200\",\"gpus\":8,\"global_batch\":8,\"seq\":2048",
    "\"model\":\"mixtral-8x7b\",\"gpu\":\"h200_sxm\",\"gpus\":48,\"global_batch\":192,\"seq\":2048,\"search\":{"
    "\"tp\":2,\"cp\":1,\"batch\":[4,8]}",
    "\"model\":\"deepseek-v2\",\"gpu\":\"gb200\",\"gpus\":32,\"global_batch\":32,\"seq\":3000,\"search\":{\"tp\":8,"
    "\"ep\":8}",
    "\"model\":\"gpt2\",\"gpu\":\"a100_sxm_80gb\",\"gpus\":4,\"global_batch\":100,\"seq\":1024,\"framework\":\"ddp\"",
};
enum { UNEVEN = sizeof uneven / sizeof *uneven };

static void bounds_are_below(void **state)
{
    static ft_plan p;
    ft_error err = {0};
    (void)state;
    for (size_t i = 0; i < UNEVEN; i++) {
        char text[512];
        json_t *document = NULL;
        ft_scratch scratch = {0};
        ft_plan_request request;
        size_t seen = 0;
        snprintf(text, sizeof text, "{\"task\":\"plan\",\"exhaustive\":true,%s}", uneven[i]);
        if (ft__json_parse(text, strlen(text), "", &document, &err) != FT_OK ||
            ft__plan_request_read(document, &request, &err) != FT_OK ||
            ft__plan_of(ft, &scratch, &request, &p, &err) != FT_OK)
            fail_msg("%s: %s", uneven[i], err.message);
        for (size_t k = 0; k < p.search.candidate_count; k++) {
            const ft_candidate *c = &p.search.candidates[k];
            if (c->fate != FT_FATE_FORECAST) continue;
            double bytes = c->memory.reserved_bytes + c->memory.context_bytes;
            if (c->bound_ms > c->step_ms || c->least_bytes > bytes || c->least_joules > c->energy.joules)
                fail_msg("%s: tp %d, pp %d x %d, dp %d takes %g ms of %g, %g bytes of %g, %g J of %g", uneven[i],
                         (int)c->layout.parallel.tp, (int)c->layout.parallel.pp, (int)c->layout.parallel.vpp,
                         (int)c->layout.parallel.dp, c->step_ms, c->bound_ms, bytes, c->least_bytes, c->energy.joules,
                         c->least_joules);
            seen++;
        }
        if (!seen) fail_msg("%s: nothing was forecast", uneven[i]);
        ft__plan_free(&p);
        ft__plan_request_free(&request);
        ft__scratch_free(&scratch);
        json_decref(document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_below),
        cmocka_unit_test(a_front_is_what_all_of_it_would_give),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
