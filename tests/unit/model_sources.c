/* Decoders that look at an encoder of images, two stacks that share keys, drafters, canvases: whose tokens count,
 * what rests in a step of decoding, and what of their configs is refused where it stands. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "graph/graph.h"
#include "import/config/config.h"
#include "model/workload.h"

static ft_status read_text(const char *text, ft_arch *arch, ft_error *err)
{
    json_t *config = NULL;
    if (ft__json_parse(text, strlen(text), "test", &config, err) != FT_OK) fail_msg("%s", err->message);
    ft_status status = ft__config_read(config, NULL, "config.json", arch, err);
    json_decref(config);
    return status;
}

typedef struct made {
    double parameters, flops;
} made;

static made make_with(const char *text, ft_task task, int64_t seq, int64_t source)
{
    ft_arch arch;
    ft_error err = {0};
    ft_graph *graph = NULL;
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = {.task = task,
                        .dtype = FT_BF16,
                        .kv_dtype = FT_BF16,
                        .batch = 1,
                        .seq = seq,
                        .source = source,
                        .attention = FT_SDPA,
                        .execution = FT_RUN_EAGER,
                        .optimizer = FT_NO_OPTIMIZER,
                        .accumulate = 1};
    if (read_text(text, &arch, &err) != FT_OK) fail_msg("%s: %s: %s", text, err.where, err.message);
    if (ft__model_graph(&arch, &work, arena, &graph, &err) != FT_OK) fail_msg("%s: %s", text, err.message);
    made all = {.parameters = graph->parameters, .flops = ft__graph_flops(graph, FT_FORWARD)};
    ft__arena_free(arena);
    return all;
}

static made make(const char *text, ft_task task, int64_t seq) { return make_with(text, task, seq, 0); }

/* What is read and what is written are as long as each other unless "source_tokens" says otherwise. */
static void an_encoder_reads_as_much_as_is_said(void **state)
{
    const char *const types[] = {"t5", "bart", "switch_transformers"};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"model_type\":\"%s\"}", types[i]);
        made small = make(text, FT_FORWARD_PASS, 64), same = make_with(text, FT_FORWARD_PASS, 64, 64),
             more = make_with(text, FT_FORWARD_PASS, 64, 512), large = make(text, FT_FORWARD_PASS, 512);
        assert_true(fabs(same.flops / small.flops - 1) < 1e-9);
        if (!(more.flops > 2 * small.flops && more.flops < 0.8 * large.flops))
            fail_msg("%s: %g, %g, %g", types[i], small.flops, more.flops, large.flops);
        made step = make_with(text, FT_DECODE, 64, 512);
        assert_true(fabs(step.parameters / small.parameters - 1) < 1e-5);
        assert_true(step.flops > make(text, FT_DECODE, 64).flops); /* it looks at more */
    }
}

static void a_decoder_by_itself_keeps_the_halves_that_look(void **state)
{
    double alone = make("{\"model_type\":\"trocr\"}", FT_FORWARD_PASS, 64).parameters;
    double seen = make("{\"model_type\":\"vision-encoder-decoder\",\"decoder\":{\"model_type\":\"trocr\","
                       "\"cross_attention_hidden_size\":768}}",
                       FT_FORWARD_PASS, 64)
                      .parameters;
    double narrow = 2.0 * 12 * 1024 * (1024 - 768); /* keys and values of the narrower encoder, in twelve layers */
    double tower = 85798656;                        /* ViT-B/16 at 224 pixels, without head and pooler */
    (void)state;
    assert_true(fabs(seen - (alone - narrow + tower)) < 1);
}

static void an_encoder_rests_while_words_are_decoded(void **state)
{
    const char *const types[] = {"blip",    "vision-encoder-decoder", "pix2struct", "pp_formulanet", "idefics",
                                 "t5gemma2"};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"model_type\":\"%s\"}", types[i]);
        made whole = make(text, FT_FORWARD_PASS, 64), step = make(text, FT_DECODE, 64);
        if (fabs(step.parameters / whole.parameters - 1) > 1e-5)
            fail_msg("%s: %.0f parameters, %.0f in a step", types[i], whole.parameters, step.parameters);
        if (!(step.flops < whole.flops / 20)) fail_msg("%s: %g of %g", types[i], step.flops, whole.flops);
    }
}

