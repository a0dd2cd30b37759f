/* One step: two streams that wait for each other, repeated blocks multiplied and not walked, forecasts remembered, and
 * an answer whose parts add up. */
#include "every_field.h"
#include "kernel_limits.h"
#include "random_op.h"
#include "shipped_predictor.h"

#include "timeline/memo.h"
#include "timeline/stream.h"

/* -- streams ----------------------------------------------------------------------------------- */

enum { NODES = 6 };

typedef struct rig {
    ft_arena *arena;
    ft_graph *g;
    ft_node_cost beats[NODES];
    double entry[2];
    ft_pace pace;
} rig;

/* `head` nodes once, then the rest `repeat` times. */
static rig make_rig(int head, int64_t repeat, double host, double gpu)
{
    rig r = {.arena = ft__arena_new(0)};
    r.g = ft__graph_new(r.arena, FT_BF16);
    ft_node n = {.op = {.name = ""}, .name = "", .count = 1, .traffic = 1};
    for (int i = 0; i < NODES; i++) {
        assert_non_null(ft__graph_node(r.g, &n));
        r.beats[i] = (ft_node_cost){host, gpu, 1, false};
    }
    ft_block first = {.name = "head", .kind = FT_BLOCK_HEAD, .first = 0, .count = head, .repeat = 1, .mirror = -1};
    ft_block layers = {.name = "layers",
                       .kind = FT_BLOCK_LAYERS,
                       .first = head,
                       .count = NODES - head,
                       .repeat = repeat,
                       .mirror = -1};
    assert_non_null(ft__graph_block(r.g, &first));
    assert_non_null(ft__graph_block(r.g, &layers));
    r.pace = (ft_pace){.latency = 0.003, .queue = 1024, .accumulate = 1, .host_scale = 1, .gpu_scale = 1};
    return r;
}

static ft_walked walk(rig *r)
{
    r->pace.beats = r->beats;
    r->pace.entry = r->entry;
    return ft__stream_walk(r->g, &r->pace);
}

/* The same, launch by launch, with the queue as a list of starts. */
static double walk_slowly(const rig *r)
{
    double host = 0, gpu = 0;
    for (int b = 0; b < 2; b++)
        for (int64_t i = 0; i < r->g->blocks[b].repeat; i++) {
            host += r->entry[b];
            for (int32_t n = 0; n < r->g->blocks[b].count; n++) {
                const ft_node_cost *beat = &r->beats[r->g->blocks[b].first + n];
                for (int k = 0; k < (int)beat->count; k++) {
                    host += beat->host;
                    if (beat->gpu > 0) gpu = fmax(gpu, host + r->pace.latency) + beat->gpu + r->pace.gap;
                }
                if (beat->waits) host = gpu = fmax(host, gpu);
            }
        }
    return fmax(host, gpu);
}

static void close_to(double got, double expected, double within)
{
    if (!(fabs(got - expected) <= within * fabs(expected))) fail_msg("got %.9g, expected %.9g", got, expected);
}

static void a_slow_gpu_hides_the_host(void **state)
{
    (void)state;
    rig r = make_rig(1, 100, 0.010, 0.100);
    ft_walked w = walk(&r);
    close_to(w.total, 0.013 + 501 * 0.100, 1e-9);
    close_to(w.host, 501 * 0.010, 1e-9);
    close_to(w.running, 501 * 0.100, 1e-9);
    ft__arena_free(r.arena);
}

static void a_slow_host_sets_the_pace(void **state)
{
    (void)state;
    rig r = make_rig(1, 100, 0.010, 0.002);
    close_to(walk(&r).total, 501 * 0.010 + 0.003 + 0.002, 1e-9);
    ft__arena_free(r.arena);
}

static void a_lead_is_used_up_before_the_host_is_felt(void **state)
{
    (void)state;
    /* One long kernel, behind it layers that the host issues more slowly than the GPU runs them. */
    rig r = make_rig(1, 400, 0.010, 0.008);
    r.beats[0].gpu = 2;
    close_to(walk(&r).total, walk_slowly(&r), 1e-9);
    r.beats[0].gpu = 30;
    close_to(walk(&r).total, walk_slowly(&r), 1e-9);
    ft__arena_free(r.arena);
}

