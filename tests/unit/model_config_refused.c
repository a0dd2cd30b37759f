/* config.json: what is refused and why, mixtures, unknown types; the catalogue. */
#include "config_readers.h"

/* -- refusals ------------------------------------------------------------------------------------- */

static void contradictions_and_absurdities_are_refused(void **state)
{
    (void)state;
    refuses("[]", FT_E_TYPE, "model", "object");
    refuses("{}", FT_E_MISSING, "model.model_type", "missing");
    refuses("{\"model_type\":7}", FT_E_TYPE, "model.model_type", "string");
    refuses("{\"model_type\":\"llama\",\"hidden_size\":\"4096\"}", FT_E_TYPE, "model.hidden_size", "whole number");
    refuses("{\"model_type\":\"llama\",\"hidden_size\":null}", FT_E_TYPE, "model.hidden_size", "null");
    refuses("{\"model_type\":\"llama\",\"num_hidden_layers\":0}", FT_E_RANGE, "model.num_hidden_layers", "got 0");
    refuses("{\"model_type\":\"llama\",\"num_hidden_layers\":1000001}", FT_E_RANGE, "model.num_hidden_layers",
            "1000000");
    refuses("{\"model_type\":\"llama\",\"hidden_size\":4294967296}", FT_E_RANGE, "model.hidden_size", "2^31");
    refuses("{\"model_type\":\"llama\",\"hidden_size\":2.5}", FT_E_RANGE, "model.hidden_size", "2.5");
    refuses("{\"model_type\":\"llama\",\"num_attention_heads\":30}", FT_E_RANGE, "model.num_attention_heads",
            "hidden_size 4096 is not a multiple of num_attention_heads 30");
    refuses("{\"model_type\":\"llama\",\"num_key_value_heads\":5}", FT_E_RANGE, "model.num_key_value_heads", "divide");
    refuses("{\"model_type\":\"llama\",\"head_dim\":127}", FT_E_RANGE, "model.head_dim", "pairs");
    refuses("{\"model_type\":\"llama\",\"hidden_act\":\"silly\"}", FT_E_NAME, "model.hidden_act", "\"silu\"");
    refuses("{\"model_type\":\"llama\",\"attention_dropout\":1.5}", FT_E_RANGE, "model.attention_dropout", "1.5");
    refuses("{\"model_type\":\"llama\",\"tie_word_embeddings\":\"yes\"}", FT_E_TYPE, "model.tie_word_embeddings",
            "true");
    refuses("{\"model_type\":\"llama\",\"architectures\":7}", FT_E_TYPE, "model.architectures", "class names");
    refuses("{\"model_type\":\"mixtral\",\"num_experts_per_tok\":9}", FT_E_RANGE, "model.num_experts_per_tok",
            "more than num_local_experts 8");
    refuses("{\"model_type\":\"deepseek_v2\"}", FT_E_MISSING, "model.num_experts_per_tok", "missing");
    refuses("{\"model_type\":\"deepseek_v3\",\"n_group\":7}", FT_E_RANGE, "model.n_group", "divide");
    refuses("{\"model_type\":\"qwen3_moe\",\"mlp_only_layers\":[5]}", FT_E_UNSUPPORTED, "model.mlp_only_layers",
            "first");
    refuses("{\"model_type\":\"gpt2\",\"n_embd\":768,\"hidden_size\":1024}", FT_E_RANGE, "model.hidden_size",
            "\"n_embd\" and \"hidden_size\" mean the same and differ");
    refuses("{\"model_type\":\"gptj\",\"rotary_dim\":512}", FT_E_RANGE, "model.rotary_dim", "heads of 256");
    refuses("{\"model_type\":\"mamba2\",\"num_heads\":64}", FT_E_RANGE, "model.num_heads", "8192");
    refuses("{\"model_type\":\"vit\",\"patch_size\":512}", FT_E_RANGE, "model.patch_size", "224");
    refuses("{\"model_type\":\"resnet\",\"depths\":[1,2]}", FT_E_RANGE, "model.hidden_sizes", "stages");
    refuses("{\"model_type\":\"resnet\",\"depths\":[1,2,3,0]}", FT_E_RANGE, "model.depths", "entry 4");
    refuses("{\"model_type\":\"resnet\",\"layer_type\":\"odd\"}", FT_E_NAME, "model.layer_type", "bottleneck");
    refuses("{\"model_type\":\"switch_transformers\",\"num_sparse_encoder_layers\":13}", FT_E_RANGE,
            "model.num_sparse_encoder_layers", "13 sparse layers of 12");
    refuses("{\"model_type\":\"whisper\",\"decoder_ffn_dim\":99}", FT_E_UNSUPPORTED, "model.decoder_ffn_dim", "equal");
    refuses("{\"model_type\":\"llama\",\"num_hidden_layers\":1000000,\"hidden_size\":1073741824}", FT_E_RANGE,
            "model.hidden_size", "10^18");
}

