/* llama.cpp in other formats, mixtures of experts, long contexts and more cards (data/published/gguf_later.jsonl), and
 * models that a card holds in part (gguf_split.jsonl), by source. Bounds are what the code reaches today, rounded up;
 * what was chosen on what says docs/accuracy/decoding.md. */
#include "golden.h"

static const golden_bound later[] = {
    {"formats, RTX 4090", 0.23, 0.87, 21},      {"formats, RTX 3090", 0.20, 0.76, 14},
    {"formats, RX 7900 XTX", 0.16, 0.18, 4},    {"formats, RTX 3090 Ti", 0.18, 0.18, 1},
    {"long contexts, RTX 5090", 0.08, 0.10, 2}, {"long contexts, RTX 4090", 0.20, 0.20, 1},
    {"long contexts, RTX 3090", 0.14, 0.14, 1}, {"experts, RTX 3090", 0.20, 0.47, 15},
    {"experts, RTX 4090", 0.13, 0.14, 2},       {"experts, RX 7900 XTX", 0.45, 1.20, 7},
    {"experts, RTX PRO 6000", 0.46, 0.46, 1},   {"owners' cards", 0.14, 0.42, 18},
};

static const golden_bound split[] = {
    {"layers on the host, RTX 2080", 0.15, 0.28, 7},     {"experts on the host, RTX 2080", 0.25, 0.32, 3},
    {"experts on the host, RTX 3090", 0.23, 0.24, 5},    {"experts on the host, RTX 5070 Ti", 0.11, 0.12, 2},
    {"experts on the host, RTX 5060 Ti", 0.28, 0.28, 1},
};

static void other_formats_are_met(void **state)
{
    (void)state;
    golden_runs("published/gguf_later.jsonl", later, sizeof later / sizeof *later, NULL);
}

static void hosts_are_met(void **state)
{
    (void)state;
    golden_runs("published/gguf_split.jsonl", split, sizeof split / sizeof *split, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(other_formats_are_met), cmocka_unit_test(hosts_are_met)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
