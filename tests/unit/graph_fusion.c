/* Fusion as a compiler does it: which operators share a kernel. */
#include "fusion_bench.h"

/* -- pointwise ----------------------------------------------------------------------------------- */

/* x.cos().cos() fused costs what x.cos() costs: two passes over memory, not four. */
static void two_cosines_cost_one(void **state)
{
    bench *t = *state;
    open_once(t, "chain");
    ft_ref x = input(t), once = ft__pointwise(&t->b, named_site(t->g, "first"), "cos", x);
    ft_ref twice = ft__pointwise(&t->b, named_site(t->g, "second"), "cos", once);
    ft__block_close(&t->b, twice);
    assert_float_equal(traffic(t->g), 4 * unit, 1);
    fuse(t);
    assert_int_equal(launches(t->g), 1);
    const ft_node *n = fused(t->g, 0);
    assert_float_equal(ft__op_bytes(&n->op), 2 * unit, 1);
    assert_int_equal(n->members, 2);
    assert_string_equal(n->name, "fused_cos");
    assert_int_equal(n->verb, FT_DO_POINTWISE);
    assert_int_equal(n->op.u.elementwise.numel, (int64_t)ROWS * COLS);
    assert_true(makes(t->g, n, twice));
    assert_false(anyone(t->g, makes, once));                /* never in memory */
    assert_true(n->op.u.elementwise.ops_per_element >= 50); /* the arithmetic of both */
}

static void what_is_read_twice_is_loaded_once(void **state)
{
    bench *t = *state;
    open_once(t, "chain");
    ft_ref x = input(t), y = ft__mul(&t->b, named_site(t->g, "square"), x, x);
    y = ft__add(&t->b, named_site(t->g, "sum"), y, x);
    ft__block_close(&t->b, y);
    fuse(t);
    assert_float_equal(traffic(t->g), 2 * unit, 1);
}

static void two_results_of_one_input_share_a_kernel(void **state)
{
    bench *t = *state;
    open_once(t, "chain");
    ft_ref x = input(t);
    ft_ref a = ft__linear(&t->b, named_site(t->g, "left"), ft__pointwise(&t->b, named_site(t->g, "a"), "cos", x), 64,
                          FT_NO_BIAS, FT_WHOLE);
    ft_ref c = ft__linear(&t->b, named_site(t->g, "right"), ft__pointwise(&t->b, named_site(t->g, "b"), "sin", x), 64,
                          FT_NO_BIAS, FT_WHOLE);
    ft__block_close(&t->b, ft__add(&t->b, named_site(t->g, "out"), a, c));
    fuse(t);
    assert_int_equal(launches(t->g), 4);
    assert_float_equal(ft__op_bytes(&fused(t->g, 0)->op), 3 * unit, 1); /* one read, two writes */
}

/* silu(gate) stands before the product that makes `up`; the kernel waits for it. */
static void a_kernel_waits_for_its_second_operand(void **state)
{
    bench *t = *state;
    open_once(t, "mlp");
    ft_ref x = input(t), gate = ft__linear(&t->b, named_site(t->g, "gate"), x, COLS, FT_NO_BIAS, FT_WHOLE);
    ft_ref act = ft__pointwise(&t->b, named_site(t->g, "act"), "silu", gate);
    ft_ref up = ft__linear(&t->b, named_site(t->g, "up"), x, COLS, FT_NO_BIAS, FT_WHOLE),
           h = ft__mul(&t->b, named_site(t->g, "act"), act, up);
    ft__block_close(&t->b, ft__linear(&t->b, named_site(t->g, "down"), h, COLS, FT_NO_BIAS, FT_WHOLE));
    fuse(t);
    assert_int_equal(t->g->node_count, 4);
    assert_string_equal(t->g->nodes[1].name, "up");
    assert_string_equal(t->g->nodes[2].name, "fused_silu_mul");
    assert_float_equal(ft__op_bytes(&t->g->nodes[2].op), 3 * unit, 1);
}

/* A result that a product has read cannot wait for a later one. */
static void no_kernel_stands_before_what_it_reads(void **state)
{
    bench *t = *state;
    open_once(t, "chain");
    ft_ref x = input(t), y = ft__pointwise(&t->b, named_site(t->g, "a"), "cos", x);
    ft_ref z = ft__linear(&t->b, named_site(t->g, "product"), y, COLS, FT_NO_BIAS, FT_WHOLE);
    ft__block_close(&t->b, ft__add(&t->b, named_site(t->g, "residual"), z, y));
    fuse(t);
    assert_int_equal(t->g->node_count, 3);
    assert_true(makes(t->g, &t->g->nodes[0], y));
    assert_int_equal(t->g->nodes[1].verb, FT_DO_LINEAR);
    assert_float_equal(ft__op_bytes(&t->g->nodes[2].op), 3 * unit, 1);
}

