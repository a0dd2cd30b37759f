/* Offers of clouds: which a job can take, in which order, and how old they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cost/prices.h"

static ft_priced priced(const char *gpu, int64_t gpus, const char *provider)
{
    ft_price_search s = {.gpu = gpu,
                         .gpus = gpus,
                         .node_gpus = 8,
                         .providers = provider ? &provider : NULL,
                         .provider_count = provider ? 1 : 0};
    return ft__price_of(&s);
}

static void every_offer_is_whole(void **state)
{
    (void)state;
    int64_t from, day;
    assert_true(ft__offer_count > 100 && ft__day_of("2023-01-01", &from));
    for (size_t i = 0; i < ft__offer_count; i++) {
        const ft_offer *o = &ft__offers[i];
        assert_true(o->usd_per_hour > 0 && o->gpus >= 1 && *o->gpu && *o->provider && *o->instance);
        assert_true(ft__day_of(o->date, &day) && day == o->day && day > from);
        assert_int_equal(ft__provider_check(o->provider, NULL), FT_OK);
    }
}

static void several_nodes_take_what_is_joined(void **state)
{
    (void)state;
    ft_priced one = priced("h100_sxm", 8, NULL), many = priced("h100_sxm", 64, NULL);
    assert_non_null(one.cheapest);
    assert_non_null(many.cheapest);
    assert_true(one.cheapest->network == FT_NET_ETHERNET && many.cheapest->network != FT_NET_ETHERNET);
    assert_true(many.network_lacks && !one.network_lacks);
    ft_priced lambda = priced("h100_sxm", 64, "lambda"); /* rents one by one */
    assert_true(!lambda.cheapest && lambda.network_lacks && lambda.known > 0);
    assert_true(priced("h100_sxm", 64, "aws").cheapest->gpus == 8);
    assert_true(!priced("nobody", 1, NULL).known);
}

static void the_three_prices_are_in_order(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 4, 8, 16, 512};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        ft_priced p = priced("h100_sxm", counts[i], NULL);
        double cheap = ft__offer_per_hour(p.cheapest, counts[i], 0),
               median = ft__offer_per_hour(p.median, counts[i], 0);
        assert_true(cheap <= median && p.hyperscaler->hyperscaler);
        assert_true(cheap <= ft__offer_per_hour(p.hyperscaler, counts[i], 0));
    }
}

static void whole_instances_are_paid(void **state)
{
    (void)state;
    const ft_offer eight = {.gpus = 8, .usd_per_hour = 80};
    assert_float_equal(ft__offer_per_hour(&eight, 1, 0), 80, 1e-9);
    assert_float_equal(ft__offer_per_hour(&eight, 8, 0), 80, 1e-9);
    assert_float_equal(ft__offer_per_hour(&eight, 9, 0), 160, 1e-9);
    assert_float_equal(ft__offer_per_hour(&eight, 12, 3), 160, 1e-9); /* two engines of three in each */
    assert_float_equal(ft__offer_per_hour(&eight, 18, 3), 240, 1e-9);
    assert_float_equal(ft__offer_per_hour(&eight, 32, 16), 320, 1e-9); /* over instances */
}

static void dates_are_days(void **state)
{
    (void)state;
    int64_t day = 0;
    assert_true(ft__day_of("1970-01-01", &day) && day == 0);
    assert_true(ft__day_of("2000-03-01", &day) && day == 11017);
    assert_true(ft__day_of("2026-11-16", &day) && day == 20773);
    static const char *const bad[] = {"", "today", "2026-13-01", "2026-1", "2026-01-32", "1066-10-14", "2026-01-01x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(ft__day_of(bad[i], &day));
    const ft_offer o = {.day = 100};
    assert_true(!ft__offer_old(&o, 280) && ft__offer_old(&o, 281));
    assert_true(ft__today() > 20000);
}

static void an_unknown_provider_is_named_with_the_nearest(void **state)
{
    (void)state;
    ft_error err = {0};
    assert_int_equal(ft__provider_check("lamda", &err), FT_E_NAME);
    assert_non_null(strstr(err.message, "did you mean \"lambda\"?"));
    assert_int_equal(ft__provider_check("zzzzzzzz", &err), FT_E_NAME);
    assert_non_null(strstr(err.message, "aws"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_offer_is_whole),
        cmocka_unit_test(several_nodes_take_what_is_joined),
        cmocka_unit_test(the_three_prices_are_in_order),
        cmocka_unit_test(whole_instances_are_paid),
        cmocka_unit_test(dates_are_days),
        cmocka_unit_test(an_unknown_provider_is_named_with_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
