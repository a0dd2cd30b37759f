/* A step on one GPU: its phases, its memory, what it adds up to. */
#include "step_rig.h"

/* -- the step ---------------------------------------------------------------------------------- */

typedef struct bench {
    ft_arena *arena;
    ft_graph *g;
    ft_memo *memo;
    ft_device device;
    ft_workload work;
    ft_step step;
} bench;

static void add_node(bench *b, ft_verb verb, ft_phase phase, const ft_op *op)
{
    ft_node n = {.op = *op, .verb = verb, .phase = phase, .name = "n", .count = 1, .traffic = 1};
    assert_non_null(ft__graph_node(b->g, &n));
}

/* A layer of a product, an addition and a view, forward and (in training) backward, and an update. */
static bench make_bench(int64_t tokens, int64_t layers, ft_task task)
{
    bench b = {.arena = ft__arena_new(0), .memo = ft__memo_new(), .device = limit_device("h200_sxm")};
    b.g = ft__graph_new(b.arena, FT_BF16);
    b.work = (ft_workload){.task = task,
                           .dtype = FT_BF16,
                           .kv_dtype = FT_BF16,
                           .batch = 1,
                           .seq = tokens,
                           .accumulate = 1,
                           .optimizer = FT_ADAMW};
    ft_op linear = product(tokens, 4096, 4096), add, none, update;
    ft__op_init("add", &add);
    add.dtype = FT_BF16;
    add.u.elementwise.numel = tokens * 4096;
    ft__op_init("nothing", &none);
    ft__op_init("adamw_fused", &update);
    update.dtype = FT_BF16;
    update.u.optimizer.params = layers * 4096 * 4096;
    update.u.optimizer.tensors = layers;
    for (int pass = 0; pass < (task == FT_TRAIN ? 2 : 1); pass++) {
        ft_phase phase = pass ? FT_BACKWARD : FT_FORWARD;
        ft_block block = {
            .name = "layers", .phase = phase, .first = b.g->node_count, .repeat = layers, .mirror = -1, .modules = 2};
        for (int i = 0; i <= pass; i++) add_node(&b, FT_DO_LINEAR, phase, &linear);
        add_node(&b, FT_DO_POINTWISE, phase, &add);
        add_node(&b, FT_DO_VIEW, phase, &none);
        block.count = b.g->node_count - block.first;
        assert_non_null(ft__graph_block(b.g, &block));
    }
    if (task == FT_TRAIN) {
        ft_block block = {
            .name = "update", .phase = FT_UPDATE, .first = b.g->node_count, .count = 1, .repeat = 1, .mirror = -1};
        add_node(&b, FT_DO_OPTIMIZER, FT_UPDATE, &update);
        assert_non_null(ft__graph_block(b.g, &block));
    }
    return b;
}

static void run_step(bench *b)
{
    ft_error err = {.message = ""};
    if (ft__step_forecast(b->g, &b->work, &b->device, predictor, 0.9, b->memo, b->arena, &b->step, &err) != FT_OK)
        fail_msg("%s", err.message);
}

static void free_bench(bench *b)
{
    ft__arena_free(b->arena);
    ft__memo_free(b->memo);
}

/* What the products of a step reach on this GPU in fp32, TFLOP/s. */
static double reached_in_fp32(const char *gpu, int64_t tokens, int64_t layers, double *step_ms)
{
    bench b = make_bench(tokens, layers, FT_FORWARD_PASS);
    b.device = limit_device(gpu);
    b.work.dtype = b.work.kv_dtype = FT_FP32;
    for (int32_t i = 0; i < b.g->node_count; i++) b.g->nodes[i].op.dtype = FT_FP32;
    run_step(&b);
    double flops = 0, ms = 0;
    for (int32_t i = 0; i < b.step.kernel_count; i++) {
        const ft_timed *k = &b.step.kernels[i];
        if (b.g->nodes[k->node].verb != FT_DO_LINEAR) continue;
        flops += k->forecast.flops * (double)k->times;
        ms += k->forecast.ms * (double)k->times;
    }
    *step_ms = b.step.step_ms;
    free_bench(&b);
    return flops / ms * 1e-9;
}

