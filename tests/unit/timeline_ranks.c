/* A step on many GPUs beside one on one, its stages, and how long its forecast takes. */
#include "ranks_steps.h"

/* -- one GPU and many -------------------------------------------------------------------------- */

/* A GPU that exchanges nothing takes as long among others as alone; one that sends gradients no less. */
static void company_makes_nobody_faster(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt2", "resnet-18", "llama-3.2-1b"};
    static const ft_execution ways[] = {FT_RUN_EAGER, FT_RUN_FUSED, FT_RUN_COMPILE, FT_RUN_CUDA_GRAPH};
    for (size_t m = 0; m < 3; m++)
        for (size_t w = 0; w < 4; w++)
            for (int kind = 0; kind < 4; kind++) {
                rig r;
                begin(&r, models[m]);
                r.work.seq = kind == 3 ? 2048 : 512;
                r.work.execution = ways[w];
                r.work.task = kind == 0 ? FT_DECODE : FT_TRAIN;
                r.work.accumulate = kind == 2 ? 6 : 1;
                if (kind == 0 && m == 1) r.work.task = FT_FORWARD_PASS;
                ft_graph *g = NULL;
                ft_step alone;
                assert_int_equal(ft__model_graph(&r.arch, &r.work, r.arena, &g, NULL), FT_OK);
                assert_int_equal(
                    ft__step_forecast(g, &r.work, &r.device, predictor, 0.9, r.memo, r.arena, &alone, NULL), FT_OK);
                r.parallel = layout_of(1, 1, 1, 1, 2);
                forecast_sound(&r);
                /* DDP's hooks, 28 us a parameter, are much beside compiled steps of 2 and 6 ms. */
                double most = ways[w] >= FT_RUN_COMPILE ? 1.9 : 1.35;
                bool silent = kind == 0 && fabs(r.step.step_ms / alone.step_ms - 1) > 1e-4;
                if (silent || r.step.step_ms < alone.step_ms * (1 - 1e-3) || r.step.step_ms > most * alone.step_ms)
                    fail_msg("%s, way %d, kind %d: %.4f ms, alone %.4f", models[m], (int)w, kind, r.step.step_ms,
                             alone.step_ms);
                end(&r);
            }
}

/* What the host takes is no exchange's. */
static void waiting_for_the_host_is_not_exposed_exchange(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt2");
    r.work.execution = FT_RUN_EAGER;
    r.work.seq = 64; /* the GPU idles */
    r.parallel = layout_of(1, 1, 1, 1, 8);
    r.parallel.zero = 3;
    forecast_sound(&r);
    assert_true(r.step.idle_ms > 0.5 * r.step.step_ms);
    assert_true(r.step.comm_exposed_ms < 0.7 * r.step.comm_ms);
    end(&r);
}

/* Through slots of PCIe exchanges add their whole time; over links most of it is hidden. GeForce cards' gathers are,
 * too: nobody has shown the contrary. */
static void slots_hide_nothing(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt2-medium");
    r.work.execution = FT_RUN_EAGER;
    r.work.seq = 1024;
    r.work.batch = 8;
    r.parallel = layout_of(1, 1, 1, 1, 2);
    forecast_sound(&r);
    assert_true(r.step.comm_exposed_ms < 0.5 * r.step.comm_ms);
    r.cluster.tier[0].fabric = FT_PCIE;
    r.cluster.tier[0].gbps = 31.5;
    r.cluster.tier[0].gpus = 2;
    forecast_sound(&r);
    close_to(r.step.comm_exposed_ms, r.step.comm_ms, 0.01, "gradients through slots");
    r.parallel.zero = 3;
    ft_error err;
    assert_int_equal(ft__stack_find("fsdp2", &r.work.stack, &err), FT_OK); /* whose hooks leave the GPU to wait */
    forecast_sound(&r);
    assert_true(r.step.comm_exposed_ms > 0.7 * r.step.comm_ms);
    r.device = limit_device("rtx_4090");
    forecast_sound(&r);
    assert_true(r.step.comm_exposed_ms < 0.6 * r.step.comm_ms);
    end(&r);
}

