/* llama.cpp on cards that people own (data/published/gguf.jsonl), by source. Prompts on an RTX 4090 were chosen on, all
 * else judges; bounds are what the code reaches today, rounded up. Models that did not fit as a whole are among them
 * (a card's figure is a third of its neighbours' then), and builds before CUDA graphs. */
#include "golden.h"

static const golden_bound sources[] = {
    {"llama.cpp, RTX 4090", 0.09, 0.16, 10},   {"llama.cpp, RTX 3080", 0.11, 0.15, 2},
    {"llama.cpp, RTX 2080 Ti", 0.12, 0.12, 1}, {"llama.cpp, RTX 3090", 0.33, 0.33, 1},
    {"llama.cpp, RX 7900 XTX", 0.06, 0.08, 2}, {"llmfit, GB10", 0.11, 0.32, 28},
    {"llmfit, RTX 2080", 0.09, 0.58, 17},      {"llmfit, RTX 5070", 0.1, 0.49, 32},
    {"llmfit, RX 7900 XT", 0.07, 0.31, 69},    {"GPU-Benchmarks-on-LLM-Inference", 0.14, 0.34, 12},
};

static void published_runs_are_met(void **state)
{
    (void)state;
    golden_runs("published/gguf.jsonl", sources, sizeof sources / sizeof *sources, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_runs_are_met)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
