/* What a step on many GPUs exchanges, in closed form. */
#include "ranks_steps.h"

/* -- volumes ----------------------------------------------------------------------------------- */

/* An all-reduce sends 2 (n-1)/n of its bytes, ZeRO-3 three times (n-1)/n of the parameters (Rajbhandari et al.). */
static void data_parallel_volumes(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    for (int64_t n = 2; n <= 64; n *= 4) {
        double ring = ((double)n - 1) / (double)n, gb = 1e-9;
        r.cluster = slow_network(n, 0.5);
        r.parallel = layout_of(1, 1, 1, 1, n);
        forecast_sound(&r);
        double elements = r.ranked.stages[0].dense;
        double ms = elements * gb / 0.5 * 1e3;
        close_to(r.step.axis_ms[FT_AXIS_DATA], 2 * ring * 4 * ms, 0.05, "ddp");
        assert_true(r.step.comm_exposed_ms > 0.8 * r.step.comm_ms); /* nothing hides on such a network */
        r.parallel.zero = 1; /* gradients scattered in fp32, parameters gathered in bf16 */
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], ring * (4 + 2) * ms, 0.05, "zero 1");
        r.parallel.zero = 3;
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], 3 * ring * 2 * ms, 0.05, "zero 3");
        r.parallel.keep_gathered = true;
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], 2 * ring * 2 * ms, 0.05, "zero 3, parameters kept");
        r.parallel.keep_gathered = false;
        r.parallel.zero = 0;
        r.work.accumulate = 4; /* once per step, however many micro-batches */
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], 2 * ring * 4 * ms, 0.05, "ddp, accumulated");
        r.work.accumulate = 1;
    }
    end(&r);
}

/* On a network that hides nothing a step lasts as long as its kernels and its exchanges: tables at both ends of the
 * model are gathered as often as they are counted, and nothing after the last of a pass. */
static void nothing_is_gathered_for_nobody(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3-8b");
    r.work.execution = FT_RUN_IDEAL;
    r.cluster = slow_network(4, 0.5);
    r.parallel = layout_of(1, 1, 1, 1, 4);
    r.parallel.zero = 3;
    for (int64_t micros = 1; micros <= 4; micros *= 4) {
        r.work.accumulate = micros;
        forecast_sound(&r);
        close_to(r.step.step_ms, r.step.busy_ms + r.step.comm_ms, 0.01, "kernels and exchanges");
    }
    r.parallel.zero = 1; /* updated parameters, beside the next forward pass or before it */
    forecast_sound(&r);
    double before = r.step.step_ms;
    r.parallel.gather_ahead = true;
    forecast_sound(&r);
    assert_true(r.step.step_ms < before);
    end(&r);
}

/* FSDP in a pipeline: parameters once, gradients once, however many micro-batches, and these with nothing beside
 * them. */
static void stages_exchange_once(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.work.execution = FT_RUN_COMPILE;
    r.parallel = layout_of(1, 2, 1, 1, 4);
    r.parallel.zero = 3;
    r.cluster = slow_network(8, 5);
    for (int64_t micros = 2; micros <= 8; micros *= 4) {
        r.work.accumulate = micros;
        forecast_sound(&r);
        const ft_stage *first = &r.ranked.stages[0], *last = &r.ranked.stages[1];
        bool late = first->forward_ms + first->backward_ms < last->forward_ms + last->backward_ms;
        const ft_stage *slow = late ? last : first;
        double ms = slow->dense * 1e-9 / 5 * 1e3, ring = 0.75;
        close_to(r.step.axis_ms[FT_AXIS_DATA], ring * (2 + 2) * ms, 0.05, "gathered and reduced once");
        close_to(slow->last_backward_ms - slow->backward_ms, ring * 2 * ms, 0.05,
                 "reduced after the last backward pass");
        assert_true(slow->first_forward_ms > slow->forward_ms);
        double step = r.step.step_ms;
        r.parallel.drop_gathered = true;
        forecast_sound(&r);
        close_to(r.step.axis_ms[FT_AXIS_DATA], ring * (2 + 4 * (double)micros) * ms, 0.05, "gathered again and again");
        assert_true(r.step.step_ms > step);
        r.parallel.drop_gathered = false;
    }
    end(&r);
}

