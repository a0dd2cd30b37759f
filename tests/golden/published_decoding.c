/* Tokens that others published of compiled decoding (data/published/decoding.jsonl), asked without a stack: dense models
 * and mixtures in bf16, and what is stored in fewer bits. Bounds are what the code reaches today, rounded up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

enum { DENSE, EXPERTS, FEW_BITS, KINDS };
static const struct {
    const char *name;
    double mean, worst;
    int runs;
} kinds[KINDS] = {{"dense, bf16", 0.09, 0.22, 15}, {"experts", 0.19, 0.36, 7}, {"fewer bits", 0.18, 0.36, 11}};

static int kind_of(json_t *request)
{
    const char *model = json_string_value(json_object_get(request, "model"));
    return strstr(model, "mixtral") ? EXPERTS : json_object_get(request, "weights_dtype") ? FEW_BITS : DENSE;
}

static void tokens_are_met(void **state)
{
    (void)state;
    double sum[KINDS] = {0};
    int count[KINDS] = {0};
    json_t *runs = golden_rows("published/decoding.jsonl"), *run;
    size_t n;
    json_array_foreach (runs, n, run) {
        int i = kind_of(json_object_get(run, "request"));
        char *request = json_dumps(json_object_get(run, "request"), 0);
        assert_non_null(request);
        double got = golden_value("step_ms", "%s", request);
        double truth = json_number_value(json_object_get(run, "truth_ms"));
        golden_near(json_string_value(json_object_get(run, "note")), got, truth, kinds[i].worst);
        sum[i] += fabs(got / truth - 1);
        count[i]++;
        free(request);
    }
    json_decref(runs);
    for (int i = 0; i < KINDS; i++) {
        golden_holds(count[i] == kinds[i].runs, "%s: %d runs", kinds[i].name, count[i]);
        golden_holds(sum[i] / count[i] < kinds[i].mean, "%s: %.1f %% off on average", kinds[i].name,
                     100 * sum[i] / count[i]);
    }
}

/* A compiled token is replayed: the host is hidden unless a stack says otherwise. */
static void the_host_is_hidden(void **state)
{
    (void)state;
    const char *request = "{\"task\":\"decode\",\"model\":\"llama-3.1-8b\",\"gpu\":\"a100_sxm_80gb\",\"batch\":1,"
                          "\"seq\":128,\"execution\":\"compile\"%s}";
    char named[512];
    snprintf(named, sizeof named, request, ",\"stack\":{\"base\":\"gpt_fast\",\"traits\":{\"tuned_vectors\":false}}");
    double library = golden_value("step_ms", "%s", named);
    snprintf(named, sizeof named, request, "");
    double own = golden_value("step_ms", "%s", named), idle = golden_value("idle_ms", "%s", named);
    golden_holds(idle < 0.1, "%.3f ms idle", idle);
    golden_holds(own < 0.99 * library, "%.2f ms by kernels of its own, %.2f by a library's", own, library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_are_met), cmocka_unit_test(the_host_is_hidden)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
