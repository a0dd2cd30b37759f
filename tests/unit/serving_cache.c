/* The cache of an engine that keeps blocks by their hashes: what several requests begin with is there once, and who was
 * preempted finds again what nobody has overwritten. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "serving/cache.h"
#include "serving/prefix.h"
#include "serving/simulate.h"
#include "serving_ask.h"
#include "simple_engine.h"

static ft_policy usual(double capacity)
{
    return (ft_policy){
        .chunked = true, .budget = 1024, .max_sequences = 256, .capacity = capacity, .block = 16, .accepted = 1};
}

static ft_outcome *run(const ft_policy *p, int64_t clients, int64_t prompts, double hash_tokens)
{
    ft_outcome *o = malloc(sizeof *o);
    ft_load l = {.clients = clients,
                 .burstiness = 1,
                 .requests = 10 * clients,
                 .turns = 1,
                 .prompts = prompts,
                 .hash_tokens = hash_tokens};
    ft_scene s = {.costs = &costs, .policy = p, .replicas = 1, .hash_tokens = hash_tokens};
    ft_error err = {0};
    l.prompt = (ft_lengths){.mean = 1024, .low = 1, .high = 1};
    l.answer = (ft_lengths){.mean = 256, .low = 0.8, .high = 1};
    ft__load_seed(&l, 3);
    if (ft__simulate(&s, &l, o, &err) != FT_OK) fail_msg("%s", err.message);
    return o;
}

/* 64 clients, 4 prompts of 1024 tokens: the cache holds the four and 64 answers, not 64 prompts. */
static void what_requests_share_is_there_once(void **state)
{
    (void)state;
    for (int reserve = 0; reserve < 2; reserve++) {
        ft_policy p = usual(30000);
        p.admission = reserve ? FT_ADMISSION_RESERVE : FT_ADMISSION_PROMPT;
        p.reserved_output = reserve;
        ft_outcome *few = run(&p, 64, 4, 128), *many = run(&p, 64, 1000000, 128);
        assert_true(few->preemptions == 0 && few->running_max == 64);
        assert_true(few->peak_tokens <= 64.0 * (1 + 256 + 16) + 8 * 1024); /* some begin before the first is done */
        assert_true(many->running_max < 30);
        assert_true(few->last_ms < 0.6 * many->last_ms);
        assert_true(few->known_tokens > 0.9 * few->prompt_tokens && many->known_tokens < 0.05 * many->prompt_tokens);
        free(few);
        free(many);
    }
}

/* Where blocks are known in the step that computes them, the first of several like it is computed alone. */
static void equal_prompts_of_one_step(void **state)
{
    (void)state;
    ft_policy p = usual(1e6);
    p.budget = 65536;
    ft_outcome *later = run(&p, 64, 1, 128);
    p.prefix_at_once = true;
    ft_outcome *at_once = run(&p, 64, 1, 128);
    assert_true(later->known_tokens == later->prompt_tokens - 64 * 1024 - 576); /* the last of a prompt is computed */
    assert_true(at_once->known_tokens == at_once->prompt_tokens - 1024 - 639);
    free(later);
    free(at_once);
}

static double computed_again(bool keeps, double *ms)
{
    ft_policy p = usual(16000);
    p.keeps_blocks = keeps;
    ft_outcome *o = run(&p, 32, 0, 0);
    double steps = o->steps_mixed;
    *ms = o->last_ms;
    assert_true(o->preemptions > 10 && o->requests == 320 && o->peak_tokens <= p.capacity);
    free(o);
    return steps;
}

static void the_preempted_find_their_blocks_again(void **state)
{
    (void)state;
    double kept_ms, lost_ms, kept = computed_again(true, &kept_ms), lost = computed_again(false, &lost_ms);
    assert_true(kept < lost);
    assert_true(kept_ms <= lost_ms);
}

/* What is left of a preempted request is what it had, less what was taken since, in whole blocks. */
static void what_others_take_is_gone(void **state)
{
    (void)state;
    ft_policy p = usual(1000);
    p.keeps_blocks = true;
    for (int taken = 0; taken < 1200; taken += 100) {
        ft_replica r = {.policy = &p, .context = 900};
        ft_live l = {.prompt = 500, .tokens = 500};
        ft__cache_preempted(&r, &l); /* it had 501, and 100 were free */
        r.taken += taken;
        ft__cache_share(&r, &l);
        double left = 501 - fmax(0, taken - 100);
        assert_true(l.done == fmin(499, fmax(0, 16 * floor(left / 16))));
    }
}

/* Blocks that are held stay; the others leave, the least recently used first, and of a prompt its end. */
static void blocks_leave_in_their_order(void **state)
{
    (void)state;
    static const uint64_t first[] = {1, 2, 3}, second[] = {1, 2, 4};
    ft_prefixes *p = ft__prefixes_new(16);
    assert_int_equal(ft__prefixes_add(p, first, 0, 3), 3);
    assert_int_equal(ft__prefixes_hold(p, second, 3), 2);
    assert_int_equal(ft__prefixes_add(p, second, 2, 3), 3);
    assert_true(ft__prefixes_release(p, first, 3) == 32);
    ft__prefixes_trim(p, 0);
    assert_int_equal(ft__prefixes_known(p, first, 3), 32);
    assert_int_equal(ft__prefixes_held(p, second, 3), 48);
    assert_true(ft__prefixes_release(p, second, 3) == 0);
    ft__prefixes_trim(p, 40);
    assert_int_equal(ft__prefixes_known(p, second, 3), 32);
    assert_int_equal(ft__prefixes_held(p, second, 3), 0);
    ft__prefixes_trim(p, 0);
    assert_int_equal(ft__prefixes_known(p, second, 3), 0);
    ft__prefixes_free(p);
}

/* More clients than the cache has room for wait; they do not halve what is served (a 32 GB card, 100 prompts). */
static void throughput_holds_where_the_cache_is_full(void **state)
{
    (void)state;
    static const char *models[] = {"qwen3-4b", "llama-3.1-8b"};
    for (size_t i = 0; i < 2; i++) {
        double best = 0;
        for (int clients = 32; clients <= 512; clients *= 2) {
            char keys[256];
            snprintf(keys, sizeof keys,
                     "\"task\":\"serve\",\"model\":\"%s\",\"gpu\":\"rtx5090\",\"engine\":\"vllm\",\"isl\":512,"
                     "\"osl\":128,\"concurrency\":%d",
                     models[i], clients);
            double rate = figure(keys, "requests_per_s");
            if (rate < 0.9 * best) fail_msg("%s, %d clients: %g after %g a second", models[i], clients, rate, best);
            best = fmax(best, rate);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_requests_share_is_there_once),
        cmocka_unit_test(equal_prompts_of_one_step),
        cmocka_unit_test(the_preempted_find_their_blocks_again),
        cmocka_unit_test(what_others_take_is_gone),
        cmocka_unit_test(blocks_leave_in_their_order),
        cmocka_unit_test(throughput_holds_where_the_cache_is_full),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
