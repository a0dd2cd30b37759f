/* Quantised checkpoints: which kinds of modules are stored how, by every method's own words. */
#include "import/config/quantization.h"

#include "kernel_limits.h"
#include "scratch.h"

#include "base/file.h"
#include "import/config/config.h"

static ft_arch read_with(const char *q, ft_status expected, ft_error *err)
{
    ft_arch a = {.layers = 4};
    json_t *object;
    assert_int_equal(FT_OK, ft__json_parse(q, strlen(q), "test", &object, NULL));
    assert_int_equal(expected, ft__quantization_read(object, "model: quantization_config", &a, err));
    json_decref(object);
    return a;
}

/* One letter per kind (attention, output, mlp, experts, shared, head): '-' as computed, '8' and '4' computed in as many
 * bits, 'b' fp8 in blocks, 'i' and 'n' and 'm' and 'v' int4, nf4, mxfp4 and nvfp4 widened, 'e' int8, 'f' fp8 widened,
 * 'q' q5_k_m. */
static const char *letters(const ft_arch *a)
{
    static char text[FT_OF_OTHER + 1];
    for (int c = 0; c < FT_OF_OTHER; c++) {
        const ft_weight_format *f = &a->formats.of[c];
        static const char of[FT_STORAGE_COUNT] = {
            [FT_STORED_FP8] = 'f', [FT_STORED_FP8_BLOCK] = 'b', [FT_STORED_INT8] = 'e',  [FT_STORED_INT4] = 'i',
            [FT_STORED_NF4] = 'n', [FT_STORED_MXFP4] = 'm',     [FT_STORED_NVFP4] = 'v', [FT_STORED_Q5_K_M] = 'q'};
        text[c] = (char)(!f->given ? '-' : f->stored ? of[f->stored] : f->math == FT_FP4 ? '4' : '8');
    }
    return text;
}

