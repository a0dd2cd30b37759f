/* Requests that could start and do not yet: waits of the engines, ranks that go together, caches that go to the host;
 * on an engine whose iterations take a millisecond. And recipes: which settings hold for which model. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "serving/simulate.h"
#include "simple_engine.h"

static ft_policy usual(void)
{
    return (ft_policy){
        .order = FT_ORDER_MIXED, .budget = 8192, .max_sequences = 256, .capacity = 1e9, .block = 16, .accepted = 1};
}

typedef struct seen {
    double requests, unordered, last_start, most_prompts;
} seen;

static void on_request(void *user, const ft_served_request *r)
{
    seen *s = user;
    (void)r;
    s->requests++;
}

static void on_step(void *user, const ft_served_step *step)
{
    seen *s = user;
    s->most_prompts = fmax(s->most_prompts, step->prompts);
}

static ft_load closed(int64_t clients, int64_t requests, double prompt, double answer)
{
    ft_load l = {.clients = clients, .requests = requests, .turns = 1, .burstiness = 1};
    l.prompt = (ft_lengths){.mean = prompt, .low = 0.8, .high = 1};
    l.answer = (ft_lengths){.mean = answer, .low = 0.8, .high = 1};
    ft__load_seed(&l, 3);
    return l;
}

static ft_outcome *run(const ft_policy *p, const ft_costs *c, ft_load l, seen *found)
{
    ft_outcome *o = malloc(sizeof *o);
    ft_serving_sink sink = {found, on_request, on_step, NULL, NULL};
    ft_scene s = {.costs = c, .policy = p, .replicas = 1, .sink = found ? &sink : NULL};
    ft_error err = {0};
    if (ft__simulate(&s, &l, o, &err) != FT_OK) fail_msg("%s", err.message);
    return o;
}

/* Four clients never fill nine tenths of the budget: every prompt but those of the first burst waits twenty iterations,
 * unless others come to wait beside it. Answers are made meanwhile at their pace. */
static void prompts_wait_beside_decoders(void **state)
{
    (void)state;
    ft_policy p = usual();
    ft_outcome *at_once = run(&p, &costs, closed(4, 400, 100, 1000), NULL);
    p.wait_iterations = 20;
    p.wait_tokens = 0.9 * p.budget;
    ft_outcome *waits = run(&p, &costs, closed(4, 400, 100, 1000), NULL);
    double longer = ft__tally_mean(&waits->ttft) - ft__tally_mean(&at_once->ttft);
    if (longer < 18 || longer > 20.5) fail_msg("TTFT is %g ms longer", longer);
    assert_true(waits->requests == 400);
    p.wait_tokens = 50; /* a single prompt is enough */
    ft_outcome *enough = run(&p, &costs, closed(4, 400, 100, 1000), NULL);
    assert_true(fabs(ft__tally_mean(&enough->ttft) - ft__tally_mean(&at_once->ttft)) < 0.01);
    free(at_once);
    free(waits);
    free(enough);
}

/* A look every thirty iterations: who comes in between waits for the next, fifteen on average, and never more. */
static void requests_wait_to_be_noticed(void **state)
{
    (void)state;
    ft_policy p = usual();
    ft_outcome *at_once = run(&p, &costs, closed(8, 800, 100, 1000), NULL);
    p.receive_interval = 30;
    ft_outcome *looks = run(&p, &costs, closed(8, 800, 100, 1000), NULL);
    double longer = ft__tally_mean(&looks->ttft) - ft__tally_mean(&at_once->ttft);
    if (longer < 12 || longer > 18) fail_msg("TTFT is %g ms longer", longer);
    assert_true(looks->ttft.most <= 32);
    assert_true(looks->requests == 800);
    ft_outcome *alone = run(&p, &costs, closed(1, 20, 100, 50), NULL); /* an idle engine looks all the time */
    assert_true(ft__tally_mean(&alone->ttft) < 1.01);
    free(at_once);
    free(looks);
    free(alone);
}

