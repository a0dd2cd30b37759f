/* What engines are started with, whose kernels they run, layers that keep a state, and a client alone beside `infer`.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "serving_ask.h"

#define DEEPSEEK                                                                                           \
    "\"task\":\"serve\",\"model\":\"deepseek-ai/DeepSeek-R1\",\"gpu\":\"b200_sxm\",\"engine\":\"trtllm\"," \
    "\"dtype\":\"fp4\",\"parallel\":{\"tp\":8,\"ep\":8},\"isl\":1000,\"osl\":100,\"length_range\":[0.9,1]"

/* What a public recipe starts the engine with holds until a request says otherwise: drafts, and a budget of one prompt
 * beside what the clients decode. */
static void recipes_make_drafts(void **state)
{
    (void)state;
    assert_true(figure(DEEPSEEK ",\"concurrency\":32", "steps.drafts") == 3);
    assert_true(figure(DEEPSEEK ",\"concurrency\":32,\"mtp\":1", "steps.drafts") == 1);
    json_t *none = ask(DEEPSEEK ",\"concurrency\":32,\"mtp\":0");
    json_t *plain = ask(DEEPSEEK ",\"rate\":4,\"settings\":\"defaults\"");
    assert_null(json_object_get(json_object_get(none, "steps"), "drafts"));
    assert_null(json_object_get(json_object_get(plain, "steps"), "drafts"));
    json_decref(none);
    json_decref(plain);
    double own = figure(DEEPSEEK ",\"concurrency\":32", "ttft_ms");
    double same = figure(DEEPSEEK ",\"concurrency\":32,\"max_num_batched_tokens\":1216", "ttft_ms");
    double wide = figure(DEEPSEEK ",\"concurrency\":32,\"max_num_batched_tokens\":8192", "ttft_ms");
    if (!(own == same && wide < 0.8 * own)) fail_msg("%g %g %g", own, same, wide); /* 1000 + 4 * 32 + 64, in 64s */
}

#define ATTENTION                                                                                           \
    "\"task\":\"kernel\",\"op\":\"attention\",\"dtype\":\"bf16\",\"batch\":16,\"heads\":32,\"kv_heads\":8," \
    "\"head_dim\":128,\"q_len\":1,\"kv_len\":4096"

/* SGLang's attention was measured on A100 alone, where it is its own; on other GPUs it runs the libraries that vLLM was
 * measured with, and so do siblings of these. */
static void engines_share_attention(void **state)
{
    (void)state;
    static const char *const shared[] = {"h100_sxm", "h200_sxm", "b200_sxm", "gb200", "l40s"};
    char vllm[512], sglang[512];
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        snprintf(vllm, sizeof vllm, ATTENTION ",\"gpu\":\"%s\",\"engine\":\"vllm\"", shared[i]);
        snprintf(sglang, sizeof sglang, ATTENTION ",\"gpu\":\"%s\",\"engine\":\"sglang\"", shared[i]);
        assert_true(figure(vllm, "ms") == figure(sglang, "ms"));
    }
    assert_true(figure(ATTENTION ",\"gpu\":\"a100_sxm_80gb\",\"engine\":\"sglang\"", "ms") >
                1.3 * figure(ATTENTION ",\"gpu\":\"a100_sxm_80gb\",\"engine\":\"vllm\"", "ms"));
}

/* Layers with a state cost a step the same at every length, more with every sequence, and take room from the cache. The
 * update of 48 layers of Qwen3-Next-80B moves 2 x 4 x 32 x 128 x 128 bytes of a sequence in 36 of them. */
static void states_are_read_and_written(void **state)
{
    (void)state;
#define HYBRID \
    "\"task\":\"serve\",\"model\":\"Qwen/Qwen3-Next-80B-A3B-Instruct\",\"gpu\":\"h200_sxm\",\"parallel\":{\"tp\":2}"
    double few = figure(HYBRID ",\"concurrency\":256,\"isl\":64,\"osl\":64", "steps.decode_ms");
    json_t *engine = ask(HYBRID ",\"concurrency\":256,\"isl\":64,\"osl\":64,\"prompts\":0,"
                                "\"engine\":{\"base\":\"vllm\",\"traits\":{\"scan_bytes\":0}}");
    double mixed = json_number_value(json_object_get(json_object_get(engine, "steps"), "mixed_ms"));
    assert_true(json_number_value(json_object_get(json_object_get(engine, "steps"), "decode_ms")) == few);
    assert_true(figure(HYBRID ",\"concurrency\":256,\"isl\":64,\"osl\":64", "steps.mixed_ms") > mixed);
    json_decref(engine);
    double one = figure(HYBRID ",\"concurrency\":1,\"isl\":64,\"osl\":64", "steps.decode_ms");
    double moved = 36.0 * 2 * 4 * 32 * 128 * 128 / 2 * 200 / (0.8 * 4.8e9); /* 200 sequences at least, on two ranks */
    if (few - one < moved) fail_msg("%g and %g ms, of which states take %g", one, few, moved);
}