/* The answer to what does not fit: its time, its worst rank, and what fits. */
static void what_does_not_fit_gets_a_remedy(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3-70b");
    r.parallel = layout_of(8, 1, 1, 1, 8);
    r.work.batch = 1;
    r.work.seq = 4096;
    r.work.accumulate = 8;
    forecast_sound(&r);
    assert_false(r.step.memory.fits);
    assert_true(r.step.step_ms > 0);
    assert_string_equal(r.step.memory.remedy, "zero 2");
    r.parallel = layout_of(1, 1, 1, 1, 64);
    r.work.accumulate = 1;
    forecast_sound(&r);
    assert_false(r.step.memory.fits);
    assert_string_equal(r.step.memory.remedy, "zero 3, recompute full");
    r.parallel = layout_of(8, 4, 1, 1, 2);
    r.parallel.zero = 1;
    r.work.accumulate = 16;
    forecast_sound(&r);
    assert_true(r.step.memory.fits);
    assert_string_equal(r.step.memory.remedy, "");
    /* Nothing helps on two GPUs: more of them do. */
    r.parallel = layout_of(1, 2, 1, 1, 1);
    forecast_sound(&r);
    assert_false(r.step.memory.fits);
    assert_string_equal(r.step.memory.remedy, "32 GPUs: tp 8, pp 4");
    /* Shards that the layout cannot keep change with it, in words too. */
    r.parallel = layout_of(1, 1, 1, 1, 64);
    r.parallel.zero = 3;
    r.parallel.shard = 64;
    r.work.recompute = FT_RECOMPUTE_FULL;
    r.work.seq = 24576;
    forecast_sound(&r);
    assert_true(r.step.memory.verdict != FT_FIT_YES);
    const char *dp = strstr(r.step.memory.remedy, "dp "), *shard = strstr(r.step.memory.remedy, "shard ");
    if (!dp || !shard || atoi(dp + 3) != atoi(shard + 6)) fail_msg("%s", r.step.memory.remedy);
    end(&r);
    /* Experts that every rank has its own of are shared out by more ranks alone. */
    begin(&r, "gpt-oss-120b");
    r.work.master_weights = false;
    r.work.accumulate = 2;
    r.parallel = layout_of(1, 1, 1, 8, 8);
    forecast_sound(&r);
    assert_false(r.step.memory.fits);
    int gpus = 0;
    assert_int_equal(sscanf(r.step.memory.remedy, "%d GPUs: ", &gpus), 1);
    assert_true(gpus == 16 || gpus == 32);
    end(&r);
}

/* -- stages ------------------------------------------------------------------------------------ */

static void equal_stages_are_one_and_bubbles_exact(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.1-405b");
    r.parallel = layout_of(8, 16, 1, 1, 1);
    r.parallel.sp = true;
    r.work.accumulate = 64;
    forecast_sound(&r);
    int64_t graphs = 1;
    for (int64_t s = 1; s < 16; s++) graphs += r.ranked.stages[s].g != r.ranked.stages[s - 1].g;
    assert_true(graphs <= 4); /* 126 layers: eight on fourteen of the stages, seven on two */
    /* The first and the last stage take the longest or near it: bubbles are the way there and back. */
    double slowest = 0, way = 0;
    for (int64_t s = 0; s < 16; s++) {
        double all = r.ranked.stages[s].forward_ms + r.ranked.stages[s].backward_ms;
        slowest = fmax(slowest, all);
        way += all;
    }
    assert_true(r.ranked.pipe.total_ms >= way + 63 * slowest - slowest - 1e-6);
    assert_true(r.ranked.pipe.total_ms < 1.05 * (way + 63 * slowest));
    end(&r);
}

