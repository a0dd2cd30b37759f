/* Requests for whole models: what every key becomes, what is left out, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/answer.h"
#include "base/json.h"
#include "failing_alloc.h"

static ft_context *ft;
static ft_scratch scratch;

static int open_context(void **state)
{
    (void)state;
    return ft_open(&ft, NULL, NULL) == FT_OK ? 0 : -1;
}

static int close_context(void **state)
{
    (void)state;
    ft__scratch_free(&scratch);
    ft_close(ft);
    return 0;
}

static ft_status read_text(const char *text, ft_model_request *out, ft_error *err)
{
    json_t *document = NULL;
    if (ft__json_parse(text, strlen(text), "", &document, err) != FT_OK) fail_msg("%s: %s", text, err->message);
    ft_status status = ft__model_request_of(ft, &scratch, document, out, err);
    if (out->model && json_string_value(json_object_get(document, "model"))) out->model = NULL; /* dies here */
    json_decref(document);
    return status;
}

static ft_model_request reads(const char *text)
{
    ft_model_request r;
    ft_error err = {0};
    if (read_text(text, &r, &err) != FT_OK) fail_msg("%s: %s: %s", text, err.where, err.message);
    return r;
}

static void refused(const char *text, ft_status code, const char *where, const char *message)
{
    ft_model_request r;
    ft_error err = {0};
    ft_status status = read_text(text, &r, &err);
    if (status != code) fail_msg("%s: got %s: %s", text, ft_status_name(status), err.message);
    assert_string_equal(where, err.where);
    assert_string_equal(message, err.message);
}

static void defaults_are_the_contracts(void **state)
{
    (void)state;
    ft_model_request r = reads("{\"model\":\"llama-3-8b\",\"gpu\":\"h200_sxm\"}");
    assert_int_equal(FT_ASK_TRAIN, r.ask);
    assert_int_equal(FT_TRAIN, r.work.task);
    assert_int_equal(FT_BF16, r.work.dtype);
    assert_false(r.work.autocast || r.work.master_weights || r.work.clip);
    assert_int_equal(1, r.work.batch);
    assert_int_equal(4096, r.work.seq); /* of 8192 positions */
    assert_int_equal(1, r.work.accumulate);
    assert_int_equal(FT_FLASH, r.work.attention);
    assert_int_equal(FT_RUN_EAGER, r.work.execution);
    assert_int_equal(FT_CACHE_PAGED, r.work.cache);
    assert_int_equal(FT_ADAMW, r.work.optimizer);
    assert_int_equal(FT_RECOMPUTE_NONE, r.work.recompute);
    assert_int_equal(FT_SUMMARY, r.detail);
    assert_int_equal(FT_BF16, r.work.kv_dtype);
    assert_true(r.work.weight_bits == 0 && r.work.lora_rank == 0 && r.work.host_us_per_op == 0);
    assert_string_equal("llama", r.arch->model_type);
    assert_int_equal(1024, reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\"}").work.seq);
}

static void every_key_has_its_place(void **state)
{
    (void)state;
    ft_model_request r = reads(
        "{\"task\":\"train\",\"model\":{\"model_type\":\"gpt2\"},\"gpu\":\"h200_sxm\",\"dtype\":\"amp_fp16\","
        "\"batch\":4,\"seq\":512,\"attention\":\"sdpa\",\"execution\":\"compile\",\"host_us_per_op\":7.5,"
        "\"optimizer\":\"muon\",\"master_weights\":true,\"recompute\":\"selective\",\"lora_rank\":8,"
        "\"global_batch\":64,\"quantile\":0.8,\"detail\":\"kernels\",\"clip_grad\":true,"
        "\"parallel\":{\"dp\":1,\"tp\":1,\"zero\":3,\"sp\":true,\"schedule\":\"1f1b\"},\"cluster\":{\"gpus_per_node\":"
        "8}}");
    assert_int_equal(FT_FP16, r.work.dtype);
    assert_true(r.work.autocast && r.work.master_weights && r.work.clip);
    assert_string_equal("amp_fp16", r.dtype_name);
    assert_string_equal("gpt2", r.model);
    assert_int_equal(4, r.work.batch);
    assert_int_equal(512, r.work.seq);
    assert_int_equal(16, r.work.accumulate);
    assert_int_equal(FT_SDPA, r.work.attention);
    assert_int_equal(FT_RUN_COMPILE, r.work.execution);
    assert_int_equal(FT_MUON, r.work.optimizer);
    assert_int_equal(FT_RECOMPUTE_SELECTIVE, r.work.recompute);
    assert_int_equal(8, r.work.lora_rank);
    assert_int_equal(FT_KERNELS, r.detail);
    assert_true(r.work.host_us_per_op == 7.5 && r.quantile == 0.8);
    r = reads(
        "{\"task\":\"decode\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"dtype\":\"fp8\",\"weights_dtype\":\"fp4\","
        "\"kv_dtype\":\"fp8\",\"cache\":\"static\"}");
    assert_int_equal(FT_DECODE, r.work.task);
    assert_int_equal(FT_FP8, r.work.kv_dtype);
    assert_int_equal(FT_CACHE_STATIC, r.work.cache);
    assert_true(r.work.weight_bits == 4);
}

