/* Fusion of training graphs, of random ones, and of broken ones. */
#include "fusion_bench.h"

/* -- training ------------------------------------------------------------------------------------ */

static void backward(bench *t)
{
    assert_int_equal(t->b.status, FT_OK);
    assert_int_equal(ft__graph_backward(t->g, FT_RECOMPUTE_NONE, true, (ft_accumulation){0}, &t->err), FT_OK);
}

/* The tanh form of GELU: eight operators, all intermediates saved by autograd. */
static ft_ref tanh_gelu(ft_build *b, ft_ref x)
{
    ft_ref half = ft__pointwise(b, named_site(b->g, "act"), "mulu", x),
           cube = ft__pointwise(b, named_site(b->g, "act"), "powu", x);
    ft_ref inner = ft__add(b, named_site(b->g, "act"), x, ft__pointwise(b, named_site(b->g, "act"), "mulu", cube));
    ft_ref slope = ft__pointwise(b, named_site(b->g, "act"), "tanh",
                                 ft__pointwise(b, named_site(b->g, "act"), "mulu", inner));
    return ft__mul(b, named_site(b->g, "act"), half, ft__pointwise(b, named_site(b->g, "act"), "addu", slope));
}

static void an_activation_is_computed_again_from_its_input(void **state)
{
    bench *t = *state;
    ft_build *b = &t->b;
    open_once(t, "mlp");
    ft_ref fc = ft__linear(b, named_site(b->g, "up"), input(t), COLS, FT_NO_BIAS, FT_WHOLE), act = tanh_gelu(b, fc);
    ft__block_close(b, ft__linear(b, named_site(b->g, "down"), act, COLS, FT_NO_BIAS, FT_WHOLE));
    backward(t);
    fuse(t);
    const ft_node *forward = fused(t->g, 0), *back = fused(t->g, 1);
    assert_float_equal(ft__op_bytes(&forward->op), 2 * unit, 1); /* input in, result out: nothing is saved beside */
    assert_true(reads(t->g, back, fc));
    assert_false(reads(t->g, back, act));
    assert_float_equal(ft__op_bytes(&back->op), 3 * unit, 1); /* its input, the gradient, the result */
    assert_true(back->op.u.elementwise.ops_per_element > forward->op.u.elementwise.ops_per_element);
    assert_true(anyone(t->g, makes, act)); /* the weight's gradient is a library call: its operand is saved */
}

static void the_dropout_mask_is_saved(void **state)
{
    bench *t = *state;
    ft_build *b = &t->b;
    open_once(t, "mlp");
    ft_ref h = ft__linear(b, named_site(b->g, "up"), input(t), COLS, FT_NO_BIAS, FT_WHOLE),
           y = ft__dropout(b, named_site(b->g, "drop"), h, 0.1);
    const ft_node *drop = &t->g->nodes[t->g->node_count - 1];
    ft_ref mask = drop->out[1];
    ft__block_close(b, ft__add(b, named_site(b->g, "residual"), y, input(t)));
    backward(t);
    fuse(t);
    assert_true(makes(t->g, fused(t->g, 0), mask));
    assert_true(reads(t->g, fused(t->g, 1), mask));
    assert_float_equal(ft__op_bytes(&fused(t->g, 0)->op), 3.5 * unit, 1);
}

static void the_loss_reads_logits_twice(void **state)
{
    bench *t = *state;
    ft_build *b = &t->b;
    open_once(t, "head");
    ft_ref logits = ft__linear(b, named_site(b->g, "head"), input(t), COLS, FT_NO_BIAS, FT_WHOLE);
    ft__block_close(b, ft__loss(b, named_site(b->g, "loss"), logits, true));
    backward(t);
    fuse(t);
    const ft_node *forward = fused(t->g, 0), *zeros = fused(t->g, 1), *back = fused(t->g, 2);
    assert_float_equal(ft__op_bytes(&forward->op), unit, 64); /* no fp32 copy, no log-probabilities */
    assert_string_equal(zeros->name, "zero_gradient");
    assert_true(reads(t->g, back, logits));
    assert_float_equal(ft__op_bytes(&back->op), 3 * unit, 64);
}

