/* Several engines behind a router: who is given a request, and what that makes clients wait; on engines whose
 * iterations take a millisecond, whatever is in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "serving/simulate.h"
#include "simple_engine.h"

static void replicas_share_the_load(void **state)
{
    (void)state;
    static const ft_routing_kind kinds[] = {FT_ROUND_ROBIN, FT_LEAST_LOADED};
    for (size_t k = 0; k < 2; k++) {
        ft_policy p = decode_first();
        p.max_sequences = 1;
        ft_load l = poisson(1600, 20000, 1, 1); /* too much for one */
        ft_outcome *o = malloc(sizeof *o);
        ft_scene s = {.costs = &costs, .policy = &p, .replicas = 4, .routing = kinds[k]};
        assert_int_equal(ft__simulate(&s, &l, o, NULL), FT_OK);
        assert_true(o->requests == 20000);
        double wait = ft__tally_mean(&o->queue);
        if (wait > (kinds[k] == FT_LEAST_LOADED ? 0.12 : 0.25)) fail_msg("routing %zu waits %g ms", k, wait);
        free(o);
    }
}

/* Prompts take ten iterations and hold up whoever comes next to their engine. Of engines with as many requests the
 * router takes one after the other, so that equal requests wait no longer than by turns. */
static void equal_engines_take_turns(void **state)
{
    (void)state;
    static const ft_routing_kind kinds[] = {FT_ROUND_ROBIN, FT_LEAST_LOADED, FT_PREFIX_AWARE};
    double first[3] = {0};
    for (size_t k = 0; k < 3; k++) {
        ft_policy p = decode_first();
        p.budget = 100;
        ft_load l = poisson(240, 20000, 950, 60);
        ft_outcome *o = malloc(sizeof *o);
        ft_scene s = {.costs = &costs, .policy = &p, .replicas = 8, .routing = kinds[k]};
        assert_int_equal(ft__simulate(&s, &l, o, NULL), FT_OK);
        first[k] = ft__tally_quantile(&o->ttft, 0.9);
        free(o);
    }
    for (size_t k = 1; k < 3; k++)
        if (first[k] > 1.05 * first[0])
            fail_msg("routing %zu: first tokens after %g ms, by turns %g", k, first[k], first[0]);
}

/* A prompt goes to one of two engines and its answer to one of two others: turns of the one kind are not the other's,
 * or every prompt would go to the first. */
static void kinds_have_their_own_turns(void **state)
{
    (void)state;
    ft_policy decode = decode_first(), prefill = decode_first();
    prefill.prefill_only = true;
    prefill.budget = 100;
    ft_load l = poisson(30, 5000, 1000, 5);
    ft_outcome *o = malloc(sizeof *o);
    ft_scene s = {.costs = &costs,
                  .policy = &decode,
                  .replicas = 2,
                  .prefill_costs = &costs,
                  .prefill_policy = &prefill,
                  .prefill_replicas = 2};
    assert_int_equal(ft__simulate(&s, &l, o, NULL), FT_OK);
    double alone = 0.3 * 10 / (2 * 0.7); /* M/D/1 of one engine */
    if (ft__tally_mean(&o->queue) > 0.25 * alone) fail_msg("prompts wait %g ms", ft__tally_mean(&o->queue));
    free(o);
}

/* Prompts run elsewhere: decoding is never disturbed, and the cache takes its time to travel. */
static void split_engines_hand_over(void **state)
{
    (void)state;
    ft_policy decode = decode_first(), prefill = decode_first();
    prefill.prefill_only = true;
    ft_load l = poisson(50, 2000, 1000, 50);
    ft_outcome *o = malloc(sizeof *o);
    ft_scene s = {.costs = &costs,
                  .policy = &decode,
                  .replicas = 1,
                  .prefill_costs = &costs,
                  .prefill_policy = &prefill,
                  .prefill_replicas = 1,
                  .transfer_ms_per_token = 0.01};
    assert_int_equal(ft__simulate(&s, &l, o, NULL), FT_OK);
    assert_true(o->requests == 2000 && o->answer_tokens == 100000);
    assert_float_equal(ft__tally_quantile(&o->itl, 0.99), 1, 0.01);        /* no gap beside a prompt */
    assert_float_equal(ft__tally_mean(&o->tpot), (49 + 10) / 49.0, 0.036); /* ten milliseconds for a thousand tokens */
    free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_share_the_load),
        cmocka_unit_test(equal_engines_take_turns),
        cmocka_unit_test(kinds_have_their_own_turns),
        cmocka_unit_test(split_engines_hand_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