/* Shards of eight ranks, eight copies: a scattering inside, a sum over the copies of an eighth. */
static void hybrid_shards_cross_fewer_ranks(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.cluster = slow_network(64, 0.5);
    r.parallel = layout_of(1, 1, 1, 1, 64);
    r.parallel.zero = 3;
    r.parallel.shard = 8;
    forecast_sound(&r);
    double ms = r.ranked.stages[0].dense * 2e-9 / 0.5 * 1e3, inside = 7.0 / 8;
    close_to(r.step.axis_ms[FT_AXIS_DATA], (3 * inside + 2 * inside / 8) * ms, 0.05, "hybrid");
    double kept = ft__ranks_kept(&r.parallel, 1, 0);
    assert_true(kept == 1.0 / 8);
    end(&r);
}

static void overlap_hides_what_there_is_time_for(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3-8b");
    r.work.seq = 4096;
    /* Persistent products (H100) lose more beside an exchange than those whose blocks are tiles. */
    static const struct {
        const char *gpu;
        double least, most;
    } hides[] = {{"a100_sxm_80gb", 0.7, 1}, {"h100_sxm", 0.35, 0.7}};
    for (size_t i = 0; i < sizeof hides / sizeof *hides; i++) {
        r.device = limit_device(hides[i].gpu);
        r.parallel = layout_of(1, 1, 1, 1, 64);
        forecast_sound(&r);
        double beside = r.step.step_ms, comm = r.step.axis_ms[FT_AXIS_DATA];
        r.parallel.no_overlap = true;
        forecast_sound(&r);
        double hidden = (r.step.step_ms - beside) / comm;
        assert_true(hidden > hides[i].least && hidden < hides[i].most);
    }
    r.parallel.no_overlap = false;
    r.parallel.zero = 1;
    forecast_sound(&r);
    double after = r.step.step_ms;
    r.parallel.gather_ahead = true; /* parameters come beside the next forward pass */
    forecast_sound(&r);
    assert_true(r.step.step_ms < after);
    end(&r);
}

/* Sharded gradients leave with every micro-batch. A network that cannot keep up sets the pace, however long the row:
 * no step is shorter than what its data ranks exchange one after the other, nor longer than that and its kernels. */
static void every_micro_batch_sends_its_gradients(void **state)
{
    (void)state;
    rig r;
    begin(&r, "llama-3.2-1b");
    r.cluster = slow_network(16, 0.5);
    for (int kind = 2; kind <= 4; kind++)
        for (int64_t micros = 1; micros <= 64; micros *= 2) {
            int zero = kind < 3 ? 2 : 3;
            r.parallel = layout_of(1, 1, 1, 1, 16);
            r.parallel.zero = zero;
            r.parallel.shard = kind == 4; /* nothing to gather: copies alone */
            r.work.accumulate = micros;
            forecast_sound(&r);
            double beside = r.step.step_ms, sent = r.step.axis_ms[FT_AXIS_DATA];
            double most = (zero == 3 ? 1.2 : 1.02) * sent + 1.1 * r.step.busy_ms; /* one gather of each pass is early */
            if (beside < 0.99 * sent || beside > most)
                fail_msg("zero %d, %d micro-batches: a step of %.0f ms sends %.0f", zero, (int)micros, beside, sent);
            r.parallel.no_overlap = true;
            forecast_sound(&r);
            if (r.step.step_ms < (zero == 3 ? 0.95 : 0.99) * beside || r.step.step_ms > most)
                fail_msg("zero %d, %d micro-batches, sent after each: %.0f ms, beside it %.0f", zero, (int)micros,
                         r.step.step_ms, beside);
        }
    r.work.accumulate = 1;
    end(&r);
}

/* Also where the host sets the pace of a micro-batch alone: while it waits for the network it runs ahead. */
static void a_host_that_runs_ahead_does_not_outrun_the_wire(void **state)
{
    (void)state;
    rig r;
    begin(&r, "smollm2-135m");
    r.work.seq = 128;
    r.parallel = layout_of(1, 1, 1, 1, 16);
    r.parallel.zero = 2;
    for (double gbps = 1; gbps <= 64; gbps *= 2) {
        r.cluster = slow_network(16, gbps);
        r.work.accumulate = 64;
        forecast_sound(&r);
        if (r.step.step_ms < 0.999 * r.step.axis_ms[FT_AXIS_DATA])
            fail_msg("%g GB/s: a step of %.1f ms sends for %.1f", gbps, r.step.step_ms, r.step.axis_ms[FT_AXIS_DATA]);
    }
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_parallel_volumes),
        cmocka_unit_test(every_micro_batch_sends_its_gradients),
        cmocka_unit_test(a_host_that_runs_ahead_does_not_outrun_the_wire),
        cmocka_unit_test(nothing_is_gathered_for_nobody),
        cmocka_unit_test(stages_exchange_once),
        cmocka_unit_test(hybrid_shards_cross_fewer_ranks),
        cmocka_unit_test(overlap_hides_what_there_is_time_for),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