/* Every kind of state: what a rank holds of a model, of the rows that it sampled before it sized its cache (30 bytes of
 * every word, 1,024 sequences) and its cache is all that the engine has, so that models on one GPU differ by their
 * parameters and words; a sequence takes its states' room, and its steps move them. Jamba has 28 layers of
 * Mamba 1 with 8,192 channels of 16, LFM2 ten convolutions of 2,048 channels over three tokens, RecurrentGemma 26
 * recurrences of 4,096 channels over four; a token takes so many bytes of their attention layers' cache. */
static void states_of_every_kind_take_their_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double parameters, words, token, kept;
    } models[] = {{"llama-3.1-8b", 8.030e9, 128256, 131072, 0},
                  {"jamba-1.5-mini", 51.57e9, 65536, 4 * 4096, 28 * (4.0 * 8192 * 16 + 2 * 3 * 8192)},
                  {"lfm2-1.2b", 1.170e9, 65536, 6 * 2048, 10 * (2.0 * 2 * 2048)},
                  {"recurrentgemma-9b", 8.58e9, 256000, 12 * 1024, 26 * (4.0 * 4096 + 2 * 3 * 4096)}};
    double all = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char one[512], many[512];
        snprintf(one, sizeof one,
                 "\"task\":\"serve\",\"model\":\"%s\",\"gpu\":\"h200_sxm\",\"isl\":64,\"osl\":8,\"requests\":256,"
                 "\"concurrency\":1",
                 models[i].model);
        snprintf(many, sizeof many,
                 "\"task\":\"serve\",\"model\":\"%s\",\"gpu\":\"h200_sxm\",\"isl\":64,\"osl\":64,\"concurrency\":256",
                 models[i].model);
        double held = 2 * models[i].parameters + models[i].token * figure(one, "kv.capacity_tokens");
        held += 30.0 * 1024 * models[i].words;
        if (i == 0) all = held;
        if (fabs(held / all - 1) > 0.004) fail_msg("%s: %g bytes, not %g", models[i].model, held, all);
        double room = figure(one, "kv.peak_tokens") - 64 - 8 - 15, expected = ceil(models[i].kept / models[i].token);
        if (fabs(room - expected) > 2) fail_msg("%s: %g tokens' room, not %g", models[i].model, room, expected);
        double moved = 200 * 2 * models[i].kept / 4.8e9; /* ms, of 200 sequences at least */
        double more = figure(many, "steps.decode_ms") - figure(one, "steps.decode_ms");
        if (more < moved) fail_msg("%s: %g ms more, of which states take %g", models[i].model, more, moved);
    }
}

/* Of long contexts an indexer leaves a query 2,048 keys: its model's steps grow with narrow keys alone. */
static void indexers_pick_keys(void **state)
{
    (void)state;
#define DEEP(model) \
    "\"model\":\"deepseek-ai/DeepSeek-" model "\",\"gpu\":\"b200_sxm\",\"dtype\":\"fp8\",\"parallel\":{\"tp\":8}"
#define STEP(model, n) "\"task\":\"infer\"," DEEP(model) ",\"engine\":\"vllm\",\"batch\":16,\"seq\":" #n
    double dense = of_list(STEP("V3", 65536), "decode", "tpot_ms") - of_list(STEP("V3", 2048), "decode", "tpot_ms");
    double sparse = of_list(STEP("V3.2", 65536), "decode", "tpot_ms") -
                    of_list(STEP("V3.2", 2048), "decode", "tpot_ms");
    if (!(sparse > 0 && sparse < 0.7 * dense)) fail_msg("%g ms dense, %g sparse", dense, sparse);
#define LONG(model, n) "\"task\":\"serve\"," DEEP(model) ",\"concurrency\":1,\"osl\":64,\"isl\":" #n
    /* of a prompt on eight ranks the indexer, whole on each, takes about what it saves */
    double first = figure(LONG("V3.2", 65536), "ttft_ms") / figure(LONG("V3", 65536), "ttft_ms");
    if (!(first > 0.7 && first < 1.4)) fail_msg("%g of the first token's time", first);
    double room = figure(LONG("V3.2", 1024), "kv.capacity_tokens") / figure(LONG("V3", 1024), "kv.capacity_tokens");
    if (!(room > 0.75 && room < 0.9)) fail_msg("%g of the room", room); /* 576 and 132 bytes of fp8 beside 576 */
}

