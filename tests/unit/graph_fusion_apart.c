/* Fusion by a compiler whose reductions end their kernels, and that does not compute costly functions again. */
#include "fusion_bench.h"

static void backward(bench *t)
{
    assert_int_equal(t->b.status, FT_OK);
    assert_int_equal(ft__graph_backward(t->g, FT_RECOMPUTE_NONE, true, (ft_accumulation){0}, &t->err), FT_OK);
}

static void fuse_by(bench *t, unsigned how)
{
    assert_int_equal(t->b.status, FT_OK);
    assert_int_equal(ft__graph_fuse(t->g, how, &t->err), FT_OK);
}

/* A sum and its norm between two products. */
static void build_norm(bench *t)
{
    ft_build *b = &t->b;
    open_once(t, "layer");
    ft_ref x = ft__linear(b, named_site(b->g, "first"), input(t), COLS, FT_NO_BIAS, FT_WHOLE);
    ft_ref sum = ft__add(b, named_site(b->g, "residual"), x, input(t)),
           y = ft__layernorm(b, named_site(b->g, "norm"), sum, FT_BIAS);
    ft__block_close(b, ft__linear(b, named_site(b->g, "second"), y, COLS, FT_NO_BIAS, FT_WHOLE));
}

static void figures(void (*build)(bench *), bool training, unsigned how, int *kernels, double *bytes)
{
    void *state = NULL;
    start_with(&state, training);
    build(state);
    if (training) backward(state);
    fuse_by(state, how);
    const bench *t = state;
    *kernels = launches(t->g), *bytes = traffic(t->g);
    stop(&state);
}

/* Mean, squares about it, result: each reads both addends. Going back, the gradient's sums along the rows and those
 * down the columns read gradient and sum once more each. */
static void a_reduction_ends_its_kernel(void **state)
{
    (void)state;
    int one, apart;
    double whole, again;
    figures(build_norm, false, 0, &one, &whole);
    figures(build_norm, false, FT_FUSE_REDUCTIONS_END, &apart, &again);
    assert_int_equal(apart - one, 2);
    assert_float_equal(again - whole, 4 * unit, 0.02 * unit);
    figures(build_norm, true, 0, &one, &whole);
    figures(build_norm, true, FT_FUSE_REDUCTIONS_END, &apart, &again);
    assert_int_equal(apart - one, 4);
    assert_float_equal(again - whole, 8 * unit, 0.02 * unit);
}

static void build_gelu(bench *t)
{
    ft_build *b = &t->b;
    open_once(t, "mlp");
    ft_ref up = ft__linear(b, named_site(b->g, "up"), input(t), COLS, FT_NO_BIAS, FT_WHOLE);
    ft_ref act = ft__pointwise(b, named_site(b->g, "act"), "gelu", up);
    ft__block_close(b, ft__linear(b, named_site(b->g, "down"), act, COLS, FT_NO_BIAS, FT_WHOLE));
}

/* Written going forward, read going back; without a way back nobody keeps it. */
static void a_costly_function_is_kept(void **state)
{
    (void)state;
    int one, kept;
    double whole, more;
    figures(build_gelu, true, 0, &one, &whole);
    figures(build_gelu, true, FT_FUSE_KEEPS_FUNCTIONS, &kept, &more);
    assert_int_equal(kept, one);
    assert_float_equal(more - whole, 2 * unit, 0.01 * unit);
    figures(build_gelu, false, 0, &one, &whole);
    figures(build_gelu, false, FT_FUSE_KEEPS_FUNCTIONS, &kept, &more);
    assert_float_equal(more, whole, 1);
}

static void build_softmax(bench *t)
{
    ft_build *b = &t->b;
    open_once(t, "scores");
    ft_ref x = ft__linear(b, named_site(b->g, "first"), input(t), COLS, FT_NO_BIAS, FT_WHOLE);
    ft__block_close(b, ft__row(b, named_site(b->g, "softmax"), "softmax", x));
}

/* The maximum reads once more; the exponential is written beside its sum and read for the quotient. */
static void an_exponential_goes_through_memory(void **state)
{
    (void)state;
    int one, apart;
    double whole, again;
    figures(build_softmax, false, 0, &one, &whole);
    figures(build_softmax, false, FT_FUSE_REDUCTIONS_END | FT_FUSE_KEEPS_FUNCTIONS, &apart, &again);
    assert_int_equal(apart - one, 1);
    assert_float_equal(again - whole, 3 * unit, 0.01 * unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reduction_ends_its_kernel),
        cmocka_unit_test(a_costly_function_is_kept),
        cmocka_unit_test(an_exponential_goes_through_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
