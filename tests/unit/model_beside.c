/* Reformer, Evolla and π0: chunks in place of whole sequences, layers that are undone, a protein and a robot's actions
 * beside the words, and what of their configs is refused where it stands. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

static ft_workload work_of(ft_task task, int64_t seq)
{
    return (ft_workload){.task = task,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .batch = 1,
                         .seq = seq,
                         .attention = FT_SDPA,
                         .execution = FT_RUN_EAGER,
                         .optimizer = FT_NO_OPTIMIZER,
                         .accumulate = 1};
}

static ft_graph *graph_of(const char *text, const ft_workload *work, ft_arena *arena)
{
    ft_arch arch;
    ft_error err = {0};
    ft_graph *graph = NULL;
    if (read_text(text, &arch, &err) != FT_OK) fail_msg("%s: %s: %s", text, err.where, err.message);
    if (ft__model_graph(&arch, work, arena, &graph, &err) != FT_OK) fail_msg("%s: %s", text, err.message);
    return graph;
}

typedef struct made {
    double parameters, flops;
} made;

static made make_of(const char *text, ft_workload work)
{
    ft_arena *arena = ft__arena_new(0);
    const ft_graph *g = graph_of(text, &work, arena);
    made all = {.parameters = g->parameters, .flops = ft__graph_flops(g, FT_FORWARD)};
    ft__arena_free(arena);
    return all;
}

static made make(const char *text, ft_task task, int64_t seq) { return make_of(text, work_of(task, seq)); }

static const char reformer[] = "{\"model_type\":\"reformer\"}", evolla[] = "{\"model_type\":\"evolla\"}",
                  pi0[] = "{\"model_type\":\"pi0\"}";

/* -- reformer ----------------------------------------------------------------------------------------- */

/* Twice as long is twice the work, but for hashing, whose buckets are twice as many. */
static void attention_over_chunks_grows_with_the_sequence(void **state)
{
    double one = make(reformer, FT_FORWARD_PASS, 1024).flops, two = make(reformer, FT_FORWARD_PASS, 2048).flops;
    (void)state;
    assert_true(two / one > 2 && two / one < 2.1);
    /* What does not fill its last chunk is filled up. */
    assert_true(make(reformer, FT_FORWARD_PASS, 1000).flops > 0.99 * make(reformer, FT_FORWARD_PASS, 1024).flops);
}

static void a_round_of_hashing_more_is_attention_over_as_many_chunks_more(void **state)
{
    double one = make(reformer, FT_FORWARD_PASS, 1024).flops;
    double four = make("{\"model_type\":\"reformer\",\"num_hashes\":4}", FT_FORWARD_PASS, 1024).flops;
    const double scores = 3.0 * 3 * 12 * 1024 * 2 * 128 * 2 * 64, hashes = 3.0 * 3 * 12 * 1024 * 2 * 64 * 16;
    (void)state;
    assert_true(fabs((four - one) / (scores + hashes) - 1) < 0.2); /* kernels that sort and weigh are counted too */
}

/* Nothing that a layer made going forward is read going back: its inputs are made again of its results. */
static void layers_that_are_undone_keep_nothing(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, 4096);
    const ft_graph *g = graph_of(reformer, &work, arena);
    double kept = 0;
    int again = 0;
    (void)state;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        again += n->phase == FT_RECOMPUTE && n->verb == FT_DO_LINEAR;
        if (n->phase != FT_BACKWARD && n->phase != FT_RECOMPUTE) continue;
        for (int k = 0; k < n->in_count; k++) {
            const ft_tensor *t = &g->tensors[n->in[k]];
            const ft_block *home = t->block >= 0 ? &g->blocks[t->block] : NULL;
            if (home && home->phase == FT_FORWARD && home->reversible && t->role == FT_ACTIVATION)
                kept += ft__tensor_numel(t);
        }
    }
    assert_true(again > 0);
    assert_true(kept <= 4096.0 * 512); /* the last layer's two streams, which the head reads */
    ft__arena_free(arena);
}

