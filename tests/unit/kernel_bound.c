/* What kernels are bound by, and products of few rows: through the shipped predictor, as users see them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "foretell.h"

static ft_context *ft;

static int open_it(void **state)
{
    (void)state;
    return ft_open(&ft, NULL, NULL) == FT_OK ? 0 : -1;
}

static int close_it(void **state)
{
    (void)state;
    ft_close(ft);
    return 0;
}

/* Text with ' for ". */
static json_t *ask(const char *request)
{
    char quoted[512];
    json_t *answer = NULL;
    assert_true(strlen(request) < sizeof quoted);
    strcpy(quoted, request);
    for (char *c = quoted; *c; c++)
        if (*c == '\'') *c = '"';
    char *text = ft_answer(ft, quoted);
    assert_non_null(text);
    assert_int_equal(ft__json_parse(text, strlen(text), "", &answer, NULL), FT_OK);
    if (!json_is_true(json_object_get(answer, "ok"))) fail_msg("%s: %s", request, text);
    free(text);
    return answer;
}

static double figure(const char *request, const char *key)
{
    json_t *answer = ask(request);
    const json_t *value = json_object_get(answer, key);
    if (!json_is_number(value)) fail_msg("%s has no %s", request, key);
    double number = json_number_value(value);
    json_decref(answer);
    return number;
}

static void assert_word(const char *request, const char *key, const char *expected)
{
    json_t *answer = ask(request);
    const char *word = json_string_value(json_object_get(answer, key));
    bool same = expected ? word && strstr(word, expected) : !word;
    if (!same) fail_msg("%s: %s is \"%s\", not \"%s\"", request, key, word ? word : "", expected ? expected : "");
    json_decref(answer);
}

#define ON(gpu, sizes) "{'task':'kernel','gpu':'" gpu "'," sizes "}"
#define H100(sizes) ON("h100_sxm", sizes)
#define ATTENTION(batch, q, kv) \
    "'op':'attention','batch':" batch ",'heads':32,'kv_heads':8,'q_len':" q ",'kv_len':" kv ",'head_dim':128"

static void what_streams_is_bound_by_memory(void **state)
{
    (void)state;
    assert_word(H100("'op':'gemm','m':4096,'n':1,'k':4096"), "bound", "memory"); /* odd columns, a padded tile */
    assert_word(H100("'op':'gemm','m':4096,'n':2,'k':4096"), "bound", "memory");
    assert_word(H100("'op':'gemm','m':4096,'n':8,'k':4096"), "bound", "memory");
    assert_word(H100(ATTENTION("4", "1", "1024")), "bound", "memory");
    assert_word(H100("'op':'softmax','rows':8192,'cols':4096"), "bound", "memory");
    assert_word(H100("'op':'gemm','m':4096,'n':4096,'k':4096"), "bound", "compute");
    assert_word(H100("'op':'gemm','m':4096,'n':4097,'k':4096"), "bound", "compute"); /* a slow path, but arithmetic */
    assert_word(H100(ATTENTION("4", "4096", "4096")), "bound", "compute");
}

static void what_waits_is_overhead(void **state)
{
    (void)state;
    assert_word(H100("'op':'softmax','rows':1,'cols':4096"), "bound", "overhead");
    assert_word(ON("l40s", "'op':'gemm','m':16,'n':512,'k':512"), "bound", "overhead");
    assert_word(H100("'op':'elementwise','name':'add','numel':1000,'inputs':2"), "bound", "overhead");
}

static void faster_than_memory_is_said(void **state)
{
    (void)state;
    const char *cached = H100("'op':'gemm','m':4096,'n':8,'k':4096");
    assert_true(figure(cached, "ms") < figure(cached, "roofline_ms"));
    assert_word(cached, "note", "L2 cache");
    assert_word(H100("'op':'gemm','m':4096,'n':4096,'k':4096"), "note", NULL);
}

static double product_ms(const char *gpu, int64_t m, int64_t n, const char *dtype)
{
    char request[256];
    snprintf(request, sizeof request, "{'task':'kernel','op':'gemm','gpu':'%s','m':%d,'n':%d,'k':4096,'dtype':'%s'}",
             gpu, (int)m, (int)n, dtype);
    return figure(request, "ms");
}

