/* `"task": "serve"` from outside: what is answered and what must grow with what; refusals are in serving_refusals.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "failing_alloc.h"
#include "serving_ask.h"

static void every_answer_is_whole(void **state)
{
    (void)state;
    static const char *const times[] = {"ttft", "tpot", "itl", "e2e"};
    static const char *const engines[] = {"vllm", "sglang", "trtllm"};
    for (size_t e = 0; e < 3; e++) {
        char keys[160], key[32];
        snprintf(keys, sizeof keys, ",\"engine\":\"%s\",\"concurrency\":16,\"requests\":160,\"length_range\":[0.8,1]",
                 engines[e]);
        json_t *a = ask(keys);
        for (size_t i = 0; i < 4; i++) {
            static const char *const suffixes[] = {"_low_ms", "_ms",     "_high_ms", "_ms_p50",
                                                   "_ms_p90", "_ms_p95", "_ms_p99"};
            double at[7];
            for (size_t k = 0; k < 7; k++) {
                snprintf(key, sizeof key, "%s%s", times[i], suffixes[k]);
                at[k] = json_number_value(json_object_get(a, key));
                if (!(at[k] > 0)) fail_msg("%s of %s is %g", key, engines[e], at[k]);
            }
            assert_true(at[0] < at[1] && at[1] < at[2]);
            assert_true(at[3] <= at[4] && at[4] <= at[5] && at[5] <= at[6]);
        }
        assert_true(json_number_value(json_object_get(a, "requests")) == 160);
        assert_string_equal(json_string_value(json_object_get(a, "engine")), engines[e]);
        assert_true(json_is_true(json_object_get(a, "stable")));
        json_decref(a);
    }
}

/* Where a request names no format a checkpoint is served as it is stored, and what the GPU cannot compute in is
 * widened. */
static void checkpoints_are_served_as_they_are_stored(void **state)
{
    (void)state;
#define OF(model, gpu, more) \
    "\"task\":\"serve\",\"model\":\"" model "\",\"gpu\":\"" gpu "\",\"concurrency\":2,\"requests\":8" more
    double fp8 = figure(OF("Qwen/Qwen3-8B-FP8", "h100_sxm", ""), "tpot_ms");
    assert_true(fp8 == figure(OF("Qwen/Qwen3-8B-FP8", "h100_sxm", ",\"dtype\":\"fp8\""), "tpot_ms"));
    double wide = figure(OF("Qwen/Qwen3-8B-FP8", "h100_sxm", ",\"dtype\":\"bf16\""), "tpot_ms");
    double four = figure(OF("Qwen/Qwen3-8B-AWQ", "h100_sxm", ""), "tpot_ms");
    assert_true(four < 0.8 * fp8 && fp8 < 0.8 * wide);
    assert_true(wide == figure(OF("Qwen/Qwen3-8B", "h100_sxm", ""), "tpot_ms"));
    assert_true(figure(OF("Qwen/Qwen3-8B-FP8", "a100_sxm_80gb", ""), "tpot_ms") <
                0.8 * figure(OF("Qwen/Qwen3-8B", "a100_sxm_80gb", ""), "tpot_ms"));
    /* In 16 bits neither of these fits on eight. */
    static const char *const large[] = {OF("deepseek-ai/DeepSeek-V3", "h200_sxm", ",\"parallel\":{\"tp\":8}"),
                                        OF("moonshotai/Kimi-K2.5", "h200_sxm", ",\"parallel\":{\"tp\":8}"),
                                        OF("nvidia/GLM-5.1-NVFP4", "h200_sxm", ",\"parallel\":{\"tp\":8}")};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) assert_true(figure(large[i], "kv.capacity_tokens") > 1e5);
    assert_true(figure(OF("openai/gpt-oss-120b", "h100_sxm", ""), "tpot_ms") ==
                figure(OF("openai/gpt-oss-120b", "h100_sxm", ",\"dtype\":\"fp4\""), "tpot_ms"));
#undef OF
}

