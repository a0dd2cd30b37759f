/* Interleaved stages whose chunks differ: times, activations and arithmetic go to the chunk that has them. */
#include "ranks_rig.h"

static rig begin(const char *model, int64_t tp, int64_t pp, int64_t vpp, int64_t micros)
{
    rig r = {.arena = ft__arena_new(0),
             .memo = ft__memo_new(),
             .device = limit_device("h100_sxm"),
             .arch = open_model(model),
             .work = train_work(1, 4096),
             .parallel = layout_of(tp, pp, 1, 1, 1)};
    r.cluster = (ft_cluster){.tiers = 1, .gpus_per_node = 4096, .nodes = 1, .gpus = 4096};
    r.cluster.tier[0] =
        (ft_tier){.fabric = FT_NVLINK, .gbps = 450, .efficiency = 1, .gpus = 4096, .oversubscription = 1};
    r.cluster.tier[0].switched = true;
    r.parallel.vpp = vpp;
    r.parallel.schedule = vpp > 1 ? FT_INTERLEAVED : FT_1F1B;
    r.work.accumulate = micros;
    return r;
}

static void forecast(rig *r)
{
    ft_ranks ranks = ranks_of(r);
    ft_divisible model = ft__ranks_model(&r->arch, &r->work);
    ft_error err;
    if (ft__parallel_check(&r->parallel, &model, &err) != FT_OK ||
        ft__ranks_forecast(&ranks, &r->step, &r->ranked, NULL, &err) != FT_OK)
        fail_msg("%s", err.message);
}

static bool near(double a, double b, double within) { return fabs(a - b) <= within * fabs(b); }

/* 128 slots of one layer: the first chunk of all holds the embedding alone, the last the head. */
static void a_chunk_may_hold_the_embedding_alone(void **state)
{
    (void)state;
    rig r = begin("llama-3.1-405b", 8, 16, 8, 32);
    forecast(&r);
    const ft_stage *first = &r.ranked.stages[0], *middle = &r.ranked.stages[7], *last = &r.ranked.stages[15];
    double layer = middle->chunk_forward_ms[0];
    assert_true(near(middle->chunk_forward_ms[7], layer, 1e-9));
    assert_true(near(first->chunk_forward_ms[3], layer, 0.02));
    assert_true(first->chunk_forward_ms[0] > 0 && first->chunk_forward_ms[0] < 0.3 * layer);
    assert_true(first->chunk_saved[0] < 0.1 * first->chunk_saved[1]);
    assert_true(last->chunk_forward_ms[7] > 0 && !near(last->chunk_forward_ms[7], layer, 0.05));
    for (int64_t s = 0; s < 16; s++) {
        double forward = 0, backward = 0, saved = 0;
        for (int c = 0; c < 8; c++) {
            forward += r.ranked.stages[s].chunk_forward_ms[c];
            backward += r.ranked.stages[s].chunk_backward_ms[c];
            saved += r.ranked.stages[s].chunk_saved[c];
        }
        assert_true(near(forward, r.ranked.stages[s].forward_ms, 1e-9));
        assert_true(near(backward, r.ranked.stages[s].backward_ms, 1e-9));
        assert_true(near(saved, 1, 1e-9));
    }
    end(&r);
}

/* However they are dealt out, the layers' arithmetic and parameters are the model's. */
static void nothing_is_lost_between_chunks(void **state)
{
    (void)state;
    static const int64_t layouts[][2] = {{1, 1}, {2, 1}, {8, 1}, {16, 1}, {8, 2}, {8, 4}, {8, 8}, {16, 4}, {16, 8}};
    double flops = 0, elements = 0;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        rig r = begin("llama-3.1-405b", 8, layouts[i][0], layouts[i][1], 16);
        forecast(&r);
        double all = 0;
        for (int64_t s = 0; s < layouts[i][0]; s++) all += r.ranked.stages[s].dense;
        if (i == 0) {
            flops = r.step.model_flops;
            elements = all;
        }
        assert_true(near(r.step.model_flops * (double)layouts[i][0], flops, 1e-9));
        assert_true(near(all, elements, 1e-9));
        assert_true(r.step.busy_ms <= r.step.step_ms);
        end(&r);
    }
}

/* Nor where layers alternate and each is a block of its own: what stands between two chunks is other stages', and the
 * gradient still reaches the first. */
static void nothing_is_lost_between_chunks_of_unlike_layers(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t vpp[3];
    } cases[] = {{"gpt-oss-20b", {2, 3, 6}}, {"gemma-3-27b", {2, 4, 8}}, {"gpt-neo-1.3b", {2, 3, 6}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double flops = 0, passes = 0, saved = 0;
        for (int v = -1; v < 3; v++) {
            rig r = begin(cases[i].model, 1, 4, v < 0 ? 1 : cases[i].vpp[v], 16);
            r.work.seq = 2048;
            forecast(&r);
            double took = 0, left = 0;
            for (int64_t s = 0; s < 4; s++) {
                took += r.ranked.stages[s].forward_ms + r.ranked.stages[s].backward_ms;
                left += r.ranked.stages[s].saved_bytes;
            }
            if (v < 0) flops = r.step.model_flops, passes = took, saved = left;
            if (!near(r.step.model_flops, flops, 1e-9) || !near(took, passes, 0.03) || !near(left, saved, 0.01))
                fail_msg("%s, vpp %d: %.4g of %.4g FLOPs, %.1f of %.1f ms, %.4g of %.4g bytes", cases[i].model,
                         (int)r.parallel.vpp, r.step.model_flops, flops, took, passes, left, saved);
            end(&r);
        }
    }
}