static void adapters_are_asked_for(void **state)
{
    (void)state;
#define LORA(inside) "{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"lora\":" inside "}"
    ft_model_request r = reads(LORA("{\"rank\":8,\"targets\":[\"c_attn\",\"mlp.c_proj\"],\"dtype\":\"bf16\","
                                    "\"dropout\":0,\"alpha\":16,\"dora\":true}"));
    assert_int_equal(8, r.work.lora_rank);
    assert_int_equal(FT_TARGET_Q | FT_TARGET_K | FT_TARGET_V | FT_TARGET_DOWN, r.work.lora.targets);
    assert_int_equal(FT_ADAPTER_MODEL, r.work.lora.form);
    assert_true(r.work.lora.dropout_said && r.work.lora.magnitude && !r.work.lora.embeddings);
    assert_int_equal(FT_TARGET_ALL, reads(LORA("{\"rank\":8,\"targets\":\"all-linear\"}")).work.lora.targets);
    assert_int_equal(FT_TARGET_Q | FT_TARGET_V, reads(LORA("{\"rank\":8,\"targets\":\"q,v\"}")).work.lora.targets);
    assert_int_equal(0, reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"lora_rank\":8}").work.lora.targets);
    refused(LORA("{\"targets\":\"q\"}"), FT_E_MISSING, "lora.rank", "\"lora\" needs a \"rank\": {\"rank\": 16}");
    refused(LORA("{\"rank\":8,\"targets\":[\"q_prj\"]}"), FT_E_NAME, "lora.targets",
            "unknown layer \"q_prj\"; did you mean \"q_proj\"? Names are as \"q_proj\", \"linear_qkv\", "
            "\"c_attn\", ... or \"all-linear\"");
    refused(LORA("8"), FT_E_TYPE, "lora",
            "\"lora\" must be an object: {\"rank\": 16, \"targets\": [\"q_proj\", \"v_proj\"]}");
#undef LORA
    refused("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"lora_rank\":8,\"lora\":{\"rank\":4}}", FT_E_RANGE, "lora.rank",
            "\"rank\" is 4 and \"lora_rank\" is 8: one of them is enough");
}