/* Gradients beside the backward pass are there no later than those behind it, however large the buckets are. */
static void no_bucket_makes_overlap_slower(void **state)
{
    (void)state;
    static const double buckets[] = {0, 1, 25, 100, 1000};
    rig r;
    begin(&r, "pythia-160m");
    r.work.execution = FT_RUN_IDEAL;
    for (int zero = 0; zero < 4; zero++)
        for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++) {
            r.parallel = layout_of(1, 1, 1, 1, 64);
            r.parallel.zero = zero;
            r.parallel.bucket_bytes = buckets[i] * 1048576;
            r.parallel.overlap = true;
            forecast_sound(&r);
            double beside = r.step.step_ms;
            r.parallel.overlap = false;
            r.parallel.no_overlap = true;
            forecast_sound(&r);
            if (beside > r.step.step_ms * (1 + 1e-9))
                fail_msg("zero %d, buckets of %g MiB: %g ms beside, %g behind", zero, buckets[i], beside,
                         r.step.step_ms);
        }
    end(&r);
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    rig r;
    begin(&r, "mixtral-8x7b");
    r.parallel = layout_of(2, 4, 1, 4, 4);
    r.parallel.sp = true;
    r.work.accumulate = 8;
    assert_survives_want(&r, (size_t)1 << 26, 3, 5);
    r.parallel.schedule = FT_INTERLEAVED;
    r.parallel.vpp = 2;
    r.parallel.expert_overlap = 1;
    assert_survives_want(&r, (size_t)1 << 26, 3, 5);
    end(&r);
}

/* A device of dualpipe runs half of the micro-batches through either of its stages. */
static void no_device_is_busy_longer_than_the_step(void **state)
{
    (void)state;
    rig r;
    begin(&r, "pythia-160m");
    for (int schedule = 0; schedule < FT_SCHEDULE_COUNT; schedule++) {
        r.parallel = layout_of(1, 4, 1, 1, 2);
        r.parallel.schedule = (ft_schedule)schedule;
        r.work.accumulate = 16;
        forecast_sound(&r);
        assert_true(r.step.busy_ms <= r.step.step_ms * (1 + 1e-9));
    }
    end(&r);
}

/* Kernels, exchanges, other stages and the host: what a stage's time went to is all of it and no more, also where it
 * finishes before the others; what stages send each other is exchange, a tied table's sum between them too. */
