/* Tokens that others published of compiled decoding (data/published/decoding.jsonl), asked without a stack: dense
 * models and mixtures in bf16, and what is stored in fewer bits. Bounds are what the code reaches today, rounded up. */
#include <stdio.h>
#include <string.h>

#include "golden.h"

enum { DENSE, EXPERTS, FEW_BITS, KINDS };
static const golden_bound kinds[KINDS] = {
    {"dense, bf16", 0.09, 0.22, 15}, {"experts", 0.19, 0.36, 7}, {"fewer bits", 0.1, 0.23, 11}};

static int kind_of(const json_t *run)
{
    const json_t *request = json_object_get(run, "request");
    const char *model = json_string_value(json_object_get(request, "model"));
    return strstr(model, "mixtral") ? EXPERTS : json_object_get(request, "weights_dtype") ? FEW_BITS : DENSE;
}

static void tokens_are_met(void **state)
{
    (void)state;
    golden_runs("published/decoding.jsonl", kinds, KINDS, kind_of);
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
