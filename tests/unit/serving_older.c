/* Engines older than fused attention for every group: what their traits do to a token and to a prompt, alone and
 * together (data/engines/trtllm-0.*.json, fastertransformer.json; src/serving/unfused.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "serving_ask.h"

static double asked(const char *engine, const char *model, const char *rest, const char *list, const char *key)
{
    char keys[768];
    snprintf(keys, sizeof keys, "\"task\":\"infer\",\"engine\":%s,\"model\":\"%s\",%s", engine, model, rest);
    return of_list(keys, list, key);
}

#define LOADED "\"gpu\":\"h100_sxm\",\"dtype\":\"fp8\",\"batch\":120,\"seq\":1152"
static double token(const char *engine, const char *model) { return asked(engine, model, LOADED, "decode", "tpot_ms"); }

/* Mistral has four query heads to a key-value head, Llama 2 70B eight, for which 0.9 has a kernel and 0.6 has none. */
static void heads_walk_where_no_kernel_is_for_them(void **state)
{
    (void)state;
    double now = token("\"trtllm-0.14\"", "mistral-7b"), then = token("\"trtllm-0.9\"", "mistral-7b");
    if (then < 1.4 * now) fail_msg("%g ms, %g where heads walk", now, then);
    double elements = 120.0 * 32 * 1152 * 256 * 32, pace = 17 * 132 * 1980e3; /* of all layers; an H100's boost */
    if (then < elements / pace) fail_msg("%g ms are less than the walk of %g elements", then, elements);
#define SHARED "\"gpu\":\"h200_sxm\",\"dtype\":\"fp8\",\"batch\":64,\"seq\":1152"
    double tiled = asked("\"trtllm-0.9\"", "llama-2-70b", SHARED, "decode", "tpot_ms");
    assert_true(tiled == asked("\"trtllm-0.14\"", "llama-2-70b", SHARED, "decode", "tpot_ms"));
    double alone = asked("\"trtllm-0.6\"", "llama-2-70b", SHARED, "decode", "tpot_ms");
    if (alone < 1.2 * tiled) fail_msg("%g ms with a kernel for eight heads, %g without", tiled, alone);
}

/* Three kernels of 1.8 us, each behind a gap of 2, in 32 layers. */
static void prompts_have_small_kernels(void **state)
{
    (void)state;
    const char *without = "{\"base\":\"trtllm-0.14\",\"traits\":{\"prompt_kernels\":0}}";
#define PROMPT "\"gpu\":\"h100_sxm\",\"dtype\":\"fp8\",\"batch\":1,\"seq\":128"
    double more = asked("\"trtllm-0.14\"", "llama-2-7b", PROMPT, "prefill", "ttft_ms") -
                  asked(without, "llama-2-7b", PROMPT, "prefill", "ttft_ms");
    if (fabs(more - 32 * 3 * 3.8e-3) > 1e-3) fail_msg("%g ms", more);
    assert_true(asked("\"trtllm-0.14\"", "llama-2-7b", PROMPT, "decode", "tpot_ms") ==
                asked(without, "llama-2-7b", PROMPT, "decode", "tpot_ms"));
}

/* One of 1.8 us, and a gap of 2, in every layer where products are in 8 bits; none in 16. */
static void attended_is_narrowed(void **state)
{
    (void)state;
    const char *without = "{\"base\":\"trtllm-0.14\",\"traits\":{\"narrows_attended\":false}}";
    double more = asked("\"trtllm-0.14\"", "llama-2-7b", PROMPT, "decode", "tpot_ms") -
                  asked(without, "llama-2-7b", PROMPT, "decode", "tpot_ms");
    if (fabs(more - 32 * 3.8e-3) > 5e-3) fail_msg("%g ms", more);
#define WIDE "\"gpu\":\"h100_sxm\",\"dtype\":\"fp16\",\"batch\":1,\"seq\":128"
    assert_true(asked("\"trtllm-0.14\"", "llama-2-7b", WIDE, "decode", "tpot_ms") ==
                asked(without, "llama-2-7b", WIDE, "decode", "tpot_ms"));
}

