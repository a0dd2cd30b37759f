/* What people did on cards that they own or rent, most in 2025 and 2026 (data/published/users*.jsonl): small models from
 * scratch, adapters, pictures, videos and detectors, of publishers that nothing was chosen on. Each is held as it was
 * asked and as it ran ("also"). Bounds are what the code reaches today, rounded up; docs/accuracy says what is known of
 * the large ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

/* How far off on average may be what is asked, and what is asked as it ran. */
typedef struct bound {
    const char *source;
    double asked, ran;
    int rows;
} bound;

static const bound times[] = {
    {"modded-nanogpt (8 H100)", 0.105, 0.085, 8},
    {"llm.c (8 H100, 8 A100)", 0.455, 0.095, 3},
    {"debirthasaha, GPT-2 124M (8 A100)", 0.16, 0.165, 1},
    {"nanochat (8 H100)", 0.055, 0.03, 5},
    {"nanochat, owners and renters", 0.125, 0.115, 3},
    {"parameter-golf (8 H100)", 0.135, 0.135, 5},
    {"autoresearch", 0.38, 0.38, 3},
    {"DGX Station, Llama 3.1 8B", 0.09, 0.09, 2},
    {"Unsloth's notebooks, Alpaca (T4)", 0.215, 0.245, 10},
    {"Hugging Face blog, FLUX QLoRA", 0.32, 0.32, 2},
    {"Swin Transformer's README (V100)", 0.07, 0.07, 2},
    {"Depth Anything (V100, A100)", 0.205, 0.205, 6},
    {"MMSegmentation, SegFormer, inference", 0.41, 0.41, 4},
    {"Detectron2, RetinaNet (V100)", 0.26, 0.25, 1},
    {"DETR (V100)", 0.475, 0.455, 2},
};

/* Losses of detectors are left out, pictures are larger than what is asked for. */
static const bound peaks[] = {
    {"DGX Station, Llama 3.1 8B, memory", 0.075, 0.075, 2},
    {"nanochat (8 H100), memory", 0.02, 0.02, 1},
    {"parameter-golf (8 H100), memory", 0.065, 0.065, 2},
    {"autoresearch, memory", 0.425, 0.425, 2},
    {"Unsloth's notebooks, Alpaca (T4), memory", 0.54, 0.09, 10},
    {"Hugging Face blog, FLUX QLoRA, memory", 0.135, 0.135, 3},
    {"Hugging Face blog, personal copilot, memory", 0.16, 0.045, 1},
    {"MMSegmentation, SegFormer, memory", 0.23, 0.205, 6},
    {"MMDetection, memory", 0.755, 0.74, 3},
    {"Detectron2, RetinaNet (V100), memory", 0.625, 0.595, 1},
};

/* What decodes videos is not modelled; Quanto's memory is what stays, not the peak. */
static const bound pictures[] = {
    {"Hugging Face blog, SDXL", 0.28, 0.27, 10},
    {"Sana's README", 0.09, 0.09, 3},
    {"Hugging Face blog, Quanto (H100)", 0.2, 0.06, 3},
    {"Hugging Face blog, Quanto (H100), memory", 0.55, 0.55, 3},
    {"Hugging Face blog, FLUX (H100)", 0.165, 0.165, 1},
    {"Hugging Face blog, FLUX (H100), memory", 0.01, 0.01, 1},
    {"Hugging Face blog, videos (A100)", 0.295, 0.295, 1},
    {"Hugging Face blog, videos (A100), memory", 0.19, 0.19, 2},
    {"Hugging Face blog, LTX-Video (H100)", 0.065, 0.065, 2},
};

enum { MOST = 16 };

static int bound_of(const bound *bounds, int count, const json_t *run)
{
    const char *source = json_string_value(json_object_get(run, "source"));
    int i = 0;
    while (i < count && strcmp(bounds[i].source, source) != 0) i++;
    golden_holds(i < count, "no bound for %s", source);
    return i;
}

/* Which figure of an answer a run is of. */
static const char *figure_of(const json_t *run)
{
    const char *kind = json_string_value(json_object_get(run, "memory_kind"));
    if (kind) return strcmp(kind, "allocated") == 0 ? "memory.peak_bytes" : "memory.reserved_bytes";
    return json_string_value(json_object_get(run, "quantity"));
}

static double truth_of(const json_t *run)
{
    static const char *const keys[] = {"truth_ms", "truth_s", "truth_bytes"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(run, keys[i]);
        if (value) return json_number_value(value);
    }
    return NAN;
}

static double off(const json_t *run)
{
    char *request = json_dumps(json_object_get(run, "request"), 0);
    assert_non_null(request);
    const double got = golden_value(figure_of(run), "%s", request);
    free(request);
    return fabs(got / truth_of(run) - 1);
}

static void are_met(const char *file, const bound *bounds, int count)
{
    double asked[MOST] = {0}, ran[MOST] = {0};
    int rows[MOST] = {0};
    json_t *runs = golden_rows(file), *run;
    size_t n;
    assert_true(count <= MOST);
    json_array_foreach (runs, n, run) {
        const int i = bound_of(bounds, count, run);
        asked[i] += off(run);
        if (json_object_get(run, "also"))
            json_object_update(json_object_get(run, "request"), json_object_get(run, "also"));
        ran[i] += off(run);
        rows[i]++;
    }
    json_decref(runs);
    for (int i = 0; i < count; i++) {
        golden_holds(rows[i] == bounds[i].rows, "%s: %d rows", bounds[i].source, rows[i]);
        golden_holds(asked[i] / rows[i] < bounds[i].asked, "%s, asked: %.1f %% off on average", bounds[i].source,
                     100 * asked[i] / rows[i]);
        golden_holds(ran[i] / rows[i] < bounds[i].ran, "%s, as it ran: %.1f %% off on average", bounds[i].source,
                     100 * ran[i] / rows[i]);
    }
}

static void times_of_users_are_met(void **state)
{
    (void)state;
    are_met("published/users.jsonl", times, sizeof times / sizeof *times);
}

static void peaks_of_users_are_met(void **state)
{
    (void)state;
    are_met("published/users_memory.jsonl", peaks, sizeof peaks / sizeof *peaks);
}

static void pictures_of_users_are_met(void **state)
{
    (void)state;
    are_met("published/users_pictures.jsonl", pictures, sizeof pictures / sizeof *pictures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_of_users_are_met),
                                       cmocka_unit_test(peaks_of_users_are_met),
                                       cmocka_unit_test(pictures_of_users_are_met)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