/* Prompts that come again are known: with a client alone all but the first of each; where the load says nothing, a
 * recipe for loads of two numbers may, but not one of a number of requests, which is another client's; and where the
 * engine keeps no prefixes nothing is. */
static void prompts_come_again(void **state)
{
    (void)state;
#define AGAIN ",\"engine\":\"vllm\",\"concurrency\":1,\"requests\":200,\"isl\":3200,\"osl\":8"
    double share = figure(AGAIN ",\"prompts\":4", "kv.hit_share");
    if (!(share > 0.95 && share < 0.98)) fail_msg("%g of the prompts", share); /* 196 of 200, but for their ends */
    assert_true(figure(AGAIN ",\"prompts\":4", "ttft_ms") < 0.5 * figure(AGAIN ",\"prompts\":0", "ttft_ms"));
    double differ = figure(AGAIN ",\"prompts\":0", "ttft_ms");
    assert_true(figure(AGAIN, "ttft_ms") == differ);
#define TWO_NUMBERS ",\"engine\":\"vllm\",\"concurrency\":20,\"isl\":3200,\"osl\":8"
    double drawn = figure(TWO_NUMBERS, "ttft_ms"), apart = figure(TWO_NUMBERS ",\"prompts\":0", "ttft_ms");
    assert_true(drawn == figure(TWO_NUMBERS ",\"prompts\":100", "ttft_ms") && drawn < 0.9 * apart);
    assert_true(figure(TWO_NUMBERS ",\"settings\":\"defaults\"", "ttft_ms") == apart);
    assert_true(figure(",\"concurrency\":1,\"requests\":200,\"isl\":3200,\"osl\":8", "ttft_ms") == differ);
    json_t *none = ask(",\"concurrency\":1,\"requests\":200,\"isl\":3200,\"osl\":8,\"prompts\":4,"
                       "\"engine\":{\"base\":\"vllm\",\"traits\":{\"prefix_cache\":false}}");
    assert_null(json_object_get(json_object_get(none, "kv"), "hit_share"));
    assert_true(json_number_value(json_object_get(none, "ttft_ms")) == differ);
    json_decref(none);
}

/* An engine of 2024 keeps 32 bytes of every token of the vocabulary for each of the 2,048 sequences it was built for;
 * and where windows are not taken notice of, a request of five windows takes five times the room. */
static void what_is_kept_takes_room(void **state)
{
    (void)state;
#define BUILT(version) ",\"concurrency\":1,\"requests\":2,\"engine\":\"" version "\""
    double taken = figure(BUILT("trtllm"), "kv.capacity_tokens") - figure(BUILT("trtllm-0.14"), "kv.capacity_tokens");
    double bytes = taken * 131072, expected = 0.9 * 32 * 2048 * 128256;
    if (fabs(bytes / expected - 1) > 0.01) fail_msg("%g bytes for sampling, not %g", bytes, expected);
#define WINDOWS(flag)                                                                                                  \
    "\"task\":\"serve\",\"model\":\"mistral-7b\",\"gpu\":\"h100_sxm\",\"concurrency\":1,\"requests\":2,\"isl\":20000," \
    "\"osl\":480,\"engine\":{\"base\":\"trtllm\",\"traits\":{\"window_cache\":" flag "}}"
    double room = figure(WINDOWS("true"), "kv.capacity_tokens") / figure(WINDOWS("false"), "kv.capacity_tokens");
    if (fabs(room - 5) > 0.01) fail_msg("%g times the room", room); /* 20,480 tokens, a window of 4,096 */
#define SEQUENCES(n) ",\"concurrency\":1,\"requests\":2,\"engine\":\"vllm\",\"max_num_seqs\":" n
    bytes = 131072 * (figure(SEQUENCES("256"), "kv.capacity_tokens") - figure(SEQUENCES("1024"), "kv.capacity_tokens"));
    expected = 30.0 * 768 * 128256;
    if (fabs(bytes / expected - 1) > 0.01) fail_msg("%g bytes for rows that are sampled, not %g", bytes, expected);
#define SHARE(said) ",\"concurrency\":1,\"requests\":2,\"engine\":\"sglang\"" said
    /* SGLang leaves out 1.125 GiB and 1.5 MiB for each of 8,192 tokens, where the request gives no share */
    bytes = 131072 * (figure(SHARE(",\"gpu_memory_utilization\":1"), "kv.capacity_tokens") -
                      figure(SHARE(""), "kv.capacity_tokens"));
    expected = (1.125 + 12) * 0x1p30;
    if (fabs(bytes / expected - 1) > 0.01) fail_msg("%g bytes left out, not %g", bytes, expected);
    /* a stage of two has half the layers, and the table of words or the head */
    double one = 131072 * figure(SEQUENCES("256"), "kv.capacity_tokens") + 2 * 8.03e9;
    double two = 65536 * figure(SEQUENCES("256") ",\"parallel\":{\"pp\":2}", "kv.capacity_tokens") + 8.03e9;
    if (fabs(two / one - 1) > 0.002) fail_msg("%g bytes of a stage, %g of one GPU", two, one);
}

