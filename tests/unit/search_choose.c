/* Choices: whoever watches one hears of every GPU and number of them, in order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "bare_context.h"
#include "foretell.h"
#include "search/choose.h"

typedef struct heard {
    int times;
    double last;
    char next[64];
} heard;

static void hear(void *watcher, const char *next, double done)
{
    heard *h = watcher;
    assert_true(done >= h->last && done < 1);
    h->last = done;
    h->times++;
    snprintf(h->next, sizeof h->next, "%s", next);
}

static void whoever_watches_a_choice_hears_of_every_part(void **state)
{
    json_t *object = json_loads("{\"task\":\"choose\",\"model\":\"llama-3-8b\",\"tokens\":1e9,\"gpus\":[8,16],"
                                "\"gpu\":[\"a100_sxm_80gb\",\"h100_sxm\"]}",
                                0, NULL);
    ft_choose_request r = {0};
    ft_chosen chosen;
    ft_scratch scratch = {0};
    ft_error err = {0};
    heard h = {0};
    (void)state;
    if (ft__choose_request_read(object, &r, &err) != FT_OK) fail_msg("%s", err.message);
    r.progress = hear;
    r.watcher = &h;
    if (ft__choose_of(ft, &scratch, &r, &chosen, &err) != FT_OK) fail_msg("%s", err.message);
    assert_int_equal(h.times, 4);
    assert_true(h.last > 0.7);
    assert_string_equal(h.next, "h100_sxm");
    ft__chosen_free(&chosen);
    ft__choose_request_free(&r);
    ft__scratch_free(&scratch);
    json_decref(object);
}

/* A deadline at an end of the interval is kept as often as the interval says; one at the forecast by half; a wider
 * level leaves the ends where they are and makes the middle of it likelier. */
static void deadlines_are_kept_as_intervals_say(void **state)
{
    const ft_span days = {10, 8, 15}, exact = {10, 10, 10}, endless = {INFINITY, 8, INFINITY};
    (void)state;
    assert_float_equal(ft__chance_within(&days, 10, 1), 0.5, 1e-9);
    assert_float_equal(ft__chance_within(&days, 15, 1), 0.95, 1e-4);
    assert_float_equal(ft__chance_within(&days, 8, 1), 0.05, 1e-4);
    assert_true(ft__chance_within(&days, 12, 1) > 0.7 && ft__chance_within(&days, 12, 1) < 0.8);
    assert_float_equal(ft__chance_within(&days, 15, ft__interval_level(0.8)), 0.9, 2e-2);
    assert_float_equal(ft__chance_within(&exact, 9, 1), 0, 1e-9);
    assert_float_equal(ft__chance_within(&exact, 10, 1), 1, 1e-9);
    assert_float_equal(ft__chance_within(&endless, 1e9, 1), 0, 1e-9);
    for (double limit = 1, last = 0; limit < 40; limit += 0.5) {
        double chance = ft__chance_within(&days, limit, 1);
        assert_true(chance >= last && chance <= 1);
        last = chance;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadlines_are_kept_as_intervals_say),
        cmocka_unit_test(whoever_watches_a_choice_hears_of_every_part),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
