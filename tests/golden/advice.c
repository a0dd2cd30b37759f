/* Advice against what really happened: pairs of steps that were measured with and without a change, and the regime that
 * the measured kernels show. The rows are those of data/measurements/h200. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "golden.h"

/* -- measured rows ----------------------------------------------------------------------------- */

static json_t *measured; /* an array */

static int read_rows(const char *name)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024];
    snprintf(path, sizeof path, "%s/data/measurements/h200/%s.jsonl.gz", root ? root : ".", name);
    gzFile f = gzopen(path, "rb");
    enum { LONGEST = 1 << 20 };
    char *line = malloc(LONGEST);
    if (!f || !line) return -1;
    while (gzgets(f, line, LONGEST)) {
        json_t *row = json_loads(line, 0, NULL);
        if (!row || json_array_append_new(measured, row)) return -1;
    }
    free(line);
    return gzclose(f) == Z_OK ? 0 : -1;
}

static int open_all(void **state)
{
    measured = json_array();
    return golden_open(state) || !measured || read_rows("models") || read_rows("architectures") ? -1 : 0;
}

static int close_all(void **state)
{
    json_decref(measured);
    return golden_close(state);
}

static const char *word(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

static double number(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

static double busy_of(const json_t *row) { return number(json_object_get(row, "profile"), "busy_ms"); }

typedef struct picked {
    const char *model, *mode, *dtype;
    int batch, seq;
    bool recomputed;
    const char *execution;
} picked;

static const char *execution_of(const json_t *row)
{
    const json_t *c = json_object_get(row, "compile");
    return json_is_true(c) ? "compile" : json_is_string(c) ? "cuda_graph" : "eager";
}

static const json_t *row_of(const picked *p)
{
    size_t i;
    json_t *row;
    json_array_foreach (measured, i, row) {
        if (strcmp(word(row, "model"), p->model) || strcmp(word(row, "mode"), p->mode)) continue;
        if (strcmp(word(row, "dtype"), p->dtype) || !strcmp(word(row, "set"), "sustained")) continue;
        if (number(row, "batch") != p->batch || number(row, "seq") != p->seq) continue;
        if ((number(row, "ckpt") > 0) != p->recomputed || strcmp(execution_of(row), p->execution)) continue;
        return row;
    }
    fail_msg("no measured %s %s b%d s%d %s %s", p->model, p->mode, p->batch, p->seq, p->dtype, p->execution);
    return NULL;
}

static json_t *config_of(const json_t *row)
{
    static const char *const known[][2] = {
        {"gpt2", "{\"model_type\":\"gpt2\"}"},
        {"gpt2_pad", "{\"model_type\":\"gpt2\",\"vocab_size\":50304}"},
        {"gpt2_medium", "{\"model_type\":\"gpt2\",\"n_embd\":1024,\"n_head\":16,\"n_layer\":24}"},
        {"gpt2_large", "{\"model_type\":\"gpt2\",\"n_embd\":1280,\"n_head\":20,\"n_layer\":36}"},
        {"gpt3_xl", "{\"model_type\":\"gpt2\",\"n_embd\":3072,\"n_head\":24,\"n_layer\":24,\"n_positions\":2048}"},
        {"llama_1b",
         "{\"model_type\":\"llama\",\"hidden_size\":2048,\"intermediate_size\":8192,\"num_hidden_layers\":16,"
         "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":128256,"
         "\"tie_word_embeddings\":true}"},
        {"llama_8b", "{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336,"
                     "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,"
                     "\"vocab_size\":128256}"},
        {"bert_base", "{\"model_type\":\"bert\",\"architectures\":[\"BertForMaskedLM\"]}"},
        {"bert_large", "{\"model_type\":\"bert\",\"hidden_size\":1024,\"intermediate_size\":4096,\"num_hidden_layers\":"
                       "24,\"num_attention_heads\":16,\"is_decoder\":true,\"architectures\":[\"BertLMHeadModel\"]}"},
        {"resnet50", "{\"model_type\":\"resnet\",\"num_labels\":1000}"},
    };
    json_t *config = json_object_get(row, "config");
    if (config) return json_incref(config);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i][0], word(row, "model"))) return json_loads(known[i][1], 0, NULL);
    fail_msg("no config of %s", word(row, "model"));
    return NULL;
}