/* Ten launches of a layer bound a token from below where no graph replays it. */
static void launches_are_a_floor(void **state)
{
    (void)state;
    const char *slow = "{\"base\":\"trtllm-0.14\",\"traits\":{\"eager_us\":100}}";
    const char *replayed = "{\"base\":\"trtllm-0.14\",\"traits\":{\"eager_us\":100,\"launched_tokens\":false}}";
    double floor_ms = 32 * 10 * 0.1, held = asked(slow, "llama-2-7b", PROMPT, "decode", "tpot_ms");
    if (fabs(held - floor_ms) > 0.2) fail_msg("%g ms, %g of launches", held, floor_ms);
    assert_true(asked(replayed, "llama-2-7b", PROMPT, "decode", "tpot_ms") < 0.3 * floor_ms);
}

/* Scores of all heads go through memory: a prompt of four times the length takes more than four times as long more. */
static void attention_is_written_out(void **state)
{
    (void)state;
    const char *fused = "{\"base\":\"fastertransformer\",\"traits\":{\"writes_out\":false}}";
    double more[2];
    for (int i = 0; i < 2; i++) {
        const char *rest = i ? "\"gpu\":\"a100_sxm_80gb\",\"dtype\":\"fp16\",\"batch\":16,\"seq\":1024"
                             : "\"gpu\":\"a100_sxm_80gb\",\"dtype\":\"fp16\",\"batch\":16,\"seq\":256";
        more[i] = asked("\"fastertransformer\"", "gpt2-xl", rest, "prefill", "ttft_ms") -
                  asked(fused, "gpt2-xl", rest, "prefill", "ttft_ms");
    }
    if (!(more[0] > 0 && more[1] > 5 * more[0])) fail_msg("%g and %g ms more", more[0], more[1]);
}

/* NCCL's sums of a few tokens take longer than an engine's own; and cards in slots are not taken for the one box that
 * was measured: NVIDIA's L40S have the first token of 2,048 of Llama 2 70B after 709 ms. */
static void sums_are_somebodys(void **state)
{
    (void)state;
#define RANKS "\"gpu\":\"a100_sxm_80gb\",\"dtype\":\"fp16\",\"parallel\":{\"tp\":8},\"batch\":1,\"seq\":128"
    double own = asked("\"trtllm-0.14\"", "llama-2-70b", RANKS, "decode", "tpot_ms");
    double nccl = asked("{\"base\":\"trtllm-0.14\",\"traits\":{\"library_sums\":true}}", "llama-2-70b", RANKS, "decode",
                        "tpot_ms");
    if (nccl < own + 160 * 3e-3) fail_msg("%g ms by kernels of its own, %g by NCCL's", own, nccl);
    double slots = asked("\"trtllm-0.9\"", "llama-2-70b",
                         "\"gpu\":\"l40s\",\"dtype\":\"fp8\",\"parallel\":{\"tp\":8},\"batch\":1,\"seq\":2048",
                         "prefill", "ttft_ms");
    if (fabs(slots / 709 - 1) > 0.25) fail_msg("%g ms", slots);
}

/* Llama 3 70B in 8 bits on one GPU, which the pages' tool has no batch for: the build's own leaves room for a cache. */
static void few_ranks_have_the_batch_of_the_build(void **state)
{
    (void)state;
    const char *alone =
        "\"task\":\"serve\",\"model\":\"llama-3-70b\",\"gpu\":\"h100_sxm\",\"dtype\":\"fp8\",\"isl\":128,"
        "\"osl\":128,\"engine\":\"trtllm-0.14\",\"concurrency\":300,\"requests\":300";
    double running = figure(alone, "running_max");
    if (running < 50 || running > 256) fail_msg("%g sequences at once", running);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_walk_where_no_kernel_is_for_them),
        cmocka_unit_test(prompts_have_small_kernels),
        cmocka_unit_test(attended_is_narrowed),
        cmocka_unit_test(launches_are_a_floor),
        cmocka_unit_test(attention_is_written_out),
        cmocka_unit_test(sums_are_somebodys),
        cmocka_unit_test(few_ranks_have_the_batch_of_the_build),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