static void a_step_makes_keys_of_the_chunks_it_sees_alone(void **state)
{
    made near = make(reformer, FT_DECODE, 512), far = make(reformer, FT_DECODE, 4000);
    (void)state;
    assert_true(near.parameters == make(reformer, FT_FORWARD_PASS, 256).parameters);
    assert_true(far.flops < 1.6 * near.flops); /* what sorts buckets grows, products do not */
}

/* -- evolla --------------------------------------------------------------------------------------------- */

static void a_protein_is_read_beside_the_words(void **state)
{
    ft_workload of_512 = work_of(FT_FORWARD_PASS, 64), of_1024 = of_512;
    of_512.source = 512;
    of_1024.source = 1024;
    const double layer = 4.0 * 1280 * 1280 + 2.0 * 1280 * 5120, more = 2 * 512 * 33 * layer;
    double difference = make_of(evolla, of_1024).flops - make_of(evolla, of_512).flops;
    (void)state;
    assert_true(difference > more && difference < 1.35 * more); /* scores, the resampler's keys */
    /* Nothing of it is kept: a step reads it again. */
    assert_true(make(evolla, FT_DECODE, 64).flops > 2 * 1024 * 33 * layer);
    assert_true(make(evolla, FT_DECODE, 64).parameters == make(evolla, FT_TRAIN, 64).parameters);
}

static void layers_that_look_stand_behind_every_few(void **state)
{
    double eight = make(evolla, FT_FORWARD_PASS, 64).parameters;
    double four = make("{\"model_type\":\"evolla\",\"aligner_num_add_layers\":4}", FT_FORWARD_PASS, 64).parameters;
    const double wide = 4096, aligner = 4 * wide * wide + 4 * wide + 8 * wide * wide + 3 * wide + 2;
    (void)state;
    assert_true(fabs(eight - four - 4 * aligner) < 1);
}

/* -- pi0 ------------------------------------------------------------------------------------------------ */

static void a_pass_is_the_prompt_and_one_step(void **state)
{
    made pass = make(pi0, FT_FORWARD_PASS, 300), prompt = make(pi0, FT_PREFILL, 300), step = make(pi0, FT_DECODE, 300);
    (void)state;
    assert_true(pass.parameters == 3501372176.0);
    assert_true(prompt.parameters == pass.parameters && step.parameters == pass.parameters);
    assert_true(fabs((prompt.flops + step.flops) / pass.flops - 1) < 0.01);
    assert_true(make(pi0, FT_TRAIN, 300).parameters == pass.parameters);
}

static void more_actions_are_more_rows_of_the_second_stack(void **state)
{
    made fifty = make(pi0, FT_DECODE, 300),
         hundred = make("{\"model_type\":\"pi0\",\"chunk_size\":100}", FT_DECODE, 300);
    (void)state;
    assert_true(fifty.parameters == hundred.parameters);
    assert_true(hundred.flops / fifty.flops > 1.9 && hundred.flops / fifty.flops < 2.1);
}

/* Gradients reach the language model through the keys that actions read, but nothing behind its last ones. */
static void actions_train_the_language_model_through_its_keys(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, 64);
    const ft_graph *g = graph_of(pi0, &work, arena);
    double forward = ft__graph_flops(g, FT_FORWARD), back = ft__graph_flops(g, FT_BACKWARD);
    (void)state;
    assert_true(back > 1.8 * forward && back < 2.1 * forward);
    ft__arena_free(arena);
}

/* -- configs -------------------------------------------------------------------------------------------- */

