/* `"task": "serve"`: what is refused, and where the request is told to be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "foretell.h"

static ft_context *ft;

static int open_context(void **state)
{
    (void)state;
    return ft_open(&ft, NULL, NULL) == FT_OK ? 0 : -1;
}

static int close_context(void **state)
{
    (void)state;
    ft_close(ft);
    return 0;
}

#define MODEL "\"task\":\"serve\",\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\""

static void bad_requests_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *where, *says;
    } cases[] = {
        {"", "concurrency", "exactly one of"},
        {",\"concurrency\":1,\"rate\":1", "concurrency", "got several"},
        {",\"rate\":0", "rate", "must be a number"},
        {",\"concurency\":4", "concurency", "did you mean \\\"concurrency\\\"?"},
        {",\"concurrency\":1,\"requests\":10000001", "requests", "at most 10000000 requests, got 10000001"},
        {",\"concurrency\":1000001", "concurrency", "at most 10000000 requests, got 10000010"},
        {",\"concurrency\":1,\"engine\":\"vlm\"", "engine", "did you mean \\\"vllm\\\"?"},
        {",\"concurrency\":1,\"engine\":{\"base\":\"vllm\",\"traits\":{\"step_mss\":1}}", "engine.traits.step_mss",
         "did you mean \\\"step_ms\\\"?"},
        {",\"concurrency\":1,\"engine\":{\"base\":\"vllm\",\"traits\":{\"order\":\"both\"}}", "engine.traits.order",
         "\\\"decode_first\\\""},
        {",\"concurrency\":1,\"length_range\":[1,0.5]", "length_range", "the smaller first"},
        {",\"concurrency\":1,\"length_sigma\":1,\"length_range\":[0.5,0.9]", "length_range", "cannot bound"},
        {",\"concurrency\":1,\"length_range\":[0,0]", "length_range", "the smaller first"},
        {",\"concurrency\":1,\"length_range\":[-0.1,1]", "length_range", "the smaller first"},
        {",\"concurrency\":1,\"isl\":1e7,\"length_range\":[1,101]", "length_range", "makes \\\"isl\\\" up to 1.01e+09"},
        {",\"concurrency\":1,\"osl\":1e9,\"length_range\":[1,1.5]", "length_range", "makes \\\"osl\\\" up to 1.5e+09"},
        {",\"concurrency\":1,\"parallel\":{\"tp\":2,\"ep\":3}", "parallel.ep", "must divide tp x dp"},
        {",\"concurrency\":1,\"parallel\":{\"ep\":2,\"tp\":2}", "parallel.ep", "does not divide the model's 0 experts"},
        {",\"concurrency\":1,\"parallel\":{\"tp\":64}", "parallel.tp", "more than the model's 32 heads"},
        {",\"concurrency\":1,\"isl\":100000000", "isl", "does not fit the cache"},
        {",\"find\":\"rate\"", "slo", "the highest load that meets what"},
        {",\"concurrency\":1,\"slo\":\"ttft=fast\"", "slo", "is not an objective"},
        {",\"concurrency\":1,\"mtp\":1,\"draft\":\"gpt2\"", "mtp", "got several"},
        {",\"concurrency\":1,\"parallel\":{\"cp\":2,\"dp\":2}", "parallel.cp", "have their own"},
        {",\"concurrency\":1,\"adapter_rank\":0", "adapter_rank", "from 1 to 4096"},
        {",\"concurrency\":1,\"acceptance\":0.5", "acceptance", "needs drafts"},
        {",\"concurrency\":1,\"draft_tokens\":2", "draft_tokens", "the model that makes them"},
        {",\"concurrency\":1,\"draft\":\"lama-3.2-1b\"", "draft", "unknown model"},
        {",\"concurrency\":1,\"mtp\":17", "mtp", "from 0 to 16"},
        {",\"concurrency\":1,\"speculative\":{\"tokens\":1,\"accepted\":3}", "speculative.accepted", "from 1 to 2"},
        {",\"trace\":\"/nowhere.csv\"", "/nowhere.csv", "cannot open: No such file or directory"},
        {",\"concurrency\":1,\"disaggregated\":{\"prefill\":{\"tp\":1}}", "disaggregated.decode", "is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char request[1024], where[96];
        snprintf(request, sizeof request, "{" MODEL "%s}", cases[i].keys);
        snprintf(where, sizeof where, "\"where\":\"%s\"", cases[i].where);
        char *text = ft_answer(ft, request);
        if (!strstr(text, "\"ok\":false") || !strstr(text, where) || !strstr(text, cases[i].says))
            fail_msg("%s: %s", request, text);
        free(text);
    }
}

static void weights_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    char *text = ft_answer(ft,
                           "{\"task\":\"serve\",\"model\":\"llama-3.1-70b\",\"gpu\":\"h100_sxm\",\"concurrency\":1}");
    assert_non_null(strstr(text, "there is no room for a cache; more \\\"tp\\\" or a narrower"));
    free(text);
    text = ft_answer(ft, "{\"task\":\"serve\",\"model\":\"bert-base-uncased\",\"gpu\":\"h100_sxm\",\"concurrency\":1}");
    assert_non_null(strstr(text, "generates no tokens"));
    free(text);
}

/* Lengths are counted in 31 bits: a cache may hold more, of a model that keeps next to nothing. */
static void sessions_that_outgrow_the_count_are_refused(void **state)
{
    (void)state;
    char *text = ft_answer(
        ft, "{\"task\":\"serve\",\"gpu\":\"b200_sxm\",\"concurrency\":1,\"requests\":3,\"turns\":3,\"isl\":1e9,"
            "\"osl\":1,\"model\":{\"model_type\":\"llama\",\"hidden_size\":8,\"num_hidden_layers\":1,"
            "\"num_attention_heads\":1,\"intermediate_size\":8,\"vocab_size\":100}}");
    if (!strstr(text, "\"where\":\"turns\"") || !strstr(text, "prompt of 3000000002 tokens")) fail_msg("%s", text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_requests_say_where),
        cmocka_unit_test(weights_that_do_not_fit_are_refused),
        cmocka_unit_test(sessions_that_outgrow_the_count_are_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
