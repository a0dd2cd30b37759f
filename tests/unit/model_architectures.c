/* Architectures as data: every type has, by its defaults, the parameters that transformers allocates on its meta device
 * (tests/data/transformers_types.csv), shapes of released models have theirs, and what a file or a config gets wrong is
 * refused where it stands. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "import/config/config.h"
#include "model/plan.h"
#include "model/workload.h"

static ft_status read_text(const char *text, ft_arch *arch, ft_error *err)
{
    json_t *config = NULL;
    if (ft__json_parse(text, strlen(text), "test", &config, err) != FT_OK) fail_msg("%s", err->message);
    ft_status status = ft__config_read(config, NULL, "config.json", arch, err);
    json_decref(config);
    return status;
}

static double parameters_of(const ft_arch *arch, ft_arena *arena)
{
    ft_graph *graph = NULL;
    ft_error err = {0};
    ft_workload work = {.task = FT_FORWARD_PASS,
                        .dtype = FT_BF16,
                        .kv_dtype = FT_BF16,
                        .batch = 1,
                        .seq = 64,
                        .attention = FT_SDPA,
                        .execution = FT_RUN_EAGER,
                        .optimizer = FT_NO_OPTIMIZER,
                        .accumulate = 1};
    if (ft__model_graph(arch, &work, arena, &graph, &err) != FT_OK) fail_msg("%s: %s", arch->model_type, err.message);
    double parameters = graph->parameters;
    ft__arena_reset(arena);
    return parameters;
}

static void types_have_the_parameters_that_transformers_allocates(void **state)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024], line[256];
    ft_arena *arena = ft__arena_new(0);
    int checked = 0, wrong = 0;
    (void)state;
    assert_non_null(root);
    snprintf(path, sizeof path, "%s/tests/data/transformers_types.csv", root);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        char type[64], text[128];
        double counted, within;
        ft_arch arch;
        ft_error err = {0};
        if (sscanf(line, "%63[^,],%lf,%lf", type, &counted, &within) != 3) fail_msg("%s", line);
        if (within > 0.01) continue; /* what is left out of it is in its notes */
        snprintf(text, sizeof text, "{\"model_type\":\"%s\"}", type);
        if (read_text(text, &arch, &err) != FT_OK) fail_msg("%s: %s", type, err.message);
        double ours = parameters_of(&arch, arena);
        checked++;
        if (fabs(ours / counted - 1) < within) continue;
        print_message("%s: %.0f parameters, transformers has %.0f\n", type, ours, counted);
        wrong++;
    }
    fclose(file);
    ft__arena_free(arena);
    assert_true(checked >= 170);
    assert_int_equal(0, wrong);
}

/* Shapes as the hub's configs give them, counted by transformers 5.22.2 on its meta device. */
static void released_shapes_have_their_parameters(void **state)
{
    static const struct {
        const char *config;
        double parameters;
    } models[] = {
        {"{\"model_type\":\"qwen3_5_moe\",\"tie_word_embeddings\":false,\"text_config\":{\"hidden_size\":3072,"
         "\"num_hidden_layers\":48,\"num_attention_heads\":32,\"num_key_value_heads\":2,\"head_dim\":256,"
         "\"moe_intermediate_size\":1024,\"shared_expert_intermediate_size\":1024,\"num_experts\":256,"
         "\"linear_num_value_heads\":64},\"vision_config\":{\"out_hidden_size\":3072}}",
         122562817776.0},
        {"{\"model_type\":\"nemotron_h\",\"hidden_size\":8192,\"num_hidden_layers\":4,\"hybrid_override_pattern\":"
         "\"M*-M\",\"mamba_num_heads\":256,\"ssm_state_size\":256,\"intermediate_size\":32768,"
         "\"num_attention_heads\":64}",
         0},
        {"{\"model_type\":\"glm_moe_dsa\"}", 743911199232.0},
        {"{\"model_type\":\"minimax_m2\"}", 228689748992.0},
        {"{\"model_type\":\"qwen2_audio\"}", 12692062208.0},
        {"{\"model_type\":\"qwen3_asr\"}", 2039626880.0},
        {"{\"model_type\":\"voxtral\"}", 4676271104.0},
        {"{\"model_type\":\"voxtral_realtime\"}", 4429679360.0},
        {"{\"model_type\":\"glmasr\"}", 2136470528.0},
        {"{\"model_type\":\"granite_speech\"}", 6990441514.0},
        /* around another type that wraps: what speaks is left out */
        {"{\"model_type\":\"qwen2_5_omni\",\"thinker_config\":{\"model_type\":\"qwen2_5_omni_thinker\"}}",
         11338288896.0},
    };
    ft_arena *arena = ft__arena_new(0);
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        ft_arch arch;
        ft_error err = {0};
        if (read_text(models[i].config, &arch, &err) != FT_OK) fail_msg("%zu: %s", i, err.message);
        double ours = parameters_of(&arch, arena);
        if (models[i].parameters > 0 && fabs(ours / models[i].parameters - 1) > 1e-6)
            fail_msg("%s: %.0f, not %.0f", arch.model_type, ours, models[i].parameters);
    }
    ft__arena_free(arena);
}

