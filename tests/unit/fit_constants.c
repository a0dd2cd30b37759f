/* Fitting constants: a family whose truth is known gives it back, and what rows leave open stays where it was put. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu.h"
#include "fit/constants.h"
#include "kernel/kernel.h"
#include "random_op.h"

/* body = max(m * a, n * b) + split c: two roofs, a term that only some rows have, and two constants that nothing in the
 * rows depends on. */
enum { LAUNCH, GAP, A, B, C, UNUSED, FROZEN, THETA_COUNT };
static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = {"launch_us", 2, 0.5, 20, 0.5},
    [GAP] = {"gap_us", 15, 2, 100, 0.7},
    [A] = {"a", 1, 0.05, 20, 1},
    [B] = {"b", 1, 0.05, 20, 1},
    [C] = {"c", 1, 0.05, 20, 1},
    [UNUSED] = {"unused", 0.3, 0.01, 1, 0.5},
    [FROZEN] = {"frozen", 1, 0.5, 2, 0},
};

static void physics(const ft_device *device, const ft_op *op, const double *theta, bool want, ft_physics *out)
{
    (void)device, (void)want;
    double m = 1e-6 * theta[A] * (double)op->u.gemm.m, n = 1e-6 * theta[B] * (double)op->u.gemm.n;
    out->body_ms = fmax(m, n) * theta[FROZEN] + (op->u.gemm.b > 1 ? 1e-3 * theta[C] : 0);
}

static const ft_family family = {
    .name = "synthetic", .parameters = parameters, .parameter_count = THETA_COUNT, .physics = physics};

enum { ROWS = 400 };
static ft_row rows_at[ROWS];
static ft_rows rows;
static uint32_t all_rows[ROWS];
static const double truth[FT_MAX_THETA] = {3.5, 30, 2.2, 0.4, 3, 0.3, 1};

static void start(double *theta)
{
    memset(theta, 0, FT_MAX_THETA * sizeof *theta);
    for (int i = 0; i < THETA_COUNT; i++) theta[i] = parameters[i].start;
}

/* Rows as `theta` would have them, with `noise` (a factor either way), half of them eager calls when asked. */
static ft_subset measured(const double *theta, double noise, bool eager)
{
    random_source r = {21};
    memset(&rows, 0, sizeof rows);
    memset(rows_at, 0, sizeof rows_at);
    rows.at = rows_at;
    rows.count = rows.room = ROWS;
    rows.gpu_count = 2;
    assert_int_equal(FT_OK, ft__catalogue_find("h200_sxm", &rows.gpus[0], NULL));
    assert_int_equal(FT_OK, ft__catalogue_find("t4", &rows.gpus[1], NULL));
    for (uint32_t i = 0; i < ROWS; i++) {
        ft_physics ph;
        ft_row *row = &rows_at[i];
        ft__op_init("gemm", &row->op);
        row->op.u.gemm.m = random_size(&r, 16, 1e6);
        row->op.u.gemm.n = random_size(&r, 16, 1e6);
        row->op.u.gemm.b = 1 + random_below(&r, 2);
        row->op.timing = eager && random_bool(&r) ? FT_TIMING_OP : FT_TIMING_DEVICE;
        row->gpu = (uint16_t)random_below(&r, 2);
        row->weight = 1;
        row->ms = ft__row_model_ms(&family, &rows, row, theta, false, &ph) * exp(noise * (2 * random_unit(&r) - 1));
        all_rows[i] = i;
    }
    return (ft_subset){&rows, all_rows, ROWS};
}

static void assert_near(const char *what, double expected, double got, double within)
{
    if (!(fabs(got / expected - 1) <= within)) fail_msg("%s: %g, expected %g", what, got, expected);
}

/* -- the model of a row -------------------------------------------------------------------------- */