static void a_norm_s_gradient_is_one_kernel_and_its_sums(void **state)
{
    bench *t = *state;
    ft_build *b = &t->b;
    open_once(t, "layer");
    ft_ref x = ft__linear(b, named_site(b->g, "first"), input(t), COLS, FT_NO_BIAS, FT_WHOLE);
    ft_ref sum = ft__add(b, named_site(b->g, "residual"), x, input(t)), y = written_out_norm(b, sum);
    ft__block_close(b, ft__linear(b, named_site(b->g, "second"), y, COLS, FT_NO_BIAS, FT_WHOLE));
    backward(t);
    int eager = launches(t->g);
    fuse(t);
    assert_true(launches(t->g) < eager - 20);
    assert_int_equal(launches(t->g),
                     2 + 1 + 3 + 1 + 2); /* products, norm, their gradients, its gradient, two for sums */
    const ft_node *back = fused(t->g, 1);
    /* gradient and the sum in, gradient out; partial sums of 16 rows in fp32 */
    assert_float_equal(ft__op_bytes(&back->op), 3 * unit + ROWS / 16 * COLS * 4, 0.02 * unit);
}

/* Instructions of the kernel that sums what a norm's gradient needs, behind an activation. */
static double moments_work(const char *activation)
{
    void *at;
    double work = 0;
    start_with(&at, true);
    bench *t = at;
    ft_build *b = &t->b;
    open_once(t, "layer");
    ft_ref x = ft__linear(b, named_site(b->g, "first"), input(t), COLS, FT_NO_BIAS, FT_WHOLE);
    x = ft__batchnorm(b, named_site(b->g, "norm"), x, COLS);
    if (activation) x = ft__pointwise(b, named_site(b->g, "act"), activation, x);
    ft__block_close(b, ft__linear(b, named_site(b->g, "second"), x, COLS, FT_NO_BIAS, FT_WHOLE));
    backward(t);
    fuse(t);
    for (int32_t i = 0; i < t->g->node_count; i++) {
        const ft_node *n = &t->g->nodes[i];
        if (n->phase == FT_BACKWARD && !strcmp(n->name, "fused_moments") && n->op.u.elementwise.numel == ROWS * COLS)
            work = n->op.u.elementwise.ops_per_element;
    }
    stop(&at);
    return work;
}

/* Sums over a gradient that the group makes: the activation's gradient, and the norm again, are computed for the sums
 * and once more for the result. */
static void moments_compute_what_they_add_up(void **state)
{
    (void)state;
    const double bare = moments_work(NULL), relu = moments_work("relu"), silu = moments_work("silu");
    assert_true(bare > 0 && relu > bare && silu > relu + 20);
}

/* -- any graph ----------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static ft_ref random_layer(ft_build *b, ft_ref x, uint32_t *seed)
{
    ft_ref have[24] = {x};
    int count = 1;
    while (count < 24) {
        ft_ref p = have[next_random(seed) % (uint32_t)count], q = have[next_random(seed) % (uint32_t)count], y;
        switch (next_random(seed) % 11) {
        case 0: y = ft__linear(b, named_site(b->g, "linear"), p, COLS, FT_NO_BIAS, FT_WHOLE); break;
        case 1: y = ft__layernorm(b, named_site(b->g, "norm"), p, FT_BIAS); break;
        case 2: y = ft__row(b, named_site(b->g, "softmax"), "softmax", p); break;
        case 3: y = ft__dropout(b, named_site(b->g, "drop"), p, 0.1); break;
        case 4: y = ft__mul(b, named_site(b->g, "gate"), p, ft__reduce(b, named_site(b->g, "sum"), "sum", q)); break;
        case 5:
            y = ft__cast(
                b, named_site(b->g, "low"),
                ft__pointwise(b, named_site(b->g, "wide"), "exp", ft__cast(b, named_site(b->g, "wide"), p, FT_FP32)),
                FT_BF16);
            break;
        case 6: {
            ft_ref both[2] = {ft__pointwise(b, named_site(b->g, "half"), "neg", ft__slice(b, p, ROWS, COLS / 2)),
                              ft__slice(b, q, ROWS, COLS / 2)};
            y = ft__cat(b, named_site(b->g, "cat"), 2, both, ROWS, COLS);
            break;
        }
        case 7: y = ft__pointwise(b, named_site(b->g, "act"), "silu", p); break;
        case 8: y = ft__contiguous(b, named_site(b->g, "copy"), ft__view(b, p, ROWS, COLS, true)); break;
        default: y = ft__add(b, named_site(b->g, "add"), p, q); break;
        }
        have[count++] = y;
    }
    ft_ref sum = have[count - 1];
    for (int i = 0; i < 4; i++)
        sum = ft__add(b, named_site(b->g, "out"), sum, have[next_random(seed) % (uint32_t)count]);
    return sum;
}

static void random_graphs_stay_sound(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 400; seed++) {
        void *at;
        start_with(&at, true);
        bench *t = at;
        uint32_t random = seed * 7919;
        open_once(t, "embed");
        ft_ref x = ft__linear(&t->b, named_site(t->g, "embed"), input(t), COLS, FT_NO_BIAS, FT_WHOLE);
        x = ft__block_close(&t->b, x);
        x = ft__block_open(&t->b, FT_BLOCK(LAYERS), 3, x);
        x = ft__block_close(&t->b, random_layer(&t->b, x, &random));
        x = ft__block_open(&t->b, FT_BLOCK(HEAD), 1, x);
        ft__block_close(&t->b, ft__loss(&t->b, named_site(t->g, "loss"), random_layer(&t->b, x, &random), true));
        backward(t);
        bool *made = made_by_step(t->g, t->g->tensor_count + 64); /* fusion adds a few of its own */
        int products = 0, kept = 0, before = launches(t->g);
        double bytes = traffic(t->g);
        for (int32_t i = 0; i < t->g->node_count; i++) products += t->g->nodes[i].verb == FT_DO_LINEAR;
        assert_sound(t->g, made);
        fuse(t);
        assert_sound(t->g, made);
        for (int32_t i = 0; i < t->g->node_count; i++) kept += t->g->nodes[i].verb == FT_DO_LINEAR;
        assert_int_equal(kept, products);
        assert_true(launches(t->g) < before);
        assert_true(traffic(t->g) < bytes);
        test_free(made);
        stop(&at);
    }
}