static void more_load_takes_longer(void **state)
{
    (void)state;
    double last = 0, tokens = 0;
    for (int clients = 1; clients <= 256; clients *= 4) {
        char keys[96];
        snprintf(keys, sizeof keys, ",\"concurrency\":%d,\"requests\":%d,\"length_range\":[0.8,1]", clients,
                 10 * clients);
        double tpot = figure(keys, "tpot_ms"), rate = figure(keys, "tokens_per_s_per_gpu");
        assert_true(tpot > last && rate > tokens);
        last = tpot;
        tokens = rate;
    }
    assert_true(figure(",\"concurrency\":8,\"gpu_memory_utilization\":0.5", "kv.capacity_tokens") <
                figure(",\"concurrency\":8", "kv.capacity_tokens"));
    assert_true(figure(",\"concurrency\":8,\"kv_dtype\":\"fp8\"", "kv.capacity_tokens") >
                1.9 * figure(",\"concurrency\":8", "kv.capacity_tokens"));
    assert_true(figure(",\"concurrency\":8,\"parallel\":{\"tp\":2}", "tpot_ms") <
                figure(",\"concurrency\":8", "tpot_ms"));
    assert_true(figure(",\"concurrency\":8,\"prefix_hit\":0.9,\"isl\":8000", "ttft_ms") <
                figure(",\"concurrency\":8,\"isl\":8000", "ttft_ms"));
    assert_true(figure(",\"concurrency\":8,\"speculative\":{\"tokens\":3,\"accepted\":2.3}", "tpot_ms") <
                0.7 * figure(",\"concurrency\":8", "tpot_ms"));
}

/* Drafts cost something and save more; who makes them takes room from the cache; none kept is slower than none made. */
static void drafts_cost_and_save(void **state)
{
    (void)state;
    double plain = figure(",\"concurrency\":8", "tpot_ms"), room = figure(",\"concurrency\":8", "kv.capacity_tokens");
    double given = figure(",\"concurrency\":8,\"speculative\":{\"tokens\":3,\"accepted\":2.44}", "tpot_ms");
    double own = figure(",\"concurrency\":8,\"mtp\":3,\"acceptance\":0.6667", "tpot_ms");
    double other = figure(",\"concurrency\":8,\"draft\":\"llama-3.2-1b\",\"acceptance\":0.6667", "tpot_ms");
    if (!(given < own && own < other && other < plain)) fail_msg("%g %g %g %g", given, own, other, plain);
    assert_true(figure(",\"concurrency\":8,\"mtp\":1,\"acceptance\":0", "tpot_ms") > plain);
    assert_true(figure(",\"concurrency\":8,\"mtp\":2,\"acceptance\":1", "steps.tokens_each") == 3);
    assert_true(figure(",\"concurrency\":8,\"mtp\":2,\"acceptance\":0.5", "steps.tokens_each") == 1.75);
    assert_true(figure(",\"concurrency\":8,\"draft\":\"llama-3.2-1b\"", "kv.capacity_tokens") < 0.9 * room);
    assert_true(figure(",\"concurrency\":8,\"mtp\":1", "kv.capacity_tokens") < room);
    assert_true(figure(",\"concurrency\":8,\"draft\":\"llama-3.2-1b\"", "ttft_ms") >
                figure(",\"concurrency\":8", "ttft_ms"));
}

/* Adapters take time and room: 41.9 million parameters of rank 16 for Llama 3.1 8B, as peft counts all linear layers.
 */