static void equal_aliases_are_no_contradiction(void **state)
{
    (void)state;
    assert_int_equal(1024, read_text("{\"model_type\":\"gpt2\",\"hidden_size\":1024,\"n_head\":16}").hidden);
    assert_int_equal(1024, read_text("{\"model_type\":\"gpt2\",\"n_embd\":1024,\"hidden_size\":1024.0,"
                                     "\"n_head\":16}")
                               .hidden);
    assert_int_equal(128, read_text("{\"model_type\":\"bloom\",\"n_embed\":128,\"unheard_of\":[1,{}]}").hidden);
}

static void a_file_s_errors_name_the_file(void **state)
{
    ft_arch arch;
    ft_error err = {0};
    json_t *config = json_pack("{s:s,s:i}", "model_type", "llama", "num_attention_heads", 3);
    (void)state;
    assert_int_equal(FT_E_RANGE, ft__config_read(config, NULL, "config.json", &arch, &err));
    assert_string_equal("config.json: num_attention_heads", err.where);
    json_decref(config);
}

/* -- mixtures --------------------------------------------------------------------------------------- */

static void mixtures_say_where_their_experts_are(void **state)
{
    (void)state;
    ft_arch a = read_text("{\"model_type\":\"glm4_moe\",\"head_dim\":128,\"use_qk_norm\":true,\"n_shared_experts\":2}");
    assert_true(a.rotary_dim == 64 && a.qk_norm == FT_QK_NORM_HEAD && a.shared_ffn == 2816 && a.first_dense == 1);
    refuses("{\"model_type\":\"glm4_moe\",\"head_dim\":128,\"n_shared_experts\":1000000000}", FT_E_RANGE,
            "model.n_shared_experts", "too many");
    a = read_text("{\"model_type\":\"bailing_moe\",\"use_qkv_bias\":true,\"num_shared_experts\":2,"
                  "\"moe_shared_expert_intermediate_size\":768}");
    assert_true(a.shared_ffn == 1536 && a.qkv_bias && a.key_bias && !a.out_bias);
    a = read_text("{\"model_type\":\"bailing_moe\",\"num_shared_experts\":2,\"moe_intermediate_size\":512}");
    assert_true(a.shared_ffn == 1024 && !a.qkv_bias);
    a = read_text("{\"model_type\":\"ernie4_5_moe\",\"moe_layer_start_index\":3,\"moe_k\":8}");
    assert_true(a.first_dense == 3 && a.moe_every == 1 && a.topk == 8 && a.shared_ffn == 3072);
    a = read_text("{\"model_type\":\"ernie4_5_moe\",\"moe_layer_interval\":2,\"moe_layer_end_index\":27}");
    assert_true(a.first_dense == 0 && a.moe_every == 2);
    refuses("{\"model_type\":\"ernie4_5_moe\",\"moe_layer_end_index\":9}", FT_E_UNSUPPORTED,
            "model.moe_layer_end_index", "dense layers behind");
    refuses("{\"model_type\":\"ernie4_5_moe\",\"moe_layer_interval\":2,\"moe_layer_start_index\":3}", FT_E_UNSUPPORTED,
            "model.moe_layer_start_index", "from the first");
    a = read_text("{\"model_type\":\"llama4\",\"text_config\":{\"no_rope_layers\":[],\"interleave_moe_layer_step\":2,"
                  "\"moe_layers\":[1,3],\"num_hidden_layers\":4,\"layer_types\":[\"chunked_attention\","
                  "\"chunked_attention\",\"chunked_attention\",\"full_attention\"]}}");
    assert_true(a.moe_every == 2 && a.turn_every == 4 && a.window_every == 4 && a.window == 8192 && a.chunked);
    assert_true(a.qk_norm == FT_QK_NORM_BARE && a.shared_ffn == 8192 && a.ffn == 16384);
    refuses("{\"model_type\":\"llama4_text\",\"num_hidden_layers\":4,\"moe_layers\":[0,3]}", FT_E_UNSUPPORTED,
            "model.moe_layers", "at equal distances");
    a = read_text("{\"model_type\":\"hunyuan_v1_moe\",\"num_experts\":64,\"moe_topk\":[8,8,8]}");
    assert_true(a.topk == 8 && a.experts == 64 && a.shared_ffn == 11008);
    refuses("{\"model_type\":\"hunyuan_v1_moe\",\"num_experts\":64,\"moe_topk\":[8,7]}", FT_E_UNSUPPORTED,
            "model.moe_topk", "different numbers");
    refuses("{\"model_type\":\"hunyuan_v1_moe\",\"num_experts\":64,\"moe_topk\":[0,0]}", FT_E_RANGE, "model.moe_topk",
            "from 1");
    refuses("{\"model_type\":\"hunyuan_v1_moe\",\"num_experts\":64,\"moe_topk\":[]}", FT_E_RANGE, "model.moe_topk",
            "from 1");
}

