/* Advice over a made-up forecast: ranking, what excludes what, what does not fit, failures; verdicts; the checklist. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "explain/advice.h"
#include "explain/difference.h"
#include "failing_alloc.h"

static const ft_device device = {.name = "made_up",
                                 .sms = 100,
                                 .lanes_per_sm = 128,
                                 .boost_mhz = 1000,
                                 .memory_gbps = 1000,
                                 .vector_tflops = {[FT_FP32] = 20},
                                 .peak_tflops = {[FT_FP32] = 20, [FT_TF32] = 80, [FT_BF16] = 100, [FT_FP16] = 100}};
static const ft_arch arch = {.model_type = "made_up",
                             .design = FT_DECODER_ONLY,
                             .layers = 4,
                             .hidden = 512,
                             .heads = 8,
                             .head_dim = 64,
                             .ffn = 2048,
                             .vocab = 1000};

typedef struct made_up {
    ft_arena *arena;
    ft_graph *graph;
    double room;
    ft_status failure; /* of every forecast */
    bool cancel;       /* flash attention gains nothing once compiled */
    int asked;
    bool slim;     /* flash attention makes it fit */
    double faster; /* products on another GPU: the share of their time that it saves */
} made_up;

/* One product and one pointwise kernel. */
static ft_graph *small_graph(ft_arena *arena)
{
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    assert_non_null(g);
    ft_block b = {.name = "layers",
                  .kind = FT_BLOCK_LAYERS,
                  .phase = FT_FORWARD,
                  .repeat = 1,
                  .carry_in = FT_NONE,
                  .carry_out = FT_NONE,
                  .fed_by = FT_NONE,
                  .mirror = -1};
    assert_non_null(ft__graph_block(g, &b));
    for (int i = 0; i < 2; i++) {
        ft_node n = {.at = i ? FT_AT(MLP_ACT) : FT_AT(MLP_UP_PROJ),
                     .name = i ? "act" : "up",
                     .phase = FT_FORWARD,
                     .count = 1,
                     .traffic = 1,
                     .effort = 1};
        ft__op_init(i ? "gelu" : "linear", &n.op);
        n.op.dtype = FT_BF16;
        n.verb = i ? FT_DO_POINTWISE : FT_DO_LINEAR;
        if (i)
            n.op.u.elementwise.numel = 1 << 20;
        else
            n.op.u.gemm.m = 4096, n.op.u.gemm.n = 1001, n.op.u.gemm.k = 512;
        assert_non_null(ft__graph_node(g, &n));
    }
    g->blocks[0].count = 2;
    return g;
}

static void fill_step(const ft_change *c, const made_up *m, ft_step *out)
{
    double product = 50, pointwise = 40, batch = (double)c->work.batch;
    if (c->work.dtype == FT_FP32) product *= 4;
    if (c->work.dtype == FT_TF32) product *= 2;
    if (c->work.execution == FT_RUN_COMPILE) pointwise *= 0.25;
    if (c->work.attention == FT_EAGER && !(m->cancel && c->work.execution == FT_RUN_COMPILE)) pointwise += 20;
    if (c->arch->vocab % 64) product += 5;
    if (c->device != &device) product *= 1 - m->faster;
    ft_timed *k = ft__arena_array(m->arena, 2, sizeof *k);
    assert_non_null(k);
    k[0] = (ft_timed){.node = 0,
                      .times = 1,
                      .forecast = {.ms = product * batch,
                                   .low_ms = 0.9 * product * batch,
                                   .high_ms = 1.1 * product * batch,
                                   .bound = FT_BOUND_COMPUTE,
                                   .family = "gemm",
                                   .flops = 1e12 * batch,
                                   .bytes = 1e9,
                                   .tile_m = 128,
                                   .tile_n = 128,
                                   .tiles = 150,
                                   .waves = 1.5}};
    k[1] = (ft_timed){.node = 1,
                      .times = 1,
                      .forecast = {.ms = pointwise * batch,
                                   .low_ms = 0.8 * pointwise * batch,
                                   .high_ms = 1.2 * pointwise * batch,
                                   .bound = FT_BOUND_COMPUTE,
                                   .family = "pointwise",
                                   .flops = 1e9,
                                   .bytes = 1e9 * batch}};
    *out = (ft_step){.kernels = k, .kernel_count = 2};
    out->busy_ms = (product + pointwise) * batch;
    out->host_ms = 30;
    out->step_ms = fmax(out->busy_ms, 30);
    out->low_ms = 0.9 * out->step_ms, out->high_ms = 1.1 * out->step_ms;
    out->class_ms[FT_CONTRACTION] = product * batch;
    out->class_ms[FT_ELEMENTWISE] = pointwise * batch;
    out->regime[FT_BOUND_COMPUTE] = 1;
    out->memory.peak_bytes = out->memory.reserved_bytes = 10 * batch * ft_dtype_bytes(c->work.dtype);
    if (c->work.recompute == FT_RECOMPUTE_FULL) out->memory.peak_bytes /= 2;
    if (m->slim && c->work.attention == FT_FLASH) out->memory.peak_bytes = out->memory.reserved_bytes = 10;
    out->memory.capacity_bytes = m->room;
    out->memory.fits = out->memory.peak_bytes <= m->room;
}

