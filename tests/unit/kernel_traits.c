/* Forecasts read traits and figures: not the name of a generation, not the year; and each trait is read by somebody. */
#include "kernel_limits.h"
#include "random_op.h"
#include "shipped_predictor.h"

#include "comm/cluster.h"
#include "comm/collective.h"
#include "device/traits.h"
#include "kernel/power.h"
#include "memory/resident.h"

enum { OPS = 40 * RANDOM_UNKNOWN }; /* all kinds but the last, which has no family */

/* Every family on the table's starting constants, where no measurement has a say. */
static void assert_same_physics(const ft_device *a, const ft_device *b)
{
    random_source random = {41};
    for (int i = 0; i < OPS; i++) {
        ft_op op = random_op(&random, (random_kind)(i % RANDOM_UNKNOWN), a);
        double x = limit_ms(a, &op), y = limit_ms(b, &op);
        if (x < y || x > y) fail_msg("%s: %g and %g ms", op.name, x, y);
    }
}

static bool physics_differ(const ft_device *a, const ft_device *b)
{
    random_source random = {43};
    for (int i = 0; i < OPS; i++) {
        ft_op op = random_op(&random, (random_kind)(i % RANDOM_UNKNOWN), a);
        double x = limit_ms(a, &op), y = limit_ms(b, &op);
        if (x < y || x > y) return true;
    }
    return false;
}

static void neither_generation_nor_year_nor_name_is_physics(void **state)
{
    (void)state;
    for (int i = 0; i < LIMIT_DEVICES; i++) {
        ft_device known = limit_device(limit_devices[i]), invented = known;
        strcpy(invented.name, "r200");
        strcpy(invented.generation, "rubin");
        invented.year = 2027;
        assert_same_physics(&known, &invented);
        assert_true(ft__energy_pj(&known, FT_BF16) == ft__energy_pj(&invented, FT_BF16));
        assert_true(ft__device_capacity(&known) == ft__device_capacity(&invented));
        assert_true(ft__library_workspace(&known, true) == ft__library_workspace(&invented, true));
        ft_tier a, b;
        ft__tier_inside(&known, 8, &a);
        ft__tier_inside(&invented, 8, &b);
        assert_int_equal(a.switched, b.switched);
        assert_int_equal(a.reduces, b.reduces);
    }
}

/* Not measured under its new name, it is forecast by the constants of all GPUs; they are of the same size. */
static void an_invented_gpu_is_forecast_near_its_model(void **state)
{
    (void)state;
    ft_device b200 = limit_device("b200_sxm"), invented = b200;
    strcpy(invented.name, "r200");
    strcpy(invented.generation, "rubin");
    for (int64_t n = 1024; n <= 16384; n *= 2) {
        ft_op op;
        ft_forecast known, stranger;
        ft__op_init("linear", &op);
        op.dtype = FT_BF16;
        op.u.gemm.m = op.u.gemm.n = op.u.gemm.k = n;
        assert_int_equal(FT_OK, ft__kernel_forecast(predictor, &b200, &op, 0.9, &known, NULL));
        assert_int_equal(FT_OK, ft__kernel_forecast(predictor, &invented, &op, 0.9, &stranger, NULL));
        assert_int_equal(FT_SOURCE_PHYSICS, stranger.source);
        assert_true(stranger.ms > known.ms / 1.5 && stranger.ms < known.ms * 1.5);
    }
}

static void each_trait_is_read(void **state)
{
    (void)state;
    ft_device b200 = limit_device("b200_sxm"), a100 = limit_device("a100_pcie_40gb"), other = b200;
    other.matrix_issue = FT_ISSUE_WGMMA;
    assert_true(physics_differ(&b200, &other));
    other.matrix_issue = FT_ISSUE_MMA;
    assert_true(physics_differ(&b200, &other));
    other = a100;
    other.async_copy = FT_COPY_TMA;
    assert_true(physics_differ(&a100, &other));
    other = a100;
    other.issue_lanes_per_sm = 64; /* offsets of a transposed view wait for the arithmetic */
    ft_op op;
    ft__op_init("add", &op);
    op.dtype = FT_FP32;
    op.u.elementwise.numel = 1 << 26;
    op.u.elementwise.pattern = FT_PATTERN_STRIDED;
    assert_true(limit_ms(&other, &op) > limit_ms(&a100, &op));
    other = a100;
    other.dual_issue = true;
    assert_true(physics_differ(&a100, &other));
    other = a100;
    other.l2_partitions = 1;
    assert_true(physics_differ(&a100, &other));
    other = b200;
    other.matrix_pj_per_flop *= 2;
    assert_true(ft__energy_pj(&other, FT_FP8) > 1.9 * ft__energy_pj(&b200, FT_FP8));
    other.matrix_pj_per_flop = 0; /* nobody measured it: by the process */
    assert_true(ft__energy_pj(&other, FT_BF16) > 0);
    ft__op_init("attention", &op);
    op.dtype = op.kv_dtype = FT_BF16;
    op.u.attention.batch = 1;
    op.u.attention.heads = op.u.attention.kv_heads = 64;
    op.u.attention.q_len = op.u.attention.kv_len = 8192;
    op.u.attention.head_dim = 128;
    other = b200;
    other.exp_per_clk_per_sm *= 2; /* the exponentials hold attention there */
    assert_true(limit_ms(&other, &op) < 0.95 * limit_ms(&b200, &op));
    const double ms = limit_ms(&b200, &op);
    other.exp_per_clk_per_sm = 0; /* a program of before the field: as most GPUs, which b200 is */
    assert_true(limit_ms(&other, &op) > 0.999 * ms && limit_ms(&other, &op) < 1.001 * ms);
    other = b200;
    other.inline_ecc = true;
    assert_true(ft__device_capacity(&other) < 0.94 * ft__device_capacity(&b200));
    ft_tier mesh, switched;
    ft__tier_inside(&b200, 8, &switched);
    other = b200;
    other.link_switched = other.link_reduces = false;
    ft__tier_inside(&other, 8, &mesh);
    assert_true(switched.switched && switched.reduces && !mesh.switched && !mesh.reduces);
    ft__tier_op(&switched, FT_COLLECTIVE_ALL_REDUCE, 65536, 8, &op);
    other = b200;
    other.dies = 1;
    assert_true(limit_ms(&other, &op) < limit_ms(&b200, &op));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neither_generation_nor_year_nor_name_is_physics),
        cmocka_unit_test(an_invented_gpu_is_forecast_near_its_model),
        cmocka_unit_test(each_trait_is_read),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
