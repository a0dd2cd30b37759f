/* Runs of stacks of 2022 to 2024 and of other frameworks than NVIDIA's (data/published/older.jsonl), asked without a
 * stack; InternEvo's with its own. Bounds are what the code reaches today, rounded up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

/* Paddle's LLaMA on boards of 40 GB ran with norms written out, which a request without a stack cannot say.
 * BigScience's heads that are no multiple of eight wide were slower than forecast. */
static const golden_bound sources[] = {
    {"Megatron-LLaMA", 0.17, 0.24, 5},
    {"FlagPerf, Paddle", 0.16, 0.36, 20},
    {"FlagPerf, Megatron-Core", 0.06, 0.16, 11},
    {"FlagPerf, FlagScale", 0.055, 0.17, 10},
    {"FlagPerf, DeepSpeed", 0.045, 0.07, 4},
    {"FlagPerf, Megatron-DeepSpeed", 0.11, 0.12, 2},
    {"PaddleNLP", 0.12, 0.13, 10},
    {"BigScience", 0.095, 0.33, 52},
};
enum { SOURCES = sizeof sources / sizeof *sources };

static void runs_without_a_stack_are_met(void **state)
{
    (void)state;
    golden_runs("published/older.jsonl", sources, SOURCES, NULL);
}

static const golden_bound internevo[] = {{"InternEvo", 0.11, 0.31, 46}};
static int the_only_one(const json_t *run)
{
    (void)run;
    return 0;
}

static void internevo_is_met_with_its_stack(void **state)
{
    (void)state;
    golden_runs("published/internevo.jsonl", internevo, 1, the_only_one);
}

/* The same runs with the stack that ran, and its attention: how far they are off on average. */
static double off_with(const char *source, const char *gpu, const char *stack)
{
    json_t *rows = golden_rows("published/older.jsonl"), *run;
    double sum = 0;
    size_t n;
    int count = 0;
    json_array_foreach (rows, n, run) {
        json_t *asked = json_object_get(run, "request");
        if (strcmp(json_string_value(json_object_get(run, "source")), source) != 0 ||
            strcmp(json_string_value(json_object_get(asked, "gpu")), gpu) != 0)
            continue;
        json_object_set_new(asked, "stack", json_string(stack));
        json_object_del(asked, "attention");
        char *request = json_dumps(asked, 0);
        assert_non_null(request);
        sum += fabs(golden_value("step_ms", "%s", request) / json_number_value(json_object_get(run, "truth_ms")) - 1);
        count++;
        free(request);
    }
    json_decref(rows);
    return sum / count;
}

static void frameworks_are_met_with_their_stacks(void **state)
{
    (void)state;
    double paddle = off_with("FlagPerf, Paddle", "a100_sxm_80gb", "paddle");
    double later = off_with("PaddleNLP", "a100_sxm_80gb", "paddle");
    golden_holds(paddle < 0.05, "FlagPerf's Paddle is %.1f %% off", 100 * paddle);
    golden_holds(later < 0.03, "PaddleNLP is %.1f %% off", 100 * later);
    double scale = off_with("FlagPerf, FlagScale", "a800_sxm_80gb", "megatron_2023");
    golden_holds(scale < 0.04, "FlagScale is %.1f %% off", 100 * scale);
    double both = off_with("FlagPerf, Megatron-DeepSpeed", "a800_sxm_80gb", "megatron_deepspeed_2023");
    golden_holds(both < 0.1, "Megatron-DeepSpeed is %.1f %% off", 100 * both);
}

static double step_of(const char *gpu, const char *more)
{
    return golden_value("step_ms",
                        "{\"task\":\"train\",\"model\":\"llama-2-7b\",\"gpu\":\"%s\",\"batch\":2,\"seq\":2048,"
                        "\"execution\":\"fused\",\"attention\":\"flash2\",\"master_weights\":true%s}",
                        gpu, more);
}

/* Rotary embedding and gates that are written out take a tenth of a layer. Without a stack they are where the GPU has
 * no fp8, and nowhere else. */
static void layers_of_2023_on_gpus_without_fp8(void **state)
{
    (void)state;
    double now = step_of("a100_sxm_80gb", ",\"stack\":\"megatron_recipe\"");
    double then = step_of("a100_sxm_80gb", ",\"stack\":\"recipe_2023\"");
    golden_holds(then > 1.05 * now && then < 1.2 * now, "%.1f ms then, %.1f now", then, now);
    golden_near("A100, nothing said", step_of("a100_sxm_80gb", ""), then, 1e-9);
    golden_near("H100, nothing said", step_of("h100_sxm", ""), step_of("h100_sxm", ",\"stack\":\"megatron_recipe\""),
                1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_without_a_stack_are_met), cmocka_unit_test(internevo_is_met_with_its_stack),
        cmocka_unit_test(frameworks_are_met_with_their_stacks), cmocka_unit_test(layers_of_2023_on_gpus_without_fp8)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