static ft_status again(const ft_change *c, void *user, ft_reforecast_step *out, ft_error *err)
{
    made_up *m = user;
    m->asked++;
    if (m->failure != FT_OK) return ft__fail(err, m->failure, "as told");
    if (c->work.execution == FT_RUN_CUDA_GRAPH) return ft__fail(err, FT_E_UNSUPPORTED, "nobody wrote that");
    fill_step(c, m, &out->step);
    out->graph = m->graph;
    return FT_OK;
}

static ft_change request(void)
{
    return (ft_change){.arch = &arch,
                       .work = {.task = FT_TRAIN,
                                .dtype = FT_FP32,
                                .kv_dtype = FT_FP32,
                                .batch = 2,
                                .seq = 512,
                                .accumulate = 1,
                                .attention = FT_EAGER},
                       .parallel = {.dp = 1, .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1},
                       .device = &device};
}

static ft_status advise(made_up *m, const ft_change *now, ft_advised *out)
{
    ft_step *step = ft__arena_alloc(m->arena, sizeof *step);
    assert_non_null(step);
    fill_step(now, m, step);
    ft_advice_case c = {
        .now = now, .step = step, .graph = m->graph, .again = again, .user = m, .techniques = true, .quantile = 0.9};
    return ft__advise(&c, m->arena, out, NULL);
}

static made_up *fresh(void)
{
    static made_up m;
    ft_arena *arena = ft__arena_new(0);
    assert_non_null(arena);
    m = (made_up){.arena = arena, .graph = small_graph(arena), .room = 1000};
    return &m;
}

static const ft_advice *find(const ft_advised *a, ft_move_kind kind)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->list[i].move.kind == kind) return &a->list[i];
    return NULL;
}

static void advice_is_ranked_and_goes_together(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    ft_advised a;
    assert_int_equal(advise(m, &now, &a), FT_OK);
    assert_true(a.count >= 4);
    for (size_t i = 0; i < a.count; i++) {
        const ft_advice *x = &a.list[i];
        assert_true(x->saves_ms > 0 && x->low_ms <= x->saves_ms && x->saves_ms <= x->high_ms);
        assert_true(i == 0 || x->saves_ms <= a.list[i - 1].saves_ms / 0.96);
        for (size_t k = 0; k < i; k++) assert_int_not_equal(ft__move_knob(&x->move), ft__move_knob(&a.list[k].move));
    }
    /* fp32 to autocast: 2 x (200 - 50) ms; compile: 2 x 30; flash: 2 x 20; the vocabulary 2 x 5 (the first
     * forecast's 4). */
    assert_int_equal(a.list[0].move.kind, FT_MOVE_DTYPE);
    assert_int_equal(find(&a, FT_MOVE_EXECUTION)->after.work.execution, FT_RUN_COMPILE);
    assert_true(fabs(find(&a, FT_MOVE_ATTENTION)->saves_ms - 40) < 1e-9);
    assert_true(find(&a, FT_MOVE_VOCAB)->after.arch->vocab % 64 == 0);
    assert_true(a.together.saves_ms >= a.list[0].saves_ms);
    assert_int_equal(a.together.after.work.execution, FT_RUN_COMPILE);
    assert_int_equal(a.together.after.work.attention, FT_FLASH);
    assert_true(a.together.after.work.autocast);
    assert_true(fabs(a.verdicts.doubled_ms - 2 * 530) < 1e-9);
    assert_true(a.table_count > 8);
    ft__arena_free(m->arena);
}

static void what_another_one_already_saves_is_no_advice(void **state)
{
    (void)state;
    made_up *m = fresh();
    m->cancel = true;
    ft_change now = request();
    ft_advised a;
    assert_int_equal(advise(m, &now, &a), FT_OK);
    assert_non_null(find(&a, FT_MOVE_EXECUTION));
    assert_null(find(&a, FT_MOVE_ATTENTION));
    ft__arena_free(m->arena);
}

