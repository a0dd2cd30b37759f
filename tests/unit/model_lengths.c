/* Lengths that vary: distributions have the mean and the spread they were given, batches are as long as their longest
 * sequence, and where nothing varies the answer is that of one length. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/lengths.h"
#include "steps.h"
#include "study/lengths.h"

static ft_length_mix spread(double mean, double deviation, double least, double most, double samples)
{
    ft_length_mix m = {0};
    ft__mix_spread(&m, mean, deviation, least, most, samples);
    m.samples = samples;
    m.multiple = 1;
    return m;
}

static void normal_quantiles_are_known_ones(void **state)
{
    (void)state;
    assert_true(fabs(ft__normal_quantile(0.5)) < 1e-12);
    assert_true(fabs(ft__normal_quantile(0.975) - 1.959963984540054) < 1e-9);
    assert_true(fabs(ft__normal_quantile(0.001) + 3.090232306167813) < 1e-9);
}

static void mean_and_spread_are_those_asked_for(void **state)
{
    (void)state;
    const double cases[][5] = {{176.2, 125.8, 26, 740, 52002},
                               {933.3, 864.8, 21, 66412, 96566},
                               {3234.4, 2547.5, 91, 19548, 4959},
                               {300, 30, 1, INFINITY, 10000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double *c = cases[i];
        ft_length_mix m = spread(c[0], c[1], c[2], c[3], c[4]);
        double sum = 0, squares = 0, last = 0;
        for (int k = 0; k < 4000; k++) {
            const double x = ft__mix_tokens(&m, 1 << 30, (k + 0.5) / 4000);
            assert_true(x >= last && x >= c[2] && x <= c[3]);
            last = x;
            sum += x / 4000;
            squares += x * x / 4000;
        }
        assert_true(fabs(sum / c[0] - 1) < 0.03);
        assert_true(fabs(sqrt(squares - sum * sum) / c[1] - 1) < 0.12); /* of a few nodes, a tail's part is missing */
    }
    /* The longest of so many says which shape. */
    assert_true(spread(3234.4, 2547.5, 91, 19548, 4959).steep);
    assert_false(spread(933.3, 864.8, 21, 66412, 96566).steep);
}

static void batches_are_as_long_as_their_longest(void **state)
{
    (void)state;
    ft_length_mix m = spread(500, 400, 1, INFINITY, 10000);
    for (int k = 1; k < 20; k++) {
        const double p = k / 20.0;
        double last = 0;
        for (int64_t batch = 1; batch <= 64; batch *= 2) {
            const double x = ft__mix_padded(&m, 2048, batch, p);
            assert_true(x >= last && x <= 2048);
            last = x;
        }
    }
    ft_length_mix sorted = m, even = m, filled = m;
    sorted.batching = FT_BATCH_BUCKET;
    double plain = 0, grouped = 0;
    for (int k = 0; k < 100; k++) {
        plain += ft__mix_padded(&m, 2048, 8, (k + 0.5) / 100);
        grouped += ft__mix_padded(&sorted, 2048, 8, (k + 0.5) / 100);
    }
    assert_true(grouped < 0.7 * plain && grouped / 100 >= ft__mix_mean(&m, 2048));
    filled.multiple = 64;
    assert_true(fmod(ft__mix_padded(&filled, 2048, 4, 0.3), 64) == 0);
    ft__mix_spread(&even, 700, 0, 1, INFINITY, 100);
    assert_true(ft__mix_even(&even, 2048) && ft__mix_tokens(&even, 2048, 0.4) == 700);
    assert_true(ft__mix_even(&even, 512) && ft__mix_tokens(&even, 512, 0.4) == 512);
}

static void what_is_too_long_is_cut_or_dropped(void **state)
{
    (void)state;
    ft_length_mix m = {.count = 3, .at = {2048, 100, 512}, .below = {1, 2, 1}, .multiple = 1};
    ft__mix_list(&m);
    assert_true(m.at[0] == 100 && m.below[0] == 0.5 && m.below[2] == 1);
    assert_true(ft__mix_tokens(&m, 1024, 1) == 1024 && ft__mix_kept(&m, 1024) == 1);
    assert_true(fabs(ft__mix_mean(&m, 1024) - (100 * 2 + 512 + 1024) / 4.0) < 1e-9);
    m.longer = FT_LONGER_DROP;
    assert_true(ft__mix_tokens(&m, 1024, 1) == 512 && ft__mix_kept(&m, 1024) == 0.75);
    assert_true(fabs(ft__mix_mean(&m, 1024) - (100 * 2 + 512) / 3.0) < 1e-9);
    assert_true(ft__mix_tokens(&m, 50, 1) == 0);
}

#define ASKED "{\"task\":\"train\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h200_sxm\",\"lora_rank\":8"