static void methods_decide_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *q, *kinds;
        double bits;
    } cases[] = {
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}", "bbbbb-", 8},
        {"{\"quant_method\":\"fp8\",\"activation_scheme\":\"static\"}", "88888-", 8},
        {"{\"quant_method\":\"mxfp4\",\"modules_to_not_convert\":[\"model.layers.*.self_attn\",\"model.layers.*.mlp."
         "router\","
         "\"model.embed_tokens\",\"lm_head\"]}",
         "--mmm-", 4},
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128}", "iiiii-", 4},
        {"{\"quant_method\":\"gptq\",\"bits\":8}", "eeeee-", 8},
        {"{\"quant_method\":\"auto-round\",\"bits\":4,\"group_size\":128}", "iiiii-", 4},
        {"{\"quant_method\":\"intel/auto-round\",\"bits\":8}", "eeeee-", 8},
        {"{\"quant_method\":\"gguf\",\"bits\":4}", "iiiiii", 4},
        {"{\"quant_method\":\"gguf\",\"bits\":6}", "------", 0},
        {"{\"quant_method\":\"gguf\",\"file\":\"q5_k_m\"}", "qqqqqq", 5},
        {"{\"quant_method\":\"gguf\",\"file\":\"iq2_m\"}", "------", 0},
        {"{\"quant_method\":\"gguf\"}", "------", 0},
        {"{\"quant_method\":\"quark\",\"exclude\":[\"lm_head\"],\"global_quant_config\":{\"weight\":{\"dtype\":\"fp4\","
         "\"group_size\":32},\"input_tensors\":{\"dtype\":\"fp4\"}}}",
         "44444-", 4},
        {"{\"quant_method\":\"quark\",\"exclude\":[\"lm_head\",\"model.layers.*.self_attn*\"],\"global_quant_config\":"
         "{\"weight\":{\"dtype\":\"fp8_e4m3\"},\"input_tensors\":{\"dtype\":\"fp8_e4m3\"}}}",
         "--888-", 8},
        {"{\"quant_method\":\"gptq\",\"bits\":3}", "------", 0},
        {"{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,\"bnb_4bit_quant_type\":\"nf4\"}", "nnnnn-", 4},
        {"{\"quant_method\":\"torchao\",\"quant_type\":{\"default\":{\"_type\":\"Int4WeightOnlyConfig\"}}}", "iiiii-",
         4},
        {"{\"quant_method\":\"torchao\",\"quant_type\":\"float8_dynamic_activation_float8_weight\"}", "88888-", 8},
        /* Kimi K2.5: experts alone, in int4 */
        {"{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":{\"input_activations\":null,"
         "\"targets\":[\"Linear\"],"
         "\"weights\":{\"num_bits\":4,\"type\":\"int\",\"group_size\":32}}},\"ignore\":[\"lm_head\",\"re:.*self_attn.*"
         "\","
         "\"re:.*shared_experts.*\",\"re:.*mlp\\\\.(gate|up|gate_up|down)_proj.*\"]}",
         "---i--", 4},
        /* DeepSeek nvfp4: attention but for its output stays */
        {"{\"producer\":{\"name\":\"modelopt\"},\"quantization\":{\"quant_algo\":\"NVFP4\",\"kv_cache_quant_algo\":"
         "\"FP8\",\"exclude_modules\":[\"lm_head\","
         "\"model.layers.0.self_attn.q_a_proj\",\"model.layers.0.self_attn.kv_b_proj\",\"model.layers.1.self_attn.q_a_"
         "proj\","
         "\"model.layers.2.self_attn.q_a_proj\",\"model.layers.3.self_attn.q_a_proj\"]}}",
         "-4444-", 4},
        /* one layer of four spared: the others decide */
        {"{\"quant_algo\":\"NVFP4\",\"exclude_modules\":[\"lm_head\",\"model.layers.0*\"]}", "44444-", 4},
        {"{\"quantization\":{\"quant_algo\":\"FP8\"}}", "88888-", 8}, /* a list that is not there spares the head */
        {"{\"quantization\":{\"quant_algo\":\"FP8\",\"exclude_modules\":[]}}", "888888", 8},
        /* every layer by name, in two formats */
        {"{\"quantization\":{\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":{\"model.layers.0.self_attn.o_"
         "proj\":{\"quant_algo\":\"FP8\"},"
         "\"model.layers.0.mlp.experts\":{\"quant_algo\":\"NVFP4\"}}}}",
         "-8-4--", 4},
        {"{\"quant_method\":\"spqr\"}", "------", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_arch a = read_with(cases[i].q, FT_OK, NULL);
        if (strcmp(cases[i].kinds, letters(&a)) != 0)
            fail_msg("%s: %s, expected %s", cases[i].q, letters(&a), cases[i].kinds);
        assert_true(a.quantized_bits == cases[i].bits);
        assert_non_null(a.quantized);
    }
}

static void contradictions_name_file_key_and_expectation(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,\"load_in_8bit\":true}", "load_in_8bit", "one of"},
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[128]}", "weight_block_size", "[128, 128]"},
        {"{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"g\":{\"weights\":{\"num_bits\":4,\"type\":"
         "\"float\",\"group_size\":48}}}}",
         "group_size", "16 (nvfp4) or 32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_error err = {0};
        read_with(cases[i][0], FT_E_RANGE, &err);
        if (!strstr(err.where, "quantization_config") || !strstr(err.where, cases[i][1]) ||
            !strstr(err.message, cases[i][2]))
            fail_msg("%s: %s", err.where, err.message);
    }
}

/* Methods that exist and have no format here are warned of; a name that nobody has is refused. */
static void unknown_methods_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"quant_method\":\"gtpq\",\"bits\":4}", "did you mean \"gptq\"?"},
        {"{\"quant_method\":\"nobodys\"}", "expected one of awq, gptq"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_error err = {0};
        read_with(cases[i][0], FT_E_NAME, &err);
        if (!strstr(err.where, "quantization_config: quant_method") || !strstr(err.message, cases[i][1]))
            fail_msg("%s: %s", err.where, err.message);
    }
}