static void a_row_takes_its_launch_its_body_and_its_gap(void **state)
{
    (void)state;
    double theta[FT_MAX_THETA];
    ft_physics ph;
    start(theta);
    measured(theta, 0, false);
    for (int gpu = 0; gpu < 2; gpu++) {
        ft_row row = rows_at[0];
        row.gpu = (uint16_t)gpu;
        row.op.u.gemm.m = row.op.u.gemm.n = 50000;
        row.op.u.gemm.b = 1;
        row.op.timing = FT_TIMING_DEVICE;
        double ms = 2e-3 * 1800 / rows.gpus[gpu].boost_mhz + 0.05; /* launches are spent in clocks */
        assert_near("device time", ms, ft__row_model_ms(&family, &rows, &row, theta, false, &ph), 1e-12);
        row.op.timing = FT_TIMING_OP;
        assert_near("op time", ft__op_time(ms, 15e-3), ft__row_model_ms(&family, &rows, &row, theta, false, &ph),
                    1e-12);
    }
}

static void a_call_takes_the_longer_of_its_gap_and_its_kernel(void **state)
{
    (void)state;
    for (double device = 1e-4; device < 100; device *= 1.3)
        for (double gap = 1e-3; gap < 1; gap *= 2) {
            double ms = ft__op_time(device, gap);
            assert_true(ms >= gap && ms >= device + 0.45 * gap && ms <= 1.05 * fmax(gap, device + 0.55 * gap));
            assert_true(ft__op_time(device * 1.01, gap) >= ms && ft__op_time(device, gap * 1.01) >= ms);
        }
}

/* -- fitting ------------------------------------------------------------------------------------- */

static void known_constants_are_recovered(void **state)
{
    (void)state;
    double center[FT_MAX_THETA], theta[FT_MAX_THETA];
    start(center);
    ft__fit_constants(&family, measured(truth, 0, true), center, 1, 40, theta);
    for (int i = 0; i <= C; i++) assert_near(parameters[i].name, truth[i], theta[i], 0.02);
    ft__fit_constants(&family, measured(truth, 0.1, true), center, 1, 40, theta);
    for (int i = 0; i <= C; i++) assert_near(parameters[i].name, truth[i], theta[i], 0.1);
}

static void what_the_rows_do_not_determine_stays(void **state)
{
    (void)state;
    double center[FT_MAX_THETA], theta[FT_MAX_THETA];
    start(center);
    center[UNUSED] = 0.77;
    ft__fit_constants(&family, measured(truth, 0, false), center, 1, 40,
                      theta); /* no eager call: nothing says the gap */
    assert_near("unused", 0.77, theta[UNUSED], 1e-9);
    assert_near("gap", 15, theta[GAP], 1e-9);
    for (int i = THETA_COUNT; i < FT_MAX_THETA; i++) assert_true(fabs(theta[i]) < 1e-300);
}

static void a_frozen_constant_does_not_move(void **state)
{
    (void)state;
    double center[FT_MAX_THETA], theta[FT_MAX_THETA], other[FT_MAX_THETA];
    memcpy(other, truth, sizeof other);
    other[FROZEN] = 1.5;
    start(center);
    ft__fit_constants(&family, measured(other, 0, false), center, 1, 40, theta);
    assert_near("frozen", 1, theta[FROZEN], 1e-9);
    assert_near("a takes its share", 1.5 * truth[A], theta[A], 0.03);
}

static void constants_stay_inside_their_bounds(void **state)
{
    (void)state;
    double center[FT_MAX_THETA], theta[FT_MAX_THETA], wild[FT_MAX_THETA];
    memcpy(wild, truth, sizeof wild);
    wild[A] = 80;
    wild[B] = 0.001;
    start(center);
    ft__fit_constants(&family, measured(wild, 0, false), center, 1, 60, theta);
    assert_near("a", parameters[A].high, theta[A], 1e-9);
    for (int i = 0; i < THETA_COUNT; i++)
        assert_true(theta[i] >= parameters[i].low * (1 - 1e-12) && theta[i] <= parameters[i].high * (1 + 1e-12));
    center[A] = 1000; /* also where the fit starts outside */
    ft__fit_constants(&family, (ft_subset){&rows, all_rows, 0}, center, 1, 5, theta);
    assert_near("a", parameters[A].high, theta[A], 1e-9);
}