static void what_does_not_fit_is_no_advice(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    now.work.dtype = FT_BF16;
    now.work.recompute = FT_RECOMPUTE_FULL;
    m->room = 30; /* 20 with recomputation, 40 without */
    ft_advised a;
    assert_int_equal(advise(m, &now, &a), FT_OK);
    assert_null(find(&a, FT_MOVE_RECOMPUTE));
    assert_null(find(&a, FT_MOVE_BATCH));
    m->room = 1; /* nothing fits: what takes no more still helps */
    assert_int_equal(advise(m, &now, &a), FT_OK);
    assert_non_null(find(&a, FT_MOVE_EXECUTION));
    ft__arena_free(m->arena);
}

static void what_makes_it_fit_comes_first(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    m->slim = true;
    m->room = 20; /* 80 as asked, 40 in 16 bits, which saves most; 10 with flash attention */
    ft_advised a;
    assert_int_equal(advise(m, &now, &a), FT_OK);
    assert_true(a.count >= 2);
    assert_int_equal(a.list[0].move.kind, FT_MOVE_ATTENTION);
    assert_true(a.list[0].fits);
    assert_non_null(find(&a, FT_MOVE_DTYPE));
    ft__arena_free(m->arena);
}

/* A purchase wants more than a percent, or than a coin's chance. */
static void another_gpu_must_be_worth_it(void **state)
{
    (void)state;
    static const double faster[] = {0.01, 0.05, 0.5};
    ft_device other = device;
    const ft_device *gpus[] = {&other};
    for (int i = 0; i < 3; i++) {
        made_up *m = fresh();
        ft_change now = request();
        ft_step step;
        ft_advised a;
        m->faster = faster[i];
        fill_step(&now, m, &step);
        ft_advice_case c = {.now = &now,
                            .step = &step,
                            .graph = m->graph,
                            .again = again,
                            .user = m,
                            .quantile = 0.9,
                            .gpus = gpus,
                            .gpu_count = 1};
        assert_int_equal(ft__advise(&c, m->arena, &a, NULL), FT_OK);
        assert_int_equal(a.gpu_count, i == 2);
        for (size_t k = 0; k < a.gpu_count; k++)
            assert_true(a.gpus[k].saves_ms >= 0.02 * step.step_ms && a.gpus[k].low_ms > -0.5 * a.gpus[k].saves_ms);
        ft__arena_free(m->arena);
    }
}

/* A layout of 1024 GPUs with everything that can be moved: what is tried is counted, and no try is made twice over. */
static void advice_costs_few_forecasts(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    ft_advised a;
    now.work.accumulate = 64, now.work.recompute = FT_RECOMPUTE_FULL, now.work.optimizer = FT_ADAMW_FOREACH;
    now.parallel = (ft_parallel){.tp = 8, .pp = 16, .dp = 8, .vpp = 1, .cp = 1, .ep = 1, .sp = true, .zero = 1};
    now.global_batch = now.work.batch * now.work.accumulate * now.parallel.dp;
    assert_int_equal(advise(m, &now, &a), FT_OK);
    assert_int_equal(a.forecasts, m->asked);
    assert_true(a.count > 2 && a.table_count > 5);
    if (a.forecasts > 80) fail_msg("%d forecasts", a.forecasts);
    ft__arena_free(m->arena);
}

static void failures(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    ft_advised a;
    m->failure = FT_E_UNSUPPORTED;
    assert_int_equal(advise(m, &now, &a), FT_OK); /* nothing can be forecast, so nothing is advised */
    assert_int_equal(a.count, 0);
    assert_true(m->asked > 5);
    m->failure = FT_E_MEMORY;
    assert_int_equal(advise(m, &now, &a), FT_E_MEMORY);
    ft__arena_free(m->arena);
}

