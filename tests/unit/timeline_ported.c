/* Transformer Engine as AMD first carried it over: which products that is, and what it adds to them. */
#include "layout_models.h"

#include "device/traits.h"
#include "timeline/ported.h"
#include "timeline/ported_constants.h"

static ft_node product_of(ft_phase phase, ft_dtype dtype)
{
    ft_node n = {.phase = phase};
    n.op = (ft_op){.kind = FT_OP_GEMM, .name = "gemm", .dtype = dtype, .pass = FT_PASS_FWD};
    n.op.u.gemm.b = 1, n.op.u.gemm.m = 4096, n.op.u.gemm.n = 1600, n.op.u.gemm.k = 6400;
    return n;
}

static void ported_are_low_products_of_that_stack_on_those_units(void **state)
{
    (void)state;
    const ft_stack *stack = NULL;
    ft_error err;
    assert_int_equal(ft__stack_find("transformer_engine_2024", &stack, &err), FT_OK);
    ft_workload w = train_work(1, 1024), decode, other;
    w.stack = stack;
    decode = other = w;
    decode.task = FT_DECODE;
    other.stack = NULL;
    ft_device amd = limit_device("mi300x"), nvidia = limit_device("h100_sxm");
    ft_node low = product_of(FT_FORWARD, FT_FP8), wide = product_of(FT_FORWARD, FT_BF16), cast = low;
    cast.op.u.gemm.quantized = 1;
    assert_true(ft__ported(&amd, &w, &low));
    assert_false(ft__ported(&nvidia, &w, &low));
    assert_false(ft__ported(&amd, &decode, &low) || ft__ported(&amd, &other, &low));
    assert_false(ft__ported(&amd, &w, &wide) || ft__ported(&amd, &w, &cast));
}

static double added_at(ft_phase phase, bool cast, ft_at at, int64_t width)
{
    ft_device device = limit_device("mi300x");
    ft_node n = product_of(phase, FT_FP8);
    n.cast = cast, n.at = at, n.op.u.gemm.k = width;
    ft_forecast f = {.ms = 1, .low_ms = 0.8, .high_ms = 1.25};
    ft__apply_ported(&device, &n, &f);
    assert_true(f.low_ms < f.ms && f.ms < f.high_ms);
    return f.ms;
}

static double added(ft_phase phase, bool cast) { return added_at(phase, cast, NULL, 6400); }

/* A forward operand is turned, two bytes; a gradient is cast and turned, four, once for both of its products; weights
 * are with every pass forward. Conversions are instructions. */
static void gradients_are_slower_and_cast_once(void **state)
{
    (void)state;
    ft_device device = limit_device("mi300x");
    double per_ms = device.sms * ft__running_mhz(&device) * 1e3, byte = 1 / (FT_K_PORTED_CAST_BYTES * per_ms),
           converted = FT_K_PORTED_CAST_INSTRUCTIONS / (64 * per_ms), elements = 4096.0 * 6400, weights = 1600.0 * 6400,
           shown = fmax(converted - 4 / (device.memory_gbps * 1e6), 0), slow = 1 / FT_K_PORTED_GRADIENT_SHARE;
    double forward = elements * (2 * byte + shown) + weights * (4 * byte + converted);
    assert_true(fabs(added(FT_FORWARD, false) - 1 - forward) < 1e-9);
    assert_true(fabs(added(FT_RECOMPUTE, false) - added(FT_FORWARD, false)) < 1e-12);
    assert_true(fabs(added(FT_BACKWARD, false) - slow - elements * (4 * byte + converted)) < 1e-9);
    assert_true(fabs(added(FT_BACKWARD, true) - slow) < 1e-9);
    double plain = added_at(FT_FORWARD, false, FT_AT(ATTN_O_PROJ), 6400);
    assert_true(fabs(plain - 1 - (elements + weights) * (4 * byte + converted)) < 1e-9);
}

/* Rows of 1,600 have room for tiles of half as many columns, of 100 for none: lines are filled less. */
static void narrow_rows_fill_less_of_a_line(void **state)
{
    (void)state;
    ft_device device = limit_device("mi300x");
    double per_ms = device.sms * ft__running_mhz(&device) * 1e3, byte = 1 / (FT_K_PORTED_CAST_BYTES * per_ms),
           converted = FT_K_PORTED_CAST_INSTRUCTIONS / (64 * per_ms), slow = 1 / FT_K_PORTED_GRADIENT_SHARE;
    double of[3] = {6400, 1600, 100}, each[3];
    for (int i = 0; i < 3; i++) each[i] = (added_at(FT_BACKWARD, false, NULL, (int64_t)of[i]) - slow) / (4096 * of[i]);
    assert_true(fabs(each[0] - 4 * byte - converted) < 1e-15);
    assert_true(fabs(each[1] - 5 * byte - converted) < 1e-15);
    assert_true(each[2] > each[1]);
}

/* The kernel that undoes GELU reads two matrices four bytes at a time, and casts; nothing else of the stack does. */
static void undoing_gelu_casts_as_well(void **state)
{
    (void)state;
    const ft_stack *stack = NULL;
    ft_error err;
    assert_int_equal(ft__stack_find("transformer_engine_2024", &stack, &err), FT_OK);
    ft_workload w = train_work(1, 1024), wide;
    w.stack = stack, w.dtype = FT_FP8, wide = w, wide.dtype = FT_BF16;
    ft_device amd = limit_device("mi300x"), nvidia = limit_device("h100_sxm");
    ft_node n = {.phase = FT_BACKWARD, .at = FT_AT(MLP_ACT)}, forward = n, silu;
    ft__op_init("gelu_backward", &n.op);
    n.op.u.elementwise.numel = 4096 * 6400;
    forward = silu = n, forward.phase = FT_FORWARD;
    ft__op_init("silu_backward", &silu.op);
    assert_true(ft__ported_undoes(&amd, &w, &n));
    assert_false(ft__ported_undoes(&nvidia, &w, &n) || ft__ported_undoes(&amd, &wide, &n));
    assert_false(ft__ported_undoes(&amd, &w, &forward) || ft__ported_undoes(&amd, &w, &silu));
    ft_forecast f = {.ms = 0.01, .low_ms = 0.008, .high_ms = 0.0125};
    ft__apply_ported_undoing(&amd, &w, &n, 6400, &f);
    double byte = 1 / (FT_K_PORTED_CAST_BYTES * amd.sms * ft__running_mhz(&amd) * 1e3);
    assert_true(fabs(f.ms - (7 - 4) * byte * 4096 * 6400) < 1e-9);
}

/* The lower end of an interval knows the software of today where nobody named a stack. */
static void who_names_it_is_believed(void **state)
{
    (void)state;
    ft_workload w = train_work(1, 1024);
    w.dtype = FT_FP8;
    assert_true(ft__ported_sooner(&w) == 0);
    w.ported = true;
    assert_true(ft__ported_sooner(&w) == FT_K_PORTED_SOONER);
    w.stack = ft__stack(&w);
    assert_true(ft__ported_sooner(&w) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ported_are_low_products_of_that_stack_on_those_units),
        cmocka_unit_test(gradients_are_slower_and_cast_once),
        cmocka_unit_test(narrow_rows_fill_less_of_a_line),
        cmocka_unit_test(undoing_gelu_casts_as_well),
        cmocka_unit_test(who_names_it_is_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
