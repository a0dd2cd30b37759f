/* Advice over a made-up forecast: ranking, what excludes what, what does not fit, failures; verdicts; the checklist. */
#include "made_up_step.h"

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

static ft_status advise(made_up *m, const ft_change *now, ft_advised *out)
{
    ft_step *step = ft__arena_alloc(m->arena, sizeof *step);
    assert_non_null(step);
    fill_step(now, m, step);
    ft_advice_case c = {
        .now = now, .step = step, .graph = m->graph, .again = again, .user = m, .techniques = true, .quantile = 0.9};
    return ft__advise(&c, m->arena, out, NULL);
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

/* Reasons that hang on what a move changes are empty; a knob is a move of its own. */
static void every_move_stands_in_the_list(void **state)
{
    (void)state;
    int asked = 0;
    for (int kind = 0; kind < FT_MOVE_KINDS; kind++) {
        ft_move m = {.kind = (ft_move_kind)kind};
        int knob = ft__move_knob(&m);
        ft_move of = {.kind = (ft_move_kind)knob};
        assert_int_equal(knob, ft__move_knob(&of));
        asked += !*ft__move_why(m.kind);
    }
    assert_int_equal(3, asked);
    ft_move micro = {.kind = FT_MOVE_MICRO}, chunks = {.kind = FT_MOVE_CHUNKS}, copies = {.kind = FT_MOVE_COPIES};
    assert_int_equal(FT_MOVE_BATCH, ft__move_knob(&micro));
    assert_int_equal(FT_MOVE_SCHEDULE, ft__move_knob(&chunks));
    assert_int_equal(FT_MOVE_ZERO, ft__move_knob(&copies));
    assert_string_equal("", ft__move_why(FT_MOVE_KINDS));
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
        cmocka_unit_test(every_move_stands_in_the_list),
        cmocka_unit_test(failures),
        cmocka_unit_test(moves_keep_gpus_and_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
