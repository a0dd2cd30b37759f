/* Runs on AMD's GPUs that others published and nothing was chosen on (data/published/amd.jsonl), by source; and
 * products of AITER's tables by their times. Bounds are what the code reaches today, rounded up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

typedef struct source {
    const char *name;
    double mean, worst;
    int runs;
} source;

/* Primus in bf16: how long its recomputation and its network take is not said. Batches of 64 and more by vLLM are
 * forecast too short. */
static const source sources[] = {
    {"MLPerf Training v5.1, AMD", 0.05, 0.1, 6},
    {"AMD, Primus", 0.14, 0.28, 6},
    {"vLLM on MI300X, AMD", 0.14, 0.39, 32},
};
enum { SOURCES = sizeof sources / sizeof *sources };

static void published_runs_are_met(void **state)
{
    (void)state;
    double sum[SOURCES] = {0};
    int count[SOURCES] = {0};
    json_t *runs = golden_rows("published/amd.jsonl"), *run;
    size_t n;
    json_array_foreach (runs, n, run) {
        const char *name = json_string_value(json_object_get(run, "source"));
        int i = 0;
        while (i < SOURCES && strcmp(name, sources[i].name) != 0) i++;
        golden_holds(i < SOURCES, "no bound for the source %s", name);
        char *request = json_dumps(json_object_get(run, "request"), 0);
        assert_non_null(request);
        double got = golden_value(json_string_value(json_object_get(run, "quantity")), "%s", request);
        double truth = json_number_value(json_object_get(run, "truth_ms"));
        golden_near(json_string_value(json_object_get(run, "note")), got, truth, sources[i].worst);
        sum[i] += fabs(got / truth - 1);
        count[i]++;
        free(request);
    }
    json_decref(runs);
    for (int i = 0; i < SOURCES; i++) {
        golden_holds(count[i] == sources[i].runs, "%s: %d runs", sources[i].name, count[i]);
        golden_holds(sum[i] / count[i] < sources[i].mean, "%s: %.1f %% off on average", sources[i].name,
                     100 * sum[i] / count[i]);
    }
}

static double us_of(const char *gpu, const char *dtype, int m, int n, int k)
{
    return 1e3 * golden_value("ms",
                              "{\"task\":\"kernel\",\"op\":\"gemm\",\"gpu\":\"%s\",\"dtype\":\"%s\",\"m\":%d,\"n\":%d,"
                              "\"k\":%d%s}",
                              gpu, dtype, m, n, k, strcmp(dtype, "bf16") != 0 ? ",\"quantized\":true" : "");
}

/* ROCm/aiter, aiter/configs: the fastest kernel of a search. Few tiles take half as long again as they would with
 * copies that need no registers; many hide it. */
static void products_of_few_tiles(void **state)
{
    (void)state;
    golden_near("64 x 256 x 5120", us_of("mi355x", "bf16", 64, 256, 5120), 7.9, 0.35);
    golden_near("128 x 256 x 5120", us_of("mi355x", "bf16", 128, 256, 5120), 9.0, 0.35);
    /* Microsoft's MI300X, fp8, held by the board at the larger size. */
    golden_near("8192 cubed", 2 * pow(8192, 3) / us_of("mi300x", "fp8", 8192, 8192, 8192) * 1e-6, 1159, 0.12);
    golden_near("16384 cubed", 2 * pow(16384, 3) / us_of("mi300x", "fp8", 16384, 16384, 16384) * 1e-6, 1015, 0.18);
    double few = us_of("mi355x", "bf16", 512, 2048, 4096), many = us_of("mi355x", "bf16", 16384, 16384, 4096);
    golden_holds(few * 256 > 2 * many, "a 256th of the tiles takes %.0f of %.0f us", few, many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_runs_are_met),
                                       cmocka_unit_test(products_of_few_tiles)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