static json_t *request_of(const json_t *row)
{
    const char *mode = word(row, "mode"), *dtype = word(row, "dtype"), *attention = word(row, "attn");
    json_t *q = json_pack("{s:s,s:o,s:s,s:s,s:O,s:O,s:s,s:s}", "task", strcmp(mode, "inf") ? mode : "forward", "model",
                          config_of(row), "gpu", "h200_sxm", "dtype", strcmp(dtype, "amp") ? dtype : "amp_bf16",
                          "batch", json_object_get(row, "batch"), "seq", json_object_get(row, "seq"), "attention",
                          *attention ? attention : "sdpa", "execution", execution_of(row));
    assert_non_null(q);
    if (!strcmp(mode, "decode"))
        json_object_set_new(q, "cache", json_string(number(row, "static") > 0 ? "static" : "dynamic"));
    if (!strcmp(mode, "train"))
        json_object_set_new(q, "recompute", json_string(number(row, "ckpt") > 0 ? "full" : "none"));
    return q;
}

static json_t *answer_to(const json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT);
    assert_non_null(text);
    json_t *answer = golden_ask("%s", text);
    free(text);
    return answer;
}

/* -- pairs ------------------------------------------------------------------------------------- */

/* The saving for as many samples as the first step has. `share`: how far the forecast may be off; 0.25 but where the
 * reason stands beside it. */
typedef struct pair {
    const char *what;
    picked before, after;
    double share;
    bool busy; /* the kernels' time: the wall is the host's alone, whose time differs from run to run */
} pair;

#define GPT2(batch, dtype, how)                         \
    {                                                   \
        "gpt2", "train", dtype, batch, 1024, false, how \
    }
#define LLAMA(mode, batch, seq, again, how)              \
    {                                                    \
        "llama_1b", mode, "bf16", batch, seq, again, how \
    }

static const pair pairs[] = {
    {"padded vocabulary",
     GPT2(32, "bf16", "eager"),
     {"gpt2_pad", "train", "bf16", 32, 1024, false, "eager"},
     0.25,
     false},
    {"gpt2 compiled", GPT2(32, "bf16", "eager"), GPT2(32, "bf16", "compile"), 0.25, false},
    {"gpt2 forward compiled",
     {"gpt2", "inf", "bf16", 16, 1024, false, "eager"},
     {"gpt2", "inf", "bf16", 16, 1024, false, "compile"},
     0.25,
     false},
    /* Attention with a mask is slower than forecast once the sequence is long: 66 ms against 51. */
    {"llama compiled", LLAMA("train", 8, 2048, false, "eager"), LLAMA("train", 8, 2048, false, "compile"), 0.4, false},
    {"llama decode replayed", LLAMA("decode", 1, 1024, false, "eager"), LLAMA("decode", 1, 1024, false, "cuda_graph"),
     0.25, false},
    {"llama without recomputation", LLAMA("train", 8, 2048, true, "eager"), LLAMA("train", 8, 2048, false, "eager"),
     0.25, false},
    /* 48 small layers: what checkpointing costs the host shows in the wall (126 ms) and is not forecast. */
    {"gpt2-xl without recomputation, kernels",
     {"gpt2_xl", "train", "bf16", 4, 1024, true, "eager"},
     {"gpt2_xl", "train", "bf16", 4, 1024, false, "eager"},
     0.25,
     true},
    {"bf16 instead of autocast", GPT2(32, "amp", "eager"), GPT2(32, "bf16", "eager"), 0.25, false},
    {"gpt2 batch 8 to 32", GPT2(8, "bf16", "eager"), GPT2(32, "bf16", "eager"), 0.25, false},
    {"gpt2 decode batch 1 to 64",
     {"gpt2", "decode", "bf16", 1, 512, false, "eager"},
     {"gpt2", "decode", "bf16", 64, 512, false, "eager"},
     0.25,
     false},
    {"llama decode batch 1 to 32", LLAMA("decode", 1, 1024, false, "eager"), LLAMA("decode", 32, 1024, false, "eager"),
     0.25, false},
    {"gpt2-large fp32 batch 1 to 4",
     {"gpt2_large", "train", "fp32", 1, 1024, false, "eager"},
     {"gpt2_large", "train", "fp32", 4, 1024, false, "eager"},
     0.25,
     false},
    /* A saving of an eighth is the difference of two steps that are each forecast within five percent. */
    {"llama batch 2 to 8", LLAMA("train", 2, 2048, false, "eager"), LLAMA("train", 8, 2048, false, "eager"), 0.75,
     false},
};