/* An engine that issues an iteration while the last one runs: who comes during one, waits for it and for one more. */
static void the_next_iteration_is_chosen_already(void **state)
{
    (void)state;
    ft_policy p = usual();
    ft_outcome *in_turn = run(&p, &costs, closed(8, 800, 100, 1000), NULL);
    p.launched_ahead = true;
    ft_outcome *ahead = run(&p, &costs, closed(8, 800, 100, 1000), NULL);
    double longer = ft__tally_mean(&ahead->ttft) - ft__tally_mean(&in_turn->ttft);
    if (longer < 0.9 || longer > 1.1) fail_msg("TTFT is %g ms longer", longer);
    assert_true(ahead->ttft.most <= 3.1 && ahead->requests == 800);
    ft_outcome *alone = run(&p, &costs, closed(1, 20, 100, 50), NULL); /* nothing runs that it would wait for */
    assert_true(ft__tally_mean(&alone->ttft) < 1.01);
    free(in_turn);
    free(ahead);
    free(alone);
}

/* Eight ranks with a budget each take eight prompts in one iteration, one budget for all of them takes one. */
static void ranks_have_budgets_of_their_own(void **state)
{
    (void)state;
    ft_costs ranks = costs;
    ranks.dp = 8;
    seen one = {0}, each = {0};
    ft_policy p = usual();
    p.budget = 1024;
    free(run(&p, &ranks, closed(64, 640, 1000, 100), &one));
    p.budget *= 8;
    free(run(&p, &ranks, closed(64, 640, 1000, 100), &each));
    assert_true(one.most_prompts == 1);
    assert_true(each.most_prompts >= 8 && each.most_prompts <= 10);
}

/* A cache that goes to the host is not computed again: every token after the first has a gap of its own, and what it
 * costs to travel is seen. */
static void caches_go_to_the_host_and_back(void **state)
{
    (void)state;
    ft_policy p = usual();
    p.capacity = 6000;
    p.chunked = true;
    p.order = FT_ORDER_DECODE_FIRST;
    p.swap_ms = 1e-6;
    ft_outcome *cheap = run(&p, &costs, closed(16, 320, 1000, 1000), NULL);
    assert_true(cheap->preemptions > 0 && cheap->requests == 320);
    assert_true(fabs(cheap->itl.count - (cheap->answer_tokens - cheap->requests)) < 0.5);
    assert_true(cheap->peak_tokens <= p.capacity);
    p.swap_ms = 0.1; /* a tenth of a second for a thousand tokens */
    ft_outcome *dear = run(&p, &costs, closed(16, 320, 1000, 1000), NULL);
    double spent = dear->last_ms - cheap->last_ms, least = 2 * 0.1 * 800 * (double)dear->preemptions * 0.5;
    if (spent < least) fail_msg("%g ms longer, at least %g were expected", spent, least);
    free(cheap);
    free(dear);
}

/* -- recipes ----------------------------------------------------------------------------------- */

static ft_serving_engine started(const char *name, const ft_situation *s, char *sources, size_t room)
{
    ft_serving_engine own;
    const ft_serving_engine *found = NULL;
    ft_text text = {0};
    ft_error err = {0};
    json_t *said = json_string(name);
    if (ft__serving_engine_read(said, s, &own, &found, &text, &err) != FT_OK) fail_msg("%s", err.message);
    snprintf(sources, room, "%s", text.at ? text.at : "");
    ft__text_free(&text);
    json_decref(said);
    return *found;
}