static void layers_that_look_stand_before_every_few(void **state)
{
    double each = make("{\"model_type\":\"idefics\"}", FT_FORWARD_PASS, 64).parameters;
    double fourth = make("{\"model_type\":\"idefics\",\"cross_layer_interval\":4}", FT_FORWARD_PASS, 64).parameters;
    double layer = 2.0 * 4096 * 4096 + 2.0 * 4096 * 768 + 3.0 * 4096 * 11008 + 2 * 4096 + 2;
    (void)state;
    assert_true(fabs(each - fourth - 24 * layer) < 1);
}

static void a_table_of_ngrams_is_in_the_layers_that_are_named(void **state)
{
    double none = make("{\"model_type\":\"qwen4_exp_text\"}", FT_FORWARD_PASS, 64).parameters;
    double one = make("{\"model_type\":\"qwen4_exp_text\",\"ple_layer_ids\":[2]}", FT_FORWARD_PASS, 64).parameters;
    double table = 16 * 20e6 * 128, products = 2048.0 * (8192 + 2048), rest = 3 * 8192 + 4 * 8192;
    (void)state;
    assert_true(fabs(one - none - (table + products + rest)) < 1);
}

static void a_canvas_has_no_weights_of_its_own(void **state)
{
    made prompt = make("{\"model_type\":\"diffusion_gemma\",\"canvas_length\":1}", FT_FORWARD_PASS, 256);
    made both = make("{\"model_type\":\"diffusion_gemma\",\"canvas_length\":256}", FT_FORWARD_PASS, 256);
    (void)state;
    assert_true(prompt.parameters == both.parameters);
    assert_true(both.flops > 1.8 * prompt.flops);
}

/* A stream more is a row of a table, and as many rows through the decoder and the head; the encoder is as it was. */
static void a_stream_for_every_token_ahead_runs_beside_the_words(void **state)
{
    const char *one = "{\"model_type\":\"prophetnet\",\"ngram\":1}", *two = "{\"model_type\":\"prophetnet\"}";
    made short_sight = make(one, FT_FORWARD_PASS, 64), far_sight = make(two, FT_FORWARD_PASS, 64);
    const double hidden = 1024, ffn = 4096, biases = 512, vocab = 30522, layers = 12, rows = 64;
    double layer = 6 * hidden * hidden + hidden * biases + 2 * hidden * ffn; /* of own and cross attention, the rest */
    double scores = 2 * hidden * (2 * rows + rows);                          /* at the words, itself and the source */
    double more = 2 * rows * (layers * (layer + scores) + hidden * vocab);
    (void)state;
    assert_true(far_sight.parameters - short_sight.parameters == hidden);
    assert_true(fabs((far_sight.flops - short_sight.flops) / more - 1) < 0.01);
    assert_true(make(two, FT_DECODE, 64).parameters == far_sight.parameters);
    assert_true(make(two, FT_TRAIN, 64).parameters == far_sight.parameters);
}

/* Groups twice as long leave half of the wide layers' rows; what tells where they begin can be left out. */
static void layers_over_groups_of_bytes_run_as_often_as_there_are_groups(void **state)
{
    const char *usual = "{\"model_type\":\"blt\"}", *longer = "{\"model_type\":\"blt\",\"patch_size\":8}";
    const char *told = "{\"model_type\":\"blt\",\"patch_in_forward\":false}";
    made four = make(usual, FT_FORWARD_PASS, 256), eight = make(longer, FT_FORWARD_PASS, 256);
    const double wide = 25 * (4.0 * 2048 * 2048 + 3.0 * 2048 * 5632), rows = 32;
    const double grouper = 14 * (4.0 * 768 * 768 + 3.0 * 768 * 2048 + 2 * 768) + 2.0 * 260 * 768 + 768;
    (void)state;
    assert_true(four.parameters == eight.parameters);
    assert_true(fabs((four.flops - eight.flops) / (2 * rows * wide) - 1) < 0.1);
    assert_true(four.parameters - make(told, FT_FORWARD_PASS, 256).parameters == grouper);
    assert_true(make(usual, FT_TRAIN, 256).parameters == four.parameters);
}