/* Who holds a model that sees says how its weights are stored; two towers behind each other are refused. */
static void what_wraps_a_wrapper_adds_nothing(void **state)
{
    ft_arch arch;
    ft_error err = {0};
    (void)state;
    assert_int_equal(
        FT_OK, read_text("{\"model_type\":\"qwen2_5_omni\",\"quantization_config\":{\"quant_method\":\"awq\","
                         "\"bits\":4},\"thinker_config\":{\"model_type\":\"qwen2_5_omni_thinker\",\"text_config\":"
                         "{\"num_hidden_layers\":3},\"vision_config\":{\"depth\":2}}}",
                         &arch, &err));
    assert_int_equal(3, arch.layers);
    assert_int_equal(2, arch.tower_layers);
    assert_true(arch.ear_layers > 0);
    assert_string_equal("awq", arch.quantized);
    assert_int_equal(
        FT_E_UNSUPPORTED,
        read_text("{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"internvl\"}}", &arch, &err));
    assert_non_null(strstr(err.message, "\"internvl\" wraps a language model itself"));
}

static void orders_split_into_patterns(void **state)
{
    static const struct {
        const char *order;
        int64_t before, period, times;
    } cases[] = {{"abab", 0, 2, 2}, {"aaaaaaaa", 8, 0, 0}, {"xabcabcab", 1, 3, 2}, {"abcd", 4, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static ft_arch arch;
        memset(&arch, 0, sizeof arch);
        arch.layers = (int64_t)strlen(cases[i].order);
        for (int64_t at = 0; at < arch.layers; at++) arch.order[at] = (uint8_t)cases[i].order[at];
        ft_rhythm how = ft__plan_rhythm(&arch);
        if (how.before != cases[i].before || how.period != cases[i].period || how.times != cases[i].times)
            fail_msg("%s: %lld, %lld times %lld", cases[i].order, (long long)how.before, (long long)how.times,
                     (long long)how.period);
    }
}

static void contradictions_are_refused_where_they_stand(void **state)
{
    static const struct {
        const char *config, *where, *message;
    } cases[] = {
        {"{\"model_type\":\"nemotron_h\",\"num_hidden_layers\":5,\"hybrid_override_pattern\":\"M*-M\"}",
         "hybrid_override_pattern", "has 4 entries for 5 layers"},
        {"{\"model_type\":\"qwen3_5_text\",\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\",\"strange\"]}",
         "layer_types", "layer 2 is \"strange\""},
        {"{\"model_type\":\"qwen3_5_text\",\"linear_num_key_heads\":7}", "linear_num_key_heads", "must divide"},
        {"{\"model_type\":\"nemotron_h\",\"n_groups\":7}", "n_groups", "must divide"},
        {"{\"model_type\":\"deepseek_v4\",\"o_groups\":7}", "o_groups", "must divide"},
        {"{\"model_type\":\"nemotron-nas\",\"num_hidden_layers\":3,\"block_configs\":[]}", "block_configs",
         "a list of 3 blocks"},
        {"{\"model_type\":\"kimi_k25\",\"text_config\":{\"model_type\":\"strange\"}}", "model_type",
         "unknown model_type"},
        {"{\"model_type\":\"qwen3_next\",\"num_hidden_layers\":4,\"layer_types\":\"full\"}", "layer_types",
         "must be a list, one word a layer"},
        {"{\"model_type\":\"gemma3n_text\",\"intermediate_size\":[8192,8192]}", "intermediate_size",
         "has 2 entries for 35 layers"},
        {"{\"_class_name\":\"FluxTransformer3DModel\"}", "_class_name", "did you mean \"FluxTransformer2DModel\"?"},
        {"{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"fp8\",\"bits\":4}}",
         "quantization_config: bits", "expected 8 or none beside fp8"},
        {"{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":5}}",
         "quantization_config: bits", "expected 2, 3, 4 or 8"},
        {"{\"model_type\":\"zamba2\",\"num_attention_heads\":7}", "num_attention_heads", "must divide twice the width"},
        {"{\"model_type\":\"mllama\",\"text_config\":{\"num_hidden_layers\":4,\"cross_attention_layers\":[0,1,2,3]}}",
         "cross_attention_layers", "4 of 4 layers look at images"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_arch arch;
        ft_error err = {0};
        if (read_text(cases[i].config, &arch, &err) == FT_OK) fail_msg("%s was read", cases[i].config);
        if (!strstr(err.where, cases[i].where) || !strstr(err.message, cases[i].message))
            fail_msg("%s: %s: %s", cases[i].config, err.where, err.message);
    }
}

/* What a relative would pass over is said: the first few keys about shapes, not those that every config carries. */
static void what_another_type_would_lose_is_said(void **state)
{
    ft_arch arch;
    ft_error err = {0};
    (void)state;
    assert_int_equal(FT_E_NAME, read_text("{\"model_type\":\"qwen3_nexts\",\"hidden_size\":2048,\"use_cache\":true,"
                                          "\"bos_token_id\":1,\"wholly_new_rank\":64}",
                                          &arch, &err));
    assert_non_null(strstr(err.message, "--read-as qwen3_next"));
    assert_non_null(strstr(err.message, "it does not read \"wholly_new_rank\""));
    assert_null(strstr(err.message, "bos_token_id"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_the_parameters_that_transformers_allocates),
        cmocka_unit_test(released_shapes_have_their_parameters),
        cmocka_unit_test(what_wraps_a_wrapper_adds_nothing),
        cmocka_unit_test(orders_split_into_patterns),
        cmocka_unit_test(contradictions_are_refused_where_they_stand),
        cmocka_unit_test(what_another_type_would_lose_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