static ft_step step_of(const char *request, ft_lengths_view *lengths)
{
    ft_step_view v;
    json_t *object = forecast(request, &v);
    const ft_step s = *v.step;
    if (lengths) *lengths = v.lengths ? *v.lengths : (ft_lengths_view){0};
    json_decref(object);
    return s;
}

static void without_spread_it_is_the_step_of_one_length(void **state)
{
    (void)state;
    const ft_step one = step_of(ASKED ",\"batch\":4,\"seq\":700}", NULL);
    const ft_step same = step_of(ASKED ",\"batch\":4,\"seq\":2048,\"lengths\":\"700:0\"}", NULL);
    const ft_step list = step_of(ASKED ",\"batch\":4,\"seq\":700,\"lengths\":[700,900]}", NULL);
    assert_true(one.step_ms == same.step_ms && one.low_ms == same.low_ms && one.high_ms == same.high_ms);
    assert_true(one.memory.peak_bytes == same.memory.peak_bytes);
    assert_true(one.memory.reserved_bytes == same.memory.reserved_bytes);
    assert_true(one.step_ms == list.step_ms && one.memory.reserved_bytes == list.memory.reserved_bytes);
    /* Nearly so, nearly the same: a mask is what it takes. */
    ft_lengths_view l;
    const ft_step near = step_of(ASKED ",\"batch\":1,\"seq\":2048,\"lengths\":\"700:2\"}", &l);
    const ft_step alone = step_of(ASKED ",\"batch\":1,\"seq\":700}", NULL);
    assert_true(fabs(near.step_ms / alone.step_ms - 1) < 0.01 && l.typical >= 695 && l.typical <= 705);
    assert_true(l.longest > 700 && l.longest < 720);
}

static void the_mean_lies_between_the_ends(void **state)
{
    (void)state;
    ft_lengths_view l, s;
    const ft_step shortest = step_of(ASKED ",\"batch\":8,\"seq\":1024,\"lengths\":[1023,1024]}", NULL);
    const ft_step longest = step_of(ASKED ",\"batch\":8,\"seq\":4096,\"lengths\":[4095,4096]}", NULL);
    const ft_step mixed = step_of(ASKED ",\"batch\":8,\"seq\":4096,\"lengths\":[1024,4096]}", &l);
    const ft_step sorted = step_of(ASKED ",\"batch\":8,\"seq\":4096,\"lengths\":[1024,4096],\"batching\":\"bucket\"}",
                                   &s);
    assert_true(shortest.step_ms < sorted.step_ms && sorted.step_ms < mixed.step_ms);
    assert_true(mixed.step_ms <= longest.step_ms);
    assert_true(s.useful > l.useful && l.useful > 0.5 && s.useful <= 1);
    assert_true(l.longest == 4096 && fabs(mixed.memory.peak_bytes / longest.memory.peak_bytes - 1) < 1e-9);
    /* Halves of the batches of a sorted group are short: the mean of both ends. */
    assert_true(fabs(sorted.step_ms / ((shortest.step_ms + longest.step_ms) / 2) - 1) < 0.03);
}

static void ranks_wait_for_the_longest(void **state)
{
    (void)state;
    ft_lengths_view one, eight;
    step_of(ASKED ",\"batch\":2,\"seq\":4096,\"lengths\":\"1500:1200\"}", &one);
    step_of(ASKED ",\"batch\":2,\"seq\":4096,\"lengths\":\"1500:1200\",\"parallel\":{\"dp\":8}}", &eight);
    assert_true(one.waits_ms == 0 && eight.waits_ms > 0);
    assert_true(eight.typical > one.typical);
}

static void plain_segments_pile_up_and_expandable_ones_do_not(void **state)
{
    (void)state;
#define VARIED ASKED ",\"batch\":2,\"seq\":2048,\"lengths\":\"900:800\""
    const ft_step plain = step_of(VARIED "}", NULL), grown = step_of(VARIED ",\"expandable_segments\":true}", NULL);
    const ft_step first = step_of(VARIED ",\"batching\":\"bucket\"}", NULL);
    const double beyond = plain.memory.reserved_bytes / plain.memory.peak_bytes;
    assert_true(beyond > 1.2 && grown.memory.reserved_bytes / grown.memory.peak_bytes < 0.7 * beyond + 0.35);
    assert_true(first.memory.reserved_bytes < plain.memory.reserved_bytes); /* the longest batch is the first */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_quantiles_are_known_ones),
        cmocka_unit_test(mean_and_spread_are_those_asked_for),
        cmocka_unit_test(batches_are_as_long_as_their_longest),
        cmocka_unit_test(what_is_too_long_is_cut_or_dropped),
        cmocka_unit_test(without_spread_it_is_the_step_of_one_length),
        cmocka_unit_test(the_mean_lies_between_the_ends),
        cmocka_unit_test(ranks_wait_for_the_longest),
        cmocka_unit_test(plain_segments_pile_up_and_expandable_ones_do_not),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
