/* Plans: whoever watches one hears how far it is; whose layouts are searched where nobody says. */
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
#include "search/plan.h"

/* Cells are probed by several threads: what is heard may come out of order, but of both parts, and never beyond all. */
typedef struct heard {
    int layouts;
    double last;
} heard;

static void hear(void *watcher, const char *what, double done)
{
    heard *h = watcher;
    bool layers = !strcmp(what, "layers");
    if (!(done >= 0 && done <= 1) || (!layers && done < h->last)) abort();
    if (layers) return; /* a thread's: nothing of it is kept */
    h->last = done;
    h->layouts++;
}

static void whoever_watches_a_plan_hears_how_far_it_is(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        char text[512];
        snprintf(text, sizeof text, "{\"task\":\"plan\",%s,\"exhaustive\":%s}",
                 "\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"gpus\":8,\"global_batch\":32,\"seq\":4096",
                 all ? "true" : "false");
        json_t *object = json_loads(text, 0, NULL);
        ft_plan_request r = {0};
        ft_plan found;
        ft_scratch scratch = {0};
        ft_error err = {0};
        heard h = {0};
        if (ft__plan_request_read(object, &r, &err) != FT_OK) fail_msg("%s", err.message);
        r.progress = hear;
        r.watcher = &h;
        if (ft__plan_of(ft, &scratch, &r, &found, &err) != FT_OK) fail_msg("%s", err.message);
        assert_true(h.layouts > 1 && h.last > 0.5);
        ft__plan_free(&found);
        ft__plan_request_free(&r);
        ft__scratch_free(&scratch);
        json_decref(object);
    }
}

/* Whose layouts where nobody says: the stack's, Megatron's of what can be cut, replicas of the rest. */
static void the_usual_framework_follows_the_model_and_the_stack(void **state)
{
    static const char *const asked[][2] = {{"\"model\":\"resnet50\"", "ddp"},
                                           {"\"model\":\"bert-base\"", "megatron"},
                                           {"\"model\":\"gpt2\"", "megatron"},
                                           {"\"model\":\"gpt2\",\"stack\":\"torchtitan\"", "torchtitan"},
                                           {"\"model\":\"gpt2\",\"stack\":\"fsdp2\"", "fsdp"}};
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char keys[256];
        snprintf(keys, sizeof keys, "{\"task\":\"plan\",%s,\"gpu\":\"h100_sxm\",\"gpus\":2,\"global_batch\":16}",
                 asked[i][0]);
        char *text = ft_answer(ft, keys);
        json_t *answer = text ? json_loads(text, 0, NULL) : NULL;
        assert_non_null(json_object_get(answer, "framework"));
        assert_string_equal(asked[i][1], json_string_value(json_object_get(answer, "framework")));
        free(text);
        json_decref(answer);
    }
}

/* A framework's layouts are not run by the software of another one; NeMo runs Megatron's. */
static void a_framework_and_anothers_stack_are_refused(void **state)
{
    static const struct {
        const char *framework, *stack;
        bool fine;
    } pairs[] = {{"fsdp", "megatron", false},    {"ddp", "torchtitan", false}, {"megatron", "fsdp2", false},
                 {"megatron", "megatron", true}, {"fsdp", "fsdp", true},       {"nemo", "megatron_recipe", true},
                 {"megatron", "nemo", true},     {"fsdp", "hf_trainer", true}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char keys[256];
        snprintf(keys, sizeof keys,
                 "{\"task\":\"plan\",\"model\":\"gpt2\",\"gpu\":\"h100_sxm\",\"gpus\":2,\"global_batch\":16,"
                 "\"framework\":\"%s\",\"stack\":\"%s\"}",
                 pairs[i].framework, pairs[i].stack);
        char *text = ft_answer(ft, keys);
        json_t *answer = text ? json_loads(text, 0, NULL) : NULL;
        const json_t *error = json_object_get(answer, "error");
        if (pairs[i].fine != json_is_true(json_object_get(answer, "ok"))) fail_msg("%s: %s", keys, text);
        if (!pairs[i].fine) assert_string_equal("stack", json_string_value(json_object_get(error, "where")));
        free(text);
        json_decref(answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_watches_a_plan_hears_how_far_it_is),
        cmocka_unit_test(the_usual_framework_follows_the_model_and_the_stack),
        cmocka_unit_test(a_framework_and_anothers_stack_are_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
