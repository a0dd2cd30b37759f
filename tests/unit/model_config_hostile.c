/* config.json: what no type may pass over, tried on every type; lists of layers, groups and indexers that
 * contradict. */
#include "config_readers.h"
#include "import/config/architecture.h"

/* Spoilt keys that no type can mean anything by, whether it reads them or not. */
static void every_type_refuses_what_no_type_can_mean(void **state)
{
    static const struct {
        const char *keys, *where;
    } spoilt[] = {
        {"\"layer_types\":[\"nonsense_atention\"]", "layer_types"},
        {"\"layer_types\":\"full_attention\"", "layer_types"},
        {"\"layer_types\":7", "layer_types"},
        {"\"layer_types\":[7]", "layer_types"},
        {"\"num_hidden_layers\":3,\"layer_types\":[\"full_attention\",\"full_attention\"]", "layer_types"},
        {"\"num_hidden_layers\":-1", "num_hidden_layers"},
        {"\"hidden_size\":\"wide\"", "hidden_size"},
        {"\"num_attention_heads\":2.5", "num_attention_heads"},
        {"\"tie_word_embeddings\":3", "tie_word_embeddings"},
        {"\"quantization_config\":{\"quant_method\":\"fp8\",\"modules_to_not_convert\":\"lm_head\"}",
         "modules_to_not_convert"},
        {"\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":0}", "group_size"},
    };
    (void)state;
    for (size_t t = 0; t < ft__architecture_count(); t++)
        for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
            char text[512];
            ft_arch arch;
            ft_error err = {0};
            snprintf(text, sizeof text, "{\"model_type\":\"%s\",\"head_dim\":64,\"num_experts_per_tok\":2,%s}",
                     ft__architecture_at(t), spoilt[i].keys);
            ft_status status = read_as(text, NULL, &arch, &err);
            if (status == FT_OK) fail_msg("%s is answered", text);
            if (!strstr(err.where, spoilt[i].where) && strcmp(ft__architecture_at(t), "pix2struct_text_model") != 0)
                fail_msg("%s: %s: %s", text, err.where, err.message);
        }
}

static void lists_of_layers_have_a_known_entry_for_each(void **state)
{
    (void)state;
    refuses("{\"model_type\":\"gemma2\",\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\"]}", FT_E_RANGE,
            "model.layer_types", "1 entries for 2 layers");
    refuses("{\"model_type\":\"gemma2\",\"num_hidden_layers\":1,\"layer_types\":[\"full_atention\"]}", FT_E_NAME,
            "model.layer_types", "did you mean \"full_attention\"?");
    refuses("{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"layer_types\":[\"linear_attention\"]}", FT_E_NAME,
            "model.layer_types", "expected \"full_attention\"");
    refuses("{\"model_type\":\"qwen3_5_text\",\"layer_types\":7}", FT_E_TYPE, "model.layer_types", "list");
    refuses("{\"model_type\":\"gpt_oss\",\"num_hidden_layers\":1,\"layer_types\":[5]}", FT_E_TYPE, "model.layer_types",
            "word");
    refuses("{\"model_type\":\"nemotron_h\",\"num_hidden_layers\":3,\"layers_block_type\":[\"mamba\",\"attention\"]}",
            FT_E_RANGE, "model.layers_block_type", "2 entries for 3 layers");
    refuses("{\"model_type\":\"deepseek_v32\",\"num_hidden_layers\":4,\"first_k_dense_replace\":3,"
            "\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\"]}",
            FT_E_UNSUPPORTED, "model.mlp_layer_types", "layer 2");
    refuses("{\"model_type\":\"gpt_neo\",\"num_layers\":2,\"attention_layers\":[\"global\"]}", FT_E_RANGE,
            "model.attention_layers", "1 entries for 2 layers");
    refuses("{\"model_type\":\"gpt_neo\",\"num_layers\":1,\"attention_layers\":[\"globel\"]}", FT_E_NAME,
            "model.attention_layers", "did you mean \"global\"?");
    refuses("{\"model_type\":\"gpt_neo\",\"num_layers\":4,\"attention_types\":[[[\"global\",\"local\"],1]]}",
            FT_E_RANGE, "model.attention_types", "2 entries for 4 layers");
    refuses("{\"model_type\":\"gpt_neo\",\"num_layers\":4,\"attention_types\":[7]}", FT_E_TYPE, "model.attention_types",
            "entry 1");
    refuses("{\"model_type\":\"llama\",\"torch_dtype\":\"bfloat17\"}", FT_E_NAME, "model.torch_dtype",
            "did you mean \"bfloat16\"?");
    refuses("{\"model_type\":\"llama\",\"dtype\":\"torch.nonsense\"}", FT_E_NAME, "model.dtype",
            "expected float16, bfloat16 or float32");
    refuses("{\"model_type\":\"flint\",\"mlp_only_layers\":[900]}", FT_E_RANGE, "model.mlp_only_layers", "entry 1");
    refuses("{\"model_type\":\"lfm2\",\"full_attn_idxs\":[\"x\"]}", FT_E_TYPE, "model.full_attn_idxs", "entry 1");
    refuses("{\"model_type\":\"mllama_text_model\",\"cross_attention_layers\":[3,3]}", FT_E_RANGE,
            "model.cross_attention_layers", "another layer");
    refuses("{\"model_type\":\"llama4_text\",\"no_rope_layers\":[1,1,1,0]}", FT_E_RANGE, "model.no_rope_layers",
            "4 entries for 48 layers");
    refuses("{\"model_type\":\"jamba\",\"attn_layer_period\":\"x\"}", FT_E_TYPE, "model.attn_layer_period", "whole");
    refuses("{\"model_type\":\"afmoe\",\"num_dense_layers\":-1}", FT_E_RANGE, "model.num_dense_layers", "");
    refuses("{\"model_type\":\"gemma3\",\"vision_config\":{\"num_hidden_layers\":2,\"layer_types\":[]}}", FT_E_RANGE,
            "model.vision_config.layer_types", "0 entries for 2 layers");
}