static void adapters_take_time_and_room(void **state)
{
    (void)state;
    double plain = figure(",\"concurrency\":32", "tpot_ms"),
           one = figure(",\"concurrency\":32,\"adapters\":1", "tpot_ms");
    double many = figure(",\"concurrency\":32,\"adapters\":32", "tpot_ms");
    double wide = figure(",\"concurrency\":32,\"adapters\":32,\"adapter_rank\":128", "tpot_ms");
    if (!(plain < one && one < many && many < wide)) fail_msg("%g %g %g %g", plain, one, many, wide);
    double taken = figure(",\"concurrency\":32", "kv.capacity_tokens") -
                   figure(",\"concurrency\":32,\"adapters\":100", "kv.capacity_tokens");
    double bytes = taken * 131072, expected = 100 * 2 * 41.943e6;
    if (fabs(bytes / expected - 1) > 0.01) fail_msg("%g bytes of adapters, not %g", bytes, expected);
    /* 32 sequences of 64 adapters have 25 different ones, of 8 all: each is read once a step, in kernels
     * that reach no more than the bandwidth; what does not grow with them is the same */
    double wake = 64 * (1 - pow(1 - 1.0 / 64, 32)) - 8 * (1 - pow(1 - 1.0 / 8, 32));
    double read = wake * 8 * 2 * 41.943e6 / 3.35e9, more = figure(",\"concurrency\":32,\"isl\":64,\"adapters\":64,"
                                                                  "\"adapter_rank\":128",
                                                                  "steps.decode_ms") -
                                                           figure(",\"concurrency\":32,\"isl\":64,\"adapters\":8,"
                                                                  "\"adapter_rank\":128",
                                                                  "steps.decode_ms");
    if (!(more > 0.9 * read && more < 1.6 * read)) fail_msg("%g ms more, %g of them for reading", more, read);
}

/* Ranks that share sequences make long prompts shorter and hold more of them; short ones gain nothing to speak of. */
static void ranks_share_sequences(void **state)
{
    (void)state;
    double alone = figure(",\"concurrency\":1,\"isl\":100000", "ttft_ms");
    double shared = figure(",\"concurrency\":1,\"isl\":100000,\"parallel\":{\"cp\":4}", "ttft_ms");
    if (!(shared < 0.4 * alone && shared > 0.25 * alone)) fail_msg("%g alone, %g shared", alone, shared);
    double room = figure(",\"concurrency\":1,\"parallel\":{\"cp\":4}", "kv.capacity_tokens");
    assert_true(fabs(room / figure(",\"concurrency\":1", "kv.capacity_tokens") - 4) < 0.01);
    assert_true(figure(",\"concurrency\":1,\"parallel\":{\"cp\":4}", "gpus") == 4);
    assert_true(figure(",\"concurrency\":1,\"isl\":64,\"parallel\":{\"cp\":4}", "tpot_ms") >
                0.95 * figure(",\"concurrency\":1,\"isl\":64", "tpot_ms"));
    /* and each reads a fourth of the cache: 100,000 tokens of 128 KiB are 13.1 GB, 3.9 ms at the bandwidth */
#define STEP(keys) figure(",\"concurrency\":1,\"osl\":4," keys, "steps.decode_ms")
    double whole = STEP("\"isl\":100000") - STEP("\"isl\":64");
    double part = STEP("\"isl\":100000,\"parallel\":{\"cp\":4}") - STEP("\"isl\":64,\"parallel\":{\"cp\":4}");
    if (!(whole > 3.9 && whole < 7)) fail_msg("%g ms for the cache", whole);
    if (!(part > 0.24 * whole && part < 0.4 * whole)) fail_msg("%g ms of %g for a fourth of it", part, whole);
#define SPLIT(cp) \
    ",\"concurrency\":1,\"isl\":100000,\"disaggregated\":{\"prefill\":{\"cp\":" #cp "},\"decode\":{\"tp\":2}}"
    assert_true(figure(SPLIT(4), "gpus") == 6); /* engines that prefill may share prompts, those that decode not */
    assert_true(figure(SPLIT(4), "ttft_ms") < 0.4 * figure(SPLIT(1), "ttft_ms"));
    assert_true(figure(SPLIT(4), "tpot_ms") == figure(SPLIT(1), "tpot_ms"));
}