static void no_rows_leave_the_centre(void **state)
{
    (void)state;
    double center[FT_MAX_THETA], theta[FT_MAX_THETA];
    start(center);
    center[A] = 7;
    measured(truth, 0, false);
    ft__fit_constants(&family, (ft_subset){&rows, all_rows, 0}, center, 1, 20, theta);
    for (int i = 0; i < THETA_COUNT; i++) assert_near(parameters[i].name, center[i], theta[i], 1e-9);
    ft__fit_constants(&family, (ft_subset){&rows, all_rows, 0}, center, 1, 20, center); /* in place */
    assert_near("a", 7, center[A], 1e-9);
}

/* One row in twenty ran six times slower: an autotuner's accident, which no physics explains. */
static void accidents_do_not_move_constants(void **state)
{
    (void)state;
    double center[FT_MAX_THETA], theta[FT_MAX_THETA];
    start(center);
    ft_subset s = measured(truth, 0.02, false);
    for (int i = 0; i < ROWS; i += 20) rows_at[i].ms *= 6;
    ft__fit_constants(&family, s, center, 1, 40, theta);
    assert_near("a", truth[A], theta[A], 0.05);
    assert_near("b", truth[B], theta[B], 0.05);
}

static void a_tighter_prior_holds_closer(void **state)
{
    (void)state;
    double center[FT_MAX_THETA], theta[FT_MAX_THETA], before = INFINITY;
    start(center);
    ft_subset s = measured(truth, 0.1, false);
    s.count = 12;
    for (double prior = 1; prior > 0.002; prior /= 3) {
        ft__fit_constants(&family, s, center, prior, 40, theta);
        double moved = fabs(log(theta[A] / center[A])) + fabs(log(theta[B] / center[B]));
        assert_true(moved <= before * 1.01);
        before = moved;
    }
    assert_true(before < 0.1); /* the rows said log(2.2) + log(2.5) */
}

static void heavier_rows_decide(void **state)
{
    (void)state;
    double center[FT_MAX_THETA], theta[FT_MAX_THETA];
    start(center);
    ft_subset s = measured(truth, 0, false);
    for (int i = 0; i < ROWS; i++) {
        bool light = i % 2;
        rows_at[i].weight = light ? 0.01f : 3;
        if (light) rows_at[i].ms *= 1.5;
    }
    ft__fit_constants(&family, s, center, 1, 40, theta);
    assert_near("a", truth[A], theta[A], 0.03);
}

static void the_same_rows_give_the_same_constants(void **state)
{
    (void)state;
    double center[FT_MAX_THETA], first[FT_MAX_THETA], again[FT_MAX_THETA];
    start(center);
    ft__fit_constants(&family, measured(truth, 0.2, true), center, 0.7, 12, first);
    ft__fit_constants(&family, measured(truth, 0.2, true), center, 0.7, 12, again);
    assert_memory_equal(first, again, sizeof first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_takes_its_launch_its_body_and_its_gap),
        cmocka_unit_test(a_call_takes_the_longer_of_its_gap_and_its_kernel),
        cmocka_unit_test(known_constants_are_recovered),
        cmocka_unit_test(what_the_rows_do_not_determine_stays),
        cmocka_unit_test(a_frozen_constant_does_not_move),
        cmocka_unit_test(constants_stay_inside_their_bounds),
        cmocka_unit_test(no_rows_leave_the_centre),
        cmocka_unit_test(accidents_do_not_move_constants),
        cmocka_unit_test(a_tighter_prior_holds_closer),
        cmocka_unit_test(heavier_rows_decide),
        cmocka_unit_test(the_same_rows_give_the_same_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
