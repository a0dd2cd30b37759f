/* Row operators: limits of the physics, and the kernels' shapes that measurements showed. */
#include "kernel_limits.h"

#include "kernel/families.h"

static ft_op row(const char *name, ft_pass pass, int64_t rows, int64_t cols)
{
    ft_op op;
    ft__op_init(name, &op);
    assert_int_equal(FT_OP_ROW, op.kind);
    op.pass = pass;
    op.dtype = FT_FP32;
    op.u.row.rows = rows;
    op.u.row.cols = cols;
    return op;
}

static bool has_backward(int i) { return ft__row_ops[i].back_reads + ft__row_ops[i].back_writes > 0; }

static void no_operator_beats_the_roofline(void **state)
{
    (void)state;
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (int i = 0; i < ft__row_op_count; i++)
            for (int pass = FT_PASS_FWD; pass <= (has_backward(i) ? FT_PASS_FWD_BWD : FT_PASS_FWD); pass++)
                for (int64_t rows = 2; rows < 3000000; rows *= 13)
                    for (int64_t cols = 3; cols < 200000; cols *= 11) {
                        ft_op op = row(ft__row_ops[i].name, (ft_pass)pass, rows, cols);
                        assert_above_floor(&device, &op);
                    }
    }
}

static void twice_the_rows_or_columns_is_never_faster(void **state)
{
    (void)state;
    static const char *const names[] = {"softmax", "layernorm", "rmsnorm", "bias_add", "transpose_copy", "embedding"};
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            for (int64_t rows = 2; rows < 2000000; rows *= 2)
                for (int64_t cols = 2048; cols < 40000; cols *= 2) {
                    ft_op op = row(names[i], FT_PASS_FWD, rows, cols),
                          taller = row(names[i], FT_PASS_FWD, 2 * rows, cols);
                    ft_op wider = row(names[i], FT_PASS_FWD, rows, 2 * cols);
                    double ms = limit_ms(&device, &op);
                    if (limit_ms(&device, &taller) < ms * 0.999 || limit_ms(&device, &wider) < ms * 0.999)
                        fail_msg("%s on %s falls beyond %lld x %lld", names[i], device.name, (long long)rows,
                                 (long long)cols);
                }
    }
}

static void bandwidth_only_helps(void **state)
{
    (void)state;
    ft_device device = limit_device("a100_pcie_40gb");
    for (int i = 0; i < ft__row_op_count; i++) {
        ft_op small = row(ft__row_ops[i].name, FT_PASS_FWD, 64, 777),
              large = row(ft__row_ops[i].name, FT_PASS_FWD, 65536, 4096);
        assert_falls_with_bandwidth(device, &small);
        assert_falls_with_bandwidth(device, &large);
    }
}

/* V100, measured through NeuSight: softmax reaches 820 GB/s up to 1,024 columns and half of it from 8,192 on, where the
 * rows in flight no longer fit the cache and every row is read three times. */
static void rows_read_again_cost_bandwidth_once_they_leave_the_cache(void **state)
{
    (void)state;
    ft_device v100 = limit_device("v100_pcie_32gb");
    ft_op narrow = row("softmax", FT_PASS_FWD, 1 << 18, 1024), wide = row("softmax", FT_PASS_FWD, 1 << 14, 16384);
    double ratio = limit_ms(&v100, &wide) / limit_ms(&v100, &narrow); /* the same number of elements */
    assert_true(ratio > 1.6 && ratio < 2.4);
    ft_device l4 = limit_device("l4"); /* 48 MiB of cache */
    ratio = limit_ms(&l4, &wide) / limit_ms(&l4, &narrow);
    assert_true(ratio > 0.9 && ratio < 1.2);
}

/* H200, measured: 33.0 us for 958 rows of 4,096 columns, 33.5 us for 5,381 rows; a thread with under 256 values sums
 * them alone, beyond that blocks share a sum. */
static void a_thousand_rows_can_take_as_long_to_sum_as_five_thousand(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op few = row("sum_cols", FT_PASS_FWD, 958, 4096), many = row("sum_cols", FT_PASS_FWD, 5381, 4096);
    double ratio = limit_ms(&h200, &few) / limit_ms(&h200, &many);
    assert_true(ratio > 0.6 && ratio < 3);
}

/* H200, measured: 5.8, 10.0, 31.4 and 72 us for 8, 30, 317 and 1,080 rows of 2,048: fewer threads go along each row. */
static void cumsum_slows_down_with_the_number_of_rows_long_before_memory_does(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    static const int64_t rows[] = {8, 30, 317, 1080};
    double before = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_op op = row("cumsum", FT_PASS_FWD, rows[i], 2048);
        double ms = limit_ms(&h200, &op);
        assert_true(ms > 1.4 * before);
        before = ms;
    }
}

static void a_gradient_has_a_name_of_its_own(void **state)
{
    (void)state;
    ft_op op;
    ft__op_init("layernorm_backward", &op);
    assert_int_equal(FT_OP_ROW, op.kind);
    assert_int_equal(FT_PASS_BWD, op.pass);
    assert_string_equal("layernorm", op.name);
    int variant = ft__row_family.variant_of(&op);
    assert_string_equal("layernorm_backward", ft__row_family.variant_name(variant));
    assert_string_equal("layernorm", ft__row_family.variant_name(ft__row_family.variant_fallback(variant)));
}

static void an_embedding_gradient_pays_for_its_table(void **state)
{
    (void)state;
    ft_op op = row("embedding", FT_PASS_BWD, 10, 1024);
    double with_default = ft__op_bytes(&op);
    op.u.row.vocab = 1000;
    assert_true(ft__op_bytes(&op) < with_default / 40);
    ft_device h200 = limit_device("h200_sxm");
    assert_above_floor(&h200, &op);
}

static void a_transposed_vector_is_free(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op vector = row("transpose_copy", FT_PASS_FWD, 1, 50000), matrix = row("transpose_copy", FT_PASS_FWD, 2, 25000);
    assert_true(limit_ms(&h200, &vector) < 0.0005);
    assert_true(limit_ms(&h200, &matrix) > 0.001);
}

static void a_device_nobody_measured_gets_a_sane_answer(void **state)
{
    (void)state;
    ft_device stranger = limit_stranger();
    for (int i = 0; i < ft__row_op_count; i++) {
        ft_op op = row(ft__row_ops[i].name, FT_PASS_FWD, 4096, 4096);
        double ms = limit_ms(&stranger, &op), roof = ft__roofline_ms(&stranger, &op);
        assert_true(ms > roof && ms < 20 * roof);
        op.timing = FT_TIMING_OP;
        assert_true(limit_ms(&stranger, &op) > ms);
    }
}

static void tables_are_sound(void **state)
{
    (void)state;
    assert_sound_tables(&ft__row_family);
    assert_true(2 * ft__row_op_count <= FT_MAX_VARIANTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_operator_beats_the_roofline),
        cmocka_unit_test(twice_the_rows_or_columns_is_never_faster),
        cmocka_unit_test(bandwidth_only_helps),
        cmocka_unit_test(rows_read_again_cost_bandwidth_once_they_leave_the_cache),
        cmocka_unit_test(a_thousand_rows_can_take_as_long_to_sum_as_five_thousand),
        cmocka_unit_test(cumsum_slows_down_with_the_number_of_rows_long_before_memory_does),
        cmocka_unit_test(a_gradient_has_a_name_of_its_own),
        cmocka_unit_test(an_embedding_gradient_pays_for_its_table),
        cmocka_unit_test(a_transposed_vector_is_free),
        cmocka_unit_test(a_device_nobody_measured_gets_a_sane_answer),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