static void formats_follow_each_other(void **state)
{
    (void)state;
    /* 16 bits are the dtype's own; the cache beside fp8 products stays in 16 bits; tf32 is stored as fp32. */
    assert_true(reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"weights_dtype\":\"bf16\"}").work.weight_bits == 0);
    assert_true(
        reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"weights_dtype\":\"nf4\",\"lora_rank\":8}").work.weight_bits ==
        4);
    assert_true(reads("{\"task\":\"decode\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"weights_dtype\":\"int4\"}")
                    .work.weight_bits == 4);
    /* fp32 weights beside 16-bit arithmetic are autocast's; training keeps 16 bits beside fp8. */
    ft_model_request wide = reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"weights_dtype\":\"fp32\"}");
    assert_true(wide.work.autocast && !strcmp(wide.dtype_name, "amp_bf16"));
    assert_true(reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"dtype\":\"fp8\",\"weights_dtype\":\"bf16\"}")
                    .work.weight_bits == 0);
    refused("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"weights_dtype\":\"nf4\"}", FT_E_UNSUPPORTED, "weights_dtype",
            "weights in \"nf4\" are not trained: give \"lora_rank\" to train adapters beside them (QLoRA), or leave "
            "\"weights_dtype\" out");
    refused("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"dtype\":\"fp8\",\"weights_dtype\":\"fp32\"}", FT_E_UNSUPPORTED,
            "weights_dtype",
            "\"weights_dtype\" \"fp32\" with \"dtype\" \"fp8\" is not forecast: weights are kept in 16 bits or fewer "
            "there");
    refused("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"dtype\":\"amp_bf16\",\"weights_dtype\":\"bf16\"}", FT_E_RANGE,
            "weights_dtype",
            "\"weights_dtype\" \"bf16\" contradicts \"dtype\" \"amp_bf16\", which keeps fp32 weights; \"dtype\" "
            "\"bf16\" keeps "
            "them in 16 bits");
    refused("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"max_model_len\":64}", FT_E_KEY, "max_model_len",
            "unknown key \"max_model_len\"; here it is \"seq\"");
    assert_int_equal(FT_BF16, reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"dtype\":\"fp8\"}").work.kv_dtype);
    assert_int_equal(FT_FP32, reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"dtype\":\"tf32\"}").work.kv_dtype);
    assert_int_equal(FT_FP16, reads("{\"model\":\"gpt2\",\"gpu\":\"t4\",\"dtype\":\"int8\"}").work.kv_dtype);
}

static void memory_is_of_training_or_of_a_cache(void **state)
{
    (void)state;
    assert_int_equal(FT_TRAIN, reads("{\"task\":\"memory\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\"}").work.task);
    assert_int_equal(
        FT_DECODE,
        reads("{\"task\":\"memory\",\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"cache\":\"paged\"}").work.task);
}