static void rotary_halves_are_one_kernel(void **state)
{
    bench *t = *state;
    open_once(t, "rotary");
    ft_build *b = &t->b;
    ft_ref x = input(t), cos = ft__input(b, 64, COLS, 2), sin = ft__input(b, 64, COLS, 2);
    ft_ref straight = ft__mul(b, named_site(b->g, "rotary"), x, cos), first = ft__slice(b, x, ROWS, COLS / 2);
    ft_ref second = ft__pointwise(b, named_site(b->g, "rotary"), "neg", ft__slice(b, x, ROWS, COLS / 2)),
           both[2] = {second, first};
    ft_ref turned = ft__mul(b, named_site(b->g, "rotary"), ft__cat(b, named_site(b->g, "rotary"), 2, both, ROWS, COLS),
                            sin);
    ft__block_close(b, ft__add(b, named_site(b->g, "rotary"), straight, turned));
    fuse(t);
    assert_int_equal(launches(t->g), 1);
    assert_float_equal(traffic(t->g), 2 * unit + 2 * 64 * COLS * 2, 1);
}

/* -- reductions ---------------------------------------------------------------------------------- */

static void eight_kernels_of_a_norm_become_one(void **state)
{
    bench *t = *state;
    open_once(t, "norm");
    ft_ref x = input(t), sum = ft__add(&t->b, named_site(t->g, "residual"), x, input(t)),
           y = written_out_norm(&t->b, sum);
    y = ft__linear(&t->b, named_site(t->g, "product"), y, COLS, FT_NO_BIAS, FT_WHOLE);
    ft__block_close(&t->b, ft__add(&t->b, named_site(t->g, "residual"), sum, y));
    assert_int_equal(launches(t->g), 1 + 8 + 1 + 1);
    fuse(t);
    assert_int_equal(launches(t->g), 3);
    const ft_node *n = fused(t->g, 0);
    assert_int_equal(n->verb, FT_DO_ROW); /* reports count it among the normalisations */
    assert_int_equal(n->members, 9);
    assert_float_equal(ft__op_bytes(&n->op), 4 * unit + COLS * 2, 1); /* two operands in, their sum and its norm out */
}

static void softmax_takes_scale_and_mask_along(void **state)
{
    bench *t = *state;
    open_once(t, "scores");
    ft_ref x = input(t), mask = ft__input(&t->b, 64, COLS, 2);
    ft_ref y = ft__add(&t->b, named_site(t->g, "mask"), ft__pointwise(&t->b, named_site(t->g, "scale"), "mulu", x),
                       mask);
    ft__block_close(&t->b, ft__softmax(&t->b, named_site(t->g, "softmax"), y, true));
    assert_true(launches(t->g) >= 4);
    fuse(t);
    assert_int_equal(launches(t->g), 1);
    assert_float_equal(traffic(t->g), 2 * unit + 64 * COLS * 2, 1);
}

/* Rows of different lengths are different loops. */
static void norms_of_different_rows_stay_apart(void **state)
{
    bench *t = *state;
    open_once(t, "norms");
    ft_ref y = ft__row(&t->b, named_site(t->g, "whole"), "softmax", input(t));
    y = ft__row(&t->b, named_site(t->g, "heads"), "softmax", ft__view(&t->b, y, ROWS * 16, COLS / 16, false));
    ft__block_close(&t->b, y);
    fuse(t);
    assert_int_equal(launches(t->g), 2);
}

/* A slice of a reduction's result lies in another thread's registers. */
static void slices_of_a_norm_are_read_from_memory(void **state)
{
    bench *t = *state;
    open_once(t, "norm");
    ft_ref y = ft__row(&t->b, named_site(t->g, "norm"), "softmax", input(t)),
           half = ft__slice(&t->b, y, ROWS, COLS / 2);
    ft_ref both[2] = {ft__pointwise(&t->b, named_site(t->g, "turn"), "neg", half), ft__slice(&t->b, y, ROWS, COLS / 2)};
    ft__block_close(&t->b, ft__cat(&t->b, named_site(t->g, "turn"), 2, both, ROWS, COLS));
    fuse(t);
    assert_int_equal(launches(t->g), 2);
    assert_true(anyone(t->g, makes, y));
}

/* Four query heads share a key: their gradients are added up where the sum is used, not by a reduction. */
static void sums_of_a_handful_are_written_out(void **state)
{
    bench *t = *state;
    open_once(t, "keys");
    ft_node n = ft__node_of(FT_DO_ROW, named_site(t->g, "repeat_kv"));
    ft__node_in(&n, ft__linear(&t->b, named_site(t->g, "gradient"), input(t), COLS, FT_NO_BIAS, FT_WHOLE));
    ft_ref sum = ft__node_out(&t->b, &n, ROWS / 4, COLS, FT_BF16, 2);
    n.op = ft__row_kernel("sum_cols", FT_PASS_FWD, 4, (int64_t)ROWS / 4 * COLS, FT_BF16);
    ft__emit(&t->b, &n);
    ft__block_close(&t->b, ft__pointwise(&t->b, named_site(t->g, "rotary"), "neg", sum));
    fuse(t);
    assert_int_equal(launches(t->g), 2);
    assert_float_equal(ft__op_bytes(&fused(t->g, 0)->op), 1.25 * unit, 1);
    assert_int_equal(fused(t->g, 0)->op.u.elementwise.numel, (int64_t)ROWS / 4 * COLS);
}

