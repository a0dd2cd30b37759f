/* Manners: what a kernel is, beyond its operator, costs what it costs and nothing else. */
#include "kernel_limits.h"

#include "kernel/attention_library.h"
#include "kernel/manner.h"

/* Its time on an H200 over the operator's own. */
static double effort_of(unsigned manner, double each, const ft_op *op)
{
    ft_device device = limit_device("h200_sxm");
    return ft__manner_effort(&device, manner, each, op);
}

static ft_op op_of(const char *name, ft_pass pass)
{
    ft_op op;
    ft__op_init(name, &op);
    op.pass = pass;
    if (op.kind == FT_OP_ELEMENTWISE) op.u.elementwise.numel = 1 << 20;
    if (op.kind == FT_OP_ATTENTION) op.u.attention.q_len = op.u.attention.kv_len = 4096;
    return op;
}

static void a_plain_kernel_takes_its_operator_s_time(void **state)
{
    (void)state;
    ft_op gemm = op_of("gemm", FT_PASS_FWD), attention = op_of("attention", FT_PASS_BWD);
    assert_true(effort_of(0, 0, &gemm) == 1 && effort_of(0, 0, &attention) == 1);
    assert_true(ft__manner_traffic(0) == 1);
}

static void every_manner_is_within_reason(void **state)
{
    (void)state;
    const char *const names[] = {"gemm", "attention", "conv2d", "add", "softmax", "argmax"};
    for (unsigned bit = 0; bit < 15; bit++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            for (int pass = 0; pass < 2; pass++) {
                ft_op op = op_of(names[i], pass ? FT_PASS_BWD : FT_PASS_FWD);
                double effort = effort_of(1u << bit, 100, &op);
                if (!(effort >= 0.5 && effort <= 200)) fail_msg("manner %u of %s: %g", bit, names[i], effort);
            }
}

static void masks_and_dropout_multiply(void **state)
{
    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        ft_op op = op_of("attention", pass ? FT_PASS_BWD : FT_PASS_FWD);
        const unsigned mask = FT_MANNER_MASK | FT_MANNER_MASK_ADDED, drop = FT_MANNER_DROPOUT;
        double masked = effort_of(mask, 0, &op), dropped = effort_of(drop, 0, &op);
        assert_true(masked > 1.5 && dropped > 1);
        assert_true(effort_of(mask | drop, 0, &op) == masked * dropped);
    }
    /* One query reads its mask along. */
    ft_op one = op_of("attention", FT_PASS_FWD);
    assert_true(effort_of(FT_MANNER_MASK, 0, &one) == 1 && ft__manner_traffic(FT_MANNER_MASK) > 1);
}

/* cuDNN on an H200, whole passes over those without a mask: windows of 64 tokens, ViT's 197 and 1,024. */
static void a_mask_costs_what_it_was_measured_to(void **state)
{
    (void)state;
    const struct {
        unsigned manner;
        ft_pass pass;
        int64_t keys;
        double measured;
    } at[] = {
        {FT_MANNER_MASK_ADDED, FT_PASS_FWD, 64, 1.6},     {FT_MANNER_MASK_ADDED, FT_PASS_FWD, 1024, 1.9},
        {FT_MANNER_MASK_ADDED, FT_PASS_FWD, 197, 3.4},    {FT_MANNER_MASK_OF_KEYS, FT_PASS_FWD, 197, 3.05},
        {FT_MANNER_MASK_OF_KEYS, FT_PASS_FWD, 198, 1.55}, {FT_MANNER_MASK_ADDED, FT_PASS_BWD, 64, 1.15},
        {FT_MANNER_MASK_ADDED, FT_PASS_BWD, 197, 1.4},    {FT_MANNER_MASK_ADDED, FT_PASS_BWD, 4096, 1.85},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        ft_op op = op_of("attention", at[i].pass);
        op.u.attention.kv_len = at[i].keys;
        double effort = effort_of(at[i].manner, 0, &op);
        if (fabs(effort / at[i].measured - 1) > 0.08) fail_msg("case %zu: %g, measured %g", i, effort, at[i].measured);
    }
}

