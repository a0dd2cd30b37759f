/* What requests are drawn: when they come and how long they are, all together. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serving/load.h"

static ft_load poisson(double per_s, int64_t requests, double prompt, double answer)
{
    ft_load l = {.rate_per_s = per_s, .burstiness = 1, .requests = requests, .turns = 1};
    l.prompt = (ft_lengths){.mean = prompt, .low = 1, .high = 1};
    l.answer = (ft_lengths){.mean = answer, .low = 1, .high = 1};
    ft__load_seed(&l, 7);
    return l;
}

static void near(double got, double wanted, double tolerance, const char *what)
{
    if (fabs(got - wanted) > tolerance * fabs(wanted)) fail_msg("%s: %g, not %g", what, got, wanted);
}

/* Stretched or not, the same requests come, their gaps in the same proportion; the last when its rate says. */
static void a_number_of_requests_comes_in_its_time(void **state)
{
    (void)state;
    enum { REQUESTS = 50 };
    ft_load drawn = poisson(10, REQUESTS, 100, 20), sent;
    drawn.prompt.low = 0.5; /* lengths are drawn between the gaps */
    drawn.burstiness = 0.5;
    sent = drawn;
    ft__load_stretch(&sent);
    if (fabs(sent.stretch - 1) < 1e-3) fail_msg("gaps that need no stretch prove nothing");
    ft_call a, b = {0};
    bool more = false;
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(ft__load_next(&drawn, &more, &a, NULL), FT_OK);
        assert_int_equal(ft__load_next(&sent, &more, &b, NULL), FT_OK);
        assert_true(more && a.prompt == b.prompt && a.answer == b.answer);
        near(b.sent_ms, a.sent_ms * sent.stretch, 1e-9, "a request");
    }
    near(b.sent_ms, 5000, 1e-9, "the last request");
    assert_int_equal(ft__load_next(&sent, &more, &b, NULL), FT_OK);
    assert_false(more);
}

/* Drawn again outside their bounds, lengths keep the mean that was asked for. */
static void bounded_lengths_keep_their_mean(void **state)
{
    (void)state;
    enum { REQUESTS = 200000 };
    ft_lengths wide = {.kind = FT_SPREAD_LOGNORMAL, .mean = 200, .low = 0.02, .high = 5, .sigma = 1.5}, apart = wide;
    ft_load l = poisson(10, REQUESTS, 1, 1);
    assert_true(ft__lengths_centre(&wide) && wide.centre > -1.5 * 1.5 / 2); /* its tail is gone: the rest is longer */
    l.prompt = wide;
    l.answer = (ft_lengths){.kind = FT_SPREAD_LOGNORMAL, .mean = 200, .sigma = 0.5};
    assert_true(ft__lengths_centre(&l.answer));
    double sum[2] = {0}, most = 0, least = 1e9;
    for (int i = 0; i < REQUESTS; i++) {
        ft_call one;
        ft__load_call(&l, 0, 0, &one);
        sum[0] += one.prompt, sum[1] += one.answer;
        most = fmax(most, one.prompt), least = fmin(least, one.prompt);
    }
    near(sum[0] / REQUESTS, 200, 0.01, "prompts");
    near(sum[1] / REQUESTS, 200, 0.01, "answers");
    assert_true(most <= 1000 && most > 900 && least >= 4 && least < 6);
    apart.high = 0.9;
    assert_false(ft__lengths_centre(&apart));
    apart = wide, apart.low = 0.999, apart.high = 1.001; /* hardly anything is drawn there */
    assert_false(ft__lengths_centre(&apart));
}

/* Ten requests that are drawn from one token on are as long together as the mean says, at a rate and of clients. */
static void few_requests_have_the_mean(void **state)
{
    (void)state;
    for (int open = 0; open < 2; open++) {
        ft_load l = poisson(5, 10, 2000, 1000);
        l.prompt.low = l.answer.low = 0;
        if (!open) l.rate_per_s = 0, l.clients = 2;
        ft__load_seed(&l, 4);
        ft_load drawn = l;
        ft__load_scale(&l);
        double sum[2] = {0}, before = 0;
        for (int i = 0; i < 10; i++) {
            ft_call one, raw;
            bool more = true;
            if (open) {
                assert_int_equal(ft__load_next(&l, &more, &one, NULL), FT_OK);
                assert_int_equal(ft__load_next(&drawn, &more, &raw, NULL), FT_OK);
            } else {
                ft__load_call(&l, 0, 0, &one);
                ft__load_call(&drawn, 0, 0, &raw);
            }
            assert_true(more);
            sum[0] += one.prompt, sum[1] += one.answer, before += raw.prompt;
        }
        near(sum[0] / 10, 1000, 2e-3, "prompts");
        near(sum[1] / 10, 500, 4e-3, "answers");
        if (fabs(before / 10 - 1000) < 20) fail_msg("lengths that need no scaling prove nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_of_requests_comes_in_its_time),
        cmocka_unit_test(bounded_lengths_keep_their_mean),
        cmocka_unit_test(few_requests_have_the_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