static void recipes_hold_where_they_say(void **state)
{
    (void)state;
    char sources[2000];
    ft_situation s = {
        .model_type = "llama", .dtype = "fp8", .hidden = 8192, .tp = 4, .dp = 1, .isl = 1024, .osl = 1024};
    ft_serving_engine e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.token_budget == 16384 && e.wait_iterations == 20 && e.wait_share == 0.9);
    assert_non_null(strstr(sources, "batch_wait_timeout_iters"));
    s.tp = 8;
    e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.token_budget == 16384 && e.wait_iterations == 0);
    s.hidden = 4096;
    e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.token_budget == 8192 && e.padded_graphs && !strstr(sources, "max_num_tokens"));
    s = (ft_situation){
        .model_type = "deepseek_v3", .dtype = "fp8", .hidden = 7168, .tp = 8, .tcgen05 = true, .clients = 15};
    assert_true(started("sglang", &s, sources, sizeof sources).receive_interval == 10);
    s.clients = 16;
    assert_true(started("sglang", &s, sources, sizeof sources).receive_interval == 30);
    s.tcgen05 = false;
    assert_true(started("sglang", &s, sources, sizeof sources).receive_interval == 1);
    assert_true(started("sglang", &s, sources, sizeof sources).max_sequences == 256);
    s.mfma = true; /* AMD's scripts leave the number of sequences to the engine */
    e = started("sglang", &s, sources, sizeof sources);
    assert_true(e.max_sequences == 2048 && e.token_budget == 131072 && strstr(sources, "mi300x"));
    s.mfma = false;
    s.tp = 1, s.dp = 8; /* a draft of DeepSeek's own beside attention data parallelism, three without */
    e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.drafts == 1 && e.budget_of_load && e.sized_to_load && strstr(sources, "deepseek-r1-throughput"));
    s.tp = s.ep = 8, s.dp = 1;
    e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.drafts == 3 && strstr(sources, "deepseek-r1-latency"));
    assert_true(started("sglang", &s, sources, sizeof sources).drafts == 0);
    s.ep = 1; /* no script drafts without expert parallelism on this GPU */
    e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.drafts == 0 && e.budget_of_load && !e.sized_to_load && strstr(sources, "ep 8 at every point"));
    s.tcgen05 = true;
    assert_true(started("trtllm", &s, sources, sizeof sources).drafts == 3);
    s.tp = 4;
    assert_true(started("trtllm", &s, sources, sizeof sources).drafts == 0);
    s.dtype = "fp4";
    assert_true(started("trtllm", &s, sources, sizeof sources).drafts == 3); /* 16 clients */
    s.clients = 32;
    assert_true(started("trtllm", &s, sources, sizeof sources).drafts == 0);
    s.ep = 4, s.fixed_lengths = true;
    e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.drafts == 0 && !e.budget_of_load && e.max_sequences == 512);
    s = (ft_situation){.model_type = "qwen3", .dtype = "bf16", .hidden = 4096, .tp = 1, .clients = 8};
    assert_true(started("trtllm", &s, sources, sizeof sources).drafts == 0);
    assert_true(!started("trtllm", &s, sources, sizeof sources).sized_to_load);
    s.fixed_lengths = true; /* every request alike: the engine was started for that load */
    e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.sized_to_load && e.idle_sequences == 1 && strstr(sources, "max_batch_size"));
    assert_true(!e.prefix_cache && started("vllm", &s, sources, sizeof sources).prompts == 100);
    s.model_type = "gpt_oss"; /* all hold, the last over the first */
    e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.stream_interval == 1 && e.max_sequences == 512 && !e.sized_to_load && e.idle_sequences == 0);
    s.fixed_lengths = false;
    e = started("trtllm", &s, sources, sizeof sources);
    assert_true(e.stream_interval == 20 && e.prefix_cache);
    assert_true(started("vllm", &s, sources, sizeof sources).prompts == 0);
    s.model_type = NULL; /* defaults were asked for */
    e = started("sglang", &s, sources, sizeof sources);
    assert_true(e.token_budget == 8192 && !*sources);
}

/* An older version is the newer one but for what is known to differ. */
static void versions_stand_on_others(void **state)
{
    (void)state;
    char sources[2000];
    ft_situation s = {.model_type = "llama", .hidden = 8192, .tp = 8};
    ft_serving_engine now = started("vllm", &s, sources, sizeof sources);
    ft_serving_engine then = started("vllm-0.11", &s, sources, sizeof sources);
    assert_true(then.eager_us > 2 * now.eager_us && then.request_ms < now.request_ms);
    assert_true(then.token_budget == now.token_budget && then.order == now.order && then.gap_us == now.gap_us);
    assert_string_equal(then.name, "vllm-0.11");
    s.vocab = 128256; /* of 2024: engines were built for so many sequences, and buffers with them */
    then = started("trtllm-0.14", &s, sources, sizeof sources);
    assert_true(then.max_sequences == 8192 && then.token_budget == 16384 && then.sampler_bytes == 32);
    s.tp = 4;
    then = started("trtllm-0.14", &s, sources, sizeof sources);
    assert_true(then.max_sequences == 2048 && then.token_budget == 1024 && strstr(sources, "Meta-Llama-3-70B"));
    s.vocab = 32000;
    assert_true(started("trtllm-0.14", &s, sources, sizeof sources).max_sequences == 4096);
    assert_true(started("trtllm", &s, sources, sizeof sources).sampler_bytes == 0);
    s = (ft_situation){.model_type = "llama", .hidden = 4096, .tp = 1, .clients = 8, .fixed_lengths = true};
    assert_true(started("sglang", &s, sources, sizeof sources).order == FT_ORDER_DECODE_FIRST);
    s.fixed_lengths = false;
    assert_true(started("sglang", &s, sources, sizeof sources).order == FT_ORDER_PROMPTS_ALONE);
}