/* A product alone ends before a T4's clock gives way; in a loop of steps, however short, none does. */
static void a_small_board_has_no_rest_between_steps_in_fp32(void **state)
{
    (void)state;
    double brief_ms, long_ms, brief = reached_in_fp32("t4", 256, 4, &brief_ms),
                              whole = reached_in_fp32("t4", 8192, 16, &long_ms);
    assert_true(brief_ms < 50 && long_ms > 500);
    if (!(brief < 4.6 && whole < 4.6)) fail_msg("%g and %g TFLOP/s", brief, whole);
    double v100_ms;
    assert_true(reached_in_fp32("v100_sxm_32gb", 8192, 16, &v100_ms) > 11);
}

static void the_parts_of_a_step_add_up(void **state)
{
    (void)state;
    bench b = make_bench(8192, 32, FT_TRAIN);
    run_step(&b);
    const ft_step *s = &b.step;
    double phases = 0, classes = 0, regime = 0;
    for (int i = 0; i < FT_PHASE_COUNT; i++) phases += s->phase_ms[i];
    for (int i = 0; i < FT_CLASS_COUNT; i++) classes += s->class_ms[i];
    for (int i = 0; i < 4; i++) regime += s->regime[i];
    close_to(phases, s->busy_ms, 1e-9);
    close_to(classes, s->busy_ms, 1e-9);
    close_to(regime, 1, 1e-9);
    close_to(s->learned + s->sibling + s->physics + s->calibrated + s->roofline, 1, 1e-9);
    close_to(s->launches, 32 * 5 + 1, 1e-12);
    assert_int_equal(s->kernel_count, 6);
    assert_true(s->low_ms < s->step_ms && s->step_ms < s->high_ms);
    assert_true(s->step_ms >= s->busy_ms && s->step_ms < 1.03 * s->busy_ms); /* large kernels: the GPU sets the pace */
    assert_int_equal(s->bound, FT_BOUND_COMPUTE);
    assert_true(s->mfu > 0.5 && s->mfu < 0.9 && s->hfu >= s->mfu);
    close_to(s->tokens_per_s, 8192 / (s->step_ms * 1e-3), 1e-9);
    free_bench(&b);
}

static void small_batches_are_bound_by_the_host(void **state)
{
    (void)state;
    bench b = make_bench(16, 200, FT_FORWARD_PASS);
    run_step(&b);
    assert_int_equal(b.step.bound, FT_BOUND_OVERHEAD);
    assert_true(b.step.step_ms > 1.5 * b.step.busy_ms && b.step.idle_ms > 0);
    double eager = b.step.step_ms, wide = b.step.high_ms - b.step.low_ms;
    assert_true(wide > 0.1 * eager);
    static const ft_execution faster[] = {FT_RUN_COMPILE, FT_RUN_CUDA_GRAPH, FT_RUN_IDEAL};
    for (size_t i = 0; i < 3; i++) {
        b.work.execution = faster[i];
        run_step(&b);
        assert_true(b.step.step_ms < eager);
        eager = b.step.step_ms;
    }
    close_to(b.step.step_ms, b.step.busy_ms, 1e-9);
    assert_true(b.step.host_ms == 0);
    free_bench(&b);
}

static void a_dearer_host_costs_what_it_says(void **state)
{
    (void)state;
    bench b = make_bench(16, 200, FT_FORWARD_PASS);
    b.work.host_us_per_op = 100;
    run_step(&b);
    /* two operators and a view of a sixth per layer */
    assert_true(b.step.step_ms > 200 * 0.200 && b.step.step_ms < 200 * 0.2301 + 1);
    free_bench(&b);
}

static void a_host_twice_as_slow_doubles_its_time(void **state)
{
    (void)state;
    bench b = make_bench(16, 200, FT_TRAIN);
    run_step(&b);
    const double once = b.step.host_ms, step = b.step.step_ms;
    ft_host slow;
    json_t *text = json_pack("{ss, si}", "base", "h200_vm", "slowdown", 2); /* the H200's own machine */
    ft_error err = {0};
    assert_int_equal(ft__host_read(text, "", &slow, &err), FT_OK);
    json_decref(text);
    b.work.host = &slow;
    run_step(&b);
    close_to(b.step.host_ms, 2 * once, 1e-12);
    assert_true(b.step.step_ms > 1.9 * step && b.step.step_ms < 2 * step); /* launches have their own latency */
    free_bench(&b);
}