/* A GPU draws more than one that waits and no more than it holds; what a token takes falls with the load. */
static void tokens_take_energy(void **state)
{
    (void)state;
    double alone = figure(",\"concurrency\":1", "energy.joules_per_token");
    double many = figure(",\"concurrency\":64", "energy.joules_per_token");
    double watts = figure(",\"concurrency\":64", "energy.watts_per_gpu");
    if (!(many > 0 && many < alone / 5)) fail_msg("%g J alone, %g J with many", alone, many);
    if (!(watts > 150 && watts <= 700)) fail_msg("%g W", watts);
    double kwh = figure(",\"concurrency\":64", "energy.kwh_per_million_tokens");
    assert_true(fabs(kwh * 3.6 - many) < 1e-4 * many);
    assert_true(figure(",\"concurrency\":64,\"replicas\":2", "energy.joules_per_token") > many);
    assert_true(figure(",\"concurrency\":64,\"parallel\":{\"tp\":4}", "energy.joules_per_token") > many);
}

/* One client by itself waits for nobody. */
static void one_client_waits_for_nobody(void **state)
{
    (void)state;
    json_t *a = ask(",\"concurrency\":1,\"requests\":5");
    double decode = json_number_value(json_object_get(json_object_get(a, "steps"), "decode_ms"));
    double tpot = json_number_value(json_object_get(a, "tpot_ms"));
    assert_true(json_number_value(json_object_get(a, "queue_ms")) == 0);
    assert_true(tpot > 0.99 * decode && tpot < 1.01 * decode);
    json_decref(a);
}

static void too_much_is_said_to_be(void **state)
{
    (void)state;
    json_t *a = ask(",\"rate\":10000,\"requests\":3000");
    assert_true(json_is_false(json_object_get(a, "stable")));
    assert_null(json_object_get(a, "ttft_ms"));
    assert_null(json_object_get(a, "e2e_ms"));
    double most = json_number_value(json_object_get(a, "requests_per_s"));
    json_decref(a);
    char keys[64];
    snprintf(keys, sizeof keys, ",\"rate\":%g,\"requests\":3000", most / 3);
    a = ask(keys);
    assert_true(json_is_true(json_object_get(a, "stable")));
    assert_true(json_number_value(json_object_get(a, "ttft_ms")) > 0);
    json_decref(a);
}

static void the_highest_rate_is_found(void **state)
{
    (void)state;
    json_t *a = ask(",\"find\":\"rate\",\"slo\":{\"ttft_ms\":500,\"tpot_ms\":15}");
    double rate = json_number_value(json_object_get(a, "rate"));
    assert_true(json_is_true(json_object_get(a, "slo_met")));
    assert_true(rate > 1);
    json_decref(a);
    char keys[96];
    snprintf(keys, sizeof keys, ",\"rate\":%g,\"slo\":\"ttft=500ms,tpot=15ms\"", 1.2 * rate);
    a = ask(keys);
    assert_true(json_is_false(json_object_get(a, "slo_met")));
    json_decref(a);
    a = ask(",\"find\":\"concurrency\",\"slo\":{\"ttft_ms\":0.001}");
    assert_true(json_number_value(json_object_get(a, "concurrency")) == 0);
    assert_true(json_is_false(json_object_get(a, "slo_met")));
    json_decref(a);
}

/* A thousand requests of two fast engines have all come before the first is answered: 236 requests/s were found where
 * long runs keep 113. */
static void a_rate_that_is_found_lasts(void **state)
{
    (void)state;
    static const char engines[] = "\"task\":\"serve\",\"model\":\"llama-3.1-8b\",\"gpu\":\"b200_sxm\",\"replicas\":2,"
                                  "\"routing\":\"least_loaded\",\"isl\":512,\"osl\":256,"
                                  "\"slo\":{\"ttft_ms\":500,\"tpot_ms\":30}";
    char keys[512];
    snprintf(keys, sizeof keys, "%s,\"find\":\"rate\"", engines);
    double rate = figure(keys, "rate");
    snprintf(keys, sizeof keys, "%s,\"rate\":%g,\"requests\":20000", engines, 0.95 * rate);
    json_t *a = ask(keys);
    assert_true(json_is_true(json_object_get(a, "slo_met")));
    json_decref(a);
    /* the same without a search, and as many as somebody asks for */
    snprintf(keys, sizeof keys, "%s,\"rate\":%g", engines, 0.95 * rate);
    assert_true(figure(keys, "seconds") > 3 * figure(keys, "e2e_ms") / 1e3);
    snprintf(keys, sizeof keys, "%s,\"rate\":%g,\"requests\":300", engines, rate);
    assert_true(figure(keys, "requests") == 300);
}

