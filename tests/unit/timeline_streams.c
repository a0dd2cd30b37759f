/* Kernels on streams, and the memo of what was asked before. */
#include "step_rig.h"

/* -- streams ----------------------------------------------------------------------------------- */

enum { NODES = 6 };

typedef struct rig {
    ft_arena *arena;
    ft_graph *g;
    ft_node_cost costs[NODES];
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
        r.costs[i] = (ft_node_cost){.host = host, .gpu = gpu, .count = 1};
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
    r->pace.costs = r->costs;
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
                const ft_node_cost *cost = &r->costs[r->g->blocks[b].first + n];
                const double calls = fmax(cost->calls, 1);
                for (int k = 0; k < (int)(cost->count * calls); k++) {
                    host += cost->host / calls;
                    if (cost->gpu > 0) gpu = fmax(gpu, host + r->pace.latency) + (cost->gpu + r->pace.gap) / calls;
                    if (cost->blocks) host = fmax(host, gpu);
                }
                if (cost->waits) host = gpu = fmax(host, gpu);
            }
        }
    return fmax(host, gpu);
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

/* What is done in several calls has its first kernels behind it when the host issues the last. */
static void calls_in_a_row_end_soon_behind_the_host(void **state)
{
    (void)state;
    rig r = make_rig(1, 1, 0.010, 0.002);
    r.costs[NODES - 1] = (ft_node_cost){.host = 1.2, .gpu = 0.6, .count = 1};
    ft_walked whole = walk(&r);
    r.costs[NODES - 1].calls = 12;
    ft_walked parts = walk(&r);
    close_to(whole.total, 5 * 0.010 + 1.2 + 0.003 + 0.6, 1e-9);
    close_to(parts.total, 5 * 0.010 + 1.2 + 0.003 + 0.6 / 12, 1e-9);
    close_to(parts.host, whole.host, 1e-9);
    close_to(parts.running, whole.running, 1e-9);
    ft__arena_free(r.arena);
}

static void a_lead_is_used_up_before_the_host_is_felt(void **state)
{
    (void)state;
    /* One long kernel, behind it layers that the host issues more slowly than the GPU runs them. */
    rig r = make_rig(1, 400, 0.010, 0.008);
    r.costs[0].gpu = 2;
    close_to(walk(&r).total, walk_slowly(&r), 1e-9);
    r.costs[0].gpu = 30;
    close_to(walk(&r).total, walk_slowly(&r), 1e-9);
    ft__arena_free(r.arena);
}

static void any_mix_comes_out_as_launch_by_launch(void **state)
{
    (void)state;
    random_source random = {17};
    for (int round = 0; round < 2000; round++) {
        rig r = make_rig(1 + (int)random_below(&random, 4), 1 + (int64_t)random_below(&random, 200), 0, 0);
        bool blocks = random_below(&random, 8) == 0;
        for (int i = 0; i < NODES; i++)
            r.costs[i] = (ft_node_cost){
                .host = 0.001 + 0.02 * random_unit(&random),
                .gpu = random_below(&random, 4) ? 0.04 * random_unit(&random) * random_unit(&random) : 0,
                .count = 1 + (double)random_below(&random, 3),
                .waits = random_below(&random, 12) == 0 || blocks,
                .calls = (double)random_below(&random, 3),
                .blocks = blocks,
            };
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
    r.costs[5] = (ft_node_cost){.host = 0.001 + 15, .count = 1};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_gpu_hides_the_host),
        cmocka_unit_test(a_slow_host_sets_the_pace),
        cmocka_unit_test(calls_in_a_row_end_soon_behind_the_host),
        cmocka_unit_test(a_lead_is_used_up_before_the_host_is_felt),
        cmocka_unit_test(any_mix_comes_out_as_launch_by_launch),
        cmocka_unit_test(a_full_queue_holds_the_host),
        cmocka_unit_test(micro_batches_run_again_and_the_update_once),
        cmocka_unit_test(a_memo_answers_as_the_kernel_does),
        cmocka_unit_test(a_memo_looks_at_figures_and_not_at_addresses),
        cmocka_unit_test(a_memo_tells_devices_apart_by_every_field),
        cmocka_unit_test(a_memo_refuses_what_the_check_refuses),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