static void accumulation_repeats_all_but_the_update(void **state)
{
    (void)state;
    bench b = make_bench(4096, 8, FT_TRAIN);
    b.device.tdp_w = 4000; /* longer steps are no hotter ones */
    run_step(&b);
    ft_step once = b.step;
    b.work.accumulate = 16;
    run_step(&b);
    close_to(b.step.phase_ms[FT_FORWARD], 16 * once.phase_ms[FT_FORWARD], 1e-9);
    close_to(b.step.phase_ms[FT_UPDATE], once.phase_ms[FT_UPDATE], 1e-9);
    assert_true(b.step.step_ms < 16 * once.step_ms);
    assert_true(b.step.tokens_per_s > once.tokens_per_s);
    free_bench(&b);
}

static void a_wait_for_the_gpu_lets_nothing_run_ahead(void **state)
{
    (void)state;
    bench b = make_bench(2048, 50, FT_FORWARD_PASS);
    run_step(&b);
    double free_running = b.step.step_ms;
    b.g->nodes[1].synced = true;
    run_step(&b);
    assert_true(b.step.step_ms > free_running * 1.02);
    free_bench(&b);
}

static void moving_less_takes_less_but_never_nothing(void **state)
{
    (void)state;
    bench b = make_bench(8192, 4, FT_FORWARD_PASS);
    run_step(&b);
    double before = b.step.kernels[1].forecast.ms;
    b.g->nodes[1].traffic = 0.5f;
    run_step(&b);
    const ft_forecast *f = &b.step.kernels[1].forecast;
    assert_true(f->ms < 0.7 * before && f->ms >= f->bytes / (b.device.memory_gbps * 1e6));
    free_bench(&b);
}

static void products_alone_slow_down_and_diluted_ones_do_not(void **state)
{
    (void)state;
    ft_forecast alone;
    ft_error err;
    bench b = make_bench(16384, 3200, FT_FORWARD_PASS); /* two seconds */
    ft_op op = b.g->nodes[0].op;
    b.work.execution = FT_RUN_IDEAL;
    b.g->blocks[0].count = 1; /* the product alone */
    run_step(&b);
    assert_int_equal(ft__memo_forecast(b.memo, predictor, &b.device, &op, 0.9, &alone, &err), FT_OK);
    double pure = b.step.kernels[0].forecast.ms;
    assert_true(pure > 1.05 * alone.ms && fabs(pure / alone.sustained_ms - 1) < 0.03);
    b.g->blocks[0].count = 2;
    double before = pure;
    for (int copies = 20; copies <= 200; copies *= 10) { /* the more waits for memory, the less is lost */
        b.g->nodes[1].count = (float)copies;
        run_step(&b);
        double diluted = b.step.kernels[0].forecast.ms;
        assert_true(diluted < before && diluted < (copies == 20 ? 1.02 : 0.99) * alone.ms);
        before = diluted;
    }
    free_bench(&b);
}

static void a_kernel_the_gpu_cannot_run_is_an_error(void **state)
{
    (void)state;
    bench b = make_bench(128, 2, FT_FORWARD_PASS);
    ft_error err;
    b.device.peak_tflops[FT_BF16] = 0;
    assert_int_equal(ft__step_forecast(b.g, &b.work, &b.device, predictor, 0.9, b.memo, b.arena, &b.step, &err),
                     FT_E_UNSUPPORTED);
    free_bench(&b);
}

static void an_empty_graph_takes_no_time(void **state)
{
    (void)state;
    bench b = make_bench(128, 2, FT_FORWARD_PASS);
    b.g->block_count = 0;
    b.work.execution = FT_RUN_IDEAL;
    run_step(&b);
    assert_true(b.step.step_ms == 0 && b.step.low_ms == 0 && b.step.tokens_per_s == 0 && b.step.mfu == 0);
    free_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_a_step_add_up),
        cmocka_unit_test(a_small_board_has_no_rest_between_steps_in_fp32),
        cmocka_unit_test(small_batches_are_bound_by_the_host),
        cmocka_unit_test(a_dearer_host_costs_what_it_says),
        cmocka_unit_test(a_host_twice_as_slow_doubles_its_time),
        cmocka_unit_test(accumulation_repeats_all_but_the_update),
        cmocka_unit_test(a_wait_for_the_gpu_lets_nothing_run_ahead),
        cmocka_unit_test(moving_less_takes_less_but_never_nothing),
        cmocka_unit_test(products_alone_slow_down_and_diluted_ones_do_not),
        cmocka_unit_test(a_kernel_the_gpu_cannot_run_is_an_error),
        cmocka_unit_test(an_empty_graph_takes_no_time),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