static void contradictions_are_refused_where_they_stand(void **state)
{
    static const struct {
        const char *config, *where, *message;
    } cases[] = {
        {"{\"model_type\":\"vision-encoder-decoder\",\"encoder\":{\"model_type\":\"donut-swin\"}}",
         "encoder.model_type", "only encoders like ViT's"},
        {"{\"model_type\":\"vision-encoder-decoder\",\"decoder\":{\"model_type\":\"mbart\"}}", "decoder.model_type",
         "is not modelled"},
        {"{\"model_type\":\"vision-encoder-decoder\",\"encoder\":{\"num_attention_heads\":7}}",
         "encoder.num_attention_heads", "7 heads must divide the tower's width 768"},
        {"{\"model_type\":\"vision-encoder-decoder\",\"decoder\":{\"model_type\":\"trocr\","
         "\"cross_attention_hidden_size\":512}}",
         "cross_attention_hidden_size", "512 beside an encoder of width 768"},
        {"{\"model_type\":\"blip\",\"text_config\":{\"encoder_hidden_size\":512}}", "encoder_hidden_size",
         "512 beside an encoder of width 768"},
        {"{\"model_type\":\"t5gemma2\",\"encoder\":{\"text_config\":{\"num_hidden_layers\":3}}}",
         "encoder.text_config.num_hidden_layers", "26 in the decoder beside 3 in the encoder"},
        {"{\"model_type\":\"t5gemma2\",\"decoder\":{\"layer_types\":[\"full_attention\"]}}", "layer_types",
         "has 1 entries for 26 layers"},
        {"{\"model_type\":\"pix2struct\",\"text_config\":{\"hidden_size\":1024,\"num_heads\":16}}", "hidden_size",
         "both must be the same"},
        {"{\"model_type\":\"florence2\",\"vision_config\":{\"depths\":[1,1]}}", "vision_config.depths",
         "must hold 4 sizes, one for each of embed_dim"},
        {"{\"model_type\":\"idefics\",\"cross_layer_interval\":0}", "cross_layer_interval", "from 1"},
        {"{\"model_type\":\"qwen4_exp_text\",\"layer_types\":[\"linear_attention\"]}", "layer_types",
         "has 1 entries for 40 layers"},
        {"{\"model_type\":\"qwen4_exp_text\",\"indexer_budget\":2047}", "indexer_compress_ratio",
         "divide indexer_budget 2047"},
        {"{\"model_type\":\"qwen4_exp_text\",\"ple_layer_ids\":[41]}", "ple_layer_ids", "a layer from 1 to 40"},
        {"{\"model_type\":\"qwen4_exp_text\",\"hc_count\":1}", "hc_count", "2 to 1024 are expected"},
        {"{\"model_type\":\"gemma4_assistant\",\"use_ordered_embeddings\":true,\"num_centroids\":1000}",
         "num_centroids", "must divide 262144 words"},
        {"{\"model_type\":\"diffusion_gemma\",\"canvas_length\":0}", "canvas_length", "from 1"},
        {"{\"model_type\":\"xlstm\",\"num_heads\":7}", "num_heads", "7 heads must divide queries of 2048"},
        {"{\"model_type\":\"musicgen\",\"decoder\":{\"num_codebooks\":0}}", "num_codebooks", "0 codebooks"},
        {"{\"model_type\":\"prophetnet\",\"ngram\":0}", "ngram", "from 1"},
        {"{\"model_type\":\"blt\",\"decoder_config\":{\"hidden_size\":512}}", "decoder_config.hidden_size",
         "512 beside an encoder of width 1024"},
        {"{\"model_type\":\"blt\",\"encoder_config\":{\"num_hidden_layers\":2,\"cross_attn_all_layers\":true}}",
         "encoder_config.cross_attn_all_layers", "false is expected"},
        {"{\"model_type\":\"blt\",\"patcher_config\":{\"num_attention_heads\":7}}",
         "patcher_config.num_attention_heads", "must divide a width of 768"},
        {"{\"model_type\":\"blt\",\"patch_size\":0}", "patch_size", "from 1"},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_encoder_reads_as_much_as_is_said),
        cmocka_unit_test(a_decoder_by_itself_keeps_the_halves_that_look),
        cmocka_unit_test(an_encoder_rests_while_words_are_decoded),
        cmocka_unit_test(layers_that_look_stand_before_every_few),
        cmocka_unit_test(a_table_of_ngrams_is_in_the_layers_that_are_named),
        cmocka_unit_test(a_canvas_has_no_weights_of_its_own),
        cmocka_unit_test(a_stream_for_every_token_ahead_runs_beside_the_words),
        cmocka_unit_test(layers_over_groups_of_bytes_run_as_often_as_there_are_groups),
        cmocka_unit_test(contradictions_are_refused_where_they_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
