/* Fusion: what is merged and what is not, what is written, what the backward pass computes again; and that no fused
 * graph reads what nobody made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "graph/build.h"
#include "graph/emit.h"
#include "named_site.h"

enum { ROWS = 4096, COLS = 1024 };
static const double unit = (double)ROWS * COLS * 2; /* one pass over a bf16 activation */

typedef struct bench {
    ft_arena *arena;
    ft_graph *g;
    ft_build b;
    ft_error err;
} bench;

static int start_with(void **state, bool training)
{
    bench *t = test_calloc(1, sizeof *t);
    t->arena = ft__arena_new(0);
    t->g = ft__graph_new(t->arena, FT_BF16);
    t->b = ft__build_begin(t->g, FT_BF16, false, training, &t->err);
    *state = t;
    return 0;
}
static int start(void **state) { return start_with(state, false); }
static int start_training(void **state) { return start_with(state, true); }

static int stop(void **state)
{
    bench *t = *state;
    ft__arena_free(t->arena);
    test_free(t);
    return 0;
}

static ft_ref open_once(bench *t, const char *name)
{
    const ft_block_info info = ft__import_block(t->g, name);
    return ft__block_open(&t->b, &info, 1, FT_NONE);
}

static ft_ref input(bench *t) { return ft__input(&t->b, ROWS, COLS, 2); }

static void fuse(bench *t)
{
    assert_int_equal(t->b.status, FT_OK);
    assert_int_equal(ft__graph_fuse(t->g, false, &t->err), FT_OK);
}

static int launches(const ft_graph *g)
{
    int sum = 0;
    for (int32_t i = 0; i < g->node_count; i++) sum += ft__node_runs(&g->nodes[i]);
    return sum;
}

static double traffic(const ft_graph *g)
{
    double sum = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        if (ft__node_runs(&g->nodes[i]))
            sum += ft__op_bytes(&g->nodes[i].op) * (double)g->nodes[i].traffic * (double)g->nodes[i].count;
    return sum;
}

static const ft_node *fused(const ft_graph *g, int skip)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].members > 0 && ft__node_runs(&g->nodes[i]) && skip-- == 0) return &g->nodes[i];
    fail_msg("no such fused kernel");
    return NULL;
}

static bool reads(const ft_graph *g, const ft_node *n, ft_ref x)
{
    for (int k = 0; k < n->in_count; k++)
        if (g->tensors[n->in[k]].storage == g->tensors[x].storage) return true;
    return false;
}

static bool makes(const ft_graph *g, const ft_node *n, ft_ref x)
{
    for (int k = 0; k < n->out_count; k++)
        if (g->tensors[n->out[k]].storage == g->tensors[x].storage) return true;
    return false;
}

static bool anyone(const ft_graph *g, bool (*does)(const ft_graph *, const ft_node *, ft_ref), ft_ref x)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (does(g, &g->nodes[i], x)) return true;
    return false;
}

/* What a node reads was made before it, unless it was there before the step. */
static void assert_sound(const ft_graph *g, const bool *made_by_step)
{
    bool *there = test_calloc((size_t)g->tensor_count, sizeof *there);
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->carry_in != FT_NONE) there[g->tensors[block->carry_in].storage] = true;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_node *n = &g->nodes[i];
            for (int k = 0; k < n->in_count; k++) {
                ft_ref r = g->tensors[n->in[k]].storage;
                if (made_by_step[r] && !there[r]) fail_msg("node %d, %s, reads %d before it exists", i, n->name, r);
            }
            for (int k = 0; k < n->out_count; k++) there[g->tensors[n->out[k]].storage] = true;
        }
        if (block->carry_out != FT_NONE && made_by_step[g->tensors[block->carry_out].storage])
            assert_true(there[g->tensors[block->carry_out].storage]);
    }
    for (ft_ref t = 0; t < g->tensor_count; t++)
        if (g->tensors[t].role == FT_GRADIENT && made_by_step[t]) assert_true(there[t]);
    test_free(there);
}

static bool *made_by_step(const ft_graph *g, int32_t room)
{
    bool *made = test_calloc((size_t)room, sizeof *made);
    for (int32_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i].out_count; k++) {
            ft_ref r = g->tensors[g->nodes[i].out[k]].storage;
            made[r] = g->tensors[r].role == FT_ACTIVATION || g->tensors[r].role == FT_GRADIENT;
        }
    return made;
}

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

static ft_ref written_out_norm(ft_build *b, ft_ref x)
{
    ft_ref weight = ft__parameter(b, "norm.weight", 1, COLS), wide = ft__cast(b, named_site(b->g, "norm"), x, FT_FP32);
    ft_ref mean = ft__reduce(b, named_site(b->g, "norm"), "mean",
                             ft__pointwise(b, named_site(b->g, "norm"), "powu", wide));
    ft_ref scale = ft__pointwise(b, named_site(b->g, "norm"), "rsqrt",
                                 ft__pointwise(b, named_site(b->g, "norm"), "addu", mean));
    ft_ref y = ft__cast(b, named_site(b->g, "norm"), ft__mul(b, named_site(b->g, "norm"), wide, scale), FT_BF16);
    return ft__mul(b, named_site(b->g, "norm"), y, weight);
}

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
        cmocka_unit_test_setup_teardown(an_activation_is_computed_again_from_its_input, start_training, stop),
        cmocka_unit_test_setup_teardown(the_dropout_mask_is_saved, start_training, stop),
        cmocka_unit_test_setup_teardown(the_loss_reads_logits_twice, start_training, stop),
        cmocka_unit_test_setup_teardown(a_norm_s_gradient_is_one_kernel_and_its_sums, start_training, stop),
        cmocka_unit_test(random_graphs_stay_sound),
        cmocka_unit_test_setup_teardown(an_empty_graph_is_left_alone, start, stop),
        cmocka_unit_test_setup_teardown(a_node_without_its_tensor_is_refused, start, stop),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