/* vLLM gives an A100 the budget of small GPUs, however much memory it has; the others go by memory. */
static void budgets_follow_memory_but_for_one_capability(void **state)
{
    (void)state;
    char sources[2000];
    ft_situation s = {.model_type = "llama", .hidden = 4096, .tp = 1};
    ft_serving_engine vllm = started("vllm", &s, sources, sizeof sources);
    ft_serving_engine sglang = started("sglang", &s, sources, sizeof sources);
    ft_device a100 = {.memory_gib = 80, .compute_capability = "sm_80"};
    ft_device h100 = {.memory_gib = 80, .compute_capability = "sm_90"};
    ft_device l40s = {.memory_gib = 45, .compute_capability = "sm_89"};
    ft_device mi300x = {.memory_gib = 192, .compute_capability = "gfx942"};
    assert_true(!ft__serving_is_large(&vllm, &a100) && ft__serving_is_large(&sglang, &a100));
    assert_true(ft__serving_is_large(&vllm, &h100) && ft__serving_is_large(&vllm, &mi300x));
    assert_true(!ft__serving_is_large(&vllm, &l40s) && !ft__serving_is_large(&sglang, &l40s));
    assert_true(vllm.token_budget_small == 2048 && vllm.max_sequences_small == 256);
    assert_true(ft__serving_budget(&vllm, &a100) == 2048 && ft__serving_budget(&vllm, &mi300x) == 8192);
    assert_true(ft__serving_budget(&sglang, &a100) == 8192 && ft__serving_budget(&sglang, &mi300x) == 16384);
    assert_true(ft__serving_budget(&sglang, &l40s) == 4096);
    s.model_type = "deepseek_v3", s.dtype = "fp8"; /* a recipe's budget is that of every large GPU */
    sglang = started("sglang", &s, sources, sizeof sources);
    assert_true(ft__serving_budget(&sglang, &h100) == 32768 && ft__serving_budget(&sglang, &mi300x) == 32768);
    assert_true(sglang.memory_share == 0.82 && sglang.outside_gib == 0 && sglang.outside_token_kib == 0);
}

/* What a request says goes over a recipe. */
static void own_traits_go_over_recipes(void **state)
{
    (void)state;
    ft_situation s = {.model_type = "llama", .hidden = 8192, .tp = 4, .isl = 1024, .osl = 1024};
    ft_serving_engine own;
    const ft_serving_engine *found = NULL;
    ft_text text = {0};
    json_t *said = json_loads("{\"base\": \"trtllm\", \"traits\": {\"wait_iterations\": 3}}", 0, NULL);
    assert_int_equal(ft__serving_engine_read(said, &s, &own, &found, &text, NULL), FT_OK);
    assert_true(found->wait_iterations == 3 && found->wait_share == 0.9 && found->token_budget == 16384);
    ft__text_free(&text);
    json_decref(said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_wait_beside_decoders),
        cmocka_unit_test(requests_wait_to_be_noticed),
        cmocka_unit_test(the_next_iteration_is_chosen_already),
        cmocka_unit_test(ranks_have_budgets_of_their_own),
        cmocka_unit_test(caches_go_to_the_host_and_back),
        cmocka_unit_test(recipes_hold_where_they_say),
        cmocka_unit_test(own_traits_go_over_recipes),
        cmocka_unit_test(versions_stand_on_others),
        cmocka_unit_test(budgets_follow_memory_but_for_one_capability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
