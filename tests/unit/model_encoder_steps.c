/* Models with an encoder, step by step: decoding, prefill, an encoder alone, recomputation, what is refused. */
#include "encoders.h"

static double role_bytes(const ft_graph *g, ft_role role)
{
    double all = 0;
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].role == role && g->tensors[i].storage == i)
            all += ft__tensor_bytes(&g->tensors[i]) * (double)g->tensors[i].copies;
    return all;
}

static bool has_block(const ft_graph *g, const char *name)
{
    for (int32_t i = 0; i < g->block_count; i++)
        if (!strcmp(g->blocks[i].name, name)) return true;
    return false;
}

/* -- generation ------------------------------------------------------------------------------------ */

static void a_decode_step_keeps_the_encoder_and_does_not_run_it(void **state)
{
    const char *some[] = {T5(""), SWITCH, WHISPER};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const ft_graph *g = built(f, some[i], bf16(FT_FORWARD_PASS, 2, 64));
        double parameters = g->parameters, whole = sum(g, FT_FORWARD, flops);
        assert_true(has_block(g, "encoder.layers"));
        g = built(f, some[i], bf16(FT_DECODE, 2, 64));
        assert_true(g->parameters == parameters);
        assert_false(has_block(g, "encoder.layers"));
        assert_true(sum(g, FT_FORWARD, flops) < whole / 20);
        /* Keys and values: of 64 tokens of the text, and of the source once. */
        double source = !strcmp(some[i], WHISPER) ? 1500 : 64, width = !strcmp(some[i], T5("")) ? 1024 : 768;
        assert_true(role_bytes(g, FT_CACHE) == 4 * 2.0 * (64 + source) * width * 2 * 2);
    }
}

static void a_prefill_fills_what_the_decode_step_reads(void **state)
{
    fixture *f = *state;
    double read = role_bytes(built(f, WHISPER, bf16(FT_DECODE, 2, 64)), FT_CACHE);
    assert_true(role_bytes(built(f, WHISPER, bf16(FT_PREFILL, 2, 64)), FT_CACHE) == read);
    /* t5 begins with one token whatever the source is. */
    const ft_graph *g = built(f, T5(""), bf16(FT_PREFILL, 2, 64));
    assert_true(role_bytes(g, FT_CACHE) == 4 * 2.0 * (1 + 64) * 1024 * 2 * 2);
}

static void an_encoder_alone_has_no_decoder(void **state)
{
    fixture *f = *state;
    const ft_graph *g = built(f, T5(",\"architectures\":[\"T5EncoderModel\"]"), bf16(FT_TRAIN, 2, 64));
    assert_true(has_block(g, "encoder.layers"));
    assert_false(has_block(g, "decoder.layers"));
}

/* -- recomputation: layer by layer even where two kinds of layers take turns --------------------------- */

static void recomputation_runs_every_layer_once_more(void **state)
{
    fixture *f = *state;
    ft_workload work = bf16(FT_TRAIN, 2, 64);
    work.attention = FT_EAGER;
    work.recompute = FT_RECOMPUTE_FULL;
    const ft_graph *g = built(f, SWITCH, work);
    int blocks = 0;
    for (int32_t i = 0; i < g->block_count; i++)
        if (g->blocks[i].phase == FT_FORWARD && !strcmp(g->blocks[i].name, "encoder.layers")) blocks++;
    assert_int_equal(4, blocks);
    assert_true(sum(g, FT_RECOMPUTE, product) == 149 - 1); /* all but the head's */
}

/* -- errors ---------------------------------------------------------------------------------------- */

static void refuses(fixture *f, const char *config, ft_workload work, ft_status code, const char *says)
{
    if (attempt(f, config, work) == FT_OK) fail_msg("%s: built", config);
    assert_int_equal(code, f->err.code);
    if (!strstr(f->err.message, says)) fail_msg("\"%s\" does not say \"%s\"", f->err.message, says);
}

static void what_makes_no_sense_is_refused(void **state)
{
    fixture *f = *state;
    refuses(f, BERT, bf16(FT_DECODE, 1, 64), FT_E_UNSUPPORTED, "no decode step");
    refuses(f, T5(",\"architectures\":[\"T5EncoderModel\"]"), bf16(FT_DECODE, 1, 64), FT_E_UNSUPPORTED,
            "no decode step");
    refuses(f, BERT, bf16(FT_TRAIN, 1, 513), FT_E_RANGE, "end at 512");
    refuses(f, WHISPER, bf16(FT_FORWARD_PASS, 1, 449), FT_E_RANGE, "end at 448");
    built(f, BERT, bf16(FT_TRAIN, 1, 512));
    built(f, WHISPER, bf16(FT_FORWARD_PASS, 1, 448));
    built(f, "{\"model_type\":\"bert\",\"is_decoder\":true}", bf16(FT_DECODE, 1, 64));
}

static ft_status build_whole(void *context)
{
    fixture f = {.arena = ft__arena_new(0)};
    if (!f.arena) return FT_E_MEMORY;
    json_t *config = NULL;
    ft_arch arch;
    ft_workload work = bf16(FT_TRAIN, 2, 64);
    ft_status status = ft__json_parse(context, strlen(context), "test", &config, NULL);
    if (status == FT_OK) status = ft__config_read(config, NULL, "model", &arch, NULL);
    if (status == FT_OK) status = ft__model_graph(&arch, &work, f.arena, &f.graph, NULL);
    work.task = FT_DECODE;
    if (status == FT_OK && arch.design != FT_ENCODER_ONLY)
        status = ft__model_graph(&arch, &work, f.arena, &f.graph, NULL);
    json_decref(config);
    ft__arena_free(f.arena);
    return status;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        assert_true(failing_alloc_sweep(build_whole, (void *)(uintptr_t)seen[i].config) > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decode_step_keeps_the_encoder_and_does_not_run_it),
        cmocka_unit_test(a_prefill_fills_what_the_decode_step_reads),
        cmocka_unit_test(an_encoder_alone_has_no_decoder),
        cmocka_unit_test(recomputation_runs_every_layer_once_more),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