/* -- errors -------------------------------------------------------------------------------------- */

static void an_empty_graph_is_left_alone(void **state)
{
    bench *t = *state;
    assert_int_equal(ft__graph_fuse(t->g, false, &t->err), FT_OK);
    assert_int_equal(t->g->node_count, 0);
}

static void a_node_without_its_tensor_is_refused(void **state)
{
    bench *t = *state;
    open_once(t, "chain");
    ft__block_close(&t->b, ft__pointwise(&t->b, named_site(t->g, "a"), "cos", input(t)));
    t->g->nodes[0].in[0] = 99;
    assert_int_equal(ft__graph_fuse(t->g, false, &t->err), FT_E_BUG);
    assert_int_equal(t->g->node_count, 1);
}

static ft_status attempt(void *context)
{
    (void)context;
    ft_error err;
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = arena ? ft__graph_new(arena, FT_BF16) : NULL;
    ft_status status = FT_E_MEMORY;
    if (g) {
        ft_build b = ft__build_begin(g, FT_BF16, false, true, &err);
        uint32_t random = 5;
        ft__block_open(&b, FT_BLOCK(LAYERS), 1, FT_NONE);
        ft_ref x = ft__linear(&b, named_site(b.g, "embed"), ft__input(&b, ROWS, COLS, 2), COLS, FT_NO_BIAS, FT_WHOLE);
        ft__block_close(&b, ft__loss(&b, named_site(b.g, "loss"), random_layer(&b, x, &random), true));
        status = b.status;
        if (status == FT_OK) status = ft__graph_backward(g, FT_RECOMPUTE_NONE, true, (ft_accumulation){0}, &err);
        if (status == FT_OK) status = ft__graph_fuse(g, false, &err);
    }
    ft__arena_free(arena);
    return status;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    assert_true(failing_alloc_sweep(attempt, NULL) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_activation_is_computed_again_from_its_input, start_training, stop),
        cmocka_unit_test_setup_teardown(the_dropout_mask_is_saved, start_training, stop),
        cmocka_unit_test_setup_teardown(the_loss_reads_logits_twice, start_training, stop),
        cmocka_unit_test_setup_teardown(a_norm_s_gradient_is_one_kernel_and_its_sums, start_training, stop),
        cmocka_unit_test(moments_compute_what_they_add_up),
        cmocka_unit_test(random_graphs_stay_sound),
        cmocka_unit_test_setup_teardown(an_empty_graph_is_left_alone, start, stop),
        cmocka_unit_test_setup_teardown(a_node_without_its_tensor_is_refused, start, stop),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
