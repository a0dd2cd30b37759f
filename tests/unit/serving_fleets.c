/* Several engines, whose steps are put off until somebody asks: no request is served before it came, engines that share
 * nothing are as each by itself, runs that end early say what they would have said, and a part stands for a fleet. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "foretell.h"
#include "serving/simulate.h"
#include "simple_engine.h"

static void on_request(void *user, const ft_served_request *r)
{
    double *soonest = user;
    *soonest = fmin(*soonest, r->first_ms - r->sent_ms);
}

/* An iteration takes a millisecond: nobody has a first token sooner than that. */
static void nobody_joins_an_iteration_that_has_begun(void **state)
{
    static const ft_routing_kind kinds[] = {FT_ROUND_ROBIN, FT_LEAST_LOADED};
    ft_outcome *o = malloc(sizeof *o);
    (void)state;
    assert_non_null(o);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int64_t engines = 1; engines <= 5; engines++) {
            double soonest = INFINITY;
            ft_policy p = decode_first();
            ft_serving_sink sink = {.user = &soonest, .request = on_request};
            ft_scene s = {.costs = &costs, .policy = &p, .replicas = engines, .routing = kinds[k], .sink = &sink};
            ft_load l = poisson(1500, 3000, 100, 3);
            ft_error err = {0};
            assert_int_equal(ft__simulate(&s, &l, o, &err), FT_OK);
            if (soonest < 1 - 1e-9) fail_msg("%lld engines: a first token after %g ms", (long long)engines, soonest);
        }
    free(o);
}

/* The verdict of a run that may end early is that of the whole, and it ends early where that is bad. */
static void hopeless_runs_end_early(void **state)
{
    static const double rates[] = {200, 1000, 3000, 9000, 20000};
    ft_outcome *o = malloc(sizeof *o);
    double shortest = 1e9;
    (void)state;
    assert_non_null(o);
    for (int64_t engines = 1; engines <= 3; engines++)
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
            bool met[2];
            for (int early = 0; early < 2; early++) {
                ft_policy p = decode_first();
                p.max_sequences = 4;
                ft_scene s = {.costs = &costs, .policy = &p, .replicas = engines, .slo_ttft_ms = 20, .warmup = 100};
                s.give_up = early ? 0.9 : 0;
                ft_load l = poisson(rates[i], 2000, 100, 3);
                ft_error err = {0};
                assert_int_equal(ft__simulate(&s, &l, o, &err), FT_OK);
                met[early] = o->good >= 0.9 * o->requests && !ft__queue_grows(o, 2000);
                if (early) shortest = fmin(shortest, o->requests);
            }
            assert_int_equal(met[0], met[1]);
        }
    assert_true(shortest < 1000);
    free(o);
}

static double figure(ft_context *ft, const char *keys, const char *key)
{
    char request[512];
    snprintf(request, sizeof request, "{\"task\":\"serve\",\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\",%s}", keys);
    char *text = ft_answer(ft, request);
    json_t *answer = json_loads(text ? text : "", 0, NULL);
    const json_t *value = json_object_get(answer, key);
    if (!json_is_number(value)) fail_msg("%s: no \"%s\": %s", keys, key, text);
    double found = json_number_value(value);
    json_decref(answer);
    free(text);
    return found;
}

/* Steps that are taken at once end with the one that is under way when somebody comes, who waits for the next, too. */
static void long_answers_keep_nobody_waiting(void **state)
{
    static const char one[] = "\"isl\":1000,\"osl\":60000,\"rate\":0.003,\"requests\":100";
    static const char two[] =
        "\"isl\":1000,\"osl\":60000,\"rate\":0.006,\"requests\":200,\"replicas\":2,\"routing\":\"least_loaded\"";
    static const char other[] = "\"isl\":1000,\"osl\":60,\"rate\":0.003,\"requests\":100";
    ft_context *ft;
    ft_error err;
    (void)state;
    assert_int_equal(ft_open(&ft, NULL, &err), FT_OK);
    double alone = figure(ft, other, "ttft_ms");
    assert_true(figure(ft, one, "ttft_ms_p90") < 1.75 * alone);
    assert_true(figure(ft, two, "ttft_ms_p90") < 1.75 * alone);
    ft_close(ft);
}

/* What plans take as given where nobody waits (src/fleet/trial.c). */
static void a_part_stands_for_a_fleet(void **state)
{
    static const char fleet[] = "\"isl\":1000,\"osl\":100,\"start\":\"steady\",\"routing\":\"least_loaded\","
                                "\"replicas\":%d,\"concurrency\":%d,\"requests\":%d";
    static const char *const keys[] = {"tokens_per_s_per_gpu", "e2e_ms", "tpot_ms"};
    ft_context *ft;
    ft_error err;
    char some[256], many[256];
    (void)state;
    snprintf(some, sizeof some, fleet, 64, 64 * 512, 64 * 512 * 3);
    snprintf(many, sizeof many, fleet, 128, 128 * 512, 128 * 512 * 3);
    assert_int_equal(ft_open(&ft, NULL, &err), FT_OK);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double x = figure(ft, some, keys[i]), y = figure(ft, many, keys[i]);
        if (fabs(x / y - 1) > 0.005) fail_msg("%s: %g of 64 engines, %g of 128", keys[i], x, y);
    }
    ft_close(ft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_joins_an_iteration_that_has_begun), cmocka_unit_test(hopeless_runs_end_early),
        cmocka_unit_test(long_answers_keep_nobody_waiting), cmocka_unit_test(a_part_stands_for_a_fleet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