static void images_have_no_sequence(void **state)
{
    (void)state;
    ft_model_request r = reads("{\"model\":{\"model_type\":\"resnet\"},\"gpu\":\"h200_sxm\",\"seq\":0,\"batch\":3}");
    assert_int_equal(1, r.work.seq);
    refused("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"seq\":0}", FT_E_RANGE, "seq",
            "\"seq\" must be a whole number from 1 to 2^40, got 0");
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
#define ON "\"gpu\":\"h200_sxm\""
    refused("{" ON "}", FT_E_MISSING, "model",
            "\"model\" is missing: a name (llama-3-8b), the path of a config.json or its object");
    refused("{\"model\":\"gpt2\"}", FT_E_MISSING, "gpu",
            "\"gpu\" is missing: a name (h100_sxm), a file or a spec object");
    refused("{\"model\":7," ON "}", FT_E_TYPE, "model", "\"model\" must be a name, a path or a config object");
    refused("{\"model\":\"gpt2\"," ON ",\"parallel\":{\"tensor_model_parallel_size\":8}}", FT_E_KEY,
            "parallel.tensor_model_parallel_size", "unknown key \"tensor_model_parallel_size\"; here it is \"tp\"");
    refused("{\"model\":\"gpt2\"," ON ",\"parallel\":{\"zero_stage\":3}}", FT_E_KEY, "parallel.zero_stage",
            "unknown key \"zero_stage\"; here it is \"zero\"");
    refused("{\"model\":\"gpt2\"," ON ",\"tp\":8}", FT_E_KEY, "tp",
            "unknown key \"tp\"; it is \"parallel\": {\"tp\": ...}");
    refused("{\"model\":\"gpt2\"," ON ",\"pipeline_model_parallel_size\":8}", FT_E_KEY, "pipeline_model_parallel_size",
            "unknown key \"pipeline_model_parallel_size\"; it is \"parallel\": {\"pp\": ...}");
    refused("{\"model\":\"gpt2\"," ON ",\"nodes\":2}", FT_E_KEY, "nodes",
            "unknown key \"nodes\"; it is \"cluster\": {\"nodes\": ...}");
    refused("{\"model\":\"gpt2\"," ON ",\"name\":2}", FT_E_KEY, "name", "unknown key \"name\"");
    refused("{\"model\":\"gpt2\"," ON ",\"sequence\":1}", FT_E_KEY, "sequence", "unknown key \"sequence\"");
    refused("{\"model\":\"gpt2\"," ON ",\"batchs\":1}", FT_E_KEY, "batchs",
            "unknown key \"batchs\"; did you mean \"batch\"?");
    refused("{\"model\":\"gpt2\"," ON ",\"optimizer\":\"adam\"}", FT_E_NAME, "optimizer",
            "unknown optimizer \"adam\"; did you mean \"adamw\"?");
    refused("{\"model\":\"gpt2\"," ON ",\"dtype\":\"amp_bf15\"}", FT_E_NAME, "dtype",
            "unknown dtype \"amp_bf15\"; did you mean \"amp_bf16\"?");
    refused("{\"model\":\"gpt2\",\"gpu\":\"t4\"}", FT_E_UNSUPPORTED, "dtype",
            "t4 has no bf16; frameworks would run fp16 instead");
    refused("{\"model\":\"gpt2\"," ON ",\"batch\":6,\"global_batch\":20}", FT_E_RANGE, "global_batch",
            "\"global_batch\" 20 is not a multiple of \"batch\" x \"dp\" 6; the nearest are 18 and 24");
    refused("{\"model\":\"gpt2\"," ON ",\"batch\":6,\"global_batch\":4}", FT_E_RANGE, "global_batch",
            "\"global_batch\" 4 is below one micro-batch of 6 on every data rank");
    refused("{\"model\":\"gpt2\"," ON ",\"parallel\":{\"tpp\":4}}", FT_E_KEY, "parallel.tpp",
            "unknown key \"tpp\"; did you mean \"tp\"?");
    refused("{\"model\":\"gpt2\"," ON ",\"parallel\":{\"dp\":8,\"zero\":3,\"gather\":\"paramter\"}}", FT_E_NAME,
            "parallel.gather", "unknown gather \"paramter\"; did you mean \"parameter\"?");
    refused("{\"model\":\"gpt2\"," ON ",\"parallel\":{\"dp\":8,\"zero\":3,\"gather\":true}}", FT_E_TYPE,
            "parallel.gather", "\"gather\" must be a string, got true");
    refused("{\"task\":\"decode\",\"model\":{\"model_type\":\"bert\"}," ON "}", FT_E_UNSUPPORTED, "task",
            "\"bert\" generates no tokens: it has no prefill and no decode; ask for \"forward\"");
    refused("{\"model\":\"gpt2\"," ON ",\"batch\":1000000000000,\"seq\":100000}", FT_E_RANGE, "batch",
            "batch 1000000000000 with seq 100000 makes a tensor of 1.2e+23 elements; tensors of more "
            "than 1e15 are not forecast");
    refused("{\"model\":\"gpt2\"," ON ",\"read_as\":\"a name that is longer than any model_type could be\"}", FT_E_NAME,
            "read_as", "\"read_as\" names no model_type: \"a name that is longer than any model_type could be\"");
}

static void beyond_its_positions_is_a_warning(void **state)
{
    (void)state;
    ft_model_request r = reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"seq\":2048}");
    assert_string_equal("seq 2048 is beyond the 1024 positions that the model has embeddings for", r.remark);
    assert_string_equal("", reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"seq\":1024}").remark);
}

static void a_scratch_remembers_models(void **state)
{
    (void)state;
    const ft_arch *first = reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\"}").arch;
    assert_ptr_equal(first, reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\"}").arch);
    for (int i = 1; i <= FT_REMEMBERED_MODELS + 2; i++) {
        char text[160];
        snprintf(text, sizeof text, "{\"model\":{\"model_type\":\"gpt2\",\"n_layer\":%d},\"gpu\":\"h200_sxm\"}", i);
        assert_int_equal(i, reads(text).arch->layers);
    }
    assert_int_equal(12, reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\"}").arch->layers);
}

/* -- answers ----------------------------------------------------------------------------------- */

