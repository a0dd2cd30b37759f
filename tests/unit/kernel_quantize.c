/* Quantisation: limits of the physics. */
#include "kernel_limits.h"

#include "kernel/families.h"

static const char *const names[] = {"quantize",      "quantize_rows", "quantize_static",
                                    "quantize_cast", "scale_matrix",  "dequantize"};
enum { NAMES = sizeof names / sizeof *names };

static ft_op quantize(const char *name, int64_t rows, int64_t cols)
{
    ft_op op;
    ft__op_init(name, &op);
    assert_int_equal(FT_OP_QUANTIZE, op.kind);
    assert_int_equal(FT_FP8, op.dtype);
    op.u.quantize.rows = rows;
    op.u.quantize.cols = cols;
    return op;
}

static void no_operator_beats_the_roofline(void **state)
{
    (void)state;
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (int i = 0; i < NAMES; i++)
            for (int64_t rows = 1; rows < 10000000; rows *= 19)
                for (int64_t cols = 1; cols < 100000; cols *= 17) {
                    ft_op op = quantize(names[i], rows, cols);
                    assert_above_floor(&device, &op);
                }
    }
}

static void time_grows_with_rows_and_columns(void **state)
{
    (void)state;
    ft_device device = limit_device("b200_sxm");
    for (int i = 0; i < NAMES; i++)
        for (int64_t rows = 1; rows < 1000000; rows *= 2) {
            ft_op op = quantize(names[i], rows, 4096), taller = quantize(names[i], 2 * rows, 4096);
            ft_op wider = quantize(names[i], rows, 8192);
            double ms = limit_ms(&device, &op);
            assert_true(limit_ms(&device, &taller) >= ms && limit_ms(&device, &wider) >= ms);
            assert_falls_with_bandwidth(device, &op);
        }
}

/* H200, measured on 30 million elements: cast 28, static scale 95, tensor's own scale 231 us. */
static void each_step_of_eager_quantisation_is_a_pass(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op cast = quantize("quantize_cast", 7500, 4000), fixed = quantize("quantize_static", 7500, 4000);
    ft_op own = quantize("quantize", 7500, 4000);
    assert_true(1.5 * limit_ms(&h200, &cast) < limit_ms(&h200, &fixed));
    assert_true(1.5 * limit_ms(&h200, &fixed) < limit_ms(&h200, &own));
}

static void a_device_nobody_measured_gets_a_sane_answer(void **state)
{
    (void)state;
    ft_device stranger = limit_stranger();
    for (int i = 0; i < NAMES; i++) {
        ft_op op = quantize(names[i], 1000, 1000);
        double ms = limit_ms(&stranger, &op), roof = ft__roofline_ms(&stranger, &op);
        assert_true(ms > roof && ms < 20 * roof + 0.1);
    }
}

static void tables_are_sound(void **state)
{
    (void)state;
    assert_sound_tables(&ft__quantize_family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_operator_beats_the_roofline),
        cmocka_unit_test(time_grows_with_rows_and_columns),
        cmocka_unit_test(each_step_of_eager_quantisation_is_a_pass),
        cmocka_unit_test(a_device_nobody_measured_gets_a_sane_answer),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