static void any_mix_comes_out_as_launch_by_launch(void **state)
{
    (void)state;
    random_source random = {17};
    for (int round = 0; round < 2000; round++) {
        rig r = make_rig(1 + (int)random_below(&random, 4), 1 + (int64_t)random_below(&random, 200), 0, 0);
        for (int i = 0; i < NODES; i++)
            r.beats[i] = (ft_node_cost){0.001 + 0.02 * random_unit(&random),
                                        random_below(&random, 4) ? 0.04 * random_unit(&random) * random_unit(&random)
                                                                 : 0,
                                        1 + (double)random_below(&random, 3), random_below(&random, 12) == 0};
        r.entry[1] = 0.01 * random_unit(&random);
        r.pace.gap = 0.001;
        r.pace.queue = 1e9; /* walk_slowly has none */
        close_to(walk(&r).total, walk_slowly(&r), 1e-6);
        ft__arena_free(r.arena);
    }
}

static void a_full_queue_holds_the_host(void **state)
{
    (void)state;
    /* After a thousand waiting launches the host may not be further ahead: a wait for it at the end costs nothing more,
     * but work of the host alone that follows is not hidden behind more than the queue. */
    rig r = make_rig(5, 1, 0.001, 0.010);
    r.g->blocks[0].repeat = 10000;
    r.beats[5] = (ft_node_cost){0.001 + 15, 0, 1, false};
    double busy = 50000 * 0.010;
    close_to(walk(&r).total, busy - 1024 * 0.010 + 15, 0.001);
    ft__arena_free(r.arena);
}

static void micro_batches_run_again_and_the_update_once(void **state)
{
    (void)state;
    rig r = make_rig(1, 10, 0.001, 0.010);
    r.g->blocks[1].phase = FT_UPDATE;
    r.pace.accumulate = 1000;
    close_to(walk(&r).total, 0.004 + (1000 + 50) * 0.010, 1e-6);
    ft__arena_free(r.arena);
}

/* -- memo -------------------------------------------------------------------------------------- */

static ft_op product(int64_t m, int64_t n, int64_t k)
{
    ft_op op;
    ft__op_init("linear", &op);
    op.dtype = FT_BF16;
    op.u.gemm.m = m;
    op.u.gemm.n = n;
    op.u.gemm.k = k;
    op.u.gemm.quantized = 1;
    return op;
}

static void a_memo_answers_as_the_kernel_does(void **state)
{
    (void)state;
    ft_memo *m = ft__memo_new();
    random_source random = {3};
    assert_non_null(m);
    for (int i = 0; i < 12000; i++) { /* more than it holds, with repetitions */
        ft_device device = limit_device(limit_devices[random_below(&random, 4)]);
        ft_op op = product(16 << random_below(&random, 10), 8 * (1 + (int64_t)random_below(&random, 40)), 512);
        ft_forecast got, expected;
        ft_error err;
        double quantile = random_below(&random, 2) ? 0.9 : 0.5;
        op.dtype = FT_FP16;
        ft_status a = ft__memo_forecast(m, predictor, &device, &op, quantile, &got, &err);
        if (a != FT_OK) continue;
        assert_int_equal(ft__kernel_forecast(predictor, &device, &op, quantile, &expected, &err), FT_OK);
        assert_true(got.ms == expected.ms && got.low_ms == expected.low_ms && got.high_ms == expected.high_ms);
    }
    ft__memo_free(m);
    ft__memo_free(NULL);
}