static json_t *answer_of(const char *request)
{
    ft_text out = {0};
    json_t *answer = NULL;
    ft_error err = {0};
    ft__answer(ft, &scratch, request, strlen(request), 0, &out);
    if (ft__json_parse(out.at, out.length, "", &answer, &err) != FT_OK) fail_msg("%s: %s", err.message, out.at);
    if (!json_is_true(json_object_get(answer, "ok"))) fail_msg("%s", out.at);
    ft__text_free(&out);
    return answer;
}

static double figure(const json_t *answer, const char *object, const char *key)
{
    const json_t *value = json_object_get(object ? json_object_get(answer, object) : answer, key);
    if (!json_is_number(value)) fail_msg("no figure \"%s\"", key);
    return json_number_value(value);
}

static bool near(double a, double b, double share) { return a >= b * (1 - share) && a <= b * (1 + share); }

#define SMALL "\"model\":{\"model_type\":\"gpt2\",\"n_layer\":4},\"gpu\":\"h200_sxm\",\"batch\":4,\"seq\":512"

static void a_step_adds_up(void **state)
{
    (void)state;
    json_t *a = answer_of("{\"id\":\"s\",\"task\":\"train\"," SMALL ",\"recompute\":\"full\",\"detail\":\"kernels\"}");
    assert_string_equal("s", json_string_value(json_object_get(a, "id")));
    double step = figure(a, NULL, "step_ms"), busy = figure(a, NULL, "busy_ms");
    double phases = figure(a, NULL, "forward_ms") + figure(a, NULL, "backward_ms") + figure(a, NULL, "optimizer_ms") +
                    figure(a, NULL, "recompute_ms");
    assert_true(figure(a, NULL, "low_ms") <= step && step <= figure(a, NULL, "high_ms") && step >= busy * 0.999);
    assert_true(near(phases, busy, 1e-4) && figure(a, NULL, "recompute_ms") > 0);
    assert_true(figure(a, NULL, "hfu") > figure(a, NULL, "mfu"));
    double regime = figure(a, "regime", "compute") + figure(a, "regime", "memory") + figure(a, "regime", "overhead") +
                    figure(a, "regime", "communication");
    assert_true(near(regime, 1, 1e-4));
    static const char *const parts[] = {"weights_bytes",     "gradients_bytes", "optimizer_bytes",
                                        "activations_bytes", "temporary_bytes", "kv_cache_bytes"};
    double sum = 0;
    for (int i = 0; i < 6; i++) sum += figure(a, "memory", parts[i]);
    assert_true(near(sum, figure(a, "memory", "peak_bytes"), 1e-9));
    assert_true(json_is_true(json_object_get(json_object_get(a, "memory"), "fits")));
    size_t i;
    json_t *kernel;
    double launches = 0, total = 0;
    json_array_foreach (json_object_get(a, "kernels"), i, kernel) {
        launches += figure(kernel, NULL, "count");
        total += figure(kernel, NULL, "total_ms");
        assert_true(
            near(figure(kernel, NULL, "total_ms"), figure(kernel, NULL, "count") * figure(kernel, NULL, "ms"), 1e-4));
    }
    assert_true(i > 20 && near(total, busy, 1e-3) && near(launches, figure(a, NULL, "launches"), 1e-6));
    json_decref(a);
}

static void layers_add_up(void **state)
{
    (void)state;
    json_t *a = answer_of("{\"task\":\"train\"," SMALL ",\"detail\":\"layers\"}"), *layer;
    size_t i;
    double parameters = 0, ms = 0, saved = 0;
    json_array_foreach (json_object_get(a, "layers"), i, layer) {
        parameters += figure(layer, NULL, "parameters");
        saved += figure(layer, NULL, "activations_bytes");
        ms += figure(layer, NULL, "forward_ms") + figure(layer, NULL, "backward_ms") +
              figure(layer, NULL, "recompute_ms");
    }
    assert_true(parameters == figure(a, NULL, "parameters"));
    assert_true(near(ms, figure(a, NULL, "busy_ms"), 1e-3) && saved > 0);
    assert_null(json_object_get(a, "kernels"));
    json_decref(a);
}