/* More chunks, less of a bubble: with (p-1)/v pieces of equal length it would be halved each time. */
static void bubbles_shrink_with_chunks(void **state)
{
    (void)state;
    double before = 0;
    for (int64_t vpp = 1; vpp <= 16; vpp *= 2) {
        rig r = begin("llama-3.1-405b", 8, 8, vpp, 32);
        r.cluster.tier[0].gbps = 1e5; /* sends that take no time */
        forecast(&r);
        if (vpp > 1) assert_true(r.step.bubble_ms < 0.75 * before);
        before = r.step.bubble_ms;
        end(&r);
    }
}

/* Of the last stage's chunks the first waits for all stages behind it and the last for none: so do the logits. */
static void logits_wait_in_the_last_chunk_alone(void **state)
{
    (void)state;
    rig r = begin("llama-3-8b", 1, 4, 2, 16);
    forecast(&r);
    const ft_stage *last = &r.ranked.stages[3];
    double held = ft__ranks_held(&r.parallel, &r.ranked.pipe, 3, last), one[2] = {1, 0}, two[2] = {0, 1};
    const ft_pipe_op *ops = r.ranked.pipe.ops[3];
    int32_t count = r.ranked.pipe.op_count[3];
    assert_true(last->chunk_saved[1] > 1.2 * last->chunk_saved[0]);
    assert_true(ft__pipeline_alive(ops, count, two) < ft__pipeline_alive(ops, count, one));
    assert_true(held < r.ranked.pipe.in_flight[3]);
    assert_true(near(last->held.activations_bytes, held * last->saved_bytes, 0.05));
    /* Narayanan et al.: p (1 + (p-1)/(pv)) micro-batches on the first stage, counted in micro-batches. */
    assert_true(fabs(r.ranked.pipe.in_flight[0] - 4 * (1 + 3.0 / 8)) <= 0.5);
    end(&r);
}

/* Memory alone finds what the whole forecast finds, where the first stage is not the one with most layers. */
static void memory_alone_agrees(void **state)
{
    (void)state;
    static const int64_t layouts[][2] = {{8, 1}, {16, 1}, {8, 2}, {8, 8}, {16, 8}};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        for (int recompute = 0; recompute < 2; recompute++) {
            rig r = begin("llama-3.1-405b", 8, layouts[i][0], layouts[i][1], 32);
            if (recompute) r.work.recompute = FT_RECOMPUTE_FULL;
            forecast(&r);
            ft_ranks ranks = ranks_of(&r);
            ft_memory m;
            int64_t worst;
            assert_int_equal(ft__ranks_memory(&ranks, &m, &worst, NULL), FT_OK);
            if (!near(m.peak_bytes, r.step.memory.peak_bytes, 0.002) || worst != r.step.worst_stage)
                fail_msg("pp %lld vpp %lld: %.4g on stage %lld, not %.4g on %lld", (long long)layouts[i][0],
                         (long long)layouts[i][1], m.peak_bytes, (long long)worst, r.step.memory.peak_bytes,
                         (long long)r.step.worst_stage);
            end(&r);
        }
}

/* Also where the first stages hold dense layers and those behind them experts. */
static void memory_alone_looks_at_the_experts(void **state)
{
    (void)state;
    static const char *const models[] = {"kimi-k2", "deepseek-v3", "deepseek-v2-lite"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        rig r = begin(models[i], 1, i < 2 ? 32 : 8, 1, 32);
        r.work.seq = 512;
        r.work.recompute = FT_RECOMPUTE_FULL;
        forecast(&r);
        ft_ranks ranks = ranks_of(&r);
        ft_memory m;
        int64_t worst;
        assert_int_equal(ft__ranks_memory(&ranks, &m, &worst, NULL), FT_OK);
        if (!near(m.peak_bytes, r.step.memory.peak_bytes, 0.005))
            fail_msg("%s: %.4g on stage %lld, not %.4g on %lld", models[i], m.peak_bytes, (long long)worst,
                     r.step.memory.peak_bytes, (long long)r.step.worst_stage);
        end(&r);
    }
}

/* 1,024 H100s as Megatron-Bridge publishes them. */
static void many_chunks_take_little_memory(void **state)
{
    (void)state;
    rig r = begin("llama-3.1-405b", 8, 8, 8, 192);
    r.parallel.cp = 2;
    r.parallel.dp = 8;
    r.parallel.sp = true;
    r.work.seq = 8192;
    assert_small(&r, forecast, (size_t)16 << 20);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_may_hold_the_embedding_alone),
        cmocka_unit_test(nothing_is_lost_between_chunks),
        cmocka_unit_test(nothing_is_lost_between_chunks_of_unlike_layers),
        cmocka_unit_test(bubbles_shrink_with_chunks),
        cmocka_unit_test(logits_wait_in_the_last_chunk_alone),
        cmocka_unit_test(memory_alone_agrees),
        cmocka_unit_test(memory_alone_looks_at_the_experts),
        cmocka_unit_test(many_chunks_take_little_memory),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