static void the_parts_make_up_the_step(void **state)
{
    (void)state;
    static const char *const models[] = {"deepseek-v2-lite", "bloom-560m", "llama-3.2-1b"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (int schedule = 0; schedule < FT_SCHEDULE_COUNT; schedule++) {
            rig r;
            begin(&r, models[m]);
            r.cluster = slow_network(8, 10);
            r.parallel = layout_of(1, 4, 1, 1, 2);
            r.parallel.schedule = (ft_schedule)schedule;
            r.work.accumulate = 16;
            forecast_sound(&r);
            const ft_step *t = &r.step;
            double parts = t->busy_ms + t->comm_exposed_ms + t->bubble_ms + t->idle_ms;
            close_to(parts, t->step_ms, 1e-3, models[m]);
            assert_true(t->axis_ms[FT_AXIS_TENSOR] == 0);
            double sends = 16 * 2048 * (double)r.arch.hidden * 2 / 10e6; /* of the model's ends, one way */
            assert_true(t->axis_ms[FT_AXIS_PIPELINE] > sends && t->comm_exposed_ms <= t->comm_ms);
            end(&r);
        }
}

/* Gathered after the update or beside the next forward pass: as many bytes. */
static void what_is_gathered_ahead_is_counted(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.parallel = layout_of(1, 1, 1, 1, 16);
    r.parallel.zero = 1;
    forecast_sound(&r);
    double after = r.step.axis_ms[FT_AXIS_DATA];
    r.parallel.gather_ahead = true;
    forecast_sound(&r);
    close_to(r.step.axis_ms[FT_AXIS_DATA], after, 0.05, "gathered ahead");
    /* In buckets: over thousands of ranks a layer by itself would be all latency. Of adapters, what was updated. */
    for (int64_t adapters = 0; adapters <= 16; adapters += 16) {
        r.work.lora_rank = adapters;
        r.parallel = layout_of(1, 1, 1, 1, 4096);
        r.parallel.zero = 1;
        forecast_sound(&r);
        double step = r.step.step_ms, exchanged = r.step.axis_ms[FT_AXIS_DATA];
        r.parallel.gather_ahead = true;
        forecast_sound(&r);
        assert_true(r.step.step_ms < step);
        close_to(r.step.axis_ms[FT_AXIS_DATA], exchanged, 0.05, "gathered ahead over many ranks");
    }
    end(&r);
}

/* 16,384 GPUs, Llama 3 405B. */
static void a_large_step_takes_little_memory(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.1-405b");
    for (int v = 0; v < 2; v++) {
        r.parallel = layout_of(8, 16, 1, 1, 128);
        r.parallel.sp = true;
        r.parallel.zero = 1;
        if (v) {
            r.parallel = layout_of(8, 18, 1, 1, 113);
            r.parallel.schedule = FT_INTERLEAVED;
            r.parallel.vpp = 7;
        }
        r.work.seq = 8192;
        r.work.accumulate = v ? 36 : 32;
        assert_small(&r, forecast_sound, (size_t)16 << 20);
    }
    end(&r);
}

/* Exchanges that are kept are those that are forecast, the second time and when more were asked for than are kept. */
static void kept_exchanges_are_the_same(void **state)
{
    (void)state;
    rig r;
    begin(&r, "mixtral-8x7b");
    r.parallel = layout_of(2, 2, 1, 4, 4);
    r.work.accumulate = 4;
    ft_ranks ranks = ranks_of(&r);
    ft_step once, again;
    assert_int_equal(ft__ranks_forecast(&ranks, &once, NULL, NULL, NULL), FT_OK);
    ranks.exchanges = ft__exchanges_new();
    assert_non_null(ranks.exchanges);
    ft_group group = {.size = 2, .stride = 1};
    double ms, first = 0;
    for (int i = 0; i < 3000; i++) {
        if (i % 1000 == 0) {
            assert_int_equal(ft__ranks_forecast(&ranks, &again, NULL, NULL, NULL), FT_OK);
            assert_true(again.step_ms == once.step_ms && again.comm_ms == once.comm_ms);
            assert_true(again.low_ms == once.low_ms && again.high_ms == once.high_ms);
        }
        assert_int_equal(ft__ranks_exchange(&ranks, FT_EXCHANGE_ALL_REDUCE, &group, 1e6 + i, &ms, NULL, NULL), FT_OK);
        if (i == 0) first = ms;
    }
    assert_int_equal(ft__ranks_exchange(&ranks, FT_EXCHANGE_ALL_REDUCE, &group, 1e6, &ms, NULL, NULL), FT_OK);
    assert_true(ms == first);
    ft__exchanges_free(ranks.exchanges);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(company_makes_nobody_faster),
        cmocka_unit_test(waiting_for_the_host_is_not_exposed_exchange),
        cmocka_unit_test(slots_hide_nothing),
        cmocka_unit_test(what_does_not_fit_gets_a_remedy),
        cmocka_unit_test(equal_stages_are_one_and_bubbles_exact),
        cmocka_unit_test(no_device_is_busy_longer_than_the_step),
        cmocka_unit_test(the_parts_make_up_the_step),
        cmocka_unit_test(what_is_gathered_ahead_is_counted),
        cmocka_unit_test(no_bucket_makes_overlap_slower),
        cmocka_unit_test(running_out_of_memory_is_an_error),
        cmocka_unit_test(a_large_step_takes_little_memory),
        cmocka_unit_test(kept_exchanges_are_the_same),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
