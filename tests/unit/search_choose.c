/* Choices: whoever watches one hears of every GPU and number of them, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "foretell.h"
#include "search/choose.h"

static ft_context *ft;

static int open_context(void **state)
{
    ft_error err = {0};
    (void)state;
    return ft_open(&ft, NULL, &err) == FT_OK ? 0 : -1;
}

static int close_context(void **state)
{
    (void)state;
    ft_close(ft);
    return 0;
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_watches_a_choice_hears_of_every_part),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
