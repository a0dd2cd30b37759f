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

static double added(ft_phase phase, bool cast)
{
    ft_device device = limit_device("mi300x");
    ft_node n = product_of(phase, FT_FP8);
    n.cast = cast;
    ft_forecast f = {.ms = 1, .low_ms = 0.8, .high_ms = 1.25};
    ft__apply_ported(&device, &n, &f);
    assert_true(f.low_ms < f.ms && f.ms < f.high_ms);
    return f.ms;
}

/* A forward operand is turned, two bytes; a gradient is cast and turned, four, once for both of its products. */
static void gradients_are_slower_and_cast_once(void **state)
{
    (void)state;
    ft_device device = limit_device("mi300x");
    double clocks = FT_K_PORTED_CAST_BYTES * device.sms * ft__running_mhz(&device) * 1e3, elements = 4096.0 * 6400,
           slow = 1 / FT_K_PORTED_GRADIENT_SHARE;
    assert_true(fabs(added(FT_FORWARD, false) - 1 - 2 * elements / clocks) < 1e-9);
    assert_true(fabs(added(FT_RECOMPUTE, false) - added(FT_FORWARD, false)) < 1e-12);
    assert_true(fabs(added(FT_BACKWARD, false) - slow - 4 * elements / clocks) < 1e-9);
    assert_true(fabs(added(FT_BACKWARD, true) - slow) < 1e-9);
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
        cmocka_unit_test(who_names_it_is_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