static void measured_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const pair *p = &pairs[i];
        const json_t *before = row_of(&p->before), *after = row_of(&p->after);
        json_t *asked = request_of(before), *changed = request_of(after);
        json_t *from = answer_to(asked), *to = answer_to(changed);
        const char *figure = p->busy ? "busy_ms" : "step_ms";
        double scale = (double)p->before.batch / p->after.batch;
        double real = p->busy ? busy_of(before) - scale * busy_of(after)
                              : number(before, "ms") - scale * number(after, "ms");
        double forecast = golden_figure(from, figure) - scale * golden_figure(to, figure);
        golden_holds(real * forecast > 0, "%s: saves %g ms, forecast %g", p->what, real, forecast);
        golden_near(p->what, forecast, real, p->share);
        json_decref(asked), json_decref(changed), json_decref(from), json_decref(to);
    }
}

/* -- advice is what the forecast says ---------------------------------------------------------- */

static const json_t *advice_named(const json_t *answer, const char *change)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(answer, "advice"), i, one) {
        if (!strcmp(word(one, "change"), change)) return one;
    }
    fail_msg("no advice \"%s\"", change);
    return NULL;
}

static json_t *advised(json_t *request)
{
    json_object_set_new(request, "advice", json_true());
    return answer_to(request);
}

/* The advice that a user gets for a measured step, against the step that was measured after following it. */
static void advice_followed(void **state)
{
    (void)state;
    static const struct {
        picked before, after;
        const char *change;
        double share;
    } cases[] = {
        {GPT2(32, "bf16", "eager"),
         {"gpt2_pad", "train", "bf16", 32, 1024, false, "eager"},
         "pad vocab 50257 to 50304",
         0.25},
        {GPT2(32, "bf16", "eager"), GPT2(32, "bf16", "compile"), "compile (torch.compile)", 0.25},
        {GPT2(32, "amp", "eager"), GPT2(32, "bf16", "eager"), "bf16 instead of amp_bf16", 0.25},
        {LLAMA("train", 8, 2048, true, "eager"), LLAMA("train", 8, 2048, false, "eager"), "no recomputation", 0.25},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const json_t *before = row_of(&cases[i].before), *after = row_of(&cases[i].after);
        json_t *request = request_of(before), *answer = advised(request);
        const json_t *a = advice_named(answer, cases[i].change);
        double real = number(before, "ms") - number(after, "ms"), low = number(a, "low_ms"),
               high = number(a, "high_ms");
        golden_near(cases[i].change, number(a, "saves_ms"), real, cases[i].share);
        golden_holds(low <= real && real <= high, "%s saves %g ms, outside %g to %g", cases[i].change, real, low, high);
        json_decref(answer), json_decref(request);
    }
}

/* Every advice carries the request that it is the forecast of. */
static void hold_to_request(const json_t *request, const json_t *advice, const char *what)
{
    json_t *changed = json_deep_copy(request);
    json_object_del(changed, "advice");
    assert_int_equal(json_object_update_recursive(changed, json_object_get(advice, "request")), 0);
    json_t *answer = answer_to(changed);
    golden_near(what, golden_figure(answer, "step_ms"), number(advice, "step_ms"), 1e-4);
    json_decref(answer), json_decref(changed);
}

static void patches(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "{\"task\":\"train\",\"model\":{\"model_type\":\"gpt2\"},\"gpu\":\"h200_sxm\",\"batch\":8,\"seq\":1024,"
        "\"dtype\":\"fp32\",\"attention\":\"eager\",\"optimizer\":\"adamw_foreach\",\"recompute\":\"full\"}",
        "{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"batch\":1,\"seq\":4096,\"global_batch\":"
        "64,"
        "\"parallel\":{\"tp\":2,\"pp\":2,\"dp\":4,\"zero\":1,\"overlap\":false},\"master_weights\":true}",
        "{\"task\":\"decode\",\"model\":\"llama-3-8b\",\"gpu\":\"a100_sxm_80gb\",\"batch\":4,\"seq\":2048,\"cache\":"
        "\"dynamic\"}",
        "{\"task\":\"train\",\"model\":{\"model_type\":\"resnet\"},\"gpu\":\"h200_sxm\",\"batch\":64,\"layout\":"
        "\"nchw\","
        "\"loader\":{\"workers\":2,\"worker_ms\":6,\"samples_per_s_disk\":2000,\"sample_bytes\":150528,\"disk_gbps\":2}"
        "}",
    };
    for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
        json_t *request = json_loads(requests[r], 0, NULL);
        assert_non_null(request);
        json_t *answer = advised(request);
        const json_t *list = json_object_get(answer, "advice"), *all = json_object_get(answer, "advice_together");
        golden_holds(json_array_size(list) >= 2, "request %zu gets %zu pieces of advice", r, json_array_size(list));
        size_t i;
        json_t *one;
        double last = INFINITY;
        json_array_foreach (list, i, one) {
            bool top = json_is_true(json_object_get(one, "on_top"));
            double saves = number(one, "saves_ms");
            if (!top) hold_to_request(request, one, word(one, "change"));
            golden_holds(saves > 0 && number(one, "low_ms") <= saves && saves <= number(one, "high_ms"),
                         "%s: %g in %g to %g", word(one, "change"), saves, number(one, "low_ms"),
                         number(one, "high_ms"));
            golden_holds(top || saves <= last * (1 + 0.031), "%s is out of order", word(one, "change"));
            if (!top) last = saves;
        }
        hold_to_request(request, all, "all together");
        json_decref(answer), json_decref(request);
    }
}