/* -- loops --------------------------------------------------------------------------------------- */

/* The sum that ends a layer and the norm that begins the next are one kernel; the stream is still written. */
static void layers_are_sewn_together(void **state)
{
    bench *t = *state;
    ft_build *b = &t->b;
    open_once(t, "embed");
    ft_ref x = ft__block_close(b, ft__pointwise(b, named_site(b->g, "embed"), "mulu", input(t)));
    x = ft__block_open(b, FT_BLOCK(LAYERS), 12, x);
    ft_ref y = ft__layernorm(b, named_site(b->g, "norm"), x, FT_BIAS);
    y = ft__linear(b, named_site(b->g, "product"), y, COLS, FT_NO_BIAS, FT_WHOLE);
    ft_ref out = ft__block_close(b, ft__add(b, named_site(b->g, "residual"), x, y));
    ft__block_open(b, FT_BLOCK(HEAD), 1, out);
    fuse(t);
    const ft_block *layers = &t->g->blocks[1];
    int running = 0;
    for (int32_t i = layers->first; i < layers->first + layers->count; i++) running += ft__node_runs(&t->g->nodes[i]);
    assert_int_equal(running, 2);
    const ft_node *n = &t->g->nodes[layers->first];
    assert_string_equal(n->name, "fused_add_layernorm");
    /* Two operands in, sum and norm out, and what adding up again costs; weight and bias beside. */
    assert_float_equal(ft__op_bytes(&n->op), 4.75 * unit + 2 * COLS * 2, 1);
    assert_true(makes(t->g, &t->g->nodes[layers->first + layers->count - 1], out));
}

/* -- library calls ------------------------------------------------------------------------------- */

static void nothing_is_fused_into_products(void **state)
{
    bench *t = *state;
    open_once(t, "mlp");
    ft_ref h = ft__linear(&t->b, named_site(t->g, "up"), input(t), COLS, FT_BIAS, FT_WHOLE);
    h = ft__linear(&t->b, named_site(t->g, "down"), ft__pointwise(&t->b, named_site(t->g, "act"), "gelu", h), COLS,
                   FT_BIAS, FT_WHOLE);
    ft__block_close(&t->b, h);
    double before = traffic(t->g);
    fuse(t);
    assert_int_equal(launches(t->g), 3);
    assert_float_equal(traffic(t->g), before, 1);
}

static void odd_products_are_padded(void **state)
{
    bench *t = *state;
    open_once(t, "head");
    ft__block_close(&t->b, ft__linear(&t->b, named_site(t->g, "lm_head"), input(t), 50257, FT_NO_BIAS, FT_WHOLE));
    fuse(t);
    assert_int_equal(launches(t->g), 2);
    assert_string_equal(t->g->nodes[0].name, "pad");
    assert_float_equal(ft__op_bytes(&t->g->nodes[0].op), 2.0 * 50257 * COLS * 2, 2.0 * 8 * COLS * 50257);
    assert_int_equal(t->g->nodes[1].op.u.gemm.n, 50264);
    assert_true(reads(t->g, &t->g->nodes[1], t->g->nodes[0].out[0]));
}

/* Bound by memory, a product gains nothing from a copy of its weights. */
static void thin_products_are_not_padded(void **state)
{
    bench *t = *state;
    open_once(t, "head");
    ft__block_close(
        &t->b, ft__linear(&t->b, named_site(t->g, "head"), ft__input(&t->b, 8, COLS, 2), 50257, FT_NO_BIAS, FT_WHOLE));
    fuse(t);
    assert_int_equal(launches(t->g), 1);
    assert_int_equal(t->g->nodes[0].op.u.gemm.n, 50257);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_cosines_cost_one, start, stop),
        cmocka_unit_test_setup_teardown(what_is_read_twice_is_loaded_once, start, stop),
        cmocka_unit_test_setup_teardown(two_results_of_one_input_share_a_kernel, start, stop),
        cmocka_unit_test_setup_teardown(a_kernel_waits_for_its_second_operand, start, stop),
        cmocka_unit_test_setup_teardown(no_kernel_stands_before_what_it_reads, start, stop),
        cmocka_unit_test_setup_teardown(rotary_halves_are_one_kernel, start, stop),
        cmocka_unit_test_setup_teardown(eight_kernels_of_a_norm_become_one, start, stop),
        cmocka_unit_test_setup_teardown(softmax_takes_scale_and_mask_along, start, stop),
        cmocka_unit_test_setup_teardown(norms_of_different_rows_stay_apart, start, stop),
        cmocka_unit_test_setup_teardown(slices_of_a_norm_are_read_from_memory, start, stop),
        cmocka_unit_test_setup_teardown(sums_of_a_handful_are_written_out, start, stop),
        cmocka_unit_test_setup_teardown(layers_are_sewn_together, start, stop),
        cmocka_unit_test_setup_teardown(nothing_is_fused_into_products, start, stop),
        cmocka_unit_test_setup_teardown(odd_products_are_padded, start, stop),
        cmocka_unit_test_setup_teardown(thin_products_are_not_padded, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
