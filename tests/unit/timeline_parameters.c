/* Zero 3 tensor by tensor, as DeepSpeed of 2021 ran it: what is gathered how often, what runs beside it, what ranks
 * cost. */
#include "ranks_rig.h"

#include "ranks/lanes.h"

static ft_cluster nodes_of_eight(int64_t gpus, double gbps, double latency_us)
{
    ft_cluster c = {.tiers = 2, .gpus_per_node = 8, .nodes = (gpus + 7) / 8, .gpus = gpus};
    c.tier[0] = (ft_tier){.fabric = FT_NVLINK, .gbps = 300, .efficiency = 1, .gpus = 8, .oversubscription = 1};
    c.tier[1] = (ft_tier){.fabric = FT_INFINIBAND,
                          .gbps = gbps,
                          .efficiency = 1,
                          .latency_us = latency_us,
                          .gpus = gpus,
                          .switched = true,
                          .oversubscription = 1};
    return c;
}

static void begin(rig *r, const char *model, int64_t ranks)
{
    *r = (rig){.arena = ft__arena_new(0),
               .memo = ft__memo_new(),
               .device = limit_device("a100_sxm_80gb"),
               .arch = open_model(model),
               .work = train_work(1, 2048),
               .parallel = layout_of(1, 1, 1, 1, ranks)};
    r->work.dtype = FT_FP16;
    assert_int_equal(ft__stack_find("megatron_2021", &r->work.stack, NULL), FT_OK);
    r->work.recompute = FT_RECOMPUTE_FULL;
    r->parallel.zero = 3;
    r->cluster = nodes_of_eight(16384, 25, 10);
}

static double step_of(rig *r)
{
    forecast_sound(r);
    return r->step.step_ms;
}

/* Stops, gathers on their way beside kernels, and reductions of one iteration of the layers. */
typedef struct counts {
    int stops, fetched, ahead, released, reduced;
} counts;

static counts count(const rig *r, ft_phase phase)
{
    const ft_stage *s = &r->ranked.stages[0];
    counts c = {0};
    assert_non_null(s->lanes->sharded);
    for (int32_t b = 0; b < s->g->block_count; b++) {
        const ft_block *block = &s->g->blocks[b];
        if (block->phase != (phase == FT_FORWARD ? FT_FORWARD : FT_BACKWARD) || block->repeat < 2) continue;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_sharded *at = &s->lanes->sharded[i];
            c.reduced += (at->before.exchange > 0) + (at->behind.exchange > 0);
            if (s->g->nodes[i].phase != phase) continue;
            c.stops += at->stops;
            c.fetched += at->fetch > 0;
            c.ahead += at->ahead > 0;
            c.released += at->releases;
            assert_true(at->ahead >= at->issue && at->issue >= 0 && at->fetch >= 0);
            assert_true(at->stops || !(at->fetch > 0 || at->ahead > 0));
        }
    }
    return c;
}

/* GPT-3's layer: 3, 1, 4 and 4 times 151 million, beside a tied table of 618. Less than 10^9 of them are there with
 * the second alone, so that the third comes ahead; going back it is the first one, and the fourth, just used, is still
 * there. */
static void gpt3_gathers_mostly_in_the_open(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt3-175b", 384);
    forecast_sound(&r);
    counts forward = count(&r, FT_FORWARD), again = count(&r, FT_RECOMPUTE), back = count(&r, FT_BACKWARD);
    assert_int_equal(forward.stops, 4);
    assert_int_equal(forward.fetched, 3);
    assert_int_equal(forward.ahead, 1);
    assert_int_equal(forward.released, 4);
    assert_int_equal(again.fetched, 3);
    assert_int_equal(again.released, 3);
    assert_int_equal(back.fetched, 2);
    assert_int_equal(back.ahead, 1);
    assert_int_equal(back.released, 4);
    end(&r);
}

/* A small model's layer stays from when it runs again to its gradient, and gathers come ahead. */
static void small_layers_stay(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt2-xl", 16);
    forecast_sound(&r);
    counts again = count(&r, FT_RECOMPUTE), back = count(&r, FT_BACKWARD);
    assert_int_equal(again.released, 0);
    assert_int_equal(back.fetched, 0);
    assert_int_equal(back.released, 4);
    assert_true(count(&r, FT_FORWARD).ahead > 1);
    end(&r);
}

/* What passes the wire: parameters forward, again, and back less a third of them, gradients once. On a network so slow
 * that nothing else counts. */
static void volumes(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt3-175b", 64);
    r.cluster = nodes_of_eight(64, 0.002, 0);
    forecast_sound(&r);
    const ft_stage *s = &r.ranked.stages[0];
    double h = 12288, layers = 96 * 12 * h * h, table = (s->dense - layers), ring = 63.0 / 64, gbps = 8 * 0.002;
    double passes = (2 + 8.0 / 12 + 1) * layers + 3 * table, ms = passes * ring * 2e-9 / gbps * 1e3;
    assert_true(fabs(r.step.axis_ms[FT_AXIS_DATA] / ms - 1) < 0.03);
    double both = r.step.axis_ms[FT_AXIS_DATA];
    r.parallel.keep_gathered = true; /* gathered once, reduced once */
    forecast_sound(&r);
    ms = (2 * layers + 2 * table) * ring * 2e-9 / gbps * 1e3;
    assert_true(fabs(r.step.axis_ms[FT_AXIS_DATA] / ms - 1) < 0.03);
    assert_true(r.step.axis_ms[FT_AXIS_DATA] < both);
    end(&r);
}