/* NVIDIA's tool writes a file beside the config, which then says nothing of it. */
static void a_file_beside_the_config_is_read(void **state)
{
    (void)state;
    static const char config
        [] = "{\"model_type\":\"llama\",\"num_hidden_layers\":4}",
  beside[] =
        "{\"quantization\":{\"quant_algo\":\"FP8\",\"kv_cache_quant_algo\":\"FP8\",\"exclude_modules\":[\"lm_head\"]}}",
  other[] = "{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4}}";
    ft_arch a = {.layers = 4};
    ft_error err = {0};
    char path[1024];
    strcpy(path, scratch_path("m.json"));
    assert_int_equal(FT_OK, ft__file_write(path, config, strlen(config), NULL));
    assert_int_equal(FT_OK, ft__quantization_file(path, &a, NULL));
    assert_null(a.quantized);
    assert_int_equal(FT_OK, ft__file_write(scratch_path("m.hf_quant.json"), beside, strlen(beside), NULL));
    assert_int_equal(FT_OK, ft__quantization_file(path, &a, NULL));
    assert_string_equal("88888-", letters(&a));
    assert_true(a.kv_fp8);
    json_t *object;
    assert_int_equal(FT_OK, ft__json_parse(other, strlen(other), "test", &object, NULL));
    assert_int_equal(FT_OK, ft__config_read(object, NULL, path, &a, NULL));
    json_decref(object);
    assert_int_equal(FT_E_RANGE, ft__quantization_file(path, &a, &err));
    assert_non_null(strstr(err.where, "m.hf_quant.json"));
    assert_non_null(strstr(err.message, "expected the 4 bits"));
}

/* Whatever a checkpoint is called on the Hub, its weights are as that repository has them: the model's own file,
 * its list of checkpoints, or what stands behind the name. */
static void hub_names_are_stored_as_their_repositories(void **state)
{
    (void)state;
    static const struct {
        const char *name, *kinds;
        bool narrow_cache;
    } cases[] = {
        {"deepseek-ai/DeepSeek-V3.2", "bbbbb-", false},
        {"deepseek-ai/DeepSeek-V4-Flash", "bbbmb-", false},
        {"sgl-project/DeepSeek-V4-Flash-FP8", "bbbbb-", false},
        {"nvidia/DeepSeek-V4-Flash-NVFP4", "bb-4b-", false},
        {"nvidia/DeepSeek-V3.2-NVFP4", "-4444-", true},
        {"nvidia/GLM-5.1-NVFP4", "--44--", true},
        {"MiniMaxAI/MiniMax-M2.5", "bbbbb-", false},
        {"XiaomiMiMo/MiMo-V2-Flash", "bbbbb-", false},
        {"moonshotai/Kimi-K2.5", "---i--", false},
        {"moonshotai/Kimi-K3", "---m--", false},
        {"openai/gpt-oss-120b", "--mmm-", false},
        {"Qwen/Qwen3-235B-A22B", "------", false},
        {"Qwen/Qwen3-235B-A22B-FP8", "bbbbb-", false},
        {"Qwen/Qwen3-32B-FP8-Static-PerTensor", "88888-", true},
        {"nvidia/Llama-3.3-70B-Instruct-FP8", "88888-", true},
        {"nvidia/Llama-3.1-8B-Instruct-NVFP4", "44444-", true},
        {"RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "88888-", false},
        {"unsloth/llama-3-8b-bnb-4bit", "nnnnn-", false},
        {"cyankiwi/GLM-4.5-Air-AWQ-4bit", "iiiii-", false},
        {"RedHatAI/Qwen3-8B-NVFP4A16", "vvvvv-", false},
        {"amd/Llama-3.1-70B-Instruct-FP8-KV", "88888-", true},
        {"moonshotai/Kimi-K2-Thinking", "---i--", false},
        {"deepseek-v4-flash-fp8", "bbbbb-", false},
        {"amd/Llama-3.3-70B-Instruct-MXFP4-Preview", "44444-", false},
        {"unsloth/gpt-oss-20b-BF16", "------", false}, /* whatever the model's own repository has */
        {"gpt-oss:20b", "--mmm-", false},
        {"llama3.1:8b", "iiiiii", false},
        {"llama3.1:8b-instruct-fp16", "------", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_arch a;
        ft_error err = {0};
        if (ft__model_open(cases[i].name, NULL, &a, &err) != FT_OK) fail_msg("%s: %s", cases[i].name, err.message);
        if (strcmp(cases[i].kinds, letters(&a)) != 0 || cases[i].narrow_cache != a.kv_fp8)
            fail_msg("%s: %s, cache %d", cases[i].name, letters(&a), a.kv_fp8);
        ft__arch_release(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_decide_kinds),
        cmocka_unit_test(contradictions_name_file_key_and_expectation),
        cmocka_unit_test(unknown_methods_are_refused),
        cmocka_unit_test(a_file_beside_the_config_is_read),
        cmocka_unit_test(hub_names_are_stored_as_their_repositories),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
