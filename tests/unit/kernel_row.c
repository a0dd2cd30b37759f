/* Row operators: limits of the physics, and the kernels' shapes that measurements showed. */
#include "kernel_limits.h"

#include "kernel/families.h"
#include "kernel/predictor.h"
#include "kernel/row_layout.h"

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

/* Where PyTorch turns to another kernel, which is faster. H200, measured, bf16: softmax 8.1 us for 2,048 columns and
 * 3.0 for 4,096; an embedding 7.5 us for sixteen rows and 1.5 for seventeen. */
static bool turns_to_another_kernel(const ft_op *op, const ft_op *larger)
{
    if (!strcmp(op->name, "softmax")) return op->u.row.cols <= 2048 && larger->u.row.cols > 2048;
    return !strcmp(op->name, "embedding") && op->u.row.rows <= 16 && larger->u.row.rows > 16;
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
                    bool falls = (limit_ms(&device, &taller) < ms * 0.999 && !turns_to_another_kernel(&op, &taller)) ||
                                 (limit_ms(&device, &wider) < ms * 0.999 && !turns_to_another_kernel(&op, &wider));
                    if (falls)
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

static ft_row_layout layout(const char *name, ft_pass pass, ft_dtype dtype, int64_t rows, int64_t cols, bool older)
{
    ft_device h200 = limit_device("h200_sxm");
    ft_op op = row(name, pass, rows, cols);
    op.dtype = dtype;
    return ft__row_layout(&h200, &op, older);
}

/* SoftMax.cu: warps up to 2,048 columns, then registers of a block, then shared memory where vectors divide a row. */
static void softmax_has_a_kernel_for_each_width(void **state)
{
    (void)state;
    static const struct {
        int64_t cols;
        ft_pass pass;
        ft_row_kernel kernel;
    } cases[] = {{2048, FT_PASS_FWD, FT_ROW_WARP},      {2049, FT_PASS_FWD, FT_ROW_REGISTERS},
                 {9216, FT_PASS_FWD, FT_ROW_REGISTERS}, {9224, FT_PASS_FWD, FT_ROW_SHARED},
                 {9217, FT_PASS_FWD, FT_ROW_MEMORY},    {32000, FT_PASS_FWD, FT_ROW_MEMORY},
                 {1024, FT_PASS_BWD, FT_ROW_WARP},      {1032, FT_PASS_BWD, FT_ROW_SHARED},
                 {1028, FT_PASS_BWD, FT_ROW_MEMORY}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_row_layout g = layout("softmax", cases[i].pass, FT_BF16, 100, cases[i].cols, false);
        assert_int_equal(cases[i].kernel, g.kernel);
        assert_true((g.again > 0) == (g.kernel == FT_ROW_MEMORY));
        assert_int_equal(FT_ROW_USUAL, layout("softmax", cases[i].pass, FT_BF16, 100, cases[i].cols, true).kernel);
    }
    /* One row begins on a vector, others have a head, which here leaves no whole vectors of all threads. */
    assert_true(layout("softmax", FT_PASS_BWD, FT_BF16, 1, 4156, false).trips <
                layout("softmax", FT_PASS_BWD, FT_BF16, 2, 4156, false).trips / 2);
}

/* vec_size in layer_norm_kernel.cu is four elements, not sixteen bytes. */
static void norms_take_vectors_of_four_in_every_format(void **state)
{
    (void)state;
    ft_row_layout four = layout("rmsnorm", FT_PASS_FWD, FT_BF16, 373, 4012, false),
                  odd = layout("rmsnorm", FT_PASS_FWD, FT_BF16, 373, 4013, false);
    assert_false(four.odd);
    assert_true(four.launches == 1 && four.trips == 8);
    assert_true(odd.odd && odd.launches == 2);
}

/* Weight gradients of 59 rows go eight at a time, of 64 rows sixty-four; of 65,537 narrow rows, as sums of parts. H200,
 * measured, fp32, 64 columns: 5.1 us for 59 rows; bf16: 215 us for 65,417 x 77 and 94 for 72,016 x 154. */
static void weight_gradients_step_with_the_rows(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op few = row("rmsnorm", FT_PASS_BWD, 63, 64), more = row("rmsnorm", FT_PASS_BWD, 64, 64);
    assert_true(limit_ms(&h200, &more) < limit_ms(&h200, &few));
    ft_op walked = row("rmsnorm", FT_PASS_BWD, 65536, 64), parts = row("rmsnorm", FT_PASS_BWD, 65537, 64);
    assert_true(limit_ms(&h200, &parts) < limit_ms(&h200, &walked) / 2);
}

static void few_rows_of_an_embedding_go_one_after_the_other(void **state)
{
    (void)state;
    ft_row_layout few = layout("embedding", FT_PASS_FWD, FT_BF16, 16, 1024, false),
                  more = layout("embedding", FT_PASS_FWD, FT_BF16, 17, 1024, false);
    assert_true(few.kernel == FT_ROW_FEW && few.trips == 16);
    assert_true(more.kernel == FT_ROW_USUAL && more.trips == 1);
}

/* NeuSight's tables are of 2024: whoever was fitted to them answers for the kernels of then. */
static void experts_know_whose_kernels_they_saw(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        bool older;
    } cases[] = {{"v100_pcie_32gb", true}, {"mi210", true}, {"h200_sxm", false}};
    ft_predictor *p;
    assert_int_equal(FT_OK, ft__predictor_open(NULL, &p, NULL));
    ft_op op = row("softmax", FT_PASS_FWD, 64, 64);
    int variant = ft__row_family.variant_of(&op);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_device device = limit_device(cases[i].gpu);
        ft_kinship kinship;
        const ft_expert *e = ft__predictor_expert(p, &ft__row_family, variant, &device, &kinship);
        assert_int_equal(FT_KIN_SELF, kinship);
        assert_true(!(e->flags & FT_EXPERT_OLDER) == !cases[i].older);
    }
    ft__predictor_close(p);
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
        cmocka_unit_test(softmax_has_a_kernel_for_each_width),
        cmocka_unit_test(norms_take_vectors_of_four_in_every_format),
        cmocka_unit_test(weight_gradients_step_with_the_rows),
        cmocka_unit_test(few_rows_of_an_embedding_go_one_after_the_other),
        cmocka_unit_test(experts_know_whose_kernels_they_saw),
        cmocka_unit_test(a_device_nobody_measured_gets_a_sane_answer),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
