/* Requests for whole models: what every key becomes, what is left out, what is refused. */
#include "model_requests.h"

static void refused(const char *text, ft_status code, const char *where, const char *message)
{
    ft_model_request r;
    ft_error err = {0};
    ft_status status = read_text(text, &r, &err);
    if (status != code) fail_msg("%s: got %s: %s", text, ft_status_name(status), err.message);
    assert_string_equal(where, err.where);
    assert_string_equal(message, err.message);
}

/* No flash kernel adds T5's biases: left out, attention is the library's, unless somebody's own kernels are meant. */
static void attention_left_out_is_the_library_s(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        int attention;
    } asked[] = {
        {"{\"model\":\"t5-small\",\"gpu\":\"h200_sxm\"}", FT_SDPA},
        {"{\"model\":\"t5-small\",\"gpu\":\"h200_sxm\",\"task\":\"forward\",\"execution\":\"compile\"}", FT_SDPA},
        {"{\"model\":\"t5-small\",\"gpu\":\"h200_sxm\",\"pytorch\":\"2.12\"}", FT_SDPA},
        {"{\"model\":\"t5-small\",\"gpu\":\"h200_sxm\",\"pytorch\":\"2.11\"}", FT_EAGER}, /* transformers' of then */
        {"{\"model\":\"t5-small\",\"gpu\":\"h200_sxm\",\"pytorch\":\"2.6\",\"attention\":\"sdpa\"}", FT_SDPA},
        {"{\"model\":{\"model_type\":\"mpnet\"},\"gpu\":\"h200_sxm\"}", FT_EAGER},
        {"{\"model\":{\"model_type\":\"gptj\"},\"gpu\":\"h200_sxm\"}", FT_EAGER},
        {"{\"model\":\"t5-small\",\"gpu\":\"h200_sxm\",\"attention\":\"flash\"}", FT_FLASH},
        {"{\"model\":\"t5-small\",\"gpu\":\"h200_sxm\",\"attention\":\"eager\"}", FT_EAGER},
        {"{\"model\":\"t5-small\",\"gpu\":\"h200_sxm\",\"execution\":\"fused\"}", FT_FLASH},
        {"{\"model\":{\"model_type\":\"bert\"},\"gpu\":\"h200_sxm\"}", FT_FLASH},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if ((int)reads(asked[i].request).work.attention != asked[i].attention) fail_msg("%s", asked[i].request);
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
            "weights in \"nf4\" are not trained: give \"lora_rank\" to train adapters on them (QLoRA), or leave "
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
    refused("{\"model\":\"gpt2\"," ON ",\"name\":2}", FT_E_KEY, "name",
            "unknown key \"name\" of the task \"train\"; it is a key of \"kernel\", \"models\", \"gpus\"");
    refused("{\"model\":\"gpt2\"," ON ",\"concurrency\":2}", FT_E_KEY, "concurrency",
            "unknown key \"concurrency\" of the task \"train\"; it is a key of \"serve\"");
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
    assert_string_equal("\"seq\" 2048 is beyond the 1024 positions that the model has embeddings for", r.beyond);
    assert_string_equal("", reads("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\",\"seq\":1024}").beyond);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_contracts),
        cmocka_unit_test(attention_left_out_is_the_library_s),
        cmocka_unit_test(every_key_has_its_place),
        cmocka_unit_test(formats_follow_each_other),
        cmocka_unit_test(adapters_are_asked_for),
        cmocka_unit_test(memory_is_of_training_or_of_a_cache),
        cmocka_unit_test(images_have_no_sequence),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(beyond_its_positions_is_a_warning),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