static void a_memo_looks_at_figures_and_not_at_addresses(void **state)
{
    (void)state;
    ft_memo *m = ft__memo_new();
    ft_device device = limit_device("h200_sxm");
    char name[8] = "linear";
    ft_op op = product(4096, 4096, 4096);
    op.name = name;
    ft_forecast fast, slow, same;
    ft_error err;
    assert_int_equal(ft__memo_forecast(m, predictor, &device, &op, 0.9, &fast, &err), FT_OK);
    device.tdp_w /= 4;
    assert_int_equal(ft__memo_forecast(m, predictor, &device, &op, 0.9, &slow, &err), FT_OK);
    assert_true(slow.ms > fast.ms);
    device.tdp_w *= 4;
    assert_int_equal(ft__memo_forecast(m, predictor, &device, &op, 0.9, &same, &err), FT_OK);
    assert_true(same.ms == fast.ms);
    memset((char *)&op.u + sizeof op.u.gemm, 0xab, sizeof op.u - sizeof op.u.gemm); /* what a product does not use */
    assert_int_equal(ft__memo_forecast(m, predictor, &device, &op, 0.9, &same, &err), FT_OK);
    assert_true(same.ms == fast.ms);
    ft__memo_free(m);
}

static void ask_all(ft_memo *m, const ft_device *device, const char *changed)
{
    random_source random = {17};
    for (int kind = 0; kind < 3 * RANDOM_KINDS; kind++) { /* every family: each reads other fields */
        ft_device drawn_for = limit_device("t4");
        ft_op op = random_op(&random, (random_kind)(kind % RANDOM_KINDS), &drawn_for);
        ft_forecast got, expected;
        ft_error err;
        if (ft__op_check(&op, device, NULL) != FT_OK) continue;
        assert_int_equal(ft__memo_forecast(m, predictor, device, &op, 0.9, &got, &err), FT_OK);
        assert_int_equal(ft__kernel_forecast(predictor, device, &op, 0.9, &expected, &err), FT_OK);
        if (got.ms != expected.ms || got.low_ms != expected.low_ms || got.high_ms != expected.high_ms ||
            got.sustained_ms != expected.sustained_ms || got.source != expected.source)
            fail_msg("%s is remembered from a GPU with another %s", op.name, changed);
    }
}

/* Two devices that differ in one field alone, asked one after the other in either order: the second is not answered
 * with what the first was. */
static void a_memo_tells_devices_apart_by_every_field(void **state)
{
    (void)state;
    static const char *const names[] = {"b200_sxm", "a100_sxm_80gb", "v100_sxm_16gb"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int field = 0; field < EVERY_FIELD; field++) {
            ft_device first = limit_device(names[n]), other = first;
            change_field(&other, field);
            ft_memo *forth = ft__memo_new(), *back = ft__memo_new();
            assert_non_null(forth);
            assert_non_null(back);
            ask_all(forth, &first, field_name(field));
            ask_all(forth, &other, field_name(field));
            ask_all(back, &other, field_name(field));
            ask_all(back, &first, field_name(field));
            ft__memo_free(forth);
            ft__memo_free(back);
        }
}

static void a_memo_refuses_what_the_check_refuses(void **state)
{
    (void)state;
    ft_memo *m = ft__memo_new();
    ft_device device = limit_device("h200_sxm");
    ft_op op = product(0, 1, 1);
    ft_forecast f;
    ft_error err;
    for (int i = 0; i < 2; i++)
        assert_int_equal(ft__memo_forecast(m, predictor, &device, &op, 0.9, &f, &err), FT_E_RANGE);
    ft__memo_free(m);
}

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
    json_t *text = json_pack("{si}", "slowdown", 2);
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
        cmocka_unit_test(a_slow_gpu_hides_the_host),
        cmocka_unit_test(a_slow_host_sets_the_pace),
        cmocka_unit_test(a_lead_is_used_up_before_the_host_is_felt),
        cmocka_unit_test(any_mix_comes_out_as_launch_by_launch),
        cmocka_unit_test(a_full_queue_holds_the_host),
        cmocka_unit_test(micro_batches_run_again_and_the_update_once),
        cmocka_unit_test(a_memo_answers_as_the_kernel_does),
        cmocka_unit_test(a_memo_looks_at_figures_and_not_at_addresses),
        cmocka_unit_test(a_memo_tells_devices_apart_by_every_field),
        cmocka_unit_test(a_memo_refuses_what_the_check_refuses),
        cmocka_unit_test(the_parts_of_a_step_add_up),
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
