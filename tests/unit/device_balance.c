/* Peak rates from units per clock, and the machine balance, against the figures of the literature. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/balance.h"
#include "device/gpu.h"

static void assert_near(double expected, double got, double tolerance)
{
    if (!(fabs(expected - got) <= tolerance)) fail_msg("expected %.10g, got %.10g", expected, got);
}

static ft_device find(const char *name)
{
    ft_device device;
    assert_int_equal(FT_OK, ft__catalogue_find(name, &device, NULL));
    return device;
}

/* What units x clock give, in TFLOP/s: the fp32 lanes at the boost clock; the matrix units at the clock their peak is
 * quoted at, for a format that runs `factor` times as fast as fp16. */
static double vector_rate(const ft_device *d) { return 2.0 * d->sms * d->lanes_per_sm * d->boost_mhz * 1e-6; }
static double matrix_rate(const ft_device *d, double factor)
{
    return 2.0 * d->sms * d->matrix_fma_per_clk_sm * factor * d->matrix_mhz * 1e-6;
}

static void a100_peaks_follow_from_units_per_clock(void **state)
{
    (void)state;
    ft_device a100 = find("a100_sxm_40gb");
    assert_near(19.5, vector_rate(&a100), 0.05);
    assert_near(312, matrix_rate(&a100, 1), 0.5);
    assert_near(156, matrix_rate(&a100, 0.5), 0.5); /* 108 x 512 x 2 x 1.41 GHz */
}

static void h100_matrix_peak_is_at_its_own_clock(void **state)
{
    (void)state;
    ft_device h100 = find("h100_sxm");
    assert_near(h100.peak_tflops[FT_BF16], matrix_rate(&h100, 1), 1);
    assert_near(h100.peak_tflops[FT_FP32], vector_rate(&h100), 0.1);
}

static void machine_balance_is_peak_over_bandwidth(void **state)
{
    (void)state;
    ft_device a100 = find("a100_sxm_40gb");
    assert_near(201, ft__machine_balance(&a100, FT_FP16), 1);
    assert_near(0, ft__machine_balance(&a100, FT_FP8), 0);
    assert_near(295, ft__machine_balance(&(ft_device){.peak_tflops = {[FT_BF16] = 989}, .memory_gbps = 3350}, FT_BF16),
                1);
}

static void bandwidth_grows_towards_the_arithmetic(void **state)
{
    (void)state;
    for (size_t i = 0; i < ft__catalogue_count(); i++) {
        ft_device d = find(ft__catalogue_name(i));
        ft_memory_level levels[FT_MEMORY_LEVELS];
        ft__memory_levels(&d, levels);
        double outer = 0;
        for (int l = FT_MEMORY_LEVELS - 1; l >= 0; l--) {
            assert_true(levels[l].bytes > 0 && *levels[l].name && *levels[l].basis);
            if (levels[l].gbps == 0) continue;
            if (levels[l].gbps <= outer) fail_msg("%s: %s", d.name, levels[l].name);
            outer = levels[l].gbps;
        }
    }
    ft_device a100 = find("a100_sxm_80gb"), a30 = find("a30");
    ft_memory_level levels[FT_MEMORY_LEVELS];
    ft__memory_levels(&a100, levels);
    assert_string_equal("shared memory", levels[1].name);
    assert_near(19491.84, levels[1].gbps, 0.01); /* 108 x 128 B x 1.41 GHz */
    assert_near(7219.2, levels[2].gbps, 0.01);   /* 5120 B x 1.41 GHz */
    assert_near(2039, levels[3].gbps, 0);
    ft__memory_levels(&a30, levels);
    assert_near(3072 * 1.44, levels[2].gbps, 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a100_peaks_follow_from_units_per_clock),
        cmocka_unit_test(h100_matrix_peak_is_at_its_own_clock),
        cmocka_unit_test(machine_balance_is_peak_over_bandwidth),
        cmocka_unit_test(bandwidth_grows_towards_the_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
