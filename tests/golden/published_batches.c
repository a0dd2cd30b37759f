/* Batches that start and end together, as TensorRT-LLM and FasterTransformer published them
 * (data/published/static_batches.jsonl), asked by the engine's name; every fourth row, those without pipelines. Bounds
 * are what the code reaches today, rounded up. scripts/published_inference asks all of them, in other forms too. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "golden.h"

enum { FIRST_TOKEN, TOKENS, REQUESTS, KINDS, EVERY = 4 };
static const golden_bound kinds[KINDS] = {{"first tokens, TensorRT-LLM", 0.19, 0.72, 27},
                                          {"tokens/s, TensorRT-LLM", 0.13, 0.72, 55},
                                          {"requests, FasterTransformer", 0.12, 0.38, 73}};

static double number(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

static const char *engine_of(const json_t *row)
{
    const char *source = json_string_value(json_object_get(row, "source"));
    if (strstr(source, "Faster")) return "fastertransformer";
    return strstr(source, " 0.5") || strstr(source, " 0.6") ? "trtllm-0.6" : "trtllm-0.9";
}

/* One cell of `infer`: a prompt's time or a token's. */
static double cell(const json_t *row, double seq, const char *list, const char *key)
{
    char *model = json_dumps(json_object_get(row, "model"), JSON_ENCODE_ANY);
    char *parallel = json_dumps(json_object_get(row, "parallel"), 0);
    const char *gpu = json_string_value(json_object_get(row, "gpu"));
    const char *dtype = json_string_value(json_object_get(row, "dtype"));
    json_t *answer = golden_ask("{\"task\":\"infer\",\"engine\":\"%s\",\"model\":%s,\"gpu\":\"%s\",\"dtype\":\"%s\","
                                "\"kv_dtype\":\"%s\",\"parallel\":%s,\"batch\":%g,\"seq\":%g}",
                                engine_of(row), model, gpu, dtype, dtype, parallel, number(row, "batch"), seq);
    double ms = number(json_array_get(json_object_get(answer, list), 0), key);
    json_decref(answer);
    free(parallel);
    free(model);
    return ms;
}

static double whole(const json_t *row)
{
    double isl = number(row, "isl"), osl = number(row, "osl"), first = cell(row, isl, "prefill", "ttft_ms");
    if (osl < 2) return first;
    double begin = cell(row, isl + 1, "decode", "tpot_ms"), end = cell(row, isl + osl - 1, "decode", "tpot_ms");
    return first + (osl - 1) * (begin + 4 * cell(row, isl + floor(osl / 2), "decode", "tpot_ms") + end) / 6;
}

static void batches_are_met(void **state)
{
    (void)state;
    double sum[KINDS] = {0};
    int rows[KINDS] = {0};
    json_t *all = golden_rows("published/static_batches.jsonl"), *row;
    size_t n;
    json_array_foreach (all, n, row) {
        if (n % EVERY || number(json_object_get(row, "parallel"), "pp") > 1) continue;
        int kind = number(row, "first_token_ms") > 0 ? FIRST_TOKEN : number(row, "request_ms") > 0 ? REQUESTS : TOKENS;
        double truth = kind == FIRST_TOKEN ? number(row, "first_token_ms")
                       : kind == REQUESTS
                           ? number(row, "request_ms")
                           : 1e3 * number(row, "batch") * number(row, "osl") / number(row, "tokens_per_s");
        double got = whole(row);
        golden_near(json_string_value(json_object_get(row, "url")), got, truth, kinds[kind].worst);
        sum[kind] += fabs(got / truth - 1);
        rows[kind]++;
    }
    json_decref(all);
    for (int i = 0; i < KINDS; i++) {
        golden_holds(rows[i] == kinds[i].runs, "%s: %d rows", kinds[i].name, rows[i]);
        golden_holds(sum[i] / rows[i] < kinds[i].mean, "%s: %.1f %% off", kinds[i].name, 100 * sum[i] / rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches_are_met)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
