/* What kernels draw: the watts that our H200's energy counter saw come out, and limits hold on every GPU. */
#include "kernel_limits.h"

#include "kernel/energy.h"
#include "kernel/power.h"

static ft_op op_named(const char *name, ft_dtype dtype)
{
    ft_op op;
    ft__op_init(name, &op);
    op.dtype = dtype;
    return op;
}

static double watts(const ft_device *device, const ft_op *op, double flops, double bytes, double ms)
{
    double joules = ft__kernel_joules(device, op, flops, bytes, ms, 0);
    return ft__energy_of(device, joules, ms, ms, ms, 1).watts;
}

/* data/measurements/h200/power.jsonl, with the times of those rows: what the formula says beside what was drawn. */
static void an_h200_draws_what_its_counter_saw(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        ft_dtype dtype;
        double flops, bytes, ms, watts, within;
    } rows[] = {{"gemm", FT_BF16, 1.0995e12, 4.027e8, 1.6686, 691.5, 0.02}, /* 8192^3: at the limit */
                {"gemm", FT_FP8, 1.0995e12, 2.684e8, 0.9274, 692.9, 0.02},
                {"gemm", FT_FP32, 1.0995e12, 8.053e8, 22.01, 702.4, 0.03},
                {"gemm", FT_BF16, 5.37e8, 5.369e8, 0.1299, 625.4, 0.05}, /* 1 x 16384 x 16384: memory's */
                {"gemm", FT_BF16, 6.32e11, 9.132e8, 6.639, 455.6, 0.05}, /* 50,257 columns: neither */
                {"add", FT_BF16, 2.68e8, 1.611e9, 0.3757, 661.2, 0.05},
                {"add", FT_BF16, 4.19e6, 2.517e7, 0.007295, 302.6, 0.15}, /* in the cache */
                {"softmax", FT_BF16, 1.34e9, 1.074e9, 0.8379, 579.4, 0.12}};
    ft_device h200 = limit_device("h200_sxm");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_op op = op_named(rows[i].op, rows[i].dtype);
        double w = watts(&h200, &op, rows[i].flops, rows[i].bytes, rows[i].ms);
        if (!(fabs(w / rows[i].watts - 1) <= rows[i].within))
            fail_msg("row %zu, %s: %g W where %g were drawn", i, rows[i].op, w, rows[i].watts);
    }
}

/* Between a board that waits and one at its limit, whatever runs; more work in the same time never draws less. */
static void a_board_stays_within_its_limit(void **state)
{
    (void)state;
    static const char *const names[] = {"h200_sxm", "a100_sxm_80gb", "l4", "mi300x", "v100_sxm_32gb", "b200_sxm"};
    for (size_t g = 0; g < sizeof names / sizeof *names; g++) {
        ft_device d = limit_device(names[g]);
        ft_op op = op_named("gemm", FT_FP16);
        double before = 0;
        for (double flops = 1e6; flops < 1e15; flops *= 10) {
            double w = watts(&d, &op, flops, 1e6, 1);
            assert_true(w >= ft__watts_awake(&d) && w <= ft__watts_most(&d) && w <= d.tdp_w && w >= before);
            before = w;
        }
        assert_float_equal(before, ft__watts_most(&d), 1e-6 * before);
    }
}

/* Back to back a kernel is never faster than once; one that draws little takes no longer. */
static void only_what_draws_too_much_slows_down(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op op = op_named("gemm", FT_BF16);
    ft_forecast hot = {.ms = 0.1127, .sustained_ms = 0.1127, .flops = 6.87e10, .bytes = 1.51e8}, calm = hot;
    calm.flops /= 10;
    calm.bytes /= 10;
    assert_float_equal(ft__kernel_steady_ms(&h200, &op, &hot), 0.128, 0.003); /* as measured */
    assert_float_equal(ft__kernel_steady_ms(&h200, &op, &calm), calm.ms, 1e-12);
}

/* Joules are watts times time, inside their interval, which grows with the level. */
static void energy_carries_its_interval(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_energy e = ft__energy_of(&h200, 0.1, 1, 0.9, 1.2, 1), wide = ft__energy_of(&h200, 0.1, 1, 0.9, 1.2, 2);
    assert_float_equal(e.joules, e.watts * 1e-3, 1e-12);
    assert_true(e.low_joules < e.joules && e.joules < e.high_joules && e.node_watts > e.watts);
    assert_true(wide.low_joules < e.low_joules && wide.high_joules > e.high_joules && wide.joules == e.joules);
    h200.tdp_w = 0; /* a sheet without it */
    assert_true(ft__energy_of(&h200, 0.1, 1, 0.9, 1.2, 1).joules == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_h200_draws_what_its_counter_saw),
        cmocka_unit_test(a_board_stays_within_its_limit),
        cmocka_unit_test(only_what_draws_too_much_slows_down),
        cmocka_unit_test(energy_carries_its_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