/* What `infer` says of one prompt and of one token halfway through the answer is what a client alone sees, but for the
 * front end's part of the first token, which stands in the engine's file. */
static void one_client_is_prefill_and_decode_of_infer(void **state)
{
    (void)state;
    static const struct {
        const char *engine;
        double request_ms, prompt_us; /* data/engines */
    } engines[] = {{"vllm", 16, 1.67}, {"sglang", 38, 0}, {"trtllm", 16, 0}};
    for (size_t i = 0; i < 3; i++) {
        char infer[512], later[512], serve[512];
        const char *said = "\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\",\"engine\":";
        snprintf(infer, sizeof infer, "\"task\":\"infer\",%s\"%s\",\"batch\":1,\"seq\":1024", said, engines[i].engine);
        snprintf(later, sizeof later, "\"task\":\"infer\",%s\"%s\",\"batch\":1,\"seq\":1152", said, engines[i].engine);
        snprintf(serve, sizeof serve,
                 "\"task\":\"serve\",%s\"%s\",\"settings\":\"defaults\",\"concurrency\":1,\"requests\":3,\"isl\":1024,"
                 "\"osl\":256",
                 said, engines[i].engine);
        double front = engines[i].request_ms + 1.024 * engines[i].prompt_us;
        double first = of_list(infer, "prefill", "ttft_ms"), token = of_list(later, "decode", "tpot_ms");
        double ttft = figure(serve, "ttft_ms"), tpot = figure(serve, "tpot_ms");
        if (fabs(ttft - front - first) > 0.01 * first + 0.1) fail_msg("%s: %g, infer %g", serve, ttft - front, first);
        if (fabs(tpot - token) > 0.01 * token) fail_msg("%s: %g, infer %g", serve, tpot, token);
    }
}

static double token_of(const char *model, const char *traits, int ranks)
{
    char keys[512];
    snprintf(
        keys, sizeof keys,
        "\"task\":\"infer\",\"model\":\"%s\",\"gpu\":\"h100_sxm\",\"batch\":1,\"seq\":128,\"parallel\":{\"tp\":%d},"
        "\"engine\":{\"base\":\"vllm\",\"traits\":{%s}}",
        model, ranks, traits);
    return of_list(keys, "decode", "tpot_ms");
}

/* A sum that norms what it has added saves a pass of 1.8 us, 1.045 of it in an iteration, and a gap of 0.95, in each of 32
 * layers; norms of queries and keys are passes of those models alone that have them. */
static void norms_are_kernels(void **state)
{
    (void)state;
    const char *apart = "\"fused_sums\":false", *fused = "\"fused_sums\":true";
    double pass = 1.8e-3 * 1.045 + 0.95e-3;
    double saved = token_of("llama-2-7b", apart, 2) - token_of("llama-2-7b", fused, 2);
    if (fabs(saved - 32 * pass) > 2e-3) fail_msg("%g ms", saved);
    assert_true(token_of("llama-2-7b", apart, 1) == token_of("llama-2-7b", fused, 1));
    double more = token_of("qwen3-8b", "\"head_norms\":2", 1) - token_of("qwen3-8b", "\"head_norms\":0", 1);
    if (fabs(more - 36 * 2 * pass) > 2e-3) fail_msg("%g ms", more);
    assert_true(token_of("llama-2-7b", "\"head_norms\":2", 1) == token_of("llama-2-7b", "\"head_norms\":0", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recipes_make_drafts),         cmocka_unit_test(engines_share_attention),
        cmocka_unit_test(states_are_read_and_written), cmocka_unit_test(states_of_every_kind_take_their_bytes),
        cmocka_unit_test(indexers_pick_keys),          cmocka_unit_test(prompts_come_again),
        cmocka_unit_test(what_is_kept_takes_room),     cmocka_unit_test(one_client_is_prefill_and_decode_of_infer),
        cmocka_unit_test(norms_are_kernels),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