static void contradictions_are_refused_where_they_stand(void **state)
{
    static const struct {
        const char *config, *where, *message;
    } cases[] = {
        {"{\"model_type\":\"reformer\",\"axial_pos_embds_dim\":[64,64]}", "axial_pos_embds_dim",
         "must make up hidden_size 256"},
        {"{\"model_type\":\"reformer\",\"axial_pos_shape\":[64]}", "axial_pos_shape", "two sizes"},
        {"{\"model_type\":\"reformer\",\"num_buckets\":7}", "num_buckets", "an even number of buckets"},
        {"{\"model_type\":\"reformer\",\"num_buckets\":[2,4,8]}", "num_buckets", "at most two factors"},
        {"{\"model_type\":\"reformer\",\"lsh_attn_chunk_length\":0}", "lsh_attn_chunk_length", "from 1"},
        {"{\"model_type\":\"reformer\",\"local_num_chunks_before\":9}", "local_num_chunks_before", "at most 7"},
        {"{\"model_type\":\"reformer\",\"attn_layers\":[\"local\",\"global\"]}", "attn_layers", "global"},
        {"{\"model_type\":\"evolla\",\"protein_encoder_config\":{\"num_attention_heads\":7}}",
         "protein_encoder_config.num_attention_heads", "7 heads must divide a width of 1280"},
        {"{\"model_type\":\"evolla\",\"protein_encoder_config\":{\"position_embedding_type\":\"absolute\"}}",
         "protein_encoder_config.position_embedding_type", "\"rotary\" is expected"},
        {"{\"model_type\":\"pi0\",\"dit_config\":{\"num_hidden_layers\":12}}", "dit_config.num_hidden_layers",
         "12 beside 18 of the language model"},
        {"{\"model_type\":\"pi0\",\"dit_config\":{\"model_type\":\"llama\"}}", "dit_config.model_type",
         "\"gemma\" is expected"},
        {"{\"model_type\":\"pi0\",\"dit_config\":{\"hidden_size\":1023}}", "dit_config.hidden_size", "an even width"},
        {"{\"model_type\":\"reformer\",\"num_hashes\":0}", "num_hashes", "from 1"},
        {"{\"model_type\":\"evolla\",\"protein_encoder_config\":3}", "protein_encoder_config", "must be an object"},
        {"{\"model_type\":\"pi0\",\"vlm_config\":3}", "vlm_config", "must be an object"},
        {"{\"model_type\":\"pi0\",\"dit_config\":[]}", "dit_config", "must be an object"},
        {"{\"model_type\":\"pi0\",\"chunk_size\":0}", "chunk_size", "from 1"},
        {"{\"model_type\":\"pi0\",\"vlm_config\":{\"text_config\":{\"num_hidden_layers\":4}},\"dit_config\":{\"num_"
         "hidden_layers\":18}}",
         "dit_config.num_hidden_layers", "18 beside 4 of the language model"},
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

static void lengths_that_positions_have_no_place_for_are_refused(void **state)
{
    static const struct {
        ft_task task;
        int64_t seq;
        const char *message;
    } cases[] = {{FT_TRAIN, 2048, "sequences of 4096 tokens"}, {FT_FORWARD_PASS, 8192, "at most 4096"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_arch arch;
        ft_error err = {0};
        ft_graph *g = NULL;
        ft_arena *arena = ft__arena_new(0);
        ft_workload work = work_of(cases[i].task, cases[i].seq);
        assert_int_equal(read_text(reformer, &arch, &err), FT_OK);
        assert_int_equal(ft__model_graph(&arch, &work, arena, &g, &err), FT_E_RANGE);
        if (!strstr(err.message, cases[i].message)) fail_msg("%s", err.message);
        ft__arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_over_chunks_grows_with_the_sequence),
        cmocka_unit_test(a_round_of_hashing_more_is_attention_over_as_many_chunks_more),
        cmocka_unit_test(layers_that_are_undone_keep_nothing),
        cmocka_unit_test(a_step_makes_keys_of_the_chunks_it_sees_alone),
        cmocka_unit_test(a_protein_is_read_beside_the_words),
        cmocka_unit_test(layers_that_look_stand_behind_every_few),
        cmocka_unit_test(a_pass_is_the_prompt_and_one_step),
        cmocka_unit_test(more_actions_are_more_rows_of_the_second_stack),
        cmocka_unit_test(actions_train_the_language_model_through_its_keys),
        cmocka_unit_test(contradictions_are_refused_where_they_stand),
        cmocka_unit_test(lengths_that_positions_have_no_place_for_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