static void moves_keep_gpus_and_batches(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int s = 0; s < FT_SHIFTS; s++) {
        ft_change c = request(), before;
        c.parallel.dp = 4, c.parallel.tp = 4, c.parallel.pp = 2, c.parallel.cp = 2, c.work.accumulate = 8;
        before = c;
        ft_move m = {.kind = FT_MOVE_DEGREES, .to = s};
        assert_true(ft__move_apply(&m, &c, arena));
        assert_int_equal(ft__parallel_ranks(&c.parallel), ft__parallel_ranks(&before.parallel));
        assert_int_equal(c.work.batch * c.work.accumulate * c.parallel.dp, 2 * 8 * 4);
        assert_true(fabs(ft__change_samples(&c) - ft__change_samples(&before)) < 1e-12);
    }
    ft_change c = request();
    c.work.accumulate = 6;
    ft_move micro = {.kind = FT_MOVE_MICRO, .to = 5};
    assert_false(ft__move_apply(&micro, &c, arena)); /* 12 sequences are no portions of 5 */
    micro.to = 4;
    assert_true(ft__move_apply(&micro, &c, arena));
    assert_int_equal(c.work.accumulate, 3);
    ft_move hidden = {.kind = FT_MOVE_HIDDEN, .to = 513};
    assert_false(ft__move_apply(&hidden, &c, arena));
    ft__arena_free(arena);
}

/* -- verdicts ---------------------------------------------------------------------------------- */

static void what_holds_a_step(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    now.work.dtype = FT_BF16;
    ft_step step;
    fill_step(&now, m, &step);
    ft__regime_settle(m->graph, &device, &step);
    assert_int_equal(step.kernels[0].forecast.bound, FT_BOUND_COMPUTE);
    assert_int_equal(step.kernels[1].forecast.bound, FT_BOUND_MEMORY); /* a FLOP per byte */
    assert_true(fabs(step.regime[FT_BOUND_MEMORY] - 60.0 / 115) < 1e-9);
    assert_int_equal(step.bound, FT_BOUND_MEMORY);
    ft_verdicts v;
    assert_int_equal(ft__verdicts_of(&now, m->graph, &step, m->arena, &v, NULL), FT_OK);
    assert_int_equal(v.layer_count, 1);
    assert_true(fabs(v.layers[0].share[FT_BOUND_MEMORY] - 60.0 / 115) < 1e-9);
    assert_true(fabs(v.whole.tail - 0.25) < 1e-9); /* 1.5 of 2 waves */
    assert_true(v.phase[FT_FORWARD].ms > 0 && !(v.phase[FT_BACKWARD].ms > 0));
    step.step_ms = 400, step.idle_ms = 170, step.host_ms = 399; /* the host never rests */
    ft__regime_settle(m->graph, &device, &step);
    assert_int_equal(step.bound, FT_BOUND_OVERHEAD);
    ft__arena_free(m->arena);
}

/* 0.1 * 3 / 3 is more than 0.1: what one share is rounded up by must not make the other less than nothing. */
static void no_share_is_below_nothing(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    now.work.dtype = FT_BF16;
    ft_step step;
    for (int i = 1; i < 1000; i++) {
        fill_step(&now, m, &step);
        step.kernel_count = 1; /* the product alone: nothing is held by memory */
        step.kernels[0].forecast.ms = step.kernels[0].forecast.launch_ms + 3;
        step.regime[FT_BOUND_COMPUTE] = 0.001 * i;
        step.regime[FT_BOUND_MEMORY] = 0;
        ft__regime_settle(m->graph, &device, &step);
        assert_true(step.regime[FT_BOUND_COMPUTE] >= 0 && step.regime[FT_BOUND_MEMORY] >= 0);
    }
    ft__arena_free(m->arena);
}

static void equal_kernels_cancel(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request(), other = now;
    ft_step a, b;
    ft_tally x, y;
    double below, above, apart, unused, narrow;
    other.work.execution = FT_RUN_COMPILE;
    fill_step(&now, m, &a);
    fill_step(&other, m, &b);
    assert_int_equal(ft__tally(m->graph, &a, false, 0, m->arena, &x, NULL), FT_OK);
    assert_int_equal(ft__tally(m->graph, &b, true, 0, m->arena, &y, NULL), FT_OK);
    ft__difference(&x, &y, 1, false, 0.9, &below, &above);
    ft__difference(&x, &y, 1, true, 0.9, &apart, &unused);
    assert_true(below > 0 && above > 0 && apart > 1.5 * below); /* the product, 400 ms within a tenth, is in both */
    ft__difference(&x, &y, 1, false, 0.5, &narrow, &unused);
    assert_true(narrow < below);
    ft__arena_free(m->arena);
}