/* Nobody measured products of few rows but on H200: elsewhere they go by bandwidth. */
static void few_rows_stream(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h100_sxm", "b200_sxm", "a100_sxm_80gb", "l40s", "mi300x"};
    static const double gbps[] = {3350, 8000, 2039, 864, 5300};
    double known = product_ms("h200_sxm", 1, 14336, "fp32");
    for (int i = 0; i < 5; i++) {
        double one = product_ms(gpus[i], 1, 14336, "fp32"), by_bandwidth = known * 4800 / gbps[i], before = one;
        if (fabs(log(one / by_bandwidth)) > log(1.15)) fail_msg("%s: %g ms, not about %g", gpus[i], one, by_bandwidth);
        double turned = product_ms(gpus[i], 14336, 1, "fp32");
        if (turned > 1.5 * one) fail_msg("%s: one column takes %g ms, one row %g", gpus[i], turned, one);
        for (int64_t m = 2; m <= 32; m *= 2) {
            double ms = product_ms(gpus[i], m, 14336, "fp32");
            if (ms < 0.96 * before) fail_msg("%s: %d rows take %g ms, half of them %g", gpus[i], (int)m, ms, before);
            before = ms;
        }
    }
    assert_word(H100("'op':'gemm','m':1,'n':14336,'k':4096,'dtype':'fp32'"), "bound", "memory");
    assert_word(H100("'op':'gemm','m':1,'n':14336,'k':4096,'dtype':'fp32'"), "note", "streams");
}

/* fp8 weights are half the bytes: a decode step whose kernels quantise as they go cannot be slower. */
static void fp8_decodes_no_slower(void **state)
{
    (void)state;
    static const char *const gpus[] = {"b200_sxm", "gb200", "mi300x", "h100_sxm", "h200_sxm"};
    static const char *const how[] = {"cuda_graph", "compile"};
    for (int g = 0; g < 5; g++)
        for (int e = 0; e < 2; e++)
            for (int batch = 1; batch <= 16; batch *= 16) {
                double ms[2];
                for (int d = 0; d < 2; d++) {
                    char request[256];
                    snprintf(request, sizeof request,
                             "{'task':'decode','model':'llama-3-8b','gpu':'%s','batch':%d,'seq':1024,'dtype':'%s',"
                             "'execution':'%s'}",
                             gpus[g], batch, d ? "fp8" : "bf16", how[e]);
                    ms[d] = figure(request, "step_ms");
                }
                if (ms[1] > 0.9 * ms[0])
                    fail_msg("%s, batch %d, %s: fp8 %g ms, bf16 %g", gpus[g], batch, how[e], ms[1], ms[0]);
            }
    assert_word(ON("b200_sxm", "'op':'gemm','m':1,'n':4096,'k':4096,'dtype':'fp8'"), "note", "quantising");
    assert_word(ON("b200_sxm", "'op':'gemm','m':1,'n':4096,'k':4096,'dtype':'fp8','quantized':true"), "note", NULL);
}

/* No cache holds a model: where L2 is large, tables that replay one product must not make decoding faster than
 * memory. */
static void weights_come_from_memory(void **state)
{
    (void)state;
    static const char *const gpus[] = {"l40s", "l4", "rtx_4090"}, *const dtypes[] = {"bf16", "fp8"};
    static const double gbps[] = {864, 300, 1008};
    for (int g = 0; g < 3; g++)
        for (int d = 0; d < 2; d++) {
            char request[256];
            snprintf(request, sizeof request,
                     "{'task':'decode','model':'qwen3-8b','gpu':'%s','batch':1,'seq':512,'dtype':'%s',"
                     "'execution':'cuda_graph'}",
                     gpus[g], dtypes[d]);
            json_t *answer = ask(request);
            const json_t *memory = json_object_get(answer, "memory");
            double weights = json_number_value(json_object_get(memory, "weights_bytes")) - 2 * 151936 * 4096.0;
            double least = weights / (gbps[g] * 1e6), ms = json_number_value(json_object_get(answer, "step_ms"));
            if (!(least > 1) || ms < least) /* all but the embedding's table, of which a row is read */
                fail_msg("%s, %s: %g ms, and memory takes %g", gpus[g], dtypes[d], ms, least);
            json_decref(answer);
        }
}

/* A little skew wakes hardly fewer experts, and tokens enough wake them all. */
static void a_little_skew_moves_as_many_bytes(void **state)
{
    (void)state;
#define MOE(tokens, skew) \
    H100("'op':'moe','tokens':" tokens ",'hidden':2048,'inter':768,'topk':8,'experts':128,'skew':" skew)
    double even = figure(MOE("512", "0"), "bytes");
    assert_true(figure(MOE("512", "0.01"), "bytes") > 0.97 * even);
    assert_true(figure(MOE("512", "1.2"), "bytes") > 0.95 * even);
    assert_true(figure(MOE("512", "1.2"), "bytes") <= figure(MOE("512", "0.01"), "bytes"));
    assert_true(figure(MOE("16", "1.2"), "bytes") < 0.6 * even); /* few tokens leave experts idle */
    assert_true(figure(MOE("64", "1.2"), "bytes") > figure(MOE("16", "1.2"), "bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_streams_is_bound_by_memory), cmocka_unit_test(what_waits_is_overhead),
        cmocka_unit_test(faster_than_memory_is_said),      cmocka_unit_test(few_rows_stream),
        cmocka_unit_test(fp8_decodes_no_slower),           cmocka_unit_test(a_little_skew_moves_as_many_bytes),
        cmocka_unit_test(weights_come_from_memory),
    };
    return cmocka_run_group_tests(tests, open_it, close_it);
}