static void advice_is_what_the_request_would_be(void **state)
{
    (void)state;
    json_t *a = ask(",\"concurrency\":64,\"advice\":true"), *each;
    size_t i, found = 0;
    json_array_foreach (json_object_get(a, "advice"), i, each) {
        if (strcmp(json_string_value(json_object_get(each, "key")), "tp") != 0) continue;
        double told = json_number_value(json_object_get(each, "tpot_ms"));
        double made = figure(",\"concurrency\":64,\"parallel\":{\"tp\":2}", "tpot_ms");
        assert_true(told > 0.999 * made && told < 1.001 * made);
        assert_true(json_number_value(json_object_get(each, "gpus")) == 2);
        double saved = json_number_value(json_object_get(each, "tpot_saved_ms"));
        double now = json_number_value(json_object_get(a, "tpot_ms"));
        assert_true(saved > 0 && fabs(now - told - saved) < 1e-4 * now);
        double each_usd = json_number_value(json_object_get(each, "usd_per_million_tokens"));
        double usd = json_number_value(json_object_get(a, "usd_per_million_tokens"));
        double rate = json_number_value(json_object_get(each, "tokens_per_s_per_gpu"));
        double rate_now = json_number_value(json_object_get(a, "tokens_per_s_per_gpu"));
        assert_true(fabs(each_usd * rate / (usd * rate_now) - 1) < 1e-4); /* the same hours' price */
        found++;
    }
    assert_int_equal(found, 1);
    json_decref(a);
    a = ask(",\"concurrency\":64");
    assert_null(json_object_get(a, "advice"));
    json_decref(a);
}

static ft_status attempt(void *request)
{
    char *text = ft_answer(ft, request);
    ft_status status = !text || strstr(text, "out of memory") ? FT_E_MEMORY : FT_OK;
    if (text && status == FT_OK && !strstr(text, "\"ok\":true")) fail_msg("%s", text);
    free(text);
    return status;
}

/* Nobody said it: the load is the one that was found. */
static void advice_is_given_at_the_load_that_was_found(void **state)
{
    (void)state;
    static const char *const finds[] = {"rate", "concurrency"};
    static const char *const slos[] = {"{\"ttft_ms\":500,\"tpot_ms\":15}", "{\"ttft_ms\":0.001}"};
    for (size_t i = 0; i < 4; i++) {
        char keys[160];
        snprintf(keys, sizeof keys, ",\"requests\":40,\"advice\":true,\"find\":\"%s\",\"slo\":%s", finds[i % 2],
                 slos[i / 2]);
        json_t *a = ask(keys);
        assert_true(json_is_array(json_object_get(a, "advice")));
        json_decref(a);
    }
}

/* More clients than there are requests are no other load. */
static void no_more_clients_are_found_than_requests(void **state)
{
    (void)state;
    json_t *a = ask(",\"requests\":40,\"find\":\"concurrency\",\"slo\":{\"e2e_ms\":1e6}");
    assert_true(json_number_value(json_object_get(a, "concurrency")) == 40);
    json_decref(a);
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    static char request[] = "{" MODEL ",\"concurrency\":4,\"requests\":8,\"engine\":{\"base\":\"vllm\"}}";
    assert_true(failing_alloc_sweep(attempt, request) > 10);
}