/* -- layers without positions -------------------------------------------------------------------- */

static void layers_that_are_not_rotated(void **state)
{
    (void)state;
    assert_int_equal(4, read_text("{\"model_type\":\"smollm3\"}").turn_every);
    assert_int_equal(3, read_text("{\"model_type\":\"smollm3\",\"no_rope_layer_interval\":3}").turn_every);
    assert_int_equal(2, read_text("{\"model_type\":\"smollm3\",\"num_hidden_layers\":4,"
                                  "\"no_rope_layers\":[1,0,1,0]}")
                            .turn_every);
    assert_int_equal(0, read_text("{\"model_type\":\"smollm3\",\"num_hidden_layers\":2,"
                                  "\"no_rope_layers\":[1,1,0,0]}")
                            .turn_every);
    assert_int_equal(FT_NO_POSITION, read_text("{\"model_type\":\"smollm3\",\"num_hidden_layers\":2,"
                                               "\"no_rope_layers\":[0,0]}")
                                         .position);
    refuses("{\"model_type\":\"smollm3\",\"num_hidden_layers\":4,\"no_rope_layers\":[1,0,0,1]}", FT_E_UNSUPPORTED,
            "model.no_rope_layers", "layer 3 breaks the rhythm of 2");
    refuses("{\"model_type\":\"smollm3\",\"no_rope_layers\":7}", FT_E_TYPE, "model.no_rope_layers", "must be a list");
    refuses("{\"model_type\":\"smollm3\",\"no_rope_layer_interval\":0}", FT_E_RANGE, "model.no_rope_layer_interval",
            "from 1");
    refuses("{\"model_type\":\"smollm3\",\"use_sliding_window\":true,\"sliding_window\":512}", FT_E_UNSUPPORTED,
            "model.use_sliding_window", "not modelled");
    ft_arch a = read_text("{\"model_type\":\"exaone4\"}");
    assert_true(a.turn_windowed && a.window == 4096 && a.window_every == 4);
    a = read_text("{\"model_type\":\"exaone4\",\"sliding_window\":null}"); /* all layers see all and are rotated */
    assert_true(!a.turn_windowed && a.window == 0);
    a = read_text(
        "{\"model_type\":\"exaone4\",\"num_hidden_layers\":4,\"sliding_window_pattern\":\"LLLG\",\"layer_types\":"
        "[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\"]}");
    assert_int_equal(4, a.window_every);
    a = read_text("{\"model_type\":\"cohere2\",\"sliding_window\":null}"); /* then none is */
    assert_true(a.turn_windowed && a.window == 0);
}

/* -- unknown types -------------------------------------------------------------------------------- */

static void an_unknown_type_names_its_relative_and_reads_as_one(void **state)
{
    static const char text[] = "{\"model_type\":\"baichuan\",\"hidden_size\":2048,\"num_attention_heads\":16}";
    ft_arch arch;
    ft_error err = {0};
    (void)state;
    refuses(text, FT_E_NAME, "model.model_type", "--read-as llama");
    refuses("{\"model_type\":\"lama\"}", FT_E_NAME, "model.model_type", "--read-as llama");
    refuses("{\"model_type\":\"vit2\"}", FT_E_NAME, "model.model_type", "--read-as vit");
    refuses("{\"model_type\":\"xyzzy\"}", FT_E_NAME, "model.model_type",
            "--read-as TYPE (\"read_as\") reads it as one of ");
    refuses("{\"model_type\":\"xyzzy\"}", FT_E_NAME, "model.model_type", "\"foretell models --types\" lists them");
    assert_int_equal(FT_OK, read_as(text, "llama", &arch, &err));
    assert_string_equal("llama", arch.model_type);
    assert_true(arch.nearest && arch.hidden == 2048);
    assert_int_equal(FT_OK, read_as("{\"hidden_size\":2048}", "llama", &arch, &err));
    assert_true(arch.nearest);
    assert_int_equal(FT_OK, read_as("{\"model_type\":\"gpt2\"}", "llama", &arch, &err)); /* known: read as itself */
    assert_string_equal("gpt2", arch.model_type);
    assert_false(arch.nearest);
    assert_int_equal(FT_E_NAME, read_as(text, "lamma", &arch, &err));
    assert_string_equal("model.read_as", err.where);
}