/* Every entry of a list costs the host, however small it is: more ranks take longer for the same parameters. */
static void ranks_cost_by_themselves(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt3-6.7b", 64);
    double few = step_of(&r);
    r.parallel.dp = 1024;
    double many = step_of(&r);
    r.parallel.gather = FT_GATHER_LAYER;
    double by_layer = step_of(&r);
    assert_true(many > 3 * few && by_layer < few);
    r.parallel.gather = FT_GATHER_PARAMETER;
    r.parallel.shard = 64; /* lists of 64 again, and a sum over the copies */
    double hybrid = step_of(&r);
    assert_true(hybrid < 1.5 * few && hybrid > 0.9 * few);
    r.parallel.shard = 0;
    r.work.host_us_per_op = 80; /* a host of half the speed */
    double slow = step_of(&r);
    r.work.host_us_per_op = 40;
    assert_true(slow > 1.5 * step_of(&r));
    r.work.host_us_per_op = 0;
    r.work.execution = FT_RUN_IDEAL; /* and one that costs nothing */
    assert_true(step_of(&r) < 0.5 * many);
    end(&r);
}

static void the_stack_decides_where_nothing_is_said(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt3-6.7b", 64);
    double old = step_of(&r);
    r.parallel.gather = FT_GATHER_PARAMETER;
    assert_true(step_of(&r) == old);
    r.parallel.gather = FT_GATHER_LAYER;
    assert_true(step_of(&r) < old);
    assert_null(r.ranked.stages[0].lanes->sharded);
    static const struct {
        ft_dtype dtype;
        ft_execution execution;
    } layered[] = {{FT_FP16, FT_RUN_FUSED}, {FT_FP16, FT_RUN_EAGER}, {FT_FP16, FT_RUN_COMPILE}, {FT_FP8, FT_RUN_FUSED}};
    r.work.stack = NULL;
    for (size_t i = 0; i < sizeof layered / sizeof *layered; i++) {
        r.work.dtype = layered[i].dtype;
        r.work.execution = layered[i].execution;
        r.parallel.gather = FT_GATHER_AS_STACK;
        assert_false(ft__ranks_by_parameter(&r.parallel, &r.work));
        r.parallel.gather = FT_GATHER_PARAMETER;
        assert_true(ft__ranks_by_parameter(&r.parallel, &r.work));
        r.parallel.zero = 2; /* whole parameters are not gathered */
        assert_false(ft__ranks_by_parameter(&r.parallel, &r.work));
        r.parallel.zero = 3;
    }
    end(&r);
}

/* Micro-batches gather and reduce each for themselves; without overlap reductions come behind. */
static void micro_batches_and_order(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt3-6.7b", 64);
    double once = step_of(&r), exchanged = r.step.comm_ms, after = r.ranked.stages[0].gather_ms;
    r.work.accumulate = 4;
    forecast_sound(&r);
    assert_true(fabs((r.step.comm_ms - after) / (exchanged - after) / 4 - 1) < 0.02);
    assert_true(r.step.step_ms > 3.5 * (once - after));
    r.work.accumulate = 1;
    r.parallel.no_overlap = true;
    assert_true(step_of(&r) >= once);
    r.parallel.no_overlap = false;
    r.parallel = layout_of(2, 2, 1, 1, 16); /* with tensor ranks and a pipeline */
    r.parallel.zero = 3;
    r.work.accumulate = 4;
    assert_true(step_of(&r) > 0);
    r.parallel = layout_of(1, 1, 1, 1, 1); /* nobody to share with */
    r.parallel.zero = 3;
    r.work.accumulate = 1;
    forecast_sound(&r);
    assert_null(r.ranked.stages[0].lanes->sharded);
    assert_true(r.step.comm_ms == 0);
    end(&r);
}

/* Experts that no other rank has are not gathered; all other designs run through. */
static void other_models(void **state)
{
    (void)state;
    static const char *const models[] = {"mixtral-8x7b", "bert-large-uncased", "t5-base", "resnet-50", "mamba2-1.3b"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        rig r;
        begin(&r, models[i], 8);
        r.work.seq = 512;
        r.parallel.ep = i == 0 ? 8 : 1;
        double by_tensor = step_of(&r);
        r.parallel.gather = FT_GATHER_LAYER;
        assert_true(by_tensor > step_of(&r));
        end(&r);
    }
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    rig r;
    begin(&r, "gpt3-175b", 64);
    assert_survives_want(&r, (size_t)1 << 24, 16, 20);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt3_gathers_mostly_in_the_open),
        cmocka_unit_test(small_layers_stay),
        cmocka_unit_test(volumes),
        cmocka_unit_test(ranks_cost_by_themselves),
        cmocka_unit_test(the_stack_decides_where_nothing_is_said),
        cmocka_unit_test(micro_batches_and_order),
        cmocka_unit_test(other_models),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