/* Two runs on one host do not go equally fast: a step against itself is not known exactly where the host paces it. */
static void hosts_do_not_cancel(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    ft_step paced, hidden;
    ft_tally x, y;
    double below, above, calm, unused;
    fill_step(&now, m, &paced);
    hidden = paced;
    hidden.pace = paced.pace = NULL;
    hidden.ranks = paced.ranks = 2;
    hidden.idle_ms = 0, hidden.host_ms = 0.1 * hidden.step_ms;
    paced.idle_ms = 0.5 * paced.step_ms, paced.host_ms = paced.step_ms;
    assert_int_equal(ft__tally(m->graph, &paced, false, 0, m->arena, &x, NULL), FT_OK);
    assert_int_equal(ft__tally(m->graph, &hidden, false, 0, m->arena, &y, NULL), FT_OK);
    assert_true(x.late[FT_HOST_OF_BOTH] > x.late[FT_HOST_OF_RUN] && x.early[FT_HOST_OF_RUN] > 0);
    assert_true(!(y.late[FT_HOST_OF_BOTH] > 0) && !(y.early[FT_HOST_OF_BOTH] > 0));
    ft__difference(&x, &x, 1, false, 0.9, &below, &above);
    ft__difference(&y, &y, 1, false, 0.9, &calm, &unused);
    assert_true(below > 1.5 * calm && above > 1.5 * calm);
    ft__arena_free(m->arena);
}

/* -- the checklist ----------------------------------------------------------------------------- */

/* Unaligned rows take twice the time; `*user`: multiples of 64 a tenth of it. */
static ft_status probed(const ft_op *op, void *user, ft_forecast *out, ft_error *err)
{
    (void)err;
    double ms = (double)op->u.gemm.n;
    if (op->u.gemm.n % 8) ms *= 2;
    if (*(bool *)user && op->u.gemm.n % 64 == 0) ms /= 5;
    *out = (ft_forecast){.ms = ms};
    return FT_OK;
}

static void the_cheapest_fix(void **state)
{
    (void)state;
    made_up *m = fresh();
    ft_change now = request();
    ft_step step;
    fill_step(&now, m, &step);
    for (int wide = 0; wide < 2; wide++) {
        bool steep = wide;
        ft_probe probe = {probed, &steep};
        ft_lint *found;
        size_t count;
        assert_int_equal(ft__lint(m->graph, &step, &device, &probe, m->arena, &found, &count, NULL), FT_OK);
        assert_int_equal(count, 1);
        assert_int_equal(found[0].kind, FT_LINT_ALIGNMENT);
        assert_int_equal(found[0].from, 1001);
        assert_int_equal(found[0].to, wide ? 1024 : 1008);
        assert_true(found[0].saves_ms > 0.4 * step.kernels[0].forecast.ms);
    }
    ft__arena_free(m->arena);
}

/* -- memory ------------------------------------------------------------------------------------ */

static ft_status explain(void *context)
{
    ft_context *ft;
    ft_options options = {.predictor = "roofline"};
    FT_TRY(ft_open(&ft, &options, NULL));
    char *text = ft_answer(ft, context);
    ft_status status = !text || strstr(text, "out_of_memory") ? FT_E_MEMORY : FT_OK;
    if (text && status == FT_OK && !strstr(text, "\"ok\":true")) fail_msg("%s", text);
    free(text);
    ft_close(ft);
    return status;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    char request_text[] =
        "{\"task\":\"forward\",\"model\":{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_embd\":72,\"n_head\":"
        "9},\"gpu\":\"h200_sxm\",\"batch\":1,\"seq\":16,\"advice\":true}";
    failing_alloc_at(0, false);
    assert_int_equal(explain(request_text), FT_OK);
    const long all = failing_alloc_count();
    assert_true(all > 100);
    for (long n = 1; n <= all; n += 1 + all / 150) { /* every one would take long: the catalogue is read each time */
        failing_alloc_at(n, n % 2);
        ft_status status = explain(request_text);
        failing_alloc_at(0, false);
        assert_true(status == FT_OK || status == FT_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_is_ranked_and_goes_together),
        cmocka_unit_test(what_another_one_already_saves_is_no_advice),
        cmocka_unit_test(what_does_not_fit_is_no_advice),
        cmocka_unit_test(what_makes_it_fit_comes_first),
        cmocka_unit_test(another_gpu_must_be_worth_it),
        cmocka_unit_test(advice_costs_few_forecasts),
        cmocka_unit_test(failures),
        cmocka_unit_test(moves_keep_gpus_and_batches),
        cmocka_unit_test(what_holds_a_step),
        cmocka_unit_test(no_share_is_below_nothing),
        cmocka_unit_test(equal_kernels_cancel),
        cmocka_unit_test(hosts_do_not_cancel),
        cmocka_unit_test(the_cheapest_fix),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
