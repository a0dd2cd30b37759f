/* The input pipeline: which stage sets the pace, and what that does to a step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "explain/loader.h"
#include "request/advice.h"

static const ft_device device = {.name = "made_up", .pcie_gbps = 20};

static void near(double got, double expected)
{
    if (fabs(got - expected) > 1e-6 * fabs(expected) + 1e-9) fail_msg("got %g, expected %g", got, expected);
}

static void the_slowest_stage_sets_the_pace(void **state)
{
    (void)state;
    static const struct {
        ft_loader loader;
        double wait;
        ft_loading_stage stage;
    } cases[] = {
        {{.given = false, .samples_per_s_disk = 1}, 0, FT_LOADS_IN_TIME},
        {{.given = true, .workers = 4, .worker_ms = 2}, 0, FT_LOADS_IN_TIME},   /* 50 of 100 ms */
        {{.given = true, .workers = 4, .worker_ms = 8}, 100, FT_LOADS_WORKERS}, /* 200 ms */
        {{.given = true, .workers = 8, .worker_ms = 8, .samples_per_s_disk = 500}, 100, FT_LOADS_DISK},
        {{.given = true, .workers = 0, .worker_ms = 1}, 100, FT_LOADS_WORKERS},      /* one after the other */
        {{.given = true, .workers = 4, .sample_bytes = 1.7e6}, 0, FT_LOADS_IN_TIME}, /* 10 ms beside the step */
        {{.given = true, .workers = 4, .sample_bytes = 1.7e6, .pageable = true}, 25, FT_LOADS_COPY},
        {{.given = true, .workers = 4, .sample_bytes = 34e6}, 100, FT_LOADS_COPY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_loading t = ft__loader_time(&cases[i].loader, &device, 100, 100);
        if (fabs(t.wait_ms - cases[i].wait) > 1e-6 || t.stage != cases[i].stage)
            fail_msg("case %zu: waits %g ms at stage %d", i, t.wait_ms, (int)t.stage);
    }
}

static void a_step_is_as_long_as_its_input(void **state)
{
    (void)state;
    ft_loader l = {.given = true, .workers = 2, .worker_ms = 4};
    ft_step step = {
        .step_ms = 100, .low_ms = 90, .high_ms = 300, .mfu = 0.4, .tokens_per_s = 1000, .regime = {0.7, 0.3}};
    ft_loading t;
    ft__loader_apply(&l, &device, 100, &step, &t);
    near(step.step_ms, 200);
    near(step.low_ms, 200);
    near(step.high_ms, 300); /* so slow a step would not have to wait */
    near(step.mfu, 0.2);
    near(step.tokens_per_s, 500);
    near(step.regime[FT_BOUND_OVERHEAD], 0.5);
    assert_int_equal(step.bound, FT_BOUND_OVERHEAD);
    near(t.compute_ms, 100);
    assert_int_equal(ft__loader_workers(&l, 100, 100), 4);
    assert_int_equal(ft__loader_workers(&l, 0, 100), 1);
    l.workers = 4;
    near(ft__loader_time(&l, &device, 100, 100).wait_ms, 0);
}

static void loaders_are_read_with_care(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ft_status status;
    } cases[] = {
        {"{}", FT_OK},
        {"{\"loader\":{}}", FT_OK},
        {"{\"loader\":{\"workers\":4,\"worker_ms\":2.5,\"pinned\":true}}", FT_OK},
        {"{\"loader\":4}", FT_E_TYPE},
        {"{\"loader\":{\"worker\":4}}", FT_E_KEY},
        {"{\"loader\":{\"workers\":-1}}", FT_E_RANGE},
        {"{\"loader\":{\"workers\":2.5}}", FT_E_RANGE},
        {"{\"loader\":{\"samples_per_s_disk\":0}}", FT_E_RANGE},
        {"{\"loader\":{\"pinned\":1}}", FT_E_TYPE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *o = json_loads(cases[i].text, 0, NULL);
        ft_said said;
        ft_error err = {0};
        ft__said_init(&said);
        ft_status status = ft__loader_read(o, &said, &err);
        bool same = cases[i].status == FT_OK ? status == FT_OK : status != FT_OK && err.where[0];
        if (!same) fail_msg("%s: status %d at \"%s\"", cases[i].text, (int)status, err.where);
        json_decref(o);
    }
    json_t *o = json_loads("{\"loader\":{\"disk_gbps\":2,\"sample_bytes\":1e6}}", 0, NULL);
    ft_said said;
    ft__said_init(&said);
    said.at[FT_KEY_ID_LOADER].given = true;
    assert_int_equal(ft__loader_read(o, &said, NULL), FT_OK);
    ft_loader l = ft__loader_settle(&said);
    near(l.samples_per_s_disk, 2000); /* storage that is known by its bandwidth alone */
    assert_true(l.pageable && l.workers == 0);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slowest_stage_sets_the_pace),
        cmocka_unit_test(a_step_is_as_long_as_its_input),
        cmocka_unit_test(loaders_are_read_with_care),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
