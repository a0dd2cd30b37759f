/* What an engine replays from graphs and what its host launches: decoding whose batch has no graph of its size, prompts
 * in pieces, and for whom public recipes say so (src/serving/cost.c, data/engines/trtllm.json). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "serving_ask.h"

static double infer(const char *traits, int batch, const char *list, const char *key)
{
    char keys[768];
    snprintf(keys, sizeof keys,
             "\"task\":\"infer\",\"model\":\"llama-2-7b\",\"gpu\":\"h100_sxm\",\"dtype\":\"fp8\",\"batch\":%d,"
             "\"seq\":128,\"engine\":{\"base\":\"trtllm\",\"traits\":{\"eager_us\":100%s}}",
             batch, traits);
    return of_list(keys, list, key);
}

/* Without padding, batches of 4 and 8 are replayed as ever; others have ten launches of 100 us in 32 layers. */
static void batches_of_no_graph_are_launched(void **state)
{
    (void)state;
    double floor_ms = 32 * 10 * 0.1;
    for (int batch = 4; batch <= 8; batch++) {
        double padded = infer("", batch, "decode", "tpot_ms");
        double held = infer(",\"padded_graphs\":false,\"graphs_each\":0", batch, "decode", "tpot_ms");
        bool has = batch == 4 || batch == 8;
        if (has ? held != padded : fabs(held - floor_ms) > 0.3)
            fail_msg("%d sequences: %g ms, %g padded", batch, held, padded);
    }
}

/* Pieces leave the launches of attention: of twelve kernels of a layer, eight. */
static void pieces_of_prompts_are_replayed(void **state)
{
    (void)state;
    const char *pieces = ",\"prompt_graphs\":true";
    double launched = infer("", 1, "prefill", "ttft_ms"), left = infer(pieces, 1, "prefill", "ttft_ms");
    if (fabs(launched - left - 32 * 10 * 0.1 * 4 / 12) > 0.01) fail_msg("%g and %g ms", launched, left);
    assert_true(infer("", 1, "decode", "tpot_ms") == infer(pieces, 1, "decode", "tpot_ms"));
}

/* vLLM captures sizes up to so many tokens, of decoding as of prompts: what is larger has ten launches in a layer, a
 * prompt of at most that many three. */
static void larger_iterations_are_launched(void **state)
{
    (void)state;
    const char *few = ",\"graph_sequences\":64", *pieces = ",\"prompt_graphs\":true,\"piece_tokens\":128",
               *shorter = ",\"prompt_graphs\":true,\"piece_tokens\":127",
               *three = ",\"prompt_graphs\":true,\"piece_kernels\":3";
    double floor_ms = 32 * 10 * 0.1, within = infer(few, 64, "decode", "tpot_ms");
    assert_true(within == infer("", 64, "decode", "tpot_ms") && within < floor_ms / 2);
    assert_true(fabs(infer(few, 65, "decode", "tpot_ms") - floor_ms) < 0.6);
    double launched = infer("", 1, "prefill", "ttft_ms");
    assert_true(infer(shorter, 1, "prefill", "ttft_ms") == launched);
    assert_true(infer(pieces, 1, "prefill", "ttft_ms") < 0.8 * launched);
    assert_true(fabs(launched - infer(three, 1, "prefill", "ttft_ms") - 32 * 7 * 0.1) < 0.01);
}

/* SGLang sizes its graphs by the GPU's memory and by ranks: a batch of 100 has one on an H100, none on an RTX 4090, one
 * of 300 on an H100 from four ranks on, and on a B200. */
static void graphs_are_sized_by_memory(void **state)
{
    (void)state;
#define OF_SGLANG "\"task\":\"infer\",\"model\":\"qwen2.5-1.5b\",\"seq\":64,\"engine\":\"sglang\",\"dtype\":\"bf16\","
#define TOKEN(keys) of_list(OF_SGLANG keys, "decode", "tpot_ms")
    double floor_ms = 28 * 10 * 0.05;
    assert_true(TOKEN("\"gpu\":\"h100_sxm\",\"batch\":100") < floor_ms / 2);
    assert_true(TOKEN("\"gpu\":\"rtx_4090\",\"batch\":100") > floor_ms);
    assert_true(TOKEN("\"gpu\":\"rtx_4090\",\"batch\":24") < floor_ms / 2);
    assert_true(TOKEN("\"gpu\":\"h100_sxm\",\"batch\":300") > floor_ms);
    assert_true(TOKEN("\"gpu\":\"b200_sxm\",\"batch\":300") < floor_ms);
    assert_true(TOKEN("\"gpu\":\"h100_sxm\",\"batch\":300,\"parallel\":{\"tp\":4}") < floor_ms);
}

