/* Verdicts over a made-up forecast: what holds a step, what cancels between two, the cheapest fix, allocations that
 * fail. */
#include <stdlib.h>

#include "made_up_step.h"

/* -- verdicts ---------------------------------------------------------------------------------- */

static void what_holds_a_step(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    now.work.dtype = FT_BF16;
    ft_step step;
    fill_step(&now, m, &step);
    ft__regime_settle(m->graph, &device, &step);
    assert_int_equal(step.kernels[0].forecast.bound, FT_BOUND_COMPUTE);
    assert_int_equal(step.kernels[1].forecast.bound, FT_BOUND_MEMORY); /* a FLOP per byte */
    assert_true(fabs(step.regime[FT_BOUND_MEMORY] - 60.0 / 115) < 1e-9);
    assert_int_equal(step.bound, FT_BOUND_MEMORY);
    ft_verdicts v;
    assert_int_equal(ft__verdicts_of(&now, m->graph, &step, m->arena, &v, NULL), FT_OK);
    assert_int_equal(v.layer_count, 1);
    assert_true(fabs(v.layers[0].share[FT_BOUND_MEMORY] - 60.0 / 115) < 1e-9);
    assert_true(fabs(v.whole.tail - 0.25) < 1e-9); /* 1.5 of 2 waves */
    assert_true(v.phase[FT_FORWARD].ms > 0 && !(v.phase[FT_BACKWARD].ms > 0));
    step.step_ms = 400, step.idle_ms = 170, step.host_ms = 399; /* the host never rests */
    ft__regime_settle(m->graph, &device, &step);
    assert_int_equal(step.bound, FT_BOUND_OVERHEAD);
    ft__arena_free(m->arena);
}

/* 0.1 * 3 / 3 is more than 0.1: what one share is rounded up by must not make the other less than nothing. */
static void no_share_is_below_nothing(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    now.work.dtype = FT_BF16;
    ft_step step;
    for (int i = 1; i < 1000; i++) {
        fill_step(&now, m, &step);
        step.kernel_count = 1; /* the product alone: nothing is bound by memory */
        step.kernels[0].forecast.ms = step.kernels[0].forecast.launch_ms + 3;
        step.regime[FT_BOUND_COMPUTE] = 0.001 * i;
        step.regime[FT_BOUND_MEMORY] = 0;
        ft__regime_settle(m->graph, &device, &step);
        assert_true(step.regime[FT_BOUND_COMPUTE] >= 0 && step.regime[FT_BOUND_MEMORY] >= 0);
    }
    ft__arena_free(m->arena);
}

static void equal_kernels_cancel(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request(), other = now;
    ft_step a, b;
    ft_tally x, y;
    double below, above, apart, unused, narrow;
    other.work.execution = FT_RUN_COMPILE;
    fill_step(&now, m, &a);
    fill_step(&other, m, &b);
    assert_int_equal(ft__tally(m->graph, &a, false, 0, m->arena, &x, NULL), FT_OK);
    assert_int_equal(ft__tally(m->graph, &b, true, 0, m->arena, &y, NULL), FT_OK);
    ft__difference(&x, &y, 1, false, 0.9, &below, &above);
    ft__difference(&x, &y, 1, true, 0.9, &apart, &unused);
    assert_true(below > 0 && above > 0 && apart > 1.5 * below); /* the product, 400 ms within a tenth, is in both */
    ft__difference(&x, &y, 1, false, 0.5, &narrow, &unused);
    assert_true(narrow < below);
    ft__arena_free(m->arena);
}