/* FlashAttention takes no mask: where PyTorch does not prefer cuDNN the memory-efficient kernels do, whose copy of a
 * mask has even rows. */
static void a_mask_may_mean_another_kernel(void **state)
{
    (void)state;
    ft_device hopper = limit_device("h200_sxm"), ampere = limit_device("a100_pcie_40gb"), amd = limit_device("mi210");
    ft_op op = op_of("attention", FT_PASS_FWD);
    op.u.attention.kv_len = 197;
    assert_int_equal(FT_LIBRARY_OPEN, ft__library_of_mask(&hopper, &op));
    assert_int_equal(FT_LIBRARY_OPEN, ft__library_of_mask(&amd, &op));
    double odd = ft__manner_effort(&hopper, FT_MANNER_MASK_ADDED, 0, &op);
    assert_true(ft__manner_effort(&amd, FT_MANNER_MASK_ADDED, 0, &op) < 0.6 * odd);
    op.u.attention.library = ft__library_of_mask(&ampere, &op);
    assert_int_equal(FT_LIBRARY_XFORMERS, op.u.attention.library);
    assert_true(ft__manner_effort(&ampere, FT_MANNER_MASK_ADDED, 0, &op) < 0.5 * odd);
    op.u.attention.library = FT_LIBRARY_FLASH2; /* asked for by name */
    assert_int_equal(FT_LIBRARY_FLASH2, ft__library_of_mask(&ampere, &op));
}

static void fewer_rows_per_expert_are_more_uneven(void **state)
{
    (void)state;
    ft_op op = op_of("gemm", FT_PASS_FWD);
    double before = INFINITY;
    for (double each = 1; each < 1e6; each *= 2) {
        double effort = effort_of(FT_MANNER_UNEVEN, each, &op);
        assert_true(effort <= before && effort > 1 && effort <= 1.5);
        before = effort;
    }
    /* Measured over the batched product of equal shares. */
    double at[][2] = {{1024, 1.13}, {512, 1.2}, {256, 1.35}};
    for (size_t i = 0; i < 3; i++) assert_true(fabs(effort_of(FT_MANNER_UNEVEN, at[i][0], &op) / at[i][1] - 1) < 0.03);
}

/* data/measurements/h200/liger_loop.jsonl: us of the kernel that adds a chunk to the gradient of a head. */
static void a_product_that_adds_up_waits_for_its_result(void **state)
{
    (void)state;
    ft_device hopper = limit_device("h200_sxm");
    double rows[][4] = {
        {128256, 2048, 4, 396.8}, {151936, 1024, 64, 232.5}, {256000, 2048, 64, 800.7}, {128256, 4096, 512, 997}};
    double alone[] = {167.5, 98.8, 321.8, 834.1};
    for (size_t i = 0; i < 4; i++) {
        ft_op op = op_of("gemm", FT_PASS_FWD);
        op.u.gemm.b = 1;
        op.u.gemm.m = (int64_t)rows[i][0];
        op.u.gemm.n = (int64_t)rows[i][1];
        op.u.gemm.k = (int64_t)rows[i][2];
        ft_forecast f = {.ms = alone[i] * 1e-3, .low_ms = alone[i] * 0.9e-3, .high_ms = alone[i] * 1.1e-3},
                    as_it_was = f;
        ft__manner_adds(&hopper, 0, &op, &f);
        assert_true(f.ms == as_it_was.ms);
        ft__manner_adds(&hopper, FT_MANNER_ADDS, &op, &f);
        assert_true(fabs(f.ms * 1e3 / rows[i][3] - 1) < 0.06);
        assert_true(f.low_ms < f.ms && f.ms < f.high_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_kernel_takes_its_operator_s_time),
        cmocka_unit_test(every_manner_is_within_reason),
        cmocka_unit_test(masks_and_dropout_multiply),
        cmocka_unit_test(a_mask_costs_what_it_was_measured_to),
        cmocka_unit_test(a_mask_may_mean_another_kernel),
        cmocka_unit_test(fewer_rows_per_expert_are_more_uneven),
        cmocka_unit_test(a_product_that_adds_up_waits_for_its_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
