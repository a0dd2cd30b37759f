/* config.json: defaults of every type, layouts under one name, heads. */
#include "config_readers.h"

/* -- defaults ------------------------------------------------------------------------------------- */

/* What the configuration classes of transformers 5.x give when a config says nothing. */
static void a_config_that_says_nothing_has_the_library_s_defaults(void **state)
{
    static const struct {
        const char *type;
        int64_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab, max_position;
        bool tied;
    } expected[] = {
        {"bert", 12, 768, 3072, 12, 12, 64, 30522, 512, true},
        {"roberta", 12, 768, 3072, 12, 12, 64, 50265, 512, true},
        {"gpt2", 12, 768, 3072, 12, 12, 64, 50257, 1024, true},
        {"gpt_neo", 24, 2048, 8192, 16, 16, 128, 50257, 2048, true},
        {"gpt_neox", 44, 6144, 24576, 64, 64, 96, 50432, 2048, false},
        {"gptj", 28, 4096, 16384, 16, 16, 256, 50400, 2048, false},
        {"opt", 12, 768, 3072, 12, 12, 64, 50272, 2048, true},
        {"bloom", 2, 64, 256, 8, 8, 8, 250880, 2048, true},
        {"falcon", 32, 4544, 18176, 71, 1, 64, 65024, 2048, true},
        {"mpt", 24, 2048, 8192, 16, 16, 128, 50368, 2048, true},
        {"llama", 32, 4096, 11008, 32, 32, 128, 32000, 2048, false},
        {"mistral", 32, 4096, 14336, 32, 8, 128, 32000, 131072, false},
        {"mixtral", 32, 4096, 14336, 32, 8, 128, 32000, 131072, false},
        {"qwen2", 32, 4096, 22016, 32, 32, 128, 151936, 32768, false},
        {"qwen2_moe", 24, 2048, 5632, 16, 16, 128, 151936, 32768, false},
        {"qwen3", 32, 4096, 22016, 32, 32, 128, 151936, 32768, false},
        {"qwen3_moe", 24, 2048, 6144, 32, 4, 64, 151936, 32768, false},
        {"gemma", 28, 3072, 24576, 16, 16, 256, 256000, 8192, true},
        {"gemma2", 26, 2304, 9216, 8, 4, 256, 256000, 8192, true},
        {"gemma3", 26, 2304, 9216, 8, 4, 256, 262208, 131072, true},
        {"phi", 24, 2048, 8192, 32, 32, 64, 51200, 2048, false},
        {"phi3", 32, 3072, 8192, 32, 32, 96, 32064, 4096, false},
        {"starcoder2", 30, 3072, 12288, 24, 2, 128, 49152, 4096, true},
        {"cohere", 40, 8192, 22528, 64, 64, 128, 256000, 8192, true},
        {"cohere2", 40, 8192, 22528, 64, 64, 128, 256000, 8192, true},
        {"granite", 32, 4096, 11008, 32, 32, 128, 32000, 2048, false},
        {"helium", 24, 2560, 7040, 20, 20, 128, 48000, 4096, false},
        {"smollm3", 36, 2048, 11008, 16, 4, 128, 128256, 32768, true},
        {"exaone4", 32, 4096, 16384, 32, 32, 128, 102400, 2048, false},
        {"ernie4_5", 18, 1024, 3072, 16, 2, 128, 103424, 131072, true},
        {"hunyuan_v1_dense", 32, 4096, 11008, 32, 32, 128, 290943, 2048, false},
        {"apertus", 32, 4096, 14336, 32, 32, 128, 131072, 65536, false},
        {"olmo", 32, 4096, 11008, 32, 32, 128, 50304, 2048, false},
        {"granitemoe", 32, 4096, 11008, 32, 32, 128, 32000, 2048, false},
        {"ernie4_5_moe", 28, 2560, 12288, 20, 4, 128, 103424, 131072, true},
        {"hunyuan_v1_moe", 32, 4096, 11008, 32, 32, 128, 290943, 2048, false},
        {"llama4_text", 48, 5120, 16384, 40, 8, 128, 202048, 131072, false},
        {"phimoe", 32, 4096, 6400, 32, 8, 128, 32064, 131072, false},
        {"nemotron", 32, 6144, 24576, 48, 48, 128, 256000, 4096, false},
        {"olmo2", 32, 4096, 11008, 32, 32, 128, 50304, 2048, false},
        {"deepseek_v3", 61, 7168, 18432, 128, 128, 192, 129280, 4096, false},
        {"gpt_oss", 36, 2880, 2880, 64, 8, 64, 201088, 131072, false},
        {"t5", 6, 512, 2048, 8, 8, 64, 32128, 512, true},
        {"switch_transformers", 12, 768, 2048, 12, 12, 64, 32128, 512, true},
        {"whisper", 4, 384, 1536, 6, 6, 64, 51865, 448, true},
        {"vit", 12, 768, 3072, 12, 12, 64, 0, 197, false},
        {"clip", 12, 512, 2048, 8, 8, 64, 49408, 77, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char text[80];
        snprintf(text, sizeof text, "{\"model_type\":\"%s\"}", expected[i].type);
        ft_arch a = read_text(text);
        char says[200], should[200]; /* in one text, so that a failure names the type */
        snprintf(should, sizeof should, "%s: %d %d %d %d %d %d %d %d %d", expected[i].type, (int)expected[i].layers,
                 (int)expected[i].hidden, (int)expected[i].ffn, (int)expected[i].heads, (int)expected[i].kv_heads,
                 (int)expected[i].head_dim, (int)expected[i].vocab, (int)expected[i].max_position, expected[i].tied);
        snprintf(says, sizeof says, "%s: %d %d %d %d %d %d %d %d %d", a.model_type, (int)a.layers, (int)a.hidden,
                 (int)a.ffn, (int)a.heads, (int)a.kv_heads, (int)a.head_dim, (int)a.vocab, (int)a.max_position, a.tied);
        assert_string_equal(should, says);
        assert_false(a.nearest);
    }
}

static void every_known_type_reads(void **state)
{
    size_t count = ft__config_type_count();
    (void)state;
    assert_true(count >= 36);
    for (size_t i = 0; i < count; i++) {
        char text[120];
        snprintf(text, sizeof text, "{\"model_type\":\"%s\",\"num_experts_per_tok\":2,\"head_dim\":64}",
                 ft__config_type_at(i));
        if (!strcmp(ft__config_type_at(i), "pix2struct_text_model")) { /* never by itself */
            refuses(text, FT_E_UNSUPPORTED, "model.model_type", "whole model");
            continue;
        }
        ft_arch a = read_text(text);
        assert_string_equal(ft__config_type_at(i), a.model_type);
        assert_true(a.layers > 0 && a.design < FT_DESIGN_COUNT && a.activation);
    }
}

static void what_a_config_leaves_out_follows_from_the_rest(void **state)
{
    (void)state;
    ft_arch a = read_text("{\"model_type\":\"gpt2\",\"n_embd\":1600,\"n_head\":25,\"n_inner\":null}");
    assert_int_equal(64, a.head_dim);
    assert_int_equal(6400, a.ffn);
    assert_int_equal(1024, a.position_rows);
    a = read_text("{\"model_type\":\"opt\"}");
    assert_int_equal(2050, a.position_rows);
    a = read_text("{\"model_type\":\"llama\",\"num_attention_heads\":64,\"num_key_value_heads\":null}");
    assert_int_equal(64, a.kv_heads);
    assert_int_equal(64, a.rotary_dim);
    a = read_text("{\"model_type\":\"gpt_neox\",\"hidden_size\":2048,\"num_attention_heads\":16}");
    assert_int_equal(32, a.rotary_dim); /* a quarter of 128 */
    a = read_text("{\"model_type\":\"phi\",\"hidden_size\":2560,\"partial_rotary_factor\":0.4}");
    assert_int_equal(32, a.rotary_dim);
    a = read_text("{\"model_type\":\"phi\",\"rope_parameters\":{\"partial_rotary_factor\":0.25}}");
    assert_int_equal(16, a.rotary_dim);
    a = read_text("{\"model_type\":\"deepseek_v2\",\"num_experts_per_tok\":6,\"q_lora_rank\":null}");
    assert_int_equal(0, a.q_lora);
    assert_int_equal(2 * 1407, a.shared_ffn);
    assert_int_equal(64, a.rotary_dim);
    a = read_text("{\"model_type\":\"gemma\",\"hidden_size\":2048,\"hidden_act\":\"gelu\",\"hidden_activation\":null}");
    assert_string_equal("gelu_pytorch_tanh", a.activation);
    assert_float_equal(sqrt(2048), a.embed_scale, 1e-9);
    a = read_text(
        "{\"model_type\":\"mpt\",\"d_model\":1024,\"expansion_ratio\":3,\"attn_config\":{\"attn_pdrop\":0.2}}");
    assert_int_equal(3072, a.ffn);
    assert_float_equal(0.2, a.attention_dropout, 0);
}

/* -- one architecture in several layouts ------------------------------------------------------------ */

static void falcons_are_three_layouts(void **state)
{
    (void)state;
    ft_arch a = read_text("{\"model_type\":\"falcon\"}");
    assert_true(a.parallel && a.shared_norm && a.kv_heads == 1 && a.position == FT_ROTARY && !a.qkv_bias);
    a = read_text("{\"model_type\":\"falcon\",\"hidden_size\":8192,\"num_attention_heads\":128,\"num_kv_heads\":8,"
                  "\"new_decoder_architecture\":true}");
    assert_true(a.parallel && !a.shared_norm && a.kv_heads == 8);
    a = read_text("{\"model_type\":\"falcon\",\"hidden_size\":2048,\"num_attention_heads\":32,\"alibi\":true,"
                  "\"multi_query\":false,\"parallel_attn\":false,\"bias\":true}");
    assert_true(!a.parallel && a.kv_heads == 32 && a.position == FT_ALIBI && a.qkv_bias && a.mlp_bias);
}

static void opt_350m_norms_behind_and_embeds_narrower(void **state)
{
    (void)state;
    ft_arch a = read_text("{\"model_type\":\"opt\",\"hidden_size\":1024,\"num_attention_heads\":16,\"ffn_dim\":4096,"
                          "\"word_embed_proj_dim\":512,\"do_layer_norm_before\":false}");
    assert_int_equal(512, a.embed_width);
    assert_int_equal(FT_POST_NORM, a.place);
    assert_false(a.final_norm);
    a = read_text("{\"model_type\":\"opt\",\"word_embed_proj_dim\":768}");
    assert_int_equal(0, a.embed_width);
}

static void t5_gates_where_its_name_says_so(void **state)
{
    (void)state;
    ft_arch a = read_text("{\"model_type\":\"t5\",\"feed_forward_proj\":\"gated-gelu\",\"tie_word_embeddings\":false}");
    assert_true(a.gated && !a.tied);
    assert_string_equal("gelu_new", a.activation);
    assert_int_equal(6, a.decoder_layers);
    a = read_text("{\"model_type\":\"t5\",\"architectures\":[\"T5EncoderModel\"]}");
    assert_true(a.decoder_layers == 0 && !a.lm_head);
}

static void windows_are_read_in_every_dialect(void **state)
{
    static const struct {
        const char *text;
        int64_t window, every;
    } expected[] = {
        {"{\"model_type\":\"mistral\"}", 4096, 0},
        {"{\"model_type\":\"mistral\",\"sliding_window\":null}", 0, 0},
        {"{\"model_type\":\"llama\",\"sliding_window\":4096}", 0, 0},
        {"{\"model_type\":\"qwen2\",\"sliding_window\":131072,\"use_sliding_window\":false}", 0, 0},
        {"{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"max_window_layers\":0}", 4096, 0},
        {"{\"model_type\":\"gemma2\"}", 4096, 2},
        {"{\"model_type\":\"gemma3\",\"sliding_window\":1024}", 1024, 6},
        {"{\"model_type\":\"gemma3_text\",\"sliding_window\":512,\"num_hidden_layers\":3,\"layer_types\":"
         "[\"sliding_attention\",\"sliding_attention\",\"full_attention\"]}",
         512, 3},
        {"{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\","
         "\"full_attention\"]}",
         0, 0},
        {"{\"model_type\":\"gpt_oss\"}", 128, 2},
        {"{\"model_type\":\"gpt_neo\"}", 256, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ft_arch a = read_text(expected[i].text);
        if (a.window != expected[i].window || a.window_every != expected[i].every)
            fail_msg("%s: window %" PRId64 " every %" PRId64, expected[i].text, a.window, a.window_every);
    }
}

static void nested_configs_are_entered(void **state)
{
    (void)state;
    ft_arch a = read_text("{\"model_type\":\"gemma3\",\"architectures\":[\"Gemma3ForConditionalGeneration\"],"
                          "\"text_config\":{\"model_type\":\"gemma3_text\",\"hidden_size\":2560,"
                          "\"intermediate_size\":10240,\"num_hidden_layers\":34,\"sliding_window\":1024},"
                          "\"vision_config\":{\"hidden_size\":1152}}");
    assert_true(a.hidden == 2560 && a.layers == 34 && a.window == 1024 && a.lm_head);
    refuses("{\"model_type\":\"gemma3\",\"text_config\":{\"hidden_size\":-1}}", FT_E_RANGE,
            "model.text_config.hidden_size", "whole number");
    a = read_text("{\"model_type\":\"clip\",\"projection_dim\":768,\"text_config\":{\"hidden_size\":768,"
                  "\"num_attention_heads\":12},\"vision_config\":{\"hidden_size\":1024,\"num_attention_heads\":16,"
                  "\"num_hidden_layers\":24,\"patch_size\":14}}");
    assert_true(a.hidden == 768 && a.heads == 12 && a.projection == 768);
    assert_true(a.vision_hidden == 1024 && a.vision_layers == 24 && a.vision_ffn == 3072 && a.patch == 14);
    assert_int_equal(77, a.position_rows);
}

static void a_diffusion_transformer_speaks_diffusers(void **state)
{
    (void)state;
    ft_arch a = read_text("{\"_class_name\":\"DiTTransformer2DModel\",\"num_attention_heads\":16,"
                          "\"attention_head_dim\":72,\"num_layers\":28,\"in_channels\":4,\"out_channels\":8,"
                          "\"sample_size\":64,\"patch_size\":2,\"num_embeds_ada_norm\":1000}");
    assert_int_equal(FT_DIFFUSION, a.design);
    assert_true(a.hidden == 1152 && a.ffn == 4608 && a.max_position == 1024 && a.labels == 1000 && a.out_channels == 8);
}

/* -- heads ---------------------------------------------------------------------------------------- */

static void architectures_decide_the_head(void **state)
{
    (void)state;
    ft_arch a = read_text("{\"model_type\":\"bert\"}");
    assert_true(a.mlm_head && !a.pooler && !a.causal && !a.loss_fp32 && !a.labels);
    a = read_text("{\"model_type\":\"bert\",\"architectures\":[\"BertLMHeadModel\"],\"is_decoder\":true}");
    assert_true(a.mlm_head && a.causal && a.loss_fp32);
    a = read_text("{\"model_type\":\"bert\",\"architectures\":[\"BertModel\"]}");
    assert_true(!a.mlm_head && a.pooler);
    a = read_text("{\"model_type\":\"bert\",\"architectures\":[\"BertForSequenceClassification\"],"
                  "\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"}}");
    assert_true(!a.mlm_head && a.pooler && a.labels == 3);
    a = read_text("{\"model_type\":\"gpt2\",\"architectures\":[\"GPT2LMHeadModel\"]}");
    assert_true(a.lm_head && a.loss_fp32 && a.causal);
    a = read_text("{\"model_type\":\"llama\",\"architectures\":[\"LlamaModel\"]}");
    assert_false(a.lm_head);
    a = read_text("{\"model_type\":\"llama\",\"architectures\":[\"LlamaForSequenceClassification\"],\"num_labels\":1}");
    assert_true(!a.lm_head && a.labels == 1);
    a = read_text("{\"model_type\":\"llama\",\"architectures\":[\"SomebodysOwnThing\"]}");
    assert_true(a.lm_head);
    a = read_text("{\"model_type\":\"llama\",\"architectures\":[\"InternVLChatModel\"]}");
    assert_true(a.lm_head);
    a = read_text("{\"model_type\":\"vit\",\"architectures\":[\"ViTForImageClassification\"],\"num_labels\":1000}");
    assert_true(a.labels == 1000 && !a.pooler && a.position_rows == 197);
    a = read_text("{\"model_type\":\"vit\",\"architectures\":[\"ViTModel\"]}");
    assert_true(a.labels == 0 && a.pooler);
    a = read_text("{\"model_type\":\"resnet\",\"num_labels\":1000,\"layer_type\":\"basic\",\"depths\":[2,2,2,2],"
                  "\"hidden_sizes\":[64,128,256,512]}");
    assert_true(a.labels == 1000 && !a.bottleneck && a.stages == 4 && a.width[3] == 512 && a.depth[0] == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_that_says_nothing_has_the_library_s_defaults),
        cmocka_unit_test(every_known_type_reads),
        cmocka_unit_test(what_a_config_leaves_out_follows_from_the_rest),
        cmocka_unit_test(falcons_are_three_layouts),
        cmocka_unit_test(opt_350m_norms_behind_and_embeds_narrower),
        cmocka_unit_test(t5_gates_where_its_name_says_so),
        cmocka_unit_test(windows_are_read_in_every_dialect),
        cmocka_unit_test(nested_configs_are_entered),
        cmocka_unit_test(a_diffusion_transformer_speaks_diffusers),
        cmocka_unit_test(architectures_decide_the_head),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
