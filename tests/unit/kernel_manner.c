/* Manners: what a kernel is, beyond its operator, costs what it costs and nothing else. */
#include "kernel_limits.h"

#include "kernel/manner.h"

static ft_op op_of(const char *name, ft_pass pass)
{
    ft_op op;
    ft__op_init(name, &op);
    op.pass = pass;
    if (op.kind == FT_OP_ELEMENTWISE) op.u.elementwise.numel = 1 << 20;
    return op;
}

static void a_plain_kernel_takes_its_operator_s_time(void **state)
{
    (void)state;
    ft_op gemm = op_of("gemm", FT_PASS_FWD), attention = op_of("attention", FT_PASS_BWD);
    assert_true(ft__manner_effort(0, 0, &gemm) == 1 && ft__manner_effort(0, 0, &attention) == 1);
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
                double effort = ft__manner_effort(1u << bit, 100, &op);
                if (!(effort >= 0.5 && effort <= 200)) fail_msg("manner %u of %s: %g", bit, names[i], effort);
            }
}

static void masks_and_dropout_multiply(void **state)
{
    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        ft_op op = op_of("attention", pass ? FT_PASS_BWD : FT_PASS_FWD);
        const unsigned mask = FT_MANNER_MASK | FT_MANNER_MASK_ADDED, drop = FT_MANNER_DROPOUT;
        double masked = ft__manner_effort(mask, 0, &op), dropped = ft__manner_effort(drop, 0, &op);
        assert_true(masked > 1.5 && dropped > 1);
        assert_true(ft__manner_effort(mask | drop, 0, &op) == masked * dropped);
    }
    /* One query reads its mask along. */
    ft_op one = op_of("attention", FT_PASS_FWD);
    assert_true(ft__manner_effort(FT_MANNER_MASK, 0, &one) == 1 && ft__manner_traffic(FT_MANNER_MASK) > 1);
}

static void fewer_rows_per_expert_are_more_uneven(void **state)
{
    (void)state;
    ft_op op = op_of("gemm", FT_PASS_FWD);
    double before = INFINITY;
    for (double each = 1; each < 1e6; each *= 2) {
        double effort = ft__manner_effort(FT_MANNER_UNEVEN, each, &op);
        assert_true(effort <= before && effort > 1 && effort <= 1.5);
        before = effort;
    }
    /* Measured over the batched product of equal shares. */
    double at[][2] = {{1024, 1.13}, {512, 1.2}, {256, 1.35}};
    for (size_t i = 0; i < 3; i++)
        assert_true(fabs(ft__manner_effort(FT_MANNER_UNEVEN, at[i][0], &op) / at[i][1] - 1) < 0.03);
}

static void rows_that_share_an_index_wait_for_each_other(void **state)
{
    (void)state;
    ft_op op = op_of("add", FT_PASS_FWD);
    assert_true(ft__manner_effort(FT_MANNER_MEET, 65, &op) > 50);
    assert_true(ft__manner_effort(FT_MANNER_MEET, 1e-3, &op) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_kernel_takes_its_operator_s_time),
        cmocka_unit_test(every_manner_is_within_reason),
        cmocka_unit_test(masks_and_dropout_multiply),
        cmocka_unit_test(fewer_rows_per_expert_are_more_uneven),
        cmocka_unit_test(rows_that_share_an_index_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