/* Two runs on one host do not go equally fast: a step against itself is not known exactly where the host paces it. */
static void hosts_do_not_cancel(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    ft_step paced, hidden;
    ft_tally x, y;
    double below, above, calm, unused;
    fill_step(&now, m, &paced);
    hidden = paced;
    hidden.pace = paced.pace = NULL;
    hidden.ranks = paced.ranks = 2;
    hidden.idle_ms = 0, hidden.host_ms = 0.1 * hidden.step_ms;
    paced.idle_ms = 0.5 * paced.step_ms, paced.host_ms = paced.step_ms;
    assert_int_equal(ft__tally(m->graph, &paced, false, 0, m->arena, &x, NULL), FT_OK);
    assert_int_equal(ft__tally(m->graph, &hidden, false, 0, m->arena, &y, NULL), FT_OK);
    assert_true(x.late[FT_HOST_OF_BOTH] > x.late[FT_HOST_OF_RUN] && x.early[FT_HOST_OF_RUN] > 0);
    assert_true(!(y.late[FT_HOST_OF_BOTH] > 0) && !(y.early[FT_HOST_OF_BOTH] > 0));
    ft__difference(&x, &x, 1, false, 0.9, &below, &above);
    ft__difference(&y, &y, 1, false, 0.9, &calm, &unused);
    assert_true(below > 1.5 * calm && above > 1.5 * calm);
    ft__arena_free(m->arena);
}

/* -- the checklist ----------------------------------------------------------------------------- */

/* Unaligned rows take twice the time; `*user`: multiples of 64 a tenth of it. */
static ft_status probed(const ft_op *op, void *user, ft_forecast *out, ft_error *err)
{
    (void)err;
    double ms = (double)op->u.gemm.n;
    if (op->u.gemm.n % 8) ms *= 2;
    if (*(bool *)user && op->u.gemm.n % 64 == 0) ms /= 5;
    *out = (ft_forecast){.ms = ms};
    return FT_OK;
}

static void the_cheapest_fix(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    ft_step step;
    fill_step(&now, m, &step);
    for (int wide = 0; wide < 2; wide++) {
        bool steep = wide;
        ft_probe probe = {probed, &steep};
        ft_lint *found;
        size_t count;
        assert_int_equal(ft__lint(m->graph, &step, &device, &probe, m->arena, &found, &count, NULL), FT_OK);
        assert_int_equal(count, 1);
        assert_int_equal(found[0].kind, FT_LINT_ALIGNMENT);
        assert_int_equal(found[0].from, 1001);
        assert_int_equal(found[0].to, wide ? 1024 : 1008);
        assert_true(found[0].saves_ms > 0.4 * step.kernels[0].forecast.ms);
    }
    ft__arena_free(m->arena);
}

/* -- memory ------------------------------------------------------------------------------------ */

static ft_status explain(void *context)
{
    ft_context *ft;
    ft_options options = {.predictor = "roofline"};
    FT_TRY(ft_open(&ft, &options, NULL));
    char *text = ft_answer(ft, context);
    ft_status status = !text || strstr(text, "out_of_memory") ? FT_E_MEMORY : FT_OK;
    if (text && status == FT_OK && !strstr(text, "\"ok\":true")) fail_msg("%s", text);
    free(text);
    ft_close(ft);
    return status;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    char request_text[] =
        "{\"task\":\"forward\",\"model\":{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_embd\":72,\"n_head\":"
        "9},\"gpu\":\"h200_sxm\",\"batch\":1,\"seq\":16,\"advice\":true}";
    failing_alloc_at(0, false);
    assert_int_equal(explain(request_text), FT_OK);
    const long all = failing_alloc_count();
    assert_true(all > 100);
    for (long n = 1; n <= all; n += 1 + all / 150) { /* every one would take long: the catalogue is read each time */
        failing_alloc_at(n, n % 2);
        ft_status status = explain(request_text);
        failing_alloc_at(0, false);
        assert_true(status == FT_OK || status == FT_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds_a_step),    cmocka_unit_test(no_share_is_below_nothing),
        cmocka_unit_test(equal_kernels_cancel), cmocka_unit_test(hosts_do_not_cancel),
        cmocka_unit_test(the_cheapest_fix),     cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
