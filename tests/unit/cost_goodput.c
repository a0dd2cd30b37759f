/* Failures and checkpoints: closed forms against a simulation of the very process, and their limits. */
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cost/goodput.h"

/* A run simulated: work in pieces of `interval`, each followed by a save; failures of a Poisson process lose the piece
 * and cost a restart, which may fail too. Deterministic: a linear congruential generator. */
static double simulated(double interval, double save, double restart, double mtbf, double pieces)
{
    uint64_t seed = 12345;
    double time = 0, done = 0, next = 0;
    for (bool fresh = true; done < pieces;) {
        if (fresh) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            next = -mtbf * log(((double)(seed >> 11) + 0.5) / 9007199254740992.0);
            fresh = false;
        }
        if (next >= interval + save) {
            time += interval + save;
            next -= interval + save;
            done++;
            continue;
        }
        time += next; /* lost, and then restarted until a restart is not interrupted */
        for (bool up = false; !up;) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            next = -mtbf * log(((double)(seed >> 11) + 0.5) / 9007199254740992.0);
            up = next >= restart;
            time += up ? restart : next;
            if (up) next -= restart;
        }
    }
    return pieces * interval / time;
}

static void the_closed_form_is_what_a_simulated_run_does(void **state)
{
    (void)state;
    static const double cases[][4] = {
        {600, 20, 600, 36000}, {120, 20, 600, 5000}, {3600, 60, 60, 20000}, {60, 5, 10, 400}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double *c = cases[i];
        double share = ft__useful_share(c[0], c[1], c[2], c[3]), seen = simulated(c[0], c[1], c[2], c[3], 200000);
        if (fabs(share / seen - 1) > 0.01) fail_msg("case %zu: %g, simulated %g", i, share, seen);
    }
}

/* No interval near it is better by more than a hair. */
static void dalys_interval_is_the_best(void **state)
{
    (void)state;
    for (double mtbf = 2000; mtbf < 1e7; mtbf *= 3) {
        double best = ft__daly_interval(20, mtbf), at = ft__useful_share(best, 20, 600, mtbf);
        for (double factor = 0.5; factor < 2.1; factor *= 1.1)
            assert_true(ft__useful_share(best * factor, 20, 600, mtbf) < at * 1.0005);
        assert_true(best > 0 && best < sqrt(2 * 20 * mtbf) * 1.1); /* Young's is its first order */
    }
}

/* The study's figures: 0.98 at 1,024 GPUs, about 0.9 at 16,384, 0.60 at 100,000 and eight GPUs to a node. */
static void large_clusters_are_as_useful_as_published(void **state)
{
    (void)state;
    ft_failures usual = ft__failures_usual();
    assert_float_equal(ft__goodput(&usual, 128, 0).useful, 0.98, 0.01);
    assert_float_equal(ft__goodput(&usual, 2048, 0).useful, 0.9, 0.03);
    assert_float_equal(ft__goodput(&usual, 12500, 0).useful, 0.6, 0.06);
    double before = 1;
    for (double nodes = 1; nodes < 1e5; nodes *= 4) {
        ft_goodput g = ft__goodput(&usual, nodes, 0);
        assert_true(g.useful < before && g.useful > 0 && g.low <= g.useful && g.useful <= g.high);
        before = g.useful;
    }
}

/* Llama 3: 419 unexpected interruptions in 54 days on 16,384 GPUs. */
static void failures_are_counted(void **state)
{
    (void)state;
    ft_failures usual = ft__failures_usual(), none = ft__failures_none();
    ft_goodput g = ft__goodput(&usual, 2048, 0);
    assert_float_equal(ft__expected_failures(&g, 54 * 86400.0), 419, 45);
    g = ft__goodput(&none, 2048, 0);
    assert_true(g.useful == 1 && ft__expected_failures(&g, 1e9) == 0 && isinf(g.mtbf_s));
    ft_failures free_saves = usual; /* nothing is lost but restarts */
    free_saves.save_s = 0;
    g = ft__goodput(&free_saves, 128, 0);
    assert_true(g.useful > 0.99 && g.useful < 1);
    assert_float_equal(ft__checkpoint_bytes(70e9), 980e9, 1e9);
}

/* Storage that a checkpoint keeps busy for longer than Daly would wait sets the pace, and every restart reads it. */
static void slow_storage_is_waited_for(void **state)
{
    (void)state;
    ft_failures f = ft__failures_usual();
    double bytes = ft__checkpoint_bytes(405e9);
    ft_goodput enough = ft__goodput(&f, 2048, bytes);
    f.storage_gbps = 1000;
    ft_goodput fast = ft__goodput(&f, 2048, bytes);
    f.storage_gbps = 1;
    ft_goodput slow = ft__goodput(&f, 2048, bytes);
    assert_true(fast.interval_s == enough.interval_s && fast.useful < enough.useful &&
                fast.useful > 0.995 * enough.useful);
    assert_float_equal(slow.interval_s, bytes / 1e9, 1);
    assert_float_equal(slow.useful, ft__useful_share(slow.interval_s, f.save_s, f.restart_s + bytes / 1e9, slow.mtbf_s),
                       1e-9);
    assert_true(slow.useful < fast.useful && slow.low < slow.useful && slow.useful < slow.high);
    f.interval_s = 60; /* cannot be kept */
    assert_float_equal(ft__goodput(&f, 2048, bytes).interval_s, bytes / 1e9, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_closed_form_is_what_a_simulated_run_does),
        cmocka_unit_test(dalys_interval_is_the_best),
        cmocka_unit_test(large_clusters_are_as_useful_as_published),
        cmocka_unit_test(failures_are_counted),
        cmocka_unit_test(slow_storage_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