static void sizes_that_contradict_are_refused(void **state)
{
    (void)state;
    refuses("{\"model_type\":\"deepseek_v3\",\"n_group\":8,\"topk_group\":9}", FT_E_RANGE, "model.topk_group",
            "more than n_group 8");
    refuses("{\"model_type\":\"deepseek_v32\",\"index_n_heads\":0}", FT_E_RANGE, "model.index_n_heads", "from 1 on");
    refuses("{\"model_type\":\"glm_moe_dsa\",\"index_head_dim\":0}", FT_E_RANGE, "model.index_head_dim", "from 1 on");
    refuses("{\"model_type\":\"deepseek_v4\",\"o_groups\":0}", FT_E_RANGE, "model.o_groups", "from 1 on");
    refuses("{\"model_type\":\"bamba\",\"mamba_n_heads\":128,\"mamba_d_head\":65}", FT_E_RANGE, "model.mamba_n_heads",
            "make up");
    refuses("{\"model_type\":\"llama\",\"num_key_value_heads\":0}", FT_E_RANGE, "model.num_key_value_heads", "got 0");
    refuses("{\"model_type\":\"llama\",\"head_dim\":0}", FT_E_RANGE, "model.head_dim", "got 0");
    refuses("{\"model_type\":\"exaone4_5\",\"vision_config\":{\"num_key_value_heads\":5}}", FT_E_RANGE,
            "model.vision_config.num_key_value_heads", "divide");
    refuses("{\"model_type\":\"pix2struct_text_model\"}", FT_E_UNSUPPORTED, "model.model_type", "whole model");
    refuses("{\"model_type\":\"sam\",\"vision_config\":{\"global_attn_indexes\":7}}", FT_E_TYPE,
            "model.vision_config.global_attn_indexes", "list");
    assert_int_equal(256,
                     read_text("{\"model_type\":\"glm5_next_text\",\"head_dim\":0,\"qk_rope_head_dim\":0}").head_dim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_refuses_what_no_type_can_mean),
        cmocka_unit_test(lists_of_layers_have_a_known_entry_for_each),
        cmocka_unit_test(sizes_that_contradict_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