/* -- catalogue ------------------------------------------------------------------------------------ */

static void every_entry_reads_and_is_sourced(void **state)
{
    (void)state;
    assert_true(ft__model_count() >= 90);
    assert_null(ft__model_at(ft__model_count()));
    for (size_t i = 0; i < ft__model_count(); i++) {
        const ft_model_entry *e = ft__model_at(i);
        ft_arch arch;
        ft_error err;
        if (ft__model_open(e->name, NULL, &arch, &err) != FT_OK)
            fail_msg("%s: %s: %s", e->name, err.where, err.message);
        assert_string_equal(e->model_type, arch.model_type);
        assert_false(arch.nearest);
        assert_true(strlen(e->source) > 5);
        assert_true(e->published >= 0 && (e->published == 0) == (e->published_digits == 0));
        assert_ptr_equal(e, ft__model_find(e->name));
        if (e->hub) assert_ptr_equal(e, ft__model_find(e->hub));
        if (i) assert_true(strcmp(ft__model_at(i - 1)->name, e->name) < 0);
        ft__arch_release(&arch);
    }
}

static void names_aliases_and_hub_ids_find_their_entry(void **state)
{
    static const char *const expected[][2] = {
        {"llama-3-8b", "llama-3-8b"},
        {"LLAMA_3 8B", "llama-3-8b"},
        {"llama-3-405b", "llama-3.1-405b"},
        {"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
        {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
        {"meta-llama/Llama-3.1-70B", "llama-3.1-70b"},
        {"nvidia/Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b"},
        {"openai/gpt-oss-120b", "gpt-oss-120b"},
        {"deepseek-ai/DeepSeek-R1", "deepseek-r1"},
        {"nvidia/DeepSeek-R1-NVFP4", "deepseek-r1"},
        {"gpt3", "gpt3-175b"},
        {"resnet50", "resnet-50"},
        {"bert-large", "bert-large"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const ft_model_entry *e = ft__model_find(expected[i][0]);
        if (!e) fail_msg("%s is not found", expected[i][0]);
        assert_string_equal(expected[i][1], e->name);
    }
    assert_null(ft__model_find("llama"));
    assert_null(ft__model_find(""));
    char endless[600];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_null(ft__model_find(endless));
}

static void opening(const char *what, ft_status code, const char *says)
{
    ft_arch arch;
    ft_error err = {0};
    ft_status status = ft__model_open(what, NULL, &arch, &err);
    if (status != code) fail_msg("%s: %s: %s", what, ft_status_name(status), err.message);
    if (!strstr(err.message, says)) fail_msg("%s: \"%s\" does not say \"%s\"", what, err.message, says);
}

static ft_status read_object(const char *text, ft_arch *arch, ft_error *err)
{
    json_t *object = NULL;
    assert_int_equal(FT_OK, ft__json_parse(text, strlen(text), "test", &object, err));
    ft_status status = ft__model_read(object, NULL, arch, err);
    json_decref(object);
    return status;
}

/* What advice proposes of a config ("pad the vocabulary") can be asked of a model that has a name. */
static void a_model_of_the_catalogue_takes_other_values(void **state)
{
    ft_arch named, arch;
    ft_error err = {0};
    (void)state;
    assert_int_equal(FT_OK, ft__model_open("gpt2", NULL, &named, NULL));
    assert_int_equal(FT_OK, read_object("{\"base\":\"GPT2\",\"vocab_size\":50304}", &arch, &err));
    assert_int_equal(50304, arch.vocab);
    assert_int_equal(named.hidden, arch.hidden);
    assert_int_equal(named.layers, arch.layers);
    assert_int_equal(FT_OK, read_object("{\"base\":\"internvl3-78b\",\"vocab_size\":151680}", &arch, &err));
    assert_int_equal(151680, arch.vocab); /* of the part that speaks */
    assert_int_equal(FT_OK, read_object("{\"base\":\"gpt2\",\"model_type\":\"llama\"}", &arch, &err));
    assert_string_equal("llama", arch.model_type); /* a config, whatever else stands in it */
    assert_int_equal(FT_E_NAME, read_object("{\"base\":\"gtp2\"}", &arch, &err));
    assert_non_null(strstr(err.message, "did you mean \"gpt2\""));
    assert_int_equal(FT_E_MISSING, read_object("{\"base\":7}", &arch, &err));
    char no_path[4200];
    const char *file = scratch_text("config.json", "{\"model_type\":\"llama\"}");
    snprintf(no_path, sizeof no_path, "{\"base\":\"%s\"}", file);
    assert_int_equal(FT_E_NAME, read_object(no_path, &arch, &err)); /* servers look at paths elsewhere */
}

static void a_model_is_a_name_a_file_or_a_folder(void **state)
{
    ft_arch arch;
    (void)state;
    const char *file = scratch_text("config.json", "{\"model_type\":\"llama\",\"num_hidden_layers\":3}");
    assert_int_equal(FT_OK, ft__model_open(file, NULL, &arch, NULL));
    assert_int_equal(3, arch.layers);
    assert_int_equal(FT_OK, ft__model_open(scratch_path(""), NULL, &arch, NULL)); /* the folder, with its slash */
    assert_int_equal(3, arch.layers);
    mkdir(scratch_path("empty"), 0700);
    opening(scratch_path("empty"), FT_E_FILE, "no config.json");
    opening(scratch_path("nothing.json"), FT_E_FILE, "");
    opening(scratch_text("broken.json", "{\"model_type\":"), FT_E_SYNTAX, "");
    const char *mamba = scratch_text("mamba.json",
                                     "{\"a\":\"\\\"Infinity\", \"model_type\":\"mamba2\",\"time_step_limit\":"
                                     "[-Infinity, Infinity], \"num_hidden_layers\":5}");
    assert_int_equal(FT_OK, ft__model_open(mamba, NULL, &arch, NULL));
    assert_int_equal(5, arch.layers);
    opening("llama-3-9b", FT_E_NAME, "did you mean \"llama-3-");
    opening("meta-llama/Llama-3.1-8C", FT_E_NAME, "did you mean \"meta-llama/Llama-3.1-8B\"");
    opening("llama-3.1", FT_E_NAME,
            "\"llama-3.1\" may be any of llama-3.1-8b, llama-3.1-70b, llama-3.1-405b, llama-3.1-minitron-");
    opening("flux", FT_E_NAME, "\"flux\" may be any of flux.1-dev, ");
    opening("Qwen3", FT_E_NAME, "\"Qwen3\" may be any of qwen3-");
    opening("yolo11", FT_E_NAME, "\"yolo11\" may be any of yolo11l, yolo11m, yolo11n, yolo11s, yolo11x: say which");
    opening("Qwen3", FT_E_NAME, "more: say which (`foretell models Qwen3` lists them)");
    opening("", FT_E_NAME, "empty");
    opening("zzzzzzzzzzzzzzzzzzzzzz", FT_E_NAME, "foretell models");
    const char *strange = scratch_text("strange.json", "{\"model_type\":\"baichuan\"}");
    opening(strange, FT_E_NAME, "--read-as llama");
    assert_int_equal(FT_OK, ft__model_open(strange, "llama", &arch, NULL));
    assert_true(arch.nearest);
}

static ft_status open_llama(void *context)
{
    ft_arch arch;
    return ft__model_open(context, NULL, &arch, NULL);
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    assert_true(failing_alloc_sweep(open_llama, (void *)(uintptr_t) "llama-3-8b") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contradictions_and_absurdities_are_refused),
        cmocka_unit_test(equal_aliases_are_no_contradiction),
        cmocka_unit_test(a_file_s_errors_name_the_file),
        cmocka_unit_test(mixtures_say_where_their_experts_are),
        cmocka_unit_test(layers_that_are_not_rotated),
        cmocka_unit_test(an_unknown_type_names_its_relative_and_reads_as_one),
        cmocka_unit_test(every_entry_reads_and_is_sourced),
        cmocka_unit_test(names_aliases_and_hub_ids_find_their_entry),
        cmocka_unit_test(a_model_is_a_name_a_file_or_a_folder),
        cmocka_unit_test(a_model_of_the_catalogue_takes_other_values),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