/* Requests that come faster than they are served, however fast and whoever decodes them, wait without end. */
static void what_is_handed_over_does_not_end_the_queue(void **state)
{
    (void)state;
    static const char *rates[] = {"300", "5000", "1e6"};
    for (size_t i = 0; i < 3; i++)
        for (int apart = 0; apart < 2; apart++) {
            char keys[256];
            snprintf(keys, sizeof keys, ",\"isl\":1024,\"osl\":64,\"rate\":%s%s", rates[i],
                     apart ? ",\"disaggregated\":{\"prefill\":{\"workers\":1},\"decode\":{\"workers\":2}}" : "");
            json_t *answer = ask(keys);
            if (!json_is_false(json_object_get(answer, "stable"))) fail_msg("%s: stable", keys);
            json_decref(answer);
        }
}

/* One client, one prompt: what serve says is what infer says of the engine, after the front end. */
static void infer_and_serve_agree(void **state)
{
    (void)state;
    static const char *engines[] = {"vllm", "sglang", "trtllm"};
    for (size_t i = 0; i < 3; i++) {
        char keys[256];
        snprintf(keys, sizeof keys, ",\"engine\":\"%s\",\"isl\":2048,\"osl\":64,\"concurrency\":1,\"prompts\":0",
                 engines[i]);
        double ttft = figure(keys, "ttft_ms") - figure(keys, "frontend_ms"), tpot = figure(keys, "tpot_ms");
        snprintf(keys, sizeof keys,
                 "\"task\":\"infer\",\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\",\"engine\":\"%s\",\"batch\":[1],"
                 "\"seq\":[2048]",
                 engines[i]);
        double prefill = of_list(keys, "prefill", "ttft_ms"), decode = of_list(keys, "decode", "tpot_ms");
        if (ttft < 0.98 * prefill || ttft > 1.02 * prefill)
            fail_msg("%s: TTFT %g, %g of infer", engines[i], ttft, prefill);
        if (tpot < 0.98 * decode || tpot > 1.03 * decode) fail_msg("%s: TPOT %g, %g", engines[i], tpot, decode);
    }
}

/* Of a server that nobody described, a request says neither host nor client: half a token's logarithm more. Who says the
 * spread of an engine of his own is taken at his word. */
static void strangers_have_wider_intervals(void **state)
{
    (void)state;
#define LOAD_OF(engine)                                                                                     \
    "\"task\":\"serve\",\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\",\"concurrency\":8,\"requests\":80," \
    "\"engine\":" engine
    const char *named = LOAD_OF("\"vllm\""),
               *own = LOAD_OF("{\"base\":\"vllm\",\"traits\":{\"tpot_spread\":0.24,\"ttft_spread\":0.54}}");
    double token = log(figure(named, "tpot_high_ms") / figure(named, "tpot_low_ms")) / 2;
    double known = log(figure(own, "tpot_high_ms") / figure(own, "tpot_low_ms")) / 2;
    double first = log(figure(named, "ttft_high_ms") / figure(named, "ttft_low_ms")) / 2;
    if (fabs(token * token - known * known - 0.25) > 0.01) fail_msg("%g, known %g", token, known);
    assert_true(first > 0.9 && first < 1.1 && known < 0.35);
    assert_true(figure(named, "tpot_ms") == figure(own, "tpot_ms"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_is_whole),
        cmocka_unit_test(drafts_cost_and_save),
        cmocka_unit_test(tokens_take_energy),
        cmocka_unit_test(adapters_take_time_and_room),
        cmocka_unit_test(ranks_share_sequences),
        cmocka_unit_test(checkpoints_are_served_as_they_are_stored),
        cmocka_unit_test(more_load_takes_longer),
        cmocka_unit_test(one_client_waits_for_nobody),
        cmocka_unit_test(too_much_is_said_to_be),
        cmocka_unit_test(the_highest_rate_is_found),
        cmocka_unit_test(a_rate_that_is_found_lasts),
        cmocka_unit_test(advice_is_what_the_request_would_be),
        cmocka_unit_test(advice_is_given_at_the_load_that_was_found),
        cmocka_unit_test(no_more_clients_are_found_than_requests),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
        cmocka_unit_test(what_is_handed_over_does_not_end_the_queue),
        cmocka_unit_test(infer_and_serve_agree),
        cmocka_unit_test(strangers_have_wider_intervals),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