/* CudaGraphConfig by itself: sizes up to 31, 32, 64 and 128, without padding. */
static void defaults_have_few_graphs(void **state)
{
    (void)state;
    const char *plain = ",\"padded_graphs\":false,\"graphs_each\":31,\"graph_sequences\":128";
    const int replayed[] = {3, 31, 32, 64, 128}, launched[] = {33, 100, 129, 256};
    double floor_ms = 32 * 10 * 0.1;
    for (int i = 0; i < 5; i++) assert_true(infer(plain, replayed[i], "decode", "tpot_ms") < floor_ms / 2);
    for (int i = 0; i < 4; i++) assert_true(infer(plain, launched[i], "decode", "tpot_ms") > 0.99 * floor_ms);
#define DEFAULTS                                                                                                    \
    "\"task\":\"serve\",\"model\":\"qwen2.5-1.5b\",\"gpu\":\"h100_sxm\",\"engine\":\"trtllm\",\"concurrency\":100," \
    "\"requests\":200,"
    double recipe = figure(DEFAULTS "\"settings\":\"recipe\"", "tpot_ms");
    double by_itself = figure(DEFAULTS "\"settings\":\"defaults\"", "tpot_ms");
    if (by_itself < 1.5 * recipe) fail_msg("%g ms by itself, %g as in public scripts", by_itself, recipe);
}

#define DEEPSEEK \
    "\"task\":\"serve\",\"model\":\"deepseek-ai/DeepSeek-R1\",\"gpu\":\"b200_sxm\",\"parallel\":{\"tp\":8},"

/* AIConfigurator's benchmark: a token of 28 clients takes the host longer than one of 32 takes the GPU. */
static void a_generator_left_out_padding(void **state)
{
    (void)state;
#define GENERATED DEEPSEEK "\"dtype\":\"fp4\",\"isl\":4000,\"osl\":200,\"engine\":\"trtllm\",\"concurrency\":"
    double odd = figure(GENERATED "28", "tpot_ms"), even = figure(GENERATED "32", "tpot_ms");
    if (odd < 1.5 * even) fail_msg("%g ms of 28 clients, %g of 32", odd, even);
    double others = figure(GENERATED "28,\"length_range\":[0.8,1],\"mtp\":0", "tpot_ms");
    if (others > even) fail_msg("%g ms where graphs are padded, %g", others, even);
}

/* The public benchmark's script for fp8 has pieces from five clients on. */
static void a_script_has_pieces(void **state)
{
    (void)state;
#define LENGTHS "\"isl\":1024,\"osl\":1024,\"length_range\":[0.8,1],"
#define SCRIPT(engine) DEEPSEEK "\"dtype\":\"fp8\"," LENGTHS "\"engine\":" engine ",\"concurrency\":"
#define NO_PIECES "{\"base\":\"trtllm\",\"traits\":{\"prompt_graphs\":false}}"
    double with = figure(SCRIPT("\"trtllm\"") "16", "ttft_ms"), without = figure(SCRIPT(NO_PIECES) "16", "ttft_ms");
    if (with > 0.8 * without) fail_msg("%g ms, %g launched one by one", with, without);
    assert_true(figure(SCRIPT("\"trtllm\"") "4", "ttft_ms") == figure(SCRIPT(NO_PIECES) "4", "ttft_ms"));
}

/* 14 launches of 130 us in 36 layers of gpt-oss hold a short prompt, on however many GPUs; on others none does. */
static void triton_is_launched_from_python(void **state)
{
    (void)state;
#define OF_OSS(engine) \
    "\"task\":\"infer\",\"model\":\"openai/gpt-oss-120b\",\"batch\":1,\"seq\":64,\"engine\":" engine ","
#define GPT_OSS OF_OSS("\"trtllm\"")
    double one = of_list(GPT_OSS "\"gpu\":\"h200_sxm\"", "prefill", "ttft_ms");
    double eight = of_list(GPT_OSS "\"gpu\":\"h200_sxm\",\"parallel\":{\"tp\":8}", "prefill", "ttft_ms");
    if (fabs(one - 65.5) > 2 || fabs(eight - one) > 0.5) fail_msg("%g and %g ms", one, eight);
    double later = of_list(GPT_OSS "\"gpu\":\"b200_sxm\"", "prefill", "ttft_ms");
    if (later > 0.5 * one) fail_msg("%g ms where one call has a layer's experts", later);
}

/* On B200 its kernels begin while others end: 36 layers of 18 kernels, and ten, have gaps of 0.2 us, not of 0.9. */
static void kernels_overlap(void **state)
{
    (void)state;
    const char *apart = OF_OSS("{\"base\":\"trtllm\",\"traits\":{\"gap_us\":0.9}}") "\"gpu\":\"b200_sxm\"";
    double less = of_list(apart, "decode", "tpot_ms") - of_list(GPT_OSS "\"gpu\":\"b200_sxm\"", "decode", "tpot_ms");
    if (fabs(less - 658 * 0.7e-3) > 0.01) fail_msg("%g ms", less);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_of_no_graph_are_launched),
        cmocka_unit_test(pieces_of_prompts_are_replayed),
        cmocka_unit_test(larger_iterations_are_launched),
        cmocka_unit_test(graphs_are_sized_by_memory),
        cmocka_unit_test(defaults_have_few_graphs),
        cmocka_unit_test(a_generator_left_out_padding),
        cmocka_unit_test(a_script_has_pieces),
        cmocka_unit_test(triton_is_launched_from_python),
        cmocka_unit_test(kernels_overlap),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
