/* Experts on many GPUs: their buckets, dualpipe, uneven loads, exchanges beside other micro-batches. */
#include "ranks_steps.h"

/* The rank whose experts are liked most sets the pace, unless it may drop what is too much. */
static void uneven_experts_take_longer(void **state)
{
    (void)state;
    rig r;
    begin(&r, "mixtral-8x7b");
    r.parallel = layout_of(1, 1, 1, 8, 8);
    forecast_sound(&r);
    double even = r.step.step_ms, sent = r.step.axis_ms[FT_AXIS_EXPERT], flops = r.step.model_flops;
    r.parallel.skew = 1.5;
    forecast_sound(&r);
    assert_true(r.step.step_ms > 1.15 * even && r.step.step_ms < 1.5 * even);
    assert_true(r.step.axis_ms[FT_AXIS_EXPERT] > 1.3 * sent);
    assert_true(r.step.model_flops == flops);
    end(&r);
}

/* Exchanges with experts run beside another micro-batch: with nothing else changed they are exposed less, however long
 * they are, the parts are still the whole, and a rank holds one micro-batch more. */
static void experts_exchange_beside_other_micro_batches(void **state)
{
    (void)state;
    static const struct {
        int64_t pp, vpp;
        ft_schedule schedule;
    } ways[] = {{1, 1, FT_1F1B}, {4, 2, FT_INTERLEAVED}, {4, 1, FT_DUALPIPE}};
    rig r;
    begin(&r, "qwen3-30b-a3b");
    r.work.host_us_per_op = 0.001; /* so that what GPUs do shows: so few tokens leave it to the host */
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        r.parallel = layout_of(1, ways[i].pp, 1, 16, 16);
        r.parallel.vpp = ways[i].vpp;
        r.parallel.schedule = ways[i].schedule;
        r.work.accumulate = 16;
        forecast_sound(&r);
        double apart = r.step.step_ms, exposed = r.step.comm_exposed_ms, sent = r.step.axis_ms[FT_AXIS_EXPERT];
        double held = r.step.memory.peak_bytes;
        r.parallel.expert_overlap = 1;
        forecast_sound(&r);
        if (!(r.step.step_ms < 0.9 * apart && r.step.step_ms > apart - sent))
            fail_msg("pp %d: %.0f ms, %.0f without overlap", (int)ways[i].pp, r.step.step_ms, apart);
        assert_true(r.step.comm_exposed_ms < exposed && r.step.axis_ms[FT_AXIS_EXPERT] == sent);
        close_to(apart - r.step.step_ms, exposed - r.step.comm_exposed_ms, 0.25, "what was hidden");
        bool dual = ways[i].schedule == FT_DUALPIPE; /* which has as many in flight in any case */
        assert_true(dual ? r.step.memory.peak_bytes == held : r.step.memory.peak_bytes > 1.02 * held);
        double joined = r.step.step_ms;
        r.parallel.expert_overlap = -1; /* as the schedule does */
        forecast_sound(&r);
        assert_true(r.step.step_ms == (dual ? joined : apart));
    }
    /* Gradients that wait for the end of every micro-batch's backward pass are not among what is hidden. */
    r.parallel = layout_of(1, 4, 1, 16, 16);
    r.parallel.schedule = FT_DUALPIPE;
    r.parallel.zero = 3;
    r.parallel.drop_gathered = r.parallel.no_overlap = true;
    forecast_sound(&r);
    double apart = r.step.step_ms;
    r.parallel.expert_overlap = 1;
    forecast_sound(&r);
    assert_true(r.step.step_ms < apart && r.step.step_ms > apart - r.step.axis_ms[FT_AXIS_EXPERT]);
    /* There is no other micro-batch. */
    r.parallel = layout_of(1, 1, 1, 16, 16);
    r.parallel.expert_overlap = 1;
    r.work.accumulate = 1;
    ft_ranks ranks = ranks_of(&r);
    ft_error err;
    assert_int_equal(ft__ranks_forecast(&ranks, &r.step, NULL, NULL, &err), FT_E_RANGE);
    assert_string_equal(err.message, "\"expert_overlap\" hides exchanges behind another micro-batch: \"global_batch\" "
                                     "must be at least 2 * batch * dp = 32");
    r.work.task = FT_PREFILL; /* which has none in any case */
    assert_int_equal(ft__ranks_forecast(&ranks, &r.step, NULL, NULL, &err), FT_OK);
    end(&r);
}

/* A last bucket that holds all there is takes what all takes after the backward pass: experts of which each rank has
 * its own are not in it. */
static void the_last_bucket_holds_no_experts(void **state)
{
    (void)state;
    rig r;
    begin(&r, "olmoe-1b-7b");
    r.cluster = slow_network(8, 5);
    r.parallel = layout_of(1, 1, 1, 8, 8);
    r.parallel.bucket_bytes = 4e9;
    forecast_sound(&r);
    double beside = r.step.step_ms;
    r.parallel.no_overlap = true;
    forecast_sound(&r);
    if (beside > 1.02 * r.step.step_ms)
        fail_msg("%.0f ms beside the backward pass, %.0f after", beside, r.step.step_ms);
    end(&r);
}

/* Dualpipe: a rank has two stages, and half of the micro-batches pass either. */
static void dualpipe_exchanges_for_two_stages(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.cluster = slow_network(8, 10);
    r.work.accumulate = 32;
    for (int zero = 0; zero < 4; zero++) {
        double data[2];
        for (int dual = 0; dual < 2; dual++) {
            r.parallel = layout_of(1, 2, 1, 1, 4);
            r.parallel.schedule = dual ? FT_DUALPIPE : FT_1F1B;
            r.parallel.zero = zero;
            forecast_sound(&r);
            data[dual] = r.step.axis_ms[FT_AXIS_DATA];
            close_to(r.step.busy_ms + r.step.comm_exposed_ms + r.step.bubble_ms + r.step.idle_ms, r.step.step_ms, 0.02,
                     "parts of the step");
        }
        double twice = zero < 2 ? 2 : 1; /* once a step for either, or with every micro-batch of each half */
        close_to(data[1], twice * data[0], 0.25, "of one stage and of both");
    }
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_bucket_holds_no_experts),
        cmocka_unit_test(dualpipe_exchanges_for_two_stages),
        cmocka_unit_test(uneven_experts_take_longer),
        cmocka_unit_test(experts_exchange_beside_other_micro_batches),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