static void each_task_answers_its_own(void **state)
{
    (void)state;
    json_t *prefill = answer_of("{\"task\":\"prefill\"," SMALL "}"),
           *decode = answer_of("{\"task\":\"decode\"," SMALL "}"),
           *memory = answer_of("{\"task\":\"memory\"," SMALL "}"), *train = answer_of("{\"task\":\"train\"," SMALL "}");
    assert_true(figure(prefill, NULL, "ttft_ms") == figure(prefill, NULL, "step_ms"));
    assert_true(figure(decode, NULL, "tpot_ms") == figure(decode, NULL, "step_ms"));
    assert_true(figure(decode, "memory", "kv_cache_bytes") > 0);
    assert_null(json_object_get(memory, "step_ms"));
    assert_true(figure(memory, "memory", "peak_bytes") == figure(train, "memory", "peak_bytes"));
    json_decref(prefill);
    json_decref(decode);
    json_decref(memory);
    json_decref(train);
}

static void what_does_not_fit_is_answered_with_a_remedy(void **state)
{
    (void)state;
    json_t *a =
        answer_of("{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"batch\":8,\"seq\":4096}");
    const json_t *memory = json_object_get(a, "memory");
    assert_true(json_is_false(json_object_get(memory, "fits")));
    assert_true(json_string_length(json_object_get(memory, "remedy")) > 0);
    double short_bytes = figure(a, "memory", "reserved_bytes") + figure(a, "memory", "context_bytes") -
                         figure(a, "memory", "capacity_bytes");
    assert_true(near(figure(a, "memory", "short_bytes"), short_bytes, 1e-9) && figure(a, NULL, "step_ms") > 0);
    json_decref(a);
}

/* The same request gives the same bytes, whatever was asked before. */
static void answers_do_not_depend_on_what_was_asked_before(void **state)
{
    (void)state;
    const char *request = "{\"task\":\"train\"," SMALL ",\"detail\":\"kernels\"}";
    ft_text one = {0}, two = {0};
    ft_scratch fresh = {0};
    ft__answer(ft, &scratch, request, strlen(request), 0, &one);
    json_decref(answer_of("{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"mi300x\"}"));
    ft__answer(ft, &fresh, request, strlen(request), 0, &two);
    assert_string_equal(one.at, two.at);
    ft__text_clear(&two);
    ft__answer(ft, &scratch, request, strlen(request), 0, &two);
    assert_string_equal(one.at, two.at);
    ft__scratch_free(&fresh);
    ft__text_free(&one);
    ft__text_free(&two);
}

static ft_status attempt(void *context)
{
    ft_text out = {0};
    ft_scratch fresh = {0};
    const char *request = context;
    ft__answer(ft, &fresh, request, strlen(request), 0, &out);
    bool answered = !out.failed && !strncmp(out.at, "{\"ok\":true", 10);
    bool no_memory = out.failed || strstr(out.at, "\"out_of_memory\"");
    if (!answered && !no_memory) fail_msg("%s", out.at);
    ft__scratch_free(&fresh);
    ft__text_free(&out);
    return answered ? FT_OK : FT_E_MEMORY;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    static char layers[] = "{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"t4\",\"dtype\":\"fp16\","
                           "\"detail\":\"layers\"}",
                kernels[] = "{\"task\":\"train\"," SMALL ",\"detail\":\"kernels\"}";
    assert_true(failing_alloc_sweep(attempt, layers) > 10);
    assert_true(failing_alloc_sweep(attempt, kernels) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_contracts),
        cmocka_unit_test(every_key_has_its_place),
        cmocka_unit_test(formats_follow_each_other),
        cmocka_unit_test(adapters_are_asked_for),
        cmocka_unit_test(memory_is_of_training_or_of_a_cache),
        cmocka_unit_test(images_have_no_sequence),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(beyond_its_positions_is_a_warning),
        cmocka_unit_test(a_scratch_remembers_models),
        cmocka_unit_test(a_step_adds_up),
        cmocka_unit_test(layers_add_up),
        cmocka_unit_test(each_task_answers_its_own),
        cmocka_unit_test(what_does_not_fit_is_answered_with_a_remedy),
        cmocka_unit_test(answers_do_not_depend_on_what_was_asked_before),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