/* -- regimes ----------------------------------------------------------------------------------- */

static bool contracts(const char *kernel)
{
    static const char *const signs[] = {"gemm", "nvjet", "cutlass", "sdpa", "flash",
                                        "conv", "wgrad", "dgrad",   "xmma", "prop_"};
    if (strstr(kernel, "convert") || strstr(kernel, "compute_dot")) return false;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strstr(kernel, signs[i])) return true;
    return false;
}

/* What most of the measured kernels' time goes into; convolutions and products may be held by memory too, so that a
 * close call is no call. */
static const char *busy_kernels_say(const json_t *row)
{
    double contraction = 0, all = 0;
    size_t i;
    json_t *kernel;
    json_array_foreach (json_object_get(json_object_get(row, "profile"), "by_kernel"), i, kernel) {
        double us = json_number_value(json_array_get(kernel, 2));
        all += us;
        if (contracts(json_string_value(json_array_get(kernel, 0)))) contraction += us;
    }
    double share = all > 0 ? contraction / all : 0.5;
    return share > 0.53 ? "compute" : share < 0.47 ? "memory" : "";
}

static void regimes(void **state)
{
    (void)state;
    int hosts = 0, large = 0;
    size_t i;
    json_t *row;
    json_array_foreach (measured, i, row) {
        if (json_object_get(row, "config")) continue; /* the first file alone */
        bool host = number(row, "ms") > 1.6 * busy_of(row), training = !strcmp(word(row, "mode"), "train");
        if (!host && !(training && number(row, "batch") >= 8)) continue;
        json_t *request = request_of(row), *answer = answer_to(request);
        const char *bound = word(json_object_get(answer, "regime"), "bound");
        const char *expected = host ? "overhead" : busy_kernels_say(row);
        golden_holds(*expected ? !strcmp(bound, expected) : strcmp(bound, "overhead") != 0,
                     "%s %s b%g s%g %s is held by %s, expected %s", word(row, "model"), word(row, "mode"),
                     number(row, "batch"), number(row, "seq"), word(row, "dtype"), bound,
                     *expected ? expected : "compute or memory");
        hosts += host;
        large += !host;
        json_decref(answer), json_decref(request);
    }
    golden_holds(hosts >= 10 && large >= 12, "%d host-bound, %d large training steps", hosts, large);
}

/* The overhead test: twice the batch costs a decode step of one sequence nothing, a large training step twice. */
static void doubling(void **state)
{
    (void)state;
    json_t *small = golden_ask(
        "{\"task\":\"decode\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"batch\":1,\"seq\":512,\"advice\":true}");
    json_t *large = golden_ask(
        "{\"task\":\"train\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"batch\":32,\"seq\":1024,\"advice\":true}");
    double few = golden_figure(small, "verdict.doubled.ratio"), many = golden_figure(large, "verdict.doubled.ratio");
    golden_holds(few < 1.1 && many > 1.8, "doubling the batch takes %g and %g times as long", few, many);
    json_decref(small), json_decref(large);
}

/* Explaining a layout of 1024 GPUs; processor time, because the machine may be busy. */
static void cost(void **state)
{
    (void)state;
    clock_t began = clock();
    json_decref(
        golden_ask("{\"task\":\"train\",\"model\":\"llama-3.1-405b\",\"gpu\":\"h100_sxm\",\"batch\":1,\"seq\":8192,"
                   "\"global_batch\":512,\"recompute\":\"full\",\"advice\":true,\"techniques\":true,\"parallel\":{"
                   "\"tp\":8,\"pp\":16,\"dp\":8,\"sp\":true,\"zero\":1}}"));
    double s = (double)(clock() - began) / CLOCKS_PER_SEC;
    golden_holds(s < 0.5, "advice for 405 B takes %g s", s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measured_pairs), cmocka_unit_test(advice_followed), cmocka_unit_test(patches),
        cmocka_unit_test(regimes),        cmocka_unit_test(doubling),        cmocka_unit_test(cost),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
