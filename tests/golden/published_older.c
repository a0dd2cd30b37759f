/* Runs of stacks of 2022 to 2024 and of other frameworks than NVIDIA's (data/published/older.jsonl), asked without a
 * stack; InternEvo's with its own. Bounds are what the code reaches today, rounded up. */
#include <string.h>

#include "golden.h"

/* Paddle's LLaMA on boards of 40 GB ran with norms written out, which a request without a stack cannot say. BigScience's
 * heads that are no multiple of eight wide were slower than forecast. */
static const golden_bound sources[] = {
    {"Megatron-LLaMA", 0.17, 0.24, 5},
    {"FlagPerf, Paddle", 0.16, 0.36, 20},
    {"FlagPerf, Megatron-Core", 0.06, 0.16, 11},
    {"FlagPerf, FlagScale", 0.055, 0.17, 10},
    {"FlagPerf, DeepSpeed", 0.08, 0.12, 4},
    {"FlagPerf, Megatron-DeepSpeed", 0.11, 0.12, 2},
    {"PaddleNLP", 0.12, 0.13, 10},
    {"BigScience", 0.095, 0.33, 52},
};
enum { SOURCES = sizeof sources / sizeof *sources };

static int source_of(const json_t *run)
{
    const char *name = json_string_value(json_object_get(run, "source"));
    int i = 0;
    while (i < SOURCES && strcmp(name, sources[i].name) != 0) i++;
    return i;
}

static void runs_without_a_stack_are_met(void **state)
{
    (void)state;
    golden_runs("published/older.jsonl", sources, SOURCES, source_of);
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

static double step_of(const char *gpu, const char *more)
{
    return golden_value("step_ms",
                        "{\"task\":\"train\",\"model\":\"llama-2-7b\",\"gpu\":\"%s\",\"batch\":2,\"seq\":2048,"
                        "\"execution\":\"fused\",\"attention\":\"flash2\",\"master_weights\":true%s}",
                        gpu, more);
}

/* Rotary embedding and gates that are written out take a tenth of a layer. Without a stack they are where the GPU has no
 * fp8, and nowhere else. */
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_without_a_stack_are_met),
                                       cmocka_unit_test(internevo_is_met_with_its_stack),
                                       cmocka_unit_test(layers_of_2023_on_gpus_without_fp8)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
